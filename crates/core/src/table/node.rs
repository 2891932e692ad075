//! The nodes of the tree: how a key is found, and what becomes of the nodes on the way to it.

use std::sync::Arc;

use super::guide::Look;
use super::row::Row;
use super::spelling::{Sought, Spelt};
use super::{LEAST, MOST};

/// Entries or further nodes, in order.
#[derive(Clone)]
pub(super) enum Node<K, V> {
    Leaf(Leaf<K, V>),
    /// Children, each with a key that is not greater than any of its own and greater than all before it.
    Branch(Box<Branch<K, V>>),
}

/// There are many of them, so that little is kept of their keys.
pub(super) type Leaf<K, V> = Row<u16, K, V>;

/// There are few of them, and everybody comes by.
pub(super) type Branch<K, V> = Row<u128, K, Arc<Node<K, V>>>;

pub(super) type Child<K, V> = (K, Arc<Node<K, V>>);

impl<K, V> Node<K, V> {
    pub(super) fn width(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.entries().len(),
            Node::Branch(branch) => branch.entries().len(),
        }
    }

    pub(super) fn first_key(&self) -> Option<&K> {
        match self {
            Node::Leaf(leaf) => leaf.entries().first().map(|(key, _)| key),
            Node::Branch(branch) => branch.entries().first().map(|(key, _)| key),
        }
    }
}

impl<K: Spelt, V> Node<K, V> {
    /// The way to a key and its entry, or the way to where it would stand.
    pub(super) fn search<Q: Sought<K> + ?Sized>(&self, key: &Q) -> Result<(Way, &(K, V)), Way> {
        let (way, leaf, place) = match self.walk(key, Look::Quick) {
            (_, leaf, Err(place)) if !leaf.is_between(place, key) => self.walk(key, Look::Careful),
            sure => sure,
        };
        match place {
            Ok(place) => Ok((way, &leaf.entries()[place])),
            Err(_) => Err(way),
        }
    }

    /// The way to a key, the leaf that it leads to, and where the key stands there, or would stand.
    fn walk<Q: Sought<K> + ?Sized>(&self, key: &Q, look: Look) -> (Way, &Leaf<K, V>, Result<usize, usize>) {
        let mut way = Way::default();
        let mut node = self;
        loop {
            match node {
                Node::Branch(branch) => {
                    let place = child(branch, key, look);
                    way.push(place);
                    node = &branch.entries()[place].1;
                }
                Node::Leaf(leaf) => {
                    let place = leaf.look(key, look);
                    way.push(place.unwrap_or_else(|place| place));
                    return (way, leaf, place);
                }
            }
        }
    }
}

/// Which child a key belongs to.
pub(super) fn child<K: Spelt, V, Q: Sought<K> + ?Sized>(branch: &Branch<K, V>, key: &Q, look: Look) -> usize {
    branch.look(key, look).unwrap_or_else(|place| place.saturating_sub(1))
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
        Node::Leaf(Row::of(entries))
    }

    pub(super) fn branch(children: Vec<Child<K, V>>) -> Self {
        Node::Branch(Box::new(Row::of(children)))
    }
}

impl<K: Spelt + Clone, V: Clone> Node<K, V> {
    /// Puts an entry of a new key where a way leads to; gives the second half of a node that had no room left.
    pub(super) fn put(&mut self, way: &[u8], entry: (K, V)) -> Option<Child<K, V>> {
        let (place, below) = way.split_first()?;
        let place = usize::from(*place);
        let right = match self {
            Node::Leaf(leaf) => Node::Leaf(leaf.put(place, entry)?),
            Node::Branch(branch) => {
                let child = Arc::make_mut(&mut branch.entry_mut(place)?.1);
                let split = child.put(below, entry);
                if place == 0 {
                    lower(branch);
                }
                Node::Branch(Box::new(branch.put(place + 1, split?)?))
            }
        };
        let first = right.first_key()?.clone();
        Some((first, Arc::new(right)))
    }

    /// Takes out the entry that a way leads to.
    pub(super) fn remove(&mut self, way: &[u8]) -> Option<(K, V)> {
        let (place, below) = way.split_first()?;
        let place = usize::from(*place);
        match self {
            Node::Leaf(leaf) => Some(leaf.take(place)),
            Node::Branch(branch) => {
                let child = Arc::make_mut(&mut branch.entry_mut(place)?.1);
                let old = child.remove(below);
                if child.width() < LEAST {
                    tidy(branch, place);
                }
                old
            }
        }
    }

    /// The entry that a way leads to, to be changed; its key stays in its place.
    pub(super) fn entry(&mut self, way: &[u8]) -> Option<&mut (K, V)> {
        let (place, below) = way.split_first()?;
        let place = usize::from(*place);
        match self {
            Node::Leaf(leaf) => leaf.entry_mut(place),
            Node::Branch(branch) => Arc::make_mut(&mut branch.entry_mut(place)?.1).entry(below),
        }
    }

    /// Replaces the entry that a way leads to by one of the same key.
    pub(super) fn replace(&mut self, way: &[u8], entry: (K, V)) -> Option<(K, V)> {
        let (place, below) = way.split_first()?;
        let place = usize::from(*place);
        match self {
            Node::Leaf(leaf) => Some(std::mem::replace(leaf.entry_mut(place)?, entry)),
            Node::Branch(branch) => {
                let child = branch.entry_mut(place)?;
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
        match (self, next) {
            (Node::Leaf(own), Node::Leaf(more)) => own.append(more),
            (Node::Branch(own), Node::Branch(more)) => own.append(more),
            _ => {}
        }
    }
}

/// Lets the first child go by its first key, which may be smaller now than all others were.
fn lower<K: Spelt + Clone, V>(branch: &mut Branch<K, V>) {
    let Some((key, child)) = branch.entries().first() else { return };
    if let Some(first) = child.first_key().filter(|first| *first < key) {
        let first = first.clone();
        branch.lower(first);
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

/// Drops a child that is empty, or joins it with a neighbour where there is room.
fn tidy<K: Spelt + Clone, V: Clone>(branch: &mut Branch<K, V>, place: usize) {
    let width = |at: usize| branch.entries().get(at).map_or(MOST, |(_, child)| child.width());
    let left = place.saturating_sub(1);
    if width(place) == 0 {
        branch.take(place);
    } else if width(left) + width(left + 1) <= MOST {
        let (_, right) = branch.take(left + 1);
        if let Some((_, left)) = branch.entry_mut(left) {
            Arc::make_mut(left).append(&right);
        }
    }
}
