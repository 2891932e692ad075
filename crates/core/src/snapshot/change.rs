//! What a source tells: one object is there now, one is gone, or how well a kind can be seen.
//!
//! A change is a fact of a source, never a decision. It carries the object whole, so that telling the same twice, or
//! telling only the last of several, leads to the same snapshot.

use super::{Object, Snapshot, Visibility};
use crate::model::{Kind, ObjectRef};

/// One fact of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are upserts")]
pub enum Change {
    /// The object is there, in this shape.
    Upsert(Object),
    /// The object is gone.
    Delete(ObjectRef),
    /// All objects of the kind were told, or they cannot be told and why.
    Sight(Kind, Visibility),
}

impl Snapshot {
    /// Takes one change in.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Upsert(object) => {
                self.upsert(object);
            }
            Change::Delete(object) => {
                self.remove(&object);
            }
            Change::Sight(kind, visibility) => self.set_visibility(kind, visibility),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Meta, Service};

    #[test]
    fn changes_lead_to_the_same_snapshot_when_told_twice() {
        let service = Object::Service(Service { meta: Meta::named("a", "x"), ports: Vec::new() });
        let gone = Change::Delete(service.object());
        let hidden = Change::Sight(Kind::Secret, Visibility::NotVisible("forbidden".into()));
        let mut snapshot = Snapshot::new();
        for change in [Change::Upsert(service.clone()), Change::Upsert(service), hidden.clone(), hidden] {
            snapshot.apply(change);
        }
        assert_eq!(snapshot.len(), 1);
        assert_eq!(snapshot.visibility(Kind::Secret), &Visibility::NotVisible("forbidden".into()));
        snapshot.apply(gone.clone());
        snapshot.apply(gone);
        assert!(snapshot.is_empty());
    }
}
