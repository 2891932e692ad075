//! Worlds and streams as values of core, read by the border that reads everything else.

use gatepost_core::snapshot::{Change, Object, Snapshot};
use gatepost_objects::{Pool, Settings, read_with};

use crate::stream::Told;
use crate::world::{Document, Style, World};

/// How many bytes are read at once.
const CHUNK: usize = 1 << 20;

/// Every object of a world.
pub fn snapshot(world: &World) -> Snapshot {
    let mut snapshot = Snapshot::new();
    let mut pool = Pool::new();
    let mut text = String::new();
    for document in world.documents(Style::JsonLines) {
        text.push_str(&document.text);
        if text.len() > CHUNK {
            objects(&text, &mut pool).for_each(|object| snapshot.apply(Change::Upsert(object)));
            text.clear();
        }
    }
    objects(&text, &mut pool).for_each(|object| snapshot.apply(Change::Upsert(object)));
    snapshot
}

/// One object. A document that the border refuses gives none; a test holds that there is no such document.
pub fn object(document: &Document) -> Option<Object> {
    objects(&document.text, &mut Pool::new()).next()
}

/// One change of a stream.
pub fn change(told: &Told) -> Option<Change> {
    match told {
        Told::Upsert(document) => object(document).map(Change::Upsert),
        Told::Delete(object) => Some(Change::Delete(object.clone())),
    }
}

fn objects(text: &str, pool: &mut Pool) -> impl Iterator<Item = Object> + use<> {
    read_with("world", text.as_bytes(), &Settings::default(), pool).objects.into_iter().map(|read| read.object)
}
