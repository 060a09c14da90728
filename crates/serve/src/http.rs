//! A small HTTP server: one thread, requests that only read, and a look at who is named as host.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use tiny_http::{Header, Method, Request, Response, Server};

use crate::Error;

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub content_type: &'static str,
    pub body: String,
}

impl Reply {
    /// A sentence.
    pub fn text(status: u16, body: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: body.to_owned() }
    }
}

/// A server that ends with this value.
pub(crate) struct Listener {
    address: SocketAddr,
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Listener {
    /// Answers GET requests for paths.
    pub fn start(
        address: SocketAddr,
        answer: impl Fn(&str) -> Reply + Send + 'static,
    ) -> Result<Self, Error> {
        let fail = |cause: String| Error::Listen { address, cause };
        let server = Server::http(address).map_err(|error| fail(error.to_string()))?;
        let found = server.server_addr().to_ip();
        let address = found.ok_or_else(|| fail("not an IP socket".to_owned()))?;
        let server = Arc::new(server);
        let requests = Arc::clone(&server);
        let thread = std::thread::spawn(move || {
            for request in requests.incoming_requests() {
                let reply = check(&request, address.ip())
                    .unwrap_or_else(|| answer(request.url().split('?').next().unwrap_or_default()));
                respond(request, reply);
            }
        });
        Ok(Self { address, server, thread: Some(thread) })
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; the run's own result is not touched by it.
            _ = thread.join();
        }
    }
}

/// The refusal of a request that is not to be answered.
fn check(request: &Request, ip: IpAddr) -> Option<Reply> {
    let hosts: Vec<&str> = request
        .headers()
        .iter()
        .filter(|header| header.field.equiv("Host"))
        .map(|header| header.value.as_str())
        .collect();
    if ip.is_loopback() && !matches!(hosts.as_slice(), [host] if is_loopback(host)) {
        return Some(Reply::text(403, "ask for it as 127.0.0.1 or localhost\n"));
    }
    (*request.method() != Method::Get).then(|| Reply::text(405, "this can only be read\n"))
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
    let headers = [
        ("Content-Type", reply.content_type),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    let mut response = Response::from_string(reply.body).with_status_code(reply.status);
    for (name, value) in headers {
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
