//! What was marked, each once and in order: a list that is put in order when it is asked for, so that many marks need little
//! room and few cost next to nothing.

/// Marked values; they are told once, however often they were marked.
#[derive(Debug)]
pub(super) struct Marks<T>(Vec<T>);

/// Shorter lists are not looked through for values that are there twice.
const SHORT: usize = 64;

impl<T: Ord> Marks<T> {
    /// Marks a value.
    pub(super) fn insert(&mut self, value: T) {
        if self.0.last() == Some(&value) {
            return;
        }
        // Before a list grows it gives up what it has twice, so that its length follows what is marked and not how often.
        if self.0.len() == self.0.capacity() && self.0.len() >= SHORT {
            self.tidy();
            self.0.reserve(self.0.len().max(SHORT));
        }
        self.0.push(value);
    }

    /// All that was marked, in order.
    pub(super) fn take(&mut self) -> Vec<T> {
        self.tidy();
        std::mem::take(&mut self.0)
    }

    fn tidy(&mut self) {
        if !self.0.is_sorted_by(|a, b| a < b) {
            self.0.sort_unstable();
            self.0.dedup();
        }
    }
}

impl<T> Default for Marks<T> {
    fn default() -> Self {
        Marks(Vec::new())
    }
}

impl<T> From<Vec<T>> for Marks<T> {
    fn from(values: Vec<T>) -> Self {
        Marks(values)
    }
}

impl<T: Ord> Extend<T> for Marks<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.insert(value));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_a_set(values in prop::collection::vec(0u16..300, 0..2000)) {
            let mut marks = Marks::default();
            marks.extend(values.iter().copied());
            let expected: BTreeSet<u16> = values.into_iter().collect();
            prop_assert!(marks.0.capacity() <= 4 * expected.len() + 4 * SHORT);
            prop_assert!(marks.take().into_iter().eq(expected));
            prop_assert!(marks.take().is_empty());
        }
    }
}
