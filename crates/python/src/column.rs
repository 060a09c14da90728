//! A column of whole numbers: results by request, handed on without a copy.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use pyo3::exceptions::{PyBufferError, PyIndexError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrow;

/// Whole numbers, one per request: `numpy.asarray(column)`, `pyarrow.array(column)` and
/// `memoryview(column)` share its memory.
#[pyclass(frozen, module = "wearmark")]
pub struct Column {
    name: &'static str,
    values: Arc<Vec<u64>>,
    /// For the buffer protocol, which wants pointers that live as long as the object.
    shape: [ffi::Py_ssize_t; 1],
}

impl Column {
    /// Of these values; `name` ends in the unit.
    pub fn new(name: &'static str, values: Vec<u64>) -> Self {
        let shape = [values.len() as ffi::Py_ssize_t];
        Self { name, values: Arc::new(values), shape }
    }
}

#[pymethods]
impl Column {
    /// Name, with the unit last.
    #[getter]
    fn name(&self) -> &'static str {
        self.name
    }

    /// As a list of numbers.
    fn to_list(&self) -> Vec<u64> {
        self.values.to_vec()
    }

    fn __len__(&self) -> usize {
        self.values.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<u64> {
        let count = self.values.len() as isize;
        let at = if index < 0 { index + count } else { index };
        let found = usize::try_from(at).ok().and_then(|at| self.values.get(at));
        found.copied().ok_or_else(|| PyIndexError::new_err("column index out of range"))
    }

    fn __repr__(&self) -> String {
        format!("Column({}, {} values)", self.name, self.values.len())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The protocol lets a producer give its own type whatever was requested.
        let _ = requested_schema;
        arrow::column(py, self.name, &self.values)
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("a column is read-only"));
        }
        let own = slf.get();
        let given = |flag: c_int| flags & flag == flag;
        // SAFETY: `view` is the caller's to fill; values, shape and item size live as long as the
        // object, which the view holds, and none of them ever changes.
        unsafe {
            (*view).buf = own.values.as_ptr().cast::<c_void>().cast_mut();
            (*view).len = size_of_val(own.values.as_slice()) as isize;
            (*view).readonly = 1;
            (*view).itemsize = size_of::<u64>() as isize;
            let format = if given(ffi::PyBUF_FORMAT) { c"Q".as_ptr() } else { std::ptr::null() };
            (*view).format = format.cast_mut();
            (*view).ndim = 1;
            let shape = if given(ffi::PyBUF_ND) { own.shape.as_ptr() } else { std::ptr::null() };
            (*view).shape = shape.cast_mut();
            let strides = if given(ffi::PyBUF_STRIDES) {
                &raw mut (*view).itemsize
            } else {
                std::ptr::null_mut()
            };
            (*view).strides = strides;
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = std::ptr::null_mut();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }
}
