//! What stands below the file system: a scheduler for every device, and the volume over them.

use model::Device;
use units::Bytes;

use crate::volume::map::Map;
use crate::volume::{Protection, Volume};
use crate::{Error, Scheduled, Spec};

impl Spec {
    /// How many devices it needs: the members of its volume and a journal, or one.
    pub fn devices(&self) -> usize {
        self.volume.as_ref().map_or(1, |volume| {
            let has_journal = matches!(volume.protection, Protection::Journal { .. });
            volume.members + usize::from(has_journal)
        })
    }

    /// Bytes that it offers above devices of `each` bytes; `None` where these are not known.
    ///
    /// # Errors
    /// Where such devices make no such volume.
    pub fn capacity(&self, each: Option<Bytes>) -> Result<Option<Bytes>, Error> {
        let Some(volume) = &self.volume else { return Ok(each) };
        let members = vec![each.map(|bytes| bytes.0); volume.members];
        Ok(Map::new(volume, &members)?.capacity().map(Bytes))
    }

    /// The whole as one device; `make` makes the one of a number below [`Spec::devices`].
    ///
    /// # Errors
    /// Where the devices make no such volume.
    pub fn device(
        &self,
        mut make: impl FnMut(usize) -> Box<dyn Device>,
    ) -> Result<Box<dyn Device>, Error> {
        let mut scheduled = |number| -> Box<dyn Device> {
            let device = make(number);
            match &self.scheduler {
                Some(settings) => Box::new(Scheduled::new(device, settings)),
                None => device,
            }
        };
        let Some(volume) = &self.volume else { return Ok(scheduled(0)) };
        let members = (0..self.devices()).map(scheduled).collect();
        Ok(Box::new(Volume::new(members, volume)?))
    }
}
