//! A histogram of times that is cheap enough for every single I/O.
//!
//! Log-linear (the layout of HDR histograms): every power of two is cut into 256 equal buckets, so
//! values below 512 are exact and any other value is known to 1 part in 512 (a bucket answers with
//! its middle). The whole range of `u64` is covered; memory grows with the largest value seen (28
//! KiB up to 2 ms, 70 KiB up to one hour when values are nanoseconds). Count, sum, smallest and
//! largest are kept beside the buckets and exact.
//!
//! Own code rather than `hdrhistogram`: `record` takes 2.5 ns where that crate takes 4.1 ns
//! (`benches/histogram.rs`), because nothing can fail and one bounds check also does the resizing.
//!
//! Invariants: the bucket counts sum to `count`; two histograms of the same values are equal in
//! every byte, in whatever order the values came and however they were merged. Tested against
//! sorted vectors.

use serde::{Deserialize, Serialize};

/// Buckets per power of two, as a power of two.
const SUB_BITS: u32 = 8;

/// A histogram of `u64` values, by convention nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// The serialised form: only buckets that hold something. JSON readers stop at 64 bits, so a sum
/// beyond them (584 years of nanoseconds) is held there.
#[derive(Serialize, Deserialize)]
struct Parts {
    sum: u64,
    min: u64,
    max: u64,
    buckets: Vec<(u64, u64)>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram; it allocates nothing until the first value.
    pub const fn new() -> Self {
        Self { counts: Vec::new(), count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts `times` equal values.
    #[inline]
    pub fn record_n(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let index = index_of(value);
        match self.counts.get_mut(index) {
            Some(count) => *count += times,
            None => self.grow_and_add(index, times),
        }
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Grows to whole powers of two, so that the size is a function of the largest value alone.
    #[cold]
    #[inline(never)]
    fn grow_and_add(&mut self, index: usize, times: u64) {
        let octave = 1usize << SUB_BITS;
        self.counts.resize((index / octave + 1) * octave, 0);
        self.counts[index] += times;
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Forgets every value but keeps the memory, for reuse interval after interval.
    pub fn clear(&mut self) {
        self.counts.clear();
        *self = Self { counts: std::mem::take(&mut self.counts), ..Self::new() };
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Sum of the values, exact.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Mean of the values, from the exact sum; 0 where there is none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Smallest value, exact; 0 where there is none.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// Largest value, exact; 0 where there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The `q` quantile by the rule of [`crate::quantile_sorted`], to 1 part in 512; 0 and 1 are
    /// exact. 0 where there is no value.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = crate::quantile::rank(self.count, q);
        if rank <= 1 {
            return self.min();
        }
        if rank == self.count {
            return self.max;
        }
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle_of(index).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// (value, count) of every bucket that holds something, ascending; the value is the middle of
    /// the bucket.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, count)| (middle_of(index), *count)).collect()
    }

    /// A histogram from what [`Histogram::buckets`] gave: the same buckets; mean, smallest and
    /// largest are then those of the bucket middles.
    pub fn from_buckets(buckets: &[(u64, u64)]) -> Self {
        let mut histogram = Self::new();
        for &(value, count) in buckets {
            histogram.record_n(value, count);
        }
        histogram
    }
}

impl From<Histogram> for Parts {
    fn from(histogram: Histogram) -> Self {
        Self {
            sum: u64::try_from(histogram.sum).unwrap_or(u64::MAX),
            min: histogram.min(),
            max: histogram.max,
            buckets: histogram.buckets(),
        }
    }
}

/// Most values of a histogram that is read: nine years of a million a second. Sums of what
/// thousands of files hold stay below 2^64.
const READ_MAX: u64 = 1 << 48;

impl TryFrom<Parts> for Histogram {
    type Error = &'static str;

    fn try_from(parts: Parts) -> Result<Self, Self::Error> {
        let mut counts = parts.buckets.iter().map(|(_, count)| *count);
        let count = counts.try_fold(0u64, u64::checked_add);
        if count.is_none_or(|count| count > READ_MAX) {
            return Err("a histogram of more values than anything counts");
        }
        let mut histogram = Self::from_buckets(&parts.buckets);
        if histogram.count > 0 {
            histogram.sum = u128::from(parts.sum);
            histogram.min = parts.min.min(parts.max);
            histogram.max = parts.max.max(parts.min);
        }
        Ok(histogram)
    }
}

/// The bucket of a value: below 512 the value itself, above it 256 buckets per power of two.
#[inline]
pub(crate) fn index_of(value: u64) -> usize {
    let top_bit = (value | (1 << SUB_BITS)).ilog2();
    let shift = top_bit - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// The middle of a bucket, rounded down: the inverse of [`index_of`].
fn middle_of(index: usize) -> u64 {
    let shift = (index >> SUB_BITS).saturating_sub(1);
    let low = ((index - (shift << SUB_BITS)) as u64) << shift;
    low + (((1u64 << shift) - 1) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of every magnitude, not mostly huge ones.
    fn any_value() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
    }

    #[test]
    fn every_bucket_is_where_its_values_are() {
        let mut last = 0;
        for index in 0..=index_of(u64::MAX) {
            let middle = middle_of(index);
            assert_eq!(index_of(middle), index, "middle {middle}");
            assert!(index == 0 || middle > last);
            last = middle;
        }
    }

    /// A file can hold any numbers; sums of what is read must not overflow.
    #[test]
    fn more_values_than_anything_counts_are_refused() {
        let read = |buckets: &str| {
            let text = format!(r#"{{"sum":1,"min":1,"max":1,"buckets":{buckets}}}"#);
            serde_json::from_str::<Histogram>(&text)
        };
        assert_eq!(read(&format!("[[1,{READ_MAX}]]")).unwrap().count(), READ_MAX);
        let most = u64::MAX;
        for bad in [format!("[[1,{}]]", READ_MAX + 1), format!("[[1,{most}],[2,{most}]]")] {
            assert!(read(&bad).unwrap_err().to_string().contains("more values"), "{bad}");
        }
    }

    #[test]
    fn an_empty_histogram_answers_zero() {
        let empty = Histogram::new();
        assert_eq!((empty.count(), empty.min(), empty.max(), empty.quantile(0.5)), (0, 0, 0, 0));
        assert_eq!((empty.mean(), empty.buckets()), (0.0, vec![]));
    }

    #[test]
    fn extremes_of_the_range_are_counted() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        histogram.record_n(0, 3);
        histogram.record_n(7, 0);
        assert_eq!((histogram.count(), histogram.min(), histogram.max()), (4, 0, u64::MAX));
        assert_eq!(histogram.sum(), u128::from(u64::MAX));
        assert_eq!(histogram.quantile(0.75), 0);
        assert_eq!(histogram.quantile(0.76), u64::MAX);
    }

    #[test]
    fn cleared_is_new() {
        let mut histogram = Histogram::new();
        histogram.record(123_456);
        histogram.clear();
        assert_eq!(histogram, Histogram::new());
        histogram.record(3);
        assert_eq!(histogram.buckets(), [(3, 1)]);
    }

    #[test]
    fn serialised_form_keeps_the_exact_figures() {
        let mut histogram = Histogram::new();
        for value in [1_000_001, 77, 5_000_003] {
            histogram.record(value);
        }
        let text = serde_json::to_string(&histogram).expect("serialises");
        assert_eq!(serde_json::from_str::<Histogram>(&text).expect("reads back"), histogram);
    }

    proptest! {
        #[test]
        fn agrees_with_the_sorted_values(
            mut values in prop::collection::vec(any_value(), 1..200),
            q in 0.0f64..=1.0,
        ) {
            let mut histogram = Histogram::new();
            for value in &values {
                histogram.record(*value);
            }
            values.sort_unstable();
            let sum: u128 = values.iter().map(|v| u128::from(*v)).sum();
            prop_assert_eq!(histogram.count(), values.len() as u64);
            prop_assert_eq!(histogram.sum(), sum);
            prop_assert_eq!(histogram.min(), values[0]);
            prop_assert_eq!(histogram.max(), values[values.len() - 1]);
            let (found, exact) = (histogram.quantile(q), crate::quantile_sorted(&values, q));
            prop_assert!(found.abs_diff(exact) <= exact / 512, "{} for {}", found, exact);
            let total: u64 = histogram.buckets().iter().map(|bucket| bucket.1).sum();
            prop_assert_eq!(total, histogram.count());
            let buckets = histogram.buckets();
            prop_assert_eq!(Histogram::from_buckets(&buckets).buckets(), buckets);
        }

        #[test]
        fn merging_is_the_same_as_recording_everything_in_one(
            left in prop::collection::vec(any_value(), 0..50),
            right in prop::collection::vec(any_value(), 0..50),
        ) {
            let fill = |values: &[u64]| {
                let mut histogram = Histogram::new();
                for value in values {
                    histogram.record(*value);
                }
                histogram
            };
            let mut merged = fill(&left);
            merged.merge(&fill(&right));
            let mut all = right.clone();
            all.extend(&left);
            prop_assert_eq!(merged, fill(&all));
        }
    }
}
