//! Objects of resources that are no kinds of the Gateway API, as they are on the wire: read, listed, made.
//!
//! What is made goes by server-side apply under our name, so that fields we no longer ask for go, and others' fields stay.

use gatepost_core::model::Key;
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::error::{Error, Problem, Result};
use crate::objects::{MANAGER, StoredObject, stored};

/// A resource by its place in the API, whatever its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupVersionResource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version: `v1`.
    pub version: &'static str,
    /// Its name in paths: `certificates`.
    pub plural: &'static str,
}

impl GroupVersionResource {
    /// The path of the objects in a namespace; of all where none is given.
    pub fn path(&self, namespace: &str) -> String {
        let GroupVersionResource { group, version, plural } = self;
        let base = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if namespace.is_empty() {
            format!("{base}/{plural}")
        } else {
            format!("{base}/namespaces/{namespace}/{plural}")
        }
    }

    /// An object of this resource as it was read; nothing where it has no name.
    pub fn stored(&self, value: Value) -> Option<(Key, StoredObject)> {
        let text = |key: &str| value["metadata"][key].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let path = format!("{}/{name}", self.path(&namespace));
        (!name.is_empty()).then(|| (Key::new(namespace, name), StoredObject::of(&path, value)))
    }

    /// Reads one object; nothing where it is not there.
    pub async fn read(&self, connection: &Connection, key: &Key) -> Result<Option<StoredObject>> {
        stored(connection, &format!("{}/{}", self.path(&key.namespace), key.name)).await
    }

    /// Reads all objects of a namespace.
    pub async fn list(&self, connection: &Connection, namespace: &str) -> Result<Vec<StoredObject>> {
        let (values, _) = list(connection, &self.path(namespace)).await?;
        Ok(values.into_iter().filter_map(|value| self.stored(value)).map(|(_, stored)| stored).collect())
    }

    /// Whether there is any object with a label, in any namespace.
    pub async fn has_labelled(&self, connection: &Connection, label: &str, value: &str) -> Result<bool> {
        let path = format!("{}?limit=1&labelSelector={}%3D{value}", self.path(""), label.replace('/', "%2F"));
        let page = connection.get(&path).await?;
        Ok(page["items"].as_array().is_some_and(|items| !items.is_empty()))
    }

    /// Makes an object by server-side apply. Where somebody else made one of that name in the same moment, what we put on it
    /// is taken back, and it is a conflict.
    pub async fn make(&self, connection: &Connection, body: &Value) -> Result<()> {
        let text = |key: &str| body["metadata"][key].as_str().unwrap_or_default();
        let path = format!("{}/{}", self.path(text("namespace")), text("name"));
        let made = connection.apply_gently(&path, MANAGER, body).await?;
        let writers = made["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
        if writers.iter().all(|writer| writer["manager"] == MANAGER) {
            return Ok(());
        }
        let nothing = json!({
            "apiVersion": body["apiVersion"], "kind": body["kind"],
            "metadata": {"namespace": text("namespace"), "name": text("name")},
        });
        connection.apply(&path, MANAGER, &nothing).await?;
        let words = "somebody else made it in the same moment".to_owned();
        Err(Error::new(format!("PATCH {path}"), Problem::Conflict(words)))
    }
}

/// All objects of a collection, page by page, and the version of the list. A page that fails discards the whole.
pub(crate) async fn list(connection: &Connection, path: &str) -> Result<(Vec<Value>, String)> {
    const MOST_PAGES: usize = 10_000;
    let mut found = Vec::new();
    let mut next = String::new();
    for _ in 0..MOST_PAGES {
        let joint = if path.contains('?') { '&' } else { '?' };
        let mut page = connection.get(&format!("{path}{joint}limit=500{next}")).await?;
        let items = page.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
        found.extend(items.ok_or_else(|| Error::new(path, Problem::Protocol("a list without items".to_owned())))?);
        let metadata = &page["metadata"];
        match metadata["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => next = format!("&continue={token}"),
            None => return Ok((found, metadata["resourceVersion"].as_str().unwrap_or_default().to_owned())),
        }
    }
    Err(Error::new(path, Problem::Protocol(format!("a list of more than {MOST_PAGES} pages"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_group_version_and_namespace() {
        let certificates = GroupVersionResource { group: "cert-manager.io", version: "v1", plural: "certificates" };
        assert_eq!(certificates.path(""), "/apis/cert-manager.io/v1/certificates");
        assert_eq!(certificates.path("a"), "/apis/cert-manager.io/v1/namespaces/a/certificates");
        assert_eq!(
            GroupVersionResource { group: "", version: "v1", plural: "secrets" }.path("a"),
            "/api/v1/namespaces/a/secrets"
        );
    }

    #[test]
    fn an_object_without_a_name_is_none() {
        let secrets = GroupVersionResource { group: "", version: "v1", plural: "secrets" };
        assert!(secrets.stored(json!({"metadata": {"namespace": "a"}})).is_none());
        let (key, stored) =
            secrets.stored(json!({"metadata": {"namespace": "a", "name": "b", "resourceVersion": "7"}})).unwrap();
        assert_eq!((key.to_string().as_str(), stored.version()), ("a/b", "7"));
    }
}
