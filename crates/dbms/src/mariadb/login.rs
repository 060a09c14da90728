//! The handshake (MariaDB knowledge base, "Connection"): what the server offers, what we answer,
//! how a password is proved.
//!
//! No plugin but those over TLS or a unix socket makes the server prove anything: who does not
//! verify its certificate does not know whom he talks to. What is kept: a password never travels
//! unencrypted over TCP, whatever plugin the server switches to.

use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::answer::capability as bit;
use super::fields::{Fields, malformed};
use crate::{Error, Login};

/// utf8mb4_general_ci: what texts of statements and of messages are in.
const CHARACTER_SET: u8 = 45;

/// Longest packet that we say we take, bytes.
const PACKET_MAX: u32 = 1 << 30;

/// Capabilities that we use where the server has them.
const WANTED: u64 = bit::FOUND_ROWS
    | bit::LONG_FLAG
    | bit::CONNECT_WITH_DB
    | bit::LOCAL_FILES
    | bit::PROTOCOL_41
    | bit::TRANSACTIONS
    | bit::SECURE_CONNECTION
    | bit::MULTI_STATEMENTS
    | bit::MULTI_RESULTS
    | bit::PS_MULTI_RESULTS
    | bit::PLUGIN_AUTH
    | bit::DEPRECATE_EOF
    | bit::BULK
    | bit::CACHE_METADATA;

/// Capabilities that we require.
const NEEDED: u64 = bit::PROTOCOL_41 | bit::SECURE_CONNECTION | bit::PLUGIN_AUTH;

/// The server's greeting.
#[derive(Debug)]
pub(super) struct Greeting {
    pub version: String,
    pub connection: u32,
    /// Capabilities of both sides.
    pub capabilities: u64,
    /// Whether the server offers TLS.
    pub tls: bool,
    plugin: String,
    challenge: Vec<u8>,
}

impl Greeting {
    pub fn parse(packet: &[u8]) -> Result<Self, Error> {
        if packet.first() == Some(&0xff) {
            return Err(super::answer::refusal(packet));
        }
        let mut fields = Fields::new(packet);
        if fields.u8()? != 10 {
            return Err(malformed("a greeting of another protocol than MariaDB's"));
        }
        let text = |bytes: &[u8]| events::one_line(&String::from_utf8_lossy(bytes));
        // Old replication clients took the first digit for the major version.
        let version = text(fields.until_zero());
        let version = version.strip_prefix("5.5.5-").unwrap_or(&version).to_owned();
        let connection = fields.u32()?;
        let mut challenge = fields.bytes(8)?.to_vec();
        fields.u8()?;
        let low = u64::from(fields.u16()?);
        fields.bytes(1 + 2)?;
        let high = u64::from(fields.u16()?);
        let challenge_len = usize::from(fields.u8()?);
        fields.bytes(6)?;
        let extended = u64::from(fields.u32()?);
        let mut capabilities = low | high << 16;
        if capabilities & bit::CLIENT_MYSQL == 0 {
            capabilities |= extended << 32;
        }
        let more = challenge_len.saturating_sub(9).max(12).min(fields.rest().len());
        challenge.extend_from_slice(fields.bytes(more)?);
        // A zero byte ends the challenge.
        fields.until_zero();
        let plugin = text(fields.until_zero());
        if capabilities & NEEDED != NEEDED {
            return Err(malformed("a server older than the protocol of MySQL 5.5"));
        }
        let tls = capabilities & bit::SSL != 0;
        let capabilities = capabilities & WANTED;
        let plugin = if plugin.is_empty() { NATIVE.to_owned() } else { plugin };
        Ok(Self { version, connection, capabilities, tls, plugin, challenge })
    }

    /// Capabilities of this connection.
    fn agreed(&self, login: &Login, tls: bool) -> u64 {
        let mut capabilities = self.capabilities;
        if login.database.is_empty() {
            capabilities &= !bit::CONNECT_WITH_DB;
        }
        if tls { capabilities | bit::SSL } else { capabilities }
    }

    /// The head of an answer; by itself the request to go on in TLS.
    pub fn head(&self, login: &Login, tls: bool, output: &mut Vec<u8>) {
        let capabilities = self.agreed(login, tls);
        output.extend_from_slice(&(capabilities as u32).to_le_bytes());
        output.extend_from_slice(&PACKET_MAX.to_le_bytes());
        output.push(CHARACTER_SET);
        output.extend_from_slice(&[0; 19]);
        output.extend_from_slice(&((capabilities >> 32) as u32).to_le_bytes());
    }

    /// Our answer.
    pub fn answer(&self, login: &Login, tls: bool, proof: &[u8], output: &mut Vec<u8>) {
        self.head(login, tls, output);
        push_zero_ended(output, login.user.as_bytes());
        output.push(proof.len() as u8);
        output.extend_from_slice(proof);
        if self.agreed(login, tls) & bit::CONNECT_WITH_DB != 0 {
            push_zero_ended(output, login.database.as_bytes());
        }
        push_zero_ended(output, self.plugin.as_bytes());
    }
}

const NATIVE: &str = "mysql_native_password";
const CACHING: &str = "caching_sha2_password";
const CLEAR: &str = "mysql_clear_password";

fn push_zero_ended(output: &mut Vec<u8>, text: &[u8]) {
    output.extend_from_slice(text);
    output.push(0);
}

/// A login under way.
pub(super) struct Authentication<'a> {
    login: &'a Login,
    /// Whether the password may be sent as it is.
    private: bool,
    /// The plugin of the round.
    plugin: String,
}

impl<'a> Authentication<'a> {
    /// A login over a stream that is private, or is not.
    pub fn new(login: &'a Login, private: bool) -> Self {
        Self { login, private, plugin: String::new() }
    }

    /// The first response, to the plugin of the greeting.
    pub fn first(&mut self, greeting: &Greeting) -> Vec<u8> {
        self.plugin.clone_from(&greeting.plugin);
        // A plugin that we do not have, or may not use, may be the server's default only: it then
        // asks for the account's own. 255 bytes are the most that this packet has room for.
        let proof = self.proof(&greeting.challenge).unwrap_or_default();
        if proof.len() < 256 { proof } else { Vec::new() }
    }

    /// The response to a request for another plugin (0xfe).
    pub fn switched(&mut self, packet: &[u8]) -> Result<Vec<u8>, Error> {
        let mut fields = Fields::new(packet);
        fields.u8()?;
        self.plugin = events::one_line(&String::from_utf8_lossy(fields.until_zero()));
        let challenge = fields.rest();
        self.proof(challenge.strip_suffix(&[0]).unwrap_or(challenge))
    }

    /// The response to a plugin's own message (0x01); nothing where it only tells.
    pub fn more(&self, packet: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        match (self.plugin.as_str(), packet) {
            // The server has the hash in its cache.
            (CACHING, [1, 3]) => Ok(None),
            // It has not, and needs the password itself. What MySQL offers besides, RSA with a key
            // that comes over the same wire, stops nobody who sits in the middle.
            (CACHING, [1, 4]) => self.cleartext().map(Some),
            _ => Err(malformed("a message of a login plugin that is not its turn")),
        }
    }

    fn password(&self) -> &'a str {
        self.login.password.as_deref().unwrap_or_default()
    }

    fn cleartext(&self) -> Result<Vec<u8>, Error> {
        if !self.private {
            return Err(self.login.cleartext());
        }
        Ok([self.password().as_bytes(), &[0]].concat())
    }

    /// The response of the plugin to a challenge.
    fn proof(&self, challenge: &[u8]) -> Result<Vec<u8>, Error> {
        match self.plugin.as_str() {
            // The socket tells the server the user by itself.
            "unix_socket" | "auth_socket" => Ok(Vec::new()),
            NATIVE => Ok(native(self.password(), challenge)),
            CACHING => Ok(caching(self.password(), challenge)),
            "client_ed25519" => Ok(ed25519(self.password(), challenge)),
            CLEAR => self.cleartext(),
            other => Err(Error::Login {
                user: self.login.user.clone(),
                why: format!("the server asks for the plugin '{other}', which is not supported"),
            }),
        }
    }
}

/// SHA1(password) xor SHA1(challenge, SHA1(SHA1(password))); nothing for no password.
fn native(password: &str, challenge: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password);
    let mask = Sha1::new().chain_update(challenge).chain_update(Sha1::digest(once)).finalize();
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// SHA256(password) xor SHA256(SHA256(SHA256(password)), challenge); nothing for no password
/// (MySQL 8.4 manual, "Caching SHA-2 Pluggable Authentication").
fn caching(password: &str, challenge: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let mask = Sha256::new().chain_update(twice).chain_update(challenge).finalize();
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// The challenge signed with the key that SHA512(password) is the expansion of (MariaDB knowledge
/// base, "Authentication Plugin - ed25519").
fn ed25519(password: &str, challenge: &[u8]) -> Vec<u8> {
    let expanded: [u8; 64] = Sha512::digest(password).into();
    let key = ExpandedSecretKey::from_bytes(&expanded);
    raw_sign::<Sha512>(&key, challenge, &(&key).into()).to_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;

    fn hex(bytes: &[u8]) -> String {
        let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap();
        bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    fn login() -> Login {
        let address = Address::Tcp { host: "h".to_owned(), port: 1 };
        Login { password: Some("geheim".to_owned()), ..Login::new(address, "u", "d") }
    }

    /// The server's side of each: it knows only what it stores.
    #[test]
    fn responses_are_what_a_server_checks_them_with() {
        let challenge = b"12345678abcdefghijkl";
        // mysql.user stores SHA1(SHA1(password)).
        let stored = Sha1::digest(Sha1::digest("geheim"));
        let mask = Sha1::new().chain_update(challenge).chain_update(stored).finalize();
        let once: Vec<u8> =
            native("geheim", challenge).iter().zip(mask).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha1::digest(once)[..], stored[..]);
        // The cache of caching_sha2_password holds SHA256(SHA256(password)).
        let stored = Sha256::digest(Sha256::digest("geheim"));
        let mask = Sha256::new().chain_update(stored).chain_update(challenge).finalize();
        let once: Vec<u8> =
            caching("geheim", challenge).iter().zip(mask).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha256::digest(once)[..], stored[..]);
        assert!(native("", challenge).is_empty() && caching("", challenge).is_empty());
    }

    /// The account of the knowledge base's example: the public key of the password 'secret'.
    #[test]
    fn ed25519_signs_with_the_key_of_the_password() {
        let expanded: [u8; 64] = Sha512::digest("secret").into();
        let key: ed25519_dalek::VerifyingKey = (&ExpandedSecretKey::from_bytes(&expanded)).into();
        assert_eq!(
            hex(key.as_bytes()),
            "648814444520e4f56043a2ec9215e63be7992d2d270bc6dee873e36164786096"
        );
    }

    #[test]
    fn no_plugin_makes_us_send_the_password_for_everyone_to_read() {
        let login = login();
        let clear = b"\xfemysql_clear_password\0";
        let refused = Authentication::new(&login, false).switched(clear).unwrap_err().to_string();
        assert!(refused.contains("unencrypted"), "{refused}");
        assert_eq!(Authentication::new(&login, true).switched(clear).unwrap(), b"geheim\0");
        let caching = b"\xfecaching_sha2_password\0\x312345678abcdefghijkl\0";
        for private in [false, true] {
            let mut authentication = Authentication::new(&login, private);
            assert_eq!(authentication.switched(caching).unwrap().len(), 32);
            assert_eq!(authentication.more(&[1, 3]).unwrap(), None);
            let full = authentication.more(&[1, 4]);
            if private {
                assert_eq!(full.unwrap(), Some(b"geheim\0".to_vec()));
            } else {
                assert!(full.unwrap_err().to_string().contains("unencrypted"));
            }
            assert!(authentication.more(&[1, 5]).is_err());
        }
        let unknown = b"\xfesha256_password\0abc\0";
        let error = Authentication::new(&login, true).switched(unknown).unwrap_err().to_string();
        assert!(error.contains("'sha256_password', which is not supported"), "{error}");
    }
}
