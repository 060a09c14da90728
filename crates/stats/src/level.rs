//! Where the level of a series changed.
//!
//! Pettitt's statistic (Pettitt, "A non-parametric approach to the change-point problem", Applied
//! Statistics 28, 1979): the largest difference of ranks before and after a point, blind to
//! outliers and to the shape of the scatter. How likely it is without any change is counted over
//! random orders of the same values, so that short series and ties need no approximation. A series
//! is cut where a change is shown, and both parts are looked at again.

use crate::rng::Rng;

/// Fewest values on each side of a change.
const FEWEST: usize = 3;
/// Random orders that are tried.
const ORDERS: u32 = 1999;
/// Share of them that may do as well by chance.
const CHANCE: f64 = 0.005;

/// Indexes at which another level begins, ascending. The same seed gives the same answer; at most
/// 0.5 % of series without a change have one cut at first.
///
/// # Panics
/// Never; values that are no numbers compare as the largest ones.
pub fn level_changes(series: &[f64], seed: u64) -> Vec<usize> {
    let mut rng = Rng::new(seed);
    let mut found = Vec::new();
    // Parts as their begin and end.
    let mut open = vec![(0, series.len())];
    while let Some((from, to)) = open.pop() {
        if let Some(at) = change_of(&series[from..to], &mut rng) {
            let at = from + at;
            found.push(at);
            open.extend([(from, at), (at, to)]);
        }
    }
    found.sort_unstable();
    found
}

/// Where a series changes, if that is shown.
fn change_of(series: &[f64], rng: &mut Rng) -> Option<usize> {
    if series.len() < 2 * FEWEST {
        return None;
    }
    let mut ranks = ranks(series);
    let (at, most) = largest(&ranks)?;
    if most == 0.0 {
        return None;
    }
    let allowed = (CHANCE * f64::from(ORDERS + 1)) as u32;
    let mut as_large = 1;
    for _ in 0..ORDERS {
        shuffle(&mut ranks, rng);
        let (_, other) = largest(&ranks)?;
        as_large += u32::from(other >= most);
        if as_large > allowed {
            return None;
        }
    }
    Some(at)
}

/// The cut after which the sum of ranks differs most from what is expected, and by how much.
fn largest(ranks: &[f64]) -> Option<(usize, f64)> {
    let middle = f64::midpoint(ranks.len() as f64, 1.0);
    let mut sum = 0.0;
    let cuts = ranks.iter().enumerate().map(|(index, rank)| {
        sum += rank - middle;
        (index + 1, f64::abs(sum))
    });
    cuts.filter(|(at, _)| (FEWEST..=ranks.len() - FEWEST).contains(at))
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// Ranks from 1, those of equal values their mean.
fn ranks(series: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by(|a, b| series[*a].total_cmp(&series[*b]));
    let mut ranks = vec![0.0; series.len()];
    let mut from = 0;
    while from < order.len() {
        let same = |index: &&usize| series[**index] == series[order[from]];
        let count = order[from..].iter().take_while(same).count().max(1);
        let mean = from as f64 + f64::midpoint(count as f64, 1.0);
        order[from..from + count].iter().for_each(|index| ranks[*index] = mean);
        from += count;
    }
    ranks
}

/// Fisher and Yates.
fn shuffle(values: &mut [f64], rng: &mut Rng) {
    for last in (1..values.len()).rev() {
        values.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values around 100 with a normal scatter of 2, times a factor from each index on.
    fn series(count: usize, steps: &[(usize, f64)], seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let factor = |index| {
            let past = steps.iter().filter(|(from, _)| index >= *from);
            past.map(|(_, factor)| factor).product::<f64>()
        };
        // Twelve uniform numbers have a variance of one, and their sum is nearly normal.
        let mut normal = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        (0..count).map(|index| (100.0 + 2.0 * normal()) * factor(index)).collect()
    }

    #[test]
    fn steps_are_found_where_they_are() {
        assert_eq!(level_changes(&series(40, &[(25, 1.2)], 1), 1), [25]);
        assert_eq!(level_changes(&series(60, &[(20, 0.8), (40, 1.3)], 2), 1), [20, 40]);
        let found = level_changes(&series(12, &[(6, 2.0)], 3), 1);
        assert_eq!(found, [6], "as few as six on a side");
    }

    #[test]
    fn an_outlier_is_no_step() {
        let mut values = series(30, &[], 4);
        values[15] = 1000.0;
        assert!(level_changes(&values, 1).is_empty());
        assert!(level_changes(&[5.0; 20], 1).is_empty(), "nothing changes");
        assert!(level_changes(&[1.0, 1.0, 2.0, 2.0, 2.0], 1).is_empty(), "too few");
        assert!(level_changes(&[], 1).is_empty());
    }

    #[test]
    fn without_a_change_hardly_any_is_found() {
        let wrong = (0..1000).filter(|seed| !level_changes(&series(30, &[], *seed), 7).is_empty());
        let wrong = wrong.count();
        // 5 expected; 14 or more have a chance below 0.001.
        assert!(wrong < 14, "{wrong} of 1000");
    }

    #[test]
    fn equal_values_share_their_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
    }
}
