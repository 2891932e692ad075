//! How keys are spelt: bytes whose order is the order of the keys, so that a few of them tell most keys apart.

use std::borrow::Borrow;
use std::cmp::Ordering;

use crate::attachment::ListenerId;
use crate::model::{Key, Kind, ObjectRef};
use crate::names::Hostname;

/// A key that is ordered as its spelling is, as far as that goes; keys that are spelt alike may still differ.
pub trait Spelt: Ord {
    /// How it is spelt. What can be borrowed as a key is spelt as the key is.
    fn spelling(&self) -> Spelling<'_>;
}

/// What a key is looked for by: what it can be borrowed as, or anything else that is ordered as keys are.
pub trait Sought<K> {
    /// How the key is spelt.
    fn spelt(&self) -> Spelling<'_>;

    /// How the key compares with one that is there.
    fn compare(&self, known: &K) -> Ordering;
}

impl<K: Borrow<Q>, Q: Spelt + ?Sized> Sought<K> for Q {
    fn spelt(&self) -> Spelling<'_> {
        self.spelling()
    }

    fn compare(&self, known: &K) -> Ordering {
        self.cmp(known.borrow())
    }
}

/// A number in front, and texts behind it.
#[derive(Clone, Copy)]
pub struct Spelling<'a> {
    number: [u8; 8],
    /// How many of its bytes count.
    width: usize,
    texts: [&'a [u8]; 3],
}

impl<'a> Spelling<'a> {
    /// A number alone.
    pub fn number(number: u64) -> Self {
        Spelling { number: number.to_be_bytes(), width: 8, texts: [&[]; 3] }
    }

    /// A text alone.
    pub fn text(text: &'a str) -> Self {
        Spelling { number: [0; 8], width: 0, texts: [text.as_bytes(), &[], &[]] }
    }

    /// A key, as the text `namespace/name`.
    pub fn key(key: &'a Key) -> Self {
        Spelling { number: [0; 8], width: 0, texts: [key.namespace.as_bytes(), b"/", key.name.as_bytes()] }
    }

    /// An object: its kind in front of its key.
    pub fn object(kind: Kind, key: &'a Key) -> Self {
        Spelling { number: [kind as u8, 0, 0, 0, 0, 0, 0, 0], width: 1, ..Spelling::key(key) }
    }

    /// Something of an age, and then a key.
    pub fn aged(created: i64, key: &'a Key) -> Self {
        let number = (created as u64 ^ (1 << 63)).to_be_bytes();
        Spelling { number, width: 8, ..Spelling::key(key) }
    }

    /// The byte at a place; there are zeros behind the end.
    pub(super) fn byte(&self, at: usize) -> u8 {
        let Some(mut at) = at.checked_sub(self.width) else { return self.number[at] };
        for text in self.texts {
            match text.get(at) {
                Some(byte) => return *byte,
                None => at -= text.len(),
            }
        }
        0
    }

    /// Some bytes from a place on; there are zeros behind the end.
    pub(super) fn bytes<const N: usize>(&self, mut from: usize) -> [u8; N] {
        let mut bytes = [0; N];
        let mut left = &mut bytes[..];
        for part in [&self.number[..self.width], self.texts[0], self.texts[1], self.texts[2]] {
            let Some(part) = part.get(from..) else {
                from -= part.len();
                continue;
            };
            let (now, later) = left.split_at_mut(part.len().min(left.len()));
            now.copy_from_slice(&part[..now.len()]);
            (left, from) = (later, 0);
            if left.is_empty() {
                break;
            }
        }
        bytes
    }

    /// With how many bytes both begin: perhaps fewer than they have in common, and never more.
    pub(super) fn in_common(&self, other: &Self) -> usize {
        let mut count = alike(&self.number[..self.width], &other.number[..other.width]);
        if count < self.width || count < other.width {
            return count;
        }
        for (own, others) in self.texts.iter().zip(other.texts) {
            let both = if std::ptr::eq(*own, others) { own.len() } else { alike(own, others) };
            count += both;
            if both < own.len() || both < others.len() {
                break;
            }
        }
        count
    }
}

/// With how many bytes both begin.
fn alike(own: &[u8], others: &[u8]) -> usize {
    let (words, other_words) = (own.as_chunks::<8>().0, others.as_chunks::<8>().0);
    let same = words.iter().zip(other_words).take_while(|(a, b)| a == b).count() * 8;
    same + own[same..].iter().zip(&others[same..]).take_while(|(a, b)| a == b).count()
}

macro_rules! spelt {
    ($($key:ty: $self:ident => $spelling:expr),* $(,)?) => {
        $(impl Spelt for $key {
            fn spelling(&$self) -> Spelling<'_> {
                $spelling
            }
        })*
    };
}

spelt! {
    str: self => Spelling::text(self),
    std::sync::Arc<str>: self => Spelling::text(self),
    Hostname: self => Spelling::text(self.as_str()),
    Key: self => Spelling::key(self),
    ObjectRef: self => Spelling::object(self.kind, &self.key),
    ListenerId: self => Spelling::number(u64::from(self.hall) << 32 | u64::from(self.slot)),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::guide::Letters;
    use super::*;

    spelt! {
        u16: self => Spelling::number(u64::from(*self)),
        u32: self => Spelling::number(u64::from(*self)),
    }

    const PARTS: [&str; 10] = ["", "a", "a-b", "a.b", "a/b", "ab", "a\0", "\0", "team-1234567", "team-1234568"];

    fn is_as_ordered<K: Spelt>(a: &K, b: &K) {
        let (one, other) = (a.spelling(), b.spelling());
        for from in 0..=one.in_common(&other) {
            let few = u16::of(&one, from).cmp(&u16::of(&other, from));
            let many = u128::of(&one, from).cmp(&u128::of(&other, from));
            assert!([few, many].iter().all(|said| said.is_eq() || *said == a.cmp(b)));
        }
    }

    #[test]
    fn letters_behind_what_keys_have_in_common_are_ordered_as_they_are() {
        let kinds = [Kind::HttpRoute, Kind::GrpcRoute];
        let objects: Vec<ObjectRef> = PARTS
            .iter()
            .flat_map(|namespace| PARTS.iter().map(move |name| (*namespace, *name)))
            .flat_map(|(namespace, name)| kinds.map(|kind| ObjectRef::new(kind, namespace, name)))
            .collect();
        for (a, b) in objects.iter().flat_map(|a| objects.iter().map(move |b| (a, b))) {
            is_as_ordered(a, b);
            is_as_ordered(&a.key, &b.key);
            is_as_ordered(a.name(), b.name());
        }
    }

    proptest! {
        #[test]
        fn numbers_and_ages_are_ordered_as_they_are(a: u32, b: u32, x: i64, y: i64) {
            is_as_ordered(&a, &b);
            let key = Key::new("a", "b");
            let (one, other) = (Spelling::aged(x, &key), Spelling::aged(y, &key));
            let from = one.in_common(&other);
            let said = u16::of(&one, from).cmp(&u16::of(&other, from));
            prop_assert!(said == x.cmp(&y));
        }
    }
}
