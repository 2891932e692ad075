//! What is written on objects: the status of our policies, and Events about routes and Gateways.
//!
//! Status goes by server-side apply under one name, so that only what we wrote is ours. An Event has a name made from what
//! it says: telling the same again, by any replica and after any restart, counts up instead of adding another.

use gatepost_core::model::{Key, Kind, ObjectRef};
use http::Method;
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::error::Result;
use crate::lease::moment;

/// Under which name fields are ours.
pub const MANAGER: &str = "gatepost";

/// An object and the version in which it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedObject {
    /// Which object.
    pub object: ObjectRef,
    /// Its version: `v1`.
    pub version: String,
}

/// Something to tell about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// Whether somebody should look.
    pub is_warning: bool,
    /// Why, in one word: `HostnameWithheld`.
    pub reason: String,
    /// What was done, in one word: `Publish`.
    pub action: &'static str,
    /// The sentence.
    pub text: String,
}

/// The longest sentence of an Event.
const LONGEST: usize = 1024;

impl ServedObject {
    /// The path of the object.
    pub fn path(&self) -> String {
        let Key { namespace, name } = &self.object.key;
        let kind = self.object.kind;
        match namespace.is_empty() {
            true => format!("{}/{}/{name}", self.base(), kind.resource()),
            false => format!("{}/namespaces/{namespace}/{}/{name}", self.base(), kind.resource()),
        }
    }

    /// Its `apiVersion`.
    pub fn api_version(&self) -> String {
        match self.object.kind.group() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    fn base(&self) -> String {
        match self.object.kind.group() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }
}

/// This moment as times in a status are written.
pub fn now() -> String {
    k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Reads one object as it is.
pub async fn read(connection: &Connection, object: &ServedObject) -> Result<Value> {
    connection.get(&object.path()).await
}

/// Writes our part of an object's status.
pub async fn write_status(connection: &Connection, object: &ServedObject, status: &Value) -> Result<()> {
    let Key { namespace, name } = &object.object.key;
    let body = json!({
        "apiVersion": object.api_version(), "kind": object.object.kind.as_str(),
        "metadata": {"namespace": &**namespace, "name": &**name}, "status": status,
    });
    connection.apply(&format!("{}/status", object.path()), MANAGER, &body).await.map(drop)
}

/// An object of any kind as it was read, to be changed only as long as it is that.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredObject {
    path: String,
    version: String,
    /// The object.
    pub value: Value,
}

/// All objects of a collection with a label, page by page.
pub async fn collection(connection: &Connection, folder: &str, selector: &str) -> Result<Vec<StoredObject>> {
    let mut found = Vec::new();
    let mut next = String::new();
    loop {
        let words = format!("{folder}?limit=500&labelSelector={}{next}", selector.replace('=', "%3D"));
        let mut page = connection.get(&words).await?;
        for value in page["items"].as_array_mut().map(std::mem::take).unwrap_or_default() {
            let path = format!("{folder}/{}", value["metadata"]["name"].as_str().unwrap_or_default());
            found.push(StoredObject::of(&path, value));
        }
        match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => next = format!("&continue={token}"),
            None => return Ok(found),
        }
    }
}

/// Reads one object by its path; nothing where it is not there.
pub async fn stored(connection: &Connection, path: &str) -> Result<Option<StoredObject>> {
    match connection.get(path).await {
        Ok(value) => Ok(Some(StoredObject::of(path, value))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes an object in a collection; it is a conflict where one of that name is there.
pub async fn make(connection: &Connection, folder: &str, name: &str, body: &Value) -> Result<StoredObject> {
    let made = connection.send(Method::POST, &format!("{folder}?fieldManager={MANAGER}"), body).await?;
    Ok(StoredObject::of(&format!("{folder}/{name}"), made))
}

impl StoredObject {
    pub(crate) fn of(path: &str, value: Value) -> StoredObject {
        let version = value["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        StoredObject { path: path.to_owned(), version, value }
    }

    /// The version that was read.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether another reading says something else, apart from its version.
    pub(crate) fn differs(&self, other: &StoredObject) -> bool {
        let plain = |stored: &StoredObject| {
            let mut value = stored.value.clone();
            value["metadata"]["resourceVersion"] = Value::Null;
            value
        };
        plain(self) != plain(other)
    }

    /// Puts our part of it by server-side apply, unless somebody changed the object since it was read.
    pub async fn apply(&self, connection: &Connection, body: &Value) -> Result<()> {
        let mut body = body.clone();
        body["metadata"]["resourceVersion"] = self.version.clone().into();
        connection.apply(&self.path, MANAGER, &body).await.map(drop)
    }

    /// The same without what the object holds: enough to change it, and nothing to give away.
    pub fn emptied(self) -> StoredObject {
        StoredObject { value: Value::Null, ..self }
    }

    /// Changes fields, unless somebody changed the object since it was read; the object as it is then.
    pub async fn patch(&self, connection: &Connection, change: &Value) -> Result<StoredObject> {
        let mut body = change.clone();
        body["metadata"]["resourceVersion"] = self.version.clone().into();
        let value = connection.merge(&format!("{}?fieldManager={MANAGER}", self.path), &body).await?;
        Ok(StoredObject::of(&self.path, value))
    }

    /// Deletes the object, unless somebody changed it since it was read.
    pub async fn delete(&self, connection: &Connection) -> Result<()> {
        let body = json!({"preconditions": {"resourceVersion": self.version}});
        connection.send(Method::DELETE, &self.path, &body).await.map(drop)
    }
}

/// Tells a note on an object, for the `times`-th time. `identity` is who tells it; the object must be there.
pub async fn tell(
    connection: &Connection,
    object: &ServedObject,
    note: &EventNote,
    identity: &str,
    times: u64,
) -> Result<()> {
    let uid = read(connection, object).await?.pointer("/metadata/uid").cloned().unwrap_or_default();
    let Key { namespace, name } = &object.object.key;
    let home = if namespace.is_empty() { "default" } else { &**namespace };
    let text: String = note.text.chars().take(LONGEST).collect();
    let event = event_name(&object.object, note);
    let body = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"namespace": home, "name": event},
        "eventTime": moment(), "type": if note.is_warning { "Warning" } else { "Normal" },
        "reason": note.reason, "action": note.action, "note": text,
        "reportingController": "gatepost.dev/controller", "reportingInstance": short(identity),
        "regarding": {
            "apiVersion": object.api_version(), "kind": object.object.kind.as_str(),
            "namespace": &**namespace, "name": &**name, "uid": uid,
        },
    });
    let folder = format!("/apis/events.k8s.io/v1/namespaces/{home}/events");
    match connection.send(Method::POST, &folder, &body).await {
        // It was told before, by us or by another replica: it is counted up.
        Err(error) if error.is_conflict() => {
            let series = json!({"series": {"count": times.max(2), "lastObservedTime": moment()}});
            connection.merge(&format!("{folder}/{event}"), &series).await.map(drop)
        }
        done => done.map(drop),
    }
}

fn event_name(object: &ObjectRef, note: &EventNote) -> String {
    let name: String = object.name().chars().take(200).collect();
    format!("{name}.{:016x}", hash(&format!("{object} {} {}", note.reason, note.text)))
}

/// FNV-1a, which never changes: names of Events are to be the same after an upgrade.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// An instance's name has at most 128 characters in an Event.
fn short(identity: &str) -> String {
    identity.chars().take(128).collect()
}

/// The kinds that a controller watches: everything the rules read but Secrets and ConfigMaps, which hold what is none of
/// its business, and Services, which decide about requests only.
pub fn watched_kinds() -> Vec<Kind> {
    let is_read = |kind: &Kind| !matches!(kind, Kind::Secret | Kind::ConfigMap | Kind::Service);
    Kind::ALL.into_iter().filter(is_read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_core::model::RouteKind;

    #[test]
    fn paths_have_group_version_and_namespace() {
        let served =
            |kind, namespace: &str| ServedObject { object: ObjectRef::new(kind, namespace, "x"), version: "v1".into() };
        assert_eq!(served(Kind::Gateway, "a").path(), "/apis/gateway.networking.k8s.io/v1/namespaces/a/gateways/x");
        assert_eq!(served(Kind::Namespace, "").path(), "/api/v1/namespaces/x");
        assert_eq!(served(Kind::GatewayClass, "").api_version(), "gateway.networking.k8s.io/v1");
    }

    #[test]
    fn the_same_note_has_the_same_name() {
        let note = EventNote { is_warning: true, reason: "A".into(), action: "Publish", text: "b".into() };
        let route = ObjectRef::new(Kind::Route(RouteKind::Http), "shop", "web");
        assert_eq!(event_name(&route, &note), event_name(&route, &note.clone()));
        assert_ne!(event_name(&route, &note), event_name(&route, &EventNote { text: "c".into(), ..note }));
    }
}
