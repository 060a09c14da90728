//! What a predicted figure may be off by.
//!
//! A prediction of another device is `measured here x simulated there / simulated here`: what the
//! simulation gets wrong in the same way on both cancels. Its doubts are
//! - the **bias**, `|ln(simulated here / measured here)|`: how much had to cancel;
//! - **E**, how far simulated times are from the real ones;
//! - **A/A**, how far two runs of the same lie apart, as a share;
//! - the **sweep** of assumed values.
//!
//! The first three add up as independent errors of a logarithm; the sweep widens each end by its
//! own worst case. The result is no confidence interval of a known level: it says what the figures
//! themselves give reason to doubt.

use serde::{Deserialize, Serialize};

use crate::Interval;

/// Reasons to doubt a predicted figure; all 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// Logarithm of simulated over measured here.
    pub bias: f64,
    /// Error ratio of the simulated times.
    pub error_ratio: f64,
    /// Share by which two runs of the same differ.
    pub noise: f64,
    /// Value with assumed values at their worst, and at their best, over the value.
    pub sweep: Option<(f64, f64)>,
}

impl Doubt {
    /// Root of the sum of squares of what adds up as independent errors, as a logarithm.
    pub fn logarithm(&self) -> f64 {
        self.bias.hypot(self.error_ratio).hypot(self.noise.max(0.0).ln_1p())
    }

    /// The interval around a figure that is above 0.
    pub fn around(&self, value: f64) -> Interval {
        let (low, high) = self.sweep.unwrap_or((1.0, 1.0));
        let reach = self.logarithm().exp();
        Interval::new(value, value * low.min(1.0) / reach, value * high.max(1.0) * reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_errors_add_up_as_squares_and_the_sweep_widens() {
        let doubt = Doubt { bias: 0.3, error_ratio: -0.4, ..Doubt::default() };
        assert!((doubt.logarithm() - 0.5).abs() < 1e-12);
        let plain = doubt.around(100.0);
        assert!((plain.high - 100.0 * 0.5f64.exp()).abs() < 1e-9, "{plain:?}");
        assert!((plain.low * plain.high - 10_000.0).abs() < 1e-6, "as far down as up: {plain:?}");
        let swept = Doubt { sweep: Some((0.5, 0.9)), ..doubt }.around(100.0);
        assert!((swept.low - plain.low / 2.0).abs() < 1e-9 && swept.high == plain.high);
        let noisy = Doubt { noise: 0.1, ..Doubt::default() }.around(100.0);
        assert!((noisy.high - 110.0).abs() < 1e-9, "two runs of 100 and 110: {noisy:?}");
        assert!(Doubt::default().around(7.0).is_exact());
    }
}
