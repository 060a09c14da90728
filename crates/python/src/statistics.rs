//! The statistics that wearmark reports, of numbers that Python has.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stats::error_ratio::{Block, Resampling, compare, compare_with_interval};

use crate::numbers::{real, whole};
use crate::values::to_python;

/// E and its companions: simulated against real response times, ns. With `block`, this many
/// requests that stay together when resampling, E has an interval.
#[pyfunction]
#[pyo3(signature = (simulated, real, *, block=None, resamples=200, seed=1))]
pub fn error_ratio(
    py: Python<'_>,
    simulated: &Bound<'_, PyAny>,
    real: &Bound<'_, PyAny>,
    block: Option<usize>,
    resamples: usize,
    seed: u64,
) -> PyResult<Py<PyAny>> {
    let (simulated, real) = (whole(simulated, "simulated")?, whole(real, "real")?);
    let found = py.detach(|| match block {
        Some(block) => {
            let block = Block::Requests(block.max(1));
            compare_with_interval(&simulated, &real, &Resampling { resamples, seed, block })
        }
        None => compare(&simulated, &real),
    });
    to_python(py, &found)
}

/// Root mean square horizontal distance between two distributions, in their unit.
#[pyfunction]
pub fn demerit(py: Python<'_>, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<f64> {
    let (a, b) = (whole(a, "a")?, whole(b, "b")?);
    Ok(py.detach(|| stats::demerit(&a, &b)))
}

/// The 95 % interval of a mean or median by the bootstrap; `block` neighbours stay together.
#[pyfunction]
#[pyo3(signature = (samples, *, statistic="mean", block=1, resamples=2000, seed=1))]
pub fn bootstrap(
    py: Python<'_>,
    samples: &Bound<'_, PyAny>,
    statistic: &str,
    block: usize,
    resamples: usize,
    seed: u64,
) -> PyResult<(f64, f64)> {
    let samples = real(samples, "samples")?;
    let of: fn(&[f64]) -> f64 = match statistic {
        "mean" => |drawn| drawn.iter().sum::<f64>() / drawn.len() as f64,
        "median" => |drawn| {
            let mut sorted = drawn.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            stats::quantile_sorted_f64(&sorted, 0.5)
        },
        other => {
            let told = format!("statistic: '{other}' is neither mean nor median");
            return Err(PyValueError::new_err(told));
        }
    };
    Ok(py.detach(|| stats::bootstrap::block_interval(&samples, block, of, resamples, seed)))
}

/// Median of `a` over that of `b` with its interval, paired in order; None where that cannot be.
#[pyfunction]
#[pyo3(signature = (a, b, *, resamples=2000, seed=1))]
pub fn ratio_of_medians(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    resamples: usize,
    seed: u64,
) -> PyResult<Py<PyAny>> {
    let (a, b) = (real(a, "a")?, real(b, "b")?);
    let found = py.detach(|| stats::bootstrap::ratio_of_medians(&a, &b, resamples, seed));
    to_python(py, &found)
}

/// Whether the values of the rounds are steady by the two rules of SNIA PTS.
#[pyfunction]
pub fn steady(py: Python<'_>, rounds: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    to_python(py, &stats::steady::assess(&real(rounds, "rounds")?))
}

/// Observations to leave out as warm-up, by MSER-5.
#[pyfunction]
pub fn mser5(observations: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(stats::steady::mser5(&real(observations, "observations")?))
}

/// The q-quantile of whole numbers in any order: the smallest value that a share q is not above.
#[pyfunction]
pub fn quantile(py: Python<'_>, values: &Bound<'_, PyAny>, q: f64) -> PyResult<u64> {
    let mut values = whole(values, "values")?;
    if values.is_empty() || !(0.0..=1.0).contains(&q) {
        return Err(PyValueError::new_err("a quantile needs a value, and q from 0 to 1"));
    }
    Ok(py.detach(|| {
        values.sort_unstable();
        stats::quantile_sorted(&values, q)
    }))
}
