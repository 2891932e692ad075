//! Whether a write is allowed at the moment; checked for every single write.
//!
//! Three things must hold: we lead, writing is not frozen, and, if the provider checks preconditions, the zone still
//! contains our fencing token. A new leader writes its own token when it first reads a zone, so that the server itself
//! refuses late writes of an older leader, however long that was paused. What is written is never decided here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatepost_core::model::Str;
use gatepost_core::plan::{Content, PlanStep, Precondition, RecordSet, SetChange, Verb, ZoneChange, ZoneContent};
use gatepost_core::publication::{Record, RecordType};
use gatepost_dns::provider::{
    Call, Capabilities, ChangesSince as Since, Provider, ProviderError as Error, ProviderProblem as Problem, Result,
    Shared,
};
use gatepost_kube::lease::{FREEZE, LeaderState};
use tokio::sync::watch;

/// The annotation with the fencing token of the leader that wrote an object last.
pub(crate) const TERM: &str = "gatepost.dev/term";

/// Whether writes are allowed.
#[derive(Clone, Debug, Default)]
pub struct Permit {
    leader_state: Option<watch::Receiver<LeaderState>>,
    freeze_file: Option<PathBuf>,
    /// Whether only a freeze stops writing.
    needs_no_leader: bool,
    /// Which of several providers it is for.
    provider: Option<Str>,
}

impl Permit {
    /// Checks the leader state, if there is one, and a file that freezes writing while it exists.
    pub fn new(leader_state: Option<watch::Receiver<LeaderState>>, freeze_file: Option<PathBuf>) -> Permit {
        Permit { leader_state, freeze_file, needs_no_leader: false, provider: None }
    }

    /// The same for one of several providers, which can be frozen by itself.
    pub fn for_provider(self, name: &str) -> Permit {
        Permit { provider: Some(name.into()), ..self }
    }

    /// The same for what every replica writes for itself: only a freeze stops it.
    pub fn without_leader(self) -> Permit {
        Permit { needs_no_leader: true, ..self }
    }

    /// Why nothing may be written; `None` if writing is allowed.
    pub fn refusal(&self) -> Option<String> {
        self.frozen().or_else(|| self.not_leading())
    }

    /// Why writing is frozen, if so.
    pub fn frozen(&self) -> Option<String> {
        if let Some(path) = self.freeze_file.as_ref().filter(|path| path.exists()) {
            return Some(format!("writing is frozen: {} exists", path.display()));
        }
        let leader_state = self.leader_state.as_ref()?.borrow();
        let by = |annotation: &str, reason: &str| {
            format!("writing is frozen by the annotation {annotation} of the Lease: {reason}")
        };
        if let Some(reason) = &leader_state.frozen {
            return Some(by(FREEZE, reason));
        }
        let provider = self.provider.as_ref()?;
        let reason = leader_state.frozen_providers.get(&**provider)?;
        Some(by(&format!("{FREEZE}.{provider}"), reason))
    }

    /// Why writing to single providers is frozen.
    pub fn frozen_providers(&self) -> Vec<String> {
        let Some(leader_state) = &self.leader_state else { return Vec::new() };
        let frozen = leader_state.borrow().frozen_providers.clone();
        frozen.iter().map(|(name, reason)| format!("writing to the provider `{name}` is frozen: {reason}")).collect()
    }

    /// The digest by which held deletes were confirmed.
    pub fn confirmed(&self) -> Option<String> {
        self.leader_state.as_ref()?.borrow().confirmed.clone()
    }

    /// Whether we lead; true without an election.
    pub fn leads(&self) -> bool {
        self.leader_state.as_ref().is_none_or(|leader_state| leader_state.borrow().leads())
    }

    /// Why we do not lead, with the name of the leader.
    fn not_leading(&self) -> Option<String> {
        let leader_state = self.leader_state.as_ref().filter(|_| !self.needs_no_leader)?.borrow();
        (!leader_state.leads()).then(|| match (&*leader_state.holder, &leader_state.trouble) {
            (_, Some(error)) => format!("the Lease is not ours: {error}"),
            ("", None) => "the Lease is not ours yet".to_owned(),
            (holder, None) => format!("{holder} leads"),
        })
    }

    /// Our fencing token, while we may write.
    pub(super) fn current_token(&self) -> Option<String> {
        self.fencing_token().filter(|_| self.refusal().is_none())
    }

    /// Our fencing token.
    pub(crate) fn fencing_token(&self) -> Option<String> {
        let leader_state = self.leader_state.as_ref()?.borrow();
        leader_state.term.as_ref().map(|term| term.fencing_token.to_string())
    }
}

/// A provider whose writes check the permit and the fencing token.
#[derive(Debug)]
pub struct Guarded {
    inner: Shared,
    permit: Permit,
    /// The first label of the record with the token; `None` if the provider checks no preconditions.
    label: Option<String>,
    /// The token that was last written to each zone.
    written_tokens: Mutex<BTreeMap<Str, Str>>,
}

impl Guarded {
    /// Wraps a provider. `owner` is our owner id, which distinguishes our token record from others in the same zone; it
    /// is only given if zones are fenced.
    pub fn new(inner: Shared, permit: Permit, owner: Option<&str>) -> Guarded {
        let has_term = permit.leader_state.is_some() && inner.capabilities().preconditions;
        let label = owner.filter(|_| has_term).map(label);
        Guarded { inner, permit, label, written_tokens: Mutex::default() }
    }

    async fn fenced(&self, zone: &str, steps: &[PlanStep]) -> Vec<Result<()>> {
        if let Some(why) = self.permit.refusal() {
            return refused(steps, zone, &why);
        }
        let Some((name, value)) = self.permit.fencing_token().and_then(|token| self.fence(zone, &token)) else {
            return self.inner.write(zone, steps).await;
        };
        if let Err(error) = self.write_token(zone, &name, &value).await {
            return steps.iter().map(|_| Err(error.clone())).collect();
        }
        let guard = Precondition::Equals {
            name: name.clone(),
            kind: RecordType::Txt,
            set_identifier: None,
            values: vec![value.clone()],
        };
        let mut steps = steps.to_vec();
        steps.iter_mut().for_each(|step| step.guards.push(guard.clone()));
        let results = self.inner.write(zone, &steps).await;
        let is_stale =
            |result: &Result<()>| result.as_ref().is_err_and(|error| matches!(error.problem, Problem::Stale(_)));
        // A lost token fails every precondition, whatever name the server tells.
        match results.iter().all(is_stale) && self.put_back(zone, &name, &value).await {
            true => self.inner.write(zone, &steps).await,
            false => results,
        }
    }

    /// Writes our token again if the zone does not contain it although it was written; says whether that was done.
    async fn put_back(&self, zone: &str, name: &Str, value: &Str) -> bool {
        let Ok(content) = self.inner.read(zone).await else { return false };
        if holds_token(&content, name, value) || self.permit.current_token().is_none() {
            return false;
        }
        self.raise(zone, name, value).await
    }

    /// Writes our token to a zone that does not contain it. That it was lost is told.
    async fn raise(&self, zone: &str, name: &Str, value: &Str) -> bool {
        let was_written = self.written_tokens().remove(zone).as_ref() == Some(value);
        if was_written {
            tracing::warn!(
                zone,
                record = &**name,
                "the record that keeps other leaders from writing was removed or changed; it is written again"
            );
        }
        self.write_token(zone, name, value).await.is_ok()
    }

    /// Reads a zone. If it does not contain our token, that is written first: from then on the server refuses writes of
    /// older leaders, the first one included, and the read includes their earlier ones.
    async fn read_fenced(&self, zone: &str) -> Result<ZoneContent> {
        self.with_token(zone, self.inner.read(zone).await?).await
    }

    /// The changes of a zone. If our token is not in it, or somebody replaced the token, the whole zone must be read.
    async fn changed(&self, zone: &str, epoch: &str) -> Result<Since> {
        let fence = self.permit.current_token().and_then(|token| self.fence(zone, &token));
        let Some((name, value)) = fence else { return self.inner.since(zone, epoch).await };
        if self.written_tokens().get(zone) != Some(&value) {
            return Ok(Since::Unknown);
        }
        match self.inner.since(zone, epoch).await? {
            Since::Changed(changes) if changes.iter().any(|change| touches(change, &name)) => Ok(Since::Unknown),
            Since::Whole(content) => Ok(Since::Whole(self.with_token(zone, content).await?)),
            since => Ok(since),
        }
    }

    /// The content of a zone, read again if our token had to be written.
    async fn with_token(&self, zone: &str, content: ZoneContent) -> Result<ZoneContent> {
        let fence = self.permit.current_token().and_then(|token| self.fence(zone, &token));
        let Some((name, value)) = fence else { return Ok(content) };
        // If the token cannot be written, neither can anything else, which is reported then.
        if !holds_token(&content, &name, &value) && self.raise(zone, &name, &value).await {
            return self.inner.read(zone).await;
        }
        Ok(content)
    }

    /// Name and value of the record with a fencing token; `None` if zones are not fenced.
    fn fence(&self, zone: &str, token: &str) -> Option<(Str, Str)> {
        let label = self.label.as_ref()?;
        Some((format!("{label}.{zone}").into(), format!("\"heritage=gatepost,{token}\"").into()))
    }

    /// Writes our fencing token to the zone, unless it is there.
    async fn write_token(&self, zone: &str, name: &Str, value: &Str) -> Result<()> {
        if self.written_tokens().get(zone) == Some(value) {
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
        // Checked again, because the read may have taken long.
        if let Some(why) = self.permit.refusal() {
            return Err(not_permitted(why).zone(zone));
        }
        self.inner.write(zone, &[step]).await.into_iter().collect::<Result<()>>()?;
        self.written_tokens().insert(zone.into(), value.clone());
        Ok(())
    }

    fn written_tokens(&self) -> MutexGuard<'_, BTreeMap<Str, Str>> {
        self.written_tokens.lock().unwrap_or_else(PoisonError::into_inner)
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
        Box::pin(self.read_fenced(zone))
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

/// A provider without zones, for a controller that only reads.
#[derive(Debug)]
pub struct Nowhere;

impl Nowhere {
    /// The provider in an `Arc`.
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

/// Whether a zone contains a fencing token.
fn holds_token(content: &ZoneContent, name: &Str, value: &Str) -> bool {
    let is_token = |set: &RecordSet| set.name == *name && set.kind == RecordType::Txt.into();
    content.sets().iter().any(|set| is_token(set) && set.values == [value.clone()])
}

/// Whether a change concerns a name.
fn touches(change: &ZoneChange, name: &str) -> bool {
    change.gone.iter().chain(&change.come).any(|set| &*set.name == name)
}

fn refused(steps: &[PlanStep], zone: &str, why: &str) -> Vec<Result<()>> {
    steps.iter().map(|_| Err(not_permitted(why.to_owned()).zone(zone))).collect()
}

/// An error for a write that was not sent; it is not transient.
fn not_permitted(why: String) -> Error {
    Error::new(Problem::Refused { code: "not permitted".to_owned(), meaning: why })
}

/// The first label of the token record: readable, and different for each owner id.
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

    /// A zone that a server keeps as it is told, and what it was sent.
    #[derive(Debug, Default)]
    struct TestZone {
        sets: Mutex<BTreeMap<Str, Str>>,
    }

    impl Provider for TestZone {
        fn capabilities(&self) -> Capabilities {
            Capabilities { plan: Default::default(), preconditions: true, types: &[RecordType::A, RecordType::Txt] }
        }

        fn zones(&self) -> Call<'_, Result<Vec<Str>>> {
            Box::pin(async { Ok(vec![ZONE.into()]) })
        }

        fn read<'a>(&'a self, _: &'a str) -> Call<'a, Result<ZoneContent>> {
            let set = |(name, value): (Str, Str)| {
                let kind = if value.starts_with('"') { "TXT" } else { "A" };
                RecordSet::new(&name, kind, Some(60), [value])
            };
            let sets: Vec<_> = self.sets.lock().unwrap().clone().into_iter().map(set).collect();
            Box::pin(async move { Ok(ZoneContent::new("", sets)) })
        }

        fn write<'a>(&'a self, _: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>> {
            let mut sets = self.sets.lock().unwrap();
            let mut write = |step: &PlanStep| {
                let stands = |condition: &Precondition| match condition {
                    Precondition::Equals { name, values, .. } => sets.get(name) == values.first(),
                    Precondition::Absent { name, .. } | Precondition::Unused { name } => !sets.contains_key(name),
                };
                if !step.preconditions().iter().all(stands) {
                    return Err(Error::new(Problem::Stale(step.name.to_string())));
                }
                for change in &step.changes {
                    let new = change.new.as_ref().and_then(|new| new.values.first());
                    sets.insert(change.name.clone(), new.cloned().unwrap_or_default());
                }
                Ok(())
            };
            let results = steps.iter().map(&mut write).collect();
            Box::pin(async move { results })
        }
    }

    const ZONE: &str = "example.com";

    fn creation(name: &str) -> PlanStep {
        let new = Some(Content { values: vec!["192.0.2.1".into()], ..Content::default() });
        let change = SetChange { name: name.into(), kind: RecordType::A, set_identifier: None, old: None, new };
        PlanStep {
            zone: ZONE.into(),
            name: name.into(),
            verb: Verb::Create,
            changes: vec![change],
            markers: Vec::new(),
            guards: Vec::new(),
            because: String::new(),
            routes: Vec::new(),
            group: 0,
            after: Vec::new(),
        }
    }

    /// A provider of a replica that leads for a term, and the end of its leadership.
    fn leading(zone: &Arc<TestZone>, token: &str) -> (Guarded, watch::Sender<LeaderState>) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(600);
        let term = gatepost_kube::lease::Term { fencing_token: token.into(), until };
        let (tell, leader_state) = watch::channel(LeaderState { term: Some(term), ..LeaderState::default() });
        (Guarded::new(zone.clone(), Permit::new(Some(leader_state), None), Some("me")), tell)
    }

    fn fence_of(zone: &TestZone) -> Option<Str> {
        let sets = zone.sets.lock().unwrap();
        sets.iter().find(|(name, _)| name.starts_with("_gatepost-")).map(|(_, value)| value.clone())
    }

    /// Twenty names are written in between; each time somebody has removed or changed the token.
    #[tokio::test]
    async fn a_token_that_is_lost_is_put_back_and_writing_goes_on() {
        let zone = Arc::new(TestZone::default());
        let (provider, _leads) = leading(&zone, "term=1");
        provider.read(ZONE).await.unwrap();
        let fence = fence_of(&zone).expect("the first leader has its token in the zone before it writes");
        for i in 0..20 {
            let damage = [None, Some("\"somebody\""), Some("\"heritage=gatepost,term=0\"")][i % 3];
            zone.sets.lock().unwrap().retain(|name, _| !name.starts_with("_gatepost-"));
            if let Some(value) = damage {
                let (name, _) = provider.fence(ZONE, "term=1").unwrap();
                zone.sets.lock().unwrap().insert(name, value.into());
            }
            if i % 2 == 0 {
                provider.read(ZONE).await.unwrap();
                assert_eq!(fence_of(&zone).as_ref(), Some(&fence), "a read puts it back");
            }
            let results = provider.write(ZONE, &[creation(&format!("n{i}.example.com"))]).await;
            assert!(results.iter().all(Result::is_ok), "{i}: {results:?}");
            assert_eq!(fence_of(&zone).as_ref(), Some(&fence));
        }
        let taken = provider.write(ZONE, &[creation("n3.example.com")]).await;
        assert!(taken[0].as_ref().unwrap_err().to_string().contains("n3.example.com"), "a name that is there is told");
    }

    #[tokio::test]
    async fn a_first_leader_that_wakes_up_late_writes_nothing() {
        let zone = Arc::new(TestZone::default());
        let (first, _still) = leading(&zone, "term=1");
        let (second, _leads) = leading(&zone, "term=2");
        // The second has only read, and the first believes in its term.
        second.read(ZONE).await.unwrap();
        let fence = fence_of(&zone);
        assert!(fence.as_ref().unwrap().contains("term=2"));
        let (name, value) = first.fence(ZONE, "term=1").unwrap();
        first.written_tokens().insert(ZONE.into(), value);
        let step = PlanStep { guards: vec![], ..creation("late.example.com") };
        let guard = Precondition::Equals {
            name,
            kind: RecordType::Txt,
            set_identifier: None,
            values: vec!["\"heritage=gatepost,term=1\"".into()],
        };
        let late = PlanStep { guards: vec![guard], ..step };
        assert!(first.inner.write(ZONE, &[late]).await[0].is_err(), "what is on its way is refused by the server");
        assert_eq!(fence_of(&zone), fence);
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
        let own = permit.without_leader();
        assert!(own.refusal().unwrap().contains("rollout"), "a freeze stops what needs no leader");
        tell.send_modify(|leader_state| (leader_state.frozen, leader_state.term) = (None, None));
        assert_eq!(own.refusal(), None);
    }
}
