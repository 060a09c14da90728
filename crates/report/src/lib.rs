//! Draws a result for people: one HTML file for looking closely, one screen for the terminal.
//!
//! Presentation only. A builder elsewhere turns a study's result into a [`Page`]; this crate knows
//! nothing of devices or databases, reads no file and writes none.
//!
//! ```
//! use report::{Axis, Figure, Page, Section, Series, Style};
//!
//! let measured = vec![(4096.0, 54e6), (65536.0, 346e6), (1048576.0, 522e6)];
//! let figure = Figure::lines(
//!     "throughput",
//!     "Throughput against request size",
//!     Axis::log2("Request size", "bytes"),
//!     Axis::linear("Throughput", "bytes/s"),
//!     vec![Series::new("sequential read", Style::LinePoints, measured)],
//! );
//! let page = Page::new("This disk", "probed for 40 s")
//!     .fact("Fastest", report::format::bytes_per_s(522e6), "sequential read of 1 MiB")
//!     .section(Section::new("probe", "What the disk can do").figure(figure));
//! assert!(report::html(&page).starts_with("<!doctype html>"));
//! assert!(report::terminal(&page, 100, false).contains("522 MB/s  sequential read of 1 MiB"));
//! ```
//!
//! Invariants: any [`Page`] is drawn, whatever its texts and numbers are; no text of a page can
//! become markup, script or a terminal escape; the HTML file asks for nothing from any network; the
//! same page gives the same bytes.

#![forbid(unsafe_code)]

mod figure_data;
pub mod format;
mod html;
mod page;
mod terminal;

pub use html::html;
pub use page::{
    Align, Axis, BarSeries, Column, Fact, Figure, FigureKind, Grid, GridLayer, Item, Page, Scale,
    Section, Series, Simulator, Style, Table,
};
pub use terminal::terminal;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
