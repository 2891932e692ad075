//! Rows of which there may be very many: made one by one as they are written out, never held all at once.

use std::fmt;

use serde::{Serialize, Serializer};

/// Rows that are made when they are written out.
pub(super) struct Rows<'a, V>(Box<dyn Fn() -> Box<dyn Iterator<Item = V> + 'a> + 'a>);

impl<'a, V: 'a> Rows<'a, V> {
    /// A row for each thing.
    pub(super) fn of<T>(things: &'a [T], row: impl Fn(&'a T) -> V + Copy + 'a) -> Self {
        Rows(Box::new(move || Box::new(things.iter().map(row))))
    }

    /// Some rows for each thing, which is told by its position as well.
    pub(super) fn several<T>(things: &'a [T], rows: impl Fn(usize, &'a T) -> Vec<V> + Copy + 'a) -> Self {
        Rows(Box::new(move || Box::new(things.iter().enumerate().flat_map(move |(i, thing)| rows(i, thing)))))
    }
}

impl<V: Serialize> Serialize for Rows<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

impl<V> fmt::Debug for Rows<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rows")
    }
}
