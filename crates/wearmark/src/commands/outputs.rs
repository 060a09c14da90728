//! Files that a command will write, checked before it begins: none replaces its own input, and none
//! replaces a file that is not an older output of the same kind unless `--force` says so. Those of
//! a run, which takes minutes, have a directory to go to.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::cli::{Command, Fleet, Oltp, TraceCommand, TraceInput, Watching};
use crate::failure::Advice;

/// How an older output of a kind is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A report page: its generator is in the head.
    Page,
    /// A trace in our own format: its metadata are at the end.
    Trace,
    /// A timeline for Perfetto; a compressed one cannot be told.
    Timeline,
    /// Runs for `oltp compare`.
    Runs,
    /// Transactions of a run, or requests of a capture.
    Transactions,
    /// The account of a capture.
    Accounts,
    /// Measurements of a probe.
    Measurements,
    /// A profile or a recipe.
    Toml,
    /// A comparison as Markdown.
    Markdown,
    /// A comparison as a test report.
    Junit,
    /// A comparison as CSV.
    Csv,
    /// The job list of a fleet.
    Plan,
    /// Rows of a fleet.
    Rows,
}

impl Kind {
    /// What people call it.
    fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Trace => "trace",
            Self::Timeline => "timeline",
            Self::Runs => "file of runs",
            Self::Transactions => "table of transactions",
            Self::Accounts => "account of a capture",
            Self::Measurements => "file of measurements",
            Self::Toml => "profile or recipe",
            Self::Markdown => "comparison in Markdown",
            Self::Junit => "test report",
            Self::Csv => "comparison as CSV",
            Self::Plan => "job list of a fleet",
            Self::Rows => "file of a fleet's rows",
        }
    }

    /// Whether a file with this beginning and end is one that wearmark made.
    fn made(self, head: &str, tail: &str) -> bool {
        match self {
            Self::Page => head.contains(r#"<meta name="generator" content="wearmark">"#),
            Self::Trace => head.starts_with("PAR1") && tail.contains("wearmark."),
            Self::Timeline => head.starts_with(r#"{"displayTimeUnit":"ns","traceEvents":["#),
            Self::Runs => head.contains(r#""schema""#) && head.contains(r#""runs""#),
            Self::Transactions => head.starts_with("transaction,"),
            Self::Accounts => head.contains(r#""wearmark""#) && head.contains(r#""ending""#),
            Self::Measurements => head.contains(r#""cells""#) || head.contains(r#""machine""#),
            // Short texts that people edit: only what reads as one of ours is taken for one.
            Self::Toml => {
                profile::Profile::from_toml(head, "").is_ok()
                    || trace::recipe::Recipe::from_toml(head).is_ok()
            }
            Self::Markdown => head.starts_with(study::checks::MARKDOWN_MARK),
            Self::Junit => {
                head.contains(&format!("<testsuites name=\"{}\"", study::checks::JUNIT_NAME))
            }
            Self::Csv => head.starts_with(study::checks::CSV_HEADER),
            Self::Plan => head.starts_with(r#"{"fleet":"#),
            Self::Rows => head.starts_with(r#"{"job":"#),
        }
    }
}

/// What a command reads and writes.
#[derive(Default)]
struct Files<'a> {
    inputs: Vec<&'a Path>,
    outputs: Vec<(PathBuf, Kind)>,
    /// Whose directories must be there.
    placed: Vec<&'a Path>,
}

impl<'a> Files<'a> {
    fn of(inputs: impl IntoIterator<Item = &'a Path>) -> Self {
        Self { inputs: inputs.into_iter().collect(), ..Self::default() }
    }

    fn and(mut self, kind: Kind, path: Option<&PathBuf>) -> Self {
        self.outputs.extend(path.map(|path| (path.clone(), kind)));
        self
    }

    fn watching(mut self, watching: &'a Watching) -> Self {
        let placed = [&watching.html, &watching.save];
        self.placed.extend(placed.into_iter().flatten().map(PathBuf::as_path));
        self.and(Kind::Page, watching.html.as_ref()).and(Kind::Runs, watching.save.as_ref())
    }

    /// Files that begin with `PREFIX-`, as captures are written.
    fn prefix(mut self, prefix: Option<&'a PathBuf>) -> Self {
        self.placed.extend(prefix.map(PathBuf::as_path));
        let Some((prefix, name)) = prefix.and_then(|prefix| Some((prefix, prefix.file_name()?)))
        else {
            return self;
        };
        let begin = format!("{}-", name.to_string_lossy());
        let folder = prefix.parent().filter(|folder| !folder.as_os_str().is_empty());
        let listed = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten();
        for path in listed.filter_map(|entry| Some(entry.ok()?.path())) {
            let Some(found) = path.file_name().map(|name| name.to_string_lossy().into_owned())
            else {
                continue;
            };
            if found.starts_with(&begin) && found.ends_with(".parquet") {
                self.outputs.push((path, Kind::Trace));
            } else if found == format!("{begin}run.json") {
                self.outputs.push((path, Kind::Runs));
            } else if found == format!("{begin}accounts.json") {
                self.outputs.push((path, Kind::Accounts));
            } else if [format!("{begin}transactions.csv"), format!("{begin}requests.csv")]
                .contains(&found)
            {
                self.outputs.push((path, Kind::Transactions));
            }
        }
        self
    }
}

/// What `command` reads and writes.
fn files(command: &Command) -> Files<'_> {
    match command {
        Command::Trace(command) => trace_files(command),
        Command::Sim(sim) => input(&sim.input)
            .and(Kind::Page, sim.html.as_ref())
            .and(Kind::Timeline, sim.timeline.as_ref()),
        Command::Validate(asked) => input(&asked.input).and(Kind::Page, asked.html.as_ref()),
        Command::Papers(asked) => Files::default().and(Kind::Page, asked.html.as_ref()),
        Command::Predict(asked) => Files::default().and(Kind::Page, asked.html.as_ref()),
        Command::Oltp(Oltp::Run(run)) => {
            Files::default().watching(&run.watching).prefix(run.trace.as_ref())
        }
        Command::Capture(taken) => Files::default()
            .and(Kind::Page, taken.html.as_ref())
            .prefix(Some(&taken.output).filter(|_| !taken.print_commands)),
        Command::Oltp(Oltp::Sweep(sweep)) => Files::default().watching(&sweep.watching),
        Command::Oltp(Oltp::Compare(compare)) => {
            Files::of([compare.old.as_path(), &compare.new]).and(Kind::Page, compare.html.as_ref())
        }
        Command::Compare(compare) => Files::of([compare.old.as_path(), &compare.new])
            .and(Kind::Page, compare.html.as_ref())
            .and(Kind::Markdown, compare.markdown.as_ref())
            .and(Kind::Junit, compare.junit.as_ref())
            .and(Kind::Csv, compare.csv.as_ref()),
        Command::Trend(trend) => {
            Files::of([trend.directory.as_path()]).and(Kind::Page, trend.html.as_ref())
        }
        Command::Fleet(Fleet::Plan(plan)) => {
            Files::of(plan.traces.iter().map(PathBuf::as_path)).and(Kind::Plan, Some(&plan.output))
        }
        Command::Fleet(Fleet::Collect(collect)) => {
            Files::of([collect.plan.as_path()]).and(Kind::Rows, collect.output.as_ref())
        }
        Command::Probe(probe) => Files::default()
            .and(Kind::Measurements, Some(&probe.output))
            .and(Kind::Page, probe.html.as_ref()),
        Command::Fit(fit) => {
            Files::of([fit.measurements.as_path()]).and(Kind::Toml, Some(&fit.output))
        }
        _ => Files::default(),
    }
}

fn input(input: &TraceInput) -> Files<'_> {
    Files::of([input.trace.as_path()])
}

fn trace_files(command: &TraceCommand) -> Files<'_> {
    let trace = Kind::Trace;
    match command {
        TraceCommand::Info(info) => input(&info.input).and(Kind::Page, info.html.as_ref()),
        TraceCommand::Convert(convert) => input(&convert.input).and(trace, Some(&convert.output)),
        TraceCommand::Generate(made) => Files::default().and(trace, made.output.as_ref()),
        TraceCommand::Imitate(made) => input(&made.input)
            .and(trace, made.output.as_ref())
            .and(Kind::Toml, made.save_recipe.as_ref()),
        TraceCommand::Slice(slice) => input(&slice.input).and(trace, Some(&slice.output)),
        TraceCommand::Remap(remap) => input(&remap.input).and(trace, Some(&remap.output)),
        TraceCommand::Scale(scale) => input(&scale.input).and(trace, Some(&scale.output)),
        TraceCommand::Host(host) => {
            Files::of([host.input.trace.as_path(), &host.stack]).and(trace, Some(&host.output))
        }
        TraceCommand::Merge(merge) => {
            Files::of(merge.traces.iter().map(PathBuf::as_path)).and(trace, Some(&merge.output))
        }
        TraceCommand::Anonymise(made) => input(&made.input).and(trace, Some(&made.output)),
    }
}

/// Refuses a command one of whose outputs would destroy something.
pub fn check(command: &Command, force: bool) -> anyhow::Result<()> {
    let files = files(command);
    let folders = files.placed.iter().filter_map(|path| path.parent());
    if let Some(folder) =
        folders.into_iter().find(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
    {
        let folder = folder.display();
        let hint = format!("make it first: mkdir -p '{folder}'");
        return Err(Advice::error(format!("{folder}: no such directory"), hint));
    }
    for (path, kind) in &files.outputs {
        if let Some(input) = files.inputs.iter().find(|input| is_same(input, path)) {
            return Err(Advice::error(
                format!("{}: the {} would replace its own input", path.display(), kind.name()),
                format!("write to another name than '{}'", input.display()),
            ));
        }
        if !force && !may_replace(path, *kind) {
            return Err(Advice::error(
                format!(
                    "{}: is there, and is no {} that wearmark made",
                    path.display(),
                    kind.name()
                ),
                "choose another name, or add --force to replace that file",
            ));
        }
    }
    Ok(())
}

/// Whether two paths name one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    identity(one).is_some_and(|found| Some(found) == identity(other))
}

/// Bytes that are looked at, at either end.
const LOOKED_AT: u64 = 64 << 10;

/// Whether nothing is lost by writing `path`: it is absent, empty, a device or pipe, or an older
/// output. What cannot be read cannot be judged, and is kept.
fn may_replace(path: &Path, kind: Kind) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return true };
    if !found.is_file() || found.len() == 0 {
        return true;
    }
    let ends = || -> std::io::Result<(String, String)> {
        let mut file = File::open(path)?;
        let mut text = |from: u64| -> std::io::Result<String> {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(from))?;
            file.by_ref().take(LOOKED_AT).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok((text(0)?, text(found.len().saturating_sub(LOOKED_AT))?))
    };
    ends().is_ok_and(|(head, tail)| kind.made(&head, &tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_kept(kind: Kind, text: &str, kept: bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, text).unwrap();
        assert_eq!(!may_replace(&path, kind), kept, "{kind:?}: {text}");
    }

    #[test]
    fn only_older_outputs_of_the_same_kind_are_replaced() {
        let page = report::html(&report::Page::default());
        check_kept(Kind::Page, &page, false);
        check_kept(Kind::Trace, &page, true);
        check_kept(Kind::Page, "<!doctype html><p>my thesis on wearmark", true);
        check_kept(Kind::Trace, "PAR1 somebody's table PAR1", true);
        check_kept(Kind::Toml, "[package]\nname = 'mine'\n", true);
        check_kept(Kind::Toml, profile::shipped()[0].1, false);
        check_kept(Kind::Runs, "", false);
        assert!(may_replace(Path::new("/dev/null"), Kind::Page));
        assert!(may_replace(Path::new("absent"), Kind::Page));
    }
}
