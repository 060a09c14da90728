//! The table of requests or transactions of a capture, one line each, as text.
//!
//! Columns are found by their names when it is read, so that others may be added. Tested by reading
//! what was written, and on wrong lines.

use std::collections::HashMap;
use std::path::Path;

use capture::server::TransactionIo;
use predict::Transaction;

use crate::Error;

/// One line per transaction: what it did on storage and where its time went. `kind` names the
/// kinds by their number.
pub fn table(transactions: &[TransactionIo], kind: impl Fn(u16) -> &'static str) -> String {
    let mut text = String::from(
        "transaction,kind,turns,task,start_ns,duration_ns,reads,writes,flushes,read_bytes,\
         written_bytes,service_ns,client_ns,shared_commit_ns,gap_ns,cpu_ns,answer_cpu_ns,\
         commit_ns\n",
    );
    for each in transactions {
        let commit = each.commit_ns.map_or_else(String::new, |ns| ns.to_string());
        text.push_str(&format!(
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{commit}\n",
            each.number,
            kind(each.kind),
            each.turns,
            each.task,
            each.start_ns,
            each.duration_ns,
            each.reads,
            each.writes,
            each.flushes,
            each.read_bytes,
            each.written_bytes,
            each.service_ns,
            each.client_ns,
            each.shared_commit_ns,
            each.gap_ns,
            each.cpu_ns,
            each.answer_cpu_ns,
        ));
    }
    text
}

/// Reads a table whose kinds are `names`, by their index.
///
/// # Errors
/// A column or a value that is missing or wrong, with its line.
pub fn read_table(path: &Path, text: &str, names: &[&str]) -> Result<Vec<Transaction>, Error> {
    let bad = |cause: String| Error::Artifact {
        path: path.to_owned(),
        what: "table of transactions",
        cause: events::one_line(&cause),
    };
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    let column = |name: &str| {
        let at = header.iter().position(|own| *own == name);
        at.ok_or_else(|| bad(format!("it has no column '{name}'")))
    };
    let own = column("transaction")?;
    let (kind, turns) = (column("kind")?, column("turns")?);
    let (duration, gap) = (column("duration_ns")?, column("gap_ns")?);
    let cpu = column("cpu_ns").ok();
    // Tables that were written before lack it.
    let answer = column("answer_cpu_ns").ok().or(cpu);
    let kinds: HashMap<&str, u16> = names.iter().copied().zip(0u16..).collect();
    let mut found = Vec::new();
    for (number, line) in (2..).zip(lines) {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |at: usize| {
            let wrong = || bad(format!("line {number} lacks '{}'", header[at]));
            cells.get(at).copied().ok_or_else(wrong)
        };
        let figure = |at: usize| {
            let wrong = || bad(format!("line {number}: '{}' is no number", header[at]));
            cell(at)?.parse::<u64>().map_err(|_| wrong())
        };
        let name = cell(kind)?;
        let unknown = || bad(format!("line {number}: '{name}' is no kind of transaction"));
        found.push(Transaction {
            number: figure(own)? as u32,
            kind: *kinds.get(name).ok_or_else(unknown)?,
            turns: figure(turns)? as u32,
            duration_ns: figure(duration)?,
            gap_ns: figure(gap)?,
            cpu_ns: cpu.map_or(Ok(0), figure)?,
            answer_cpu_ns: answer.map_or(Ok(0), figure)?,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["update", "payment"];

    #[test]
    fn what_is_written_is_read_by_its_columns() {
        let io = |kind, turns| TransactionIo {
            kind,
            turns,
            gap_ns: 5,
            cpu_ns: 3,
            answer_cpu_ns: 2,
            ..TransactionIo::default()
        };
        let text = table(&[io(1, 3), io(0, 1)], |kind| NAMES[usize::from(kind)]);
        let found = read_table(Path::new("t.csv"), &text, &NAMES).unwrap();
        assert_eq!(
            found.iter().map(|one| (one.kind, one.turns)).collect::<Vec<_>>(),
            [(1, 3), (0, 1)]
        );
        assert_eq!((found[0].gap_ns, found[0].cpu_ns, found[0].answer_cpu_ns), (5, 3, 2));
        let older = text.replace("answer_cpu_ns", "another");
        let found = read_table(Path::new("t.csv"), &older, &NAMES).unwrap();
        assert_eq!((found[0].cpu_ns, found[0].answer_cpu_ns), (3, 3));
        let text = "transaction,kind,gap_ns,turns,duration_ns\n1,payment,5,3,9\n";
        let found = read_table(Path::new("t.csv"), text, &NAMES).unwrap()[0];
        assert_eq!((found.turns, found.duration_ns, found.gap_ns, found.cpu_ns), (3, 9, 5, 0));
    }

    #[test]
    fn wrong_lines_are_named() {
        let cause =
            |text: &str| read_table(Path::new("t.csv"), text, &NAMES).unwrap_err().to_string();
        assert!(cause("transaction,turns\n").contains("no column 'kind'"));
        let header = "transaction,kind,turns,duration_ns,gap_ns\n";
        assert!(cause(&format!("{header}1,payment,1,x,2\n")).contains("line 2: 'duration_ns'"));
        assert!(cause(&format!("{header}1,lunch,1,1,2\n")).contains("'lunch' is no kind"));
        assert!(cause(&format!("{header}1,payment,1\n")).contains("line 2 lacks 'duration_ns'"));
    }
}
