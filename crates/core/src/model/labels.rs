//! Labels and annotations: a sorted list that objects with equal labels share.

use std::fmt;
use std::sync::Arc;

use super::{SharedList, Str};

/// Labels or annotations, sorted by key, without duplicate keys. Clones share the list.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels(SharedList<(Str, Str)>);

impl Labels {
    /// No labels.
    pub fn new() -> Self {
        Labels::default()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Str> {
        self.place(key).ok().map(|place| &self.0[place].1)
    }

    /// Whether there is such a key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.place(key).is_ok()
    }

    /// Keys and values, by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Str, &Str)> + Clone {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Str> {
        self.iter().map(|(key, _)| key)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the value of a key, and returns the previous one. Copies the whole list; use `collect` to build one.
    pub fn insert(&mut self, key: Str, value: Str) -> Option<Str> {
        match self.place(&key) {
            Ok(place) => Some(std::mem::replace(&mut Arc::make_mut(&mut self.0)[place].1, value)),
            Err(place) => {
                let mut pairs = self.0.to_vec();
                pairs.insert(place, (key, value));
                self.0 = pairs.into();
                None
            }
        }
    }

    /// Whether no other object shares this list.
    pub fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    fn place(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(key))
    }
}

impl FromIterator<(Str, Str)> for Labels {
    /// Later values replace earlier ones of the same key.
    fn from_iter<I: IntoIterator<Item = (Str, Str)>>(pairs: I) -> Self {
        let mut pairs: Vec<(Str, Str)> = pairs.into_iter().collect();
        if !pairs.is_sorted_by(|a, b| a.0 < b.0) {
            pairs.reverse();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            pairs.dedup_by(|earlier, last| earlier.0 == last.0);
        }
        if pairs.is_empty() { Labels::default() } else { Labels(pairs.into()) }
    }
}

impl<'a> IntoIterator for &'a Labels {
    type Item = &'a (Str, Str);
    type IntoIter = std::slice::Iter<'a, (Str, Str)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_an_ordered_map(pairs in prop::collection::vec(("[a-d]{0,2}", "[a-c]"), 0..9), asked in "[a-d]{0,2}") {
            let pairs: Vec<(Str, Str)> = pairs.iter().map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect();
            let model: BTreeMap<Str, Str> = pairs.iter().cloned().collect();
            let collected: Labels = pairs.iter().cloned().collect();
            let mut inserted = Labels::new();
            for (key, value) in &pairs {
                inserted.insert(key.clone(), value.clone());
            }
            prop_assert!(collected.iter().eq(model.iter()));
            prop_assert_eq!(&collected, &inserted);
            prop_assert_eq!(collected.get(&asked), model.get(&*asked));
            prop_assert_eq!(collected.contains_key(&asked), model.contains_key(&*asked));
        }
    }
}
