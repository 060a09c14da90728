//! `wearmark papers`

use std::path::PathBuf;

use clap::Args;

/// `wearmark papers`
#[derive(Debug, Args)]
pub struct Papers {
    /// One of wang2011, wang2010, petrov2010, lee2008, oi2007; all where absent
    pub name: Option<String>,
    /// A twentieth of the requests: shapes, not figures
    #[arg(long)]
    pub quick: bool,
    /// Experiments at a time; all processors where absent. Changes no figure
    #[arg(long)]
    pub threads: Option<usize>,
    /// Write a page with a section per paper
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
