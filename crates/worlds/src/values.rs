//! Worlds and streams as values of core, read by the border that reads everything else.

use gatepost_core::snapshot::{Change, Object, Snapshot};
use gatepost_objects::{ParseSettings, Pool, read_with};

use crate::stream::StreamChange;
use crate::world::{Document, Style, World};

/// How many bytes are read at once.
const CHUNK: usize = 1 << 16;

/// Who reads a world and its changes: with one pool for as long as it lives, as a watch does.
#[derive(Debug, Default)]
pub struct WorldReader {
    pool: Pool,
}

impl WorldReader {
    /// The objects of a world one after the other; equal parts of them are shared.
    pub fn objects<'a>(&'a mut self, world: &'a World) -> impl Iterator<Item = Object> + 'a {
        let mut documents = world.documents(Style::JsonLines);
        let chunks = std::iter::from_fn(move || {
            let text = chunk(&mut documents);
            (!text.is_empty()).then(|| read_all(&text, &mut self.pool))
        });
        chunks.flatten()
    }

    /// One change of a stream. A document that the border refuses gives none; a test holds that there is no such document.
    pub fn change(&mut self, told: &StreamChange) -> Option<Change> {
        match told {
            StreamChange::Upsert(document) => read_all(&document.text, &mut self.pool).next().map(Change::Upsert),
            StreamChange::Delete(object) => Some(Change::Delete(object.clone())),
        }
    }
}

/// Every object of a world.
pub fn snapshot(world: &World) -> Snapshot {
    Snapshot::of(WorldReader::default().objects(world))
}

fn chunk(documents: &mut impl Iterator<Item = Document>) -> String {
    let mut text = String::new();
    for document in documents {
        text.push_str(&document.text);
        if text.len() > CHUNK {
            break;
        }
    }
    text
}

fn read_all(text: &str, pool: &mut Pool) -> impl Iterator<Item = Object> + use<> {
    read_with("world", text.as_bytes(), &ParseSettings::default(), pool).objects.into_iter().map(|read| read.object)
}
