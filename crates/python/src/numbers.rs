//! Sequences of numbers that Python gives: buffers (numpy, array, a column of a trace) or lists.

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Whole numbers from 0 on. Buffers of any width of integer are read without looking at Python
/// objects one by one.
pub fn whole(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<u64>> {
    if let Some(values) = buffer::<u64>(given)? {
        return Ok(values);
    }
    if let Some(values) = signed(given)? {
        let checked = values.into_iter().map(u64::try_from).collect::<Result<_, _>>();
        return checked.map_err(|_| PyValueError::new_err(format!("{name}: a number is negative")));
    }
    if let Some(values) = unsigned(given)? {
        return Ok(values);
    }
    given.extract().map_err(|_| {
        PyTypeError::new_err(format!("{name}: must be whole numbers from 0 on, in a sequence"))
    })
}

/// Numbers.
pub fn real(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<f64>> {
    if let Some(values) = buffer::<f64>(given)? {
        return Ok(values);
    }
    if let Some(values) = buffer::<u64>(given)? {
        return Ok(values.into_iter().map(|value| value as f64).collect());
    }
    given
        .extract()
        .map_err(|_| PyTypeError::new_err(format!("{name}: must be numbers, in a sequence")))
}

fn signed(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<i64>>> {
    if let Some(values) = buffer::<i64>(given)? {
        return Ok(Some(values));
    }
    let narrow = buffer::<i32>(given)?;
    Ok(narrow.map(|values| values.into_iter().map(i64::from).collect()))
}

fn unsigned(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u64>>> {
    if let Some(values) = buffer::<u32>(given)? {
        return Ok(Some(values.into_iter().map(u64::from).collect()));
    }
    if let Some(values) = buffer::<u16>(given)? {
        return Ok(Some(values.into_iter().map(u64::from).collect()));
    }
    let narrow = buffer::<u8>(given)?;
    Ok(narrow.map(|values| values.into_iter().map(u64::from).collect()))
}

/// The elements, where `given` is a buffer of one dimension of just this type.
fn buffer<T: Element>(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<T>>> {
    match PyBuffer::<T>::get(given) {
        Ok(found) if found.dimensions() == 1 => found.to_vec(given.py()).map(Some),
        _ => Ok(None),
    }
}
