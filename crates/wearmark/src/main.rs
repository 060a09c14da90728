//! The `wearmark` binary; everything is in the library, which the Python package calls too.

use std::process::ExitCode;

fn main() -> ExitCode {
    wearmark::run(std::env::args_os())
}
