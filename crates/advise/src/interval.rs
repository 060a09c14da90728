//! A figure between its ends.

use serde::{Deserialize, Serialize};

/// A value and the interval that it lies in; `low <= value <= high`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Upper end of a figure that has none.
    pub const UNBOUNDED: f64 = f64::MAX;

    /// A figure that is known.
    pub const fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// Between two ends; ends on the wrong side of the value are moved to it.
    pub fn new(value: f64, low: f64, high: f64) -> Self {
        Self { value, low: low.min(value), high: high.max(value) }
    }

    /// Whether it is known.
    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }

    /// Through a function that never falls.
    #[must_use]
    pub fn rising(&self, of: impl Fn(f64) -> f64) -> Self {
        Self::new(of(self.value), of(self.low), of(self.high))
    }

    /// Through a function that never rises: the ends change places.
    #[must_use]
    pub fn falling(&self, of: impl Fn(f64) -> f64) -> Self {
        Self::new(of(self.value), of(self.high), of(self.low))
    }

    /// Product of two that are not negative.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        Self::new(self.value * other.value, self.low * other.low, self.high * other.high)
    }

    /// Sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self::new(self.value + other.value, self.low + other.low, self.high + other.high)
    }

    /// Whether all of it lies below all of `other`.
    pub fn is_below(&self, other: &Self) -> bool {
        self.high < other.low
    }

    /// Whether value and ends are numbers.
    pub fn is_finite(&self) -> bool {
        [self.value, self.low, self.high].iter().all(|end| end.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_change_places_where_a_function_falls() {
        let years = Interval::new(2.0, 1.0, 4.0).falling(|rate| 8.0 / rate);
        assert_eq!(years, Interval { value: 4.0, low: 2.0, high: 8.0 });
        assert!(Interval::exact(1.0).is_below(&years) && !years.is_below(&years));
    }

    #[test]
    fn an_interval_holds_its_value_whatever_the_ends() {
        let moved = Interval::new(2.0, 3.0, 1.0);
        assert_eq!(moved, Interval::exact(2.0));
    }
}
