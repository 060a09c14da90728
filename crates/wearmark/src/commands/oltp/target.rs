//! From arguments to a database that a workload can run on: options, server, data.

use std::path::{Path, PathBuf};

use ::oltp::workload::bank::BankScale;
use ::oltp::workload::commit::CommitScale;
use ::oltp::workload::own::Choice;
use ::oltp::{
    Access, Database, Dataset, Load, LoadOptions, Mix, Options, Own, Scale, ServerSettings,
    SqliteSettings, Workload,
};
use capture::sqlite::IoMode;
use dbms::{Environment, Instance, Login, Places, Settings, Stop, System};
use events::Sink;
use study::runs::Target;

use crate::cli::{DatabaseSettings, DbmsName, OwnArguments, Place, ServerPlace, WorkloadArguments};
use crate::commands::{Context, Outcome};
use crate::failure::Advice;
use crate::view::CANCELLED;

/// A value of one of the crates' enums by the name that its files use.
pub fn named<T: serde::de::DeserializeOwned>(option: &str, text: &str) -> anyhow::Result<T> {
    let value = serde_json::Value::String(text.to_owned());
    serde_json::from_value(value).map_err(|error| {
        Advice::error(format!("--{option}: {error}"), "see 'wearmark help oltp run'")
    })
}

/// What the workload's arguments load.
pub fn dataset(arguments: &WorkloadArguments) -> anyhow::Result<Dataset> {
    let mix = (arguments.mix != USUAL_MIX).then_some(arguments.mix.as_str());
    Ok(dataset_of(
        workload(&arguments.workload, &arguments.own, mix)?,
        (arguments.warehouses, arguments.branches, arguments.rows),
    ))
}

/// The mix that needs no mention.
const USUAL_MIX: &str = "normal";

/// A workload and its size.
pub fn dataset_of(workload: Workload, (warehouses, branches, rows): (u32, u32, u32)) -> Dataset {
    match workload {
        Workload::OrderEntry => Dataset::OrderEntry(Scale::new(warehouses)),
        Workload::Bank => Dataset::Bank(BankScale::new(branches)),
        Workload::Commit => Dataset::Commit(CommitScale { rows }),
        Workload::Own(own) => Dataset::Own(own),
    }
}

/// A workload by its name or directory.
pub fn workload(
    name: &str,
    arguments: &OwnArguments,
    mix: Option<&str>,
) -> anyhow::Result<Workload> {
    if let Some(built_in) = Workload::ALL.into_iter().find(|known| known.name() == name) {
        let given = !arguments.size.is_empty() || !arguments.script.is_empty();
        if !given {
            return Ok(built_in);
        }
        // A script alone runs on pgbench's own tables.
        if arguments.script.is_empty() || built_in != Workload::default() {
            let hint = "they are for workloads of workload.toml and for pgbench";
            return Err(Advice::error(format!("--size and --script do not go with {name}"), hint));
        }
        return workload("pgbench", arguments, mix);
    }
    let choice = Choice {
        mix: mix.map(str::to_owned),
        sizes: arguments.size.iter().map(|text| size(text)).collect::<anyhow::Result<_>>()?,
        scripts: arguments.script.iter().map(|text| script(text)).collect::<anyhow::Result<_>>()?,
    };
    match Own::open(name, &choice)? {
        Some(own) => Ok(Workload::Own(own)),
        None => Ok(name.parse()?),
    }
}

fn size(text: &str) -> anyhow::Result<(String, i64)> {
    let parsed = text.split_once('=').and_then(|(name, value)| {
        Some((name.trim().to_owned(), value.trim().replace('_', "").parse().ok()?))
    });
    parsed.ok_or_else(|| Advice::error(format!("--size {text}"), "write --size records=1000"))
}

fn script(text: &str) -> anyhow::Result<(PathBuf, f64)> {
    let (file, weight) = match text.rsplit_once('@') {
        Some((file, weight)) => (file, weight.parse::<f64>().ok()),
        None => (text, Some(1.0)),
    };
    let bad = |why: &str| Advice::error(format!("--script {text}: {why}"), "write FILE or FILE@9");
    let weight = weight.ok_or_else(|| bad("the weight is no number"))?;
    let path = std::path::absolute(file).map_err(|error| bad(&error.to_string()))?;
    Ok((path, weight))
}

/// A database that is up, with the server that wearmark runs for it, if any.
pub struct Opened {
    /// How the workload reaches it.
    pub database: Database,
    io: IoMode,
    instance: Option<Instance>,
    /// Its directory; none for a server that was there.
    pub directory: Option<PathBuf>,
}

impl Opened {
    /// Opens what the arguments name: starts the private server, creating it where there is none.
    pub fn open(
        place: &Place,
        settings: &DatabaseSettings,
        workload: &WorkloadArguments,
        captured: bool,
        context: &Context,
    ) -> anyhow::Result<Self> {
        let io = named("io", &settings.io)?;
        if let Some((system, login)) = login(&place.server)? {
            let database = reached(system, &login, workload)?;
            return Ok(Self { database, io, instance: None, directory: None });
        }
        let directory = place.data().cloned().unwrap_or_default();
        let system = match place.dbms {
            DbmsName::Sqlite => {
                std::fs::create_dir_all(&directory)
                    .map_err(study::Error::io(&directory, "create"))?;
                let database = Database::Sqlite(sqlite(&directory, settings)?);
                let directory = Some(directory);
                return Ok(Self { database, io, instance: None, directory });
            }
            DbmsName::Postgresql => System::Postgresql,
            DbmsName::Mariadb => System::Mariadb,
        };
        let mut wanted = server_settings(settings, workload.connections)?;
        let native = ("innodb_use_native_aio".to_owned(), "OFF".to_owned());
        if captured && system == System::Mariadb && !wanted.extra.iter().any(|s| s.0 == native.0) {
            // Asynchronous I/O shows no addresses; threads do the same I/O in plain sight.
            wanted.extra.push(native);
        }
        let instance = start(system, place, &wanted, context)?;
        let login = instance.login();
        let mut database = reached(system, &login, workload)?;
        // A private server keeps each workload in a database of its own.
        if let Database::Postgresql(server) | Database::Mariadb(server) = &mut database {
            server.database = None;
        }
        Ok(Self { database, io, instance: Some(instance), directory: Some(directory) })
    }

    /// What a run is made on.
    pub fn target(&self) -> Target<'_> {
        match (&self.instance, &self.database) {
            (Some(instance), _) => Target::Private(instance),
            (None, Database::Sqlite(_)) => Target::Embedded(self.io),
            (None, _) => Target::Foreign,
        }
    }

    /// Loads the dataset where nothing is loaded; the outcome where the user stopped that.
    pub fn load(
        &self,
        dataset: Dataset,
        seed: u64,
        context: &Context,
    ) -> anyhow::Result<Option<Outcome>> {
        let dbms = self.database.dbms(dataset.workload())?;
        match dbms.meta() {
            Ok(_) => return Ok(None),
            Err(::oltp::Error::NoDatabase { .. } | ::oltp::Error::NotLoaded { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let load = LoadOptions { database: self.database.clone(), dataset, seed };
        match ::oltp::load(&load, &context.view) {
            Err(_) if context.view.cancelled() => Ok(Some(Outcome::Interrupted)),
            loaded => {
                loaded?;
                Ok(None)
            }
        }
    }

    /// Stops the server; with `remove` takes it and its data away.
    pub fn close(self, workload: Workload, remove: bool) -> anyhow::Result<()> {
        if let Some(mut instance) = self.instance {
            if remove {
                instance.remove().map_err(study::Error::from)?;
            } else {
                instance.stop().map_err(study::Error::from)?;
            }
        } else if let (Database::Sqlite(settings), true) = (&self.database, remove) {
            for suffix in ["", "-wal", "-shm", "-journal"] {
                let mut file = settings.database_of(workload).into_os_string();
                file.push(suffix);
                let _ = std::fs::remove_file(file);
            }
        }
        Ok(())
    }
}

fn sqlite(directory: &Path, settings: &DatabaseSettings) -> anyhow::Result<SqliteSettings> {
    let defaults = SqliteSettings::default();
    Ok(SqliteSettings {
        directory: directory.to_owned(),
        journal_mode: named("journal", &settings.journal)?,
        synchronous: named("synchronous", &settings.synchronous)?,
        page_size: settings.page.unwrap_or(defaults.page_size),
        buffer: settings.buffer.unwrap_or(defaults.buffer),
        ..defaults
    })
}

/// The login of a server that runs already, where the arguments name one. What they leave open
/// comes from the environment and the user's own files; a password can be asked for.
pub fn login(place: &ServerPlace) -> anyhow::Result<Option<(System, Login)>> {
    let Some(url) = &place.url else { return Ok(None) };
    let from = Environment { variable: &|name| std::env::var_os(name) };
    let (system, mut login) = Login::parse_with(url, &from).map_err(study::Error::from)?;
    if place.ask_password {
        let prompt = format!("Password of {} at {}: ", login.user, login.address);
        let password = rpassword::prompt_password(prompt).map_err(|error| {
            Advice::error(
                format!("no terminal to ask for the password: {error}"),
                "set PGPASSWORD or MYSQL_PWD, or keep it in ~/.pgpass or ~/.my.cnf",
            )
        })?;
        login.password = Some(password);
    }
    login.add_password(system, &from).map_err(study::Error::from)?;
    if let Some(mode) = &place.sslmode {
        login.tls.mode = mode.parse().map_err(|()| {
            Advice::error(
                format!("--sslmode {mode}"),
                "it is disable, prefer, require, verify-ca or verify-full",
            )
        })?;
    }
    if let Some(root) = &place.sslrootcert {
        login.tls.root_certificates = Some(root.clone());
    }
    login.limits.stop = Stop::by(&CANCELLED);
    Ok(Some((system, login)))
}

fn reached(
    system: System,
    login: &Login,
    workload: &WorkloadArguments,
) -> anyhow::Result<Database> {
    let access: Access = named("access", &workload.access)?;
    let mut server =
        ServerSettings { access, connections: workload.connections, ..ServerSettings::of(login) };
    server.limits.stop = Stop::by(&CANCELLED);
    Ok(match system {
        System::Postgresql => Database::Postgresql(server),
        System::Mariadb => Database::Mariadb(server),
    })
}

/// The settings of a private server.
pub fn server_settings(settings: &DatabaseSettings, connections: u32) -> anyhow::Result<Settings> {
    let defaults = Settings::default();
    let extra = settings.set.iter().map(|text| {
        let pair = text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        pair.ok_or_else(|| {
            Advice::error(format!("--set {text}"), "write NAME=VALUE, such as --set jit=off")
        })
    });
    Ok(Settings {
        buffer: settings.buffer.unwrap_or(defaults.buffer),
        page: settings.page,
        log_size: settings.log_size,
        checkpoint: settings.checkpoint,
        durability: named("durability", &settings.durability)?,
        connections: connections.max(defaults.connections),
        extra: extra.collect::<anyhow::Result<_>>()?,
        ..defaults
    })
}

/// Starts the private server of a place, which is created where there is none.
pub fn start(
    system: System,
    place: &Place,
    settings: &Settings,
    context: &Context,
) -> anyhow::Result<Instance> {
    let places = Places {
        data: place.data().cloned().unwrap_or_default(),
        log: place.log_dir.clone(),
        temp: place.temp_dir.clone(),
        undo: place.undo_dir.clone(),
    };
    let empty = std::fs::read_dir(&places.data).map_or(true, |mut files| files.next().is_none());
    let mut instance = if empty {
        Instance::create(system, &places, settings, &context.view).map_err(study::Error::from)?
    } else {
        let mut instance = Instance::open(&places.data).map_err(study::Error::from)?;
        if instance.system() != system {
            return Err(Advice::error(
                format!("'{}' holds {}", places.data.display(), instance.system()),
                format!("say --dbms {}", instance.system().name().to_lowercase()),
            ));
        }
        instance.set(settings).map_err(study::Error::from)?;
        instance
    };
    instance.start(&context.view).map_err(study::Error::from)?;
    Ok(instance)
}

/// The seed of the data.
pub fn data_seed(arguments: &WorkloadArguments) -> u64 {
    arguments.seed.unwrap_or(1)
}

/// The seed of a run's inputs. Runs made one after the other must not ask for the same rows in the
/// same order: caches would be warm for exactly these, and an interval over the runs would hold no
/// variance of the inputs.
pub fn run_seed(
    arguments: &WorkloadArguments,
    database: &Database,
    repetition: u32,
) -> anyhow::Result<u64> {
    if let Some(seed) = arguments.seed {
        return Ok(seed.wrapping_add(u64::from(repetition)));
    }
    let workload = dataset(arguments)?.workload();
    Ok(1 + database.dbms(workload)?.meta()?.runs)
}

/// The mix of order entry; an own workload has chosen among its own.
fn mix(arguments: &WorkloadArguments, dataset: &Dataset) -> anyhow::Result<Mix> {
    if !matches!(dataset, Dataset::Own(_)) {
        return Ok(arguments.mix.parse()?);
    }
    if named::<Access>("access", &arguments.access)? == Access::Procedure {
        return Err(Advice::error(
            "--access procedure needs procedures that wearmark knows",
            "call your own in the SQL of a kind; say --access statement or pipelined",
        ));
    }
    Ok(Mix::default())
}

/// The options of a run.
pub fn options(
    arguments: &WorkloadArguments,
    dataset: Dataset,
    database: Database,
) -> anyhow::Result<Options> {
    let load = match arguments.rate {
        Some(rate) => Load::Open { rate },
        None => Load::Closed { think: arguments.think_scale },
    };
    let options = Options {
        database,
        workload: dataset.workload(),
        dataset: Some(dataset),
        users: arguments.users,
        load,
        mix: mix(arguments, &dataset)?,
        warmup: arguments.warmup,
        measure: arguments.duration,
        seed: data_seed(arguments),
        delivery_log: None,
    };
    options.validate()?;
    dataset.validate()?;
    Ok(options)
}
