//! Recipes: the text form of a generator, which can be kept, shipped and shared.
//!
//! TOML with a `kind`: `workload` (phases of streams), `oltp_like`, or `imitation` (fitted to a
//! trace). A recipe and a seed make the same trace for ever. Tested: every shipped recipe reads,
//! and what is written reads back as it was.

use serde::{Deserialize, Serialize};

use crate::Trace;
use crate::generate::{Invalid, OltpLike, Workload, oltp_like};
use crate::imitate::Imitation;

/// A generator in its text form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Recipe {
    /// Phases of streams.
    Workload(Workload),
    /// A database under transactions, as many as it says or a number of requests needs.
    OltpLike(OltpLike),
    /// Fitted to a trace.
    Imitation(Box<Imitation>),
}

impl Recipe {
    /// Reads the text form.
    pub fn from_toml(text: &str) -> Result<Self, Invalid> {
        let recipe: Self = toml::from_str(text)
            .map_err(|error| Invalid::new("the recipe", error.to_string().trim()))?;
        match &recipe {
            Self::Workload(workload) => workload.check()?,
            Self::Imitation(imitation) => imitation.check()?,
            Self::OltpLike(_) => (),
        }
        Ok(recipe)
    }

    /// The text form.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("recipes have a TOML form")
    }

    /// What it is, a sentence.
    pub fn description(&self) -> &str {
        match self {
            Self::Workload(workload) => &workload.description,
            Self::OltpLike(_) => {
                "a database under transactions: page reads, log appends, checkpoints"
            }
            Self::Imitation(imitation) => &imitation.source,
        }
    }

    /// The trace of `requests`, or of the recipe's own number, that belongs to `seed`.
    pub fn generate(&self, seed: u64, requests: Option<u64>) -> Result<Trace, Invalid> {
        match self {
            Self::Workload(workload) => {
                workload.generate(seed, requests.unwrap_or(workload.requests))
            }
            Self::OltpLike(settings) => {
                let Some(requests) = requests else {
                    return Ok(oltp_like(&OltpLike { seed, ..*settings }));
                };
                let mut settings = OltpLike { seed, ..*settings };
                let mut trace = oltp_like(&settings);
                // How many a transaction makes is known afterwards.
                while (trace.count() as u64) < requests && trace.count() > 0 {
                    let grow = requests as f64 / trace.count() as f64 * 1.01;
                    settings.transactions = (settings.transactions as f64 * grow) as u64;
                    settings.transactions += 1;
                    trace = oltp_like(&settings);
                }
                trace.truncate(requests as usize);
                Ok(trace)
            }
            Self::Imitation(imitation) => {
                imitation.generate(seed, requests.unwrap_or(imitation.requests))
            }
        }
    }
}

/// Name and TOML text of every shipped recipe.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    SHIPPED
}

/// The text of the shipped recipe `name`.
pub fn find_shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

static SHIPPED: &[(&str, &str)] = &[
    ("financial1-like", include_str!("../../../recipes/financial1-like.toml")),
    ("oltp-like", include_str!("../../../recipes/oltp-like.toml")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use events::Hint as _;

    #[test]
    fn shipped_recipes_read_and_survive_their_text_form() {
        for (name, text) in shipped() {
            let recipe = Recipe::from_toml(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(Recipe::from_toml(&recipe.to_toml()).as_ref(), Ok(&recipe), "{name}");
            let trace = recipe.generate(1, Some(1000)).expect("sound");
            assert_eq!(trace.validate(), Ok(()), "{name}");
            assert_eq!(find_shipped(name), Some(*text));
            // More than the recipe's own number where that is small.
            let trace = recipe.generate(1, Some(200_001)).expect("sound");
            assert_eq!((trace.count(), trace.validate()), (200_001, Ok(())), "{name}");
        }
        assert_eq!(find_shipped("absent"), None);
    }

    #[track_caller]
    fn check_refused(text: &str, expected: &str) {
        let error = Recipe::from_toml(text).expect_err("refused");
        assert!(error.to_string().contains(expected) && error.hint().is_some(), "{error}");
    }

    #[test]
    fn wrong_recipes_are_refused_with_the_place() {
        check_refused("", "kind");
        check_refused("kind = 'nonsense'", "nonsense");
        check_refused("kind = 'oltp_like'\npages = 3", "pages");
        let text = find_shipped("financial1-like").expect("ships");
        check_refused(
            &text.replacen("read_share = ", "read_share = 7", 1),
            "read_share must be 0 to 1",
        );
    }
}
