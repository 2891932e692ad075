//! Changes without effect: written before, and still read back as if they had not been.
//!
//! Either the provider replaces a TTL with its own, or another writer restores the record; repeating the change would never
//! end. Only updates count, so that a name is never left without records. How often a change was written is stored by the
//! caller; this module only defines when two changes are the same.

use super::{Content, Held, PlanStep, SetChange, Verb, digest};
use crate::publication::RecordType;
use crate::reason;

/// How often the same change is written within the time that is remembered.
pub const TRIES: usize = 2;

impl PlanStep {
    /// Identifies an update by what was read and what is written; `None` for creates and deletes, which always have an effect.
    ///
    /// The content of markers is left out: a sealed value differs each time.
    pub fn mark(&self) -> Option<String> {
        let stays = |change: &SetChange| change.old.is_some() && change.new.is_some();
        let is_update = self.verb == Verb::Update && self.all_changes().all(stays);
        is_update.then(|| digest::of_change(self))
    }

    /// The held entry for a change that is not repeated.
    pub(super) fn held_as_ineffective(&self) -> Held {
        let change = self.changes.first().or(self.markers.first());
        let (kind, old, new) = change
            .map_or((RecordType::Txt, None, None), |change| (change.kind, change.old.as_ref(), change.new.as_ref()));
        let message = format!(
            "`{}` {kind} was written {TRIES} times and still reads as before{}: the provider keeps what it likes, or somebody else \
             puts it back",
            self.name,
            difference(old, new)
        );
        let values = |content: Option<&Content>| content.map(|content| content.values.clone()).unwrap_or_default();
        Held {
            kind: Some(kind),
            verb: Some(Verb::Update),
            old: values(old),
            new: values(new),
            object: self.routes.first().cloned(),
            ..Held::new(Some(&self.zone), &self.name, reason::RECORD_PUT_BACK, message)
        }
    }
}

/// The difference between what was written and what was read, as text.
fn difference(old: Option<&Content>, new: Option<&Content>) -> String {
    let (Some(old), Some(new)) = (old, new) else { return String::new() };
    if old.values != new.values {
        return format!(" ({} where {} was written)", old.values.join(", "), new.values.join(", "));
    }
    let ttl = |content: &Content| content.ttl.map_or("the usual TTL".to_owned(), |ttl| format!("TTL {ttl}"));
    match old.ttl == new.ttl {
        true => String::new(),
        false => format!(" ({} where {} was written)", ttl(old), ttl(new)),
    }
}
