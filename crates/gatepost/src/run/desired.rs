//! The desired state, kept from pass to pass and updated by patches.
//!
//! The loop and the HTTP endpoints share one value. A pass that compared everything replaces it, a pass that compared
//! changes patches it, both after writing. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use gatepost_core::diagnostic::Diagnostic;
use gatepost_core::incremental::{Delta, DesiredPatch, Engine};
use gatepost_core::model::{Kind, ObjectRef};
use gatepost_core::plan::{Sight, SightCache};
use gatepost_core::policy::PolicyReport;
use gatepost_core::publication::{Desired, Record};
use gatepost_core::snapshot::Snapshot;

/// The desired state as of the last pass, for concurrent readers.
#[derive(Clone, Debug, Default)]
pub struct SharedDesired(Arc<RwLock<Desired>>);

/// The desired state that a pass used, or its difference from the last pass.
#[derive(Debug)]
pub enum DesiredUpdate {
    /// The whole desired state.
    Whole(Box<Desired>),
    /// Differences from the last pass.
    Part(Vec<DesiredPatch>),
}

/// The objects whose reports may differ from those of the last pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Whether everything was made again, so that any report may differ.
    pub everything: bool,
    /// Routes whose withheld hostnames may differ.
    pub withheld: BTreeSet<ObjectRef>,
    /// Policies whose reports may differ.
    pub policies: BTreeSet<ObjectRef>,
}

/// The desired state of a loop, with changes that are not yet applied.
#[derive(Debug, Default)]
pub struct DesiredCache {
    shared: SharedDesired,
    /// Changes since the last pass.
    pending: Vec<DesiredPatch>,
    /// Hostnames that are not known to be unwanted, and kinds that are not visible.
    pub(super) sight: SightCache,
    /// Reports of TLSPolicies before the state of certificates is added.
    tls_reports: BTreeMap<ObjectRef, PolicyReport>,
    /// Whether the state of certificates was added to the reports.
    is_reflected: bool,
}

impl SharedDesired {
    /// A read guard of the current value. It must not be held across an await.
    pub fn read(&self) -> RwLockReadGuard<'_, Desired> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Desired> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Desired> for SharedDesired {
    fn from(desired: Desired) -> Self {
        SharedDesired(Arc::new(RwLock::new(desired)))
    }
}

impl DesiredUpdate {
    /// The desired state, if it was made as a whole.
    pub fn whole(&self) -> Option<&Desired> {
        match self {
            DesiredUpdate::Whole(desired) => Some(desired),
            DesiredUpdate::Part(_) => None,
        }
    }

    /// The desired state, if it was made as a whole; otherwise an empty one.
    pub fn into_whole(self) -> Desired {
        match self {
            DesiredUpdate::Whole(desired) => *desired,
            DesiredUpdate::Part(_) => Desired::default(),
        }
    }

    fn touched(&self) -> Touched {
        let DesiredUpdate::Part(patches) = self else { return Touched { everything: true, ..Touched::default() } };
        let withheld = patches.iter().flat_map(|patch| &patch.withheld).map(|(route, _)| route.clone());
        let policies = patches.iter().flat_map(|patch| &patch.policies).map(|(policy, _)| policy.clone());
        Touched { everything: false, withheld: withheld.collect(), policies: policies.collect() }
    }
}

impl Touched {
    /// Whether the report of a policy may differ.
    pub fn has_policy(&self, policy: &ObjectRef) -> bool {
        self.everything || self.policies.contains(policy)
    }

    /// The union of what this pass and the next touched.
    pub fn and(mut self, next: Touched) -> Touched {
        self.everything |= next.everything;
        self.withheld.extend(next.withheld);
        self.policies.extend(next.policies);
        self
    }
}

impl DesiredCache {
    /// The shared value.
    pub fn shared(&self) -> &SharedDesired {
        &self.shared
    }

    /// Records changes; they become visible with the next update.
    pub fn note(&mut self, engine: &Engine, delta: &Delta) {
        if delta.is_empty() {
            return;
        }
        let patch = engine.patch(delta);
        patch.withheld.iter().for_each(|(route, withheld)| self.sight.update(route, withheld));
        self.pending.push(patch);
    }

    /// What could not be seen or is not known, as of the changes that were recorded.
    pub fn sight(&mut self, snapshot: &Snapshot, problems: &[Diagnostic]) -> Sight {
        self.sight.sight(snapshot, problems)
    }

    /// The update of a pass that compared a part.
    pub fn part(&mut self) -> DesiredUpdate {
        DesiredUpdate::Part(std::mem::take(&mut self.pending))
    }

    /// The update of a pass that compared everything.
    pub fn whole(&mut self, desired: Desired) -> DesiredUpdate {
        self.pending.clear();
        self.sight.reset(&desired.withheld);
        DesiredUpdate::Whole(Box::new(desired))
    }

    /// Publishes an update to readers. Reports of TLSPolicies stay unchanged until [`DesiredCache::reflect`], once that
    /// was called: otherwise a hostname without a certificate would be shown as served in between.
    pub(super) fn commit(&mut self, update: DesiredUpdate) -> Touched {
        let touched = update.touched();
        let mut shown = self.shared.write();
        match update {
            DesiredUpdate::Whole(desired) => {
                let before = std::mem::replace(&mut *shown, *desired);
                self.tls_reports = tls_reports(&shown);
                if self.is_reflected {
                    set_tls_reports(&mut shown, tls_reports(&before));
                }
            }
            DesiredUpdate::Part(patches) => patches.into_iter().for_each(|mut patch| {
                let policies = std::mem::take(&mut patch.policies);
                let (tls, others) = policies.into_iter().partition(|(policy, _)| policy.kind == Kind::TlsPolicy);
                patch.policies = others;
                patch.apply(&mut shown);
                for (policy, report) in tls {
                    match report {
                        Some(report) => _ = self.tls_reports.insert(policy, report),
                        None => _ = self.tls_reports.remove(&policy),
                    }
                }
            }),
        }
        touched
    }

    /// Adds the state of certificates to the reports of TLSPolicies, and returns the policies whose reports changed.
    pub fn reflect(&mut self, reflect: impl FnOnce(&mut Desired)) -> BTreeSet<ObjectRef> {
        self.is_reflected = true;
        let mut shown = self.shared.write();
        let before = tls_reports(&shown);
        if before.is_empty() && self.tls_reports.is_empty() {
            return BTreeSet::new();
        }
        set_tls_reports(&mut shown, self.tls_reports.clone());
        reflect(&mut shown);
        let after = tls_reports(&shown);
        let policies = before.keys().chain(after.keys());
        policies.filter(|policy| before.get(*policy) != after.get(*policy)).cloned().collect()
    }
}

/// The records of one name.
pub fn records_at<'a>(desired: &'a Desired, name: &str) -> &'a [Record] {
    let records = &desired.records;
    let first = records.partition_point(|record| &*record.name < name);
    let last = records.partition_point(|record| &*record.name <= name);
    &records[first..last]
}

fn tls_reports(desired: &Desired) -> BTreeMap<ObjectRef, PolicyReport> {
    let reports = desired.policies.iter().filter(|report| report.policy.kind == Kind::TlsPolicy);
    reports.map(|report| (report.policy.clone(), report.clone())).collect()
}

fn set_tls_reports(desired: &mut Desired, reports: BTreeMap<ObjectRef, PolicyReport>) {
    desired.policies.retain(|report| report.policy.kind != Kind::TlsPolicy);
    desired.policies.extend(reports.into_values());
    desired.policies.sort_by(|a, b| a.policy.cmp(&b.policy));
}
