//! Reproducible random numbers: the same seed, purpose and number always give the same sequence.
//!
//! Every object has a sequence of its own, so that the millionth route can be written without the others before it.

/// A sequence of numbers (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct RandomSequence(u64);

impl RandomSequence {
    /// The sequence of one thing: `purpose` keeps sequences of different kinds of things apart.
    pub(crate) fn of(seed: u64, purpose: &str, number: usize) -> Self {
        let start = purpose.bytes().fold(mix(seed), |state, byte| mix(state ^ u64::from(byte)));
        RandomSequence(mix(start ^ number as u64))
    }

    /// A number below a limit; 0 where the limit is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.unit() * limit as f64) as usize
    }

    /// Whether something happens that happens in this share of cases.
    pub(crate) fn happens(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// A number below a limit, small ones more often: a power of 1 is even.
    pub(crate) fn skewed(&mut self, limit: usize, power: f64) -> usize {
        (self.unit().powf(power) * limit as f64) as usize
    }

    /// One of several, by weight; the first where no weight is above 0.
    pub(crate) fn weighted<T: Copy>(&mut self, choices: &[(T, u32)]) -> Option<T> {
        let total: usize = choices.iter().map(|(_, weight)| *weight as usize).sum();
        let mut at = self.below(total);
        let found = choices.iter().find(|(_, weight)| {
            let hit = at < *weight as usize;
            at = at.saturating_sub(*weight as usize);
            hit
        });
        found.or(choices.first()).map(|(choice, _)| *choice)
    }

    /// From 0 to just below 1, in steps that a float holds exactly.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.0) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn mix(state: u64) -> u64 {
    let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).wrapping_add(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_repeat_and_differ_by_each_part() {
        let first = |seed, purpose, number| RandomSequence::of(seed, purpose, number).below(1 << 40);
        assert_eq!(first(1, "route", 7), first(1, "route", 7));
        for other in [first(2, "route", 7), first(1, "zone", 7), first(1, "route", 8)] {
            assert_ne!(first(1, "route", 7), other);
        }
    }

    #[test]
    fn weights_are_kept() {
        let mut counts = [0; 3];
        for number in 0..10_000 {
            counts[RandomSequence::of(1, "w", number).weighted(&[(0, 8), (1, 2), (2, 0)]).unwrap()] += 1;
        }
        assert!((7_700..8_300).contains(&counts[0]), "{counts:?}");
        assert_eq!(counts[2], 0);
        assert_eq!(RandomSequence::of(1, "w", 0).weighted::<usize>(&[]), None);
    }

    #[test]
    fn numbers_stay_below_their_limit() {
        let mut random = RandomSequence::of(1, "", 0);
        assert!((0..1000).all(|_| random.below(3) < 3 && random.skewed(3, 2.0) < 3));
        assert_eq!(random.below(0), 0);
    }
}
