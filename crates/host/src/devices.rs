//! What stands below the file system: a scheduler for every device, the volume over them, and a
//! fast device in front.

use model::Device;
use units::Bytes;

use crate::volume::cache::{CacheDevice, CacheSettings};
use crate::volume::map::Map;
use crate::volume::{self, Protection, Volume};
use crate::{Error, Scheduled, Spec};

/// A device that a stack needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A member of the volume, from 0, a journal the last; member 0 where there is no volume.
    Member(usize),
    /// The fast device in front, by its name.
    Cache(&'a str),
}

impl Spec {
    /// How many devices it needs beside a cache: the members of its volume and a journal, or one.
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

    /// The whole in a few words, above devices that are called `each`.
    pub fn describe(&self, each: &str) -> String {
        let mut words = match &self.volume {
            Some(volume) => format!("{} of {} {each}", volume.level.name(), volume.members),
            None => each.to_owned(),
        };
        if let Some(scheduler) = &self.scheduler {
            words = format!("{words}, {}", scheduler.kind.name());
        }
        if let Some((device, _)) = &self.cache_device {
            words = format!("{words}, behind {device}");
        }
        words
    }

    /// The whole as one device; `make` makes each device that it needs.
    ///
    /// # Errors
    /// Where the devices make no such volume, or do not fit behind such a cache.
    pub fn device(
        &self,
        mut make: impl FnMut(Part<'_>) -> Box<dyn Device>,
    ) -> Result<Box<dyn Device>, Error> {
        let mut scheduled = |part| -> Box<dyn Device> {
            let device = make(part);
            match &self.scheduler {
                Some(settings) => Box::new(Scheduled::new(device, settings)),
                None => device,
            }
        };
        let fast = self.cache_device.as_ref().map(|(name, _)| scheduled(Part::Cache(name)));
        let mut members: Vec<_> =
            (0..self.devices()).map(|number| scheduled(Part::Member(number))).collect();
        let below: Box<dyn Device> = match &self.volume {
            Some(volume) => Box::new(Volume::new(members, &self.above_scheduler(volume))?),
            None => members.pop().expect("one where there is no volume"),
        };
        Ok(match (fast, &self.cache_device) {
            (Some(fast), Some((_, settings))) => {
                // The slow device is perhaps a volume, which bounds what it hands down itself.
                let depth = settings.depth.or(Some(usize::MAX).filter(|_| self.has_own_bounds()));
                let settings = CacheSettings { depth, ..settings.clone() };
                Box::new(CacheDevice::new(fast, below, &settings)?)
            }
            _ => below,
        })
    }

    /// A scheduler bounds what its device gets, and must see what waits.
    fn above_scheduler(&self, volume: &volume::Settings) -> volume::Settings {
        let depth = volume.depth.or(self.scheduler.as_ref().map(|_| usize::MAX));
        volume::Settings { depth, ..volume.clone() }
    }

    /// What lies below a cache device keeps what waits itself.
    fn has_own_bounds(&self) -> bool {
        self.scheduler.is_some() || self.volume.is_some()
    }
}

#[cfg(test)]
mod tests {
    use trace::{Op, Request};
    use units::Nanos;

    use super::*;

    /// One request after the other, each for this many ns.
    struct Constant(u64, u64);

    impl Device for Constant {
        fn submit(&mut self, now: Nanos, _: &Request) -> Nanos {
            self.1 = self.1.max(now.0) + self.0;
            Nanos(self.1)
        }
    }

    fn made(text: &str) -> (Box<dyn Device>, Vec<String>) {
        let spec = Spec::from_toml(text, "stack.toml").expect(text);
        let mut parts = Vec::new();
        let device = spec.device(|part| {
            parts.push(format!("{part:?}"));
            Box::new(Constant(if matches!(part, Part::Cache(_)) { 1000 } else { 100_000 }, 0))
        });
        (device.expect(text), parts)
    }

    fn read(device: &mut dyn Device, at: u64, offset: u64) -> u64 {
        let (due, offset) = (Nanos(at), Bytes(offset));
        device.submit(due, &Request { due, offset, len: 4096, op: Op::Read, stream: 0 }).0 - at
    }

    #[test]
    fn members_work_side_by_side() {
        let (mut device, parts) =
            made("[volume]\nlevel = \"raid0\"\nmembers = 2\nchunk = \"4KiB\"\n");
        assert_eq!(parts, ["Member(0)", "Member(1)"]);
        let taken = [0, 4096, 8192].map(|offset| read(device.as_mut(), 0, offset));
        assert_eq!(taken, [100_000, 100_000, 200_000]);
    }

    #[test]
    fn a_journal_is_one_device_more() {
        let text = "[volume]\nlevel = \"raid5\"\nmembers = 3\nwrite_hole = \"journal\"\n";
        assert_eq!(made(text).1.last().unwrap(), "Member(3)");
    }

    #[test]
    fn what_was_read_is_read_from_the_cache_again() {
        let text =
            "[scheduler]\nkind = \"none\"\n[cache_device]\ndevice = \"fast\"\nsize = \"1GiB\"\n";
        let (mut device, parts) = made(text);
        assert_eq!(parts, ["Cache(\"fast\")", "Member(0)"]);
        let first = read(device.as_mut(), 0, 0);
        let again = read(device.as_mut(), 1_000_000, 0);
        assert!(first >= 100_000 && again == 1000, "{first} {again}");
    }

    #[test]
    fn it_is_told_in_a_few_words() {
        let text = "[scheduler]\nkind = \"mq_deadline\"\n\
                    [volume]\nlevel = \"raid10\"\nmembers = 4\n\
                    [cache_device]\ndevice = \"fast\"\nsize = \"1GiB\"\n";
        let spec = Spec::from_toml(text, "stack.toml").unwrap();
        assert_eq!(spec.describe("slow"), "raid10 of 4 slow, mq_deadline, behind fast");
    }

    #[test]
    fn capacity_is_that_of_the_volume() {
        let text = "[volume]\nlevel = \"raid1\"\nmembers = 2\n";
        let spec = Spec::from_toml(text, "stack.toml").unwrap();
        assert_eq!(spec.capacity(Some(Bytes(1 << 30))).unwrap(), Some(Bytes(1 << 30)));
        assert_eq!(spec.capacity(None).unwrap(), None);
    }

    #[test]
    fn bounds_and_costs_of_a_volume_are_read() {
        let text = "[volume]\nlevel = \"raid5\"\nmembers = 3\ndepth = 7\n\
                    parity_us_per_column = 1.5\n[volume.controller]\nus_per_write = 90\n\
                    write_mb_per_s = 400\n";
        let volume = Spec::from_toml(text, "stack.toml").unwrap().volume.unwrap();
        assert_eq!((volume.depth, volume.parity_ns_per_column), (Some(7), 1500));
        let controller = volume.controller.unwrap();
        assert_eq!(controller.write_command_ns, Some(90_000));
        assert_eq!(controller.write_bytes_per_s, Some(4e8));
        for (line, key) in [
            ("depth = 0", "volume.depth"),
            ("parity_us_per_column = -1", "volume.parity_us_per_column"),
            ("controller = { us_per_write = -1 }", "volume.controller.us_per_write"),
            ("controller = { write_mb_per_s = 0 }", "volume.controller.mb_per_s"),
        ] {
            let text = format!("[volume]\nlevel = \"raid5\"\nmembers = 3\n{line}\n");
            let error = Spec::from_toml(&text, "stack.toml").expect_err(line).to_string();
            assert!(error.contains(key), "{error}");
        }
        let cache = "[cache_device]\ndevice = \"fast\"\nsize = \"1GiB\"\ndepth = 0\n";
        let error = Spec::from_toml(cache, "stack.toml").expect_err(cache).to_string();
        assert!(error.contains("cache_device.depth"), "{error}");
    }

    #[test]
    fn a_scheduler_sees_all_that_waits_but_for_a_depth_that_is_set() {
        let depth = |text: &str| {
            let spec = Spec::from_toml(text, "stack.toml").expect(text);
            spec.above_scheduler(spec.volume.as_ref().unwrap()).depth
        };
        let volume = "[volume]\nlevel = \"raid0\"\nmembers = 2\n";
        assert_eq!(depth(volume), None);
        let scheduler = "[scheduler]\nkind = \"deadline\"\n";
        assert_eq!(depth(&format!("{scheduler}{volume}")), Some(usize::MAX));
        assert_eq!(depth(&format!("{scheduler}{volume}depth = 4\n")), Some(4));
    }
}
