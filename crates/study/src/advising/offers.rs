//! What to buy: offers out of results, captured runs and stated figures.

use std::path::Path;

use advise::Interval;
use advise::choice::Offer;
use advise::prices::Monthly;
use predict::Prediction;
use profile::Profile;
use serde::{Deserialize, Serialize};

use super::doubt::Doubted;
use super::prices::{Asked, PriceBook};
use crate::Error;
use crate::assumed::Count;
use crate::profiles::read_profile;
use crate::prove::{Figures, HERE, Place};
use crate::result::StudyResult;
use crate::scenarios::ScenarioResult;

/// Whose response time the limit is of; the first kind where none is named.
pub type Kind = Option<String>;

/// Stated figures: `[[offer]]` of a TOML file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    offer: Vec<StatedOffer>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatedOffer {
    name: String,
    per_min: f64,
    per_min_low: Option<f64>,
    per_min_high: Option<f64>,
    p99_ms: Option<f64>,
    per_month: Option<f64>,
    /// A profile whose price counts where none is stated.
    profile: Option<String>,
}

/// An offer without a price.
fn offer(name: String, per_min: Interval, p99_ms: Option<Interval>) -> Offer {
    Offer {
        name,
        per_min,
        p99_ms,
        per_month: None,
        no_price: "its price is not published".to_owned(),
        terms: String::new(),
        assumed: None,
    }
}

/// The offer with its price, or with why it has none.
fn priced(mut offer: Offer, price: Result<Monthly, String>) -> Offer {
    match price {
        Ok(monthly) => {
            offer.per_month = Some(monthly.per_month);
            offer.no_price.clear();
            let assumed = if monthly.assumed { " (assumed)" } else { "" };
            offer.terms = format!("{}{assumed}", monthly.terms);
        }
        Err(why) => offer.no_price = why,
    }
    offer
}

/// Response times lengthen as rates fall: terminals are fixed, so one is as far off as the other.
fn mirrored(p99_ms: f64, per_min: &Interval) -> Interval {
    per_min.falling(|rate| p99_ms * per_min.value / rate.max(f64::MIN_POSITIVE))
}

/// Values that nobody published or measured, and all, of the profiles of a place.
fn assumed(profiles: &[&Profile]) -> (u32, u32) {
    let counts = profiles.iter().map(|profile| Count::of(&profile.to_toml()));
    counts.fold((0, 0), |(some, all), count| (some + count.assumed, all + count.all))
}

/// The offers of the file at `path`: the result of a study, or stated figures.
///
/// # Errors
/// Where it is neither.
pub fn read(
    path: &Path,
    kind: &Kind,
    asked: &Asked,
    book: &PriceBook,
) -> Result<Vec<Offer>, Error> {
    let file = if path.is_dir() { path.join(crate::run_dir::RESULT) } else { path.to_owned() };
    let text = std::fs::read_to_string(&file).map_err(Error::io(&file, "read"))?;
    let bad =
        |what: &'static str, cause: String| Error::Artifact { path: file.clone(), what, cause };
    if text.trim_start().starts_with('{') {
        let result: StudyResult = serde_json::from_str(&text)
            .map_err(|error| bad("result of a study", error.to_string()))?;
        return of_result(&result, kind, asked, book, &file);
    }
    let stated: Stated = toml::from_str(&text)
        .map_err(|error| bad("list of offers", events::one_line(error.message())))?;
    stated.offer.into_iter().map(|own| of_stated(own, asked, book)).collect()
}

fn of_stated(own: StatedOffer, asked: &Asked, book: &PriceBook) -> Result<Offer, Error> {
    let low = own.per_min_low.unwrap_or(own.per_min);
    let per_min = Interval::new(own.per_min, low, own.per_min_high.unwrap_or(own.per_min));
    let p99_ms = own.p99_ms.map(|p99| mirrored(p99, &per_min));
    let made = offer(own.name, per_min, p99_ms);
    let profile = own.profile.as_deref().map(read_profile).transpose()?;
    Ok(match (own.per_month, profile) {
        (Some(per_month), _) => Offer {
            per_month: Some(per_month),
            no_price: String::new(),
            terms: "as stated".to_owned(),
            ..made
        },
        (None, Some(profile)) => {
            let made = Offer { assumed: Some(assumed(&[&profile])), ..made };
            priced(made, book.monthly(&profile, asked.size, asked))
        }
        (None, None) => made,
    })
}

fn of_result(
    result: &StudyResult,
    kind: &Kind,
    asked: &Asked,
    book: &PriceBook,
    file: &Path,
) -> Result<Vec<Offer>, Error> {
    let lacks = |cause: String| Error::Artifact {
        path: file.to_owned(),
        what: "result to advise from",
        cause,
    };
    let mut offers = Vec::new();
    for place in &result.places {
        offers.extend(of_place(place, kind, asked, book)?);
    }
    for scenario in result.scenarios.iter().filter(|scenario| !scenario.fitted) {
        offers.extend(of_scenario(scenario, asked, book)?);
    }
    if offers.is_empty() {
        return Err(lacks("it predicts nothing for other devices".to_owned()));
    }
    let known = |offer: &Offer| offer.p99_ms.is_some();
    if let Some(kind) = kind.as_ref().filter(|_| !offers.iter().any(known)) {
        return Err(lacks(format!("it has no response times of '{kind}'")));
    }
    Ok(offers)
}

/// The figure of a kind, the first where none is named.
fn p99_of(figures: &Figures, kind: &Kind) -> Option<f64> {
    let mut kinds = figures.kinds.iter();
    let own = match kind {
        None => kinds.next(),
        Some(kind) => kinds.find(|own| own.kind == *kind),
    };
    own.map(|own| own.p99_ms)
}

/// A place of a study: measured where it really ran (median, least and most of the runs), predicted
/// otherwise.
fn of_place(
    place: &Place,
    kind: &Kind,
    asked: &Asked,
    book: &PriceBook,
) -> Result<Option<Offer>, Error> {
    let spread = |of: &dyn Fn(&Figures) -> Option<f64>| {
        let mut values: Vec<f64> = place.runs.iter().filter_map(|run| of(&run.figures)).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = f64::midpoint(values[(values.len() - 1) / 2], values[middle]);
        Some(Interval::new(median, low, high))
    };
    let measured = spread(&|figures| Some(figures.transactions_per_min));
    let found = match (measured, &place.predicted) {
        (Some(per_min), _) => offer(place.name.clone(), per_min, spread(&|f| p99_of(f, kind))),
        (None, Some(predicted)) => {
            let value = predicted.figures.transactions_per_min;
            let ends = predicted.transactions_per_min_interval.unwrap_or((value, value));
            let per_min = Interval::new(value, ends.0, ends.1);
            let p99 = p99_of(&predicted.figures, kind).map(|p99| mirrored(p99, &per_min));
            offer(format!("{} (predicted)", place.name), per_min, p99)
        }
        (None, None) => return Ok(None),
    };
    if place.name == HERE {
        return Ok(Some(Offer { no_price: "it is this machine's own disk".to_owned(), ..found }));
    }
    let found = Offer { assumed: Some((place.assumed_values, place.values)), ..found };
    // A volume of several devices was priced by the study, which knows how many.
    if place.host.is_some() || place.log_host.is_some() {
        let price = place.cost.as_ref().map(|cost| Monthly {
            per_month: cost.usd_per_month,
            currency: "USD".to_owned(),
            assumed: cost.assumed,
            terms: cost.terms.clone(),
        });
        return Ok(Some(priced(found, price.ok_or("its price is not published".to_owned()))));
    }
    let data = read_profile(&place.profile)?;
    let log = place.log.as_deref().map(read_profile).transpose()?;
    Ok(Some(priced(found, book.both(&data, log.as_ref(), asked))))
}

fn of_scenario(
    scenario: &ScenarioResult,
    asked: &Asked,
    book: &PriceBook,
) -> Result<Option<Offer>, Error> {
    let Some(own) = scenario.prediction else { return Ok(None) };
    let per_min = Interval::new(
        own.transactions_per_min,
        own.transactions_per_min_low,
        own.transactions_per_min_high,
    );
    let p99 = mirrored(scenario.transaction_ns_p99 as f64 / 1e6, &per_min);
    let profile = read_profile(&scenario.profile)?;
    let found = offer(scenario.profile.clone(), per_min, Some(p99));
    let found = Offer { assumed: Some((scenario.assumed_values, scenario.values)), ..found };
    Ok(Some(priced(found, book.monthly(&profile, asked.size, asked))))
}

/// The offer that a prediction from a capture makes, its figures between the ends of `doubted`.
pub fn of_prediction(
    answer: &Prediction,
    doubted: Doubted,
    (data, log): (&Profile, Option<&Profile>),
    asked: &Asked,
    book: &PriceBook,
) -> Offer {
    let profiles: Vec<&Profile> = std::iter::once(data).chain(log).collect();
    let found = offer(answer.device.clone(), doubted.per_min, doubted.p99_ms);
    let found = Offer { assumed: Some(assumed(&profiles)), ..found };
    priced(found, book.both(data, log, asked))
}

#[cfg(test)]
mod tests {
    use advise::choice::choose;

    use super::*;

    fn asked() -> Asked {
        Asked {
            size: "500GiB".parse().unwrap(),
            log_size: "50GiB".parse().unwrap(),
            years: 5.0,
            currency: "USD".to_owned(),
        }
    }

    fn stated(text: &str) -> Result<Vec<Offer>, Error> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("offers.toml");
        std::fs::write(&path, text).unwrap();
        read(&path, &None, &asked(), &PriceBook::read(None).unwrap())
    }

    #[test]
    fn stated_offers_are_priced_by_their_profiles_or_as_stated() {
        let offers = stated(
            "[[offer]]\nname = \"a\"\nper_min = 1000\nper_min_low = 500\np99_ms = 8\n\
             profile = \"aws-gp3\"\n[[offer]]\nname = \"b\"\nper_min = 1000\nper_month = 7\n",
        )
        .unwrap();
        assert_eq!((offers[0].per_month, offers[1].per_month), (Some(40.0), Some(7.0)));
        // Half the rate, twice the time.
        let p99 = offers[0].p99_ms.unwrap();
        assert_eq!((p99.low, p99.value, p99.high), (8.0, 8.0, 16.0));
        let choice = choose(&offers, Some(10.0)).unwrap();
        assert_eq!(choice.best, None, "neither is sure to keep 10 ms: {choice:?}");
        assert!(stated("[[offer]]\nname = \"a\"\n").unwrap_err().to_string().contains("per_min"));
    }

    fn figures(per_min: f64, p99_ms: f64) -> Figures {
        let kind = |name: &str, p99_ms| crate::prove::KindFigures {
            kind: name.to_owned(),
            p50_ms: p99_ms / 2.0,
            p99_ms,
        };
        let kinds = vec![kind("new order", p99_ms), kind("payment", p99_ms * 2.0)];
        Figures { transactions_per_min: per_min, kinds, busy_ns: None }
    }

    #[test]
    fn a_place_is_measured_where_it_ran() {
        let run = |round, per_min| crate::prove::Run {
            round,
            figures: figures(per_min, 6e6 / per_min),
            ..crate::prove::Run::default()
        };
        let place = Place {
            name: "aws-gp3".to_owned(),
            profile: "aws-gp3".to_owned(),
            log: Some("aws-io2".to_owned()),
            runs: vec![run(1, 1200.0), run(2, 1000.0)],
            ..Place::default()
        };
        let book = PriceBook::read(None).unwrap();
        let of = |kind: &Kind| of_place(&place, kind, &asked(), &book).unwrap().unwrap();
        let found = of(&None);
        assert_eq!(found.per_min, Interval::new(1100.0, 1000.0, 1200.0));
        assert_eq!(found.p99_ms.unwrap().high, 6000.0);
        assert_eq!(of(&Some("payment".to_owned())).p99_ms.unwrap().high, 12_000.0);
        assert_eq!(of(&Some("nothing".to_owned())).p99_ms, None);
        // 500 GiB of gp3, 50 GiB of io2 with its 6,000 I/Os per second.
        assert!((found.per_month.unwrap() - 40.0 - 396.25).abs() < 1e-9, "{found:?}");
        let here = Place { name: HERE.to_owned(), ..place };
        let here = of_place(&here, &None, &asked(), &book).unwrap().unwrap();
        assert!(here.per_month.is_none() && here.no_price.contains("own disk"));
    }
}
