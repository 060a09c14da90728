//! `wearmark prove`: a study from arguments, whose load really runs on every device.

use std::path::Path;

use ::study::cost::Asked;
use ::study::file::{Header, How, Oltp, Probe, Scenario, StudyFile, System, Validate};
use ::study::pipeline::Options;

use super::{Context, Outcome, study};
use crate::cli::{DbmsName, Prove};
use crate::failure::Advice;

/// Runs the load here and on every device, and compares.
pub fn run(arguments: &Prove, context: &Context) -> anyhow::Result<Outcome> {
    let text = planned(arguments)?.to_toml();
    let study = StudyFile::parse(&text, Path::new("wearmark prove"))?;
    study::start(&study, &Options { runs: arguments.runs.clone() }, context)
}

/// The study that the arguments name.
fn planned(arguments: &Prove) -> anyhow::Result<StudyFile> {
    let workload = &arguments.workload;
    if workload.rate.is_some() {
        let hint = "leave out --rate: terminals that wait for their answers are compared";
        return Err(Advice::error("a proof has no open loop".to_owned(), hint));
    }
    let dbms = match arguments.dbms {
        DbmsName::Sqlite => System::Sqlite,
        DbmsName::Postgresql => System::Postgresql,
        DbmsName::Mariadb => System::Mariadb,
    };
    let setting = |text: &String| match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(Advice::error(format!("--set {text}: is no NAME=VALUE"), "put '=' between")),
    };
    let scenario = |profile: &String| Scenario {
        profile: profile.clone(),
        log: arguments.log_on.clone(),
        run: Some(How::Emulated),
        ..Scenario::default()
    };
    let is_server = dbms.is_server();
    Ok(StudyFile {
        study: Header {
            name: "prove".to_owned(),
            title: "The same load, measured and predicted".to_owned(),
            seed: workload.seed.unwrap_or(1),
        },
        probe: Probe::default(),
        oltp: Oltp {
            dbms,
            workload: workload.workload.clone(),
            mix: workload.mix.clone(),
            warehouses: workload.warehouses,
            branches: workload.branches,
            rows: workload.rows,
            users: workload.users,
            think_scale: workload.think_scale,
            buffer: arguments.buffer,
            access: is_server.then(|| workload.access.clone()),
            connections: is_server.then_some(workload.connections),
            warmup: workload.warmup,
            duration: workload.duration,
            rounds: arguments.rounds,
            set: arguments.set.iter().map(setting).collect::<Result<_, _>>()?,
            ..Oltp::default()
        },
        validate: Validate::default(),
        cost: Asked::default(),
        scenario: arguments.on.iter().map(scenario).collect(),
    })
}
