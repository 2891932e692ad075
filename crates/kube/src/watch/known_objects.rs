//! What is known about the objects of one kind, and whether a new list is believed.
//!
//! A list that is suddenly empty, or older than what was seen before, may be the truth: somebody removed everything, or the
//! store was restored. It may also be a server that lags or a proxy that lies. It is doubted for a while and asked for again;
//! meanwhile nothing is told as gone.

use std::collections::BTreeMap;
use std::time::Duration;

use gatepost_core::model::{Key, Kind, ObjectRef};
use gatepost_core::reason::LIST_DOUBTED;
use gatepost_core::snapshot::Change;
use tokio::time::Instant;

use super::WatchEvent;
use crate::listing::Listing;
use crate::wire::WireObject;

/// The objects of one kind, by name, with their versions.
#[derive(Debug)]
pub(super) struct KnownObjects {
    kind: Kind,
    versions: BTreeMap<Key, String>,
    /// The newest version that was seen.
    newest: u64,
    doubted_since: Option<Instant>,
}

impl KnownObjects {
    pub(super) fn new(kind: Kind) -> KnownObjects {
        KnownObjects { kind, versions: BTreeMap::new(), newest: 0, doubted_since: None }
    }

    /// Why a list is not believed yet; nothing where it is.
    pub(super) fn doubt(&mut self, listing: &Listing, now: Instant, patience: Duration) -> Option<String> {
        let why = self.oddity(listing);
        if why.is_none() {
            self.doubted_since = None;
            return None;
        }
        let since = *self.doubted_since.get_or_insert(now);
        let row = LIST_DOUBTED.row();
        why.filter(|_| now.duration_since(since) < patience).map(|why| format!("{why} [{} {}]", row.code, row.name))
    }

    fn oddity(&self, listing: &Listing) -> Option<String> {
        let (kind, count) = (self.kind, self.versions.len());
        if listing.objects.is_empty() && count > 0 {
            let ending = if count == 1 { "one was" } else { "several were" };
            return Some(format!("the list of {kind} is suddenly empty, and {ending} there before"));
        }
        let version = number(&listing.version);
        let newest = self.newest;
        (version < newest).then(|| {
            format!("the list of {kind} is of version {version}, and {newest} was seen before: the server lags, or its store was set back")
        })
    }

    /// Takes a list that is believed: what changed, and what is gone.
    pub(super) fn take(&mut self, listing: Listing) -> Vec<WatchEvent> {
        self.doubted_since = None;
        self.newest = number(&listing.version);
        let mut before = std::mem::take(&mut self.versions);
        let mut told = Vec::new();
        for sent in listing.objects {
            let known = before.remove(&sent.key);
            if known.as_ref() != Some(&sent.version) {
                told.extend(self.upsert(sent));
            } else {
                self.versions.insert(sent.key, sent.version);
            }
        }
        let gone = before.into_keys().map(|key| self.gone(key));
        told.extend(gone);
        told
    }

    /// Takes an object that came or changed.
    pub(super) fn upsert(&mut self, sent: WireObject) -> Option<WatchEvent> {
        self.see(&sent.version);
        self.versions.insert(sent.key.clone(), sent.version);
        match sent.object {
            Some(object) => Some(WatchEvent::Change(Change::Upsert(object), sent.problems)),
            // What was there under this name is no longer what is there, and nothing is known in its place.
            None => {
                Some(WatchEvent::Change(Change::Delete(ObjectRef { kind: self.kind, key: sent.key }), sent.problems))
            }
        }
    }

    /// Takes an object that went.
    pub(super) fn remove(&mut self, sent: WireObject) -> WatchEvent {
        self.see(&sent.version);
        self.versions.remove(&sent.key);
        self.gone(sent.key)
    }

    /// Takes note of a version.
    pub(super) fn see(&mut self, version: &str) {
        self.newest = self.newest.max(number(version));
    }

    /// Whether a version is older than what was seen.
    pub(super) fn is_older(&self, version: &str) -> bool {
        number(version) < self.newest
    }

    fn gone(&self, key: Key) -> WatchEvent {
        WatchEvent::Change(Change::Delete(ObjectRef { kind: self.kind, key }), Vec::new())
    }
}

/// Versions are numbers that grow, which Kubernetes promises since 1.35 and has always kept; one that is none is as good as
/// the oldest.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_core::model::{Meta, Namespace};
    use gatepost_core::snapshot::Object;

    fn sent(name: &str, version: &str) -> WireObject {
        let object = Object::Namespace(Namespace { meta: Meta::named("", name) });
        WireObject { key: Key::new("", name), version: version.into(), object: Some(object), problems: Vec::new() }
    }

    fn listing(version: &str, names: &[(&str, &str)]) -> Listing {
        Listing { objects: names.iter().map(|(name, v)| sent(name, v)).collect(), version: version.into() }
    }

    fn names(told: &[WatchEvent]) -> Vec<String> {
        let name = |told: &WatchEvent| match told {
            WatchEvent::Change(Change::Upsert(object), _) => format!("+{}", object.object().key),
            WatchEvent::Change(Change::Delete(object), _) => format!("-{}", object.key),
            other => format!("{other:?}"),
        };
        told.iter().map(name).collect()
    }

    #[test]
    fn a_list_tells_what_changed_and_what_went() {
        let mut known = KnownObjects::new(Kind::Namespace);
        assert_eq!(names(&known.take(listing("9", &[("a", "1"), ("b", "2")]))), ["+a", "+b"]);
        assert_eq!(names(&known.take(listing("12", &[("b", "2"), ("c", "11")]))), ["+c", "-a"]);
        assert!(known.take(listing("13", &[("b", "2"), ("c", "11")])).is_empty());
    }

    #[tokio::test]
    async fn an_empty_or_older_list_is_doubted_for_a_while() {
        let mut known = KnownObjects::new(Kind::Namespace);
        let (now, patience) = (Instant::now(), Duration::from_secs(60));
        known.take(listing("9", &[("a", "1")]));
        assert!(known.doubt(&listing("10", &[]), now, patience).unwrap().contains("suddenly empty"));
        assert!(known.doubt(&listing("8", &[("a", "1")]), now, patience).unwrap().contains("set back"));
        assert!(known.doubt(&listing("10", &[("a", "1")]), now, patience).is_none());
        assert!(known.doubt(&listing("11", &[]), now, patience).is_some());
        assert!(known.doubt(&listing("12", &[]), now + patience, patience).is_none());
        assert_eq!(names(&known.take(listing("12", &[]))), ["-a"]);
    }
}
