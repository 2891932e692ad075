//! A provider in memory, with preconditions and some bad habits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use gatepost_core::model::Str;
use gatepost_core::plan::{self, PlanStep, Precondition, RecordSet, SetChange, ZoneContent};
use gatepost_dns::provider::{Call, Capabilities, Provider, ProviderError, ProviderProblem, Result, Shared};

#[derive(Clone, Debug)]
pub(crate) struct Memory {
    zone: Str,
    sets: Arc<Mutex<BTreeMap<(Str, String), RecordSet>>>,
    refused: Option<String>,
    unreadable: bool,
    min_ttl: u32,
}

impl Memory {
    pub(crate) fn new(zone: &str, records: &[(&str, &str, &str)]) -> Memory {
        let set = |(name, kind, value): &(&str, &str, &str)| {
            ((Str::from(*name), (*kind).to_owned()), RecordSet::new(name, kind, Some(300), [*value]))
        };
        let sets = Arc::new(Mutex::new(records.iter().map(set).collect()));
        Memory { zone: zone.into(), sets, refused: None, unreadable: false, min_ttl: 0 }
    }

    pub(crate) fn refusing(self, name: &str) -> Memory {
        Memory { refused: Some(name.to_owned()), ..self }
    }

    pub(crate) fn unreadable(self) -> Memory {
        Memory { unreadable: true, ..self }
    }

    pub(crate) fn with_min_ttl(self, min_ttl: u32) -> Memory {
        Memory { min_ttl, ..self }
    }

    pub(crate) fn shared(&self) -> Shared {
        Arc::new(self.clone())
    }

    pub(crate) fn content(&self) -> ZoneContent {
        ZoneContent::new("", self.sets().values().cloned())
    }

    fn sets(&self) -> MutexGuard<'_, BTreeMap<(Str, String), RecordSet>> {
        self.sets.lock().unwrap()
    }

    fn carry_out(&self, step: &PlanStep) -> Result<()> {
        if self.refused.as_deref() == Some(&*step.name) {
            let (code, meaning) = ("REFUSED".to_owned(), "not this one".to_owned());
            return Err(ProviderError::new(ProviderProblem::Refused { code, meaning }).record(&step.name));
        }
        if let Some(broken) = step.preconditions().iter().find(|condition| !self.holds(condition)) {
            return Err(ProviderError::new(ProviderProblem::Stale(format!("{broken:?}"))));
        }
        step.changes.iter().chain(&step.markers).for_each(|change| self.change(change));
        Ok(())
    }

    fn holds(&self, condition: &Precondition) -> bool {
        let sets = self.sets();
        match condition {
            Precondition::Unused { name } => !sets.keys().any(|(other, _)| other == name),
            Precondition::Absent { name, kind, .. } => !sets.contains_key(&(name.clone(), kind.to_string())),
            Precondition::Equals { name, kind, values, .. } => {
                sets.get(&(name.clone(), kind.to_string())).is_some_and(|set| set.values == *values)
            }
        }
    }

    fn change(&self, change: &SetChange) {
        let key = (change.name.clone(), change.kind.to_string());
        match &change.new {
            None => drop(self.sets().remove(&key)),
            Some(new) => {
                let set = RecordSet::new(&change.name, change.kind.as_str(), new.ttl, new.values.clone());
                self.sets().insert(key, set);
            }
        }
    }
}

impl Provider for Memory {
    fn capabilities(&self) -> Capabilities {
        let plan = plan::Capabilities { min_ttl: self.min_ttl, ..plan::Capabilities::default() };
        Capabilities { plan, preconditions: true, types: &[] }
    }

    fn zones(&self) -> Call<'_, Result<Vec<Str>>> {
        Box::pin(async { Ok(vec![self.zone.clone()]) })
    }

    fn read<'a>(&'a self, _: &'a str) -> Call<'a, Result<ZoneContent>> {
        let failure = || ProviderError::new(ProviderProblem::Incomplete("told to fail".into()));
        Box::pin(async move { if self.unreadable { Err(failure()) } else { Ok(self.content()) } })
    }

    fn write<'a>(&'a self, _: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>> {
        Box::pin(async move { steps.iter().map(|step| self.carry_out(step)).collect() })
    }
}
