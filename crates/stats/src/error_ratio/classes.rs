//! E per class of request (operation and size), so that errors cannot cancel.

use serde::{Deserialize, Serialize};

use super::{Comparison, Resampling, compare, compare_with_interval};

/// A class of requests that a device should treat alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClassKey {
    /// Operation: `read`, `write`, `trim`, `flush`.
    pub op: String,
    /// Bytes per request; 0 for a flush.
    pub size_bytes: u32,
}

/// The response times of one class, ns, in the order of the requests.
#[derive(Clone, Copy, Debug)]
pub struct ClassSamples<'a> {
    /// The class.
    pub key: &'a ClassKey,
    /// Simulated.
    pub simulated: &'a [u64],
    /// Real.
    pub real: &'a [u64],
}

/// One request sequence with its simulated and real response times: one entry per request in
/// `class`, `simulated` and `real`.
#[derive(Clone, Copy, Debug)]
pub struct Requests<'a> {
    /// What the indices in `class` mean.
    pub keys: &'a [ClassKey],
    /// Class of each request.
    pub class: &'a [u16],
    /// Simulated response times, ns.
    pub simulated: &'a [u64],
    /// Real response times, ns.
    pub real: &'a [u64],
}

/// A comparison in all and by class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Classified {
    /// All requests together: errors of classes may cancel here.
    pub pooled: Comparison,
    /// Each class that has requests, by operation and size.
    pub classes: Vec<(ClassKey, Comparison)>,
    /// Sum of the classes' E, each weighted by its share of the real requests.
    pub weighted_error_ratio: f64,
}

/// Compares class by class. The pooled figures take the classes one after the other, so their
/// quantiles are judged on each class's own order; there are no intervals.
pub fn compare_classes(classes: &[ClassSamples<'_>]) -> Classified {
    let pool = |side: fn(&ClassSamples<'_>) -> Vec<u64>| -> Vec<u64> {
        classes.iter().flat_map(side).collect()
    };
    let simulated = pool(|class| class.simulated.to_vec());
    let real = pool(|class| class.real.to_vec());
    let compared = classes
        .iter()
        .map(|class| (class.key.clone(), compare(class.simulated, class.real)))
        .collect();
    assemble(compare(&simulated, &real), compared)
}

/// Compares one request sequence, in all and class by class, with intervals where a resampling is
/// given. Blocks counted in requests shrink to each class's share of the sequence.
///
/// # Panics
/// Where the three columns differ in length or a class has no key: mistakes in the calling code.
pub fn compare_requests(
    requests: &Requests<'_>,
    resampling: Option<&Resampling<'_>>,
) -> Classified {
    let count = requests.class.len();
    assert!(
        requests.simulated.len() == count && requests.real.len() == count,
        "one simulated and one real response time per request"
    );
    let compare_one = |simulated: &[u64], real: &[u64], resampling: Option<Resampling<'_>>| {
        resampling.map_or_else(
            || compare(simulated, real),
            |resampling| compare_with_interval(simulated, real, &resampling),
        )
    };
    let pooled = compare_one(requests.simulated, requests.real, resampling.copied());
    let mut members = vec![Vec::new(); requests.keys.len()];
    for (index, class) in requests.class.iter().enumerate() {
        members[usize::from(*class)].push(index);
    }
    let present = requests.keys.iter().zip(&members).filter(|(_, members)| !members.is_empty());
    let compared = present.map(|(key, members)| {
        let pick = |column: &[u64]| members.iter().map(|i| column[*i]).collect::<Vec<_>>();
        let due = resampling.map(|resampling| resampling.due_of(members)).unwrap_or_default();
        let own = resampling.map(|resampling| resampling.of_class(members.len(), count, &due));
        (key.clone(), compare_one(&pick(requests.simulated), &pick(requests.real), own))
    });
    assemble(pooled, compared.collect())
}

fn assemble(pooled: Comparison, mut classes: Vec<(ClassKey, Comparison)>) -> Classified {
    classes.sort_by(|a, b| a.0.cmp(&b.0));
    let total: u64 = classes.iter().map(|(_, comparison)| comparison.count_real).sum();
    let weighted: f64 = classes.iter().map(|(_, c)| c.error_ratio * c.count_real as f64).sum();
    let weighted_error_ratio = if total == 0 { 0.0 } else { weighted / total as f64 };
    Classified { pooled, classes, weighted_error_ratio }
}

#[cfg(test)]
mod tests {
    use super::super::Block;
    use super::*;
    use crate::rng::Rng;

    fn key(op: &str, size_bytes: u32) -> ClassKey {
        ClassKey { op: op.to_owned(), size_bytes }
    }

    /// Reads simulated as writes and the other way round: the pool is perfect, the classes are not.
    #[test]
    fn errors_that_cancel_in_the_pool_show_in_the_classes() {
        let (read, write) = (key("read", 4096), key("write", 8192));
        let classes = [
            ClassSamples { key: &write, simulated: &[100, 100], real: &[300, 300] },
            ClassSamples { key: &read, simulated: &[300, 300], real: &[100, 100] },
        ];
        let found = compare_classes(&classes);
        assert_eq!(found.pooled.error_ratio, 0.0);
        let by_class: Vec<_> =
            found.classes.iter().map(|(key, c)| (key.op.as_str(), c.error_ratio)).collect();
        assert_eq!(by_class, [("read", 2.0), ("write", 2.0 / 3.0)]);
        assert_eq!(found.weighted_error_ratio, f64::midpoint(2.0, 2.0 / 3.0));
    }

    #[test]
    fn a_sequence_is_split_as_its_class_column_says() {
        let keys = [key("write", 4096), key("read", 4096), key("flush", 0)];
        let (mut class, mut simulated, mut real) = (Vec::new(), Vec::new(), Vec::new());
        let mut rng = Rng::new(1);
        for index in 0..6000u64 {
            let is_read = index % 3 != 0;
            class.push(u16::from(is_read));
            let time = 100_000 + rng.below(1000);
            real.push(time);
            simulated.push(if is_read { time + 10_000 } else { time - 5_000 });
        }
        let requests = Requests { keys: &keys, class: &class, simulated: &simulated, real: &real };
        let resampling = Resampling { resamples: 50, seed: 1, block: Block::Requests(60) };
        let found = compare_requests(&requests, Some(&resampling));
        assert_eq!(found.classes.len(), 2, "no flush occurred");
        assert_eq!(found.classes[0].0, keys[1]);
        assert_eq!((found.classes[0].1.count_real, found.classes[1].1.count_real), (4000, 2000));
        let expected = (10_000.0 * 2.0 / 3.0 + 5_000.0 / 3.0) / 100_500.0;
        assert!((found.weighted_error_ratio - expected).abs() < 1e-4);
        for comparison in found.classes.iter().map(|(_, c)| c).chain([&found.pooled]) {
            let (low, high) = comparison.error_ratio_interval.expect("an interval");
            assert!(low <= comparison.error_ratio && comparison.error_ratio <= high);
        }
        let plain = compare_requests(&requests, None);
        assert_eq!(plain.weighted_error_ratio, found.weighted_error_ratio);
        assert_eq!(plain.pooled.error_ratio_interval, None);
    }

    #[test]
    fn nothing_to_compare() {
        let found = compare_classes(&[]);
        assert_eq!((found.pooled.error_ratio, found.weighted_error_ratio), (0.0, 0.0));
        assert!(found.classes.is_empty());
    }
}
