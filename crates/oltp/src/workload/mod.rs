//! The workloads, independent of any DBMS: what the terminals ask for.
//!
//! Order entry is derived from TPC-C 5.11, [`bank`] from TPC-B 2.0, [`commit`] from a table of Lee
//! et al. 2008; none is comparable to published TPC results. [`Kind`] names the transactions,
//! [`Dataset`] a workload and its size, [`Source`] draws parameters. Of order entry, [`Mix`] says
//! how often each transaction is asked for, [`input`] draws, [`population`] has what is random in
//! the rows that a database starts with, [`nurand`] the skewed numbers of both. [`schema`]
//! describes the tables of all workloads and [`rows`] makes their rows for any DBMS. [`own`] reads
//! workloads of the user.
//!
//! Everything is a pure function of a seed and a position (terminal and sequence number, or table
//! and key), so that any part can be made anywhere, in any order, by any number of threads.

pub mod bank;
pub mod commit;
mod dataset;
pub mod input;
pub mod nurand;
pub mod own;
pub mod population;
pub mod rows;
pub mod schema;
pub mod text;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;

pub use dataset::{Dataset, Source, Workload};
pub use own::Own;

/// The transactions of all workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Enters an order of 5 to 15 lines (clause 2.4); read-write.
    NewOrder,
    /// Books a customer's payment (clause 2.5); read-write.
    Payment,
    /// Shows a customer's last order (clause 2.6); read-only.
    OrderStatus,
    /// Delivers the oldest new order of each district, deferred (clause 2.7); read-write.
    Delivery,
    /// Counts recently sold items whose stock is low (clause 2.8); read-only.
    StockLevel,
    /// The bank's one transaction (TPC-B 2.0 clause 1.2); read-write.
    Transfer,
    /// The commit workload's one-row update; read-write.
    Update,
    /// A kind of an own workload.
    Own(own::OwnKind),
}

impl Kind {
    /// Those of the built-in workloads, in the order of their codes.
    pub const BUILT_IN: [Self; 7] = [
        Self::NewOrder,
        Self::Payment,
        Self::OrderStatus,
        Self::Delivery,
        Self::StockLevel,
        Self::Transfer,
        Self::Update,
    ];

    /// Those of order entry, in the order of their codes, which start at 0.
    pub const ORDER_ENTRY: [Self; 5] =
        [Self::NewOrder, Self::Payment, Self::OrderStatus, Self::Delivery, Self::StockLevel];

    /// The name used in columns, JSON and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new_order",
            Self::Payment => "payment",
            Self::OrderStatus => "order_status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock_level",
            Self::Transfer => "transfer",
            Self::Update => "update",
            Self::Own(kind) => &kind.facts().name,
        }
    }

    /// Its number in captures and counts: among the built-in kinds, or among those of its own
    /// workload.
    pub fn code(self) -> usize {
        match self {
            Self::NewOrder => 0,
            Self::Payment => 1,
            Self::OrderStatus => 2,
            Self::Delivery => 3,
            Self::StockLevel => 4,
            Self::Transfer => 5,
            Self::Update => 6,
            Self::Own(kind) => usize::from(kind.facts().code),
        }
    }

    /// Whether it changes the database.
    pub fn writes(self) -> bool {
        match self {
            Self::Own(kind) => kind.facts().writes,
            _ => !matches!(self, Self::OrderStatus | Self::StockLevel),
        }
    }

    /// Keying time in seconds before the request (clause 5.2.5.2); bank and commit know none.
    pub fn keying_s(self) -> f64 {
        match self {
            Self::Transfer | Self::Update => 0.0,
            Self::NewOrder => 18.0,
            Self::Payment => 3.0,
            Self::OrderStatus | Self::Delivery | Self::StockLevel => 2.0,
            Self::Own(kind) => kind.facts().keying_s,
        }
    }

    /// Mean think time in seconds after the answer (clause 5.2.5.4); the bank's teller and
    /// the commit workload's user take 10 s.
    pub fn think_mean_s(self) -> f64 {
        match self {
            Self::NewOrder | Self::Payment => 12.0,
            Self::OrderStatus | Self::Transfer | Self::Update => 10.0,
            Self::Delivery | Self::StockLevel => 5.0,
            Self::Own(kind) => kind.facts().think_mean_s,
        }
    }

    /// Bound on the 90th percentile of the response time, in seconds (clauses 5.2.5.3 and
    /// 5.2.5.7); Delivery's is that of its deferred execution (clause 2.7.2.2). The bank's is that
    /// of TPC-B 2.0, which here also holds for commit.
    pub fn response_p90_limit_s(self) -> f64 {
        match self {
            Self::Transfer | Self::Update => 2.0,
            Self::NewOrder | Self::Payment | Self::OrderStatus => 5.0,
            Self::StockLevel => 20.0,
            Self::Delivery => 80.0,
            Self::Own(kind) => kind.facts().response_p90_limit_s,
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = Self::BUILT_IN.into_iter().find(|kind| kind.name() == name);
        Ok(known.unwrap_or_else(|| Self::Own(own::OwnKind::named(&name))))
    }
}

/// How often each transaction is asked for: weights in the order of [`Kind::ORDER_ENTRY`], of any
/// sum.
///
/// Kinds are drawn independently with these weights rather than dealt from a deck (clause 5.2.4
/// permits both): any five weights work without rounding to cards, and the kind of a terminal's
/// n-th request depends on nothing but the seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "MixText", into = "MixText")]
pub struct Mix {
    weights: [f64; 5],
}

/// A mix as people write it: a name, or five weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum MixText {
    Name(String),
    Weights([f64; 5]),
}

impl TryFrom<MixText> for Mix {
    type Error = Error;
    fn try_from(text: MixText) -> Result<Self, Error> {
        match text {
            MixText::Name(name) => name.parse(),
            MixText::Weights(weights) => Self::new(weights),
        }
    }
}

impl From<Mix> for MixText {
    fn from(mix: Mix) -> Self {
        mix.name().map_or(Self::Weights(mix.weights), |name| Self::Name(name.to_owned()))
    }
}

impl Mix {
    /// Table 3 of Wang et al. 2011, "normal": 43.48 / 43.48 / 4.35 / 4.35 / 4.35 %, which is 10 and
    /// 1 of 23.
    pub const NORMAL: Self = Self { weights: [10.0, 10.0, 1.0, 1.0, 1.0] };
    /// The same table, "read-intensive": Order-Status and Stock-Level take 43.48 % each.
    pub const READ_INTENSIVE: Self = Self { weights: [1.0, 1.0, 10.0, 1.0, 10.0] };
    /// The same table, "write-intensive": 96 % New-Order, 1 % each of the others.
    pub const WRITE_INTENSIVE: Self = Self { weights: [96.0, 1.0, 1.0, 1.0, 1.0] };

    const NAMED: [(&'static str, Self); 3] = [
        ("normal", Self::NORMAL),
        ("read-intensive", Self::READ_INTENSIVE),
        ("write-intensive", Self::WRITE_INTENSIVE),
    ];

    /// A mix of five weights, in the order of [`Kind::ORDER_ENTRY`].
    ///
    /// # Errors
    /// A weight below zero or not finite, or all of them zero.
    pub fn new(weights: [f64; 5]) -> Result<Self, Error> {
        let sum: f64 = weights.iter().sum();
        if weights.iter().all(|w| w.is_finite() && *w >= 0.0) && sum > 0.0 && sum.is_finite() {
            return Ok(Self { weights });
        }
        Err(Error::Option {
            option: "mix",
            value: format!("{weights:?}"),
            why: "needs five weights, none negative, not all zero",
        })
    }

    /// Its name, where it is one of the paper's three.
    pub fn name(&self) -> Option<&'static str> {
        Self::NAMED.iter().find(|(_, mix)| mix == self).map(|(name, _)| *name)
    }

    /// Share of a kind of order entry, 0 to 1.
    pub fn share(&self, kind: Kind) -> f64 {
        self.weights[kind.code()] / self.weights.iter().sum::<f64>()
    }

    /// The kind that a number uniform in `[0, 1)` stands for.
    #[inline]
    pub fn pick(&self, unit: f64) -> Kind {
        let mut left = unit * self.weights.iter().sum::<f64>();
        let mut picked = Kind::NewOrder;
        for kind in Kind::ORDER_ENTRY {
            let weight = self.weights[kind.code()];
            if weight > 0.0 {
                picked = kind;
                if left < weight {
                    break;
                }
            }
            left -= weight;
        }
        picked
    }
}

impl Default for Mix {
    fn default() -> Self {
        Self::NORMAL
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name() {
            return f.pad(name);
        }
        let weights: Vec<String> = self.weights.iter().map(f64::to_string).collect();
        f.pad(&weights.join(","))
    }
}

impl FromStr for Mix {
    type Err = Error;

    /// `normal`, `read-intensive`, `write-intensive`, or five weights such as `45,43,4,4,4` in the
    /// order New-Order, Payment, Order-Status, Delivery, Stock-Level.
    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some((_, mix)) = Self::NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(*mix);
        }
        let bad = |why| Error::Option { option: "mix", value: text.to_owned(), why };
        let weights: Vec<f64> = text
            .split(',')
            .map(|weight| weight.trim().parse())
            .collect::<Result<_, _>>()
            .map_err(|_| {
                bad("write normal, read-intensive, write-intensive or five weights: 45,43,4,4,4")
            })?;
        let weights = weights.try_into().map_err(|_| bad("needs exactly five weights"))?;
        Self::new(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_mixes_have_the_papers_shares() {
        // Table 3 of Wang et al. 2011, percent.
        for (mix, expected) in [
            (Mix::NORMAL, [43.48, 43.48, 4.35, 4.35, 4.35]),
            (Mix::READ_INTENSIVE, [4.35, 4.35, 43.48, 4.35, 43.48]),
            (Mix::WRITE_INTENSIVE, [96.0, 1.0, 1.0, 1.0, 1.0]),
        ] {
            for kind in Kind::ORDER_ENTRY {
                let share = mix.share(kind) * 100.0;
                assert!((share - expected[kind.code()]).abs() < 0.005, "{mix} {kind:?} {share}");
            }
        }
    }

    /// Captures and results number kinds; files hold the numbers.
    #[test]
    fn kinds_have_the_numbers_of_their_places() {
        for (number, kind) in Kind::BUILT_IN.iter().enumerate() {
            assert_eq!(kind.code(), number);
        }
        for workload in Workload::ALL {
            assert!(workload.kinds().iter().all(|kind| workload.by_code()[kind.code()] == *kind));
        }
    }

    #[test]
    fn picks_follow_the_weights_and_never_a_zero_one() {
        let mix: Mix = "1,0,3,0,0".parse().unwrap();
        assert_eq!(mix.pick(0.0), Kind::NewOrder);
        assert_eq!(mix.pick(0.2499), Kind::NewOrder);
        assert_eq!(mix.pick(0.25), Kind::OrderStatus);
        assert_eq!(mix.pick(0.999_999_999_999_999_9), Kind::OrderStatus);
    }

    #[test]
    fn mixes_read_back_as_written() {
        for text in ["normal", "read-intensive", "write-intensive", "45,43,4,4,4"] {
            let mix: Mix = text.parse().unwrap();
            assert_eq!(mix.to_string(), text);
            let json = serde_json::to_string(&mix).unwrap();
            assert_eq!(serde_json::from_str::<Mix>(&json).unwrap(), mix);
        }
        for bad in ["", "fast", "1,2,3,4", "1,2,3,4,5,6", "0,0,0,0,0", "-1,2,3,4,5", "nan,1,1,1,1"]
        {
            assert!(bad.parse::<Mix>().is_err(), "{bad}");
        }
    }
}
