//! Runs of an old and a new state, made in turns until there is a verdict.
//!
//! Old, new, new, old: what drifts meanwhile meets both alike. Each run is a file of its own, so
//! that a repetition that was stopped goes on where it was.
//!
//! Who looks after every pair and stops at the first verdict finds one too often. So there are few
//! looks, after numbers of pairs that grow by half, and each has an equal part of the error of 5 %
//! (Bonferroni): with six looks, intervals are of 99.2 %.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use events::{Ending, Event, Sink, Step};
use formats::Stop;
use rustix::process::{Pid, Signal, kill_process_group};
use stats::bootstrap::CONFIDENCE;

use super::read::{one, same_kind};
use crate::Error;
use crate::verdict::{Compared, RUNS_MIN, Side, Whole, compare_at, whole};

/// Names the file that a command writes its result to.
const RESULT_VARIABLE: &str = "WEARMARK_RESULT";

const STAGE: &str = "compare";
/// Pace of looking whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a command may take to stop once it was asked to.
const STOP_BOUND: Duration = Duration::from_secs(30);

/// What is run, and until when.
#[derive(Clone, Copy, Debug)]
pub struct Repeat<'a> {
    /// Commands for the shell: of the old state, and of the new one.
    pub commands: [&'a str; 2],
    /// Directories that keep the results of each.
    pub directories: [&'a Path; 2],
    /// Most pairs of runs.
    pub most: u32,
    /// Share by which a figure may worsen.
    pub bound: f64,
    /// Ends the reading of a result.
    pub stop: Stop,
}

/// What that came to.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// What the figures are of.
    pub kind: String,
    /// The figures, empty where no pair was finished.
    pub compared: Vec<Compared>,
    /// Pairs that they rest on.
    pub pairs: u32,
    /// How often their intervals hold the true value.
    pub confidence: f64,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

/// Runs both commands in turns until the figures that decide are proven one way or the other.
///
/// # Errors
/// A directory that cannot be written to; one and the same for both; a command that fails or leaves
/// no result; results of different kinds.
pub fn repeat(asked: &Repeat<'_>, sink: &dyn Sink) -> Result<Repeated, Error> {
    // Commands may work in a directory of their own: the result's path holds anywhere.
    let absolute = |directory: &Path| {
        fs::create_dir_all(directory).map_err(Error::io(directory, "create"))?;
        directory.canonicalize().map_err(Error::io(directory, "find"))
    };
    let directories = [absolute(asked.directories[0])?, absolute(asked.directories[1])?];
    if directories[0] == directories[1] {
        return Err(Error::OneDirectory { path: asked.directories[0].to_owned() });
    }
    let started = Instant::now();
    let expected_s = 0.0;
    let step = |pair| Step { name: format!("pair {pair}"), expected_s, writes_bytes: 0 };
    sink.emit(Event::Plan { stage: STAGE.to_owned(), steps: (1..=asked.most).map(step).collect() });
    let found = pairs(asked, &directories, sink);
    let ending = match &found {
        Ok(Repeated { interrupted: true, .. }) => Ending::Interrupted,
        Ok(_) => Ending::Complete,
        Err(_) => Ending::Failed,
    };
    let elapsed_s = started.elapsed().as_secs_f64();
    sink.emit(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    found
}

fn pairs(
    asked: &Repeat<'_>,
    directories: &[PathBuf; 2],
    sink: &dyn Sink,
) -> Result<Repeated, Error> {
    let looks = looks(asked.most);
    let confidence = 1.0 - (1.0 - CONFIDENCE) / looks.len().max(1) as f64;
    let mut sides: [Option<Side>; 2] = [None, None];
    let mut found = Repeated {
        kind: String::new(),
        compared: Vec::new(),
        pairs: 0,
        confidence,
        interrupted: false,
    };
    for pair in 1..=asked.most {
        let order = if pair % 2 == 1 { [0, 1] } else { [1, 0] };
        let mut both: [Option<Side>; 2] = [None, None];
        for at in order {
            let path = directories[at].join(format!("pair-{pair:03}.json"));
            tell(asked, pair, at, sink);
            if !path.exists() && !run(asked.commands[at], &path, sink)? {
                found.interrupted = true;
            }
            if found.interrupted {
                break;
            }
            both[at] = Some(one(&path, asked.stop)?);
        }
        // A pair that was cut short would stand beside nothing.
        if let [Some(old), Some(new)] = both {
            same_kind(&old, &new)?;
            found.kind.clone_from(&old.kind);
            found.pairs = pair;
            for (side, more) in sides.iter_mut().zip([old, new]) {
                match side {
                    Some(side) => side.extend(more),
                    None => *side = Some(more),
                }
            }
        }
        let is_last = found.interrupted || pair == asked.most;
        if let [Some(old), Some(new)] = &sides
            && (is_last || looks.contains(&pair))
        {
            found.compared = compare_at(confidence, old, new, asked.bound);
            if whole(&found.compared) != Whole::NoVerdict {
                break;
            }
        }
        if found.interrupted {
            break;
        }
    }
    Ok(found)
}

/// Numbers of pairs after which it is looked whether there is a verdict.
fn looks(most: u32) -> Vec<u32> {
    let mut looks = Vec::new();
    let mut next = RUNS_MIN as u32;
    while next < most {
        looks.push(next);
        next += next.div_ceil(2);
    }
    looks.push(most);
    looks
}

fn tell(asked: &Repeat<'_>, pair: u32, at: usize, sink: &dyn Sink) {
    let which = ["old", "new"][at];
    sink.emit(Event::Progress {
        stage: STAGE.to_owned(),
        done: f64::from(pair - 1) / f64::from(asked.most.max(1)),
        doing: format!("pair {pair} of at most {}: {which}", asked.most),
        eta_s: None,
    });
}

/// A command and everything that it starts, in a process group of its own.
struct Group(Child);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(id) = Pid::from_raw(self.0.id() as i32) {
            _ = kill_process_group(id, signal);
        }
    }

    /// Asks all to stop, and ends what is left after a bound.
    fn stop(&mut self) -> std::io::Result<()> {
        self.signal(Signal::INT);
        let asked = Instant::now();
        while self.0.try_wait()?.is_none() && asked.elapsed() < STOP_BOUND {
            std::thread::sleep(LOOK_EVERY);
        }
        self.signal(Signal::KILL);
        self.0.wait()?;
        Ok(())
    }
}

/// Runs a command whose result then lies in `to`; `false` where the user stopped it. A result that
/// is being written has another name.
fn run(command: &str, to: &Path, sink: &dyn Sink) -> Result<bool, Error> {
    let (part, said) = (to.with_extension("part"), to.with_extension("err"));
    let remove = |path: &PathBuf| _ = fs::remove_file(path);
    remove(&part);
    let file = File::create(&said).map_err(Error::io(&said, "create"))?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).env(RESULT_VARIABLE, &part).process_group(0);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let mut group = Group(shell.spawn().map_err(Error::io("sh", "start"))?);
    let status = loop {
        if let Some(status) = group.0.try_wait().map_err(Error::io("sh", "wait for"))? {
            break status;
        }
        if sink.cancelled() {
            group.stop().map_err(Error::io("sh", "stop"))?;
            remove(&part);
            remove(&said);
            return Ok(false);
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let text = fs::read_to_string(&said).unwrap_or_default();
    remove(&said);
    let failed = |cause: String| Error::Repeated { command: events::one_line(command), cause };
    if !status.success() {
        remove(&part);
        let last = text.lines().rfind(|line| !line.starts_with("hint:")).unwrap_or("nothing");
        return Err(failed(format!("{status}; it said: {}", events::one_line(last))));
    }
    if !part.exists() {
        return Err(failed(format!("it left no file at ${RESULT_VARIABLE}")));
    }
    fs::rename(&part, to).map_err(Error::io(to, "create"))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use events::Quiet;

    use super::super::fixtures::probe;
    use super::*;
    use crate::verdict::Verdict;

    /// A command that notes that it ran, and leaves a result with this rate of requests.
    fn command(directory: &Path, name: &str, iops: f64) -> String {
        let script = directory.join(format!("{name}.sh"));
        let text = format!(
            "echo {name} >> {0}/order\n\
             cat > \"$WEARMARK_RESULT\" <<END\n{1}\nEND\n",
            directory.display(),
            // Without windows only runs tell how it scatters.
            probe(iops, 0)
        );
        fs::write(&script, text).unwrap();
        format!("sh {}", script.display())
    }

    fn asked<'a>(
        commands: &'a [String; 2],
        directories: &'a [PathBuf; 2],
        most: u32,
    ) -> Repeat<'a> {
        Repeat {
            commands: [&commands[0], &commands[1]],
            directories: [&directories[0], &directories[1]],
            most,
            bound: 0.05,
            stop: Stop::default(),
        }
    }

    #[test]
    fn runs_alternate_until_a_verdict_and_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let commands = [command(dir.path(), "one", 1000.0), command(dir.path(), "two", 700.0)];
        let directories = ["a", "b"].map(|name| dir.path().join(name));
        let found = repeat(&asked(&commands, &directories, 20), &Quiet).unwrap();
        assert_eq!((found.pairs, found.compared[0].verdict), (3, Verdict::Regressed), "{found:?}");
        assert!((found.confidence - (1.0 - 0.05 / 6.0)).abs() < 1e-12, "{}", found.confidence);
        let order = fs::read_to_string(dir.path().join("order")).unwrap();
        assert_eq!(order, "one\ntwo\ntwo\none\none\ntwo\n");
        // What is there is not run again, and what is missing is.
        fs::remove_file(directories[1].join("pair-002.json")).unwrap();
        let again = repeat(&asked(&commands, &directories, 20), &Quiet).unwrap();
        assert_eq!(again.compared, found.compared);
        let order = fs::read_to_string(dir.path().join("order")).unwrap();
        assert_eq!(order, "one\ntwo\ntwo\none\none\ntwo\ntwo\n");
        let same = [commands[0].clone(), commands[0].clone()];
        let directories = ["c", "d"].map(|name| dir.path().join(name));
        let found = repeat(&asked(&same, &directories, 2), &Quiet).unwrap();
        assert_eq!((found.pairs, whole(&found.compared)), (2, Whole::NoVerdict));
        let found = repeat(&asked(&same, &directories, 9), &Quiet).unwrap();
        assert_eq!((found.pairs, whole(&found.compared)), (3, Whole::NoRegression));
    }

    #[test]
    fn a_command_that_fails_or_leaves_nothing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let directories = ["a", "b"].map(|name| dir.path().join(name));
        let told = |command: &str| {
            let commands = [command.to_owned(), command.to_owned()];
            repeat(&asked(&commands, &directories, 3), &Quiet).unwrap_err().to_string()
        };
        let failed = told("echo started >&2; echo error: no disk >&2; echo hint: x >&2; exit 2");
        assert!(failed.ends_with("exit status: 2; it said: error: no disk"), "{failed}");
        assert!(told("true").ends_with("it left no file at $WEARMARK_RESULT"));
        assert!(fs::read_dir(&directories[0]).unwrap().next().is_none());
    }

    /// Stopped at once.
    struct Stopped(AtomicBool);

    impl Sink for Stopped {
        fn emit(&self, _event: Event) {}

        fn cancelled(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_stop_ends_what_runs_and_keeps_what_was_done() {
        let dir = tempfile::tempdir().unwrap();
        let sleeps = format!("echo $$ > {}/pid; sleep 600; true", dir.path().display());
        let commands = [command(dir.path(), "one", 1000.0), sleeps];
        let directories = ["a", "b"].map(|name| dir.path().join(name));
        let sink = Stopped(AtomicBool::new(false));
        let pid = dir.path().join("pid");
        let found = std::thread::scope(|scope| {
            let running = scope.spawn(|| repeat(&asked(&commands, &directories, 5), &sink));
            while fs::read_to_string(&pid).unwrap_or_default().trim().is_empty() {
                std::thread::sleep(LOOK_EVERY);
            }
            sink.0.store(true, Ordering::Relaxed);
            running.join().unwrap().unwrap()
        });
        assert!(found.interrupted && found.pairs == 0 && found.compared.is_empty());
        let pid = fs::read_to_string(&pid).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} still runs");
        let kept = |at: usize| fs::read_dir(&directories[at]).unwrap().count();
        assert_eq!((kept(0), kept(1)), (1, 0));
    }

    #[test]
    fn looks_grow_by_half_and_end_at_the_last_pair() {
        assert_eq!(looks(20), [3, 5, 8, 12, 18, 20]);
        assert_eq!((looks(3), looks(1)), (vec![3], vec![1]));
    }
}
