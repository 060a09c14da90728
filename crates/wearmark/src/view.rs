//! The live view: events drawn on the terminal.
//!
//! On a terminal one progress bar with the expected time left; elsewhere (pipes, logs) one plain
//! line whenever a stage starts, every ten seconds while it runs, and when it ends. The first
//! warning of a kind is always printed; those like it are counted, and told as one line at the end
//! (not when quiet). Everything goes to standard error, so that standard output stays the result.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use events::{Ending, Event, Sink, Warning};
use indicatif::{ProgressBar, ProgressStyle};
use serve::Metrics;

/// Set by the signal handler; every stage polls it through [`Sink::cancelled`].
pub static CANCELLED: AtomicBool = AtomicBool::new(false);

/// The live view on standard error.
pub struct View {
    bar: Option<ProgressBar>,
    quiet: bool,
    metrics: Option<Metrics>,
    state: Mutex<State>,
}

struct State {
    stage: String,
    last_line: Instant,
    warned: Vec<Warned>,
}

/// Warnings of one kind.
struct Warned {
    stage: String,
    code: String,
    /// Those after the first.
    more: u32,
}

impl View {
    /// Draws a bar where standard error is a terminal, lines elsewhere, nothing but warnings when
    /// `quiet`; offers the figures as `metrics` too.
    pub fn new(quiet: bool, metrics: Option<Metrics>) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = "{prefix:>9} {bar:30.cyan/dim} {percent:>3}%  {wide_msg}";
            let style = ProgressStyle::with_template(style).expect("the template is well formed");
            let bar = ProgressBar::new(1000).with_style(style.progress_chars("━━─"));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        let state = State { stage: String::new(), last_line: Instant::now(), warned: Vec::new() };
        Self { bar, quiet, metrics, state: Mutex::new(state) }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Whether a warning is the first of its kind; counts the others.
    fn is_news(&self, warning: &Warning) -> bool {
        let mut state = self.state.lock().expect("no panic while holding the lock");
        let same = |w: &&mut Warned| w.stage == warning.stage && w.code == warning.code;
        if let Some(known) = state.warned.iter_mut().find(same) {
            known.more += 1;
            return false;
        }
        let (stage, code) = (warning.stage.clone(), warning.code.clone());
        state.warned.push(Warned { stage, code, more: 0 });
        true
    }

    /// Tells how many warnings were like those printed, once.
    fn sum_up(&self) {
        let warned = {
            let mut state = self.state.lock().expect("no panic while holding the lock");
            std::mem::take(&mut state.warned)
        };
        for Warned { stage, code, more } in warned.iter().filter(|warned| warned.more > 0) {
            if !self.quiet {
                self.line(&format!("warning: {stage}: {more} more like it [{code}]"));
            }
        }
    }

    fn progress(&self, stage: &str, done: f64, doing: &str, eta_s: Option<f64>) {
        let left = eta_s.map(|eta| format!(", {} left", seconds(eta))).unwrap_or_default();
        if let Some(bar) = &self.bar {
            bar.set_prefix(stage.to_owned());
            bar.set_position((done * 1000.0) as u64);
            bar.set_message(format!("{doing}{left}"));
            return;
        }
        let mut state = self.state.lock().expect("no panic while holding the lock");
        let fresh = state.stage != stage;
        if fresh || state.last_line.elapsed() >= Duration::from_secs(10) {
            stage.clone_into(&mut state.stage);
            state.last_line = Instant::now();
            eprintln!("{stage:>9} {:3.0}%  {doing}{left}", done * 100.0);
        }
    }
}

impl Sink for View {
    fn emit(&self, event: Event) {
        if let Some(metrics) = &self.metrics {
            metrics.take(&event);
        }
        match event {
            Event::Warning(warning) if self.is_news(&warning) => {
                self.line(&warning_text(&warning));
            }
            Event::Warning(_) => {}
            _ if self.quiet => {}
            Event::Progress { stage, done, doing, eta_s } => {
                self.progress(&stage, done, &doing, eta_s);
            }
            Event::Done { stage, elapsed_s, ending } => {
                let how = match ending {
                    Ending::Complete => "done",
                    Ending::Interrupted => "stopped",
                    Ending::Failed => "failed",
                };
                self.line(&format!("{stage:>9} {how} in {}", seconds(elapsed_s)));
            }
            _ => {}
        }
    }

    fn cancelled(&self) -> bool {
        CANCELLED.load(Ordering::Relaxed)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.sum_up();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A warning as two lines for people.
pub fn warning_text(warning: &Warning) -> String {
    let hint = if warning.hint.is_empty() {
        String::new()
    } else {
        format!("\n   hint: {}", warning.hint)
    };
    format!("warning: {}: {} [{}]{hint}", warning.stage, warning.message, warning.code)
}

/// `48 s`, `3 min 20 s`.
pub fn seconds(value: f64) -> String {
    let whole = value.round().max(0.0) as u64;
    if value < 10.0 {
        format!("{value:.1} s")
    } else if whole < 120 {
        format!("{whole} s")
    } else {
        format!("{} min {} s", whole / 60, whole % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        assert_eq!(
            [0.04, 9.94, 48.2, 119.0, 200.0].map(seconds),
            ["0.0 s", "9.9 s", "48 s", "119 s", "3 min 20 s"]
        );
    }

    #[test]
    fn warnings_of_a_kind_are_told_once() {
        let view = View::new(true, None);
        let news = |stage: &str, code: &str| view.is_news(&Warning::new(stage, code, "x"));
        assert!(news("probe", "other_load") && !news("probe", "other_load"));
        assert!(news("replay", "other_load") && news("probe", "clock_step"));
        assert!(!news("probe", "other_load"));
        let more: Vec<u32> =
            view.state.lock().unwrap().warned.iter().map(|warned| warned.more).collect();
        assert_eq!(more, [2, 0, 0]);
    }

    #[test]
    fn a_warning_shows_its_code_and_its_hint() {
        let warning = Warning::new("probe", "foreign_load", "others used 40 % of the CPUs");
        let text = warning_text(&warning.with_hint("run it again on an idle machine"));
        assert_eq!(
            text,
            "warning: probe: others used 40 % of the CPUs [foreign_load]\n   hint: run it again on \
             an idle machine"
        );
    }
}
