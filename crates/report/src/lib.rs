//! Draws a result for people: one HTML file for looking closely, one screen for the terminal.
//!
//! Presentation only. A builder elsewhere turns a study's result into a [`Page`]; this crate knows
//! nothing of devices or databases, reads no file and writes none.
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
    Align, Axis, BarSeries, Column, Fact, Figure, FigureKind, Item, Page, Scale, Section, Series,
    Style, Table,
};
pub use terminal::terminal;
