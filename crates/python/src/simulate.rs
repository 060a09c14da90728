//! Simulation of traces on devices: profiles, or models written in Python.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::PathBuf;

use events::Sink;
use host::Spec;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use sim::Watched;
use stats::Histogram;
use study::compare::{Comparison, Simulated, compare, text};
use study::host_stack::{Devices, read_spec};
use study::profiles::read_device;
use trace::Op;

use crate::column::Column;
use crate::devices::{Adapter, PythonDevice};
use crate::failure::{raise, with_hint};
use crate::profiles::Profile;
use crate::table::Table;
use crate::traces::Trace;
use crate::values::to_python;
use crate::work::{Collect, without_lock};

/// What the simulation of a trace on a device gave.
#[pyclass(frozen, module = "wearmark")]
pub struct Outcome {
    inner: Simulated,
}

impl Outcome {
    fn response(&self, op: Option<&str>, stream: Option<&str>) -> PyResult<Histogram> {
        let mut all = Histogram::new();
        let mut found = false;
        for class in self.inner.classes() {
            let is_asked = op.is_none_or(|op| class.op.name() == op)
                && stream.is_none_or(|stream| class.stream == stream);
            if is_asked {
                found = true;
                all.merge(&class.response);
            }
        }
        if let Some(op) = op
            && !Op::ALL.iter().any(|own| own.name() == op)
        {
            return Err(PyValueError::new_err(format!("op: '{op}' is no operation")));
        }
        if found {
            return Ok(all);
        }
        let which = [op, stream].into_iter().flatten().collect::<Vec<_>>().join(" ");
        Err(PyKeyError::new_err(format!("the trace has no requests of {which}")))
    }
}

#[pymethods]
impl Outcome {
    /// The profile's name.
    #[getter]
    fn profile(&self) -> &str {
        &self.inner.profile
    }

    /// Requests that completed.
    #[getter]
    fn requests(&self) -> u64 {
        self.inner.classes().iter().map(|class| class.response.count()).sum()
    }

    /// From the first due time to the last completion, ns.
    #[getter]
    fn span_ns(&self) -> u64 {
        let open = self.inner.open_loop.as_ref().map(|outcome| outcome.span_ns);
        open.or(self.inner.closed_loop.as_ref().map(|outcome| outcome.span_ns)).unwrap_or(0)
    }

    /// Whether the device fell behind the arrivals, so that response times tell its queue's length.
    #[getter]
    fn is_overloaded(&self) -> bool {
        self.inner.open_loop.as_ref().is_some_and(sim::Outcome::is_overloaded)
    }

    /// Mean response time, ns; of one operation or stream where named.
    #[pyo3(signature = (*, op=None, stream=None))]
    fn mean_ns(&self, op: Option<&str>, stream: Option<&str>) -> PyResult<f64> {
        Ok(self.response(op, stream)?.mean())
    }

    /// A quantile of the response time, ns, within 2^-8; of one operation or stream where named.
    #[pyo3(signature = (q, *, op=None, stream=None))]
    fn quantile_ns(&self, q: f64, op: Option<&str>, stream: Option<&str>) -> PyResult<u64> {
        if !(0.0..=1.0).contains(&q) {
            return Err(PyValueError::new_err("q: must be from 0 to 1"));
        }
        Ok(self.response(op, stream)?.quantile(q))
    }

    /// The distribution of response times: (middle of a bucket in ns, requests in it).
    #[pyo3(signature = (*, op=None, stream=None))]
    fn histogram(&self, op: Option<&str>, stream: Option<&str>) -> PyResult<Vec<(u64, u64)>> {
        Ok(self.response(op, stream)?.buckets())
    }

    /// What happened inside of the device, by name with its unit.
    #[getter]
    fn counters(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match (&self.inner.open_loop, &self.inner.closed_loop) {
            (Some(outcome), _) => to_python(py, &outcome.counters),
            (None, Some(outcome)) => to_python(py, &outcome.counters),
            (None, None) => unreachable!("a simulation is of one of the two kinds"),
        }
    }

    /// Everything, as `wearmark sim --json` prints it for a device.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_python(py, &self.inner)
    }

    fn __repr__(&self) -> String {
        format!("Outcome({}, {} requests)", self.inner.profile, self.requests())
    }

    fn __str__(&self) -> String {
        self.__repr__()
    }

    fn _repr_html_(&self) -> String {
        Table::new(text(std::slice::from_ref(&self.inner))).html()
    }
}

/// Outcomes side by side, as `wearmark sim` prints them.
#[pyfunction]
pub fn table(outcomes: Vec<PyRef<'_, Outcome>>) -> Table {
    let all: Vec<Simulated> = outcomes.iter().map(|outcome| outcome.inner.clone()).collect();
    Table::new(text(&all))
}

/// One device that is asked.
enum Target {
    Profile(Box<Devices>),
    Python(Adapter),
}

/// A profile, a profile's name, or a model of Python.
fn target(given: &Bound<'_, PyAny>, host: Option<&Spec>, seed: u64) -> PyResult<Target> {
    if let Ok(device) = given.cast::<PythonDevice>() {
        if host.is_some() {
            return Err(PyTypeError::new_err(
                "a host stack works with profiles, not with Python devices",
            ));
        }
        return Ok(Target::Python(device.get().device(given.py(), seed)?));
    }
    let profile = match given.cast::<Profile>() {
        Ok(profile) => profile.get().inner.clone(),
        Err(_) => read_device(&given.extract::<String>().map_err(|_| {
            PyTypeError::new_err("devices: must be profiles, names of profiles or wearmark.device")
        })?)
        .map_err(raise)?,
    };
    Ok(Target::Profile(Box::new(Devices::new(profile, host).map_err(raise)?)))
}

/// What is asked, by the order in which it was given.
fn targets(
    devices: &Bound<'_, PyAny>,
    host: Option<&Spec>,
    seed: u64,
) -> PyResult<(Vec<Target>, bool)> {
    if devices.is_instance_of::<PyList>() || devices.is_instance_of::<PyTuple>() {
        let given: Vec<Bound<'_, PyAny>> = devices.extract()?;
        let all: PyResult<Vec<Target>> =
            given.iter().map(|device| target(device, host, seed)).collect();
        return Ok((all?, true));
    }
    Ok((vec![target(devices, host, seed)?], false))
}

/// Simulates a trace on one device, or on several at a time. Open loop: requests at their due
/// times; closed: each actor of a captured trace waits for the device.
#[pyfunction]
#[pyo3(signature = (trace, devices, *, closed=false, warm_up_ns=0, seed=1, threads=None,
                    host=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn simulate(
    py: Python<'_>,
    trace: &Trace,
    devices: &Bound<'_, PyAny>,
    closed: bool,
    warm_up_ns: u64,
    seed: u64,
    threads: Option<usize>,
    host: Option<PathBuf>,
) -> PyResult<Py<PyAny>> {
    let host = host.map(|path| read_spec(&path)).transpose().map_err(raise)?;
    if host.as_ref().is_some_and(|spec| spec.file_layer.is_some()) {
        let cause = "the host has a [file_system]: a trace of requests has passed one".to_owned();
        return Err(with_hint(cause, "'wearmark trace host' turns calls into requests"));
    }
    let (targets, several) = targets(devices, host.as_ref(), seed)?;
    let trace = &*trace.inner;
    let asked = Asked { trace, closed, warm_up_ns, seed, threads };
    let found = without_lock(py, |sink| asked.all(targets, sink))?;
    let mut outcomes = Vec::new();
    for inner in found {
        outcomes.push(Py::new(py, Outcome { inner })?);
    }
    match outcomes.pop() {
        Some(only) if !several => Ok(only.into_any()),
        last => {
            outcomes.extend(last);
            Ok(PyList::new(py, outcomes)?.into_any().unbind())
        }
    }
}

/// A simulation that is asked for.
struct Asked<'a> {
    trace: &'a trace::Trace,
    closed: bool,
    warm_up_ns: u64,
    seed: u64,
    threads: Option<usize>,
}

impl Asked<'_> {
    /// All devices: profiles side by side, then models of Python one after the other.
    fn all(&self, targets: Vec<Target>, sink: &Collect) -> PyResult<Vec<Simulated>> {
        let (mut profiles, mut python, mut order) = (Vec::new(), Vec::new(), Vec::new());
        for target in targets {
            order.push(matches!(target, Target::Profile(_)));
            match target {
                Target::Profile(devices) => profiles.push(*devices),
                Target::Python(adapter) => python.push(adapter),
            }
        }
        let all = || std::thread::available_parallelism().map_or(1, NonZero::get);
        let comparison = Comparison {
            trace: self.trace,
            targets: &profiles,
            seed: self.seed,
            closed: self.closed,
            warm_up_ns: self.warm_up_ns,
            threads: self.threads.unwrap_or_else(all).max(1),
            timeline: None,
        };
        // Checks the trace too, where there is no profile.
        let mut ours = compare(&comparison, sink).map_err(raise)?.devices.into_iter();
        let mut theirs = Vec::new();
        for adapter in python {
            theirs.push(self.of_python(adapter, sink)?);
        }
        let mut theirs = theirs.into_iter();
        // A stop leaves some out; then nobody sees what is left.
        Ok(order
            .into_iter()
            .filter_map(|profile| if profile { ours.next() } else { theirs.next() })
            .collect())
    }

    fn of_python(&self, mut device: Adapter, sink: &Collect) -> PyResult<Simulated> {
        sim::check(&device, self.trace).map_err(|error| raise(study::Error::from(error)))?;
        let raised = device.raised();
        let name = device.name().to_owned();
        let mut found = Simulated {
            profile: name,
            assumed_values: 0,
            values: 0,
            open_loop: None,
            life: None,
            closed_loop: None,
        };
        if self.closed {
            let outcome = sim::closed_loop(&mut device, self.trace);
            found.closed_loop = Some(outcome.map_err(|error| raise(study::Error::from(error)))?);
        } else {
            let has_raised = || raised.lock().expect("no panic while holding the lock").is_some();
            let mut progress = |_| {
                let stop = sink.cancelled() || has_raised();
                if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let watched = Watched {
                probe: None,
                breakdown: false,
                warm_up_ns: self.warm_up_ns,
                progress: Some(&mut progress),
            };
            found.open_loop = sim::replay_with(&mut device, self.trace, watched);
        }
        match raised.lock().expect("no panic while holding the lock").take() {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }
}

/// The response time of every request in an open loop, ns, in the order of the trace.
#[pyfunction]
#[pyo3(signature = (trace, device, *, seed=1))]
pub fn responses(
    py: Python<'_>,
    trace: &Trace,
    device: &Bound<'_, PyAny>,
    seed: u64,
) -> PyResult<Column> {
    let target = target(device, None, seed)?;
    let trace = &*trace.inner;
    let found = without_lock(py, |_| {
        let wrong = |error: sim::Error| raise(study::Error::from(error));
        trace.validate().map_err(sim::Error::Malformed).map_err(wrong)?;
        match target {
            Target::Profile(devices) => {
                sim::check_extent(devices.capacity(), 0, trace).map_err(wrong)?;
                Ok(sim::responses(devices.device(seed).as_mut(), trace))
            }
            Target::Python(mut adapter) => {
                sim::check(&adapter, trace).map_err(wrong)?;
                let found = sim::responses(&mut adapter, trace);
                let raised = adapter.raised();
                let raised = raised.lock().expect("no panic while holding the lock").take();
                raised.map_or(Ok(found), Err)
            }
        }
    })?;
    Ok(Column::new("response_ns", found))
}
