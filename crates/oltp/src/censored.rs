//! Response times of which some are only known to be longer than something.
//!
//! When an open loop ends, requests are still queued or in work. Their response times are
//! *censored*: each is at least what the request had waited by then. Leaving them out would make
//! percentiles of the survivors, and the more a database is overloaded the fewer survive.
//!
//! The Kaplan-Meier estimator is the usual answer and the wrong one here. It takes the moment of
//! censoring to be independent of the response time; in a queue that grows, the requests that come
//! last have waited least when the run ends and would have waited longest. It would lower the
//! percentiles. So no estimate is made, only what is certain is said. The quantile of answered and
//! waiting requests together, each waiting one taken at what it had waited, is a lower bound; the
//! same with the waiting ones taken to be never answered is an upper bound, which may be infinite.
//! Where both agree the quantile is known, whatever became of those that waited.

use stats::Histogram;

/// Bounds on a quantile, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The quantile is at least this.
    pub least_ns: u64,
    /// And at most this; none where it depends on requests that were not answered.
    pub most_ns: Option<u64>,
}

impl Bounds {
    /// Of the `q` quantile of requests that were answered after these times, and of others that had
    /// waited for those.
    pub fn of(answered: &Histogram, waited: &Histogram, q: f64) -> Self {
        if waited.is_empty() {
            let exact = answered.quantile(q);
            return Self { least_ns: exact, most_ns: Some(exact) };
        }
        let mut all = answered.clone();
        all.merge(waited);
        let least_ns = all.quantile(q);
        let mut never = answered.clone();
        never.record_n(u64::MAX, waited.count());
        // The middle of the last bucket is less than the largest value and far beyond any time.
        let most = never.quantile(q);
        let most_ns = (most < u64::MAX / 2).then(|| most.min(answered.max()));
        Self { least_ns, most_ns }
    }

    /// Whether the quantile may be longer than said: within a bucket both bounds are one value.
    pub fn open_ended(self) -> bool {
        self.most_ns.is_none_or(|most| most > self.least_ns + self.least_ns / 128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    fn check(answered: &[u64], waited: &[u64], q: f64, least: u64, most: Option<u64>) {
        let bounds =
            Bounds::of(&histogram(answered.iter().copied()), &histogram(waited.iter().copied()), q);
        assert_eq!(
            bounds,
            Bounds { least_ns: least, most_ns: most },
            "{answered:?} {waited:?} {q}"
        );
    }

    #[test]
    fn quantiles_are_bounded_by_what_is_certain() {
        let ten = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
        check(&ten, &[], 0.9, 90, Some(90));
        // One that waited longer than the quantile changes nothing but the ranks.
        check(&ten[..9], &[95], 0.9, 90, Some(90));
        // One that has waited for 5 only may take any time: the ninth of ten is 80 or 90.
        check(&ten[..9], &[5], 0.9, 80, Some(90));
        // Two of ten without an answer: nobody knows the ninth, whatever they waited.
        check(&ten[..8], &[5, 95], 0.9, 80, None);
        check(&ten[..8], &[5, 95], 0.5, 40, Some(50));
        check(&[], &[7], 0.5, 7, None);
        check(&[], &[], 0.5, 0, Some(0));
    }

    /// A queue that grows by a second per second, ended at 100 s: what is due at t would be
    /// answered at 2t. By the survivors p90 were 45 s; it is 90 s.
    #[test]
    fn an_overloaded_queue_is_no_better_for_being_cut() {
        let (answered, waited): (Vec<u64>, Vec<u64>) = (1..=100).partition(|due| 2 * due <= 100);
        let waited: Vec<u64> = waited.iter().map(|due| 100 - due).collect();
        let (answered, waited) = (histogram(answered), histogram(waited));
        let p90 = Bounds::of(&answered, &waited, 0.9);
        assert_eq!(p90, Bounds { least_ns: 45, most_ns: None });
        assert!(p90.open_ended());
        let p40 = Bounds::of(&answered, &waited, 0.4);
        assert_eq!(p40, Bounds { least_ns: 20, most_ns: Some(40) });
        assert!(p40.open_ended());
    }
}
