//! What to buy: cost per transaction at a response-time limit, and who dominates whom.

use serde::{Deserialize, Serialize};

use crate::error::positive;
use crate::prices::per_million;
use crate::{Error, Interval};

/// A place that the transactions could run at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// Transactions per minute.
    pub per_min: Interval,
    /// 99 % of them take no longer, ms; none where it is not known.
    pub p99_ms: Option<Interval>,
    /// Cost a month; none where it is not known.
    pub per_month: Option<f64>,
    /// Why it has no price; empty where it has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub no_price: String,
    /// What is paid for, and when that was its price.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub terms: String,
    /// Values of its model that nobody published or measured, and all of them.
    pub assumed: Option<(u32, u32)>,
}

/// Whether an offer keeps a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// All of its interval does.
    Yes,
    /// It lies on both sides, or is not known.
    CannotBeTold,
    /// None of it does.
    No,
}

/// An offer in its rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// The offer.
    #[serde(flatten)]
    pub offer: Offer,
    /// Of the limit.
    pub keeps: Keeps,
    /// Cost of a million transactions; none without a price.
    pub per_million: Option<Interval>,
    /// The same if it does half of what is predicted.
    pub per_million_if_half: Option<f64>,
    /// Whether it would still be the cheapest of those that keep the limit.
    pub best_if_half: bool,
    /// Those that cost no more, do no less and answer no later, and one of it strictly.
    pub dominated_by: Vec<String>,
    /// Of those the ones of which the intervals say so too.
    pub surely_dominated_by: Vec<String>,
}

/// All offers, the cheapest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Those that keep the limit, then those of which it cannot be told, then the others; each by
    /// its cost of a million, those without a price last, by their rate.
    pub ranked: Vec<Ranked>,
    /// The cheapest of those that keep the limit.
    pub best: Option<String>,
    /// The cheapest of those whose figure keeps the limit, whatever its interval: the answer by the
    /// figures alone, where [`Choice::best`] is the one that is sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likely: Option<String>,
    /// Others that may be as cheap: their intervals overlap with that of the best.
    pub may_be_as_good: Vec<String>,
    /// Why no best is named; empty where one is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cannot_be_told: String,
}

/// Whether `p99_ms` keeps `limit_ms`.
fn keeps(p99_ms: Option<Interval>, limit_ms: Option<f64>) -> Keeps {
    match (p99_ms, limit_ms) {
        (_, None) => Keeps::Yes,
        (Some(p99), Some(limit)) if p99.high <= limit => Keeps::Yes,
        (Some(p99), Some(limit)) if p99.low > limit => Keeps::No,
        _ => Keeps::CannotBeTold,
    }
}

/// No worse in everything that both have, better in one; `ends` takes the end of the better one and
/// of the other.
fn dominates(one: &Offer, other: &Offer, surely: bool) -> bool {
    let (Some(own), Some(others)) = (one.per_month, other.per_month) else { return false };
    let low = |interval: &Interval| if surely { interval.low } else { interval.value };
    let high = |interval: &Interval| if surely { interval.high } else { interval.value };
    let (rate, other_rate) = (low(&one.per_min), high(&other.per_min));
    let times = one.p99_ms.zip(other.p99_ms);
    let times = times.map(|(own, other)| (high(&own), low(&other)));
    // Response times that one of the two lacks decide nothing.
    let (is_no_later, is_earlier) =
        times.map_or((true, false), |(own, other)| (own <= other, own < other));
    let is_no_worse = own <= others && rate >= other_rate && is_no_later;
    is_no_worse && (own < others || rate > other_rate || is_earlier)
}

/// Ranks offers by the cost of a million transactions, those first of which 99 % of the
/// transactions keep `limit_ms`.
///
/// # Errors
/// Where a rate, a price or the limit cannot be.
pub fn choose(offers: &[Offer], limit_ms: Option<f64>) -> Result<Choice, Error> {
    if let Some(limit) = limit_ms {
        positive("the limit of the response time", limit)?;
    }
    for offer in offers {
        positive(&format!("the rate of {}", offer.name), offer.per_min.low)?;
        if let Some(price) = offer.per_month {
            positive(&format!("the price of {}", offer.name), price)?;
        }
    }
    let mut ranked: Vec<Ranked> =
        offers.iter().map(|offer| rank(offer, offers, limit_ms)).collect();
    ranked.sort_by(|a, b| {
        let group = |ranked: &Ranked| (ranked.keeps as u8, ranked.per_million.is_none());
        let cost = |ranked: &Ranked| ranked.per_million.map_or(0.0, |cost| cost.value);
        let rate = |ranked: &Ranked| ranked.offer.per_min.value;
        group(a)
            .cmp(&group(b))
            .then(cost(a).total_cmp(&cost(b)))
            .then(rate(b).total_cmp(&rate(a)))
            .then_with(|| a.offer.name.cmp(&b.offer.name))
    });
    let priced: Vec<(String, Interval)> = ranked
        .iter()
        .filter(|ranked| ranked.keeps == Keeps::Yes)
        .filter_map(|ranked| Some((ranked.offer.name.clone(), ranked.per_million?)))
        .collect();
    for own in &mut ranked {
        let half = own.per_million_if_half.filter(|_| own.keeps == Keeps::Yes);
        own.best_if_half = half.is_some_and(|half| {
            priced.iter().all(|(name, cost)| *name == own.offer.name || half <= cost.value)
        });
    }
    let best = priced.first();
    let may_be_as_good = best.map_or(Vec::new(), |(_, best)| {
        let others = priced[1..].iter().filter(|(_, cost)| cost.low <= best.high);
        others.map(|(name, _)| name.clone()).collect()
    });
    let by_figures = |ranked: &&Ranked| match (ranked.offer.p99_ms, limit_ms) {
        (_, None) => true,
        (Some(p99), Some(limit)) => p99.value <= limit,
        (None, Some(_)) => false,
    };
    let likely = ranked
        .iter()
        .filter(by_figures)
        .filter_map(|ranked| Some((ranked.per_million?.value, &ranked.offer.name)))
        .min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)))
        .map(|(_, name)| name.clone());
    let cannot_be_told = match (&best, ranked.iter().any(|ranked| ranked.per_million.is_some())) {
        (Some(_), _) => String::new(),
        (None, false) => "no offer has a price".to_owned(),
        (None, true) => "no offer with a price is sure to keep the limit".to_owned(),
    };
    let best = best.map(|(name, _)| name.clone());
    Ok(Choice { ranked, best, likely, may_be_as_good, cannot_be_told })
}

fn rank(offer: &Offer, offers: &[Offer], limit_ms: Option<f64>) -> Ranked {
    let per_million_of = |price: f64| offer.per_min.falling(|rate| per_million(price, rate));
    let cost = offer.per_month.map(per_million_of);
    let by = |surely: bool| {
        let better = offers.iter().filter(|other| dominates(other, offer, surely));
        better.map(|other| other.name.clone()).collect()
    };
    Ranked {
        offer: offer.clone(),
        keeps: keeps(offer.p99_ms, limit_ms),
        per_million: cost,
        per_million_if_half: cost.map(|cost| cost.value * 2.0),
        best_if_half: false,
        dominated_by: by(false),
        surely_dominated_by: by(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prices::MINUTES_PER_MONTH;

    fn offer(name: &str, per_min: Interval, p99: f64, per_month: Option<f64>) -> Offer {
        Offer {
            name: name.to_owned(),
            per_min,
            p99_ms: Some(Interval::new(p99, p99 * 0.9, p99 * 1.1)),
            per_month,
            no_price: String::new(),
            terms: String::new(),
            assumed: None,
        }
    }

    fn names(choice: &Choice) -> Vec<&str> {
        choice.ranked.iter().map(|ranked| ranked.offer.name.as_str()).collect()
    }

    #[test]
    fn the_limit_goes_before_the_cost() {
        let exact = Interval::exact;
        let offers = [
            offer("cheap", exact(1000.0), 50.0, Some(1.0)),
            offer("near", exact(1000.0), 10.0, Some(2.0)),
            offer("dear", exact(1000.0), 5.0, Some(9.0)),
            offer("fair", exact(1000.0), 5.0, Some(4.0)),
            offer("free of price", exact(9000.0), 1.0, None),
        ];
        let choice = choose(&offers, Some(10.0)).unwrap();
        assert_eq!(names(&choice), ["fair", "dear", "free of price", "near", "cheap"]);
        assert_eq!(choice.best.as_deref(), Some("fair"));
        let cost = choice.ranked[0].per_million.unwrap().value;
        assert!((cost - 4.0 / (1000.0 * MINUTES_PER_MONTH) * 1e6).abs() < 1e-12, "{cost}");
        // Half of what is predicted is 8 in the place of 4, and still less than 9.
        assert!(choice.ranked[0].best_if_half);
        // 10 ms, between 9 and 11, keeps the limit by its figure alone.
        assert_eq!(choice.likely.as_deref(), Some("near"));
        let unlimited = choose(&offers, None).unwrap();
        assert_eq!(unlimited.likely, unlimited.best);
        assert_eq!(unlimited.best.as_deref(), Some("cheap"));
        assert_eq!(choose(&offers[..1], Some(10.0)).unwrap().best, None);
    }

    #[test]
    fn dominance_is_sure_where_the_intervals_say_so() {
        let offers = [
            offer("a", Interval::new(2000.0, 1500.0, 2500.0), 5.0, Some(10.0)),
            offer("b", Interval::new(1000.0, 800.0, 1200.0), 9.0, Some(10.0)),
            offer("c", Interval::new(1900.0, 1400.0, 1950.0), 8.0, Some(11.0)),
            offer("d", Interval::new(3000.0, 2900.0, 3100.0), 5.0, Some(20.0)),
        ];
        let choice = choose(&offers, None).unwrap();
        let of = |name: &str| choice.ranked.iter().find(|own| own.offer.name == name).unwrap();
        assert_eq!(of("b").dominated_by, ["a"]);
        assert_eq!(of("b").surely_dominated_by, ["a"]);
        assert_eq!(of("c").dominated_by, ["a"]);
        assert!(of("c").surely_dominated_by.is_empty(), "its high is above the low of a");
        assert!(of("a").dominated_by.is_empty() && of("d").dominated_by.is_empty());
        assert_eq!(choice.best.as_deref(), Some("a"));
        assert!(choice.may_be_as_good.contains(&"c".to_owned()), "{choice:?}");
        assert!(!choice.may_be_as_good.contains(&"b".to_owned()), "{choice:?}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let none = offer("x", Interval::exact(0.0), 1.0, Some(1.0));
        assert!(choose(&[none], None).unwrap_err().to_string().contains("the rate of x is 0"));
        let fine = offer("x", Interval::exact(1.0), 1.0, Some(1.0));
        assert!(choose(&[fine], Some(-1.0)).is_err());
    }
}
