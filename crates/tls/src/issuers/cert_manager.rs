//! `cert-manager`: Certificate objects that cert-manager turns into Secrets. What such an object ought to say, and what one says.
//!
//! Values only: who talks to a cluster writes and reads them. One that somebody else made is never taken over, and neither is the
//! Secret of one: two that fill one Secret would undo each other's work for ever.

use std::fmt;

use gatepost_core::model::{Key, Reference, Str, TlsPolicy};
use gatepost_core::publication::Certificate;
use serde_json::{Map, Value, json};

use crate::chain::Leaf;
use crate::error::{Error, Result};

pub mod names;

/// The group of cert-manager's kinds.
pub const GROUP: &str = "cert-manager.io";
/// The label that marks what this program made.
pub const OWNER_LABEL: &str = "gatepost.dev/managed-by";
/// What the label says.
pub const OWNER: &str = "gatepost";

/// Who is to issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerRef {
    /// API group.
    pub group: Str,
    /// `Issuer`, `ClusterIssuer`, or a kind of somebody else.
    pub kind: Str,
    /// Its name.
    pub name: Str,
}

/// What a Certificate object, or that there is none, comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// There is none, and it may be made.
    Missing,
    /// Somebody else looks after the Secret: says who.
    Foreign(String),
    /// It is ours and says something else; the paths of the fields that differ.
    Differs(Vec<String>),
    /// It says what it ought to, and the Secret does not hold it yet: why.
    Pending(String),
    /// cert-manager gave up for now: what it says.
    Failed(String),
    /// The Secret holds what it ought to.
    Ready {
        /// When it ends, in seconds since 1970.
        not_after: i64,
    },
}

impl IssuerRef {
    /// `--issuer-ref KIND/NAME`.
    pub fn parse(text: &str) -> Result<IssuerRef> {
        match text.split_once('/') {
            Some((kind @ ("Issuer" | "ClusterIssuer"), name)) if !name.is_empty() && !name.contains('/') => {
                Ok(IssuerRef { group: GROUP.into(), kind: kind.into(), name: name.into() })
            }
            _ => Err(Error::settings(format!("--issuer-ref `{text}`: write Issuer/NAME or ClusterIssuer/NAME"))),
        }
    }

    /// The issuer that a policy names.
    pub fn of(reference: &Reference) -> IssuerRef {
        IssuerRef { group: reference.group.clone(), kind: reference.kind.clone(), name: reference.name.clone() }
    }
}

impl fmt::Display for IssuerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// The object that ought to exist for a Secret. The policy's issuer wins over the one of the settings; without either there is
/// nobody to issue.
pub fn manifest(certificate: &Certificate, policy: Option<&TlsPolicy>, usual: Option<&IssuerRef>) -> Result<Value> {
    let issuer = certificate.issuer.as_ref().map(IssuerRef::of).or_else(|| usual.cloned());
    let nobody = || Error::settings("no TLSPolicy names an issuer: add --issuer-ref KIND/NAME");
    let issuer = issuer.ok_or_else(nobody)?;
    let labels = json!({OWNER_LABEL: OWNER});
    Ok(json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {
            "namespace": &*certificate.secret.namespace,
            "name": &*certificate.secret.name,
            "labels": labels,
        },
        "spec": spec(certificate, policy, &issuer, &labels),
    }))
}

fn spec(certificate: &Certificate, policy: Option<&TlsPolicy>, issuer: &IssuerRef, labels: &Value) -> Value {
    let names: Vec<&str> = certificate.dns_names.iter().map(|name| &**name).collect();
    let key = private_key(policy);
    let mut usages = vec!["digital signature", "server auth"];
    if key["algorithm"] == "RSA" {
        usages.insert(1, "key encipherment");
    }
    let mut spec = json!({
        "secretName": &*certificate.secret.name,
        "dnsNames": names,
        "issuerRef": {"group": &*issuer.group, "kind": &*issuer.kind, "name": &*issuer.name},
        "privateKey": key,
        "usages": usages,
        "revisionHistoryLimit": 1,
        "secretTemplate": {"labels": labels},
    });
    let times = [("duration", policy.and_then(|p| p.duration)), ("renewBefore", policy.and_then(|p| p.renew_before))];
    for (field, seconds) in times {
        if let Some(seconds) = seconds {
            spec[field] = go_duration(seconds).into();
        }
    }
    spec
}

/// What a policy asks for, over keys that are small and made anew each time.
fn private_key(policy: Option<&TlsPolicy>) -> Value {
    let mut key = Map::new();
    for (field, value) in policy.map(|policy| &policy.private_key[..]).unwrap_or_default() {
        let number = (&**field == "size").then(|| value.parse::<u32>().ok()).flatten();
        key.insert(field.to_string(), number.map_or_else(|| Value::from(&**value), Value::from));
    }
    if !key.contains_key("algorithm") {
        key.insert("algorithm".to_owned(), "ECDSA".into());
        key.entry("size").or_insert(256.into());
    }
    key.entry("rotationPolicy").or_insert("Always".into());
    Value::Object(key)
}

/// Seconds as Go prints a duration, which is how an API server gives them back.
fn go_duration(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// Whether this program made an object. One that another controller looks after is not ours, whatever labels it has: cert-manager
/// copies those of a Gateway.
pub fn is_ours(object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata["labels"][OWNER_LABEL] == OWNER && controller(object).is_none()
}

/// The controller that looks after an object.
fn controller(object: &Value) -> Option<&Value> {
    object["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["controller"] == true)
}

/// What is worth keeping of a Certificate object: of others' only whose they are and which Secret they fill.
pub fn trimmed(mut object: Value) -> Value {
    let fields =
        ["namespace", "name", "uid", "resourceVersion", "generation", "labels", "ownerReferences", "managedFields"];
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| fields.contains(&field.as_str()));
    }
    if is_ours(&object) {
        return object;
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    json!({"metadata": object["metadata"], "spec": {"secretName": object["spec"]["secretName"]}})
}

/// The names that a Certificate object asks for.
pub fn names_of(object: &Value) -> Vec<Str> {
    object["spec"]["dnsNames"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(Str::from))
        .collect()
}

/// When cert-manager will renew it, as it says itself, in seconds since 1970.
pub fn renewal_of(object: &Value) -> Option<i64> {
    gatepost_objects::timestamp(object["status"]["renewalTime"].as_str()?)
}

/// The name of the CertificateRequest that cert-manager works on for a Certificate object; nothing where it does not issue, or
/// names it otherwise.
pub fn request_of(object: &Value) -> Option<Key> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().filter(|name| name.len() <= 233)?;
    let is_issuing = condition(object, "Issuing").is_some_and(|(status, _)| status == "True");
    let revision = object["status"]["revision"].as_u64().unwrap_or(0).saturating_add(1);
    is_issuing.then(|| Key::new(metadata["namespace"].as_str().unwrap_or_default(), format!("{name}-{revision}")))
}

/// What keeps a CertificateRequest from being done, in its issuer's words.
pub fn request_says(request: &Value) -> Option<&str> {
    let (status, message) = condition(request, "Ready")?;
    (status != "True" && !message.is_empty()).then_some(message)
}

/// The Secret that a Certificate object fills.
pub fn secret_of(object: &Value) -> Option<Key> {
    let namespace = object["metadata"]["namespace"].as_str()?;
    Some(Key::new(namespace, object["spec"]["secretName"].as_str()?))
}

/// What the objects that are there come to for one that ought to exist. `held` is what its Secret holds.
pub fn judge(wanted: &Value, objects: &[&Value], held: Option<&Leaf>, now: i64) -> Judgement {
    let secret = secret_of(wanted);
    let is_same = |object: &Value| {
        ["namespace", "name"].iter().all(|field| object["metadata"][field] == wanted["metadata"][field])
    };
    let mut concerned = objects.iter().filter(|object| secret_of(object) == secret || is_same(object));
    if let Some(foreign) = concerned.clone().find(|object| !is_ours(object)) {
        return Judgement::Foreign(described(foreign));
    }
    let Some(found) = concerned.find(|object| is_same(object)) else { return Judgement::Missing };
    let mut differing = differing(&wanted["spec"], &found["spec"], "spec");
    differing.extend(left_over(&owned(found)["f:spec"], &wanted["spec"], "spec"));
    if !differing.is_empty() {
        return Judgement::Differs(differing);
    }
    progress(wanted, found, held, now)
}

/// Who looks after a Certificate object, as far as it says.
fn described(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let metadata = &object["metadata"];
    let name = format!("Certificate {}/{}", text(&metadata["namespace"]), text(&metadata["name"]));
    match controller(object) {
        Some(owner) => format!("{name} of {} {}", text(&owner["kind"]), text(&owner["name"])),
        None => name,
    }
}

/// The fields that ought to be and are not. What an API server or cert-manager added is no difference.
fn differing(wanted: &Value, found: &Value, path: &str) -> Vec<String> {
    match wanted {
        Value::Object(fields) => {
            let fields = fields.iter();
            fields.flat_map(|(name, value)| differing(value, &found[name], &format!("{path}.{name}"))).collect()
        }
        other if other == found => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

/// The fields that we put on an object, as an API server keeps them; nothing where it does not say.
fn owned(object: &Value) -> &Value {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours = entries.iter().find(|entry| entry["manager"] == OWNER && entry["operation"] == "Apply");
    ours.map_or(&Value::Null, |entry| &entry["fieldsV1"])
}

/// The fields that we put there once and that ought to be no longer.
fn left_over(owned: &Value, wanted: &Value, path: &str) -> Vec<String> {
    let fields = owned.as_object().into_iter().flatten();
    let named = fields.filter_map(|(key, inner)| Some((key.strip_prefix("f:")?, inner)));
    named
        .flat_map(|(name, inner)| match &wanted[name] {
            Value::Null => vec![format!("{path}.{name}")],
            value => left_over(inner, value, &format!("{path}.{name}")),
        })
        .collect()
}

/// How far cert-manager is. Its word alone is not enough: while it issues anew, `Ready` speaks of the old names.
fn progress(wanted: &Value, found: &Value, held: Option<&Leaf>, now: i64) -> Judgement {
    let names = wanted["spec"]["dnsNames"].as_array().cloned().unwrap_or_default();
    let missing = |leaf: &Leaf| {
        let missing = names.iter().filter_map(Value::as_str).find(|name| !leaf.covers(name));
        missing.map(str::to_owned)
    };
    let is_held = held.filter(|leaf| leaf.not_after > now && missing(leaf).is_none());
    let ready = condition(found, "Ready");
    if let (Some(leaf), Some(("True", _))) = (is_held, ready) {
        return Judgement::Ready { not_after: leaf.not_after };
    }
    let attempts = found["status"]["failedIssuanceAttempts"].as_u64().unwrap_or(0);
    if attempts > 0 {
        let why = condition(found, "Issuing").map(|(_, message)| message).unwrap_or_default();
        let times = if attempts == 1 { "once".to_owned() } else { format!("{attempts} times") };
        return Judgement::Failed(format!("cert-manager failed {times}: {why}"));
    }
    let why = match (held, ready) {
        (_, None) => "cert-manager has not looked at it yet".to_owned(),
        (Some(leaf), Some(("True", _))) => {
            let name = missing(leaf).unwrap_or_default();
            format!("its Secret does not hold `{name}` yet")
        }
        (None, Some(("True", _))) => "its Secret is not there".to_owned(),
        (_, Some((_, message))) => format!("cert-manager says: {message}"),
    };
    Judgement::Pending(why)
}

/// Status and message of a condition.
fn condition<'o>(object: &'o Value, kind: &str) -> Option<(&'o str, &'o str)> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    Some((found["status"].as_str()?, found["message"].as_str().unwrap_or_default()))
}

#[cfg(test)]
mod tests;
