//! Who keeps a zone: reads, plans, writes, as often as it takes. A read that fails is an unreadable zone, never an empty one.

use gatepost_core::plan::layout::Layout;
use gatepost_core::plan::{
    self, Instance, Intent, Observed, OwnedSets, Plan, PlanSettings, PlanStep, Registry, TxtRegistry, ZoneState,
};
use gatepost_core::publication::Record;
use gatepost_dns::provider::{Result, Shared};

/// What a zone is to hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    pub(crate) records: Vec<Record>,
    pub(crate) covered: Vec<Record>,
    pub(crate) challenges: Vec<Record>,
}

pub(crate) struct Keeper {
    zone: String,
    provider: Shared,
    instance: String,
    /// What the names of markers begin with.
    pub(crate) txt_prefix: &'static str,
    /// Whether what the brakes hold is confirmed.
    pub(crate) confirms: bool,
    /// Whether each step is sent by itself.
    pub(crate) one_by_one: bool,
    remembered: OwnedSets,
}

/// What one pass did.
pub(crate) struct Pass {
    pub(crate) plan: Plan,
    pub(crate) results: Vec<Result<()>>,
}

impl Keeper {
    pub(crate) fn new(zone: &str, provider: Shared) -> Keeper {
        let (zone, instance) = (zone.to_owned(), "one".to_owned());
        let (confirms, one_by_one, remembered) = (true, false, OwnedSets::new());
        Keeper { zone, provider, instance, txt_prefix: "", confirms, one_by_one, remembered }
    }

    /// Another instance with the same owner id.
    pub(crate) fn twin(zone: &str, provider: Shared) -> Keeper {
        Keeper { instance: "two".to_owned(), ..Keeper::new(zone, provider) }
    }

    /// The same keeper, whose way to the zone is another one now.
    pub(crate) fn through(&mut self, provider: Shared) {
        self.provider = provider;
    }

    /// Reads and plans.
    pub(crate) async fn plan(&mut self, wish: &Wish) -> Plan {
        let mut registry = TxtRegistry::new("me", Instance::new(&self.instance));
        registry.layout = Layout::new(self.txt_prefix, "", "any").unwrap();
        let mut settings = PlanSettings::new(Registry::Txt(Box::new(registry)));
        settings.capabilities = self.provider.capabilities().plan;
        settings.confirm_deletes = self.confirms;
        let mut observed = Observed::default();
        let state = match self.provider.read(&self.zone).await {
            Ok(content) => ZoneState::Read(content),
            Err(error) => ZoneState::Unreadable(error.to_string()),
        };
        observed.insert(&self.zone, state);
        let records = self.adjusted(&wish.records).await;
        let covered = self.adjusted(&wish.covered).await;
        let intent = Intent {
            records: &records,
            covered: &covered,
            challenges: &wish.challenges,
            retired: &[],
            holds: &[],
            unseen: &[],
            remembered: &self.remembered,
        };
        let plan = plan::decide(&intent, &observed, &settings);
        self.remembered.extend(plan.ours.clone());
        plan
    }

    /// Records as the provider keeps them. One that cannot say how cannot be read either.
    async fn adjusted(&self, records: &[Record]) -> Vec<Record> {
        self.provider.adjust(records.to_vec()).await.unwrap_or_else(|_| records.to_vec())
    }

    /// Reads, plans and writes once.
    pub(crate) async fn pass(&mut self, wish: &Wish) -> Pass {
        let plan = self.plan(wish).await;
        let results = self.write(&plan.steps).await;
        Pass { plan, results }
    }

    /// Goes on until there is nothing to do; every write must succeed. Gives back the last plan.
    pub(crate) async fn settle(&mut self, wish: &Wish) -> Plan {
        for _ in 0..4 {
            let pass = self.pass(wish).await;
            if pass.plan.steps.is_empty() {
                return pass.plan;
            }
            pass.results.iter().for_each(|result| result.clone().unwrap());
        }
        panic!("there is always something to do: {:#?}", self.plan(wish).await.steps);
    }

    /// Goes on until only so many steps are left, which cannot be written. Gives back the plan that holds them.
    pub(crate) async fn settle_all_but(&mut self, wish: &Wish, left: usize) -> Plan {
        for _ in 0..5 {
            let pass = self.pass(wish).await;
            if pass.plan.steps.len() == left {
                return pass.plan;
            }
        }
        panic!("more than {left} are left: {:#?}", self.plan(wish).await.steps);
    }

    /// Writes steps in waves: none before those it waits for, none whose forerunner failed.
    pub(crate) async fn write(&self, steps: &[PlanStep]) -> Vec<Result<()>> {
        let mut results: Vec<Option<Result<()>>> = vec![None; steps.len()];
        loop {
            let is_done = |at: &usize| matches!(results[*at], Some(Ok(())));
            let is_ready = |at: &usize| results[*at].is_none() && steps[*at].after.iter().all(is_done);
            let mut ready: Vec<usize> = (0..steps.len()).filter(is_ready).collect();
            if self.one_by_one {
                // Steps of one group are one transaction.
                let first = ready.first().map(|at| steps[*at].group);
                ready.retain(|at| Some(steps[*at].group) == first);
            }
            if ready.is_empty() {
                break;
            }
            let wave: Vec<PlanStep> = ready.iter().map(|at| steps[*at].clone()).collect();
            let done = self.provider.write(&self.zone, &wave).await;
            ready.into_iter().zip(done).for_each(|(at, result)| results[at] = Some(result));
        }
        results.into_iter().flatten().collect()
    }
}
