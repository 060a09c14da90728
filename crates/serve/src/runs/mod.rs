//! A directory of runs, for a browser: a table to filter and compare, what is under way as it goes
//! on, studies to start and to stop.
//!
//! | path | answer |
//! |---|---|
//! | `/` and its script and style | the page |
//! | `/api/runs` | rows of the table, what may be started, what was started |
//! | `/api/events/RUN?from=BYTE` | what a run said since |
//! | `/api/compare?old=RUN&new=RUN` | the rows and the verdict of `wearmark compare` |
//! | POST `/api/start?study=NAME`, `/api/stop?id=PROCESS` | begins and ends studies |
//! | `/run/RUN/FILE` | a file of a run, such as its report |
//!
//! Only a loopback address is served, and only who has the key ([`guard`]). No page asks anything
//! of another machine, and its policy forbids it to.

mod guard;
mod jobs;
mod list;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use formats::Stop;
use serde::Serialize;
use serde_json::json;
use study::checks::{headline, read, rows};
use study::verdict::{compare, whole};

use crate::Error;
use crate::http::{Asked, Listener, Reply};
use guard::Guard;
use jobs::Jobs;

const JSON: &str = "application/json; charset=utf-8";
/// What a page may do: its own script and style, the simulator within reports, and to ask here.
const POLICY: &str = "default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; \
                      style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";
/// A report may come from elsewhere: its scripts run in an origin of their own, which has no cookie
/// and may change nothing.
const SANDBOX: &str = "; sandbox allow-scripts allow-downloads allow-popups";
/// Change of a median beyond which it is one, as in `wearmark compare`.
const BOUND: f64 = 0.05;
/// A comparison takes a moment; the table is answered meanwhile.
const THREADS: usize = 4;

/// A server of a directory of runs; ends with this value.
#[derive(Debug)]
pub struct Runs {
    _listener: Listener,
    url: String,
}

/// What answers are made of.
#[derive(Debug)]
struct Desk {
    runs: PathBuf,
    jobs: Jobs,
    stop: &'static AtomicBool,
}

impl Runs {
    /// Begins to serve the runs in a directory, which need not exist yet. Studies are looked for
    /// in `place` and started by `program`; `stop` ends what takes long.
    ///
    /// # Errors
    /// An address that other machines reach, or at which nothing can listen.
    pub fn listen(
        address: SocketAddr,
        (runs, place): (PathBuf, PathBuf),
        program: PathBuf,
        stop: &'static AtomicBool,
    ) -> Result<Self, Error> {
        if !address.ip().is_loopback() {
            return Err(Error::NotLoopback { address });
        }
        let key = Guard::make_key()?;
        let desk = Desk { jobs: Jobs::new(program, place, runs.clone()), runs, stop };
        let own = key.clone();
        let listener = Listener::start(address, THREADS, |address| {
            let guard = Guard::new(address, own);
            move |asked: &Asked| guard.answer(asked).unwrap_or_else(|| desk.answer(asked))
        })?;
        let address = listener.address();
        let url = format!("http://{address}/?key={key}");
        Ok(Self { _listener: listener, url })
    }

    /// What a browser opens, with the key in it.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Values of a query. Names of runs and studies hold what a file name may.
fn values(query: &str) -> BTreeMap<String, String> {
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

impl Desk {
    fn answer(&self, asked: &Asked) -> Reply {
        let query = values(&asked.query);
        let get = |name: &str| query.get(name).map_or("", String::as_str);
        match (asked.changes, asked.path.as_str()) {
            (true, "/api/start") => changed(self.jobs.start(get("study"))),
            (true, "/api/stop") => {
                let id = get("id").parse().map_err(|_| "no such process".to_owned());
                changed(id.and_then(|id| self.jobs.stop(id)))
            }
            (true, _) => Reply::text(405, "this can only be read\n"),
            (_, "/") => page(POLICY.to_owned(), include_bytes!("../../assets/runs.html")),
            (_, "/runs.css") => {
                Reply::new("text/css; charset=utf-8", include_bytes!("../../assets/runs.css"))
            }
            (_, "/runs.js") => {
                let kind = "text/javascript; charset=utf-8";
                Reply::new(kind, include_bytes!("../../assets/runs.js"))
            }
            (_, "/api/runs") => self.table(),
            (_, "/api/compare") => self.compared(get("old"), get("new")),
            (_, path) => {
                if let Some(run) = path.strip_prefix("/api/events/") {
                    self.events(&decoded(run), get("from"))
                } else if let Some(rest) = path.strip_prefix("/run/") {
                    self.file(rest)
                } else {
                    Reply::text(404, "nothing is here\n")
                }
            }
        }
    }

    fn table(&self) -> Reply {
        let found = match list::list(&self.runs) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Reply::text(500, &format!("{}: {error}\n", self.runs.display())),
            Ok(found) => found,
        };
        let place = self.runs.display().to_string();
        json(&json!({
            "place": place, "runs": found, "studies": self.jobs.offers(), "jobs": self.jobs.list(),
        }))
    }

    fn compared(&self, old: &str, new: &str) -> Reply {
        let find = |name| list::find(&self.runs, name).filter(|path| list::has_figures(path));
        let (Some(before), Some(after)) = (find(old), find(new)) else {
            return Reply::text(404, "both must be runs with figures\n");
        };
        match read(&before, &after, Stop::on(self.stop)) {
            Ok((before, after)) => {
                let figures = compare(&before, &after, BOUND);
                json(&json!({
                    "old": old, "new": new, "kind": before.kind, "verdict": whole(&figures),
                    "headline": headline(&figures, BOUND), "rows": rows(&figures),
                    "verdicts": figures.iter().map(|figure| figure.verdict).collect::<Vec<_>>(),
                }))
            }
            Err(error) => Reply::text(409, &format!("{error}\n")),
        }
    }

    fn events(&self, run: &str, from: &str) -> Reply {
        let Some(path) = list::find(&self.runs, run) else {
            return Reply::text(404, "no such run\n");
        };
        match list::events(&path, from.parse().unwrap_or(0)) {
            Ok((text, next)) => {
                let headers = vec![("X-Next", next.to_string())];
                Reply { headers, ..Reply::new("application/x-ndjson; charset=utf-8", text) }
            }
            Err(error) => Reply::text(500, &format!("{error}\n")),
        }
    }

    /// A file of a run, by `RUN/FILE`.
    fn file(&self, name: &str) -> Reply {
        let none = || Reply::text(404, "no such file\n");
        let Some((run, file)) = name.split_once('/') else { return none() };
        let path = list::find(&self.runs, &decoded(run));
        let Some(path) = path.and_then(|run| list::find(&run, &decoded(file))) else {
            return none();
        };
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or("");
        let kind = match end {
            "html" => {
                let policy = format!("{POLICY}{SANDBOX}");
                return std::fs::read(&path).map_or_else(|_| none(), |body| page(policy, body));
            }
            "json" => JSON,
            "toml" | "jsonl" | "csv" | "log" => "text/plain; charset=utf-8",
            "parquet" => "application/octet-stream",
            _ => return none(),
        };
        std::fs::read(&path).map_or_else(|_| none(), |bytes| Reply::new(kind, bytes))
    }
}

/// A name as it was before it became part of an address.
fn decoded(name: &str) -> String {
    percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned()
}

fn page(policy: String, body: impl Into<Vec<u8>>) -> Reply {
    let referrer = ("Referrer-Policy", "no-referrer".to_owned());
    let headers = vec![("Content-Security-Policy", policy), referrer];
    Reply { headers, ..Reply::new("text/html; charset=utf-8", body) }
}

fn json(value: &impl Serialize) -> Reply {
    match serde_json::to_vec(value) {
        Ok(body) => Reply::new(JSON, body),
        Err(error) => Reply::text(500, &format!("{error}\n")),
    }
}

/// What a change led to.
fn changed<T: Serialize>(found: Result<T, String>) -> Reply {
    match found {
        Ok(value) => json(&value),
        Err(cause) => Reply::text(409, &format!("{cause}\n")),
    }
}
