//! A list that can be kept while the next one is made, with a short way to each item.
//!
//! Items stand on shelves and shelves in rooms, all of the same size but the last. Every item is behind three pointers, however
//! many there are, and a change copies its shelf, its room and the list of rooms, which stays short: a million names have
//! twenty. It grows and shrinks at its end only.

use std::sync::Arc;

/// So many bits of a place choose the item on a shelf, and so many more the shelf in a room.
const SHELF: usize = 5;
const ROOM: usize = 6;

/// Items by place; a copy shares them.
#[derive(Debug)]
pub(super) struct Shelves<T> {
    rooms: Arc<[Room<T>]>,
    len: usize,
}

type Room<T> = Arc<[Shelf<T>]>;
type Shelf<T> = Arc<[T]>;

impl<T> Shelves<T> {
    pub(super) fn new() -> Self {
        Shelves { rooms: Arc::default(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The item at a place.
    #[inline]
    pub(super) fn get(&self, place: usize) -> Option<&T> {
        let (room, shelf, at) = way(place);
        self.rooms.get(room)?.get(shelf)?.get(at)
    }
}

impl<T: Clone> Shelves<T> {
    /// The item at a place, to be changed; what others hold stays as it is.
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let (room, shelf, at) = way(place);
        let room = Arc::make_mut(&mut self.rooms).get_mut(room)?;
        Arc::make_mut(Arc::make_mut(room).get_mut(shelf)?).get_mut(at)
    }

    /// Adds an item at the end.
    pub(super) fn push(&mut self, item: T) {
        match way(self.len) {
            (_, 0, 0) => add(&mut self.rooms, Arc::new([Arc::new([item])])),
            (room, _, 0) => add(&mut Arc::make_mut(&mut self.rooms)[room], Arc::new([item])),
            (room, shelf, _) => add(&mut Arc::make_mut(&mut Arc::make_mut(&mut self.rooms)[room])[shelf], item),
        }
        self.len += 1;
    }

    /// Takes the last item out.
    pub(super) fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        let item = self.get(last)?.clone();
        match way(last) {
            (_, 0, 0) => cut(&mut self.rooms),
            (room, _, 0) => cut(&mut Arc::make_mut(&mut self.rooms)[room]),
            (room, shelf, _) => cut(&mut Arc::make_mut(&mut Arc::make_mut(&mut self.rooms)[room])[shelf]),
        }
        self.len = last;
        Some(item)
    }
}

impl<T> FromIterator<T> for Shelves<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut len = 0;
        let mut items = items.into_iter().inspect(|_| len += 1);
        let mut shelves = parts(1 << SHELF, || items.next());
        let rooms: Arc<[Room<T>]> = parts(1 << ROOM, || shelves.next()).collect();
        drop(shelves);
        Shelves { rooms, len }
    }
}

impl<T> Clone for Shelves<T> {
    fn clone(&self) -> Self {
        Shelves { rooms: self.rooms.clone(), len: self.len }
    }
}

/// What there is next, in lists of so many; only the last may be shorter.
fn parts<T>(size: usize, mut next: impl FnMut() -> Option<T>) -> impl Iterator<Item = Arc<[T]>> {
    std::iter::from_fn(move || {
        let part: Vec<T> = std::iter::from_fn(&mut next).take(size).collect();
        (!part.is_empty()).then(|| part.into())
    })
}

fn add<T: Clone>(list: &mut Arc<[T]>, item: T) {
    *list = list.iter().cloned().chain([item]).collect();
}

fn cut<T: Clone>(list: &mut Arc<[T]>) {
    *list = list[..list.len() - 1].into();
}

/// The room, the shelf and where on it an item is.
#[inline]
fn way(place: usize) -> (usize, usize, usize) {
    (place >> (SHELF + ROOM), (place >> SHELF) & ((1 << ROOM) - 1), place & ((1 << SHELF) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Just below, at and above each border.
    const SIZES: [usize; 12] = [0, 1, 2, 31, 32, 33, 2047, 2048, 2049, 2080, 4096, 5000];

    fn all(shelves: &Shelves<usize>) -> Vec<usize> {
        (0..shelves.len()).map(|place| *shelves.get(place).unwrap()).collect()
    }

    #[test]
    fn it_grows_and_shrinks_like_a_list() {
        let mut grown = Shelves::new();
        for size in SIZES {
            let list: Vec<usize> = (0..size).collect();
            (grown.len()..size).for_each(|item| grown.push(item));
            let made: Shelves<usize> = list.iter().copied().collect();
            assert_eq!((all(&grown), all(&made)), (list.clone(), list));
            assert_eq!(made.get(size), None);
        }
        for size in SIZES.into_iter().rev() {
            (size..grown.len()).rev().for_each(|item| assert_eq!(grown.pop(), Some(item)));
            assert_eq!((grown.len(), all(&grown)), (size, (0..size).collect()));
            assert_eq!(grown.get(size), None);
        }
        assert_eq!(grown.pop(), None);
    }

    #[test]
    fn a_copy_stays_as_it_was() {
        let mut shelves: Shelves<usize> = (0..2100).collect();
        let before = shelves.clone();
        (0..2100).step_by(7).for_each(|place| *shelves.get_mut(place).unwrap() += 1);
        shelves.push(0);
        shelves.pop();
        shelves.pop();
        assert!(shelves.get_mut(2099).is_none());
        assert_eq!(all(&before), (0..2100).collect::<Vec<_>>());
        assert!((0..2099).all(|place| *shelves.get(place).unwrap() == place + usize::from(place % 7 == 0)));
    }
}
