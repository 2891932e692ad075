//! Whether a write may go out at this moment, asked with every single write.
//!
//! Three things must hold: we lead, nobody has frozen writing, and, where the provider checks preconditions, the zone still
//! carries the words of our term. Those words are the fence: a new leader writes its own when it first looks at a zone, so that
//! whatever an older one sends later, however long it was paused, is refused by the server itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatepost_core::model::Str;
use gatepost_core::plan::{Content, PlanStep, Precondition, SetChange, Verb, ZoneChange, ZoneContent};
use gatepost_core::publication::{Record, RecordType};
use gatepost_dns::provider::{
    Call, Capabilities, ChangesSince as Since, Provider, ProviderError as Error, ProviderProblem as Problem, Result,
    Shared,
};
use gatepost_kube::lease::LeaderState;
use tokio::sync::watch;

/// The annotation with the words of the leader who wrote an object last.
pub(crate) const TERM: &str = "gatepost.dev/term";

/// What may be written.
#[derive(Clone, Debug, Default)]
pub struct Permit {
    leader_state: Option<watch::Receiver<LeaderState>>,
    freeze_file: Option<PathBuf>,
}

impl Permit {
    /// Asks the Lease, where there is one, and a file that freezes while it exists.
    pub fn new(leader_state: Option<watch::Receiver<LeaderState>>, freeze_file: Option<PathBuf>) -> Permit {
        Permit { leader_state, freeze_file }
    }

    /// Why nothing may be written; nothing where it may.
    pub fn refusal(&self) -> Option<String> {
        self.frozen().or_else(|| self.followed())
    }

    /// Why writing is frozen.
    pub fn frozen(&self) -> Option<String> {
        if let Some(path) = self.freeze_file.as_ref().filter(|path| path.exists()) {
            return Some(format!("writing is frozen: {} exists", path.display()));
        }
        let leader_state = self.leader_state.as_ref()?.borrow();
        let reason = leader_state.frozen.as_ref()?;
        Some(format!("writing is frozen by the annotation {} of the Lease: {reason}", gatepost_kube::lease::FREEZE))
    }

    /// The word by which somebody has confirmed held deletes.
    pub fn confirmed(&self) -> Option<String> {
        self.leader_state.as_ref()?.borrow().confirmed.clone()
    }

    /// Whether we lead; also where there is no Lease.
    pub fn leads(&self) -> bool {
        self.leader_state.as_ref().is_none_or(|leader_state| leader_state.borrow().leads())
    }

    /// Who leads, where it is not us.
    fn followed(&self) -> Option<String> {
        let leader_state = self.leader_state.as_ref()?.borrow();
        (!leader_state.leads()).then(|| match (&*leader_state.holder, &leader_state.trouble) {
            (_, Some(error)) => format!("the Lease is not ours: {error}"),
            ("", None) => "the Lease is not ours yet".to_owned(),
            (holder, None) => format!("{holder} leads"),
        })
    }

    /// The words of our term, while we may write.
    pub(super) fn words_now(&self) -> Option<String> {
        self.words().filter(|_| self.refusal().is_none())
    }

    /// The words of our term.
    pub(crate) fn words(&self) -> Option<String> {
        let leader_state = self.leader_state.as_ref()?.borrow();
        leader_state.term.as_ref().map(|term| term.fencing_token.to_string())
    }
}

/// A provider behind the permit and the fence.
#[derive(Debug)]
pub struct Guarded {
    inner: Shared,
    permit: Permit,
    /// The first label of the record that holds the words; nothing where the provider checks no preconditions.
    label: Option<String>,
    /// The words that were last put into each zone.
    raised: Mutex<BTreeMap<Str, Str>>,
}

impl Guarded {
    /// Puts a provider behind the permit; `owner` is our owner id, which tells our fence from others' in the same zone, and is
    /// only given where zones are to be fenced.
    pub fn new(inner: Shared, permit: Permit, owner: Option<&str>) -> Guarded {
        let has_term = permit.leader_state.is_some() && inner.capabilities().preconditions;
        let label = owner.filter(|_| has_term).map(label);
        Guarded { inner, permit, label, raised: Mutex::default() }
    }

    async fn fenced(&self, zone: &str, steps: &[PlanStep]) -> Vec<Result<()>> {
        if let Some(why) = self.permit.refusal() {
            return refused(steps, zone, &why);
        }
        let Some((name, value)) = self.permit.words().and_then(|words| self.fence(zone, &words)) else {
            return self.inner.write(zone, steps).await;
        };
        if let Err(error) = self.raise(zone, &name, &value).await {
            return steps.iter().map(|_| Err(error.clone())).collect();
        }
        let guard = Precondition::Equals { name, kind: RecordType::Txt, set_identifier: None, values: vec![value] };
        let mut steps = steps.to_vec();
        steps.iter_mut().for_each(|step| step.guards.push(guard.clone()));
        self.inner.write(zone, &steps).await
    }

    /// Reads a zone. Where an older leader has put its words there, ours go in first: from then on nothing changes that it may
    /// still send, and what it has sent by then is read.
    async fn looked_at(&self, zone: &str) -> Result<ZoneContent> {
        self.claimed(zone, self.inner.read(zone).await?).await
    }

    /// What became of a zone. Where the words of our term are not in it, or somebody has put others there, it is to be read.
    async fn changed(&self, zone: &str, epoch: &str) -> Result<Since> {
        let fence = self.permit.words_now().and_then(|words| self.fence(zone, &words));
        let Some((name, value)) = fence else { return self.inner.since(zone, epoch).await };
        if self.raised().get(zone) != Some(&value) {
            return Ok(Since::Unknown);
        }
        match self.inner.since(zone, epoch).await? {
            Since::Changed(changes) if changes.iter().any(|change| touches(change, &name)) => Ok(Since::Unknown),
            Since::Whole(content) => Ok(Since::Whole(self.claimed(zone, content).await?)),
            since => Ok(since),
        }
    }

    /// A zone that was read, with the words of our term in it where there are any.
    async fn claimed(&self, zone: &str, content: ZoneContent) -> Result<ZoneContent> {
        let fence = self.permit.words_now().and_then(|words| self.fence(zone, &words));
        let Some((name, value)) = fence else { return Ok(content) };
        let is_fence = |set: &&gatepost_core::plan::RecordSet| set.name == name && set.kind == RecordType::Txt.into();
        let is_older = content.sets().iter().find(is_fence).is_some_and(|set| set.values != [value.clone()]);
        // Who cannot raise the fence cannot write either, and is told so then.
        if is_older && self.raise(zone, &name, &value).await.is_ok() {
            return self.inner.read(zone).await;
        }
        Ok(content)
    }

    /// Name and value of the record that holds the words of a term; nothing where zones are not fenced.
    fn fence(&self, zone: &str, words: &str) -> Option<(Str, Str)> {
        let label = self.label.as_ref()?;
        Some((format!("{label}.{zone}").into(), format!("\"heritage=gatepost,{words}\"").into()))
    }

    /// Puts the words of our term into the zone, unless they are there.
    async fn raise(&self, zone: &str, name: &Str, value: &Str) -> Result<()> {
        if self.raised().get(zone) == Some(value) {
            return Ok(());
        }
        let content = self.inner.read(zone).await?;
        let found = content.sets().iter().find(|set| set.name == *name && set.kind == RecordType::Txt.into());
        let new = Content { ttl: Some(60), values: vec![value.clone()], ..Content::default() };
        let old = found.map(Content::of);
        let verb = if old.is_some() { Verb::Update } else { Verb::Create };
        let change = SetChange { name: name.clone(), kind: RecordType::Txt, set_identifier: None, old, new: Some(new) };
        let step = PlanStep {
            zone: zone.into(),
            name: name.clone(),
            verb,
            changes: vec![change],
            markers: Vec::new(),
            guards: Vec::new(),
            because: "a new leader writes from here on".to_owned(),
            routes: Vec::new(),
            group: 0,
            after: Vec::new(),
        };
        // The permit is asked again: reading may have taken long.
        if let Some(why) = self.permit.refusal() {
            return Err(not_permitted(why).zone(zone));
        }
        self.inner.write(zone, &[step]).await.into_iter().collect::<Result<()>>()?;
        self.raised().insert(zone.into(), value.clone());
        Ok(())
    }

    fn raised(&self) -> MutexGuard<'_, BTreeMap<Str, Str>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for Guarded {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn zones(&self) -> Call<'_, Result<Vec<Str>>> {
        self.inner.zones()
    }

    fn read<'a>(&'a self, zone: &'a str) -> Call<'a, Result<ZoneContent>> {
        Box::pin(self.looked_at(zone))
    }

    fn since<'a>(&'a self, zone: &'a str, epoch: &'a str) -> Call<'a, Result<Since>> {
        Box::pin(self.changed(zone, epoch))
    }

    fn write<'a>(&'a self, zone: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>> {
        Box::pin(self.fenced(zone, steps))
    }

    fn adjusts(&self) -> bool {
        self.inner.adjusts()
    }

    fn adjust(&self, records: Vec<Record>) -> Call<'_, Result<Vec<Record>>> {
        self.inner.adjust(records)
    }
}

/// A provider without zones, for a controller that only looks.
#[derive(Debug)]
pub struct Nowhere;

impl Nowhere {
    /// Behind an `Arc`, as all providers are.
    pub fn shared() -> Shared {
        Arc::new(Nowhere)
    }
}

impl Provider for Nowhere {
    fn capabilities(&self) -> Capabilities {
        Capabilities { plan: Default::default(), preconditions: true, types: &[] }
    }

    fn zones(&self) -> Call<'_, Result<Vec<Str>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn read<'a>(&'a self, _zone: &'a str) -> Call<'a, Result<ZoneContent>> {
        Box::pin(async { Ok(ZoneContent::default()) })
    }

    fn write<'a>(&'a self, zone: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>> {
        Box::pin(async move { refused(steps, zone, "no provider is set") })
    }
}

/// Whether a change is about a name.
fn touches(change: &ZoneChange, name: &str) -> bool {
    change.gone.iter().chain(&change.come).any(|set| &*set.name == name)
}

fn refused(steps: &[PlanStep], zone: &str, why: &str) -> Vec<Result<()>> {
    steps.iter().map(|_| Err(not_permitted(why.to_owned()).zone(zone))).collect()
}

/// Nothing was sent, and trying again at once would not help.
fn not_permitted(why: String) -> Error {
    Error::new(Problem::Refused { code: "not permitted".to_owned(), meaning: why })
}

/// The first label of a fence: readable, and different for different owner ids.
fn label(owner: &str) -> String {
    let plain: String = owner.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
    let hash = owner.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("_gatepost-{}-{hash:08x}", plain.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_has_a_label_of_its_own_for_every_owner() {
        let long = "x".repeat(128);
        let labels = ["default", "Default!", "a", "-", &long].map(label);
        assert!(labels.iter().all(|label| label.len() <= 63 && label.starts_with("_gatepost-")));
        let distinct: std::collections::BTreeSet<_> = labels.iter().collect();
        assert_eq!(distinct.len(), labels.len());
    }

    #[test]
    fn without_a_lease_only_a_file_freezes() {
        let folder = gatepost_testkit::scratch::Scratch::new().unwrap();
        let permit = Permit::new(None, Some(folder.path().join("freeze")));
        assert_eq!(permit.refusal(), None);
        folder.file("freeze", "").unwrap();
        assert!(permit.refusal().unwrap().contains("exists"));
    }

    #[test]
    fn who_does_not_lead_writes_nothing() {
        let (tell, leader_state) = watch::channel(LeaderState { holder: "other".into(), ..LeaderState::default() });
        let permit = Permit::new(Some(leader_state), None);
        assert_eq!(permit.refusal().unwrap(), "other leads");
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let term = gatepost_kube::lease::Term { fencing_token: "term=1".into(), until };
        tell.send_replace(LeaderState { term: Some(term), ..LeaderState::default() });
        assert_eq!(permit.refusal(), None);
        tell.send_modify(|leader_state| leader_state.frozen = Some("rollout".into()));
        assert!(permit.refusal().unwrap().contains("rollout"));
    }
}
