//! Drives the program as a user does: the binary, real files, real signals.

mod capture;
mod commands;
mod compare;
mod emulate;
mod fleet;
mod full_disk;
mod guide;
mod host;
mod long_traces;
mod main_job;
mod metrics;
mod mistakes;
mod oltp;
mod outputs;
mod packaging;
mod program;
mod runs_in_a_browser;
mod schema;
mod server_study;
mod statements;
mod stopping;
mod sweep;
mod temp;
mod trace_making;
mod trace_surgery;
