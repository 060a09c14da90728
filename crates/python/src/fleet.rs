//! Jobs of a fleet, for executors that are written in Python.

use std::path::PathBuf;

use formats::Stop;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use study::fleet::{Plan, missing, run};

use crate::failure::raise;
use crate::work::{READING, without_lock};

/// Does the jobs of a plan that have no result yet, or those of them that are named, as `wearmark
/// fleet run` does. Gives how many were done before and now, and the names of those that cannot be
/// done with their causes.
#[pyfunction]
#[pyo3(signature = (plan, results, *, jobs=Vec::new(), threads=1))]
pub fn fleet_run(
    py: Python<'_>,
    plan: PathBuf,
    results: PathBuf,
    jobs: Vec<String>,
    threads: usize,
) -> PyResult<Py<PyAny>> {
    let ran = without_lock(py, |sink| {
        let read = Plan::read(&plan).map_err(raise)?;
        let asked = missing(&read, &plan, &results, &jobs).map_err(raise)?;
        run(&read, &asked, &results, threads, Stop::on(&READING), sink).map_err(raise)
    })?;
    let told = PyDict::new(py);
    told.set_item("done_before", ran.before)?;
    told.set_item("done", ran.done)?;
    told.set_item("failed", ran.failed)?;
    Ok(told.into_any().unbind())
}
