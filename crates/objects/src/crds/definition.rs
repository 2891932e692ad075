//! A CustomResourceDefinition around a schema.

use gatepost_core::model::OWN_GROUP;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::schema::structural;
use super::shared::PolicyStatus;

/// What one definition is made of.
pub(super) struct Definition {
    /// `DNSPolicy`.
    pub(super) kind: &'static str,
    /// `dnspolicies`.
    pub(super) plural: &'static str,
    /// What kubectl also takes for it.
    pub(super) short: &'static str,
    /// What the kind is for.
    pub(super) description: &'static str,
    /// Where its objects are.
    pub(super) scope: Scope,
    /// The schema of `spec`.
    pub(super) spec: Value,
    /// What `kubectl get` shows between the name and the age.
    pub(super) columns: Vec<Column>,
}

/// Where the objects of a kind are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// In namespaces, with a target and a status.
    Policy,
    /// In the cluster, without a status.
    Cluster,
}

/// A column of `kubectl get`.
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    path: &'static str,
    /// Shown only with `-o wide`.
    wide: bool,
}

/// A column that is always shown.
pub(super) const fn column(name: &'static str, kind: &'static str, path: &'static str) -> Column {
    Column { name, kind, path, wide: false }
}

/// A column that is shown with `-o wide`.
pub(super) const fn wide(name: &'static str, kind: &'static str, path: &'static str) -> Column {
    Column { name, kind, path, wide: true }
}

/// The columns that every policy has behind its own.
pub(super) fn outcome() -> Vec<Column> {
    vec![
        column("Accepted", "string", ".status.conditions[?(@.type==\"Accepted\")].status"),
        column("Enforced", "string", ".status.conditions[?(@.type==\"Enforced\")].status"),
        column("Served", "integer", ".status.counts.served"),
        wide("Pending", "integer", ".status.counts.pending"),
        wide("Skipped", "integer", ".status.counts.skipped"),
        wide("Reason", "string", ".status.conditions[?(@.status!=\"True\")].reason"),
        wide("Message", "string", ".status.conditions[?(@.status!=\"True\")].message"),
    ]
}

/// The structural schema of a type.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    structural(settings.into_generator().into_root_schema_for::<T>().into())
}

impl Definition {
    /// The definition as an object.
    pub(super) fn render(&self) -> Value {
        let singular = self.kind.to_ascii_lowercase();
        let mut metadata = json!({"name": format!("{}.{OWN_GROUP}", self.plural)});
        let mut version = json!({
            "name": "v1alpha1", "served": true, "storage": true,
            "additionalPrinterColumns": self.columns(),
            "schema": {"openAPIV3Schema": self.schema()},
        });
        if self.scope == Scope::Policy {
            metadata["labels"] = json!({"gateway.networking.k8s.io/policy": "Inherited"});
            version["subresources"] = json!({"status": {}});
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": {
                "group": OWN_GROUP,
                "scope": if self.scope == Scope::Policy { "Namespaced" } else { "Cluster" },
                "names": {
                    "kind": self.kind, "listKind": format!("{}List", self.kind),
                    "plural": self.plural, "singular": singular,
                    "shortNames": [self.short], "categories": ["gateway-api"],
                },
                "versions": [version],
            },
        })
    }

    fn columns(&self) -> Vec<Value> {
        let age = column("Age", "date", ".metadata.creationTimestamp");
        let all = self.columns.iter().filter(|c| !c.wide).chain([&age]).chain(self.columns.iter().filter(|c| c.wide));
        all.map(|c| json!({"name": c.name, "type": c.kind, "jsonPath": c.path, "priority": i32::from(c.wide)}))
            .collect()
    }

    fn schema(&self) -> Value {
        let mut schema = json!({
            "type": "object",
            "description": self.description,
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": self.spec,
            },
        });
        if self.scope == Scope::Policy {
            schema["properties"]["status"] = schema_of::<PolicyStatus>();
        }
        schema
    }
}
