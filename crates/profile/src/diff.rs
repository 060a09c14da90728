//! What differs between two profiles, parameter by parameter, with where each value comes from.
//!
//! Both are compared as the tables that they are written as, so that a new kind of device needs
//! nothing here. A parameter is its value; sources and errors are shown beside it, and a parameter
//! that only its source tells apart is no difference. Invariants: a profile does not differ from
//! itself, and the differences of (b, a) are those of (a, b) turned round; both are tested.

use std::collections::BTreeMap;

use serde::Serialize;
use toml::{Table, Value};

use crate::Profile;

/// One side of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The value as text; long lists are counted.
    pub value: String,
    /// Where it comes from; empty where the profile does not say for this field.
    pub source: String,
    /// Whether nobody measured or published it.
    pub assumed: bool,
}

/// A field that two profiles do not share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The field as a TOML path: `device.zone[2].sectors_per_track`.
    pub field: String,
    /// In the first profile; none where it has no such field.
    pub left: Option<Side>,
    /// In the second one.
    pub right: Option<Side>,
}

/// The fields in which `left` and `right` differ, by path.
pub fn diff(left: &Profile, right: &Profile) -> Vec<Difference> {
    let (mut left, mut right) = (fields(left), fields(right));
    let mut names: Vec<String> = left.keys().chain(right.keys()).cloned().collect();
    names.sort_by_cached_key(|name| natural(name));
    names.dedup();
    let pairs = names.into_iter().map(|field| {
        let (left, right) = (left.remove(&field), right.remove(&field));
        (field, left, right)
    });
    let differing = pairs.filter(|(_, left, right)| match (left, right) {
        (Some(left), Some(right)) => left.exact != right.exact,
        _ => true,
    });
    differing
        .map(|(field, left, right)| Difference {
            field,
            left: left.map(|field| field.side),
            right: right.map(|field| field.side),
        })
        .collect()
}

/// A field with its whole value, which a [`Side`] may cut short.
struct Field {
    exact: Value,
    side: Side,
}

fn fields(profile: &Profile) -> BTreeMap<String, Field> {
    let table = Table::try_from(profile).expect("a profile holds tables, texts and numbers only");
    let mut out = BTreeMap::new();
    walk("", &Value::Table(table), &mut out);
    out
}

fn walk(path: &str, value: &Value, out: &mut BTreeMap<String, Field>) {
    match value {
        Value::Table(table) if table.contains_key("value") => {
            let text = |key: &str| table.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
            let assumed = table.get("assumed").and_then(Value::as_bool).unwrap_or(false);
            let exact = table["value"].clone();
            let side = Side { value: exact.to_string(), source: text("source"), assumed };
            out.insert(path.to_owned(), Field { exact, side });
        }
        Value::Table(table) => {
            for (key, inner) in table {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                walk(&path, inner, out);
            }
        }
        Value::Array(items) if items.first().is_some_and(Value::is_table) => {
            for (index, inner) in items.iter().enumerate() {
                walk(&format!("{path}[{index}]"), inner, out);
            }
        }
        _ => {
            let shown = match value {
                Value::Array(items) if items.len() > 4 => format!("{} entries", items.len()),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            // The whole of a long list decides, not its length.
            let side = Side { value: shown, source: String::new(), assumed: false };
            out.insert(path.to_owned(), Field { exact: value.clone(), side });
        }
    }
}

/// A key under which `zone[10]` follows `zone[9]`.
fn natural(path: &str) -> Vec<(String, u64)> {
    let part = |part: &str| {
        let (name, number) = part.split_once('[').unwrap_or((part, ""));
        (name.to_owned(), number.trim_end_matches(']').parse().unwrap_or(0))
    };
    path.split('.').map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parameter, Profile, find_shipped, shipped};

    fn profile(name: &str) -> Profile {
        Profile::from_toml(find_shipped(name).expect("it ships"), name).expect("it is sound")
    }

    #[test]
    fn no_profile_differs_from_itself_and_sides_turn_round() {
        let profiles: Vec<Profile> = shipped().iter().map(|(name, _)| profile(name)).collect();
        for left in &profiles {
            assert_eq!(diff(left, left), []);
            for right in &profiles {
                let there = diff(left, right);
                let back: Vec<Difference> = diff(right, left)
                    .into_iter()
                    .map(|difference| Difference {
                        field: difference.field,
                        left: difference.right,
                        right: difference.left,
                    })
                    .collect();
                assert_eq!(there, back);
                assert_eq!(there.is_empty(), left == right);
            }
        }
    }

    #[test]
    fn a_parameter_is_shown_with_its_source() {
        let left = profile("mtron-pro-7500");
        let mut right = left.clone();
        right.profile.description = "Another one.".to_owned();
        let cache = right.write_cache.as_mut().expect("it has one");
        cache.capacity_mb = Parameter::assumed(64.0, "a guess");
        let found = diff(&left, &right);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].field, "profile.description");
        assert_eq!(found[1].field, "write_cache.capacity_mb");
        let side = found[1].right.as_ref().expect("it has one");
        assert_eq!(
            (side.value.as_str(), side.source.as_str(), side.assumed),
            ("64.0", "a guess", true)
        );
    }

    #[test]
    fn long_lists_differ_by_what_they_hold() {
        let mut order = vec!["a.zone[10].x", "a.zone[9].x", "a.b"];
        order.sort_by_cached_key(|path| natural(path));
        assert_eq!(order, ["a.b", "a.zone[9].x", "a.zone[10].x"]);
    }
}
