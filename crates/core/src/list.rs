//! A list that is seldom changed and often the same as another one: a copy shares its items.
//!
//! It costs one block of memory whatever its length, and none where it is empty. Whether two equal lists are also one block is
//! for who makes them to say; it never shows.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Items in order; a copy shares them.
pub struct List<T>(Arc<[T]>);

impl<T> List<T> {
    /// A list of nothing.
    pub fn new() -> Self {
        List(Arc::default())
    }

    /// Whether nobody else holds these items.
    pub fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Whether both are one block of memory, and so the same list; two that are not may be equal all the same.
    pub fn is_one_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number by which lists that are one block of memory are found again, for as long as one of them is kept.
    pub(crate) fn place(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl<T: Clone> List<T> {
    /// Adds an item at the end, for which all items are copied: a list of many is collected instead.
    pub fn push(&mut self, item: T) {
        *self = self.iter().cloned().chain([item]).collect();
    }

    /// Takes all items out.
    pub fn clear(&mut self) {
        *self = List::new();
    }
}

impl<T: Ord + Clone> List<T> {
    /// Puts the items into order, each once.
    pub fn sort_once(&mut self) {
        if !self.is_sorted_by(|a, b| a < b) {
            let mut items = self.to_vec();
            items.sort();
            items.dedup();
            *self = items.into();
        }
    }

    /// Adds those of the items that are not there yet, at the end.
    pub fn add_new(&mut self, items: &[T]) {
        let more: Vec<T> = items.iter().filter(|item| !self.contains(item)).cloned().collect();
        if !more.is_empty() {
            *self = self.iter().cloned().chain(more).collect();
        }
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        List(Arc::clone(&self.0))
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        List::new()
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Clone> DerefMut for List<T> {
    /// The items to change in place; what others hold stays as it is.
    fn deref_mut(&mut self) -> &mut [T] {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> Borrow<[T]> for List<T> {
    fn borrow(&self) -> &[T] {
        self
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        if items.is_empty() { List::new() } else { List(items.into()) }
    }
}

impl<T, const N: usize> From<[T; N]> for List<T> {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        items.into_iter().collect::<Vec<T>>().into()
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self[..] == other[..]
    }
}

impl<T: Eq> Eq for List<T> {}

impl<T: PartialEq, const N: usize> PartialEq<[T; N]> for List<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        self[..] == other[..]
    }
}

impl<T: PartialEq> PartialEq<Vec<T>> for List<T> {
    fn eq(&self, other: &Vec<T>) -> bool {
        self[..] == other[..]
    }
}

impl<T: Hash> Hash for List<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self[..].hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shares_its_items_until_one_is_changed() {
        let mut list = List::from([1, 2]);
        let copy = list.clone();
        assert!(!list.is_unshared());
        list[0] = 7;
        list.push(3);
        assert!(list.is_unshared() && copy.is_unshared());
        assert_eq!((&list[..], &copy[..]), (&[7, 2, 3][..], &[1, 2][..]));
        list.clear();
        assert_eq!(list, List::new());
    }

    #[test]
    fn items_come_once_and_in_order_where_that_is_asked_for() {
        let mut list = List::from([3, 1, 3]);
        list.add_new(&[1, 2]);
        assert_eq!(list, [3, 1, 3, 2]);
        list.sort_once();
        assert_eq!(list, [1, 2, 3]);
    }

    #[test]
    fn however_it_is_made_it_is_the_same_list() {
        for count in 0..4 {
            let items: Vec<u8> = (0..count).collect();
            let mut pushed = List::new();
            items.iter().for_each(|item| pushed.push(*item));
            let collected: List<u8> = items.iter().copied().collect();
            assert_eq!(pushed, collected);
            assert_eq!(pushed, List::from(items.clone()));
            assert_eq!(pushed, items);
        }
    }
}
