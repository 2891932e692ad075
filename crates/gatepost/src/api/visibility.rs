//! What somebody may see of an answer: everything, or what belongs to the namespaces in which they may read routes.
//!
//! Of other namespaces only that something is there, and which namespace it is. The names of Gateways, ListenerSets and
//! listeners above one's own routes may be seen, as one's own parentRefs name them; what is said about them may not.
//! Every answer for somebody who may not see everything passes [`Restriction::apply`]; a path that it does not know is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use gatepost_core::plan::Held;
use gatepost_core::reason::Reason;
use serde_json::{Map, Value, json};

use super::{NameRow, NamesIndex, PassFacts};
use crate::view::api::HeldByView;
use crate::view::diagnostic::DiagnosticView;

/// Somebody who looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Viewer {
    /// Unset where everything may be seen.
    only: Option<Arc<NamespaceSplit>>,
}

/// All namespaces that occur, in two parts.
#[derive(Debug, PartialEq, Eq)]
struct NamespaceSplit {
    visible: BTreeSet<String>,
    hidden: BTreeSet<String>,
}

impl Viewer {
    /// Somebody who may see everything.
    pub fn everything() -> Self {
        Viewer { only: None }
    }

    /// Somebody who may see some of all namespaces.
    pub fn of(visible: BTreeSet<String>, all: &BTreeSet<String>) -> Self {
        let hidden = all.difference(&visible).cloned().collect();
        Viewer { only: Some(Arc::new(NamespaceSplit { visible, hidden })) }
    }

    /// Whether nothing is kept from them.
    pub fn sees_everything(&self) -> bool {
        self.only.is_none()
    }

    /// Whether objects of a namespace may be seen. Cluster-wide objects have none, and are not anybody's.
    pub fn sees(&self, namespace: &str) -> bool {
        self.only.as_ref().is_none_or(|split| split.visible.contains(namespace))
    }

    /// Whether an object may be seen, written as `Kind/namespace/name` or `namespace/name`.
    fn sees_object(&self, object: &str) -> bool {
        namespace_of(object).is_some_and(|namespace| self.sees(namespace))
    }

    /// A row as far as it may be seen; nothing where none of its routes may be.
    pub(super) fn row(&self, row: &NameRow) -> Option<NameRow> {
        if self.sees_everything() {
            return Some(row.clone());
        }
        if !row.namespaces.iter().any(|namespace| self.sees(namespace)) {
            return None;
        }
        let mut row = row.clone();
        row.routes.retain(|route| self.sees_object(route));
        row.ways.retain(|(route, _)| self.sees_object(route));
        row.gateways = row.ways.iter().map(|(_, gateway)| gateway.clone()).collect();
        row.cause = row.cause.map(|cause| self.cause(cause));
        Some(row)
    }

    /// A cause: of an object of somebody else's only the reason.
    fn cause(&self, mut cause: DiagnosticView) -> DiagnosticView {
        cause.related.retain(|related| self.sees_object(&related.object));
        if cause.object.as_ref().is_some_and(|object| self.sees_object(object)) {
            return cause;
        }
        let row = Reason::find(cause.reason).map(Reason::row);
        cause.object = cause.object.as_deref().and_then(namespace_of).map(|namespace| format!("namespace {namespace}"));
        (cause.message, cause.help) = row.map(|row| (row.summary.to_owned(), row.help.to_owned())).unwrap_or_default();
        (cause.field, cause.fix, cause.place, cause.related) = (String::new(), None, None, Vec::new());
        cause
    }

    /// The facts of a pass that belong to names that may be seen.
    pub(super) fn pass(&self, pass: &PassFacts, names: &NamesIndex) -> PassFacts {
        let is_own = |name: &str| names.find(name).is_some();
        let steps = pass.steps.iter().zip(&pass.outcomes).filter(|(step, _)| is_own(&step.name));
        let (steps, outcomes): (Vec<_>, Vec<_>) = steps.map(|(step, done)| (step.clone(), done.clone())).unzip();
        PassFacts {
            generation: pass.generation,
            ended: pass.ended,
            step_count: steps.len(),
            steps,
            outcomes,
            held: pass.held.iter().filter(|held| is_own(&held.name)).map(|held| self.held(held)).collect(),
            unread: unread(pass),
            ..PassFacts::default()
        }
    }

    /// Something held: its sentence only where it is about an object that may be seen.
    fn held(&self, held: &Held) -> Held {
        let is_own = held.object.as_ref().is_some_and(|object| self.sees(object.namespace()));
        let mut held = held.clone();
        if !is_own {
            held.object = None;
            held.message = held.reason.row().summary.to_owned();
        }
        held
    }
}

/// Whether something could not be read, without saying where.
fn unread(pass: &PassFacts) -> Vec<String> {
    let told = || "a zone could not be read".to_owned();
    pass.unread.iter().take(1).map(|_| told()).collect()
}

/// The namespace of `Kind/namespace/name`, `Namespace/name` or `namespace/name`.
fn namespace_of(object: &str) -> Option<&str> {
    let mut parts = object.split('/');
    let first = parts.next().filter(|part| !part.is_empty())?;
    match (first.starts_with(|c: char| c.is_ascii_uppercase()), parts.next(), parts.next()) {
        (true, Some(second), third) => (third.is_some() || first == "Namespace").then_some(second),
        (false, Some(_), _) => Some(first),
        (_, None, _) => None,
    }
}

/// What takes away from answers what a viewer may not see.
pub(super) struct Restriction<'a> {
    split: &'a NamespaceSplit,
    viewer: &'a Viewer,
    /// All names.
    all: &'a NamesIndex,
    /// The names that may be seen.
    seen: &'a NamesIndex,
    /// The Gateways above them, as `namespace/name`.
    above: BTreeSet<&'a str>,
}

/// Why nothing is left of an answer.
pub(super) struct NotVisible;

impl<'a> Restriction<'a> {
    /// The restriction of a viewer; nothing for somebody who may see everything.
    pub(super) fn of(viewer: &'a Viewer, all: &'a NamesIndex, seen: &'a NamesIndex) -> Option<Self> {
        let split = viewer.only.as_deref()?;
        let gateways = seen.rows.iter().flat_map(|row| &row.gateways);
        let above = gateways.filter_map(|name| Some(name.split_once('/')?.1)).collect();
        Some(Restriction { split, viewer, all, seen, above })
    }

    /// An answer without what may not be seen.
    pub(super) fn apply(&self, path: &[&str], answer: Value) -> Result<Value, NotVisible> {
        let Value::Object(fields) = answer else { return Err(NotVisible) };
        let kept = match path {
            ["overview"] => self.overview(fields),
            ["names", name] => self.name(name, fields),
            // What these list was chosen by `Viewer` before they were made.
            ["names" | "plan" | "objects"] => self.diagnostics_of(fields),
            ["objects", ..] => self.diagnostics_of(fields),
            ["certificates"] => self.items(fields, "secret"),
            ["health"] => self.named(fields, "hostname"),
            ["activity"] => self.activity(fields),
            ["flow"] => self.flow(fields),
            ["zones"] => self.zones(fields),
            ["route"] => self.route(fields),
            _ => return Err(NotVisible),
        };
        let mut kept = Value::Object(kept);
        self.scrub(&mut kept);
        Ok(kept)
    }

    fn is_seen_name(&self, name: &str) -> bool {
        self.seen.find(name).is_some()
    }

    fn overview(&self, mut fields: Map<String, Value>) -> Map<String, Value> {
        if fields.get("troubles").is_some() {
            fields.insert("troubles".to_owned(), json!(["something could not be read"]));
        }
        fields.insert("notes".to_owned(), json!([]));
        fields.insert("isRestricted".to_owned(), json!(true));
        retain(&mut fields, "problems", |problem| self.viewer.sees_object(text(problem, "object")));
        keep(
            fields,
            &[
                "version",
                "command",
                "mode",
                "provider",
                "intervalSeconds",
                "generation",
                "asOf",
                "namesAsOf",
                "seenAt",
                "isCurrent",
                "troubles",
                "notes",
                "counts",
                "names",
                "held",
                "steps",
                "isRestricted",
                "problems",
            ],
        )
    }

    /// The items of which a field names an object that may be seen.
    fn items(&self, mut fields: Map<String, Value>, field: &str) -> Map<String, Value> {
        retain(&mut fields, "items", |item| self.viewer.sees_object(text(item, field)));
        fields
    }

    /// The items of which a field is a hostname that may be seen.
    fn named(&self, mut fields: Map<String, Value>, field: &str) -> Map<String, Value> {
        retain(&mut fields, "items", |item| self.is_seen_name(text(item, field)));
        fields
    }

    fn activity(&self, fields: Map<String, Value>) -> Map<String, Value> {
        let mut fields = self.named(fields, "name");
        for entry in list(&mut fields, "items") {
            self.event(entry);
        }
        fields
    }

    /// An entry of the activity: its cause only where every object behind it may be seen.
    fn event(&self, entry: &mut Value) {
        let objects = entry.get("objects").and_then(Value::as_array);
        let is_own = objects.is_some_and(|objects| {
            objects.iter().all(|object| object.as_str().is_some_and(|object| self.viewer.sees_object(object)))
        });
        let Some(fields) = entry.as_object_mut().filter(|_| !is_own) else { return };
        fields.remove("because");
        fields.remove("objects");
        if matches!(fields.get("kind").and_then(Value::as_str), Some("held")) {
            fields.insert("text".to_owned(), summary(fields).into());
        }
    }

    fn zones(&self, fields: Map<String, Value>) -> Map<String, Value> {
        let mut fields = keep(fields, &["generation", "asOf", "items"]);
        let count = |zone: &Value| {
            let provider = zone.get("provider").and_then(Value::as_str);
            let key = (provider.map(Into::into), text(zone, "name").into());
            self.seen.rows.iter().filter(|row| row.zones.contains(&key)).count()
        };
        retain(&mut fields, "items", |zone| count(zone) > 0);
        for zone in list(&mut fields, "items") {
            let names = count(zone);
            let Some(fields) = zone.as_object_mut() else { continue };
            *fields = keep(std::mem::take(fields), &["provider", "name", "version"]);
            fields.insert("records".to_owned(), json!(names));
        }
        fields.insert("unread".to_owned(), json!([]));
        fields
    }

    /// The graph has only what hangs above one's own routes; of objects that may not be seen it says nothing more.
    fn flow(&self, mut fields: Map<String, Value>) -> Map<String, Value> {
        for node in list(&mut fields, "nodes") {
            let is_own = self.viewer.sees_object(text(node, "id"));
            if let Some(node) = node.as_object_mut().filter(|_| !is_own) {
                *node = keep(std::mem::take(node), &["id", "kind", "name", "holds", "count", "broken"]);
            }
        }
        for edge in list(&mut fields, "edges") {
            let is_own = self.viewer.sees_object(text(edge, "to"));
            if let Some(edge) = edge.as_object_mut().filter(|_| !is_own) {
                *edge = keep(std::mem::take(edge), &["from", "to", "state"]);
            }
        }
        fields
    }

    fn route(&self, fields: Map<String, Value>) -> Map<String, Value> {
        match fields.get("route").and_then(Value::as_str).map(str::to_owned).as_deref() {
            Some(route) if self.viewer.sees_object(route) => {
                let mut fields = fields;
                let told = "why routes of other namespaces do not serve it is told to those who may read them";
                fields.insert("because".to_owned(), json!([told]));
                fields
            }
            Some(route) => {
                let namespace = namespace_of(route).unwrap_or_default();
                let mut fields = keep(fields, &["outcome"]);
                fields.insert("because".to_owned(), json!([format!("a route of namespace {namespace} serves it")]));
                fields
            }
            None => {
                let mut fields = keep(fields, &["outcome", "status", "listener"]);
                fields.insert("because".to_owned(), json!([]));
                fields
            }
        }
    }

    /// A name: what belongs to one's own routes; only who holds it where none of them asks for it.
    fn name(&self, name: &str, mut fields: Map<String, Value>) -> Map<String, Value> {
        let is_own = |route: &Value| route.as_str().is_some_and(|route| self.viewer.sees_object(route));
        let route_of = |chain: &Value| -> Value {
            let links = chain.get("links").and_then(Value::as_array).into_iter().flatten();
            links
                .filter(|link| text(link, "role") == "route")
                .map(|link| link["name"].clone())
                .next()
                .unwrap_or_default()
        };
        let chains = fields.get("chains").and_then(Value::as_array).cloned().unwrap_or_default();
        let annotated = fields.get("annotated").and_then(Value::as_array).cloned().unwrap_or_default();
        let routes = chains.iter().map(route_of).chain(annotated.iter().map(|one| one["object"].clone()));
        let (own, others): (Vec<Value>, Vec<Value>) = routes.partition(is_own);
        let row = self.all.find(name);
        let namespaces = row.map(|row| row.namespaces.clone()).unwrap_or_default();
        let others = others.iter().filter_map(|route| namespace_of(route.as_str()?)).map(str::to_owned);
        let others: BTreeSet<String> =
            others.chain(namespaces).filter(|namespace| !self.viewer.sees(namespace)).collect();
        if own.is_empty() && (row.is_some() || !others.is_empty()) {
            let held = HeldByView {
                generation: self.all.generation,
                as_of: self.all.as_of,
                hostname: name.to_owned(),
                held_by: others.into_iter().collect(),
            };
            return match serde_json::to_value(held) {
                Ok(Value::Object(fields)) => fields,
                _ => Map::new(),
            };
        }
        retain(&mut fields, "chains", |chain| is_own(&route_of(chain)));
        let chains = fields.get("chains").and_then(Value::as_array).into_iter().flatten();
        let links = chains.flat_map(|chain| chain.get("links").and_then(Value::as_array).into_iter().flatten());
        let listeners: BTreeSet<String> =
            links.filter(|link| text(link, "role") == "listener").map(|link| text(link, "name").to_owned()).collect();
        for field in ["requests", "certificates"] {
            retain(&mut fields, field, |one| listeners.contains(text(one, "listener")));
        }
        for request in list(&mut fields, "requests") {
            let is_foreign = request.get("route").is_some_and(|route| !is_own(route));
            if let Some(request) = request.as_object_mut().filter(|_| is_foreign) {
                *request = keep(std::mem::take(request), &["listener", "url", "outcome", "status", "fails"]);
            }
        }
        retain(&mut fields, "annotated", |one| is_own(&one["object"]));
        retain(&mut fields, "withheld", |one| is_own(&one["route"]));
        retain(&mut fields, "similar", |one| one.as_str().is_some_and(|name| self.is_seen_name(name)));
        retain(&mut fields, "openListeners", is_own);
        for field in ["records", "steps"] {
            for one in list(&mut fields, field) {
                self.step(one);
            }
        }
        list(&mut fields, "activity").iter_mut().for_each(|entry| self.event(entry));
        for link in list(&mut fields, "chains")
            .iter_mut()
            .flat_map(|chain| chain.get_mut("links").and_then(Value::as_array_mut).into_iter().flatten())
        {
            let is_own = self.viewer.sees_object(text(link, "name"));
            if let Some(link) = link.as_object_mut().filter(|_| !is_own) {
                link.remove("detail");
            }
        }
        fields.insert("otherNamespaces".to_owned(), json!(others));
        let kept = keep(
            fields,
            &[
                "generation",
                "asOf",
                "hostname",
                "health",
                "verdict",
                "attached",
                "published",
                "cause",
                "causes",
                "zone",
                "recordSets",
                "held",
                "steps",
                "activity",
                "chains",
                "requests",
                "records",
                "certificates",
                "annotated",
                "withheld",
                "similar",
                "openListeners",
                "otherNamespaces",
            ],
        );
        self.diagnostics_of(kept)
    }

    /// A record or step: its routes, and its cause where all of them may be seen.
    fn step(&self, one: &mut Value) {
        let Some(fields) = one.as_object_mut() else { return };
        let count = |fields: &Map<String, Value>| fields.get("routes").and_then(Value::as_array).map_or(0, Vec::len);
        let before = count(fields);
        retain(fields, "routes", |route| route.as_str().is_some_and(|route| self.viewer.sees_object(route)));
        if before == 0 || count(fields) < before {
            fields.remove("error");
            fields.entry("because").and_modify(|because| *because = "".into());
        }
    }

    /// Restricts every diagnostic and step, however deep.
    fn diagnostics_of(&self, mut fields: Map<String, Value>) -> Map<String, Value> {
        fields.values_mut().for_each(|value| self.diagnostics(value));
        fields
    }

    fn diagnostics(&self, value: &mut Value) {
        if value.get("verb").is_some() && value.get("routes").is_some() {
            self.step(value);
        }
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.diagnostics(item)),
            Value::Object(fields) => {
                let is_diagnostic = fields.contains_key("severity") && fields.contains_key("help");
                if is_diagnostic {
                    self.diagnostic(fields);
                }
                fields.values_mut().for_each(|value| self.diagnostics(value));
            }
            _ => {}
        }
    }

    fn diagnostic(&self, fields: &mut Map<String, Value>) {
        retain(fields, "related", |related| self.viewer.sees_object(text(related, "object")));
        let object = fields.get("object").and_then(Value::as_str).unwrap_or_default().to_owned();
        if self.viewer.sees_object(&object) {
            return;
        }
        let (message, help) = (summary(fields), reason_of(fields).map_or("", |reason| reason.row().help));
        *fields = keep(std::mem::take(fields), &["reason", "code", "severity", "object"]);
        fields.insert("message".to_owned(), message.into());
        fields.insert("help".to_owned(), help.into());
    }

    /// A text without names of others.
    pub(super) fn told(&self, text: &str) -> String {
        self.scrubbed(text).unwrap_or_else(|| text.to_owned())
    }

    /// Takes names of others out of every text: hostnames, and objects behind the name of their namespace.
    fn scrub(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(scrubbed) = self.scrubbed(text) {
                    *text = scrubbed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.scrub(item)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.scrub(value)),
            _ => {}
        }
    }

    /// The text without names of others; nothing where it has none.
    fn scrubbed(&self, text: &str) -> Option<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '/' | '*');
        let (mut scrubbed, mut rest, mut is_changed) = (String::new(), text, false);
        while !rest.is_empty() {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            match self.scrubbed_word(word) {
                Some(other) => {
                    is_changed = true;
                    scrubbed.push_str(&other);
                }
                None => scrubbed.push_str(word),
            }
            let between = after.find(is_part).unwrap_or(after.len());
            scrubbed.push_str(&after[..between]);
            rest = &after[between..];
        }
        is_changed.then_some(scrubbed)
    }

    fn scrubbed_word(&self, word: &str) -> Option<String> {
        let parts: Vec<&str> = word.split('/').collect();
        let at = usize::from(parts.len() > 2 && parts[0].starts_with(|c: char| c.is_ascii_uppercase()));
        if let [namespace, name, ..] = &parts[at..]
            && self.split.hidden.contains(*namespace)
            && !name.is_empty()
            && !self.above.contains(&*format!("{namespace}/{name}"))
        {
            let kind = if at == 1 { format!("{}/", parts[0]) } else { String::new() };
            return Some(format!("{kind}{namespace}/…"));
        }
        let is_hidden = |part: &str| {
            let name = part.trim_end_matches('.');
            self.all.find(name).is_some() && !self.is_seen_name(name)
        };
        let found = parts.iter().any(|part| is_hidden(part));
        found.then(|| {
            let parts = parts.iter().map(|part| if is_hidden(part) { "…" } else { *part });
            parts.collect::<Vec<_>>().join("/")
        })
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(fields: &'v mut Map<String, Value>, field: &str) -> &'v mut [Value] {
    fields.get_mut(field).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

fn retain(fields: &mut Map<String, Value>, field: &str, is_kept: impl Fn(&Value) -> bool) {
    if let Some(items) = fields.get_mut(field).and_then(Value::as_array_mut) {
        items.retain(is_kept);
    }
}

fn keep(fields: Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    fields.into_iter().filter(|(name, _)| names.contains(&name.as_str())).collect()
}

fn reason_of(fields: &Map<String, Value>) -> Option<Reason> {
    Reason::find(fields.get("reason")?.as_str()?)
}

/// What the reason of a diagnostic says of any object.
fn summary(fields: &Map<String, Value>) -> &'static str {
    reason_of(fields).map_or("", |reason| reason.row().summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(hostname: &str, namespace: &str, provider: &str) -> NameRow {
        let namespaces: BTreeSet<String> = [namespace.to_owned()].into();
        NameRow {
            hostname: hostname.to_owned(),
            health: gatepost_core::explain::NameHealth::Right,
            verdict: gatepost_core::explain::NameVerdict::Works,
            cause: None,
            zone: Some("example.org".into()),
            zones: [(Some(provider.into()), "example.org".into())].into(),
            routes: [format!("HTTPRoute/{namespace}/web")].into(),
            namespaces,
            gateways: BTreeSet::new(),
            ways: BTreeSet::new(),
            records: Vec::new(),
            not_after: None,
        }
    }

    #[test]
    fn of_two_zones_of_one_name_only_that_of_ones_own_provider_is_seen() {
        let rows = vec![row("app.example.org", "shop", "public"), row("in.example.org", "bank", "private")];
        let (all, everybody) = (NamesIndex::of_rows(rows), ["shop".to_owned(), "bank".to_owned()].into());
        let viewer = Viewer::of(["shop".to_owned()].into(), &everybody);
        let seen = all.seen_by(&viewer);
        let answer = json!({"generation": 1, "asOf": 0, "provider": "rfc2136", "unread": ["provider `private`: x"], "items": [
            {"provider": "public", "name": "example.org", "version": "7", "records": 9},
            {"provider": "private", "name": "example.org", "version": "8", "records": 9},
        ]});
        let restriction = Restriction::of(&viewer, &all, &seen).expect("not everything may be seen");
        let told = restriction.apply(&["zones"], answer).unwrap_or_default();
        let zone = json!({"provider": "public", "name": "example.org", "version": "7", "records": 1});
        assert_eq!(told, json!({"generation": 1, "asOf": 0, "unread": [], "items": [zone]}));
    }

    #[test]
    fn the_namespace_of_an_object_is_read_from_its_text() {
        for (object, namespace) in [
            ("HTTPRoute/shop/web", Some("shop")),
            ("Gateway/infra/edge/http", Some("infra")),
            ("shop/tls", Some("shop")),
            ("Namespace/blog", Some("blog")),
            ("GatewayClass/standard", None),
            ("", None),
            ("web", None),
        ] {
            assert_eq!(namespace_of(object), namespace, "{object}");
        }
    }
}
