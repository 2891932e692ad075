//! What was written, failed, held or released lately, each with its cause: a bounded list.

use std::collections::{BTreeMap, VecDeque};

use gatepost_core::model::Str;
use gatepost_core::plan::Held;
use schemars::JsonSchema;
use serde::Serialize;

use crate::apply::Outcome;
use crate::certificates::now;
use crate::render::steps::change_line;
use crate::run::Pass;

/// More entries are not kept; the oldest go first.
const MOST: usize = 500;
/// More steps of one pass are told in one entry.
const MOST_OF_PASS: usize = 50;

/// The latest changes, oldest first.
#[derive(Debug, Default)]
pub struct ActivityLog {
    entries: VecDeque<ActivityEntry>,
    /// The number of the next entry.
    next: u64,
    /// What was held after the last pass, with the sentence.
    held: BTreeMap<HeldKey, String>,
    failed: BTreeMap<(Option<Str>, Str), String>,
}

/// The name, the reason, and the provider where there are several.
type HeldKey = (Str, &'static str, Option<Str>);

fn key_of(held: &Held) -> HeldKey {
    (held.name.clone(), held.reason.name(), held.provider.clone())
}

/// One change, or something that did not happen.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivityEntry {
    /// Counts entries, so that a reader knows where it stopped.
    pub number: u64,
    /// Seconds since 1970.
    pub at: i64,
    /// `written`, `failed`, `held`, `released` or `certificate`.
    pub kind: &'static str,
    /// The name, if it is about one.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: String,
    /// The provider, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What happened.
    pub text: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// The reason, if it is in the catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The objects behind it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
}

impl ActivityEntry {
    fn new(kind: &'static str, name: &str, text: String) -> Self {
        let (because, objects) = (String::new(), Vec::new());
        let (name, provider) = (name.to_owned(), None);
        ActivityEntry { number: 0, at: now(), kind, name, provider, text, because, reason: None, objects }
    }

    fn at(mut self, provider: Option<&Str>) -> Self {
        self.provider = provider.map(ToString::to_string);
        self
    }
}

impl ActivityLog {
    /// Adds what a pass did.
    pub fn take(&mut self, pass: &Pass) {
        self.take_steps(pass);
        self.take_held(pass);
        for news in &pass.news {
            self.push(ActivityEntry::new("certificate", "", format!("certificate {}: {}", news.secret, news.text)));
        }
    }

    /// The entries from a number on, newest first, that are about a name if one is given.
    pub fn since(&self, number: u64, name: Option<&str>) -> Vec<ActivityEntry> {
        let is_meant = |entry: &&ActivityEntry| entry.number >= number && name.is_none_or(|name| entry.name == name);
        self.entries.iter().rev().filter(is_meant).cloned().collect()
    }

    fn push(&mut self, entry: ActivityEntry) {
        let number = self.next;
        self.next += 1;
        self.entries.push_back(ActivityEntry { number, ..entry });
        if self.entries.len() > MOST {
            self.entries.pop_front();
        }
    }

    fn take_steps(&mut self, pass: &Pass) {
        let Outcome { written, failed, .. } = &pass.outcome;
        let mut still_failed = BTreeMap::new();
        let steps = pass.plan.steps.iter().enumerate();
        let done: Vec<_> = steps.filter(|(i, _)| written.contains(i) || failed.contains_key(i)).collect();
        for (i, step) in done.iter().take(MOST_OF_PASS) {
            let changes: Vec<String> = step.changes.iter().map(change_line).collect();
            let text = if changes.is_empty() { step.verb.as_str().to_owned() } else { changes.join("; ") };
            let provider = pass.provider_of_step(*i);
            let mut entry = ActivityEntry::new("written", &step.name, text).at(provider);
            entry.because.clone_from(&step.because);
            entry.objects = step.routes.iter().map(ToString::to_string).collect();
            if let Some(error) = failed.get(i) {
                let why = error.to_string();
                let key = (provider.cloned(), step.name.clone());
                let is_told = self.failed.get(&key) == Some(&why);
                still_failed.insert(key, why.clone());
                if is_told {
                    continue;
                }
                (entry.kind, entry.because) = ("failed", why);
            }
            self.push(entry);
        }
        if done.len() > MOST_OF_PASS {
            let text = format!("{} further names in the same pass", done.len() - MOST_OF_PASS);
            self.push(ActivityEntry::new("written", "", text));
        }
        self.failed = still_failed;
    }

    /// Tells what is newly held, and what is not held any more.
    fn take_held(&mut self, pass: &Pass) {
        let now_held: BTreeMap<HeldKey, String> =
            pass.plan.held.iter().map(|held| (key_of(held), held.message.clone())).collect();
        let before = std::mem::take(&mut self.held);
        let fresh = pass.plan.held.iter().filter(|held| !before.contains_key(&key_of(held)));
        for held in fresh.take(MOST_OF_PASS) {
            let mut entry = ActivityEntry::new("held", &held.name, held.message.clone()).at(held.provider.as_ref());
            entry.reason = Some(held.reason.name());
            entry.objects = held.object.iter().map(ToString::to_string).collect();
            self.push(entry);
        }
        for (name, reason, provider) in before.keys().filter(|key| !now_held.contains_key(*key)).take(MOST_OF_PASS) {
            let mut entry = ActivityEntry::new("released", name, "not held any more".to_owned()).at(provider.as_ref());
            entry.reason = Some(reason);
            self.push(entry);
        }
        self.held = now_held;
    }
}
