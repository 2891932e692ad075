//! One value is read into a tree, whatever parser it comes from, and counted meanwhile.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::value::{Mapping, Tree};
use super::{MAX_NODES, MAX_TEXT};

/// From this many keys on they are looked up in a set instead of one after the other.
const MANY_KEYS: usize = 24;

/// Counts what a document has grown to.
pub(super) struct Meter {
    nodes: Cell<usize>,
    text: Cell<usize>,
}

impl Meter {
    pub(super) fn with_text(text: usize) -> Self {
        Meter { nodes: Cell::new(MAX_NODES), text: Cell::new(text) }
    }

    fn node<E: Error>(&self) -> Result<(), E> {
        self.spend(&self.nodes, 1, "the document has more parts than any object needs; split it up")
    }

    fn text<E: Error>(&self, text: &str) -> Result<(), E> {
        self.spend(&self.text, text.len(), "the aliases of the document repeat more text than any object needs")
    }

    fn spend<E: Error>(&self, purse: &Cell<usize>, amount: usize, message: &str) -> Result<(), E> {
        let left = purse.get().checked_sub(amount).ok_or_else(|| E::custom(message))?;
        purse.set(left);
        Ok(())
    }
}

/// A tree that is read with a meter of its own.
pub(super) struct MeteredTree<'t>(pub(super) Tree<'t>);

impl<'de> Deserialize<'de> for MeteredTree<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let meter = Meter::with_text(MAX_TEXT);
        Grow { meter: &meter }.deserialize(deserializer).map(MeteredTree)
    }
}

/// Reads one value and everything below it.
#[derive(Clone, Copy)]
pub(super) struct Grow<'a> {
    pub(super) meter: &'a Meter,
}

impl Grow<'_> {
    fn leaf<'t, E: Error>(self, tree: Tree<'t>) -> Result<Tree<'t>, E> {
        self.meter.node().map(|()| tree)
    }

    fn text<'t, E: Error>(self, text: Cow<'t, str>) -> Result<Tree<'t>, E> {
        self.meter.text(&text)?;
        self.leaf(Tree::Text(text))
    }
}

impl<'de> DeserializeSeed<'de> for Grow<'_> {
    type Value = Tree<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Grow<'_> {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML or JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree<'de>, E> {
        self.leaf(Tree::Flag(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree<'de>, E> {
        self.leaf(Tree::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree<'de>, E> {
        self.leaf(Tree::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree<'de>, E> {
        self.leaf(Tree::float(value))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Tree<'de>, E> {
        self.text(Cow::Borrowed(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree<'de>, E> {
        self.text(Cow::Owned(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Tree<'de>, E> {
        self.text(Cow::Owned(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Tree<'de>, E> {
        self.leaf(Tree::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Tree<'de>, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree<'de>, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree<'de>, A::Error> {
        self.meter.node()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree<'de>, A::Error> {
        self.meter.node()?;
        let (mut entries, mut many) = (Vec::new(), HashSet::new());
        while let Some(key) = access.next_key_seed(MappingKey)? {
            self.meter.text(&key)?;
            if is_known(&key, &entries, &mut many) {
                return Err(A::Error::custom("a key stands twice in one mapping"));
            }
            entries.push((key, access.next_value_seed(self)?));
        }
        Ok(Tree::Mapping(Mapping::of(entries)))
    }
}

/// Whether a key stands among the entries; `many` has the keys where there are many.
fn is_known(key: &str, entries: &[(Cow<'_, str>, Tree<'_>)], many: &mut HashSet<String>) -> bool {
    if entries.len() < MANY_KEYS {
        return entries.iter().any(|(known, _)| known == key);
    }
    if many.is_empty() {
        many.extend(entries.iter().map(|(known, _)| known.clone().into_owned()));
    }
    !many.insert(key.to_owned())
}

/// Reads the key of a mapping.
struct MappingKey;

impl<'de> DeserializeSeed<'de> for MappingKey {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_string(self)
    }
}

impl<'de> Visitor<'de> for MappingKey {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }

    fn visit_string<E: Error>(self, key: String) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key))
    }
}
