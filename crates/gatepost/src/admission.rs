//! The ValidatingAdmissionPolicies that enforce HostnameGrants when objects are written, and the one ConfigMap that they read.
//!
//! An API server evaluates a policy once per parameter object, and every evaluation must pass. The most specific entry of all
//! grants decides, so all grants are in one object: a key per entry, which an expression finds without a search, and a key per
//! grant. The decision in CEL is that of `core::publication::hostname_grants` for names as objects write them; tests compare
//! both on a real API server. Nothing here reads or writes a cluster.

use std::collections::BTreeMap;

use gatepost_core::model::{HostnameGrant, Str};
use gatepost_core::publication::PublicationSettings;
use gatepost_core::publication::hostname_grants::HostnameGrants;
use gatepost_core::selector::{Requirement, Selector, Test};
use gatepost_core::snapshot::Snapshot;
use serde_json::{Value, json};

/// The policies, with names to be filled in.
const POLICIES: &str = include_str!("admission/policies.yaml");
/// What both policies decide alike.
const DECISION: &str = include_str!("admission/decision.yaml");
/// A hostname of 253 characters has at most as many dots.
const MOST_DOTS: usize = 126;

/// The label of Routes that cert-manager makes to answer challenges.
const SOLVER: &str = "acme.cert-manager.io/http01-solver";

/// The label of the ConfigMap.
pub const LABEL: (&str, &str) = ("app.kubernetes.io/managed-by", "gatepost");

/// How policies, bindings and the ConfigMap are called.
#[derive(Clone, Debug)]
pub struct AdmissionNames {
    /// The first part of all names.
    pub name: String,
    /// The namespace of the ConfigMap.
    pub namespace: String,
}

impl AdmissionNames {
    /// The name of the ConfigMap.
    pub fn parameters(&self) -> String {
        format!("{}-hostname-grants", self.name)
    }

    /// Policies and bindings as YAML. Gateways and ListenerSets of the exempt namespaces may listen for every hostname, and
    /// cert-manager may prove there that the platform has them (HTTP-01): such Routes get no records (D14).
    pub fn policies(&self, exempt: &[String]) -> String {
        let places: Vec<String> = (1..=MOST_DOTS).map(|place| place.to_string()).collect();
        let decision = DECISION.replace("${places}", &format!("[{}]", places.join(",")));
        let selector = match exempt {
            [] => String::new(),
            names => format!(
                "  matchResources:\n    namespaceSelector:\n      matchExpressions:\n      \
                 - {{key: kubernetes.io/metadata.name, operator: NotIn, values: [{}]}}\n",
                names.join(", ")
            ),
        };
        let solvers = match exempt {
            [] => String::new(),
            names => format!(
                "  matchConditions:\n  - name: no-solver-of-the-platform\n    expression: >-\n      \
                 !(request.namespace in ['{}'] && has(object.metadata.labels)\n      \
                 && object.metadata.labels[?'{SOLVER}'].orValue('') == 'true')\n",
                names.join("', '")
            ),
        };
        let text = POLICIES.replace("${decision}\n", &decision).replace("${exempt}", &selector);
        let text = text.replace("${solvers}", &solvers);
        let text = text.replace("${parameters}", &self.parameters());
        text.replace("${name}", &self.name).replace("${namespace}", &self.namespace)
    }

    /// The ConfigMap with these data.
    pub fn object(&self, data: &BTreeMap<String, String>) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": self.namespace, "name": self.parameters(), "labels": {LABEL.0: LABEL.1}},
            "data": data,
        })
    }
}

/// What the policies read: an error names a grant with a value that a cluster would refuse, because of which it is not known
/// who may have its hostnames.
pub fn parameters(snapshot: &Snapshot, settings: &PublicationSettings) -> Result<BTreeMap<String, String>, String> {
    let grants = HostnameGrants::of(snapshot);
    if let Some(grant) = grants.invalid().first() {
        return Err(format!(
            "{} is not valid, so it is not known which namespaces may have its hostnames",
            grant.object()
        ));
    }
    let deciding: BTreeMap<&Str, &HostnameGrant> =
        grants.patterns().map(|found| (&found.grant.meta.key.name, &*found.grant)).collect();
    let numbers: BTreeMap<&Str, usize> = deciding.keys().enumerate().map(|(number, name)| (*name, number)).collect();
    let mut data = BTreeMap::from([
        ("_annotation-prefixes".to_owned(), settings.annotation_prefixes.join(",")),
        ("_allow-inward-targets".to_owned(), settings.allow_inward_targets.to_string()),
        ("_require-grants".to_owned(), settings.require_grants.to_string()),
    ]);
    data.extend(deciding.iter().map(|(name, grant)| (format!("_grant.{}", numbers[name]), described(grant))));
    data.extend(grants.patterns().filter_map(|found| {
        let hostname = found.grant.hostnames[found.index].name().ok()?;
        let number = numbers[&found.grant.meta.key.name];
        // A key of a ConfigMap has no `*`, and a hostname no `_`.
        Some((hostname.as_str().replacen('*', "_", 1), number.to_string()))
    }));
    Ok(data)
}

/// A grant in lines: its name, namespaces by name, and the requirements on labels behind a line of their own.
fn described(grant: &HostnameGrant) -> String {
    let mut lines = vec![format!("grant {}", grant.meta.key.name)];
    lines.extend(grant.namespaces.names.iter().map(|name| format!("namespace {name}")));
    if let Some(Selector { requirements }) = &grant.namespaces.selector {
        lines.push("selector".to_owned());
        lines.extend(requirements.iter().map(requirement));
    }
    lines.join("\n")
}

/// `label KEY OPERATOR =VALUE,=VALUE`. What no label can be is left out, and so never found.
fn requirement(requirement: &Requirement) -> String {
    let (operator, values): (&str, &[Str]) = match &requirement.test {
        Test::In(values) => ("In", values),
        Test::NotIn(values) => ("NotIn", values),
        Test::Exists => ("Exists", &[]),
        Test::DoesNotExist => ("DoesNotExist", &[]),
        Test::Other(_) => ("Other", &[]),
    };
    let key = if is_of_labels(&requirement.key) { &*requirement.key } else { "-" };
    let values: Vec<String> =
        values.iter().filter(|value| is_of_labels(value)).map(|value| format!("={value}")).collect();
    format!("label {key} {operator} {}", values.join(","))
}

fn is_of_labels(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}

#[cfg(test)]
mod tests {
    use gatepost_objects::{ParseSettings, collect};

    use super::*;

    fn data(grants: &str) -> Result<BTreeMap<String, String>, String> {
        let texts = [("grants.yaml".into(), grants.as_bytes().to_vec())];
        parameters(&collect(texts, &ParseSettings::default()).snapshot, &PublicationSettings::default())
    }

    fn grant(name: &str, created: &str, hostnames: &str, namespaces: &str) -> String {
        format!(
            "---\napiVersion: gatepost.dev/v1alpha1\nkind: HostnameGrant\n\
             metadata: {{name: {name}, creationTimestamp: '{created}T00:00:00Z'}}\n\
             spec: {{hostnames: [{hostnames}], namespaces: {{{namespaces}}}}}\n"
        )
    }

    #[test]
    fn a_hostname_leads_to_the_grant_that_decides() {
        let selector = "selector: {matchLabels: {team: blog}, matchExpressions: [{key: stage, operator: NotIn, values: [test, '']}]}";
        let grants = grant("selector", "2024-01-01", "shop.example.org, '*.shop.example.org'", "names: [shop, infra]")
            + &grant("blog", "2025-01-01", "'*.shop.example.org', blog.example.org", selector)
            + &grant("open", "2025-01-01", "open.example.org", "selector: {}");
        let data = data(&grants).unwrap();
        let number = |key: &str| data.get(key).map_or("none", |number| &*data[&format!("_grant.{number}")]);
        // The older of two grants with one entry decides; a grant may have the name of a line.
        for key in ["shop.example.org", "_.shop.example.org"] {
            assert_eq!(number(key), "grant selector\nnamespace shop\nnamespace infra");
        }
        assert_eq!(number("blog.example.org"), "grant blog\nselector\nlabel team In =blog\nlabel stage NotIn =test,=");
        assert_eq!(number("open.example.org"), "grant open\nselector");
        assert_eq!(number("_.example.org"), "none");
        assert_eq!(data["_require-grants"], "false");
    }

    #[test]
    fn a_requirement_that_no_label_meets_is_met_by_none() {
        let odd = "selector: {matchLabels: {'a b': x, team: \"x\\nnamespace evil\"}}";
        let data = data(&grant("odd", "2024-01-01", "odd.example.org", odd));
        if let Ok(data) = data {
            let lines: Vec<&str> = data["_grant.0"].lines().collect();
            assert_eq!(lines, ["grant odd", "selector", "label - In =x", "label team In "]);
        }
    }

    #[test]
    fn a_grant_that_a_cluster_would_refuse_is_named() {
        let error = data(&grant("bad", "2024-01-01", "'a.*.example.org'", "names: [shop]")).unwrap_err();
        assert!(error.contains("HostnameGrant/bad"), "{error}");
    }

    #[test]
    fn names_and_exempt_namespaces_are_filled_in() {
        let names = AdmissionNames { name: "edge".into(), namespace: "dns".into() };
        let (plain, exempting) = (names.policies(&[]), names.policies(&["infra".to_owned(), "edge".to_owned()]));
        assert!(!plain.contains("${") && !exempting.contains("${"), "{exempting}");
        assert_eq!(plain.matches("name: edge-routes\n").count(), 2);
        assert_eq!(plain.matches("{name: edge-hostname-grants, namespace: dns, ").count(), 2);
        assert!(
            !plain.contains("namespaceSelector")
                && exempting.contains("operator: NotIn, values: [infra, edge]}\n  validationActions")
        );
    }
}
