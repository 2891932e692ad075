//! Lists: all objects of a kind, page by page, complete or a failure.
//!
//! A page that fails, or a list that expires between pages, discards the whole list: half a list looks like a cluster that
//! lost half its objects.

use std::collections::BTreeMap;

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::model::{Kind, Str};
use gatepost_core::snapshot::{Origin, Snapshot, Visibility};
use gatepost_objects::Pool;
use serde_json::Value;

use crate::connection::Connection;
use crate::discovery::{Resource, discover};
use crate::error::{Error, Problem, Result};
use crate::wire::{self, WireObject};

/// Objects in one page.
const PAGE: usize = 500;
/// Pages of one list; a list that goes on longer is no list.
const MOST_PAGES: usize = 10_000;

/// What a cluster holds at one moment.
#[derive(Clone, Debug, Default)]
pub struct ClusterRead {
    /// The objects, and which kinds could be seen.
    pub snapshot: Snapshot,
    /// What is odd about them.
    pub problems: Vec<Diagnostic>,
    /// Kinds that are not installed.
    pub absent: Vec<Kind>,
}

/// A complete list.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The objects.
    pub(crate) objects: Vec<WireObject>,
    /// The version that a watch goes on from.
    pub(crate) version: String,
}

/// Lists these kinds once. What may not be listed is not visible; a server that cannot be reached is a failure. Where a kind
/// may not be listed everywhere but in `namespace`, its objects there are read, and the kind is still not visible.
pub async fn read_once(connection: &Connection, kinds: &[Kind], namespace: Option<&str>) -> Result<ClusterRead> {
    let served = discover(connection, kinds).await?;
    let mut read = ClusterRead::default();
    read.snapshot.origin = Origin::Cluster;
    let mut pool = Pool::new();
    for kind in kinds {
        let Some(resource) = served.get(kind) else {
            read.absent.push(*kind);
            continue;
        };
        match list(connection, resource, None, &mut pool).await {
            Ok(listing) => read.take(listing),
            Err(error) if error.is_forbidden() => {
                read.hide(*kind, &error);
                if let Some(namespace) = namespace.filter(|_| !kind.is_cluster_scoped()) {
                    read.take_allowed(list(connection, resource, Some(namespace), &mut pool).await)?;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

impl ClusterRead {
    fn take(&mut self, listing: Listing) {
        for sent in listing.objects {
            self.problems.extend(sent.problems);
            if let Some(object) = sent.object {
                self.snapshot.upsert(object);
            }
        }
    }

    /// Takes a list that may be forbidden.
    fn take_allowed(&mut self, listing: Result<Listing>) -> Result<()> {
        match listing {
            Ok(listing) => self.take(listing),
            Err(error) if error.is_forbidden() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn hide(&mut self, kind: Kind, error: &Error) {
        let why: Str = error.problem.to_string().into();
        self.snapshot.set_visibility(kind, Visibility::NotVisible(why));
    }
}

/// All objects of a kind.
pub(crate) async fn list(
    connection: &Connection,
    resource: &Resource,
    namespace: Option<&str>,
    pool: &mut Pool,
) -> Result<Listing> {
    let path = resource.path(namespace);
    let mut objects = BTreeMap::new();
    let mut next = String::new();
    for _ in 0..MOST_PAGES {
        let words = format!("{path}?limit={PAGE}{next}");
        let mut page = connection.get(&words).await?;
        let items = page.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
        let items = items.ok_or_else(|| Error::new(&*path, Problem::Protocol("a list without items".to_owned())))?;
        for item in items {
            let sent = wire::read(item, resource, pool)
                .ok_or_else(|| Error::new(&*path, Problem::Protocol("an object without a name".to_owned())))?;
            objects.insert(sent.key.clone(), sent);
        }
        let metadata = &page["metadata"];
        match metadata["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => next = format!("&continue={token}"),
            None => {
                let version = metadata["resourceVersion"].as_str().unwrap_or_default().to_owned();
                return Ok(Listing { objects: objects.into_values().collect(), version });
            }
        }
    }
    Err(Error::new(path, Problem::Protocol(format!("a list of more than {MOST_PAGES} pages"))))
}
