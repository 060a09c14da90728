//! The handshake (knowledge base, "Connection"): what the server offers, what we answer, how a
//! password is proved.

use super::answer::capability as bit;
use super::fields::{Fields, malformed};
use super::sha1::sha1;
use crate::{Error, Login};

/// utf8mb4_general_ci: what texts of statements and of messages are in.
const CHARACTER_SET: u8 = 45;

/// What we can do and want.
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

/// What no talk is possible without.
const NEEDED: u64 = bit::PROTOCOL_41 | bit::SECURE_CONNECTION | bit::PLUGIN_AUTH;

/// The server's greeting.
#[derive(Debug)]
pub(super) struct Greeting {
    pub version: String,
    pub connection: u32,
    /// What both sides can.
    pub capabilities: u64,
    pub plugin: String,
    pub challenge: Vec<u8>,
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
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // Replication clients of old took the first digit for the major version.
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
        let capabilities = capabilities & WANTED;
        Ok(Self { version, connection, capabilities, plugin, challenge })
    }

    /// Our answer, and what both sides can from now on.
    pub fn answer(&self, login: &Login, output: &mut Vec<u8>) -> Result<u64, Error> {
        let mut capabilities = self.capabilities;
        if login.database.is_empty() {
            capabilities &= !bit::CONNECT_WITH_DB;
        }
        output.extend_from_slice(&(capabilities as u32).to_le_bytes());
        output.extend_from_slice(&(1u32 << 30).to_le_bytes());
        output.push(CHARACTER_SET);
        output.extend_from_slice(&[0; 19]);
        output.extend_from_slice(&((capabilities >> 32) as u32).to_le_bytes());
        push_zero_ended(output, login.user.as_bytes());
        // A plugin that we do not have may be the server's default only; it then asks for another.
        let proof = proof(&self.plugin, &self.challenge, login).unwrap_or_default();
        output.push(proof.len() as u8);
        output.extend_from_slice(&proof);
        if capabilities & bit::CONNECT_WITH_DB != 0 {
            push_zero_ended(output, login.database.as_bytes());
        }
        let plugin = if self.plugin.is_empty() { NATIVE } else { &self.plugin };
        push_zero_ended(output, plugin.as_bytes());
        for text in [&login.user, &login.database] {
            if text.contains('\0') {
                let why = "names cannot hold a zero byte".to_owned();
                return Err(Error::Login { user: login.user.clone(), why });
            }
        }
        Ok(capabilities)
    }
}

const NATIVE: &str = "mysql_native_password";

fn push_zero_ended(output: &mut Vec<u8>, text: &[u8]) {
    output.extend_from_slice(text);
    output.push(0);
}

/// The server's wish for another plugin: our proof.
pub(super) fn switched(packet: &[u8], login: &Login) -> Result<Vec<u8>, Error> {
    let mut fields = Fields::new(packet);
    fields.u8()?;
    let plugin = String::from_utf8_lossy(fields.until_zero()).into_owned();
    let challenge = fields.rest();
    let challenge = challenge.strip_suffix(&[0]).unwrap_or(challenge);
    proof(&plugin, challenge, login)
}

/// What proves to a plugin who we are.
fn proof(plugin: &str, challenge: &[u8], login: &Login) -> Result<Vec<u8>, Error> {
    let password = login.password.as_deref().unwrap_or_default();
    match plugin {
        // The socket tells the server the user by itself.
        "unix_socket" | "auth_socket" => Ok(Vec::new()),
        NATIVE | "" => Ok(native(password, challenge)),
        other => Err(Error::Login {
            user: login.user.clone(),
            why: format!("the server asks for '{other}', which is not spoken here"),
        }),
    }
}

/// SHA1(password) xor SHA1(challenge, SHA1(SHA1(password))); nothing for no password.
fn native(password: &str, challenge: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = sha1(&[password.as_bytes()]);
    let mask = sha1(&[challenge, &sha1(&[&once])]);
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}
