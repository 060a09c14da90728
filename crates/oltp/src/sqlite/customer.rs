//! Finding a customer by number or by last name (TPC-C 5.11 clauses 2.5.2.2 and 2.6.2.2).

use rusqlite::Connection;

use super::session::{Context, Prepared, Stop, bind};
use crate::workload::input::Who;
use crate::workload::text::last_name;

/// The statements.
pub(super) struct FindCustomer<'c> {
    by_id: Prepared<'c>,
    by_name: Prepared<'c>,
    /// Reused from one search to the next.
    found: Vec<i64>,
}

impl<'c> FindCustomer<'c> {
    pub fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            by_id: Prepared::new(
                connection,
                "SELECT rowid FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )?,
            by_name: Prepared::new(
                connection,
                "SELECT rowid FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? \
                 ORDER BY c_first",
            )?,
            found: Vec::with_capacity(64),
        })
    }

    /// The rowid of the customer: of those with a name, the one at position n / 2 rounded up in the
    /// order of first names.
    pub fn rowid(
        &mut self,
        context: Context<'_>,
        (warehouse, district): (u32, u32),
        who: Who,
    ) -> Result<i64, Stop> {
        match who {
            Who::Id(customer) => {
                bind!(self.by_id, warehouse, district, customer);
                let found = self.by_id.first(context.meter, |row| row.get(0))?;
                found.ok_or(Stop::Missing("a customer number"))
            }
            Who::LastName(number) => {
                bind!(self.by_name, warehouse, district, last_name(number).as_str());
                self.found.clear();
                let found = &mut self.found;
                self.by_name.each(context.meter, |row| {
                    found.push(row.get(0)?);
                    Ok(())
                })?;
                let middle = self.found.len().div_ceil(2);
                let rowid = middle.checked_sub(1).map(|position| self.found[position]);
                rowid.ok_or(Stop::Missing("a customer name"))
            }
        }
    }
}
