//! Runs the statement and reads what the DBMS says about it.

use serde_json::Value;

use super::Operation;
use crate::Error;
use crate::statements::Session;

/// What a DBMS told of one execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub rows: u64,
    pub read_blocks: Option<u64>,
    pub written_blocks: Option<u64>,
    pub merges: Option<u64>,
    pub batches: Option<u64>,
    pub method: String,
}

const SORT: &str = "SELECT k, id, pad FROM a ORDER BY k";
const JOIN: &str = "SELECT a.k, a.id, a.pad, b.id, b.pad FROM a JOIN b ON a.k = b.k";

/// Executes it; its rows are dropped.
pub(super) fn execute(session: &mut Session, operation: Operation) -> Result<Found, Error> {
    let sql = if operation == Operation::Sort { SORT } else { JOIN };
    match session {
        Session::Postgresql(_) => {
            let hash = if operation == Operation::HashJoin { "on" } else { "off" };
            let merge = if operation == Operation::MergeJoin { "on" } else { "off" };
            session
                .run(&format!("SET enable_hashjoin = {hash}; SET enable_mergejoin = {merge}"))?;
            let explain = format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}");
            Ok(postgresql(&joined(session.rows(&explain)?)))
        }
        Session::Mariadb(_) => {
            let merges = |session: &mut Session| -> Result<f64, Error> {
                let rows = session.rows("SHOW SESSION STATUS LIKE 'Sort_merge_passes'")?;
                let cell = rows.first().and_then(|row| row.get(1).cloned()).flatten();
                Ok(cell.and_then(|text| text.parse().ok()).unwrap_or(0.0))
            };
            let before = merges(session)?;
            let text = joined(session.rows(&format!("ANALYZE FORMAT=JSON {sql}"))?);
            let after = merges(session)?;
            Ok(Found { merges: Some((after - before) as u64), ..mariadb(&text) })
        }
        Session::Sqlite(..) => {
            let method = if operation == Operation::Sort { "sorter" } else { "automatic index" };
            let rows = session.drain(sql)?;
            Ok(Found { rows, method: method.to_owned(), ..Found::default() })
        }
    }
}

/// All cells of an answer, one after another: a plan may come in lines.
fn joined(rows: Vec<Vec<Option<String>>>) -> String {
    rows.into_iter().flatten().flatten().collect::<Vec<_>>().join("\n")
}

/// Every object in a value, outermost first.
fn objects<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            found.push(value);
            map.values().for_each(|inner| objects(inner, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| objects(inner, found)),
        _ => {}
    }
}

/// The first value of that name, outermost first.
fn first<'a>(nodes: &[&'a Value], name: &str) -> Option<&'a Value> {
    nodes.iter().find_map(|node| node.get(name))
}

/// From PostgreSQL's plan in JSON.
fn postgresql(text: &str) -> Found {
    let plan: Value = serde_json::from_str(text).unwrap_or_default();
    let mut nodes = Vec::new();
    objects(&plan, &mut nodes);
    let number = |name: &str| first(&nodes, name).and_then(Value::as_u64);
    let rows = first(&nodes, "Actual Rows").and_then(Value::as_f64).unwrap_or(0.0);
    let word = |name: &str| first(&nodes, name).and_then(Value::as_str).map(str::to_owned);
    let top = nodes.iter().find_map(|node| node.get("Node Type")).and_then(Value::as_str);
    let method = word("Sort Method").unwrap_or_else(|| top.unwrap_or_default().to_lowercase());
    Found {
        rows: rows as u64,
        read_blocks: number("Temp Read Blocks"),
        written_blocks: number("Temp Written Blocks"),
        merges: None,
        batches: number("Hash Batches"),
        method,
    }
}

/// From MariaDB's plan in JSON.
fn mariadb(text: &str) -> Found {
    let plan: Value = serde_json::from_str(text).unwrap_or_default();
    let mut nodes = Vec::new();
    objects(&plan, &mut nodes);
    let number = |name: &str| first(&nodes, name).and_then(Value::as_f64).map(|n| n as u64);
    Found {
        rows: number("r_output_rows").or(number("r_rows")).unwrap_or(0),
        merges: number("r_sort_passes"),
        method: first(&nodes, "r_sort_mode").and_then(Value::as_str).unwrap_or("").to_owned(),
        ..Found::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read() {
        let text = r#"[{"Plan": {"Node Type": "Hash Join", "Actual Rows": 7, "Temp Read Blocks": 3,
            "Temp Written Blocks": 4, "Plans": [{"Node Type": "Seq Scan", "Actual Rows": 9},
            {"Node Type": "Hash", "Hash Batches": 8, "Temp Written Blocks": 2}]}}]"#;
        let found = postgresql(text);
        assert_eq!((found.rows, found.read_blocks, found.written_blocks), (7, Some(3), Some(4)));
        assert_eq!((found.batches, found.method.as_str()), (Some(8), "hash join"));
        let text = r#"{"query_block": {"filesort": {"r_output_rows": 5, "r_sort_passes": 2,
            "r_sort_mode": "sort_key,addon_fields"}}}"#;
        let found = mariadb(text);
        assert_eq!((found.rows, found.merges), (5, Some(2)));
        assert_eq!(postgresql("nonsense"), Found::default());
    }
}
