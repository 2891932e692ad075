//! An ordered map that can be kept while the next one is made: a copy is one pointer, and a change copies only the way to
//! what it changes.
//!
//! It is a B+ tree whose nodes are shared. Readers hold a copy and never wait; the cost of a change grows with the depth of
//! the tree and not with its size. It knows nothing of what it holds but how keys are spelt.

use std::fmt;
use std::ops::{Bound, Index, RangeBounds};
use std::sync::Arc;

mod guide;
mod node;
mod row;
mod spelling;

use guide::Look;
use node::{Child, Node, Way};
pub use spelling::{Sought, Spelling, Spelt};

/// The most entries of a node; one with more is split in two. So many that a leaf, with what is kept of its keys, fills two
/// lines of memory and no more.
const MOST: usize = 40;

/// For how many entries more a node is given room.
const SPARE: usize = 4;

/// A node with fewer entries is joined with its neighbour where both fit into one.
const LEAST: usize = 8;

/// An ordered map whose copies share what they have in common.
pub struct Table<K, V> {
    root: Option<Arc<Node<K, V>>>,
    len: usize,
}

impl<K, V> Table<K, V> {
    /// An empty table.
    pub const fn new() -> Self {
        Table { root: None, len: 0 }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether both are one tree in memory, and so the same; two that are not may be equal all the same.
    pub(crate) fn is_one_with(&self, other: &Self) -> bool {
        match (&self.root, &other.root) {
            (Some(own), Some(theirs)) => Arc::ptr_eq(own, theirs),
            (own, theirs) => own.is_none() && theirs.is_none(),
        }
    }

    /// All entries, by key.
    pub fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter { above: Vec::new(), leaf: [].iter() };
        if let Some(root) = &self.root {
            iter.descend(root);
        }
        iter
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, by key.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Spelt, V> Table<K, V> {
    /// The value of a key.
    pub fn get<Q: Sought<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// The entry of a key, with the key as it is kept.
    pub fn get_key_value<Q: Sought<K> + ?Sized>(&self, key: &Q) -> Option<(&K, &V)> {
        self.way(key).map(|(_, (key, value))| (key, value))
    }

    /// The entry of a key, and the way to it.
    fn way<Q: Sought<K> + ?Sized>(&self, key: &Q) -> Option<(Way, &(K, V))> {
        self.root.as_deref()?.search(key).ok()
    }

    /// Whether there is an entry of this key.
    pub fn contains_key<Q: Sought<K> + ?Sized>(&self, key: &Q) -> bool {
        self.get(key).is_some()
    }

    /// The entries of a range of keys.
    pub fn range<R: RangeBounds<K>>(&self, range: R) -> impl Iterator<Item = (&K, &V)> {
        let iter = match range.start_bound() {
            Bound::Unbounded => self.iter(),
            Bound::Included(from) | Bound::Excluded(from) => self.iter_from(from),
        };
        let skipped = move |key: &K, range: &R| matches!(range.start_bound(), Bound::Excluded(from) if key == from);
        let is_within = |key: &K, range: &R| match range.end_bound() {
            Bound::Unbounded => true,
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
        };
        let mut iter = iter.peekable();
        if iter.peek().is_some_and(|(key, _)| skipped(key, &range)) {
            iter.next();
        }
        iter.take_while(move |(key, _)| is_within(key, &range))
    }

    /// The entries from a key on.
    pub(crate) fn iter_from<Q: Sought<K> + ?Sized>(&self, from: &Q) -> Iter<'_, K, V> {
        let mut iter = Iter { above: Vec::new(), leaf: [].iter() };
        let Some(mut node) = self.root.as_deref() else { return iter };
        loop {
            match node {
                Node::Branch(branch) => {
                    let place = node::child(branch, from, Look::Careful);
                    iter.above.push(branch.entries()[place + 1..].iter());
                    node = &branch.entries()[place].1;
                }
                Node::Leaf(leaf) => {
                    let place = leaf.look(from, Look::Careful).unwrap_or_else(|place| place);
                    iter.leaf = leaf.entries()[place..].iter();
                    return iter;
                }
            }
        }
    }
}

impl<K: Spelt + Clone, V: Clone> Table<K, V> {
    /// Sets the value of a key; gives back the one it replaces.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.exchange(key, value).map(|(_, old)| old)
    }

    /// The same; gives back also the key as it was kept. Nothing of the entry that is replaced stays behind.
    pub(crate) fn exchange(&mut self, key: K, value: V) -> Option<(K, V)> {
        let Some(root) = &mut self.root else {
            self.root = Some(Arc::new(Node::leaf(vec![(key, value)])));
            self.len = 1;
            return None;
        };
        let way = match root.search(&key) {
            Ok((way, _)) => return Arc::make_mut(root).replace(way.places(), (key, value)),
            Err(way) => way,
        };
        if let Some((separator, right)) = Arc::make_mut(root).put(way.places(), (key, value)) {
            let left = root.clone();
            let first = left.first_key().unwrap_or(&separator).clone();
            *root = Arc::new(Node::branch(vec![(first, left), (separator, right)]));
        }
        self.len += 1;
        None
    }

    /// The value of a key, to be changed; what others hold stays as it is. Nothing is copied where there is none.
    pub fn get_mut<Q: Sought<K> + ?Sized>(&mut self, key: &Q) -> Option<&mut V> {
        let (way, _) = self.way(key)?;
        Arc::make_mut(self.root.as_mut()?).entry(way.places()).map(|(_, value)| value)
    }

    /// Takes the first entry out.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        let first = self.keys().next()?.clone();
        self.remove_entry(&first)
    }

    /// Takes a key out; gives back its value. Nothing is copied where there is none.
    pub fn remove<Q: Sought<K> + ?Sized>(&mut self, key: &Q) -> Option<V> {
        self.remove_entry(key).map(|(_, old)| old)
    }

    /// The same; gives back also the key as it was kept.
    pub(crate) fn remove_entry<Q: Sought<K> + ?Sized>(&mut self, key: &Q) -> Option<(K, V)> {
        let (way, _) = self.way(key)?;
        let root = self.root.as_mut()?;
        let old = Arc::make_mut(root).remove(way.places());
        self.len -= usize::from(old.is_some());
        match &**root {
            _ if root.width() == 0 => self.root = None,
            Node::Branch(branch) if root.width() == 1 => self.root = Some(branch.entries()[0].1.clone()),
            _ => {}
        }
        old
    }

    /// A table of entries that come in order, each key once.
    pub(crate) fn of_sorted(entries: Vec<(K, V)>) -> Self {
        debug_assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
        let len = entries.len();
        if (1..=MOST).contains(&len) {
            return Table { root: Some(Arc::new(Node::leaf(entries))), len };
        }
        let mut entries = entries.into_iter();
        let mut level: Vec<Child<K, V>> = Vec::with_capacity(len.div_ceil(MOST));
        loop {
            let leaf: Vec<(K, V)> = entries.by_ref().take(MOST).collect();
            let Some((first, _)) = leaf.first() else { break };
            level.push((first.clone(), Arc::new(Node::leaf(leaf))));
        }
        while level.len() > 1 {
            let mut children = level.into_iter();
            let mut above = Vec::new();
            loop {
                let branch: Vec<_> = children.by_ref().take(MOST).collect();
                let Some((first, _)) = branch.first() else { break };
                above.push((first.clone(), Arc::new(Node::branch(branch))));
            }
            level = above;
        }
        Table { root: level.pop().map(|(_, node)| node), len }
    }
}

/// Children that are still to be walked.
type Children<'a, K, V> = std::slice::Iter<'a, Child<K, V>>;

/// The entries of a [`Table`], by key.
pub struct Iter<'a, K, V> {
    above: Vec<Children<'a, K, V>>,
    leaf: std::slice::Iter<'a, (K, V)>,
}

impl<'a, K, V> Iter<'a, K, V> {
    fn descend(&mut self, mut node: &'a Node<K, V>) {
        loop {
            match node {
                Node::Leaf(leaf) => {
                    self.leaf = leaf.entries().iter();
                    return;
                }
                Node::Branch(branch) => {
                    let mut children = branch.entries().iter();
                    let Some((_, first)) = children.next() else { return };
                    self.above.push(children);
                    node = first;
                }
            }
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.leaf.next() {
                return Some((key, value));
            }
            let next = loop {
                match self.above.last_mut()?.next() {
                    Some((_, child)) => break child,
                    None => _ = self.above.pop(),
                }
            };
            self.descend(next);
        }
    }
}

impl<'a, K, V> IntoIterator for &'a Table<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<K: Spelt, V, Q: Sought<K> + ?Sized> Index<&Q> for Table<K, V> {
    type Output = V;

    /// The value of a key that is known to be there.
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("an entry of this key")
    }
}

impl<K: Spelt + Clone, V: Clone> FromIterator<(K, V)> for Table<K, V> {
    /// Later entries replace earlier ones of the same key.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.reverse();
            entries.dedup_by(|a, b| a.0 == b.0);
            entries.reverse();
        }
        Table::of_sorted(entries)
    }
}

impl<K: Spelt + Clone, V: Clone> Extend<(K, V)> for Table<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| _ = self.insert(key, value));
    }
}

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Table { root: self.root.clone(), len: self.len }
    }
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Table::new()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for Table<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.is_one_with(other) || (self.len == other.len && self.iter().eq(other.iter()))
    }
}

impl<K: Eq, V: Eq> Eq for Table<K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::model::Key;

    #[test]
    fn what_was_copied_before_a_change_stays() {
        let mut table: Table<u32, u32> = (0..1000).map(|n| (n, n)).collect();
        let before = table.clone();
        table.insert(500, 0);
        table.remove(&999);
        assert_eq!((before.get(&500), table.get(&500)), (Some(&500), Some(&0)));
        assert_eq!((before.len(), table.len()), (1000, 999));
    }

    #[test]
    fn a_leaf_fills_two_lines_of_memory() {
        // The two counts of an `Arc` stand in front of it.
        assert_eq!(2 * size_of::<usize>() + size_of::<Node<Key, u16>>(), 2 * 64);
    }

    #[test]
    fn the_last_of_several_entries_counts() {
        let table: Table<u32, &str> = [(2, "a"), (1, "b"), (2, "c")].into_iter().collect();
        assert_eq!(table.iter().collect::<Vec<_>>(), [(&1, &"b"), (&2, &"c")]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn it_is_the_map_of_the_standard_library(
            filled in 0u16..600,
            changes in prop::collection::vec((0u16..600, any::<bool>()), 0..900),
            ranges in prop::collection::vec((0u16..600, 0u16..600), 8),
        ) {
            let mut table: Table<u16, u16> = (0..filled).map(|n| (n, n)).collect();
            let mut model: BTreeMap<u16, u16> = (0..filled).map(|n| (n, n)).collect();
            for (i, (key, is_added)) in changes.into_iter().enumerate() {
                if is_added {
                    prop_assert_eq!(table.insert(key, i as u16), model.insert(key, i as u16));
                } else {
                    prop_assert_eq!(table.remove(&key), model.remove(&key));
                }
                if let (Some(a), Some(b)) = (table.get_mut(&(key / 2)), model.get_mut(&(key / 2))) {
                    (*a, *b) = (a.wrapping_add(1), b.wrapping_add(1));
                }
                prop_assert_eq!(table.get_mut(&key), model.get_mut(&key));
                prop_assert_eq!(table.get(&key), model.get(&key));
                if i % 50 == 49 {
                    prop_assert_eq!(table.pop_first(), model.pop_first());
                }
            }
            prop_assert!(table.iter().eq(model.iter()));
            prop_assert_eq!(table.len(), model.len());
            for (a, b) in ranges {
                let (from, to) = (a.min(b), a.max(b));
                prop_assert!(table.range(from..to).eq(model.range(from..to)));
                prop_assert!(table.range(from..).eq(model.range(from..)));
                prop_assert!(table.range(..=to).eq(model.range(..=to)));
            }
        }
    }
    /// Names that begin alike for long, and some that do not.
    fn name(number: u16) -> Key {
        let namespaces = ["", "a", "team", "team-with-a-long-name-1", "team-with-a-long-name-12", "z"];
        let namespace = namespaces[usize::from(number) % namespaces.len()];
        Key::new(namespace, format!("{}{}", ["", "route-", "route-of-"][usize::from(number) % 3], number / 3))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn keys_that_begin_alike_are_told_apart(
            filled in 0u16..2000,
            changes in prop::collection::vec((0u16..2000, 0u8..3), 0..1500),
        ) {
            // The greatest first, so that what comes later is smaller than everything.
            let filled = 2000 - filled..2000;
            let mut table: Table<Key, u16> = filled.clone().map(|n| (name(n), n)).collect();
            let mut model: BTreeMap<Key, u16> = filled.map(|n| (name(n), n)).collect();
            for (number, what) in changes {
                let key = name(number);
                match what {
                    0 => prop_assert_eq!(table.remove(&key), model.remove(&key)),
                    _ => prop_assert_eq!(table.insert(key.clone(), number), model.insert(key.clone(), number)),
                }
                prop_assert_eq!(table.get(&key), model.get(&key));
                prop_assert_eq!(table.get_mut(&name(number / 2)), model.get_mut(&name(number / 2)));
            }
            prop_assert!(table.iter().eq(model.iter()));
            for number in (0..2000).step_by(97) {
                let from = name(number);
                prop_assert!(table.range(from.clone()..).eq(model.range(from..)));
            }
        }
    }
}
