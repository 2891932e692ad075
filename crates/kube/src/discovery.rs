//! Which kinds a cluster has, in which version, decided at run time.
//!
//! A kind that is not installed is a fact; a discovery that fails is an error and says nothing about any kind.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::{Kind, Str};
use serde_json::Value;

use crate::connection::Connection;
use crate::error::Result;

/// How a cluster serves a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The kind.
    pub kind: Kind,
    /// Its version: `v1`.
    pub version: Str,
    /// Its name in paths: `httproutes`.
    pub plural: Str,
    /// Whether it may be watched at all.
    pub is_watchable: bool,
}

/// The kinds that a cluster serves; what is not here is not installed.
pub type ServedKinds = BTreeMap<Kind, Resource>;

/// Asks which of these kinds are served, each in the newest version that both sides know.
pub async fn discover(connection: &Connection, kinds: &[Kind]) -> Result<ServedKinds> {
    let groups: BTreeSet<&str> = kinds.iter().map(|kind| kind.group()).collect();
    let mut served = ServedKinds::new();
    for group in groups {
        let wanted: Vec<Kind> = kinds.iter().copied().filter(|kind| kind.group() == group).collect();
        for version in versions(connection, group).await? {
            let path = base(group, &version);
            let resources = match connection.get(&path).await {
                Ok(resources) => resources,
                // A version may go between the two questions.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            for kind in &wanted {
                if let Some(resource) = find(&resources, *kind, &version) {
                    prefer(&mut served, resource);
                }
            }
        }
    }
    Ok(served)
}

impl Resource {
    /// The path of all objects of the kind, or of those in a namespace.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let base = base(self.kind.group(), &self.version);
        match namespace.filter(|_| !self.kind.is_cluster_scoped()) {
            Some(namespace) => format!("{base}/namespaces/{namespace}/{}", self.plural),
            None => format!("{base}/{}", self.plural),
        }
    }

    /// `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        match self.kind.group() {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }
}

fn base(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// The versions in which a group is served; none where it is not installed.
async fn versions(connection: &Connection, group: &str) -> Result<Vec<String>> {
    if group.is_empty() {
        return Ok(vec!["v1".to_owned()]);
    }
    let found = match connection.get(&format!("/apis/{group}")).await {
        Ok(found) => found,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let versions = found["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(versions.iter().filter_map(|version| version["version"].as_str()).map(str::to_owned).collect())
}

/// A kind among the resources of a group and version.
fn find(resources: &Value, kind: Kind, version: &str) -> Option<Resource> {
    let all = resources["resources"].as_array()?;
    let is_it = |r: &&Value| r["kind"] == kind.as_str() && r["name"].as_str().is_some_and(|name| !name.contains('/'));
    let found = all.iter().find(is_it)?;
    let verbs = found["verbs"].as_array().map(Vec::as_slice).unwrap_or_default();
    Some(Resource {
        kind,
        version: version.into(),
        plural: found["name"].as_str()?.into(),
        is_watchable: verbs.iter().any(|verb| verb == "watch"),
    })
}

/// Keeps the newest version that we read; one that we do not know is only taken where there is no other.
fn prefer(served: &mut ServedKinds, resource: Resource) {
    let known = gatepost_objects::versions(resource.kind);
    let rank = |version: &str| known.iter().position(|known| *known == version).unwrap_or(known.len());
    let is_better = served.get(&resource.kind).is_none_or(|other| rank(&resource.version) < rank(&other.version));
    if is_better {
        served.insert(resource.kind, resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_core::model::RouteKind;
    use serde_json::json;

    #[test]
    fn the_newest_known_version_is_taken() {
        let mut served = ServedKinds::new();
        for version in ["v9", "v1beta1", "v1", "v1alpha2"] {
            let list = json!({"resources": [
                {"name": "httproutes/status", "kind": "HTTPRoute", "verbs": ["get"]},
                {"name": "httproutes", "kind": "HTTPRoute", "verbs": ["list", "watch"]},
            ]});
            prefer(&mut served, find(&list, Kind::Route(RouteKind::Http), version).unwrap());
        }
        let route = &served[&Kind::Route(RouteKind::Http)];
        assert_eq!(&*route.version, "v1");
        assert_eq!(route.path(None), "/apis/gateway.networking.k8s.io/v1/httproutes");
        assert_eq!(route.path(Some("shop")), "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes");
        assert!(route.is_watchable);
    }

    #[test]
    fn namespaces_live_in_none() {
        let list = json!({"resources": [{"name": "namespaces", "kind": "Namespace", "verbs": ["list"]}]});
        let namespaces = find(&list, Kind::Namespace, "v1").unwrap();
        assert_eq!(namespaces.path(Some("shop")), "/api/v1/namespaces");
        assert_eq!(namespaces.api_version(), "v1");
        assert!(!namespaces.is_watchable);
    }
}
