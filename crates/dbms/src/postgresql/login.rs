//! Proving who we are: MD5 and SCRAM-SHA-256 passwords (PostgreSQL 15 manual, chapter 55.3; RFC
//! 5802 and RFC 7677), without channel binding, which needs TLS.
//!
//! Pure: the server's texts come in, ours go out. Tested with RFC 7677's example and on a server.

use super::digest::{Sha256, base64, from_base64, hex, md5};

/// Most iterations that a server may ask for: 4096 is its default; more than this is no login but
/// a way to keep a client busy.
const ITERATIONS_MAX: u32 = 1 << 20;

/// The answer to AuthenticationMD5Password: MD5 of (MD5 of password and user) and salt.
pub(super) fn md5_answer(user: &str, password: &str, salt: [u8; 4]) -> String {
    let inner = hex(&md5(format!("{password}{user}").as_bytes()));
    let outer: Vec<u8> = inner.bytes().chain(salt).collect();
    format!("md5{}", hex(&md5(&outer)))
}

/// A SCRAM-SHA-256 exchange.
pub(super) struct Scram {
    password: String,
    nonce: String,
    sha: Sha256,
    /// What the server must prove that it knows.
    server_signature: Option<[u8; 32]>,
}

impl Scram {
    /// An exchange with a nonce that must not repeat.
    pub fn new(password: &str, nonce: String) -> Self {
        let password = password.to_owned();
        Self { password, nonce, sha: Sha256::new(), server_signature: None }
    }

    /// Our first message.
    pub fn first(&self) -> String {
        format!("n,,{}", self.first_bare())
    }

    /// PostgreSQL takes the user from the startup message and ignores this one.
    fn first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// Our second message, from the server's first; or why it cannot be one.
    pub fn second(&mut self, server_first: &str) -> Result<String, String> {
        let nonce = attribute(server_first, "r=").ok_or("no nonce in its first message")?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("its nonce does not continue ours".to_owned());
        }
        let salt = attribute(server_first, "s=").and_then(from_base64).ok_or("no salt")?;
        let iterations = attribute(server_first, "i=")
            .and_then(|text| text.parse().ok())
            .filter(|count| (1..=ITERATIONS_MAX).contains(count))
            .ok_or("no usable number of iterations")?;
        let salted = self.sha.pbkdf2(self.password.as_bytes(), &salt, iterations);
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{server_first},{without_proof}", self.first_bare());
        let client_key = self.sha.hmac(&salted, b"Client Key");
        let stored_key = self.sha.digest(&client_key);
        let signature = self.sha.hmac(&stored_key, signed.as_bytes());
        let mut proof = client_key;
        proof.iter_mut().zip(signature).for_each(|(proof, byte)| *proof ^= byte);
        let server_key = self.sha.hmac(&salted, b"Server Key");
        self.server_signature = Some(self.sha.hmac(&server_key, signed.as_bytes()));
        Ok(format!("{without_proof},p={}", base64(&proof)))
    }

    /// Whether the server's last message proves that it knows the password too.
    pub fn server_is_right(&self, server_final: &str) -> bool {
        let claimed = attribute(server_final, "v=").and_then(from_base64);
        match (&self.server_signature, claimed) {
            (Some(expected), Some(claimed)) => claimed == expected,
            _ => false,
        }
    }
}

fn attribute<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    message.split(',').find_map(|part| part.strip_prefix(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7677 section 3, but for the user name, which PostgreSQL leaves empty: so the proof is
    /// checked by what a server does with it, and the salted password by the RFC's iterations.
    #[test]
    fn a_server_that_knows_the_password_accepts_the_proof() {
        let mut scram = Scram::new("pencil", "rOprNGfwEbeRWgbNEkqO".to_owned());
        assert_eq!(scram.first(), "n,,n=,r=rOprNGfwEbeRWgbNEkqO");
        let server_first = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                            s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let second = scram.second(server_first).unwrap();
        let (signed, proof) = second.split_once(",p=").unwrap();
        // The server's side (RFC 5802 section 3) from the stored key alone.
        let sha = Sha256::new();
        let salted = sha.pbkdf2(b"pencil", &from_base64("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap(), 4096);
        let stored = sha.digest(&sha.hmac(&salted, b"Client Key"));
        let message = format!("n=,r=rOprNGfwEbeRWgbNEkqO,{server_first},{signed}");
        let signature = sha.hmac(&stored, message.as_bytes());
        let key: Vec<u8> =
            from_base64(proof).unwrap().iter().zip(signature).map(|(a, b)| a ^ b).collect();
        assert_eq!(sha.digest(&key), stored);
        let server_key = sha.hmac(&salted, b"Server Key");
        let right = format!("v={}", base64(&sha.hmac(&server_key, message.as_bytes())));
        assert!(scram.server_is_right(&right) && !scram.server_is_right("v=AAAA"));
    }

    #[test]
    fn a_server_that_does_not_continue_our_nonce_is_refused() {
        let mut scram = Scram::new("x", "abc".to_owned());
        for bad in
            ["", "r=abc,s=AAAA,i=1", "r=xyzabc,s=AAAA,i=1", "r=abcd,s=!,i=1", "r=abcd,s=AAAA"]
        {
            assert!(scram.second(bad).is_err(), "{bad}");
        }
        assert!(scram.second("r=abcd,s=AAAA,i=99999999").is_err());
        assert!(!scram.server_is_right("v=AAAA"));
    }

    #[test]
    fn md5_answers_are_salted() {
        let one = md5_answer("u", "p", [1, 2, 3, 4]);
        assert!(one.len() == 35 && one.starts_with("md5"));
        assert_ne!(one, md5_answer("u", "p", [1, 2, 3, 5]));
    }
}
