//! The answers of `/api/v1` about objects alone, made all at once: what a report in one file shows without a server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use gatepost_core::attachment::Topology;
use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::explain::NameHealth;
use gatepost_core::names::Hostname;
use gatepost_core::publication::Desired;
use gatepost_core::reason::Reason;
use gatepost_core::snapshot::Snapshot;
use serde_json::{Value, json};

use super::names::Explainer;
use super::{NamesIndex, PassFacts, ProgramFacts, ServerFacts, WorldCopy, one_name};
use crate::certificates::now;
use crate::render;
use crate::view::api::{CertificatesView, HealthView, OverviewView, PlanStepsView, ReasonPageView, ZonesView};
use crate::view::explain::ReasonView;
use crate::view::flow::{FlowFilter, FlowView};

/// Names that are explained in full; what does not work comes first.
const MOST_EXPLAINED: usize = 2000;

/// All answers by their path, and how many names have which health.
pub struct ReportAnswers {
    /// The answers.
    pub answers: Value,
    /// How many names there are.
    pub names: usize,
    /// How many of them are wrong.
    pub wrong: usize,
}

/// The answers about objects that were read, without any zone.
pub fn answers(
    snapshot: Snapshot,
    topology: Topology,
    desired: Desired,
    problems: Vec<Diagnostic>,
) -> Result<ReportAnswers, serde_json::Error> {
    let pass = Arc::new(PassFacts { generation: 1, ended: now(), problems, ..PassFacts::default() });
    let (report, namespaces) = (OnceLock::new(), OnceLock::new());
    let world = WorldCopy { snapshot, topology, desired, pass: pass.clone(), report, namespaces };
    let names = NamesIndex::of(&world);
    let facts = ProgramFacts { command: "report", ..ProgramFacts::default() };
    let notes = vec!["made from the objects alone: no zone and no server was asked".to_owned()];
    let server = ServerFacts { notes, ..ServerFacts::default() };
    let everything = FlowFilter { gateway: None, namespace: None, is_seen: &|_| true, has_idle: true };
    let mut all: BTreeMap<String, Value> = BTreeMap::new();
    let overview = OverviewView::of(&world, &pass, &names, &facts, &server, None);
    all.insert("overview".to_owned(), serde_json::to_value(overview)?);
    all.insert("names".to_owned(), serde_json::to_value(names.whole())?);
    all.insert("plan".to_owned(), serde_json::to_value(PlanStepsView::of(&pass, 0, usize::MAX))?);
    all.insert("certificates".to_owned(), serde_json::to_value(CertificatesView::of(&world, &|_| true))?);
    all.insert("health".to_owned(), serde_json::to_value(HealthView::of(&world))?);
    all.insert("zones".to_owned(), serde_json::to_value(ZonesView::of(&world, None))?);
    all.insert("flow".to_owned(), serde_json::to_value(FlowView::of(&world, &everything))?);
    explain(&world, &pass, &names, &mut all)?;
    let mut found = BTreeSet::new();
    all.values().for_each(|answer| reasons(answer, &mut found));
    for reason in found.iter().filter_map(|name| Reason::find(name)) {
        let view = ReasonPageView { reason: ReasonView::of(reason), page: render::reason::page(reason) };
        all.insert(format!("reasons/{}", reason.name()), serde_json::to_value(view)?);
    }
    let wrong = names.rows.iter().filter(|row| row.health == NameHealth::Wrong).count();
    Ok(ReportAnswers { answers: json!(all), names: names.rows.len(), wrong })
}

/// Adds the answer about each name; what is stored is not known.
fn explain(
    world: &WorldCopy,
    pass: &PassFacts,
    names: &NamesIndex,
    all: &mut BTreeMap<String, Value>,
) -> Result<(), serde_json::Error> {
    let mut explainer = Explainer::new(world);
    let mut rows: Vec<_> = names.rows.iter().collect();
    rows.sort_by_key(|row| row.health);
    for row in rows.into_iter().take(MOST_EXPLAINED) {
        let Ok(hostname) = Hostname::parse(&row.hostname) else { continue };
        let mut answer = serde_json::to_value(one_name::view_with(&mut explainer, world, pass, Vec::new(), &hostname))?;
        let sets = answer.get_mut("recordSets").and_then(Value::as_array_mut);
        sets.into_iter().flatten().for_each(|set| set["stored"] = Value::Null);
        all.insert(format!("names/{}", row.hostname), answer);
    }
    Ok(())
}

/// The names of all reasons in an answer.
fn reasons(answer: &Value, found: &mut BTreeSet<String>) {
    match answer {
        Value::Array(items) => items.iter().for_each(|item| reasons(item, found)),
        Value::Object(fields) => {
            found.extend(fields.get("reason").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| reasons(value, found));
        }
        _ => {}
    }
}
