//! A list that is mostly empty, and takes a single word where it is.

use std::ops::Deref;

/// Items in order; hardly ever any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rare<T>(Option<Box<Items<T>>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Items<T>(Vec<T>);

impl<T> Rare<T> {
    /// No items.
    pub const fn new() -> Self {
        Rare(None)
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Rare::new()
    }
}

impl<T> Deref for Rare<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_ref().map(|items| &items.0[..]).unwrap_or_default()
    }
}

impl<T> From<Vec<T>> for Rare<T> {
    fn from(items: Vec<T>) -> Self {
        Rare((!items.is_empty()).then(|| Box::new(Items(items))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_was_put_in_and_is_a_word_long() {
        assert_eq!(size_of::<Rare<String>>(), size_of::<usize>());
        for count in 0..3 {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(*Rare::from(items.clone()), items[..]);
        }
        assert_eq!(Rare::from(Vec::<u8>::new()), Rare::new());
    }
}
