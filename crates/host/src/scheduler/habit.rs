//! What a process is expected to do next: how long it thinks and how far it seeks.
//!
//! Decaying means, each new sample one eighth (kernel 2.6.32, block/as-iosched.c and
//! block/cfq-iosched.c), in ns and bytes and with a fixed point of 1/256 in the weights.

/// A decaying mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    /// 256 in the limit.
    weight: u64,
    total: u128,
    pub value: u64,
}

impl Mean {
    pub fn add(&mut self, sample: u64) {
        self.weight = (7 * self.weight + 256) / 8;
        self.total = (7 * self.total + 256 * u128::from(sample)) / 8;
        let half = u128::from(self.weight / 2);
        self.value = ((self.total + half) / u128::from(self.weight)) as u64;
    }

    /// Whether there was a sample.
    pub fn is_known(&self) -> bool {
        self.weight > 0
    }

    /// The weight of the samples so far: 32 after one, 256 in the limit.
    pub fn weight(&self) -> u64 {
        self.weight
    }
}

/// What one process did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habit {
    pub think: Mean,
    pub seek: Mean,
    /// When a synchronous request of it completed last.
    pub ended: Option<u64>,
    /// Behind its last request.
    pub position: u64,
}

/// Sectors of a seek that counts at most, beside four times the mean: for the first samples, and
/// for the others.
const FAR_BYTES: [u64; 2] = [2 << 20 << 9, 2 << 16 << 9];

impl Habit {
    /// A seek from the last request to `start`; a single far one does not spoil the mean.
    pub fn add_seek(&mut self, start: u64) {
        let far = FAR_BYTES[usize::from(self.seek.weight > 60)];
        let distance = start.abs_diff(self.position);
        self.seek.add(distance.min(self.seek.value.saturating_mul(4).saturating_add(far)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_starts_at_its_first_sample_and_forgets_by_an_eighth() {
        let mut mean = Mean::default();
        mean.add(8_000);
        assert_eq!((mean.value, mean.weight), (8_000, 32));
        mean.add(0);
        // 7/8 of 32 with 8000, 32 with 0.
        assert_eq!((mean.value, mean.weight), (8_000 * 28 / 60, 60));
        (0..200).for_each(|_| mean.add(1_000));
        // Whole numbers stop short of 256, so a constant is seen 2.8 % too long.
        assert_eq!((mean.value, mean.weight), (1_028, 249));
    }

    #[test]
    fn one_far_seek_counts_little() {
        let mut habit = Habit::default();
        (0..20).for_each(|_| habit.add_seek(0));
        habit.add_seek(1 << 40);
        assert!(habit.seek.value <= FAR_BYTES[1] / 7, "{habit:?}");
    }
}
