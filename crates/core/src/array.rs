//! A list that can be kept while the next one is made: a copy is one pointer, and a change copies only the way to what it
//! changes.
//!
//! It is a tree of wide nodes whose place says which item it holds. It grows and shrinks at its end only, and knows nothing
//! of what it holds.

use std::fmt;
use std::sync::Arc;

/// So many bits of a place choose the way at each node.
const BITS: usize = 5;

/// The most items or nodes of a node.
const WIDE: usize = 1 << BITS;

/// Items by place; a copy shares them.
pub struct Array<T> {
    root: Node<T>,
    /// How many nodes there are above the items, less one.
    height: usize,
    len: usize,
}

enum Node<T> {
    Items(Arc<[T]>),
    Nodes(Arc<[Node<T>]>),
}

impl<T> Array<T> {
    /// A list of nothing.
    pub fn new() -> Self {
        Array { root: Node::Items(Arc::default()), height: 0, len: 0 }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The item at a place.
    pub fn get(&self, place: usize) -> Option<&T> {
        let mut node = Some(&self.root).filter(|_| place < self.len)?;
        let mut shift = self.height * BITS;
        loop {
            let way = (place >> shift) & (WIDE - 1);
            match node {
                Node::Items(items) => return items.get(way),
                Node::Nodes(nodes) => node = nodes.get(way)?,
            }
            shift = shift.saturating_sub(BITS);
        }
    }
}

impl<T: Clone> Array<T> {
    /// The item at a place, to be changed; what others hold stays as it is.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let mut node = Some(&mut self.root).filter(|_| place < self.len)?;
        let mut shift = self.height * BITS;
        loop {
            let way = (place >> shift) & (WIDE - 1);
            match node {
                Node::Items(items) => return Arc::make_mut(items).get_mut(way),
                Node::Nodes(nodes) => node = Arc::make_mut(nodes).get_mut(way)?,
            }
            shift = shift.saturating_sub(BITS);
        }
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        if self.len == WIDE << (self.height * BITS) {
            let below = [self.root.clone(), Node::alone(self.height, item)];
            self.root = Node::Nodes(below.into());
            self.height += 1;
        } else {
            self.root.push(self.height, self.len, item);
        }
        self.len += 1;
    }

    /// Takes the last item out.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        let item = self.get(last)?.clone();
        self.root.pop(self.height, last);
        self.len = last;
        if last == 1 << (self.height * BITS)
            && let Node::Nodes(nodes) = &self.root
            && let Some(only) = nodes.first().cloned()
        {
            self.root = only;
            self.height -= 1;
        }
        Some(item)
    }
}

impl<T: Clone> Node<T> {
    /// A node of a height that holds one item.
    fn alone(height: usize, item: T) -> Self {
        let items = Node::Items([item].into());
        (0..height).fold(items, |below, _| Node::Nodes([below].into()))
    }

    fn push(&mut self, height: usize, place: usize, item: T) {
        let way = (place >> (height * BITS)) & (WIDE - 1);
        match self {
            Node::Items(items) => *items = items.iter().cloned().chain([item]).collect(),
            Node::Nodes(nodes) if way < nodes.len() => Arc::make_mut(nodes)[way].push(height - 1, place, item),
            Node::Nodes(nodes) => *nodes = nodes.iter().cloned().chain([Node::alone(height - 1, item)]).collect(),
        }
    }

    fn pop(&mut self, height: usize, place: usize) {
        let is_first = place & ((1 << (height * BITS)) - 1) == 0;
        match self {
            Node::Items(items) => *items = items[..items.len() - 1].into(),
            Node::Nodes(nodes) if is_first => *nodes = nodes[..nodes.len() - 1].into(),
            Node::Nodes(nodes) => {
                if let Some(below) = Arc::make_mut(nodes).last_mut() {
                    below.pop(height - 1, place);
                }
            }
        }
    }
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Node::Items(items) => Node::Items(items.clone()),
            Node::Nodes(nodes) => Node::Nodes(nodes.clone()),
        }
    }
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        Array { root: self.root.clone(), height: self.height, len: self.len }
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Array::new()
    }
}

impl<T: Clone> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut array = Array::new();
        items.into_iter().for_each(|item| array.push(item));
        array
    }
}

impl<T: fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries((0..self.len).filter_map(|place| self.get(place))).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_copied_before_a_change_stays() {
        let mut array: Array<usize> = (0..5000).collect();
        let before = array.clone();
        *array.get_mut(4321).unwrap() = 0;
        assert_eq!(array.pop(), Some(4999));
        assert_eq!((before.get(4321), array.get(4321)), (Some(&4321), Some(&0)));
        assert_eq!((before.len(), array.len()), (5000, 4999));
    }

    #[test]
    fn it_grows_and_shrinks_over_every_height() {
        let mut array = Array::new();
        for n in 0..40_000 {
            array.push(n);
            assert_eq!((array.get(n), array.get(n / 3), array.get(n + 1)), (Some(&n), Some(&(n / 3)), None));
        }
        for n in (0..40_000).rev() {
            assert_eq!(array.get(n / 3), Some(&(n / 3)));
            assert_eq!((array.pop(), array.len()), (Some(n), n));
        }
        assert_eq!(array.pop(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn it_is_the_list_of_the_standard_library(
            filled in 0usize..2000,
            changes in prop::collection::vec((0usize..2000, 0u8..4), 0..900),
        ) {
            let mut array: Array<usize> = (0..filled).collect();
            let mut model: Vec<usize> = (0..filled).collect();
            for (i, (place, what)) in changes.into_iter().enumerate() {
                match what {
                    0 => prop_assert_eq!(array.pop(), model.pop()),
                    1 => { array.push(i); model.push(i); }
                    _ => if let (Some(a), Some(b)) = (array.get_mut(place), model.get_mut(place)) { (*a, *b) = (i, i); }
                }
                prop_assert_eq!(array.get(place), model.get(place));
                prop_assert_eq!(array.len(), model.len());
            }
            prop_assert!((0..model.len()).all(|place| array.get(place) == model.get(place)));
        }
    }
}
