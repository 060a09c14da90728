//! Whose price counts: the user's file, then the list that is shipped, then the profile's `[cost]`.

use std::path::Path;

use advise::prices::{Monthly, Price, Prices, Wanted};
use profile::Profile;
use units::Bytes;

use crate::Error;
use crate::cost;

/// The price list that comes with wearmark, as TOML.
pub const SHIPPED: &str = include_str!("../../../../prices/prices.toml");

/// Price lists in the order in which they count.
#[derive(Clone, Debug)]
pub struct PriceBook {
    lists: Vec<Prices>,
}

/// What is to be paid for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Size of the volume or drive.
    pub size: Bytes,
    /// Size of the log's, where it lies apart.
    pub log_size: Bytes,
    /// How long a drive that is bought is used, years.
    pub years: f64,
    /// Prices in another currency are none.
    pub currency: String,
}

impl PriceBook {
    /// With the user's `own` file before the shipped list.
    ///
    /// # Errors
    /// Where a file cannot be read or an entry cannot be.
    pub fn read(own: Option<&Path>) -> Result<Self, Error> {
        let mut lists = Vec::new();
        if let Some(path) = own {
            let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
            lists.push(Prices::from_toml(&text, &path.display().to_string())?);
        }
        lists.push(Prices::from_toml(SHIPPED, "the shipped prices")?);
        Ok(Self { lists })
    }

    /// The entry that counts for a profile.
    fn entry(&self, profile: &Profile) -> Option<Price> {
        let listed = self.lists.iter().find_map(|list| list.of(profile.name()));
        listed.cloned().or_else(|| profile.cost.as_ref().map(cost::price))
    }

    /// What a device of the profile costs a month, with the performance that the profile has.
    ///
    /// # Errors
    /// Why it has no price.
    pub fn monthly(
        &self,
        profile: &Profile,
        size: Bytes,
        asked: &Asked,
    ) -> Result<Monthly, String> {
        let entry = self.entry(profile).ok_or("its price is not published")?;
        let limits = profile.limits.as_ref();
        let rate =
            |of: &Option<profile::limits::AllowanceSpec>| of.as_ref().map(|limit| limit.rate.value);
        let wanted = Wanted {
            size,
            years: asked.years,
            iops: limits.and_then(|limits| rate(&limits.iops)),
            mb_per_s: limits.and_then(|limits| rate(&limits.mb_per_s)),
        };
        let monthly = entry.monthly(&wanted)?;
        if monthly.currency != asked.currency {
            return Err(format!("it is priced in {}, not in {}", monthly.currency, asked.currency));
        }
        Ok(monthly)
    }

    /// Of a device and, where the log lies apart, of that of the log.
    ///
    /// # Errors
    /// Why one of them has no price.
    pub fn both(
        &self,
        data: &Profile,
        log: Option<&Profile>,
        asked: &Asked,
    ) -> Result<Monthly, String> {
        let own = self.monthly(data, asked.size, asked)?;
        let Some(log) = log else { return Ok(own) };
        let other = self
            .monthly(log, asked.log_size, asked)
            .map_err(|why| format!("{}: {why}", log.name()))?;
        Ok(Monthly {
            per_month: own.per_month + other.per_month,
            assumed: own.assumed || other.assumed,
            terms: format!("{}; log: {}", own.terms, other.terms),
            ..own
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::read_profile;

    fn asked(size: &str) -> Asked {
        Asked {
            size: size.parse().unwrap(),
            log_size: "50GiB".parse().unwrap(),
            years: 5.0,
            currency: "USD".to_owned(),
        }
    }

    fn month(book: &PriceBook, name: &str, size: &str) -> Result<f64, String> {
        let (profile, asked) = (read_profile(name).unwrap(), asked(size));
        book.monthly(&profile, asked.size, &asked).map(|monthly| monthly.per_month)
    }

    /// The list and the `[cost]` of a profile must not say different things.
    #[test]
    fn the_list_agrees_with_the_profiles() {
        let book = PriceBook::read(None).unwrap();
        let (mut compared, asked) = (0, asked("500GiB"));
        for (name, _) in profile::shipped() {
            let profile = read_profile(name).unwrap();
            let (Some(spec), Some(entry)) = (&profile.cost, book.entry(&profile)) else { continue };
            let own = cost::Cost::of(Some(spec), asked.size, asked.years).map(|c| c.usd_per_month);
            let listed = book.monthly(&profile, asked.size, &asked).ok().map(|m| m.per_month);
            compared += usize::from(book.lists[0].of(name).is_some());
            assert_eq!(own.map(f64::round), listed.map(f64::round), "{name}, {entry:?}");
        }
        assert_eq!(compared, 7, "volumes that both know");
        let names = book.lists[0].price.iter().flat_map(|price| &price.profiles);
        names.for_each(|name| drop(read_profile(name).expect("a price of a profile that ships")));
    }

    #[test]
    fn the_users_file_goes_first_and_currencies_do_not_mix() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.toml");
        std::fs::write(
            &path,
            "[[price]]\nprofiles = [\"aws-gp3\"]\ndate = \"today\"\nsource = \"our contract\"\n\
             per_gib_month = 0.04\n",
        )
        .unwrap();
        let (shipped, own) =
            (PriceBook::read(None).unwrap(), PriceBook::read(Some(&path)).unwrap());
        assert_eq!(month(&shipped, "aws-gp3", "500GiB"), Ok(40.0));
        assert_eq!(month(&own, "aws-gp3", "500GiB"), Ok(20.0));
        assert_eq!(month(&own, "aws-gp2", "500GiB"), Ok(50.0));
        assert!(month(&own, "intel-x25-e", "50GB").unwrap_err().contains("in EUR"));
        assert!(month(&own, "intel-p3700", "50GB").unwrap_err().contains("not published"));
        let [data, log] = ["aws-gp2", "aws-gp3"].map(|name| read_profile(name).unwrap());
        let both = own.both(&data, Some(&log), &asked("500GiB")).unwrap();
        assert!((both.per_month - 52.0).abs() < 1e-9, "{both:?}");
    }
}
