//! `[[published]]`: figures that a maker or an independent measurement states for the device, with
//! the load that each belongs to.
//!
//! A figure is either an *input*, from which parameters of the profile were made, or a *regression
//! figure*, which the profile was not made from and is judged by. The load is that of fio and of
//! data sheets: a fixed number of outstanding requests of one size. This module reads and checks
//! figures; `wearmark profile check --published` simulates them.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::Profile;
use crate::linear::Pattern;
use crate::rules::{Flaw, flaw};

/// `[[published]]`: one figure and the load that it was found under.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// What the requests do.
    pub op: LoadOp,
    /// Where they go.
    pub pattern: Pattern,
    /// Share of reads of a mixed load, 0 to 1; half where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_share: Option<f64>,
    /// Bytes per request.
    pub size: Bytes,
    /// Requests outstanding.
    pub depth: u32,
    /// Bytes addressed, from the start of the device: where absent the whole device, and 64 GiB of
    /// one whose capacity is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Bytes>,
    /// Bytes that the same load moves before counting starts; a short warm-up where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Bytes>,
    /// Bytes that the same load moves while it is counted; 20,000 requests where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Bytes>,
    /// A flush follows every write, and the write's time contains it: a commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flushed: bool,
    /// Fields of the profile that differ for this figure, as `field=value`: another size, no
    /// credits left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// What was found.
    pub figure: Figure,
    /// Whose time it is, of a mixed load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<LoadOp>,
    /// The value.
    pub value: f64,
    /// What the value counts.
    pub unit: FigureUnit,
    /// Who published it, under which conditions.
    pub source: String,
    /// Whether parameters of the profile were made from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub input: bool,
}

/// What the requests of a load do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadOp {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Either, by a share.
    Mixed,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Requests per second.
    Iops,
    /// Bytes per second.
    Throughput,
    /// Mean time of a request.
    Mean,
    /// Median time.
    P50,
    /// 99th percentile of the time.
    P99,
    /// 99.9th percentile of the time.
    #[serde(rename = "p99.9")]
    P999,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FigureUnit {
    /// Requests per second.
    #[serde(rename = "iops")]
    Iops,
    /// 1,000,000 bytes per second.
    #[serde(rename = "MB/s")]
    MbPerS,
    /// 1,048,576 bytes per second.
    #[serde(rename = "MiB/s")]
    MibPerS,
    /// Microseconds.
    #[serde(rename = "us")]
    Us,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Ms,
}

impl LoadOp {
    /// As in a profile.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Mixed => "mixed",
        }
    }
}

impl Figure {
    /// As in a profile.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::Throughput => "throughput",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }

    fn is_time(self) -> bool {
        !matches!(self, Self::Iops | Self::Throughput)
    }
}

impl FigureUnit {
    /// As in a profile.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::MbPerS => "MB/s",
            Self::MibPerS => "MiB/s",
            Self::Us => "us",
            Self::Ms => "ms",
        }
    }

    /// Requests or bytes per second, or ns, of one unit.
    pub fn scale(self) -> f64 {
        match self {
            Self::Iops => 1.0,
            Self::MbPerS | Self::Ms => 1e6,
            Self::MibPerS => 1_048_576.0,
            Self::Us => 1e3,
        }
    }
}

impl Published {
    /// Share of requests that read.
    pub fn share_of_reads(&self) -> f64 {
        match self.op {
            LoadOp::Read => 1.0,
            LoadOp::Write => 0.0,
            LoadOp::Mixed => self.read_share.unwrap_or(0.5),
        }
    }

    /// Whose time the figure is: that of reads or of writes.
    pub fn timed_op(&self) -> LoadOp {
        self.of.unwrap_or(self.op)
    }

    /// The load in words: `random read 4KiB depth 16`.
    pub fn load(&self) -> String {
        let pattern = match self.pattern {
            Pattern::Sequential => "sequential",
            Pattern::Random => "random",
        };
        let mut text = format!("{pattern} {}", self.op.name());
        if self.op == LoadOp::Mixed {
            text.push_str(&format!(" {:.0} % reads", 100.0 * self.share_of_reads()));
        }
        text.push_str(&format!(" {} depth {}", self.size, self.depth));
        if self.flushed {
            text.push_str(" flushed");
        }
        if let Some(after) = self.after {
            text.push_str(&format!(" after {after}"));
        }
        for field in &self.with {
            text.push_str(&format!(" {field}"));
        }
        text
    }
}

impl Profile {
    /// The device that `published` was found on: this profile with the fields that it changes.
    ///
    /// # Errors
    /// There is no such field, or the device cannot exist with it.
    pub fn as_published(&self, published: &Published) -> Result<Self, crate::Error> {
        // Reading each change back would check all figures again, each with its own changes.
        let bare = Self { published: Vec::new(), ..self.clone() };
        published.with.iter().try_fold(bare, |profile, change| {
            let (field, value) = change.split_once('=').unwrap_or((change, ""));
            profile.with_field(field.trim(), value.trim())
        })
    }
}

/// What the figures of a profile must satisfy: the load exists, and the unit is one of the figure.
pub(crate) fn check_published(profile: &Profile) -> Result<(), Flaw> {
    for (index, published) in profile.published.iter().enumerate() {
        check_one(published)
            .map_err(|(key, cause)| (format!("published[{index}].{key}"), cause))?;
        profile
            .as_published(published)
            .map_err(|error| (format!("published[{index}].with"), error.to_string()))?;
    }
    Ok(())
}

fn check_one(published: &Published) -> Result<(), Flaw> {
    let size = published.size.0;
    if size == 0 || size > u64::from(u32::MAX) {
        return flaw("size", "a request has from one byte to 4 GiB");
    }
    if !(1..=65_536).contains(&published.depth) {
        return flaw("depth", "from 1 to 65,536 requests are outstanding");
    }
    if published.range.is_some_and(|range| range.0 < size) {
        return flaw("range", "it holds less than one request");
    }
    if published.counted.is_some_and(|counted| counted.0 < size) {
        return flaw("counted", "it is less than one request");
    }
    if !published.value.is_finite() || published.value <= 0.0 {
        return flaw("value", "it must be above zero");
    }
    if published.source.trim().is_empty() {
        return flaw("source", "it is empty; name who published the figure");
    }
    let is_mixed = published.op == LoadOp::Mixed;
    match published.read_share {
        Some(_) if !is_mixed => return flaw("read_share", "the load is not mixed"),
        Some(share) if !(0.0..=1.0).contains(&share) => {
            return flaw("read_share", "a share lies between 0 and 1");
        }
        _ => {}
    }
    let fits = match published.unit {
        FigureUnit::Iops => published.figure == Figure::Iops,
        FigureUnit::MbPerS | FigureUnit::MibPerS => published.figure == Figure::Throughput,
        FigureUnit::Us | FigureUnit::Ms => published.figure.is_time(),
    };
    if !fits {
        let cause = format!("{} is not counted in it", published.figure.name());
        return flaw("unit", &cause);
    }
    if published.flushed && published.op == LoadOp::Read {
        return flaw("flushed", "reads are not flushed");
    }
    // Quantiles of two parts do not add up.
    if published.flushed && published.figure.is_time() && published.figure != Figure::Mean {
        return flaw("figure", "of writes with their flushes the mean is known, not a quantile");
    }
    match published.of {
        Some(_) if !is_mixed || !published.figure.is_time() => {
            flaw("of", "only times of a mixed load are of one operation")
        }
        Some(LoadOp::Mixed) => flaw("of", "it is read or write"),
        None if is_mixed && published.figure.is_time() => {
            flaw("of", "say whose time it is: read or write")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find_shipped;

    const FIGURE: &str = "\n[[published]]\nop = \"mixed\"\npattern = \"random\"\n\
        read_share = 0.7\nsize = \"8KiB\"\ndepth = 16\nwith = [\"limits.iops.rate=100\"]\n\
        figure = \"p99\"\nof = \"read\"\nvalue = 2.5\nunit = \"ms\"\nsource = \"a paper\"\n";

    fn read(figure: &str) -> Result<Profile, crate::Error> {
        let text = find_shipped("aws-gp2").expect("it ships");
        let own = text.find("[[published]]").unwrap_or(text.len());
        Profile::from_toml(&format!("{}{figure}", &text[..own]), "my.toml")
    }

    #[test]
    fn a_figure_is_read_written_and_said_in_words() {
        let profile = read(FIGURE).expect("it is sound");
        let again = Profile::from_toml(&profile.to_toml(), "again").expect("it was written");
        assert_eq!(again, profile);
        let figure = &profile.published[0];
        assert_eq!(figure.load(), "random mixed 70 % reads 8KiB depth 16 limits.iops.rate=100");
        assert_eq!((figure.share_of_reads(), figure.timed_op()), (0.7, LoadOp::Read));
        let other = profile.as_published(figure).expect("it can exist");
        let rate = other.limits.expect("a volume").iops.expect("a rate").rate.value;
        assert_eq!(rate, 100.0);
    }

    #[test]
    fn what_cannot_be_is_refused_where_it_stands() {
        for (line, replacement, expected) in [
            ("size = \"8KiB\"", "size = 0", "size: a request has"),
            ("depth = 16", "depth = 0", "depth: from 1"),
            ("value = 2.5", "value = -1.0", "value: it must be above zero"),
            ("unit = \"ms\"", "unit = \"iops\"", "unit: p99 is not counted in it"),
            ("of = \"read\"\n", "", "of: say whose"),
            ("of = \"read\"", "of = \"mixed\"", "of: it is read or write"),
            ("op = \"mixed\"", "op = \"write\"", "read_share: the load is not mixed"),
            ("read_share = 0.7", "read_share = 1.7", "read_share: a share"),
            ("source = \"a paper\"", "source = \" \"", "source: it is empty"),
            ("depth = 16", "depth = 16\nrange = \"4KiB\"", "range: it holds less"),
            ("depth = 16", "depth = 16\ncounted = \"4KiB\"", "counted: it is less"),
            ("iops.rate=100", "iops.rate=0", "with: aws-gp2:"),
            ("iops.rate=100", "mops.rate=1", "with: aws-gp2:0: limits.mops.rate: the profile has"),
        ] {
            assert!(FIGURE.contains(line), "{line}");
            let error = read(&FIGURE.replacen(line, replacement, 1)).expect_err(replacement);
            let text = error.to_string();
            assert!(text.contains(&format!("published[0].{expected}")), "{text}");
        }
        let commits = FIGURE.replacen("depth = 16", "depth = 16\nflushed = true", 1);
        let text = read(&commits).expect_err("a quantile").to_string();
        assert!(text.contains("published[0].figure: of writes with"), "{text}");
        let reads = FIGURE.replacen("op = \"mixed\"", "op = \"read\"\nflushed = true", 1);
        let reads = reads.replacen("read_share = 0.7\n", "", 1).replacen("of = \"read\"\n", "", 1);
        let text = read(&reads).expect_err("reads").to_string();
        assert!(text.contains("published[0].flushed: reads are not flushed"), "{text}");
    }
}
