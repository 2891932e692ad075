//! The nodes of the tree: how one is made, searched, filled, split and joined.

use std::borrow::Borrow;
use std::sync::Arc;

use super::guide::{Guide, Look};
use super::spelling::Spelt;
use super::{LEAST, MOST, SPARE};

/// Entries or further nodes, in order.
#[derive(Clone)]
pub(super) struct Node<K, V> {
    guide: Guide,
    pub(super) items: Items<K, V>,
}

#[derive(Clone)]
pub(super) enum Items<K, V> {
    Leaf(Vec<(K, V)>),
    /// Children, each with a key that is not greater than any of its own and greater than all before it.
    Branch(Vec<Child<K, V>>),
}

pub(super) type Child<K, V> = (K, Arc<Node<K, V>>);

impl<K, V> Node<K, V> {
    pub(super) fn width(&self) -> usize {
        match &self.items {
            Items::Leaf(entries) => entries.len(),
            Items::Branch(children) => children.len(),
        }
    }

    pub(super) fn first_key(&self) -> Option<&K> {
        match &self.items {
            Items::Leaf(entries) => entries.first().map(|(key, _)| key),
            Items::Branch(children) => children.first().map(|(key, _)| key),
        }
    }

    /// Which of these children a key belongs to.
    pub(super) fn child<Q: Spelt + ?Sized>(&self, children: &[Child<K, V>], key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.guide.look(children, key, Look::Careful).unwrap_or_else(|place| place.saturating_sub(1))
    }

    /// Where a key stands in a leaf with these entries, or would stand.
    pub(super) fn place<Q: Spelt + ?Sized>(&self, entries: &[(K, V)], key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.guide.look(entries, key, Look::Careful)
    }

    /// The way to a key and its entry, or the way to where it would stand.
    pub(super) fn search<Q: Spelt + ?Sized>(&self, key: &Q) -> Result<(Way, &(K, V)), Way>
    where
        K: Borrow<Q>,
    {
        let quick = self.walk(key, Look::Quick);
        let end = if quick.is_sure(key) { quick } else { self.walk(key, Look::Careful) };
        match end.place {
            Ok(place) => Ok((end.way, &end.entries[place])),
            Err(_) => Err(end.way),
        }
    }

    fn walk<Q: Spelt + ?Sized>(&self, key: &Q, look: Look) -> End<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let mut way = Way::default();
        let mut node = self;
        loop {
            let guide = &node.guide;
            match &node.items {
                Items::Branch(children) => {
                    let place = guide.look(children, key, look).unwrap_or_else(|place| place.saturating_sub(1));
                    way.push(place);
                    node = &children[place].1;
                }
                Items::Leaf(entries) => {
                    let place = guide.look(entries, key, look);
                    way.push(place.unwrap_or_else(|place| place));
                    return End { way, guide, entries, place };
                }
            }
        }
    }
}

/// Where a walk through the nodes ends.
struct End<'a, K, V> {
    way: Way,
    guide: &'a Guide,
    entries: &'a [(K, V)],
    /// Where the key stands there, or would stand.
    place: Result<usize, usize>,
}

impl<K, V> End<'_, K, V> {
    /// Whether a quick walk ended where a careful one would: at the key, or between two others that it belongs between.
    fn is_sure<Q: Spelt + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        match self.place {
            Ok(_) => true,
            Err(place) if place == self.entries.len() => false,
            Err(place) => place.checked_sub(1).is_some_and(|before| self.guide.fits(&self.entries[before].0, key)),
        }
    }
}

/// The most levels that a tree has: with four children each it would hold more than there is memory for.
const DEPTH: usize = 24;

/// Which child is taken at each level, and then which entry.
#[derive(Clone, Copy, Default)]
pub(super) struct Way {
    places: [u8; DEPTH],
    depth: usize,
}

impl Way {
    fn push(&mut self, place: usize) {
        // A node has few entries.
        self.places[self.depth] = place as u8;
        self.depth += 1;
    }

    pub(super) fn places(&self) -> &[u8] {
        &self.places[..self.depth]
    }
}

impl<K: Spelt, V> Node<K, V> {
    pub(super) fn leaf(entries: Vec<(K, V)>) -> Self {
        Node { guide: Guide::of(&entries), items: Items::Leaf(entries) }
    }

    pub(super) fn branch(children: Vec<Child<K, V>>) -> Self {
        Node { guide: Guide::of(&children), items: Items::Branch(children) }
    }
}

impl<K: Spelt + Clone, V: Clone> Node<K, V> {
    /// Puts an entry of a new key where a way leads to; gives the second half of a node that had no room left.
    pub(super) fn put(&mut self, way: &[u8], entry: (K, V)) -> Option<Child<K, V>> {
        let Node { guide, items } = self;
        let (place, below) = way.split_first()?;
        let place = usize::from(*place);
        match items {
            Items::Leaf(entries) => {
                let right = put(guide, entries, place, entry)?;
                Some((right[0].0.clone(), Arc::new(Node::leaf(right))))
            }
            Items::Branch(children) => {
                let split = Arc::make_mut(&mut children[place].1).put(below, entry);
                if place == 0 {
                    lower(guide, children);
                }
                let right = put(guide, children, place + 1, split?)?;
                Some((right[0].0.clone(), Arc::new(Node::branch(right))))
            }
        }
    }

    /// Takes out the entry that a way leads to.
    pub(super) fn remove(&mut self, way: &[u8]) -> Option<(K, V)> {
        let Node { guide, items } = self;
        let (place, below) = way.split_first()?;
        let place = usize::from(*place);
        match items {
            Items::Leaf(entries) => {
                guide.take(place);
                Some(entries.remove(place))
            }
            Items::Branch(children) => {
                let old = Arc::make_mut(&mut children[place].1).remove(below);
                if children[place].1.width() < LEAST {
                    tidy(guide, children, place);
                }
                old
            }
        }
    }

    /// The entry that a way leads to, to be changed; its key stays in its place.
    pub(super) fn entry(&mut self, way: &[u8]) -> Option<&mut (K, V)> {
        let (place, below) = way.split_first()?;
        match &mut self.items {
            Items::Leaf(entries) => entries.get_mut(usize::from(*place)),
            Items::Branch(children) => Arc::make_mut(&mut children.get_mut(usize::from(*place))?.1).entry(below),
        }
    }

    /// Replaces the entry that a way leads to by one of the same key.
    pub(super) fn replace(&mut self, way: &[u8], entry: (K, V)) -> Option<(K, V)> {
        let (place, below) = way.split_first()?;
        match &mut self.items {
            Items::Leaf(entries) => Some(std::mem::replace(entries.get_mut(usize::from(*place))?, entry)),
            Items::Branch(children) => {
                let child = children.get_mut(usize::from(*place))?;
                let old = Arc::make_mut(&mut child.1).replace(below, entry)?;
                // Only who comes first below it gives a child its key.
                if below.iter().all(|place| *place == 0) {
                    renew(child, &old.0);
                }
                Some(old)
            }
        }
    }

    /// Adds what stands in the node behind; both are of one depth.
    fn append(&mut self, next: &Self) {
        match (&mut self.items, &next.items) {
            (Items::Leaf(own), Items::Leaf(more)) => {
                own.extend(more.iter().cloned());
                self.guide = Guide::of(own);
            }
            (Items::Branch(own), Items::Branch(more)) => {
                own.extend(more.iter().cloned());
                self.guide = Guide::of(own);
            }
            _ => {}
        }
    }
}

/// Lets the first child go by its first key, which may be smaller now than all others were.
fn lower<K: Spelt + Clone, V>(guide: &mut Guide, children: &mut [Child<K, V>]) {
    let [(key, child), ..] = children else { return };
    if let Some(first) = child.first_key().filter(|first| *first < key) {
        *key = first.clone();
        *guide = Guide::of(children);
    }
}

/// Lets a child go by the key as its entry has it now, where it went by the one that was replaced.
fn renew<K: Ord + Clone, V>((first, child): &mut Child<K, V>, replaced: &K) {
    if first == replaced
        && let Some(now) = child.first_key().filter(|now| *now == replaced)
    {
        *first = now.clone();
    }
}

/// Puts an entry into a node; gives the second half of one that has no room left. What grows at its end stays full instead,
/// so that entries that come in order fill their nodes. A node has room for few entries more than it holds, because there are
/// many of them.
fn put<K: Spelt, T>(guide: &mut Guide, entries: &mut Vec<(K, T)>, place: usize, entry: (K, T)) -> Option<Vec<(K, T)>> {
    if entries.len() < MOST {
        if entries.len() == entries.capacity() {
            entries.reserve_exact(SPARE.min(MOST - entries.len()));
        }
        entries.insert(place, entry);
        guide.put(entries, place);
        return None;
    }
    if place == entries.len() {
        return Some(vec![entry]);
    }
    let half = entries.len() / 2;
    let mut right = Vec::with_capacity(half + SPARE);
    right.extend(entries.drain(half..));
    entries.shrink_to(half + SPARE);
    match place.checked_sub(half) {
        Some(place) => right.insert(place, entry),
        None => entries.insert(place, entry),
    }
    *guide = Guide::of(entries);
    Some(right)
}

/// Drops a child that is empty, or joins it with a neighbour where there is room.
fn tidy<K: Spelt + Clone, V: Clone>(guide: &mut Guide, children: &mut Vec<Child<K, V>>, place: usize) {
    if children[place].1.width() == 0 {
        children.remove(place);
        guide.take(place);
        return;
    }
    let left = place.saturating_sub(1);
    let fits = |at: usize| children.get(at + 1).is_some_and(|next| children[at].1.width() + next.1.width() <= MOST);
    if fits(left) {
        let (_, right) = children.remove(left + 1);
        guide.take(left + 1);
        Arc::make_mut(&mut children[left].1).append(&right);
    }
}
