//! The Python package `wearmark`: the crates of the workspace as Python objects.
//!
//! An extension module of the stable ABI (Python 3.11 and newer), built by maturin. Nothing is
//! worked out here: a function takes Python values, calls a crate with the interpreter's lock
//! released ([`work`]), and wraps what it got. Columns leave through the Arrow C data interface and
//! the buffer protocol without being copied ([`arrow`], the only file with `unsafe` beside the
//! buffer protocol in [`column`]). Tested by pytest (`tests/`), which `tests/it` starts where there
//! is a Python with maturin.

// What Python calls has the signature that Python sees: arguments come owned.
#![allow(clippy::needless_pass_by_value)]

mod arrow;
mod column;
mod devices;
mod failure;
mod fleet;
mod learned;
mod numbers;
mod profiles;
mod simulate;
mod statistics;
mod table;
mod traces;
mod values;
mod work;

use pyo3::prelude::*;

/// What `wearmark/__init__.py` shows to users.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::column::Column;
    #[pymodule_export]
    use super::command;
    #[pymodule_export]
    use super::devices::PythonDevice;
    #[pymodule_export]
    use super::failure::{SuspectResult, WearmarkError};
    #[pymodule_export]
    use super::fleet::fleet_run;
    #[pymodule_export]
    use super::learned::{Fit, compare, fit, predict};
    #[pymodule_export]
    use super::profiles::{Profile, profiles};
    #[pymodule_export]
    use super::simulate::{Outcome, responses, simulate, table};
    #[pymodule_export]
    use super::statistics::{
        bootstrap, demerit, error_ratio, mser5, quantile, ratio_of_medians, steady,
    };
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::traces::{Trace, patterns};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// Runs the `wearmark` command of these arguments; the first is the program's name. Gives its exit
/// code.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| wearmark::exit_code(arguments))
}
