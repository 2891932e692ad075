//! Optional numbers in eight bytes.

use std::fmt;

/// An optional `i64` in eight bytes. `i64::MIN` means none; no field can have that value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Maybe(i64);

const NONE: i64 = i64::MIN;

impl Maybe {
    /// The number, if there is one.
    pub fn get(self) -> Option<i64> {
        (self.0 != NONE).then_some(self.0)
    }
}

impl Default for Maybe {
    fn default() -> Self {
        Maybe(NONE)
    }
}

impl From<Option<i64>> for Maybe {
    fn from(number: Option<i64>) -> Self {
        Maybe(number.unwrap_or(NONE))
    }
}

impl fmt::Debug for Maybe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_back_as_it_was_and_takes_no_more_room() {
        assert_eq!(size_of::<Maybe>(), size_of::<i64>());
        for number in [None, Some(0), Some(-1), Some(i64::MAX)] {
            assert_eq!(Maybe::from(number).get(), number);
        }
        assert_eq!(Maybe::default().get(), None);
    }
}
