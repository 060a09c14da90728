//! Closed forms of write amplification, and the distributions behind them.
//!
//! `U` pages of data live in blocks with room for `T` pages, `b` pages per block; single pages are
//! overwritten. Fill factor `rho = U / T`, its inverse `alpha`, over-provisioning
//! `OP = T / U - 1`. `T` is counted when a victim is chosen: all blocks that are not free, of open
//! blocks what is written ([`super::Counts::in_use_pages_mean`]). Blocks that cleaning keeps free
//! hold nothing and do not count. Every form holds for many blocks; `A` is the write amplification:
//! pages programmed per page that the host wrote.
//!
//! Sources: Menon and Robinson; Xiang and Kurkoski 2012; Desnoyers, "Analytic Modeling of SSD
//! Write Performance", SYSTOR 2012; Van Houdt, "A Mean Field Model for a Class of Garbage
//! Collection Algorithms in Flash-based Solid State Drives", SIGMETRICS 2013; Agarwal and Marrow
//! 2010. Tested against printed values here and against the model in `tests/it/flash`.

/// Fill factor of an over-provisioning `T / U - 1`.
pub fn fill_factor(over_provisioning: f64) -> f64 {
    1.0 / (1.0 + over_provisioning)
}

/// The principal branch of Lambert's W for `-1/e <= x <= 0`: `w e^w = x`, `w >= -1`.
pub fn lambert_w0(x: f64) -> f64 {
    // Halley's iteration from the branch-point series; cubic convergence.
    let p = (2.0 * (std::f64::consts::E * x + 1.0)).max(0.0).sqrt();
    let mut w = -1.0 + p - p * p / 3.0 + 11.0 / 72.0 * p.powi(3);
    for _ in 0..60 {
        let exp = w.exp();
        let error = w * exp - x;
        let denominator = exp * (w + 1.0) - (w + 2.0) * error / (2.0 * w + 2.0);
        if denominator == 0.0 || !denominator.is_finite() {
            break;
        }
        let step = error / denominator;
        w -= step;
        if step.abs() < 1e-15 {
            break;
        }
    }
    w
}

/// FIFO (LRU) cleaning, and greedy with infinitely large blocks: `A = 1 / (1 - e^(-alpha / A))`.
pub fn fifo(rho: f64) -> f64 {
    let alpha = 1.0 / rho;
    alpha / (alpha + lambert_w0(-alpha * (-alpha).exp()))
}

/// Where greedy cleaning of blocks of `b` pages takes its victims: all of them have `k` or `k - 1`
/// live pages, and `x` (0 to 1) says how far below `k` the cut is.
///
/// The share of blocks with `l > k` live pages is proportional to `1 / l` (a block loses pages at a
/// rate proportional to `l`), that of blocks with `k` to `x / k`; shares and live pages sum up
/// where `rho b (H_b - H_k + x / k) = b - k + x`.
pub fn greedy_cut(rho: f64, b: u32) -> (u32, f64) {
    // `k = b` solves it trivially; the excess is negative below and grows once k < rho b.
    let full = rho * f64::from(b);
    let mut excess = 0.0;
    let mut k = b;
    while k > 1 {
        let step = full / f64::from(k) - 1.0;
        if excess + step >= 0.0 && step > 0.0 {
            return (k, -excess / step);
        }
        excess += step;
        k -= 1;
    }
    (1, 1.0)
}

/// Greedy cleaning of blocks of `b` pages: `A = b / (b - k + x)` with [`greedy_cut`].
pub fn greedy(rho: f64, b: u32) -> f64 {
    let (k, x) = greedy_cut(rho, b);
    f64::from(b) / (f64::from(b - k) + x)
}

/// The share of blocks with at least `l` live pages under greedy cleaning, `l` from 1 to `b`.
pub fn greedy_tail(rho: f64, b: u32) -> Vec<f64> {
    let (k, x) = greedy_cut(rho, b);
    let scale = rho * f64::from(b) / (f64::from(b - k) + x);
    let mut tail = vec![1.0; b as usize];
    let mut above = 0.0;
    for l in (k..=b).rev() {
        above += scale / f64::from(l) * if l == k { x } else { 1.0 };
        tail[l as usize - 1] = above.min(1.0);
    }
    tail
}

/// The share of blocks with at least `l` live pages under FIFO cleaning, `l` from 1 to `b`: a block
/// of age `a` (0 to 1) has `b e^(-a alpha / A)`, rounded to the nearest.
pub fn fifo_tail(rho: f64, b: u32) -> Vec<f64> {
    let reach = fifo(rho) * rho;
    let share = |l: u32| reach * (f64::from(b) / (f64::from(l) - 0.5)).ln();
    (1..=b).map(|l| share(l).min(1.0)).collect()
}

/// Cleaning the best of `d` random blocks of `b` pages; `d = 1` is random cleaning.
pub fn d_choices(rho: f64, b: u32, d: u32) -> f64 {
    let live = |a: f64| d_choices_tail(rho, b, d, a).iter().sum::<f64>();
    let wanted = rho * f64::from(b);
    let (mut low, mut high) = (1.0, 2.0);
    while live(high) < wanted && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if live(middle) < wanted { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The share of blocks with at least `l` live pages, `l` from 1 to `b`, where the amplification is
/// `a`: `l (w_l - w_(l+1)) = a rho (1 - w_l^d)`, `w_(b+1) = 0`.
pub fn d_choices_tail(rho: f64, b: u32, d: u32, a: f64) -> Vec<f64> {
    let mut tail = vec![0.0; b as usize];
    let mut above = 0.0;
    for l in (1..=b).rev() {
        let l_pages = f64::from(l);
        // The left side grows with w and is concave up: Newton from 1 falls onto the root.
        let mut w = 1.0f64;
        for _ in 0..200 {
            let power = w.powi(d as i32 - 1);
            let value = l_pages * (w - above) - a * rho * (1.0 - power * w);
            let slope = l_pages + a * rho * f64::from(d) * power;
            let next = w - value / slope;
            let done = (next - w).abs() < 1e-15;
            w = next;
            if done {
                break;
            }
        }
        above = w.clamp(above, 1.0);
        tail[l as usize - 1] = above;
    }
    tail
}

/// Random cleaning: `A = 1 / (1 - rho)`.
pub fn random(rho: f64) -> f64 {
    1.0 / (1.0 - rho)
}

/// Agarwal and Marrow's estimate of greedy cleaning, `(1 + OP) / (2 OP)`; up to 20 % low.
pub fn agarwal(over_provisioning: f64) -> f64 {
    (1.0 + over_provisioning) / (2.0 * over_provisioning)
}

/// A class of pages that are overwritten alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// Share of the data, above 0 to 1.
    pub space: f64,
    /// Share of the writes, 0 to 1.
    pub writes: f64,
}

/// Several classes in one log that is cleaned first in, first out:
/// `A = sum r_i / (1 - e^(-(r_i / f_i) alpha / A))`.
pub fn one_log(rho: f64, classes: &[Class]) -> f64 {
    let alpha = 1.0 / rho;
    let next = |a: f64| -> f64 {
        let of = |class: &Class| {
            let hits = class.writes / class.space * alpha / a;
            if class.writes == 0.0 {
                a / alpha * class.space
            } else {
                class.writes / -(-hits).exp_m1()
            }
        };
        classes.iter().map(of).sum()
    };
    // next(a) - a falls from positive to negative.
    let (mut low, mut high) = (1.0, 1e9);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if next(middle) > middle { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Two classes in a log each: the least amplification over all ways to split the spare space, and
/// the share of the spare space that the first class has then.
pub fn two_logs(rho: f64, classes: [Class; 2]) -> (f64, f64) {
    let spare = 1.0 / rho - 1.0;
    let at = |share: f64| -> f64 {
        let [hot, cold] = classes;
        let of =
            |class: Class, part: f64| class.writes * fifo(1.0 / (1.0 + spare * part / class.space));
        of(hot, share) + of(cold, 1.0 - share)
    };
    // Golden-section search; the sum of two convex functions is convex.
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
    for _ in 0..200 {
        let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
        if at(left) < at(right) { high = right } else { low = left }
    }
    let share = 0.5 * (low + high);
    (at(share), share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over-provisioning, FIFO, greedy (b = 64, 256, 1024), d = 2, 3, 5, 10 (b = 256), random,
    /// Agarwal; independently computed to three digits.
    const TABLE: [[f64; 11]; 8] = [
        [0.05, 10.672, 9.196, 10.259, 10.566, 14.442, 12.557, 11.295, 10.595, 21.000, 10.500],
        [0.07, 7.817, 7.010, 7.597, 7.761, 10.584, 9.232, 8.327, 7.828, 15.286, 7.643],
        [0.10, 5.678, 5.247, 5.562, 5.648, 7.670, 6.713, 6.073, 5.722, 11.000, 5.500],
        [0.15, 4.016, 3.800, 3.960, 4.002, 5.394, 4.741, 4.305, 4.066, 7.667, 3.833],
        [0.20, 3.188, 3.053, 3.153, 3.179, 4.253, 3.751, 3.417, 3.234, 6.000, 3.000],
        [0.28, 2.481, 2.403, 2.461, 2.476, 3.274, 2.903, 2.655, 2.520, 4.571, 2.286],
        [0.50, 1.716, 1.681, 1.707, 1.714, 2.202, 1.975, 1.824, 1.742, 3.000, 1.500],
        [1.00, 1.255, 1.239, 1.251, 1.254, 1.531, 1.401, 1.316, 1.270, 2.000, 1.000],
    ];

    #[test]
    fn the_forms_give_their_printed_values() {
        for row in TABLE {
            let rho = fill_factor(row[0]);
            let found = [
                fifo(rho),
                greedy(rho, 64),
                greedy(rho, 256),
                greedy(rho, 1024),
                d_choices(rho, 256, 2),
                d_choices(rho, 256, 3),
                d_choices(rho, 256, 5),
                d_choices(rho, 256, 10),
                random(rho),
                agarwal(row[0]),
            ];
            for (column, (found, expected)) in found.iter().zip(&row[1..]).enumerate() {
                let error = (found - expected).abs();
                assert!(error < 0.00051, "OP {}, column {column}: {found}, not {expected}", row[0]);
            }
        }
    }

    #[test]
    fn distributions_hold_all_pages() {
        for rho in [0.95, 0.8, 0.55] {
            for b in [64, 1024] {
                let a = d_choices(rho, b, 3);
                for (tail, within) in [
                    (greedy_tail(rho, b), 1e-9),
                    (d_choices_tail(rho, b, 3, a), 1e-6),
                    (fifo_tail(rho, b), 1e-3),
                ] {
                    let live = tail.iter().sum::<f64>() / f64::from(b);
                    assert!((live / rho - 1.0).abs() < within, "{live}, not {rho}");
                    assert!(tail.windows(2).all(|pair| pair[0] >= pair[1]), "{tail:?}");
                }
            }
        }
    }

    #[test]
    fn one_choice_is_random_and_many_are_greedy() {
        for (rho, b) in [(0.9, 64), (0.7, 256)] {
            assert!((d_choices(rho, b, 1) / random(rho) - 1.0).abs() < 1e-9);
            assert!((d_choices(rho, b, 10_000) / greedy(rho, b) - 1.0).abs() < 2e-3);
        }
    }

    #[test]
    fn logs_of_hot_and_cold_data_give_their_printed_values() {
        for (hot, values) in [
            (0.20, [(0.07, 8.182, 5.254), (0.15, 4.370, 2.832), (0.28, 2.820, 1.866)]),
            (0.10, [(0.07, 8.866, 3.271), (0.15, 4.957, 1.930), (0.28, 3.296, 1.412)]),
            (0.05, [(0.07, 9.958, 2.086), (0.15, 5.730, 1.412), (0.28, 3.788, 1.170)]),
        ] {
            let classes =
                [Class { space: hot, writes: 1.0 - hot }, Class { space: 1.0 - hot, writes: hot }];
            for (over_provisioning, one, two) in values {
                let rho = fill_factor(over_provisioning);
                let (found_one, found_two) = (one_log(rho, &classes), two_logs(rho, classes).0);
                assert!((found_one - one).abs() < 0.00051, "{hot} {rho}: {found_one}, not {one}");
                assert!((found_two - two).abs() < 0.00051, "{hot} {rho}: {found_two}, not {two}");
            }
        }
        let uniform = [Class { space: 0.3, writes: 0.3 }, Class { space: 0.7, writes: 0.7 }];
        assert!((one_log(0.9, &uniform) / fifo(0.9) - 1.0).abs() < 1e-9);
        assert!((two_logs(0.9, uniform).0 / fifo(0.9) - 1.0).abs() < 1e-6);
    }
}
