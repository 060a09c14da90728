//! Passwords and settings of a login that stand elsewhere than in its URL.
//!
//! PostgreSQL: `PGPASSWORD`, then the password file (`PGPASSFILE` or `~/.pgpass`; PostgreSQL 17
//! manual, section 32.16), and `PGSSLMODE`, `PGSSLROOTCERT`, `PGCONNECT_TIMEOUT`. MariaDB and
//! MySQL: `MYSQL_PWD`, then `~/.my.cnf` (groups `client`, `client-mariadb`, `mariadb-client`). What
//! the URL says comes first. Tested with tables of files.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Address, Error, Login, System};

/// Permissions of everybody but the owner.
const OTHERS: u32 = 0o077;

/// Longest file of passwords that is read, bytes.
const FILE_MAX: u64 = 1 << 20;

/// Where a login's missing parts are looked for.
pub struct Environment<'a> {
    /// Value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl std::fmt::Debug for Environment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Environment")
    }
}

impl Environment<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name)?.into_string().ok().filter(|text| !text.is_empty())
    }

    fn home(&self) -> Option<PathBuf> {
        (self.variable)("HOME").map(PathBuf::from)
    }
}

impl Login {
    /// Adds the password that the user keeps for this server, where none is given.
    ///
    /// # Errors
    /// [`Error::Passwords`]: the file that holds it can be read by others, or cannot be read.
    pub fn add_password(&mut self, system: System, from: &Environment<'_>) -> Result<(), Error> {
        if self.password.is_some() {
            return Ok(());
        }
        self.password = match system {
            System::Postgresql => match from.text("PGPASSWORD") {
                Some(password) => Some(password),
                None => self.of_password_file(from)?,
            },
            System::Mariadb => match from.text("MYSQL_PWD") {
                Some(password) => Some(password),
                None => of_option_file(from)?,
            },
        };
        Ok(())
    }

    /// PostgreSQL's settings of encryption and patience from the environment: what a URL then
    /// overrides.
    pub(crate) fn defaults_from(
        &mut self,
        system: System,
        from: &Environment<'_>,
    ) -> Result<(), Error> {
        if system != System::Postgresql {
            return Ok(());
        }
        if let Some(mode) = from.text("PGSSLMODE") {
            let url = format!("PGSSLMODE={mode}");
            let why = "libpq knows no such mode".to_owned();
            self.tls.mode = mode.parse().map_err(|()| Error::Address { url, why })?;
        }
        if let Some(path) = from.text("PGSSLROOTCERT") {
            self.tls.root_certificates = Some(path.into());
        }
        let seconds = from.text("PGCONNECT_TIMEOUT").and_then(|text| text.parse().ok());
        if let Some(seconds) = seconds.filter(|&seconds| seconds > 0) {
            self.limits.login = Duration::from_secs(seconds);
        }
        Ok(())
    }

    fn of_password_file(&self, from: &Environment<'_>) -> Result<Option<String>, Error> {
        let named = (from.variable)("PGPASSFILE").map(PathBuf::from);
        let Some(path) = named.or_else(|| Some(from.home()?.join(".pgpass"))) else {
            return Ok(None);
        };
        let Some((text, private)) = read(&path)? else { return Ok(None) };
        let found = text.lines().find_map(|line| self.of_line(line));
        if found.is_some() && !private {
            return Err(Error::Passwords { path, why: "others can read it".to_owned() });
        }
        Ok(found)
    }

    /// The password of a line `host:port:database:user:password` that is for this login.
    fn of_line(&self, line: &str) -> Option<String> {
        if line.starts_with('#') {
            return None;
        }
        let (host, port) = match &self.address {
            Address::Tcp { host, port } => (host.clone(), port.to_string()),
            // The name of a socket ends in its port; a directory of its own is the host.
            Address::Unix(path) => {
                let directory = path.parent().unwrap_or(Path::new("")).display().to_string();
                let usual = ["/var/run/postgresql", "/run/postgresql", "/tmp"];
                let host =
                    if usual.contains(&&*directory) { "localhost".into() } else { directory };
                (host, path.extension().unwrap_or_default().to_string_lossy().into_owned())
            }
        };
        let mut rest = line;
        for wanted in [&host, &port, &self.database, &self.user] {
            let (field, after) = field(rest);
            if field.raw != "*" && field.text != *wanted {
                return None;
            }
            rest = after?;
        }
        Some(field(rest).0.text).filter(|password| !password.is_empty())
    }
}

/// A field of a password file.
struct Field<'a> {
    /// As written: `*` matches anything, `\*` a star.
    raw: &'a str,
    /// Without its escapes.
    text: String,
}

/// The field up to the next colon, and what follows it; a backslash escapes.
fn field(text: &str) -> (Field<'_>, Option<&str>) {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, char)) = chars.next() {
        match char {
            ':' => return (Field { raw: &text[..at], text: value }, Some(&text[at + 1..])),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (Field { raw: text, text: value }, None)
}

fn of_option_file(from: &Environment<'_>) -> Result<Option<String>, Error> {
    let Some(path) = from.home().map(|home| home.join(".my.cnf")) else { return Ok(None) };
    let Some((text, private)) = read(&path)? else { return Ok(None) };
    let found = password_option(&text);
    if found.is_some() && !private {
        return Err(Error::Passwords { path, why: "others can read it".to_owned() });
    }
    Ok(found)
}

/// The last `password` of the client's groups of an option file.
fn password_option(text: &str) -> Option<String> {
    let (mut ours, mut found) = (false, None);
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            ours = ["client", "client-mariadb", "mariadb-client"].contains(&group.trim());
        } else if let Some((key, value)) = line.split_once('=')
            && ours
            && key.trim() == "password"
        {
            let value = value.trim();
            let quoted = ['"', '\''].iter().find_map(|&quote| {
                value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote))
            });
            found = Some(quoted.unwrap_or(value).to_owned());
        }
    }
    found
}

/// The text of a file, and whether its owner alone can read it; nothing where there is none.
fn read(path: &Path) -> Result<Option<(String, bool)>, Error> {
    let failed = |source| Error::io(path, "reading", source);
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.take(FILE_MAX).read_to_end(&mut text).map_err(failed)?;
    Ok(Some((String::from_utf8_lossy(&text).into_owned(), meta.mode() & OTHERS == 0)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn login(host: &str, port: u16, database: &str, user: &str) -> Login {
        Login::new(Address::Tcp { host: host.to_owned(), port }, user, database)
    }

    fn found(
        login: &Login,
        system: System,
        variables: &[(&str, &str)],
    ) -> Result<Option<String>, Error> {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        let variable = |name: &str| variables.get(name).map(OsString::from);
        let mut login = login.clone();
        login.add_password(system, &Environment { variable: &variable }).map(|()| login.password)
    }

    #[test]
    fn lines_of_a_password_file_match_as_libpq_matches_them() {
        let check = |line: &str, expected: Option<&str>| {
            let login = login("db", 5432, "shop", "me");
            assert_eq!(login.of_line(line).as_deref(), expected, "{line}");
        };
        check("db:5432:shop:me:geheim", Some("geheim"));
        check("*:*:*:*:any", Some("any"));
        check("db:5432:shop:me:a\\:b\\\\c", Some("a:b\\c"));
        check("db:5432:shop:me:one:two", Some("one"));
        check("\\*:5432:shop:me:x", None);
        check("db:5433:shop:me:x", None);
        check("db:5432:shop:you:x", None);
        check("#db:5432:shop:me:x", None);
        for short in ["", "db", "db:5432:shop:me", "db:5432:shop:me:", "*:*:*:*:"] {
            check(short, None);
        }
        let socket = Login::new(Address::Unix("/tmp/.s.PGSQL.5432".into()), "me", "shop");
        assert_eq!(socket.of_line("localhost:5432:*:me:x").as_deref(), Some("x"));
        let own = Login::new(Address::Unix("/d/run/.s.PGSQL.99".into()), "me", "shop");
        assert_eq!(own.of_line("/d/run:99:*:me:x").as_deref(), Some("x"));
    }

    #[test]
    fn option_files_have_groups_and_quotes() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(password_option(text).as_deref(), expected, "{text}");
        };
        check("[client]\npassword=geheim\n", Some("geheim"));
        check("[mysqld]\npassword=no\n[client-mariadb]\n password = \"a b\" \n", Some("a b"));
        check("[client]\npassword=one\npassword='two'", Some("two"));
        check("password=no\n[mysql]\npassword=no", None);
    }

    #[test]
    fn the_environment_comes_before_files_and_the_url_before_both() {
        let home = tempfile::tempdir().unwrap();
        let at = home.path().to_str().unwrap();
        let (server, other) = (login("db", 1, "d", "u"), login("db", 2, "d", "u"));
        let write = |name: &str, text: &str, mode: u32| {
            let path = home.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let postgresql = |login: &Login, extra: &[(&str, &str)]| {
            let variables = [&[("HOME", at)], extra].concat();
            found(login, System::Postgresql, &variables)
        };
        assert_eq!(postgresql(&server, &[]).unwrap(), None);
        write(".pgpass", "db:1:d:u:filed\n", 0o600);
        assert_eq!(postgresql(&server, &[]).unwrap().as_deref(), Some("filed"));
        assert_eq!(postgresql(&other, &[]).unwrap(), None);
        let set = [("PGPASSWORD", "set")];
        assert_eq!(postgresql(&server, &set).unwrap().as_deref(), Some("set"));
        let url = Login { password: Some("url".to_owned()), ..server.clone() };
        assert_eq!(postgresql(&url, &set).unwrap().as_deref(), Some("url"));
        // Others can read it: refused where it would be used, and only there.
        write(".pgpass", "db:1:d:u:filed\n", 0o644);
        let error = postgresql(&server, &[]).unwrap_err();
        assert!(error.to_string().contains("others can read it"), "{error}");
        assert_eq!(postgresql(&other, &[]).unwrap(), None);
        write(".my.cnf", "[client]\npassword=mine\n", 0o600);
        let mariadb = |set: &[(&str, &str)]| {
            found(&server, System::Mariadb, &[&[("HOME", at)], set].concat()).unwrap()
        };
        assert_eq!(mariadb(&[]).as_deref(), Some("mine"));
        assert_eq!(mariadb(&[("MYSQL_PWD", "set")]).as_deref(), Some("set"));
    }
}
