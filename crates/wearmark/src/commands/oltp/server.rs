//! `wearmark oltp server`: a private server to look at by hand.

use std::time::Duration;

use dbms::{Instance, System};
use events::Sink;
use serde::Serialize;

use super::target::{server_settings, start};
use super::{Context, Outcome, output};
use crate::cli::{DbmsName, OltpServer};
use crate::failure::Advice;

/// What is there.
#[derive(Serialize)]
struct Shown<'a> {
    system: System,
    version: &'a str,
    address: String,
    places: &'a dbms::Places,
    settings: &'a dbms::Settings,
    notes: Vec<String>,
}

/// Runs the command.
pub fn server(command: OltpServer, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        OltpServer::Run { place, settings } => {
            let system = match place.dbms {
                DbmsName::Postgresql => System::Postgresql,
                DbmsName::Mariadb => System::Mariadb,
                DbmsName::Sqlite => {
                    return Err(Advice::error(
                        "SQLite has no server",
                        "say --dbms postgresql or --dbms mariadb",
                    ));
                }
            };
            let settings = server_settings(&settings, 0)?;
            let mut instance = start(system, &place, &settings, context)?;
            show(&instance, context)?;
            while !context.view.cancelled() {
                instance.check().map_err(study::Error::from)?;
                std::thread::sleep(Duration::from_millis(100));
            }
            instance.stop().map_err(study::Error::from)?;
            Ok(Outcome::Fine)
        }
        OltpServer::Show { directory } => {
            show(&Instance::open(&directory).map_err(study::Error::from)?, context)?;
            Ok(Outcome::Fine)
        }
        OltpServer::Remove { directory } => {
            Instance::remove_at(&directory).map_err(study::Error::from)?;
            Ok(Outcome::Fine)
        }
    }
}

fn show(instance: &Instance, context: &Context) -> anyhow::Result<()> {
    let shown = Shown {
        system: instance.system(),
        version: instance.version(),
        address: instance.address().to_string(),
        places: instance.places(),
        settings: instance.settings(),
        notes: instance.notes(),
    };
    if context.json {
        return output::json(&shown);
    }
    let place = |path: &Option<std::path::PathBuf>| {
        path.as_ref().map_or_else(|| "with the data".to_owned(), |path| path.display().to_string())
    };
    let mut rows = vec![
        vec!["system".to_owned(), shown.system.to_string()],
        vec!["version".to_owned(), shown.version.to_owned()],
        vec!["address".to_owned(), shown.address],
        vec!["data".to_owned(), shown.places.data.display().to_string()],
        vec!["log".to_owned(), place(&shown.places.log)],
        vec!["temporary".to_owned(), place(&shown.places.temp)],
        vec!["undo".to_owned(), place(&shown.places.undo)],
        vec!["buffer".to_owned(), shown.settings.buffer.to_string()],
    ];
    rows.extend(shown.notes.into_iter().map(|note| vec!["note".to_owned(), note]));
    output::print(&output::table(&rows))
}
