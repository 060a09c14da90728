//! What is learned from measurements: profiles fitted to a probe, predictions from a capture.

use std::path::PathBuf;

use ::fit::FitOptions;
use ::fit::measurement::Measurements;
use ::predict::{Goal, Question};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use study::host_stack::Devices;
use study::predictions::ask;
use study::profiles::read_device;
use study::run_dir::read_json;

use crate::failure::{raise, warn};
use crate::profiles::Profile;
use crate::values::to_python;
use crate::work::without_lock;

/// A profile that was fitted, with what led to it.
#[pyclass(frozen, module = "wearmark")]
pub struct Fit {
    inner: ::fit::Fit,
}

#[pymethods]
impl Fit {
    /// The profile.
    #[getter]
    fn profile(&self) -> Profile {
        Profile { inner: self.inner.profile.clone() }
    }

    /// The fitted lines, with their points and errors.
    #[getter]
    fn lines(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_python(py, &self.inner.lines)
    }

    /// Every closed cell, measured and simulated on the profile.
    #[getter]
    fn checks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_python(py, &self.inner.checks)
    }

    fn __repr__(&self) -> String {
        format!("Fit({}, {} lines)", self.inner.profile.name(), self.inner.lines.len())
    }
}

/// Compares two results of one kind, as `wearmark compare OLD NEW --json` does: files that commands
/// kept, run directories, directories of several.
#[pyfunction]
#[pyo3(signature = (old, new, *, bound=0.05))]
pub fn compare(py: Python<'_>, old: PathBuf, new: PathBuf, bound: f64) -> PyResult<Py<PyAny>> {
    let figures = without_lock(py, |_| {
        let (old, new) =
            study::checks::read(&old, &new, formats::Stop::default()).map_err(raise)?;
        Ok(study::verdict::compare(&old, &new, bound))
    })?;
    let found = PyDict::new(py);
    found.set_item("verdict", to_python(py, &study::verdict::whole(&figures))?)?;
    found.set_item("bound", bound)?;
    found.set_item("figures", to_python(py, &figures)?)?;
    Ok(found.into_any().unbind())
}

/// Fits a profile to what a probe measured: a measurements.json, or a run directory with one.
#[pyfunction]
#[pyo3(signature = (measurements, *, name="fitted", seed=1))]
pub fn fit(py: Python<'_>, measurements: PathBuf, name: &str, seed: u64) -> PyResult<Fit> {
    let path = if measurements.is_dir() {
        measurements.join(study::artifacts::MEASUREMENTS.name)
    } else {
        measurements
    };
    let options = FitOptions { seed, name: name.to_owned() };
    let inner = without_lock(py, |_| {
        let measured: Measurements = read_json(&path).map_err(raise)?;
        let context = |error| anyhow::Error::new(error).context(path.display().to_string());
        ::fit::fit(&measured, &options).map_err(|error| raise(context(error)))
    })?;
    warn(py, &inner.warnings)?;
    Ok(Fit { inner })
}

/// Predicts a captured run on other devices, as `wearmark predict PREFIX --on ... --json` does.
#[pyfunction]
#[pyo3(signature = (prefix, on, *, users=None, rate_per_s=None, find_rate=None,
                    buffer_bytes=None, processors=None, speed=None,
                    other_load=0.0, request_load_ns=0, request_late_ns=0, sync_less_ns=0,
                    commit_waits=true, cold=false, log_on=None, seed=1))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn predict(
    py: Python<'_>,
    prefix: PathBuf,
    on: Vec<Bound<'_, PyAny>>,
    users: Option<u32>,
    rate_per_s: Option<f64>,
    find_rate: Option<&str>,
    buffer_bytes: Option<u64>,
    processors: Option<u32>,
    speed: Option<f64>,
    other_load: f64,
    request_load_ns: u64,
    request_late_ns: u32,
    sync_less_ns: u64,
    commit_waits: bool,
    cold: bool,
    log_on: Option<Bound<'_, PyAny>>,
    seed: u64,
) -> PyResult<Py<PyAny>> {
    let device = |given: &Bound<'_, PyAny>| -> PyResult<Devices> {
        Ok(Devices::alone(match given.cast::<Profile>() {
            Ok(profile) => profile.get().inner.clone(),
            Err(_) => read_device(&given.extract::<String>()?).map_err(raise)?,
        }))
    };
    let targets: PyResult<Vec<Devices>> = on.iter().map(device).collect();
    let (targets, log) = (targets?, log_on.as_ref().map(device).transpose()?);
    let goal = find_rate.map(str::parse::<Goal>).transpose().map_err(PyValueError::new_err)?;
    let question = Question {
        terminals: users,
        rate: rate_per_s,
        goal,
        buffer_bytes,
        processors,
        speed,
        other_load,
        request_load_ns,
        request_late_ns,
        sync_less_ns,
        no_commit_wait: !commit_waits,
        log_apart: log.is_some(),
        from_start: cold,
        seed,
        ..Question::default()
    };
    let (all, _) = without_lock(py, |sink| {
        ask(&prefix, &question, &targets, log.as_ref(), sink).map_err(raise)
    })?;
    to_python(py, &all)
}
