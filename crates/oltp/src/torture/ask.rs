//! Questions to either server whose answers are integers.

use dbms::{Login, System};

/// A connection for questions, opened at the first.
pub(super) struct Asked {
    system: System,
    login: Login,
    postgresql: Option<dbms::postgresql::Connection>,
    mariadb: Option<dbms::mariadb::Connection>,
}

impl Asked {
    pub(super) fn new(system: System, login: Login) -> Self {
        Self { system, login, postgresql: None, mariadb: None }
    }

    /// The rows of a query whose columns are integers; NULL counts as 0.
    pub(super) fn rows(&mut self, sql: &str) -> Result<Vec<Vec<i64>>, dbms::Error> {
        match self.system {
            System::Postgresql => {
                if self.postgresql.is_none() {
                    self.postgresql = Some(dbms::postgresql::Connection::connect(&self.login)?);
                }
                let connection = self.postgresql.as_mut().expect("it was opened above");
                let number = |text: Option<String>| match text {
                    Some(text) => text.parse().map_err(|_| dbms::Error::Protocol {
                        what: format!("'{text}' where a number is asked for"),
                    }),
                    None => Ok(0),
                };
                let rows = connection.query(sql)?;
                rows.into_iter().map(|row| row.into_iter().map(number).collect()).collect()
            }
            System::Mariadb => {
                if self.mariadb.is_none() {
                    self.mariadb = Some(dbms::mariadb::Connection::connect(&self.login)?);
                }
                let connection = self.mariadb.as_mut().expect("it was opened above");
                let mut rows = Vec::new();
                connection.query(sql, &mut |row| {
                    let columns = (0..row.columns())
                        .map(|_| row.integer_or_null().map(Option::unwrap_or_default));
                    rows.push(columns.collect::<Result<Vec<i64>, _>>()?);
                    Ok(())
                })?;
                Ok(rows)
            }
        }
    }
}
