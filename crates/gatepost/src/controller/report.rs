//! The status of policies, and Events on routes and Gateways, handed to a queue that is written beside the passes.
//!
//! Status is written only if it differs from the stored one; the time of a condition changes only with its status. Each
//! Event is written once while its cause lasts. Nothing is written about deleted objects, and nothing is changed on any
//! object except the status of our policies.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::health::{AddressReport, HealthState};
use gatepost_core::model::{self, Kind, ObjectRef, Str};
use gatepost_core::plan::Verb;
use gatepost_core::policy::{self, HostnameReport, HostnameState, PolicyReport};
use gatepost_core::publication::Desired;
use gatepost_core::reason::{ADDRESS_UNHEALTHY, Reason, Severity};
use gatepost_kube::objects::EventNote;
use gatepost_kube::{Connection, Error};
use gatepost_objects::crds;
use serde_json::{Value, json};

use super::View;
use super::permit::Permit;
use crate::health::kept;
use crate::run::Pass;
use crate::run::desired::{Touched, records_at};

mod issuance;
mod queue;

pub(super) use queue::QueueNumbers;
use queue::{MOST_QUEUED, ReportContent, ReportQueue, ReportWrite, Unwritten};

/// Maximum number of Events per pass and namespace; others are in the log and in later passes.
const MOST_EVENTS: usize = 50;
/// Maximum number of different Events of one object whose count is remembered after their cause ended.
const MOST_TEXTS: usize = 64;
/// Maximum number of hostnames in a status; the rest is only counted.
const MOST_HOSTNAMES: usize = 1000;
/// Maximum number of addresses in a status; the rest is not remembered by the next leader.
const MOST_ADDRESSES: usize = 2000;
/// Maximum length of a hostname's message.
const LONGEST: usize = 1000;

/// Decides which policy status and Events are to be written, and hands them to the queue.
pub(super) struct Reporter {
    queue: ReportQueue,
    /// The last status of each policy that was handed on, without times, and its generation.
    written: BTreeMap<ObjectRef, (Value, Option<i64>)>,
    /// Policies whose status may differ from the written one.
    due: Touched,
    /// Whether a name was open in the last pass, so that a status may list it as pending.
    had_open: bool,
    sent: BTreeSet<EventKey>,
    /// How often each Event was written.
    times: BTreeMap<EventKey, u64>,
}

/// Object, reason and text of an Event.
type EventKey = (ObjectRef, String, String);

impl Reporter {
    /// Starts the tasks that write while permitted. `identity` is our name in Events.
    pub(super) fn start(connection: &Connection, identity: &str, permit: &Permit) -> Reporter {
        Reporter {
            queue: ReportQueue::start(connection, identity, permit),
            written: BTreeMap::new(),
            due: Touched::default(),
            had_open: false,
            sent: BTreeSet::new(),
            times: BTreeMap::new(),
        }
    }

    /// Records the reports that a pass touched, whether or not they may be written now.
    pub(super) fn note(&mut self, pass: &Pass) {
        self.due = std::mem::take(&mut self.due).and(pass.touched.clone());
    }

    /// Hands the results of a pass on to be written.
    pub(super) fn report(&mut self, view: &View, pass: &Pass) {
        let open = open_names(pass);
        let reports = self.due_reports(view, pass, !open.is_empty());
        self.due = Touched::default();
        reports.iter().for_each(|report| self.policy(view, report, &open));
        self.events(view, pass);
    }

    /// Takes note of what was not written, which a later pass tries again; the errors of the API server.
    pub(super) fn take_errors(&mut self) -> Vec<Error> {
        let mut errors = Vec::new();
        for Unwritten { write, error } in self.queue.take_unwritten() {
            let object = write.served.object;
            match write.content {
                ReportContent::Status(_) => {
                    self.written.remove(&object);
                    self.due.policies.insert(object);
                }
                ReportContent::Event(note, _) => _ = self.sent.remove(&(object, note.reason, note.text)),
            }
            errors.extend(error);
        }
        errors
    }

    /// The numbers of the queue.
    pub(super) fn numbers(&self) -> QueueNumbers {
        self.queue.numbers()
    }

    /// The reports whose status may differ from the written one.
    fn due_reports(&mut self, view: &View, pass: &Pass, has_open: bool) -> Vec<PolicyReport> {
        let had_open = std::mem::replace(&mut self.had_open, has_open);
        let are_all_due = has_open || had_open;
        let is_known = |policy: &ObjectRef| {
            self.written.get(policy).is_some_and(|(_, written)| *written == generation(view, policy))
        };
        let is_due =
            |report: &&PolicyReport| are_all_due || self.due.has_policy(&report.policy) || !is_known(&report.policy);
        pass.desired.read().policies.iter().filter(is_due).cloned().collect()
    }

    fn policy(&mut self, view: &View, report: &PolicyReport, open: &OpenNames) {
        let Some(served) = view.served(&report.policy) else { return };
        let generation = generation(view, &report.policy);
        let status = status(report, open, generation);
        if self.written.get(&report.policy).is_some_and(|(written, _)| *written == status) {
            return;
        }
        self.queue.push(ReportWrite { served, content: ReportContent::Status(status.clone()) });
        self.written.insert(report.policy.clone(), (status, generation));
    }

    /// The Events that were not written yet, up to the limit of each namespace. An Event whose cause ended may be written
    /// again when it returns.
    fn unsent_events(&mut self, pass: &Pass) -> Vec<(ObjectRef, EventNote)> {
        let (mut new, mut current) = (Vec::new(), BTreeSet::new());
        let mut by_namespace: BTreeMap<Str, usize> = BTreeMap::new();
        let desired = pass.desired.read();
        for (object, note) in notes(pass, &desired, &parents(pass, &desired)) {
            let key = (object, note.reason.clone(), note.text.clone());
            if self.sent.contains(&key) {
                current.insert(key);
                continue;
            }
            let count = by_namespace.entry(key.0.key.namespace.clone()).or_default();
            if *count < MOST_EVENTS && new.len() < MOST_QUEUED {
                *count += 1;
                new.push((key.0, note));
            }
        }
        self.sent = current;
        new
    }

    fn events(&mut self, view: &View, pass: &Pass) {
        let new = self.unsent_events(pass);
        self.times.retain(|event, _| self.sent.contains(event) || view.knows(&event.0));
        forget_oldest_texts(&mut self.times, &self.sent);
        for (object, note) in new {
            let Some(served) = view.served(&object) else { continue };
            let key = (object, note.reason.clone(), note.text.clone());
            let times = self.times.entry(key.clone()).or_default();
            *times += 1;
            self.queue.push(ReportWrite { served, content: ReportContent::Event(note, *times) });
            self.sent.insert(key);
        }
    }
}

/// Forgets how often Events were written of which an object has too many; those that last are kept.
fn forget_oldest_texts(times: &mut BTreeMap<EventKey, u64>, sent: &BTreeSet<EventKey>) {
    let mut counts: BTreeMap<ObjectRef, usize> = BTreeMap::new();
    times.retain(|event, _| {
        if sent.contains(event) {
            return true;
        }
        let count = counts.entry(event.0.clone()).or_default();
        *count += 1;
        *count <= MOST_TEXTS
    });
}

const PUBLISHED: &str = "HostnamePublished";

/// All Events of a pass: written, failed, withheld and held names, and certificates. There may be very many, so they
/// are returned one at a time.
fn notes<'a>(
    pass: &'a Pass,
    desired: &'a Desired,
    parents: &'a Parents<'a>,
) -> impl Iterator<Item = (ObjectRef, EventNote)> + 'a {
    let steps = pass.plan.steps.iter().enumerate().filter_map(|(i, step)| {
        let note = match pass.outcome.failed.get(&i) {
            Some(error) => warning("PublishFailed", format!("{} could not be published: {error}", step.name)),
            None if pass.outcome.written.contains(&i) => published(step),
            None => return None,
        };
        let parents = parents.get(&step.name).into_iter().flatten().cloned();
        let objects: BTreeSet<ObjectRef> = step.routes.iter().cloned().chain(parents).collect();
        Some(objects.into_iter().map(move |object| (object, note.clone())))
    });
    let withheld = desired.withheld.iter().filter(|withheld| matters(withheld.reason)).map(|withheld| {
        let text = format!("{} is not published ({}): {}", withheld.hostname, withheld.reason, withheld.message);
        (withheld.route.clone(), warning("HostnameWithheld", text))
    });
    let held = pass.plan.held.iter().filter(|held| matters(held.reason)).filter_map(|held| {
        let text = format!("{} is held ({}): {}", held.name, held.reason, held.message);
        Some((held.object.clone()?, warning("ChangeHeld", text)))
    });
    let unhealthy = desired.policies.iter().flat_map(|report| {
        report.addresses.iter().filter_map(|address| {
            let reason = address.publication.reason()?;
            let word = if reason == ADDRESS_UNHEALTHY { "AddressUnhealthy" } else { "AllAddressesUnhealthy" };
            Some((report.policy.clone(), warning(word, format!("{} ({reason})", address.message()))))
        })
    });
    let certificates = issuance::notes(pass, desired).into_iter().chain(issuance::refused(desired));
    certificates.chain(steps.flatten()).chain(withheld).chain(held).chain(unhealthy)
}

/// Gateways and ListenerSets by the name that their listeners serve.
type Parents<'a> = BTreeMap<&'a Str, Vec<ObjectRef>>;

/// The owners of listeners that serve the names of a plan's steps.
fn parents<'a>(pass: &'a Pass, desired: &Desired) -> Parents<'a> {
    let mut parents: Parents<'_> = pass.plan.steps.iter().map(|s| (&s.name, Vec::new())).collect();
    if parents.is_empty() {
        return parents;
    }
    for (name, owners) in &mut parents {
        let listeners = records_at(desired, name).iter().flat_map(|record| record.listeners.iter());
        owners.extend(listeners.map(|listener| listener.owner.clone()));
    }
    parents
}

fn matters(reason: Reason) -> bool {
    reason.row().severity <= Severity::Warning
}

fn published(step: &gatepost_core::plan::PlanStep) -> EventNote {
    let values = |change: &gatepost_core::plan::SetChange| {
        let values = change.new.as_ref().map(|new| new.values.join(", ")).unwrap_or_default();
        format!("{} {values}", change.kind)
    };
    let what: Vec<_> = step.changes.iter().filter(|change| change.new.is_some()).map(values).collect();
    let text = match step.verb {
        Verb::Delete => format!("{} is no longer published", step.name),
        Verb::Create | Verb::Update => format!("{} is published: {}", step.name, what.join("; ")),
    };
    EventNote { is_warning: false, reason: PUBLISHED.into(), action: "Publish", text }
}

fn warning(reason: &str, text: String) -> EventNote {
    EventNote { is_warning: true, reason: reason.into(), action: "Publish", text }
}

fn generation(view: &View, policy: &ObjectRef) -> Option<i64> {
    match policy.kind {
        Kind::DnsPolicy => view.snapshot().dns_policies.get(&policy.key)?.meta.generation,
        Kind::TlsPolicy => view.snapshot().tls_policies.get(&policy.key)?.meta.generation,
        _ => None,
    }
}

/// The status of a policy, without times; served names that could not be written are pending.
fn status(report: &PolicyReport, open: &OpenNames, generation: Option<i64>) -> Value {
    // A certificate does not depend on a record.
    let none = OpenNames::new();
    let open = if report.policy.kind == Kind::DnsPolicy { open } else { &none };
    let hostnames: Vec<HostnameReport> =
        report.hostnames.iter().map(|hostname| pending_if_open(hostname, open)).collect();
    let mut conditions = report.conditions.clone();
    if hostnames != report.hostnames {
        for condition in conditions.iter_mut().filter(|condition| &*condition.kind == "Enforced") {
            *condition = policy::status::enforced(&hostnames, "");
        }
    }
    let count = |word: &str| hostnames.iter().filter(|hostname| hostname.state.as_str() == word).count();
    let mut status = json!({
        "conditions": conditions.iter().map(|condition| view_of(condition, generation)).collect::<Vec<_>>(),
        "counts": {"served": count("served"), "pending": count("pending"), "skipped": count("skipped")},
        "hostnames": hostnames.iter().take(MOST_HOSTNAMES).map(hostname_view).collect::<Vec<_>>(),
    });
    let (addresses, unhealthy) = addresses(report);
    if let Some(unhealthy) = unhealthy {
        status["unhealthyAddresses"] = unhealthy.into();
        status["addresses"] = addresses.into();
    }
    status
}

/// The addresses that are probed, unhealthy ones first, as many as fit, and the number of unhealthy ones.
fn addresses(report: &PolicyReport) -> (Vec<Value>, Option<usize>) {
    let is_unhealthy = |address: &&AddressReport| address.state == HealthState::Unhealthy;
    let unhealthy = report.addresses.iter().filter(is_unhealthy);
    let others = report.addresses.iter().filter(|address| !is_unhealthy(address));
    let count = (!report.addresses.is_empty()).then(|| unhealthy.clone().count());
    let shown = unhealthy.chain(others).take(MOST_ADDRESSES);
    (shown.map(|address| serde_json::to_value(kept::status(address)).unwrap_or_default()).collect(), count)
}

/// Names that are wanted and not published, with the reason.
type OpenNames = BTreeMap<Str, (Reason, String)>;

/// Names that are wanted and not published: their step failed or is held.
fn open_names(pass: &Pass) -> OpenNames {
    let mut open = OpenNames::new();
    for provider in &pass.providers {
        let message = format!("the provider `{}` has not been compared since the name changed", provider.name);
        let reason = gatepost_core::reason::ZONE_UNREADABLE;
        open.extend(provider.waiting.iter().map(|name| (name.clone(), (reason, message.clone()))));
    }
    for held in pass.plan.held.iter().filter(|held| held.verb != Some(Verb::Delete)) {
        open.insert(held.name.clone(), (held.reason, held.message.clone()));
    }
    for (i, step) in pass.plan.steps.iter().enumerate().filter(|(_, step)| step.verb != Verb::Delete) {
        if let Some(error) = pass.outcome.failed.get(&i) {
            open.insert(step.name.clone(), (gatepost_core::reason::ZONE_UNREADABLE, error.to_string()));
        }
    }
    open
}

fn pending_if_open(hostname: &HostnameReport, open: &OpenNames) -> HostnameReport {
    match (hostname.state, open.get(&hostname.hostname)) {
        (HostnameState::Served, Some((reason, message))) => {
            HostnameReport { state: HostnameState::Pending(*reason), message: message.clone(), ..hostname.clone() }
        }
        _ => hostname.clone(),
    }
}

fn hostname_view(report: &HostnameReport) -> Value {
    let state = match report.state {
        HostnameState::Served => crds::HostnameState::Served,
        HostnameState::Pending(_) => crds::HostnameState::Pending,
        HostnameState::Skipped(_) => crds::HostnameState::Skipped,
    };
    let message: String = report.message.chars().take(LONGEST).collect();
    let view = crds::HostnameStatus {
        hostname: report.hostname.to_string(),
        listener: report.listener.to_string(),
        state,
        reason: report.state.reason().map(|reason| reason.name().to_owned()),
        message: (!message.is_empty()).then_some(message),
    };
    serde_json::to_value(view).unwrap_or_default()
}

fn view_of(condition: &model::Condition, generation: Option<i64>) -> Value {
    let message: String = condition.message.chars().take(32_000).collect();
    let mut view = json!({
        "type": &*condition.kind, "status": &*condition.status, "reason": &*condition.reason, "message": message,
    });
    if let Some(generation) = generation {
        view["observedGeneration"] = generation.into();
    }
    view
}

/// The status with times: a condition with an unchanged status keeps its time.
fn stamp(status: &Value, live: &Value) -> Value {
    let mut stamped = status.clone();
    let now = gatepost_kube::objects::now();
    let conditions = stamped["conditions"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let timed = conditions.into_iter().map(|mut condition| {
        let known =
            live["conditions"].as_array().into_iter().flatten().find(|known| known["type"] == condition["type"]);
        let kept = known.filter(|known| known["status"] == condition["status"]);
        let kept = kept.and_then(|known| known["lastTransitionTime"].as_str());
        condition["lastTransitionTime"] = kept.map_or_else(|| now.clone(), str::to_owned).into();
        condition
    });
    stamped["conditions"] = timed.collect();
    stamped
}

/// Whether every field of ours already has this value.
fn is_same(ours: &Value, live: &Value) -> bool {
    let sorted = |value: &Value| {
        let mut conditions: Vec<String> = value.as_array().into_iter().flatten().map(Value::to_string).collect();
        conditions.sort();
        conditions
    };
    let lists = |value: &Value| value.as_array().cloned().unwrap_or_default();
    sorted(&ours["conditions"]) == sorted(&live["conditions"])
        && ours["counts"] == live["counts"]
        && lists(&ours["hostnames"]) == lists(&live["hostnames"])
        && lists(&ours["addresses"]) == lists(&live["addresses"])
        && ours["unhealthyAddresses"] == live["unhealthyAddresses"]
}

#[cfg(test)]
mod tests {
    use gatepost_core::model::RouteKind;

    use super::*;

    #[test]
    fn of_one_object_so_many_texts_are_remembered_and_no_more() {
        let event = |name: &str, i: usize| {
            let object = ObjectRef::new(Kind::Route(RouteKind::Http), "shop", name);
            (object, "Published".to_owned(), format!("{i:04}"))
        };
        let all = (0..MOST_TEXTS * 3).map(|i| (event("loud", i), 1)).chain([(event("quiet", 0), 1)]);
        let mut times: BTreeMap<_, _> = all.collect();
        let sent = BTreeSet::from([event("loud", MOST_TEXTS * 3 - 1)]);
        forget_oldest_texts(&mut times, &sent);
        assert_eq!(times.len(), MOST_TEXTS + 2);
        assert!(times.contains_key(&event("quiet", 0)) && sent.iter().all(|event| times.contains_key(event)));
    }

    #[test]
    fn times_change_with_the_status_only() {
        let status =
            json!({"conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "b"}]});
        let old = "2026-01-01T00:00:00Z";
        let live = |word: &str| json!({"conditions": [{"type": "Accepted", "status": word, "reason": "x", "message": "a", "lastTransitionTime": old}]});
        assert_eq!(stamp(&status, &live("True"))["conditions"][0]["lastTransitionTime"], old);
        assert_ne!(stamp(&status, &live("False"))["conditions"][0]["lastTransitionTime"], old);
        let stamped = stamp(&status, &Value::Null);
        assert!(is_same(&stamped, &stamp(&status, &stamped)));
        assert!(!is_same(&stamped, &live("True")));
    }
}
