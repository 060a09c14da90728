//! A small HTTP server: a few threads, and a look at who is named as host.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use tiny_http::{Header, Method, Request, Response, Server};

use crate::Error;

/// What is asked, as far as an answer depends on it.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Whether something is to change: POST. Otherwise it is GET.
    pub changes: bool,
    /// Without the query.
    pub path: String,
    /// What follows `?`, as it was sent.
    pub query: String,
    /// `Cookie`, as it was sent.
    pub cookie: String,
    /// `Origin`, where a page asks.
    pub origin: Option<String>,
}

impl Asked {
    fn of(request: &Request) -> Self {
        let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
        let header = |name: &'static str| {
            let found = request.headers().iter().find(|header| header.field.equiv(name));
            found.map(|header| header.value.as_str().to_owned())
        };
        Self {
            changes: *request.method() == Method::Post,
            path: path.to_owned(),
            query: query.to_owned(),
            cookie: header("Cookie").unwrap_or_default(),
            origin: header("Origin"),
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub content_type: &'static str,
    pub body: Vec<u8>,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
}

impl Reply {
    /// What was asked for.
    pub fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, content_type, body: body.into(), headers: Vec::new() }
    }

    /// A sentence.
    pub fn text(status: u16, body: &str) -> Self {
        Self { status, ..Self::new("text/plain; charset=utf-8", body) }
    }
}

/// A server that ends with this value.
pub(crate) struct Listener {
    address: SocketAddr,
    server: Arc<Server>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Listener {
    /// Answers with `count` threads, by what is made for the address that was taken.
    pub fn start<A: Fn(&Asked) -> Reply + Send + Sync + 'static>(
        address: SocketAddr,
        count: usize,
        make: impl FnOnce(SocketAddr) -> A,
    ) -> Result<Self, Error> {
        let fail = |cause: String| Error::Listen { address, cause };
        let server = Server::http(address).map_err(|error| fail(error.to_string()))?;
        let found = server.server_addr().to_ip();
        let address = found.ok_or_else(|| fail("not an IP socket".to_owned()))?;
        let (server, answer) = (Arc::new(server), Arc::new(make(address)));
        let threads = (0..count).map(|_| {
            let (server, answer) = (Arc::clone(&server), Arc::clone(&answer));
            std::thread::spawn(move || {
                for request in server.incoming_requests() {
                    let refused = refusal(&request, address.ip());
                    let reply = refused.unwrap_or_else(|| answer(&Asked::of(&request)));
                    respond(request, reply);
                }
            })
        });
        let threads = threads.collect();
        Ok(Self { address, server, threads })
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        for _ in &self.threads {
            self.server.unblock();
        }
        for thread in self.threads.drain(..) {
            // A panic there has been printed; the run's own result is not touched by it.
            _ = thread.join();
        }
    }
}

/// The refusal of a request that is not to be answered.
fn refusal(request: &Request, ip: IpAddr) -> Option<Reply> {
    let hosts: Vec<&str> = request
        .headers()
        .iter()
        .filter(|header| header.field.equiv("Host"))
        .map(|header| header.value.as_str())
        .collect();
    if ip.is_loopback() && !matches!(hosts.as_slice(), [host] if is_loopback(host)) {
        return Some(Reply::text(403, "ask for it as 127.0.0.1 or localhost\n"));
    }
    let known = [Method::Get, Method::Post].contains(request.method());
    (!known).then(|| Reply::text(405, "ask with GET or POST\n"))
}

/// Whether a Host header names this machine and nothing else.
fn is_loopback(host: &str) -> bool {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    let name = name.map_or(host, |(name, _)| name);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn respond(request: Request, reply: Reply) {
    let always = [
        ("Content-Type", reply.content_type),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    let own = reply.headers.iter().map(|(name, value)| (*name, value.as_str()));
    let mut response = Response::from_data(reply.body).with_status_code(reply.status);
    for (name, value) in always.into_iter().chain(own) {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    // Who has gone away is owed nothing.
    _ = request.respond(response);
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for host in ["127.0.0.1:9464", "127.0.0.1", "localhost", "LocalHost:80", "[::1]:9464"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["example.org", "example.org:9464", "127.0.0.1.example.org", "", "10.0.0.1:80"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
