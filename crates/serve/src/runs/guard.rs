//! Who may ask: the one who was told the key.
//!
//! The key is in the address that the command prints. The first visit turns it into a cookie that
//! no script reads and no other site sends; what changes something must also come from this page.

use std::net::SocketAddr;

use subtle::ConstantTimeEq;

use crate::Error;
use crate::http::{Asked, Reply};

/// A key and where it opens.
#[derive(Debug)]
pub(super) struct Guard {
    key: String,
    /// Cookies are shared by all ports of a host: the name tells them apart.
    cookie: String,
    port: u16,
}

impl Guard {
    pub fn new(address: SocketAddr, key: String) -> Self {
        let port = address.port();
        Self { key, cookie: format!("wearmark-{port}"), port }
    }

    /// A key that nobody guesses: 128 random bits.
    pub fn make_key() -> Result<String, Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| Error::NoKey { cause: error.to_string() })?;
        Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
    }

    /// The answer to somebody who may not ask, or who is to be let in; none where it may go on.
    pub fn answer(&self, asked: &Asked) -> Option<Reply> {
        // The key leaves the address bar, whoever has the cookie already.
        if asked.query.strip_prefix("key=").is_some_and(|key| self.opens(key)) && !asked.changes {
            let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie, self.key);
            let headers = vec![("Location", "/".to_owned()), ("Set-Cookie", cookie)];
            return Some(Reply { headers, ..Reply::text(303, "") });
        }
        let own = asked.cookie.split(';').filter_map(|pair| pair.trim().split_once('='));
        let mut keys = own.filter(|(name, _)| *name == self.cookie).map(|(_, key)| key);
        if keys.any(|key| self.opens(key)) {
            let foreign = asked.changes && !self.is_own(asked.origin.as_deref());
            return foreign.then(|| Reply::text(403, "only the page itself may ask for that\n"));
        }
        Some(Reply::text(401, "open the whole address that 'wearmark serve' printed\n"))
    }

    fn opens(&self, key: &str) -> bool {
        key.as_bytes().ct_eq(self.key.as_bytes()).into()
    }

    /// Whether a page of ours asks. A browser names the origin of whatever sends a POST.
    fn is_own(&self, origin: Option<&str>) -> bool {
        let names = ["127.0.0.1", "localhost", "[::1]"];
        names.iter().any(|name| origin == Some(&format!("http://{name}:{}", self.port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard::new("127.0.0.1:8177".parse().unwrap(), "5ec2e7".to_owned())
    }

    fn status(asked: &Asked) -> Option<u16> {
        guard().answer(asked).map(|reply| reply.status)
    }

    #[test]
    fn the_key_lets_in_and_the_cookie_keeps_open() {
        let asked = Asked { query: "key=5ec2e7".to_owned(), ..Asked::default() };
        let reply = guard().answer(&asked).unwrap();
        assert_eq!(reply.status, 303);
        let cookie = &reply.headers.iter().find(|(name, _)| *name == "Set-Cookie").unwrap().1;
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        let kept = cookie.split(';').next().unwrap().to_owned();
        assert_eq!(status(&Asked { cookie: format!("other=1; {kept}"), ..Asked::default() }), None);
    }

    #[test]
    fn nobody_else_is_answered() {
        for (query, cookie) in [
            ("", ""),
            ("key=", ""),
            ("key=5ec2e8", ""),
            ("key=5ec2e7x", ""),
            ("", "wearmark-8177=5ec2e8"),
            ("", "wearmark-8178=5ec2e7"),
        ] {
            let asked =
                Asked { query: query.to_owned(), cookie: cookie.to_owned(), ..Asked::default() };
            assert_eq!(status(&asked), Some(401), "{query} {cookie}");
        }
    }

    #[test]
    fn only_the_page_itself_may_change_something() {
        let ask = |origin: Option<&str>| {
            status(&Asked {
                changes: true,
                cookie: "wearmark-8177=5ec2e7".to_owned(),
                origin: origin.map(str::to_owned),
                ..Asked::default()
            })
        };
        assert_eq!(ask(Some("http://127.0.0.1:8177")), None);
        assert_eq!(ask(Some("http://localhost:8177")), None);
        for origin in [None, Some("null"), Some("http://127.0.0.1:8178"), Some("http://a.example")]
        {
            assert_eq!(ask(origin), Some(403), "{origin:?}");
        }
    }

    #[test]
    fn keys_differ() {
        let [one, other] = [(); 2].map(|()| Guard::make_key().unwrap());
        assert!(one.len() == 32 && one != other, "{one} {other}");
    }
}
