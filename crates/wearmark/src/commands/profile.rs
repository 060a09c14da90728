//! `wearmark profile`

use model::Profile;
use study::scenarios::read_profile;

use super::{Context, Outcome, output};
use crate::cli::ProfileCommand;

/// Runs the command.
pub fn run(command: ProfileCommand, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        ProfileCommand::List => list(context)?,
        ProfileCommand::Show { profile } => output::print(&read_profile(&profile)?.to_toml())?,
        ProfileCommand::Check { profile } => {
            let checked = read_profile(&profile)?;
            output::print(&format!("{profile}: '{}' is a valid profile\n", checked.name()))?;
        }
    }
    Ok(Outcome::Fine)
}

fn list(context: &Context) -> anyhow::Result<()> {
    let shipped = model::profile::shipped().iter();
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
