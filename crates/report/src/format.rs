//! Numbers as people read them: three significant digits and the unit that keeps them short.
//!
//! `assets/scale.js` has the same rules for ticks and read-outs; `tests/it/format_cases.json` is
//! checked against both, so a value looks the same in a table, in a tooltip and on the terminal.
//!
//! Invariants: no panic and no empty text for any number; what is not finite is `n/a`.

/// Unit names with the factor to the base unit, ascending.
type Ladder = &'static [(&'static str, f64)];

const TIMES: Ladder = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
];
const SIZES: Ladder = &[
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("PiB", 1_125_899_906_842_624.0),
];
const RATES: Ladder = &[("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12)];

/// What is shown where there is no number.
pub const NOTHING: &str = "n/a";

/// A duration given in nanoseconds: `850 ns`, `1.23 ms`, `2.5 min`.
pub fn duration_ns(ns: f64) -> String {
    on_ladder(ns, TIMES)
}

/// A time given in nanoseconds that may be longer: `>= 38.9 s`.
pub fn at_least_ns(ns: f64, open_ended: bool) -> String {
    let text = duration_ns(ns);
    if open_ended { format!(">= {text}") } else { text }
}

/// A size given in bytes, in binary units: `512 B`, `4 KiB`, `1.5 MiB`.
pub fn bytes(bytes: f64) -> String {
    on_ladder(bytes, SIZES)
}

/// A transfer rate given in bytes per second, in decimal units as data sheets have it: `530 MB/s`.
pub fn bytes_per_s(rate: f64) -> String {
    on_ladder(rate, RATES)
}

/// A plain number: `0.0816`, `12.3`, `12,345`, `31.4 M` from ten million on.
pub fn count(count: f64) -> String {
    if !count.is_finite() {
        return NOTHING.to_owned();
    }
    let size = count.abs();
    if size >= 1e16 || (size != 0.0 && size < 1e-4) {
        return format!("{count:.2e}");
    }
    for (factor, suffix) in [(1e12, " T"), (1e9, " G"), (1e6, " M")] {
        if size >= factor * if factor == 1e6 { 10.0 } else { 1.0 } {
            return grouped(count / factor) + suffix;
        }
    }
    grouped(count)
}

/// A share of one as a percentage: `0.123` is `12.3%`.
pub fn percent(share: f64) -> String {
    value(share * 100.0, "%")
}

/// A figure with its interval, both to the digits that the interval supports:
/// `0.082 (0.071 to 0.094)`.
pub fn ratio_with_interval(ratio: f64, interval: (f64, f64)) -> String {
    let (low, high) = interval;
    if !(ratio.is_finite() && low.is_finite() && high.is_finite()) {
        return count(ratio);
    }
    let width = (high - low).abs();
    // Two significant digits of the width: 0.023 wide is three decimals.
    let decimals =
        if width > 0.0 { (1.0 - width.log10().floor()).clamp(0.0, 6.0) as usize } else { 3 };
    let show = |number: f64| format!("{:.decimals$}", rounded(number, decimals));
    format!("{} ({} to {})", show(ratio), show(low), show(high))
}

/// A number in the unit of an [`crate::Axis`], with the unit behind it.
pub fn value(number: f64, unit: &str) -> String {
    let time_ns = |factor: f64| duration_ns(number * factor);
    match unit {
        "ns" => time_ns(1.0),
        // Nothing has no magnitude that would choose a unit: keep the one it is given in.
        "us" | "µs" | "ms" | "s" if number == 0.0 => format!("0 {unit}"),
        "us" | "µs" => time_ns(1e3),
        "ms" => time_ns(1e6),
        "s" => time_ns(1e9),
        "bytes" | "B" => bytes(number),
        "bytes/s" | "B/s" => bytes_per_s(number),
        _ if !number.is_finite() => NOTHING.to_owned(),
        "%" => count(number) + "%",
        "" => count(number),
        _ => format!("{} {unit}", count(number)),
    }
}

/// The largest unit in which the rounded number is at least 1.
fn on_ladder(number: f64, ladder: Ladder) -> String {
    if !number.is_finite() {
        return NOTHING.to_owned();
    }
    // 999.96 us rounds to 1000 us, which is 1 ms: compare what would be printed.
    let fits = |(_, factor): &&(&str, f64)| {
        let scaled = number.abs() / factor;
        rounded(scaled, decimals_of(scaled)) >= 1.0
    };
    let (unit, factor) = ladder.iter().rev().find(fits).unwrap_or(&ladder[0]);
    format!("{} {unit}", grouped(number / factor))
}

/// Decimals that make three significant digits; a small number keeps at most seven decimals.
fn decimals_of(number: f64) -> usize {
    let size = number.abs();
    if size == 0.0 {
        return 0;
    }
    (2.0 - size.log10().floor()).clamp(0.0, 7.0) as usize
}

/// Rounds half away from zero, as `Math.round` does for the positive numbers that it is given.
fn rounded(number: f64, decimals: usize) -> f64 {
    let factor = 10f64.powi(decimals as i32);
    (number.abs() * factor + 0.5).floor() / factor * if number < 0.0 { -1.0 } else { 1.0 }
}

/// Three significant digits without trailing zeros; thousands apart.
fn grouped(number: f64) -> String {
    let decimals = decimals_of(number);
    let rounded = rounded(number, decimals);
    let text = format!("{:.decimals$}", rounded.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if rounded < 0.0 {
        out.push('-');
    }
    for (index, digit) in whole.char_indices() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cases_shared_with_the_page_script() {
        let text = include_str!("../tests/it/format_cases.json");
        let cases: Vec<(f64, String, String)> = serde_json::from_str(text).unwrap();
        assert!(cases.len() > 30);
        for (number, unit, expected) in cases {
            assert_eq!(value(number, &unit), expected, "{number} {unit}");
        }
    }

    #[test]
    fn what_is_no_number_is_said() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for unit in ["ns", "bytes", "bytes/s", "%", "", "tx/min"] {
                assert_eq!(value(number, unit), NOTHING, "{number} {unit}");
            }
        }
    }

    #[test]
    fn an_interval_decides_the_digits() {
        assert_eq!(ratio_with_interval(0.08156, (0.0711, 0.0943)), "0.082 (0.071 to 0.094)");
        assert_eq!(ratio_with_interval(1.0421, (1.0412, 1.0429)), "1.0421 (1.0412 to 1.0429)");
        assert_eq!(ratio_with_interval(123.4, (100.0, 150.0)), "123 (100 to 150)");
        assert_eq!(ratio_with_interval(1.0, (1.0, 1.0)), "1.000 (1.000 to 1.000)");
        assert_eq!(ratio_with_interval(0.5, (f64::NAN, 1.0)), "0.5");
        assert_eq!(percent(0.1234), "12.3%");
    }

    proptest! {
        #[test]
        fn three_digits_are_within_half_a_percent(number in 1e-3f64..1e15) {
            let text = duration_ns(number);
            let (digits, unit) = text.split_once(' ').unwrap();
            let factor = TIMES.iter().find(|(name, _)| *name == unit).unwrap().1;
            let back = digits.replace(',', "").parse::<f64>().unwrap() * factor;
            prop_assert!((back / number - 1.0).abs() <= 0.005_001, "{number} is {text}");
        }

        #[test]
        fn no_number_panics(number: f64, low: f64, high: f64) {
            for unit in ["ns", "us", "bytes", "bytes/s", "%", "", "x"] {
                prop_assert!(!value(number, unit).is_empty());
            }
            prop_assert!(!ratio_with_interval(number, (low, high)).is_empty());
        }
    }
}
