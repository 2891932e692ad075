//! One object as the API server sends it becomes one of core, by the same way that files take.
//!
//! What a server adds and nobody reads, `managedFields` above all, is dropped before anything else. An object that cannot be
//! understood is told as such, and harms only itself.

use gatepost_core::diagnostic::{Diagnostic, FieldPath};
use gatepost_core::model::{Key, ObjectRef};
use gatepost_core::reason::OBJECT_UNREADABLE;
use gatepost_core::snapshot::Object;
use gatepost_objects::{Interpreted, ParseSettings, Pool, interpret_with};
use serde_json::Value;

use crate::discovery::Resource;

/// An object with its version.
#[derive(Debug)]
pub(crate) struct WireObject {
    /// Namespace and name.
    pub(crate) key: Key,
    /// Its `resourceVersion`.
    pub(crate) version: String,
    /// The object; nothing where it cannot be understood.
    pub(crate) object: Option<Object>,
    /// What is odd about it.
    pub(crate) problems: Vec<Diagnostic>,
}

/// Reads an object of a kind; items of a list do not say their kind themselves. Nothing where it has no name. What it has in
/// common with objects that were read with the same pool is kept once.
pub(crate) fn read(mut value: Value, resource: &Resource, pool: &mut Pool) -> Option<WireObject> {
    let metadata = value.get_mut("metadata")?.as_object_mut()?;
    metadata.remove("managedFields");
    let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (key, version) = (Key::new(text("namespace"), text("name")), text("resourceVersion"));
    if key.name.is_empty() {
        return None;
    }
    let map = value.as_object_mut()?;
    map.insert("apiVersion".into(), resource.api_version().into());
    map.insert("kind".into(), resource.kind.as_str().into());
    let (object, problems) = understood(&value, &ObjectRef { kind: resource.kind, key: key.clone() }, pool);
    let key = object.as_ref().map_or(key, |object| object.meta().key.clone());
    Some(WireObject { key, version, object, problems })
}

fn understood(value: &Value, object: &ObjectRef, pool: &mut Pool) -> (Option<Object>, Vec<Diagnostic>) {
    match interpret_with(value, &ParseSettings::default(), pool) {
        Interpreted::Object(object, problems) => (Some(object), problems),
        Interpreted::Unreadable(field, message) => {
            (None, vec![Diagnostic::new(OBJECT_UNREADABLE, object, field, message)])
        }
        Interpreted::PassedOver(kind, _) => {
            let message = format!("the API server sent it as {kind}");
            (None, vec![Diagnostic::new(OBJECT_UNREADABLE, object, FieldPath::of("kind"), message)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_core::model::Kind;
    use serde_json::json;

    #[test]
    fn an_item_of_a_list_is_read_as_its_kind() {
        let resource =
            Resource { kind: Kind::Namespace, version: "v1".into(), plural: "namespaces".into(), is_watchable: true };
        let value = json!({"metadata": {"name": "shop", "resourceVersion": "7", "managedFields": [{}]}});
        let sent = read(value, &resource, &mut Pool::new()).unwrap();
        assert_eq!((sent.version.as_str(), sent.key.to_string().as_str()), ("7", "shop"));
        assert!(matches!(sent.object, Some(Object::Namespace(_))));
        assert!(sent.problems.is_empty());
        assert!(read(json!({"metadata": {}}), &resource, &mut Pool::new()).is_none());
        assert!(read(json!(3), &resource, &mut Pool::new()).is_none());
    }
}
