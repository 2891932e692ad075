//! Listeners, which look the same in Gateways and ListenerSets.

use gatepost_core::model::{Admission, AllowedRoutes, GATEWAY_GROUP, Listener, ListenerTls, Protocol, Str, TlsMode};
use gatepost_core::reason::SELECTOR_MISSING;
use gatepost_core::selector::{Requirement, Selector, Test};

use crate::fields::Fields;
use crate::hostnames::hostname;
use crate::references;
use crate::routes::external_auth;
use crate::rules;
use crate::shapes::Shape;

/// The words of `allowedRoutes.namespaces.from`.
pub(crate) const ROUTE_ADMISSION: &[&str] = &["All", "Selector", "Same"];
/// The words of `allowedListeners.namespaces.from`.
pub(crate) const LISTENER_ADMISSION: &[&str] = &["All", "Selector", "Same", "None"];

/// Reads `listeners`.
pub(crate) fn listeners(spec: &Fields<'_>) -> Vec<Listener> {
    spec.require("listeners");
    let listeners = spec.mappings("listeners", listener);
    rules::listeners::check(spec, &listeners);
    listeners
}

fn listener(f: &Fields<'_>) -> Listener {
    f.require("port");
    f.require("protocol");
    let protocol = f.shaped("protocol", Shape::Protocol).unwrap_or_default();
    Listener {
        name: f.required("name", Shape::Subdomain),
        hostname: f.node("hostname").map(hostname),
        port: f.port("port").unwrap_or(0),
        protocol: Protocol::parse(&protocol),
        tls: f.mapping("tls", tls),
        allowed_routes: f.mapping("allowedRoutes", allowed_routes).unwrap_or_default(),
        has_filters: f.mapping("filters", filters).unwrap_or(false),
    }
}

fn tls(f: &Fields<'_>) -> ListenerTls {
    let mode = match f.text("mode").as_deref() {
        None | Some("Terminate") => TlsMode::Terminate,
        Some("Passthrough") => TlsMode::Passthrough,
        Some(other) => {
            f.unknown_value("mode", other, &["Terminate", "Passthrough"]);
            TlsMode::Other(other.into())
        }
    };
    let certificates = f.mappings("certificateRefs", |f| references::reference(f, references::SECRET));
    rules::at_most(f, "certificateRefs", certificates.len(), 64);
    let options = f.labels("options").len();
    rules::at_most(f, "options", options, 16);
    f.ignore(&["frontendValidation"]);
    ListenerTls { mode, certificates, options }
}

fn allowed_routes(f: &Fields<'_>) -> AllowedRoutes {
    let namespaces = f.mapping("namespaces", |f| admission(f, ROUTE_ADMISSION, Admission::Same));
    AllowedRoutes { namespaces: namespaces.unwrap_or(Admission::Same), kinds: kinds(f) }
}

/// Reads `kinds`. A value that is no list counts as one kind that nothing has: none would mean every kind.
fn kinds(f: &Fields<'_>) -> Vec<(Str, Str)> {
    let kinds: Vec<(Str, Str)> = f.mappings("kinds", |f| {
        let group = f.shaped("group", Shape::Group).unwrap_or_else(|| GATEWAY_GROUP.into());
        (group, f.required("kind", Shape::Kind))
    });
    rules::at_most(f, "kinds", kinds.len(), 8);
    if f.is_no_list("kinds") { vec![("".into(), "".into())] } else { kinds }
}

/// Reads `{from, selector}`.
pub(crate) fn admission(f: &Fields<'_>, words: &[&str], default: Admission) -> Admission {
    let selector = f.mapping("selector", selector);
    let Some(from) = f.text("from") else { return default };
    if !words.contains(&&*from) {
        f.unknown_value("from", &from, words);
        return Admission::Other(from);
    }
    match &*from {
        "All" => Admission::All,
        "Same" => Admission::Same,
        "None" => Admission::None,
        _ => {
            if selector.is_none() {
                f.tell(
                    SELECTOR_MISSING,
                    "selector",
                    "is missing although `from` is Selector; no namespace is admitted",
                );
            }
            Admission::Selector(selector)
        }
    }
}

/// Reads a selector. One that holds something unreadable matches nothing, for it may have been meant to be narrower.
pub(crate) fn selector(f: &Fields<'_>) -> Selector {
    let wrong_before = f.collector().wrong_types();
    let labels = f.labels("matchLabels");
    let equal = labels.iter().map(|(key, value)| Requirement { key: key.clone(), test: Test::In(vec![value.clone()]) });
    let mut requirements: Vec<Requirement> = equal.collect();
    requirements.extend(f.mappings("matchExpressions", requirement));
    if f.collector().wrong_types() > wrong_before {
        requirements.push(Requirement { key: "".into(), test: Test::Other("unreadable".into()) });
    }
    Selector { requirements }
}

/// Reads one expression. One that a cluster would refuse matches nothing.
fn requirement(f: &Fields<'_>) -> Requirement {
    let values = f.texts("values");
    let key = f.required("key", Shape::Text(317));
    let operator = f.required("operator", Shape::Text(63));
    let test = match (&*operator, values.is_empty()) {
        ("In", false) => Test::In(values),
        ("NotIn", false) => Test::NotIn(values),
        ("Exists", true) => Test::Exists,
        ("DoesNotExist", true) => Test::DoesNotExist,
        ("In" | "NotIn", true) => {
            f.invalid("values", format!("is empty; the operator {operator} needs at least one value"));
            Test::Other(operator)
        }
        ("Exists" | "DoesNotExist", false) => {
            f.invalid("values", format!("must be left out; the operator {operator} takes no values"));
            Test::Other(operator)
        }
        (other, _) => {
            f.unknown_value("operator", other, &["In", "NotIn", "Exists", "DoesNotExist"]);
            Test::Other(operator)
        }
    };
    Requirement { key, test }
}

/// Reads `filters` of a listener; says whether any runs.
fn filters(f: &Fields<'_>) -> bool {
    let requests = f.mappings("requests", |f| {
        let kind = f.required("type", Shape::Text(63));
        let (auth, extension) = (
            f.mapping("externalAuth", external_auth).is_some(),
            f.mapping("extensionRef", references::local).is_some(),
        );
        rules::filters::union(
            f,
            &kind,
            &[("ExternalAuth", "externalAuth", auth), ("ExtensionRef", "extensionRef", extension)],
        );
    });
    rules::at_most(f, "requests", requests.len(), 16);
    !requests.is_empty()
}
