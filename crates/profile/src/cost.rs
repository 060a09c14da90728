//! `[cost]`: what somebody asked for the device. A price belongs to a day and a seller.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::Parameter;
use crate::rules::{Flaw, flaw, optional, positive};

/// `[cost]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostSpec {
    /// When it was asked, as a date or years.
    pub date: String,
    /// Where: a provider's region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// The size that the price or the performance belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// To buy it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<Parameter>,
    /// To rent it, by its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_gib_month: Option<Parameter>,
    /// To rent it, whatever its size: provisioned performance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_month: Option<Parameter>,
}

/// A price of nothing, or bought and rented at once, is none; a drive is sold in a size.
pub(crate) fn check_cost(cost: &CostSpec) -> Result<(), Flaw> {
    optional(positive, "cost.usd", cost.usd.as_ref())?;
    optional(positive, "cost.usd_per_gib_month", cost.usd_per_gib_month.as_ref())?;
    optional(positive, "cost.usd_per_month", cost.usd_per_month.as_ref())?;
    let is_rented = cost.usd_per_gib_month.is_some() || cost.usd_per_month.is_some();
    if cost.date.trim().is_empty() {
        return flaw("cost.date", "a price needs its date");
    }
    if cost.usd.is_some() == is_rented {
        return flaw("cost.usd", "give either this, to buy it, or what it costs per month");
    }
    if cost.usd.is_some() && cost.size.is_none() {
        return flaw("cost.size", "a drive that is sold has a size");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_has_a_day_and_is_paid_once_or_monthly() {
        let price = |usd| Some(Parameter::new(usd, "a shop"));
        let bought = CostSpec {
            date: "2026".to_owned(),
            size: Some(Bytes::GIB),
            usd: price(9.0),
            ..CostSpec::default()
        };
        let field = |cost: &CostSpec| check_cost(cost).map_err(|(field, _)| field);
        assert_eq!(field(&bought), Ok(()));
        let with = |change: &dyn Fn(&mut CostSpec)| {
            let mut cost = bought.clone();
            change(&mut cost);
            field(&cost).unwrap_err()
        };
        assert_eq!(with(&|cost| cost.date.clear()), "cost.date");
        assert_eq!(with(&|cost| cost.size = None), "cost.size");
        assert_eq!(with(&|cost| cost.usd = None), "cost.usd");
        assert_eq!(with(&|cost| cost.usd_per_month = price(1.0)), "cost.usd");
        assert_eq!(with(&|cost| cost.usd = price(0.0)), "cost.usd");
    }
}
