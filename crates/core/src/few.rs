//! A list that mostly has one item, which it then holds without a further allocation.

use std::ops::{Deref, DerefMut};

/// None, one, or several items, in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Few<T> {
    /// Nothing.
    #[default]
    None,
    /// One item.
    One(T),
    /// Two or more; in a block that is no larger than they are.
    Many(Box<[T]>),
}

impl<T> Few<T> {
    /// Adds an item at the end. Long lists are collected instead.
    pub fn push(&mut self, item: T) {
        *self = match std::mem::take(self) {
            Few::None => Few::One(item),
            Few::One(first) => Few::Many(Box::new([first, item])),
            Few::Many(items) => {
                let mut items = items.into_vec();
                items.reserve_exact(1);
                items.push(item);
                Few::Many(items.into())
            }
        };
    }

    /// The items as a list.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Few::None => Vec::new(),
            Few::One(item) => vec![item],
            Few::Many(items) => items.into_vec(),
        }
    }

    /// The items, to be changed in place.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Few::None => &mut [],
            Few::One(item) => std::slice::from_mut(item),
            Few::Many(items) => items,
        }
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Few::None => &[],
            Few::One(item) => std::slice::from_ref(item),
            Few::Many(items) => items,
        }
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}

impl<T: PartialEq, const N: usize> PartialEq<[T; N]> for Few<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        self[..] == other[..]
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        let Some(first) = items.next() else { return Few::None };
        let Some(second) = items.next() else { return Few::One(first) };
        Few::Many([first, second].into_iter().chain(items).collect())
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        *self = std::mem::take(self).into_vec().into_iter().chain(items).collect();
    }
}

impl<T> From<Vec<T>> for Few<T> {
    fn from(items: Vec<T>) -> Self {
        match items.len() {
            0 | 1 => items.into_iter().collect(),
            _ => Few::Many(items.into()),
        }
    }
}

impl<T, const N: usize> From<[T; N]> for Few<T> {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_was_put_in_however_many() {
        for count in 0..4 {
            let mut pushed = Few::default();
            (0..count).for_each(|n| pushed.push(n));
            let mut extended = Few::default();
            extended.extend(0..count);
            assert_eq!(pushed, extended);
            let collected: Few<i32> = (0..count).collect();
            assert_eq!(pushed, collected);
            assert_eq!(pushed, Few::from((0..count).collect::<Vec<_>>()));
            assert_eq!(&*pushed, (0..count).collect::<Vec<_>>());
        }
    }
}
