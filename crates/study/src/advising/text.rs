//! Answers as rows of cells.

use advise::choice::{Choice, Keeps, Ranked};
use advise::{Answer, Interval};

use super::life::LifeOf;

/// A figure and its interval, as `3.21 (2.90 to 3.50)`.
pub fn within(figure: &Interval) -> String {
    let number = |value: f64| match value.abs() {
        value if value >= Interval::UNBOUNDED => "no end".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    };
    let own = number(figure.value);
    let (low, high) = (number(figure.low), number(figure.high));
    if low == own && high == own { own } else { format!("{own} ({low} to {high})") }
}

/// An answer as lines: the figure, then what it holds for and what would change it.
pub fn answer(answer: &Answer) -> Vec<String> {
    let head = match &answer.figure {
        Some(figure) => format!("{}: {} {}", answer.question, within(figure), answer.unit),
        None => format!("{}: cannot be told from this: {}", answer.question, answer.cannot_be_told),
    };
    let mut lines = vec![head.trim_end().to_owned()];
    lines.extend(answer.holds_for.iter().map(|state| format!("  holds for: {state}")));
    lines.extend(answer.changed_by.iter().map(|by| format!("  changed by: {by}")));
    lines
}

/// Ranked offers as a table, the first row its header.
pub fn choice(choice: &Choice, limit_ms: Option<f64>, currency: &str) -> Vec<Vec<String>> {
    let limit = limit_ms.map_or("LIMIT".to_owned(), |limit| format!("p99<={limit}ms"));
    let header = [
        "OFFER",
        "TX/MIN",
        "P99 MS",
        &limit,
        &format!("{currency}/MONTH"),
        &format!("{currency}/MILLION"),
        "IF HALF",
        "ASSUMED",
        "DOMINATED BY",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(choice.ranked.iter().map(|ranked| row(ranked, limit_ms.is_some())));
    rows
}

fn row(ranked: &Ranked, is_limited: bool) -> Vec<String> {
    let dash = || "-".to_owned();
    let keeps = match ranked.keeps {
        _ if !is_limited => "none",
        Keeps::Yes => "kept",
        Keeps::CannotBeTold => "cannot be told",
        Keeps::No => "missed",
    };
    let mut dominated = ranked.dominated_by.clone();
    for name in &mut dominated {
        if !ranked.surely_dominated_by.contains(name) {
            name.push('?');
        }
    }
    let half = ranked.per_million_if_half.map_or_else(dash, |cost| {
        let stands = if ranked.best_if_half { ", still cheapest" } else { "" };
        format!("{cost:.4}{stands}")
    });
    vec![
        ranked.offer.name.clone(),
        within(&ranked.offer.per_min),
        ranked.offer.p99_ms.as_ref().map_or_else(dash, within),
        keeps.to_owned(),
        ranked.offer.per_month.map_or_else(dash, |cost| format!("{cost:.2}")),
        ranked.per_million.as_ref().map_or_else(dash, within),
        half,
        ranked.offer.assumed.map_or_else(dash, |(some, all)| format!("{some} of {all}")),
        if dominated.is_empty() { dash() } else { dominated.join(", ") },
    ]
}

/// What a choice comes to, in sentences.
pub fn conclusion(choice: &Choice) -> Vec<String> {
    let mut lines = Vec::new();
    match &choice.best {
        Some(best) if choice.may_be_as_good.is_empty() => {
            lines.push(format!("Cheapest: {best}; no other interval reaches it."));
        }
        Some(best) => lines.push(format!(
            "Cheapest: {best}; whether it beats {} cannot be told: the intervals overlap.",
            choice.may_be_as_good.join(", ")
        )),
        None => {
            let why = &choice.cannot_be_told;
            lines.push(format!("Cheapest: cannot be told from this: {why}."));
        }
    }
    if let Some(likely) =
        choice.likely.as_ref().filter(|likely| choice.best.as_ref() != Some(likely))
    {
        lines.push(format!(
            "By the figures alone: {likely}; that it keeps the limit cannot be told."
        ));
    }
    for ranked in &choice.ranked {
        let offer = &ranked.offer;
        match offer.per_month {
            Some(_) => lines.push(format!("{}: {}", offer.name, offer.terms)),
            None => lines.push(format!("{}: no price: {}", offer.name, offer.no_price)),
        }
    }
    lines
}

/// A device's life as lines.
pub fn life(found: &LifeOf) -> Vec<String> {
    let mut lines = vec![format!("{} ({})", found.device, found.state)];
    let lifetimes = [("by rating", &found.by_rating), ("by erases", &found.by_cycles)];
    for (name, lifetime) in lifetimes {
        let Some(lifetime) = lifetime else { continue };
        let mut own = answer(&lifetime.years);
        own[0] = format!("{name}, {}", own[0]);
        lines.extend(own);
        for class in lifetime.classes.iter().filter(|class| !class.class.is_empty()) {
            let without = class.years_without.map_or("nothing else writes".to_owned(), |years| {
                format!("{} years without it", within(&Interval::exact(years)))
            });
            lines.push(format!("  {}: {:.0} %, {without}", class.class, class.share * 100.0));
        }
    }
    for credits in found.credits.iter().chain(&found.full) {
        lines.extend(answer(credits));
    }
    if let [low, value, high] = &found.full_on[..] {
        lines.push(format!("  full on {value} ({low} to {high})"));
    }
    lines.extend(found.cannot_be_told.iter().map(|why| format!("cannot be told: {why}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_show_their_interval_where_it_is_one() {
        assert_eq!(within(&Interval::exact(2.174)), "2.17");
        assert_eq!(within(&Interval::new(1234.0, 1000.0, 2000.0)), "1234 (1000 to 2000)");
        assert_eq!(within(&Interval::new(2.0, 1.0, Interval::UNBOUNDED)), "2.00 (1.00 to no end)");
    }

    #[test]
    fn what_cannot_be_told_says_so() {
        let untold = Answer::untold("years", "years", "nothing is written").changed("a load");
        assert_eq!(
            answer(&untold),
            ["years: cannot be told from this: nothing is written", "  changed by: a load"]
        );
    }
}
