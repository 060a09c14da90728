//! A private PostgreSQL server for these tests: one for all of them, gone at the end.

use std::sync::{Mutex, OnceLock};

use dbms::{Durability, Instance, Login, Places, Programs, Settings, System};
use oltp::postgresql::Postgresql;
use oltp::{Access, ServerSettings, Workload};
use tempfile::TempDir;
use units::Bytes;

/// The instance and the directory around it, as long as they are there.
type Server = Mutex<Option<(Instance, TempDir)>>;

static SERVER: OnceLock<Option<Server>> = OnceLock::new();

/// Statics are not dropped: the last act of the process is to take the server away.
extern "C" fn stop() {
    if let Some(Some(server)) = SERVER.get() {
        // The instance first: it is inside the directory.
        drop(server.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
    }
}

/// A login to the server, or nothing (said on the terminal) where PostgreSQL is not installed.
pub(crate) fn login() -> Option<Login> {
    let instance = SERVER.get_or_init(|| {
        if let Err(error) = Programs::find(System::Postgresql) {
            println!("skipped: {error}");
            return None;
        }
        let settings = Settings {
            buffer: Bytes(32 << 20),
            log_size: Bytes(256 << 20),
            durability: Durability::Off,
            connections: 60,
            ..Settings::default()
        };
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(0o755))
            .prefix("oltp-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        let data = Places::at(place.path().join("data"));
        let instance = Instance::create(System::Postgresql, &data, &settings, &events::Quiet);
        let mut instance = instance.unwrap().temporary();
        instance.start(&events::Quiet).unwrap();
        // SAFETY: a plain function of the C library with a function that lives for ever.
        unsafe { libc::atexit(stop) };
        Some(Mutex::new(Some((instance, place))))
    });
    let instance = instance.as_ref()?.lock().unwrap();
    Some(instance.as_ref()?.0.login())
}

/// Settings for a database of its own on the server.
pub(crate) fn settings(database: &str, access: Access) -> Option<ServerSettings> {
    let login = login()?;
    let mut settings = ServerSettings::new(login.address, login.user);
    settings.database = Some(database.to_owned());
    settings.access = access;
    settings.connections = 8;
    Some(settings)
}

/// That database.
pub(crate) fn postgresql(database: &str, workload: Workload, access: Access) -> Option<Postgresql> {
    settings(database, access).map(|settings| Postgresql::new(&settings, workload))
}

/// A connection to it, to look and to plant.
pub(crate) fn sql(database: &str) -> dbms::postgresql::Connection {
    let login = Login { database: database.to_owned(), ..login().unwrap() };
    dbms::postgresql::Connection::connect(&login).unwrap()
}
