//! Errors and warnings of the crates as those of Python.

use std::ffi::CString;

use events::Warning;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyUserWarning};
use pyo3::prelude::*;
use wearmark::failure::{is_interruption, line, next_step};

create_exception!(wearmark, WearmarkError, PyException, "Place and cause; `hint` is what to do.");
create_exception!(wearmark, SuspectResult, PyUserWarning, "A result that may mislead.");

/// The exception for an error of a crate: place and cause as its text, the hint as attribute and
/// note.
pub fn raise(error: impl Into<anyhow::Error>) -> PyErr {
    let error = error.into();
    if is_interruption(&error) {
        return PyKeyboardInterrupt::new_err(line(&error));
    }
    with_hint(line(&error), &next_step(&error))
}

/// An exception of this package.
pub fn with_hint(cause: String, hint: &str) -> PyErr {
    Python::attach(|py| {
        let error = WearmarkError::new_err(cause);
        let value = error.value(py);
        // An exception takes any attribute; without them it would still tell the cause.
        _ = value.setattr("hint", hint);
        _ = value.call_method1("add_note", (format!("hint: {hint}"),));
        error
    })
}

/// Passes warnings on to Python's `warnings`, whose filters decide what becomes of them.
pub fn warn(py: Python<'_>, warnings: &[Warning]) -> PyResult<()> {
    let category = py.get_type::<SuspectResult>();
    for warning in warnings {
        let hint =
            if warning.hint.is_empty() { String::new() } else { format!(" ({})", warning.hint) };
        let text = format!("{}: {}{hint}", warning.code, warning.message);
        let text = CString::new(text.replace('\0', " ")).expect("no zero is left");
        PyErr::warn(py, &category, &text, 2)?;
    }
    Ok(())
}
