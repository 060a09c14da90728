//! Finding a customer by last name (TPC-C 5.11 clauses 2.5.2.2 and 2.6.2.2).

use dbms::Error as ServerError;
use dbms::mariadb::{Connection, Statement, Type};

use super::link::{Link, Stop};
use crate::workload::text::last_name;

/// The statement.
pub(super) struct FindCustomer {
    by_name: Statement,
    /// Reused from one search to the next.
    found: Vec<u32>,
}

/// Where customers are looked for, and the number of their last name.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub warehouse: u32,
    pub district: u32,
    pub name: u32,
}

impl FindCustomer {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        // The index on names ends in the primary key, which makes the order total and the query one
        // on the index alone.
        let sql = "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? \
                   ORDER BY c_first, c_id";
        let by_name = link.prepare(sql, &[Type::Int, Type::Tiny, Type::Text])?;
        Ok(Self { by_name, found: Vec::with_capacity(64) })
    }

    #[inline]
    pub fn queue(&mut self, connection: &mut Connection, who: Named) {
        let values = connection.queue(&mut self.by_name).integer(who.warehouse);
        values.integer(who.district).text(last_name(who.name).as_str()).finish();
    }

    /// C_ID of the customer at position n / 2 rounded up in the order of first names.
    #[inline]
    pub fn receive(&mut self, connection: &mut Connection) -> Result<u32, Stop> {
        let found = &mut self.found;
        found.clear();
        connection.receive(&mut self.by_name, &mut |row| {
            found.push(row.number()?);
            Ok(())
        })?;
        let middle = found.len().div_ceil(2).checked_sub(1);
        middle.map(|position| found[position]).ok_or(Stop::Missing("a customer name"))
    }
}
