//! `wearmark temp`

use std::path::Path;

use spill::{Keys, Rows};
use study::host_stack::Devices;
use study::profiles::read_device;
use study::temp::{Measured, Place, Sweep, Task, page, sweep, text};

use super::{Context, Outcome, output};
use crate::cli::{Temp, TempSweep};

/// Runs the command.
pub fn run(command: Temp, context: &Context) -> anyhow::Result<Outcome> {
    let (task, arguments) = match command {
        Temp::Sort(sort) => (Task::Sort(rows(&sort.sweep, sort.keys)), sort.sweep),
        Temp::Join(join) => {
            let build = rows(&join.sweep, join.build_keys);
            let keys = join.probe_keys.unwrap_or(Keys::Uniform(build.count.max(1)));
            let count = join.probe_rows.unwrap_or(build.count);
            let probe = Rows { count, keys, seed: build.seed ^ 1, ..build };
            (Task::Join(build, probe), join.sweep)
        }
    };
    let plan = planned(task, &arguments)?;
    let (all, stopped) = sweep(&plan, &context.view)?;
    if let Some(prefix) = &arguments.trace {
        write_traces(prefix, &all, plan.places.len() > 1)?;
    }
    if let Some(path) = &arguments.html {
        let html = report::html(&page(&plan, &all));
        study::run_dir::write_atomically(path, html.as_bytes())?;
    }
    if context.json {
        output::json(&all)?;
    } else if !all.is_empty() {
        output::print(&output::table(&text(&all)))?;
    }
    Ok(if stopped { Outcome::Interrupted } else { Outcome::Fine })
}

fn rows(arguments: &TempSweep, keys: Keys) -> Rows {
    let TempSweep { rows, width, seed, .. } = *arguments;
    Rows { count: rows, width_bytes: width, keys, seed }
}

fn planned(task: Task, arguments: &TempSweep) -> anyhow::Result<Sweep> {
    let mut places = Vec::new();
    let directory =
        |path: &Path| Place::Directory { path: path.to_owned(), buffered: arguments.buffered };
    places.extend(arguments.directory.iter().map(|path| directory(path)));
    let direct = "temporary files are read and written past the page cache";
    let host = super::devices_of(arguments.host.as_deref(), direct)?;
    for name in &arguments.profile {
        places.push(Place::Model(Box::new(Devices::new(read_device(name)?, host.as_ref())?)));
    }
    if places.is_empty() {
        places.push(directory(Path::new(".")));
    }
    Ok(Sweep {
        task,
        memory: arguments.memory,
        clusters: arguments.cluster.clone(),
        depth: arguments.depth,
        places,
        cpu_ns_per_row: arguments.cpu_per_row.0,
        seed: arguments.seed,
        record: arguments.trace.is_some(),
    })
}

/// `PREFIX-8KiB.parquet`; with several places `PREFIX-NAME-8KiB.parquet`.
fn write_traces(prefix: &Path, all: &[Measured], several: bool) -> anyhow::Result<()> {
    for measured in all {
        let Some(trace) = measured.trace() else { continue };
        let place = measured.place.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
        let place = if several { format!("-{place}") } else { String::new() };
        let mut path = prefix.as_os_str().to_owned();
        path.push(format!("{place}-{}.parquet", measured.resources().cluster));
        formats::own::write(trace, Path::new(&path))?;
    }
    Ok(())
}
