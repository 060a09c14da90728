//! Where a figure is in the JSON of a command.

use serde::Deserialize;
use serde_json::Value;

/// Steps through JSON, separated by dots: a key, an index, or `KEY=VALUE` for the first element of
/// a list that has it: `devices.0.open_loop.classes.op=write.response`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Selection(String);

impl Selection {
    /// What is there.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.split('.').try_fold(value, |at, step| match (at, step.split_once('=')) {
            (Value::Array(list), Some((key, wanted))) => {
                list.iter().find(|one| one.get(key).and_then(Value::as_str) == Some(wanted))
            }
            (Value::Array(list), None) => list.get(step.parse::<usize>().ok()?),
            _ => at.get(step),
        })
    }

    /// How it was written.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

/// The value of a histogram (pairs of a value and how often it was) below which a share of all is.
pub(super) fn quantile(histogram: &Value, share: f64) -> Option<f64> {
    let buckets: Vec<(f64, u64)> =
        serde_json::from_value(histogram.get("buckets")?.clone()).ok()?;
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let mut left = (all as f64 * share).ceil().max(1.0) as u64;
    let found = buckets.iter().find(|(_, count)| {
        left = left.saturating_sub(*count);
        left == 0
    });
    found.map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_indices_and_elements() {
        let value = json!({ "a": [ { "op": "read", "n": 1 }, { "op": "write", "n": [5, 6] } ] });
        let find = |text: &str| Selection(text.to_owned()).find(&value).cloned();
        assert_eq!(find("a.0.n"), Some(json!(1)));
        assert_eq!(find("a.op=write.n.1"), Some(json!(6)));
        assert_eq!(find("a.op=trim.n"), None);
        assert_eq!(find("a.2"), None);
        assert_eq!(find("b"), None);
    }

    #[test]
    fn a_share_lies_below_a_quantile() {
        let histogram = json!({ "buckets": [[10, 50], [20, 49], [30, 1]] });
        assert_eq!(quantile(&histogram, 0.5), Some(10.0));
        assert_eq!(quantile(&histogram, 0.505), Some(20.0));
        assert_eq!(quantile(&histogram, 0.99), Some(20.0));
        assert_eq!(quantile(&histogram, 1.0), Some(30.0));
        assert_eq!(quantile(&json!({ "buckets": [] }), 0.5), None);
    }
}
