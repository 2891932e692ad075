//! What ought to exist, kept from pass to pass and brought up to date by patches.
//!
//! The loop and who tells of it over HTTP share one value: it is replaced by a pass that compared everything, and patched by
//! one that compared what changed, each time behind the write. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use gatepost_core::incremental::{Delta, DesiredPatch, Engine};
use gatepost_core::model::{Kind, ObjectRef};
use gatepost_core::plan::SightCache;
use gatepost_core::policy::PolicyReport;
use gatepost_core::publication::{Desired, Record};

/// Everything that ought to exist as of the last pass, for many readers.
#[derive(Clone, Debug, Default)]
pub struct SharedDesired(Arc<RwLock<Desired>>);

/// What a pass knows about what ought to exist.
#[derive(Debug)]
pub enum DesiredUpdate {
    /// All of it.
    Whole(Box<Desired>),
    /// What differs from the last pass.
    Part(Vec<DesiredPatch>),
}

/// Whose reports may differ from those of the last pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Whether everything was made again, so that anything may differ.
    pub everything: bool,
    /// Routes whose hostnames that get nothing may be others.
    pub withheld: BTreeSet<ObjectRef>,
    /// Policies whose reports may be others.
    pub policies: BTreeSet<ObjectRef>,
}

/// The desired state of a loop, and what is not yet in it.
#[derive(Debug, Default)]
pub struct DesiredCache {
    shared: SharedDesired,
    /// What changed since the last pass.
    pending: Vec<DesiredPatch>,
    /// Hostnames of which it is not known whether they ought to be gone.
    pub(super) sight: SightCache,
    /// Reports on TLSPolicies before anything is said of certificates.
    tls_reports: BTreeMap<ObjectRef, PolicyReport>,
    /// Whether what became of certificates was put into the reports.
    is_reflected: bool,
}

impl SharedDesired {
    /// The value at this moment. Nobody may wait for anything while holding it.
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
    /// Everything, where everything was made.
    pub fn whole(&self) -> Option<&Desired> {
        match self {
            DesiredUpdate::Whole(desired) => Some(desired),
            DesiredUpdate::Part(_) => None,
        }
    }

    /// Everything, where everything was made; otherwise nothing at all.
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
    /// Whether the report on a policy may differ.
    pub fn has_policy(&self, policy: &ObjectRef) -> bool {
        self.everything || self.policies.contains(policy)
    }

    /// What this pass and the next touched.
    pub fn and(mut self, next: Touched) -> Touched {
        self.everything |= next.everything;
        self.withheld.extend(next.withheld);
        self.policies.extend(next.policies);
        self
    }
}

impl DesiredCache {
    /// The value that readers share.
    pub fn shared(&self) -> &SharedDesired {
        &self.shared
    }

    /// Takes in what changed; it shows with the next update.
    pub fn note(&mut self, engine: &Engine, delta: &Delta) {
        if delta.is_empty() {
            return;
        }
        let patch = engine.patch(delta);
        patch.withheld.iter().for_each(|(route, withheld)| self.sight.update(route, withheld));
        self.pending.push(patch);
    }

    /// What a pass that compared a part shows.
    pub(super) fn part(&mut self) -> DesiredUpdate {
        DesiredUpdate::Part(std::mem::take(&mut self.pending))
    }

    /// What a pass that compared everything shows.
    pub(super) fn whole(&mut self, desired: Desired) -> DesiredUpdate {
        self.pending.clear();
        self.sight.reset(&desired.withheld);
        DesiredUpdate::Whole(Box::new(desired))
    }

    /// Shows what a pass knows. Reports on TLSPolicies stay as they are until [`DesiredCache::reflect`], once that was asked:
    /// no hostname is called served in between that has no certificate.
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

    /// Puts what became of certificates into the reports on TLSPolicies; gives the policies whose reports are others then.
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
