//! The command tree. Help texts here are the source of the man pages, the shell completions and
//! `docs/reference/cli.md`.

// Help texts name sections of TOML files: [volume].
#![allow(rustdoc::broken_intra_doc_links)]

mod advise;
mod capture;
mod compare;
mod emulate;
mod fleet;
mod live;
mod oltp;
mod papers;
mod prove;
mod serve;
mod statements;
mod surgery;
mod temp;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use formats::{Columns, Format, TimeUnit};
use predict::Goal;
use units::{Bytes, Nanos, Rate};

pub use advise::{
    Advise, AdviseBuy, AdviseLife, AdvisePlace, Balance, Faster, MeanName, Memory, Pricing,
    Relaxed, WhatIf,
};
pub use capture::Capture;
pub use compare::{Compare, Trend};
pub use emulate::{Emulate, EmulateOrder, EmulateSet, EmulateStatus, bytes_range};
pub use fleet::{Executor, Fleet, FleetCollect, FleetPlan, FleetRun};
pub use live::Live;
pub use oltp::{
    DatabaseSettings, DbmsName, Oltp, OltpCheck, OltpCompare, OltpRun, OltpServer, OltpSweep,
    OltpTorture, OwnArguments, Place, ServerPlace, Simulated, Watching, WorkloadArguments,
};
pub use papers::Papers;
pub use prove::Prove;
pub use serve::Serve;
pub use statements::{OltpTemp, OltpVersions, StatementPlace, TempOperation};
pub use surgery::{Anonymise, Host, Merge, Remap, RemapRule, Scale, Slice};
pub use temp::{Temp, TempSweep};

/// How will my transactions run on that storage, what limits them, and how wrong may the answer be?
///
/// wearmark measures a disk, fits a model to it, runs an OLTP load on a real database while its I/O
/// is captured, simulates that I/O on other devices, replays it on the real disk and says how wrong
/// the simulation was.
///
/// Start with:  wearmark study run quickstart. Without a command, wearmark says what can be asked
/// in the current directory.
#[derive(Debug, Parser)]
#[command(name = "wearmark", version, max_term_width = 100)]
pub struct Cli {
    /// What to do; without one, says what can be asked in this directory.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// No progress; errors and warnings only.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Print the result as JSON on standard output.
    #[arg(long, global = true)]
    pub json: bool,
    /// Replace output files even where wearmark did not make them.
    #[arg(long, global = true)]
    pub force: bool,
}

/// The nouns.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what this machine can and cannot do, with the reason and the remedy
    Doctor {
        /// A directory on the disk to check
        #[arg(default_value = ".")]
        directory: PathBuf,
    },
    /// Run a whole study: measure, fit, load, capture, simulate, replay, compare, report
    #[command(subcommand)]
    Study(Study),
    /// Measure a disk past the page cache: response times by pattern, size and depth
    Probe(Probe),
    /// Fit a device profile to what a probe measured
    Fit(Fit),
    /// Run transactions on a real database: load, run, sweep, compare, check
    #[command(subcommand)]
    Oltp(Oltp),
    /// Watch a server that runs already, under its own load: I/O, requests, processor time
    Capture(Box<Capture>),
    /// Sort or join more than memory holds, by cluster size: on a disk, or on device models
    #[command(subcommand)]
    Temp(Temp),
    /// Describe or convert a trace of I/O requests
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Simulate a trace on one or more device profiles, in virtual time
    Sim(Sim),
    /// Say whether results got worse: OLTP runs, probes, simulations, predictions, studies
    Compare(Compare),
    /// Say when the figures of many results changed: a baseline that has grown over months
    Trend(Trend),
    /// Simulate many traces on many devices: plan the jobs, run them, collect the results
    #[command(subcommand)]
    Fleet(Fleet),
    /// Show a directory of runs in a browser: filter, compare, watch, start and stop studies
    Serve(Serve),
    /// Emulate a device: serve directories at its speed, for any program to use
    Emulate(Emulate),
    /// Run the same load here and on emulated devices, and compare with what is predicted
    Prove(Box<Prove>),
    /// Predict the transactions of a captured run on other devices, terminals or processors
    Predict(Predict),
    /// Say what to buy, where to put what, how long it lasts, what if
    #[command(subcommand)]
    Advise(Box<Advise>),
    /// Print what five papers published beside what wearmark gives for the same setup
    Papers(Papers),
    /// List, show, check, compare or import device profiles
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Replay a trace on the real disk at its captured times, with a timing certificate
    Replay(Replay),
    /// Say how wrong a profile is: replay a trace twice, simulate it once, compare distributions
    Validate(Validate),
    /// Write the report of a run directory again
    Report {
        /// The run directory, such as runs/quickstart-001
        run: PathBuf,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory
    Man {
        /// The directory, created if absent
        directory: PathBuf,
    },
    /// Print the reference of all commands as Markdown
    #[command(hide = true)]
    Reference,
}

/// `wearmark predict`
#[derive(Debug, Args)]
pub struct Predict {
    /// What 'wearmark capture --output PREFIX' or 'wearmark oltp run --trace PREFIX' left
    pub prefix: PathBuf,
    /// A shipped profile's name or a TOML file; may be repeated
    #[arg(long, required = true, value_name = "PROFILE")]
    pub on: Vec<String>,
    /// Another number of terminals
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub users: Option<u32>,
    /// Transactions arrive at this rate, whatever is still active
    #[arg(long)]
    pub rate: Option<Rate>,
    /// The highest rate of arrivals at which this holds: 'p99<10ms', 'new_order p95<50ms'
    #[arg(long, value_name = "LIMIT", conflicts_with_all = ["rate", "cold"])]
    pub find_rate: Option<Goal>,
    /// A larger buffer of the database
    #[arg(long, value_name = "SIZE", conflicts_with = "cold")]
    pub buffer: Option<Bytes>,
    /// The leader of a commit waits this long for others to join it (commit_delay)
    #[arg(long, value_name = "TIME")]
    pub commit_delay: Option<Nanos>,
    /// Only while at least this many other transactions are active (commit_siblings)
    #[arg(long, value_name = "N", default_value_t = 5, requires = "commit_delay")]
    pub commit_siblings: u32,
    /// Another number of processors
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub processors: Option<u32>,
    /// Processors this many times as fast
    #[arg(long)]
    pub speed: Option<f64>,
    /// Share of all processors that other programs ask for, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub other_load: f64,
    /// What is computed for each request to a device, as by an emulator, instead of by the kernel
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub request_load: Nanos,
    /// How much later than the device's answers come, as an emulator's do on busy processors
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub request_late: Nanos,
    /// What committing computes less for a write of the log and its sync, as in a served directory
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub sync_less: Nanos,
    /// Commits are answered before they are durable (synchronous_commit = off)
    #[arg(long)]
    pub no_commit_wait: bool,
    /// From empty caches and for as long as the captured run, instead of with full ones
    #[arg(long)]
    pub cold: bool,
    /// Another device for the log alone
    #[arg(long, value_name = "PROFILE")]
    pub log_on: Option<String>,
    /// What is above the devices, a TOML file: [scheduler], [volume], [cache_device]
    #[arg(long, value_name = "FILE")]
    pub host: Option<PathBuf>,
    /// The same above the device of the log
    #[arg(long, value_name = "FILE", requires = "log_on")]
    pub log_host: Option<PathBuf>,
    /// Write a page with charts, one file that any browser opens
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Decides which samples are drawn
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// `wearmark study`
#[derive(Debug, Subcommand)]
pub enum Study {
    /// Run a study, or go on with the one that was interrupted
    Run {
        /// A study file, or a built-in one: 'quickstart', 'choose-a-volume', 'modern/page-size' ...
        #[arg(default_value = "quickstart")]
        file: PathBuf,
        /// Where run directories are made; also the disk under test
        #[arg(long, default_value = "runs")]
        runs: PathBuf,
        /// Print what would be done, how long it takes and how much it writes; do nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        live: Live,
    },
    /// Print a study file with every default spelt out
    Show {
        /// A study file, or a built-in one: 'quickstart', 'choose-a-volume', 'modern/page-size' ...
        #[arg(default_value = "quickstart")]
        file: PathBuf,
    },
}

/// `wearmark probe`
#[derive(Debug, Args)]
pub struct Probe {
    #[command(flatten)]
    pub live: Live,
    /// A directory (a file is made in it and removed), a file, or a block device; the current
    /// directory where absent
    #[arg(conflicts_with = "profile")]
    pub target: Option<PathBuf>,
    /// Measure the model of a device instead, in virtual time: a shipped profile's name or a TOML
    /// file
    #[arg(long, value_name = "PROFILE")]
    #[arg(conflicts_with_all = ["i_will_lose_data", "plan", "dry_run"])]
    pub profile: Option<String>,
    /// The target again, if what it holds may be overwritten
    #[arg(long, value_name = "TARGET")]
    pub i_will_lose_data: Option<PathBuf>,
    /// quick takes under a minute; full measures until steady
    #[arg(long, value_enum, default_value_t = Plan::Quick)]
    pub plan: Plan,
    /// The same as --plan quick
    #[arg(long, conflicts_with = "plan")]
    pub quick: bool,
    /// Print every cell as a row, after the summary
    #[arg(long)]
    pub table: bool,
    /// Size of the part of the target that is measured
    #[arg(long, default_value = "1GiB")]
    pub range: Bytes,
    /// Seed of the request sequences
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the plan, its time and the bytes it writes; do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Where the measurements go; an interrupted probe goes on from this file
    #[arg(long, short, default_value = "measurements.json")]
    pub output: PathBuf,
    /// Write a page with curves and distributions
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Plans of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Plan {
    /// Under a minute
    Quick,
    /// Rounds until steady by the SNIA PTS rules
    Full,
}

/// `wearmark fit`
#[derive(Debug, Args)]
pub struct Fit {
    /// A measurements.json, or a run directory that holds one
    pub measurements: PathBuf,
    /// Where the profile goes
    #[arg(long, short, default_value = "profile.toml")]
    pub output: PathBuf,
    /// Name of the profile
    #[arg(long, default_value = "fitted")]
    pub name: String,
}

/// `wearmark trace`
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Say what is in a trace: sizes, rate and bursts, reuse, hot and cold, what it resembles
    Info(TraceInfo),
    /// Convert a trace; the format follows the name, or --to
    Convert(Convert),
    /// Make a trace of a named pattern or a recipe; the same seed makes the same trace
    Generate(Generate),
    /// Fit a generator to a trace and make another like it, of any length
    Imitate(Imitate),
    /// Keep a part of a trace: by time, by stream, by region
    Slice(Slice),
    /// Move a trace onto a device of another size
    Remap(Remap),
    /// Play a trace faster or slower
    Scale(Scale),
    /// Turn a trace of calls into what the device gets, through page cache and file system
    Host(Host),
    /// Join traces into one load
    Merge(Merge),
    /// Take out of a trace what says whose it is
    Anonymise(Anonymise),
}

/// `wearmark trace info`
#[derive(Debug, Args)]
pub struct TraceInfo {
    #[command(flatten)]
    pub input: TraceInput,
    /// Write a page with charts, one file that any browser opens
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Follow every block, however many there are (about 100 bytes of memory each); otherwise
    /// traces of more than 16 million block touches or 16 GiB of touched data are sampled at 1 %
    #[arg(long)]
    pub full: bool,
}

/// A trace to read, and how
#[derive(Debug, Args)]
pub struct TraceInput {
    /// The trace: a file of any known format, plain or packed (gzip, zstd, bzip2,
    /// xz, zip, tar); - for standard input
    pub trace: PathBuf,
    #[command(flatten)]
    pub reading: Reading,
}

/// How a trace is read where its file does not say
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub struct Reading {
    /// Format of the trace; detected from its content otherwise
    #[arg(long, value_parser = format_parser())]
    pub format: Option<Format>,
    /// What its columns are, for text of no known format: time:us,op,offset:sectors,size:bytes.
    ///
    /// Columns are time, end (of the request), op, offset, size, stream or disk, service or
    /// latency, actor, - for one that is not used, * for any number of them; only:WORD keeps the
    /// lines that have WORD there. NAME=N is column N. Times have a unit: s, ms, us, ns or filetime
    /// (100 ns); offset and size: bytes, sectors, KiB or blocks4k. Ops are words such as R, write
    /// or WS; op:01 takes 0 for a read and 1 for a write, op:10 the reverse.
    #[arg(long, value_name = "COLUMNS")]
    pub columns: Option<Columns>,
    /// Leave bad lines out, count them and show the first, instead of stopping
    #[arg(long)]
    pub lenient: bool,
    /// Unit of its times, where it is not the documented one: ns, 100ns, us, ms or s
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<TimeUnit>,
    /// Size of its sectors, where it is not the documented one
    #[arg(long, value_name = "SIZE")]
    pub sector: Option<Bytes>,
    /// What an op of 1 means, where it is not as documented
    #[arg(long, value_name = "OP", value_enum)]
    pub op_1: Option<NumericOp>,
    /// Size of the device that it was taken on; requests beyond it are reported
    #[arg(long, value_name = "SIZE")]
    pub capacity: Option<Bytes>,
    /// Take the times at which requests were queued, where it also has those of their issue
    #[arg(long)]
    pub queued_times: bool,
}

/// What a number stands for in formats whose op is a number
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NumericOp {
    /// A read
    Read,
    /// A write
    Write,
}

/// Names of formats, listed in the help and completed by the shell.
fn format_parser() -> impl clap::builder::TypedValueParser<Value = Format> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let values = Format::ALL.iter().map(|f| PossibleValue::new(f.name()).help(f.title()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Format>())
}

/// `wearmark trace convert`
#[derive(Debug, Args)]
pub struct Convert {
    #[command(flatten)]
    pub input: TraceInput,
    /// The trace to write
    pub output: PathBuf,
    /// Format to write; derived from the name of the output otherwise
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    pub to: Option<Format>,
}

/// `wearmark trace generate`
#[derive(Debug, Args)]
pub struct Generate {
    /// A pattern, a shipped recipe, or the TOML file of one
    pub pattern: Option<String>,
    /// List patterns, their options and recipes
    #[arg(long)]
    pub list: bool,
    /// An option of the pattern, such as size=8KiB; repeat for several
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub option: Vec<(String, String)>,
    /// Requests; the pattern's own number otherwise
    #[arg(long, short = 'n')]
    pub requests: Option<u64>,
    /// Seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The trace to write (.parquet)
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// Print the recipe instead of making the trace
    #[arg(long)]
    pub recipe: bool,
}

/// Splits NAME=VALUE.
fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE, such as size=8KiB")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// `wearmark trace imitate`
#[derive(Debug, Args)]
pub struct Imitate {
    #[command(flatten)]
    pub input: TraceInput,
    /// Requests to make; as many as the original otherwise
    #[arg(long, short = 'n')]
    pub requests: Option<u64>,
    /// Seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The trace to write (.parquet)
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// Write the fitted recipe, for 'wearmark trace generate FILE'
    #[arg(long, value_name = "FILE")]
    pub save_recipe: Option<PathBuf>,
}

/// `wearmark sim`
#[derive(Debug, Args)]
pub struct Sim {
    #[command(flatten)]
    pub input: TraceInput,
    /// Shipped profiles by name, or TOML files; repeat for several
    #[arg(long, short, required = true)]
    pub profile: Vec<String>,
    /// Without the profile's write-back cache
    #[arg(long)]
    pub no_cache: bool,
    /// What is above the devices, a TOML file: [page_cache] and [file_system] for a trace of
    /// calls, [scheduler], [volume], [cache_device]; several are compared
    #[arg(long, value_name = "FILE")]
    pub host: Vec<PathBuf>,
    /// Closed loop: each actor of a captured trace waits for the simulated device
    #[arg(long)]
    pub closed: bool,
    /// Leave requests due before this out of all times and rates: they only warm the devices up
    #[arg(long, value_name = "TIME", default_value = "0s", conflicts_with = "closed")]
    pub warm_up: Nanos,
    /// Seed of the simulated noise
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Devices simulated at a time; all processors where absent. Changes no figure
    #[arg(long)]
    pub threads: Option<usize>,
    /// Write a page that compares the devices
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write what the devices did, for ui.perfetto.dev; compressed where FILE ends in .gz
    #[arg(long, value_name = "FILE", conflicts_with = "closed")]
    pub timeline: Option<PathBuf>,
    /// Part of the trace that the timeline shows
    #[arg(long, value_name = "FROM..TO", default_value = "0s..1s", value_parser = window)]
    pub timeline_window: std::ops::Range<u64>,
}

/// `10s..12s` in ns.
fn window(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("a window is FROM..TO, such as 10s..12s")?;
    let time = |part: &str| part.parse::<Nanos>().map_err(|error| error.to_string());
    let (from, to) = (time(from)?, time(to)?);
    if from >= to {
        return Err("a window ends after it starts".to_owned());
    }
    Ok(from.0..to.0)
}

/// `wearmark profile`
#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// List the profiles that come with wearmark
    List,
    /// Print one as TOML
    Show {
        /// A shipped profile's name or a TOML file
        profile: String,
    },
    /// Check one and say what is wrong with it
    Check {
        /// A shipped profile's name or a TOML file; with --published all shipped ones where absent
        #[arg(required_unless_present = "published")]
        profile: Option<String>,
        /// Simulate the loads of the figures that others published, and print both
        #[arg(long)]
        published: bool,
        /// Decides every random draw
        #[arg(long, default_value_t = 1, requires = "published")]
        seed: u64,
    },
    /// Say in which parameters two profiles differ, and where each value comes from
    Diff {
        /// A shipped profile's name or a TOML file
        left: String,
        /// The other one
        right: String,
    },
    /// Make a profile of a disk from its DiskSim parameter files
    ImportDisksim {
        /// DIR/NAME: where NAME.parv or NAME.diskspecs and the files that it names are
        drive: PathBuf,
        /// Where the profile goes
        #[arg(long, short, default_value = "profile.toml")]
        output: PathBuf,
        /// Name of the profile; that of the drive's files where absent
        #[arg(long)]
        name: Option<String>,
    },
    /// Make a profile of a flash device from a device configuration of MQSim
    ImportMqsim {
        /// Its ssdconfig.xml
        file: PathBuf,
        /// Where the profile goes
        #[arg(long, short, default_value = "profile.toml")]
        output: PathBuf,
        /// Name of the profile; that of the file where absent
        #[arg(long)]
        name: Option<String>,
    },
}

/// `wearmark replay`
#[derive(Debug, Args)]
pub struct Replay {
    #[command(flatten)]
    pub live: Live,
    #[command(flatten)]
    pub input: TraceInput,
    /// A file to create, a directory to create one in, or a file or block device named twice
    #[arg(long)]
    pub target: PathBuf,
    /// The target again, if what it holds may be overwritten: a file that is there, a block device
    #[arg(long, value_name = "TARGET")]
    pub i_will_lose_data: Option<PathBuf>,
    /// When requests are issued
    #[arg(long, value_enum, default_value_t = Mode::Timed)]
    pub mode: Mode,
    /// Outstanding requests in the closed mode
    #[arg(long, default_value_t = 1)]
    pub depth: u32,
    /// Replay no more than this much of the trace
    #[arg(long)]
    pub duration: Option<Nanos>,
    /// Play the trace at this mean rate instead of its own
    #[arg(long)]
    pub rate: Option<Rate>,
}

/// Modes of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// At the captured times, on an absolute schedule
    Timed,
    /// Each connection of a captured trace waits for its previous request, then for its CPU time
    Dependent,
    /// As fast as possible, at most 256 outstanding
    Fast,
    /// A fixed number outstanding
    Closed,
}

/// `wearmark validate`
#[derive(Debug, Args)]
pub struct Validate {
    #[command(flatten)]
    pub input: TraceInput,
    /// The profile: a TOML file, or a shipped one's name
    #[arg(long, short)]
    pub profile: String,
    /// A file to create, a directory to create one in, or a file or block device named twice
    #[arg(long, required_unless_present = "recorded", conflicts_with = "recorded")]
    pub target: Option<PathBuf>,
    /// The target again, if what it holds may be overwritten: a file that is there, a block device
    #[arg(long, value_name = "TARGET", conflicts_with = "recorded")]
    pub i_will_lose_data: Option<PathBuf>,
    /// Compare with the response times that the trace holds; replay nothing
    #[arg(long)]
    pub recorded: bool,
    /// Take no more than this much of the trace; 25s where it is replayed
    #[arg(long)]
    pub duration: Option<Nanos>,
    /// Write a page with distributions and errors by class
    #[arg(long, value_name = "FILE", requires = "recorded")]
    pub html: Option<PathBuf>,
    /// Seed of the simulated noise
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
