//! `wearmark profile`

use std::path::Path;

use anyhow::Context as _;
use events::{Event, Sink, Warning};
use profile::{DeviceSpec, Difference, Imported, Profile, Side, disksim, mqsim};
use report::format;
use study::profiles::read_profile;
use study::{published, run_dir};

use super::{Context, Outcome, output};
use crate::cli::ProfileCommand;
use crate::failure::Advice;

/// Runs the command.
pub fn run(command: ProfileCommand, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        ProfileCommand::List => list(context)?,
        ProfileCommand::Show { profile } => show(&read_profile(&profile)?, context)?,
        ProfileCommand::Check { profile: Some(profile), published: false, .. } => {
            let checked = read_profile(&profile)?;
            output::print(&format!("{profile}: '{}' is a valid profile\n", checked.name()))?;
            if let Some(warning) = contradiction(&checked) {
                context.view.emit(Event::Warning(warning));
            }
        }
        ProfileCommand::Check { profile: Some(profile), seed, .. } => {
            check_published(&read_profile(&profile)?, seed, context)?;
        }
        ProfileCommand::Check { profile: None, seed, .. } => summarise_published(seed, context)?,
        ProfileCommand::Diff { left, right } => diff(&left, &right, context)?,
        ProfileCommand::ImportDisksim { drive, output, name } => {
            import_disksim(&drive, &output, name)?;
        }
        ProfileCommand::ImportMqsim { file, output, name } => {
            import_mqsim(&file, &output, name)?;
        }
    }
    Ok(Outcome::Fine)
}

/// The file, below comments with what follows from it.
fn show(profile: &Profile, context: &Context) -> anyhow::Result<()> {
    if context.json {
        return output::json(profile);
    }
    let mut text = String::new();
    if let DeviceSpec::Flash(spec) = &profile.device {
        let parameters = spec.parameters();
        let of = |bytes: f64| format::bytes(bytes);
        let raw =
            parameters.geometry.page_count() as f64 * f64::from(parameters.geometry.page_bytes);
        text = format!(
            "# {} of {} of flash can be addressed: over-provisioning {:.1} % of the flash, {:.1} % \
             of the capacity.\n# A simulation takes about {} of memory.\n\n",
            of(parameters.capacity().0 as f64),
            of(raw),
            100.0 * parameters.over_provisioning(),
            100.0 * parameters.spare_over_logical(),
            of(profile.memory().0 as f64),
        );
    }
    output::print(&(text + &profile.to_toml()))
}

/// Whether what its maker states of its life does not fit together.
fn contradiction(profile: &Profile) -> Option<Warning> {
    let ratio = profile.endurance.as_ref()?.contradiction()?;
    let message = format!(
        "endurance.written_tb is {ratio:.2} of what endurance.drive_writes_per_day comes to: \
         lives are told by written_tb"
    );
    Some(Warning::new("profile", "rating_contradicts", message).with_hint(
        "the two may belong to drives of different sizes or years: see endurance.size and \
         endurance.years",
    ))
}

fn list(context: &Context) -> anyhow::Result<()> {
    let shipped = profile::shipped().iter();
    let profiles: Vec<Profile> =
        shipped.map(|(name, text)| Profile::from_toml(text, name)).collect::<Result<_, _>>()?;
    if context.json {
        return output::json(&profiles.iter().map(|profile| &profile.profile).collect::<Vec<_>>());
    }
    let mut rows = vec![vec!["NAME".to_owned(), "CLASS".to_owned(), "WHAT".to_owned()]];
    rows.extend(profiles.iter().map(|profile| {
        let about = &profile.profile;
        vec![about.name.clone(), about.class.clone(), about.description.clone()]
    }));
    output::print(&output::table(&rows))
}

fn check_published(profile: &Profile, seed: u64, context: &Context) -> anyhow::Result<()> {
    let checks = published::check(profile, seed)?;
    if context.json {
        return output::json(&checks);
    }
    if checks.is_empty() {
        let text = format!("{} has no [[published]] figures\n", profile.name());
        return output::print(&text);
    }
    let head = ["FIGURE", "LOAD", "MODEL", "PUBLISHED", "UNIT", "ERROR", "INPUT"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(checks.iter().map(|check| {
        let own = &check.published;
        let of = own.of.map_or_else(String::new, |op| format!(" of {}s", op.name()));
        vec![
            format!("{}{of}", own.figure.name()),
            own.load(),
            three_digits(check.model),
            three_digits(own.value),
            own.unit.name().to_owned(),
            percent(Some(check.error)),
            if own.input { "input" } else { "" }.to_owned(),
        ]
    }));
    output::print(&output::table(&rows))
}

fn summarise_published(seed: u64, context: &Context) -> anyhow::Result<()> {
    let summaries: Vec<_> = profile::shipped()
        .iter()
        .map(|(name, text)| {
            let checks = published::check(&Profile::from_toml(text, name)?, seed)?;
            Ok(published::summary(name, &checks))
        })
        .collect::<Result<_, profile::Error>>()?;
    if context.json {
        return output::json(&summaries);
    }
    let head = ["PROFILE", "INPUTS", "WORST", "REGRESSIONS", "MEDIAN", "WORST"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(summaries.iter().map(|own| {
        vec![
            own.profile.clone(),
            own.inputs.to_string(),
            percent(own.input_error_most),
            own.regressions.to_string(),
            percent(own.regression_error_median),
            percent(own.regression_error_most),
        ]
    }));
    output::print(&output::table(&rows))
}

/// An error as a share of the published value; `-` where there is none.
fn percent(error: Option<f64>) -> String {
    error.map_or_else(|| "-".to_owned(), |error| format!("{:.1} %", 100.0 * error))
}

/// Whole numbers from 100 on, three digits below.
fn three_digits(value: f64) -> String {
    let decimals = (2 - value.abs().max(1e-3).log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}")
}

fn diff(left: &str, right: &str, context: &Context) -> anyhow::Result<()> {
    let differences = profile::diff(&read_profile(left)?, &read_profile(right)?);
    if context.json {
        return output::json(&differences);
    }
    if differences.is_empty() {
        return output::print(&format!("{left} and {right} do not differ\n"));
    }
    let mut rows = vec![vec!["FIELD".to_owned(), left.to_owned(), right.to_owned()]];
    let mut evidence = String::new();
    for Difference { field, left: first, right: second } in &differences {
        let value = |side: &Option<Side>| {
            side.as_ref().map_or_else(|| "-".to_owned(), |side| cut(&side.value))
        };
        rows.push(vec![field.clone(), value(first), value(second)]);
        for (name, side) in [(left, first), (right, second)] {
            if let Some(Side { source, assumed, .. }) = side
                && !source.is_empty()
            {
                let mark = if *assumed { " (assumed)" } else { "" };
                evidence.push_str(&format!("  {field}, {name}: {source}{mark}\n"));
            }
        }
    }
    let sources = if evidence.is_empty() { evidence } else { format!("\nSources\n{evidence}") };
    output::print(&format!("{}{sources}", output::table(&rows)))
}

/// A value that fits into a column.
fn cut(value: &str) -> String {
    const MOST: usize = 40;
    if value.chars().count() <= MOST {
        return value.to_owned();
    }
    value.chars().take(MOST - 1).chain(['…']).collect()
}

fn import_disksim(drive: &Path, target: &Path, name: Option<String>) -> anyhow::Result<()> {
    let folder = drive.parent().unwrap_or(Path::new("")).to_owned();
    let short = drive.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let candidates = [short.clone(), format!("{short}.parv"), format!("{short}.diskspecs")];
    let first = candidates.iter().find(|file| folder.join(file).is_file()).ok_or_else(|| {
        Advice::error(
            format!("{}: there is no {short}.parv and no {short}.diskspecs", drive.display()),
            "name the directory and the drive, such as drives/atlas10k",
        )
    })?;
    let own = short.trim_end_matches(".parv").trim_end_matches(".diskspecs").to_owned();
    let mut read = |file: &str| std::fs::read_to_string(folder.join(file));
    let imported = disksim::import(&name.unwrap_or(own), first, &mut read)
        .with_context(|| folder.display().to_string())?;
    write_imported(&imported, target)
}

fn import_mqsim(file: &Path, target: &Path, name: Option<String>) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(file).map_err(|cause| {
        Advice::error(format!("{}: {cause}", file.display()), "name MQSim's ssdconfig.xml")
    })?;
    let own = file.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into());
    let shown = file.display().to_string();
    write_imported(&mqsim::import(&name.unwrap_or(own), &shown, &text)?, target)
}

fn write_imported(imported: &Imported, target: &Path) -> anyhow::Result<()> {
    run_dir::write_atomically(target, imported.profile.to_toml().as_bytes())?;
    let mut text = format!("Profile written to {}\n", target.display());
    if !imported.ignored.is_empty() {
        let list = imported.ignored.join(", ");
        text.push_str(&format!("Switched on in the files and not modelled: {list}\n"));
    }
    output::print(&text)
}
