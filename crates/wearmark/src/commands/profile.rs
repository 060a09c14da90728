//! `wearmark profile`

use std::path::Path;

use anyhow::Context as _;
use profile::{Difference, Profile, Side, disksim};
use study::profiles::read_profile;
use study::run_dir;

use super::{Context, Outcome, output};
use crate::cli::ProfileCommand;
use crate::failure::Advice;

/// Runs the command.
pub fn run(command: ProfileCommand, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        ProfileCommand::List => list(context)?,
        ProfileCommand::Show { profile } => output::print(&read_profile(&profile)?.to_toml())?,
        ProfileCommand::Check { profile } => {
            let checked = read_profile(&profile)?;
            output::print(&format!("{profile}: '{}' is a valid profile\n", checked.name()))?;
        }
        ProfileCommand::Diff { left, right } => diff(&left, &right, context)?,
        ProfileCommand::ImportDisksim { drive, output, name } => {
            import_disksim(&drive, &output, name)?;
        }
    }
    Ok(Outcome::Fine)
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
    run_dir::write_atomically(target, imported.profile.to_toml().as_bytes())?;
    let mut text = format!("Profile written to {}\n", target.display());
    if !imported.ignored.is_empty() {
        let list = imported.ignored.join(", ");
        text.push_str(&format!("Switched on in the files and not modelled: {list}\n"));
    }
    output::print(&text)
}
