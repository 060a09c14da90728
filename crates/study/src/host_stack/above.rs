//! What is asked: the device of a profile, or what a host makes of several of them.

use host::{Part, Spec};
use model::Device;
use profile::Profile;
use units::Bytes;

use crate::Error;
use crate::profiles::read_profile;

/// Devices of one profile, and what is above them.
#[derive(Clone, Debug)]
pub struct Devices {
    profile: Profile,
    host: Option<(Spec, Option<Profile>)>,
    /// What tells it from the same devices below another host.
    below: Option<String>,
}

impl Devices {
    /// Devices of `profile` below the schedulers, the volume and the cache of `host`.
    ///
    /// # Errors
    /// Where no such volume can be made of them.
    pub fn new(profile: Profile, host: Option<&Spec>) -> Result<Self, Error> {
        let host = host.map(|spec| {
            spec.capacity(profile.capacity())?;
            let fast =
                spec.cache_device.as_ref().map(|(name, _)| read_profile(name)).transpose()?;
            if let (Some((_, cache)), Some(fast)) = (&spec.cache_device, &fast) {
                cache.fits(fast.capacity()).map_err(host::Error::from)?;
            }
            Ok::<_, Error>((spec.clone(), fast))
        });
        Ok(Self { profile, host: host.transpose()?, below: None })
    }

    /// Of a profile alone.
    pub fn alone(profile: Profile) -> Self {
        Self { profile, host: None, below: None }
    }

    /// The same, told from others by the name of its host.
    #[must_use]
    pub fn below(self, host: &str) -> Self {
        Self { below: Some(host.to_owned()), ..self }
    }

    /// The profile of the devices.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The profile, where what is asked is one device of it.
    pub fn alone_profile(&self) -> Option<&Profile> {
        let is_one = |spec: &Spec| spec.volume.is_none() && spec.cache_device.is_none();
        self.host.as_ref().is_none_or(|(spec, _)| is_one(spec)).then_some(&self.profile)
    }

    /// What it is called in tables.
    pub fn name(&self) -> String {
        let each = self.profile.name();
        let own =
            self.host.as_ref().map_or_else(|| each.to_owned(), |(spec, _)| spec.describe(each));
        match &self.below {
            Some(host) => format!("{own}, {host}"),
            None => own,
        }
    }

    /// Bytes that it offers, where that is known.
    pub fn capacity(&self) -> Option<Bytes> {
        let each = self.profile.capacity();
        match &self.host {
            Some((spec, _)) => spec.capacity(each).expect("it was asked before"),
            None => each,
        }
    }

    /// Bytes of memory that the models take, about.
    pub fn memory(&self) -> Bytes {
        let spec = self.host.as_ref().map(|(spec, _)| spec);
        let members = spec.and_then(|spec| spec.volume.as_ref()).map_or(1, |own| own.members);
        Bytes(self.profile.memory().0.saturating_mul(members as u64))
    }

    /// The model.
    pub fn device(&self, seed: u64) -> Box<dyn Device> {
        let Some((spec, fast)) = &self.host else { return model::device(&self.profile, seed) };
        let made = spec.device(|part| match (part, fast) {
            // Members are devices of one kind, not one device many times.
            (Part::Member(number), _) => {
                model::device(&self.profile, seed.wrapping_add(number as u64))
            }
            (Part::Cache(_), Some(fast)) => model::device(fast, seed),
            (Part::Cache(_), None) => unreachable!("its profile was read"),
        });
        made.expect("such a volume was found possible")
    }
}
