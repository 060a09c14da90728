//! A device model written in Python, in the place of one of ours.

use std::sync::{Arc, Mutex};

use model::Device;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use trace::Request;
use units::{Bytes, Nanos};

/// A model of a device in Python: `make(seed)` gives an object with `submit(now_ns, op,
/// offset_bytes, len_bytes, stream) -> completion_ns`. Slow (a call of Python for each request);
/// for trying an idea beside the models that are there.
#[pyclass(frozen, module = "wearmark", name = "PythonDevice")]
pub struct PythonDevice {
    make: Py<PyAny>,
    name: String,
    capacity_bytes: Option<u64>,
}

#[pymethods]
impl PythonDevice {
    #[new]
    #[pyo3(signature = (make, *, name, capacity_bytes=None))]
    fn new(make: Py<PyAny>, name: String, capacity_bytes: Option<u64>) -> Self {
        Self { make, name, capacity_bytes }
    }

    /// What it is called in tables.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Bytes that it offers; None where it takes any address.
    #[getter]
    fn capacity_bytes(&self) -> Option<u64> {
        self.capacity_bytes
    }

    /// A model in its first state.
    fn make(&self, py: Python<'_>, seed: u64) -> PyResult<Py<PyAny>> {
        self.make.call1(py, (seed,))
    }

    fn __repr__(&self) -> String {
        format!("PythonDevice('{}')", self.name)
    }
}

impl PythonDevice {
    /// The same for the simulator.
    pub fn device(&self, py: Python<'_>, seed: u64) -> PyResult<Adapter> {
        Ok(Adapter {
            submit: self.make.call1(py, (seed,))?.getattr(py, "submit")?,
            name: self.name.clone(),
            capacity: self.capacity_bytes.map(Bytes),
            raised: Arc::default(),
        })
    }
}

/// An exception that a model raised, for whoever started the simulation.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// The model behind our trait. After an exception it answers every request at once, so that the
/// simulation comes to its end; what it gives is then thrown away.
pub struct Adapter {
    submit: Py<PyAny>,
    name: String,
    capacity: Option<Bytes>,
    raised: Raised,
}

impl Adapter {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its first exception is kept.
    pub fn raised(&self) -> Raised {
        Arc::clone(&self.raised)
    }

    fn ask(&self, now: Nanos, request: &Request) -> PyResult<u64> {
        Python::attach(|py| {
            let given = (now.0, request.op.name(), request.offset.0, request.len, request.stream);
            let answer = self.submit.call1(py, given)?;
            let completion: u64 = answer.extract(py).map_err(|_| {
                PyValueError::new_err(format!(
                    "{}: submit() must give the completion as whole ns, not {}",
                    self.name,
                    answer.bind(py).repr().map_or_else(|_| String::new(), |text| text.to_string())
                ))
            })?;
            if completion < now.0 {
                return Err(PyRuntimeError::new_err(format!(
                    "{}: submitted at {} ns, completed at {completion} ns, before it was submitted",
                    self.name, now.0
                )));
            }
            Ok(completion)
        })
    }
}

impl Device for Adapter {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        let has_raised = || self.raised.lock().expect("no panic while holding the lock").is_some();
        if has_raised() {
            return now;
        }
        match self.ask(now, request) {
            Ok(completion) => Nanos(completion),
            Err(raised) => {
                *self.raised.lock().expect("no panic while holding the lock") = Some(raised);
                now
            }
        }
    }

    fn capacity(&self) -> Option<Bytes> {
        self.capacity
    }
}
