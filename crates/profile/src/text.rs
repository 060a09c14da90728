//! A profile as TOML text: reading with the place of every mistake, and writing as a person would.

use std::fmt::{self, Write};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::flash::FlashSpec;
use crate::hdd::HddSpec;
use crate::limits::LimitsSpec;
use crate::linear::LinearSpec;
use crate::ram::RamSpec;
use crate::write_cache::WriteCacheSpec;
use crate::{
    About, CostSpec, DeviceSpec, EnduranceSpec, Error, Profile, Published, StateOf, Validation,
    check,
};

/// A profile with `[device]` read as `D`.
///
/// Read in two steps, since a tagged enum would lose the place of a mistake: first the kind, then
/// everything with the device section of that kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<D> {
    profile: About,
    #[serde(default)]
    state: StateOf,
    device: D,
    #[serde(default)]
    write_cache: Option<WriteCacheSpec>,
    #[serde(default)]
    limits: Option<LimitsSpec>,
    #[serde(default)]
    validation: Option<Validation>,
    #[serde(default)]
    cost: Option<CostSpec>,
    #[serde(default)]
    endurance: Option<EnduranceSpec>,
    #[serde(default)]
    published: Vec<Published>,
}

#[derive(Deserialize)]
struct KindOnly {
    device: Kind,
}

#[derive(Deserialize)]
struct Kind {
    kind: KindName,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindName {
    Linear,
    Ram,
    Hdd,
    Flash,
}

pub(super) fn read(text: &str, path: &str) -> Result<Profile, Error> {
    let kind = parse::<KindOnly>(text, path)?.device.kind;
    // The second reading must not meet the key of the first: blank it, keeping every offset.
    let text_without_kind = blank_kind(text);
    let profile = match kind {
        KindName::Linear => {
            let document = parse::<Document<LinearSpec>>(&text_without_kind, path)?;
            assemble(document, |linear| DeviceSpec::Linear(Box::new(linear)))
        }
        KindName::Ram => {
            let document = parse::<Document<RamSpec>>(&text_without_kind, path)?;
            assemble(document, DeviceSpec::Ram)
        }
        KindName::Flash => {
            let document = parse::<Document<FlashSpec>>(&text_without_kind, path)?;
            assemble(document, |flash| DeviceSpec::Flash(Box::new(flash)))
        }
        KindName::Hdd => {
            let document = parse::<Document<HddSpec>>(&text_without_kind, path)?;
            assemble(document, |hdd| DeviceSpec::Hdd(Box::new(hdd)))
        }
    };
    check::profile(&profile).map_err(|(field, cause)| Error::Impossible {
        path: path.to_owned(),
        line: line_of_field(text, &field),
        field: events::one_line(&field),
        cause: events::one_line(&cause),
    })?;
    Ok(profile)
}

fn assemble<D>(document: Document<D>, device: impl Fn(D) -> DeviceSpec) -> Profile {
    Profile {
        profile: document.profile,
        state: document.state,
        device: device(document.device),
        write_cache: document.write_cache,
        limits: document.limits,
        validation: document.validation,
        cost: document.cost,
        endurance: document.endurance,
        published: document.published,
    }
}

fn parse<T: DeserializeOwned>(text: &str, path: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..at].split(|&byte| byte == b'\n').count();
        let cause = events::one_line(error.message());
        Error::Syntax { path: path.to_owned(), line, cause }
    })
}

/// `text` with the `kind = "..."` line of `[device]` made blank.
fn blank_kind(text: &str) -> String {
    let mut section = String::new();
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if let Some(name) = section_of(line) {
            name.clone_into(&mut section);
        }
        let key = line.split('=').next().unwrap_or("").trim();
        if section == "device" && key == "kind" {
            out.extend(line.chars().map(|c| if c == '\n' { c } else { ' ' }));
        } else {
            out.push_str(line);
        }
    }
    out
}

/// The name in `[name]` or `[[name]]`.
fn section_of(line: &str) -> Option<&str> {
    let line = line.split('#').next().unwrap_or("").trim();
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let inner = inner.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(inner);
    Some(inner.trim())
}

/// The line, from 1, where `field` stands; that of its section where the key is not found, and 1
/// where neither is.
fn line_of_field(text: &str, field: &str) -> usize {
    let (path, key) = field.rsplit_once('.').unwrap_or(("", field));
    let (path, wanted) = match path.split_once('[') {
        Some((name, index)) => (name, index.trim_end_matches(']').parse::<usize>().unwrap_or(0)),
        None => (path, 0),
    };
    let (mut seen, mut inside, mut section_line) = (0, false, 1);
    for (number, line) in text.lines().enumerate() {
        if let Some(name) = section_of(line) {
            inside = name == path && {
                seen += 1;
                seen == wanted + 1
            };
            if inside {
                section_line = number + 1;
            }
        } else if inside && line.split('=').next().is_some_and(|own| own.trim() == key) {
            return number + 1;
        }
    }
    section_line
}

pub(super) fn write(profile: &Profile) -> String {
    let table = Table::try_from(profile).expect("a profile holds tables, texts and numbers only");
    let mut out = String::new();
    write_section(&mut out, "", &table);
    out
}

/// `profile` with the value at `field` changed. A parameter keeps its place and gets a new source.
pub(super) fn with_field(profile: &Profile, field: &str, value: &str) -> Result<Profile, Error> {
    let impossible = |cause: &str| Error::Impossible {
        path: profile.profile.name.clone(),
        line: 0,
        field: field.to_owned(),
        cause: cause.to_owned(),
    };
    let mut table = Table::try_from(profile).expect("a profile holds tables, texts and numbers");
    let (path, key) = field.rsplit_once('.').unwrap_or(("", field));
    let mut section = &mut table;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let inner = section.get_mut(name).and_then(Value::as_table_mut);
        section = inner.ok_or_else(|| impossible("the profile has no such section"))?;
    }
    let text = Value::String(value.to_owned());
    let value = toml::from_str::<Table>(&format!("value = {value}"))
        .map_or(text, |mut read| read.remove("value").expect("it was given"));
    let is_number = value.is_integer() || value.is_float();
    let is_parameter = match section.get(key) {
        Some(Value::Table(old)) if old.contains_key("value") => true,
        Some(Value::Table(_) | Value::Array(_)) => {
            return Err(impossible("it is a section; name a field in it"));
        }
        // An optional parameter that is not there yet; a plain number is found out by reading.
        None => is_number,
        Some(_) => false,
    };
    let changed = if is_parameter {
        let source = Value::String("changed by hand".to_owned());
        Value::Table(Table::from_iter([("value".to_owned(), value), ("source".to_owned(), source)]))
    } else {
        value
    };
    section.insert(key.to_owned(), changed);
    let mut text = String::new();
    write_section(&mut text, "", &table);
    read(&text, &profile.profile.name)
}

/// The order in which a person would write the keys; those not named here follow alphabetically.
const ORDER: &[&str] = &[
    "profile",
    "state",
    "device",
    "write_cache",
    "limits",
    "validation",
    "cost",
    "endurance",
    "published",
    "name",
    "description",
    "class",
    "condition",
    "fill",
    "measured",
    "kind",
    "capacity",
    "capacity_mb",
    "line",
    "sequential_detection",
    "parallelism",
    "op",
    "pattern",
    "size",
    "after",
    "idle_us",
    "read",
    "write",
    "base_us",
    "us_per_kib",
    "us_per_dirty_kib",
    "us_per_dirty_request",
    "r_squared",
    "ceiling_iops",
    "ceiling_mb_per_s",
    "rate",
    "burst",
    "credits",
    "credits_at_start",
    "hit_base_us",
    "hit_us_per_kib",
    "read_factor",
    "write_factor",
    "flush",
    "durable_write",
    "mixed",
    "error_ratio",
    "interval",
    "device_against_itself",
    "trace",
    "date",
    "source",
    "sources",
    "samples",
    "quantiles",
    "residual",
    "jitter",
];

/// The entries of `table` in writing order.
fn ordered(table: &Table) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = table.iter().collect();
    // The sort is stable and the table alphabetical.
    entries.sort_by_key(|(key, _)| ORDER.iter().position(|own| own == key).unwrap_or(ORDER.len()));
    entries
}

/// Writes `table` as section `name`: plain keys and parameters first, sections below.
fn write_section(out: &mut String, name: &str, table: &Table) {
    let (sections, own): (Vec<_>, Vec<_>) =
        ordered(table).into_iter().partition(|(_, value)| is_section(value));
    if !name.is_empty() && !own.is_empty() {
        if !out.is_empty() {
            out.push('\n');
        }
        emit(out, format_args!("[{name}]\n"));
    }
    for (key, value) in own {
        write_value(out, key, value);
    }
    for (key, value) in sections {
        let path = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        match value {
            Value::Table(inner) => write_section(out, &path, inner),
            Value::Array(items) => {
                for item in items.iter().filter_map(Value::as_table) {
                    emit(out, format_args!("\n[[{path}]]\n"));
                    for (key, value) in ordered(item) {
                        write_value(out, key, value);
                    }
                }
            }
            _ => unreachable!("only tables and arrays of tables are sections"),
        }
    }
}

fn emit(out: &mut String, text: fmt::Arguments) {
    out.write_fmt(text).expect("a String takes any text");
}

/// A parameter (a table with a `value`) stays on the line of its key.
fn is_section(value: &Value) -> bool {
    match value {
        Value::Table(table) => !table.contains_key("value"),
        Value::Array(items) => items.first().is_some_and(Value::is_table),
        _ => false,
    }
}

fn write_value(out: &mut String, key: &str, value: &Value) {
    match value {
        Value::Table(table) => {
            let order = ["value", "error", "source", "assumed"];
            let parts: Vec<String> = order
                .iter()
                .filter_map(|name| table.get(*name).map(|value| format!("{name} = {value}")))
                .collect();
            emit(out, format_args!("{key} = {{ {} }}\n", parts.join(", ")));
        }
        Value::Array(items) if items.len() > 4 || items.iter().any(Value::is_array) => {
            emit(out, format_args!("{key} = [\n"));
            for row in items.chunks(if items.iter().any(Value::is_array) { 4 } else { 1 }) {
                let row: Vec<String> = row.iter().map(ToString::to_string).collect();
                emit(out, format_args!("    {},\n", row.join(", ")));
            }
            out.push_str("]\n");
        }
        _ => emit(out, format_args!("{key} = {value}\n")),
    }
}
