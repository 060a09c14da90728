//! A trace played faster or slower.

use units::Rate;

use super::{Error, Result, note_step};
use crate::Trace;

/// Multiplies all due times by `factor`: below 1 the load becomes denser. Measured service times
/// stay: they belong to the device.
///
/// # Errors
/// Where the trace is malformed, the factor is not a positive number, or a time would exceed 64
/// bits.
pub fn scale_time(mut trace: Trace, factor: f64) -> Result<Trace> {
    trace.validate()?;
    if !(factor.is_finite() && factor > 0.0) {
        return Err(Error::BadFactor { factor });
    }
    for (index, due) in trace.due.iter_mut().enumerate() {
        let scaled = (*due as f64 * factor).round();
        if scaled >= u64::MAX as f64 {
            return Err(Error::Overflow { what: "due time", index });
        }
        // A factor of 1 must not lose what a double cannot hold.
        *due = if factor == 1.0 { *due } else { scaled as u64 };
    }
    note_step(&mut trace.origin, format!("scale: times multiplied by {factor}"));
    Ok(trace)
}

/// The factor that gives a trace this mean rate: requests over the span.
///
/// # Errors
/// Where all requests are due at once, or the rate is not positive.
pub fn factor_for_rate(trace: &Trace, rate: Rate) -> Result<f64> {
    let span = trace.span().as_secs_f64();
    if span == 0.0 || trace.count() < 2 {
        return Err(Error::NoRate);
    }
    let factor = trace.count() as f64 / span / rate.0;
    if factor.is_finite() && factor > 0.0 { Ok(factor) } else { Err(Error::BadFactor { factor }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::any_trace;
    use super::*;
    use crate::Malformed;

    #[test]
    fn impossible_factors_are_refused() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = scale_time(Trace::default(), factor).expect_err("refused");
            assert!(matches!(error, Error::BadFactor { .. }));
        }
        let ragged = Trace { due: vec![1 << 60], ..Trace::default() };
        let error = scale_time(ragged, 1.0).expect_err("ragged");
        assert!(matches!(error, Error::Malformed(Malformed::Ragged { .. })));
        let mut far = crate::generate::oltp_like(&crate::generate::OltpLike::default());
        let last = far.count() - 1;
        far.due[last] = 1 << 60;
        let expected = Err(Error::Overflow { what: "due time", index: last });
        assert_eq!(scale_time(far, 1000.0), expected);
        assert_eq!(factor_for_rate(&Trace::default(), Rate(5.0)), Err(Error::NoRate));
    }

    proptest! {
        #[test]
        fn times_are_multiplied_and_nothing_else(trace in any_trace(), factor in 0.01f64..100.0) {
            let out = scale_time(trace.clone(), factor).expect("scaled");
            prop_assert_eq!(out.validate(), Ok(()));
            for (new, old) in out.due.iter().zip(&trace.due) {
                prop_assert!((*new as f64 - *old as f64 * factor).abs() <= 0.5);
            }
            let same = Trace { due: trace.due.clone(), origin: trace.origin.clone(), ..out };
            prop_assert_eq!(same, trace);
        }

        #[test]
        fn a_rate_is_reached(trace in any_trace(), rate in 1.0f64..1e6) {
            if let Ok(factor) = factor_for_rate(&trace, Rate(rate)) {
                let out = scale_time(trace, factor).expect("scaled");
                let reached = out.count() as f64 / out.span().as_secs_f64();
                // Half a nanosecond of rounding over the span.
                let tolerance = 1e-9 / out.span().as_secs_f64() + 1e-9;
                prop_assert!((reached / rate - 1.0).abs() <= tolerance, "{reached} {rate}");
            }
        }
    }
}
