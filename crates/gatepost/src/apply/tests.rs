use std::collections::VecDeque;
use std::sync::Mutex;

use gatepost_core::model::Str;
use gatepost_core::plan::{Content, RecordSet, SetChange, Verb, ZoneContent};
use gatepost_core::publication::RecordType;
use gatepost_dns::provider::{Call, Capabilities, ProviderProblem as Problem, Result};

use super::*;

/// A zone of addresses, and what goes wrong with each write in turn.
#[derive(Debug, Default)]
struct Scripted {
    zone: Mutex<BTreeMap<Str, Str>>,
    script: Mutex<VecDeque<Mishap>>,
    writes: Mutex<Vec<usize>>,
}

#[derive(Clone, Debug)]
enum Mishap {
    /// Nothing is done.
    Refuses(Problem),
    /// Everything is done, and nobody says so.
    Loses,
    /// All but one name is done.
    RefusesName(&'static str, Problem),
    /// Nothing is done, for some time.
    Asks(Duration),
}

impl Provider for Scripted {
    fn capabilities(&self) -> Capabilities {
        Capabilities { plan: Default::default(), preconditions: true, types: &[RecordType::A] }
    }

    fn zones(&self) -> Call<'_, Result<Vec<Str>>> {
        Box::pin(async { Ok(vec!["example.com".into()]) })
    }

    fn read<'a>(&'a self, _: &'a str) -> Call<'a, Result<ZoneContent>> {
        let zone = self.zone.lock().unwrap().clone();
        let sets = zone.into_iter().map(|(name, value)| RecordSet::new(&name, "A", None, [value]));
        let content = ZoneContent::new("", sets);
        Box::pin(async move { Ok(content) })
    }

    fn write<'a>(&'a self, _: &'a str, steps: &'a [PlanStep]) -> Call<'a, Vec<Result<()>>> {
        Box::pin(async move {
            self.writes.lock().unwrap().push(steps.len());
            let mishap = self.script.lock().unwrap().pop_front();
            steps.iter().map(|step| self.one(step, mishap.as_ref())).collect()
        })
    }
}

impl Scripted {
    fn new(script: impl IntoIterator<Item = Mishap>) -> Self {
        Scripted { script: Mutex::new(script.into_iter().collect()), ..Scripted::default() }
    }

    fn one(&self, step: &PlanStep, mishap: Option<&Mishap>) -> Result<()> {
        match mishap {
            Some(Mishap::Refuses(problem)) => return Err(Error::new(problem.clone())),
            Some(Mishap::RefusesName(name, problem)) if &*step.name == *name => {
                return Err(Error::new(problem.clone()));
            }
            Some(Mishap::Asks(wait)) => {
                return Err(Error { retry_after: Some(*wait), ..Error::new(busy()) });
            }
            _ => {}
        }
        let mut zone = self.zone.lock().unwrap();
        if zone.contains_key(&step.name) {
            return Err(Error::new(Problem::Stale(step.name.to_string())));
        }
        zone.insert(step.name.clone(), "192.0.2.1".into());
        if matches!(mishap, Some(Mishap::Loses)) { Err(Error::new(Problem::Lost("cut".to_owned()))) } else { Ok(()) }
    }
}

fn busy() -> Problem {
    Problem::Failed { code: "status 429".to_owned(), meaning: "busy".to_owned() }
}

fn refusal() -> Problem {
    Problem::Refused { code: "REFUSED".to_owned(), meaning: "no".to_owned() }
}

/// Creates a name, after the steps at these positions.
fn create(name: &str, group: usize, after: &[usize]) -> PlanStep {
    let content = Content { values: vec!["192.0.2.1".into()], ..Content::default() };
    let change =
        SetChange { name: name.into(), kind: RecordType::A, set_identifier: None, old: None, new: Some(content) };
    PlanStep {
        zone: "example.com".into(),
        name: name.into(),
        verb: Verb::Create,
        changes: vec![change],
        markers: Vec::new(),
        guards: Vec::new(),
        because: String::new(),
        routes: Vec::new(),
        group,
        after: after.to_vec(),
    }
}

fn plan(steps: Vec<PlanStep>) -> Plan {
    Plan { steps, ..Plan::default() }
}

fn run(provider: &Scripted, plan: &Plan, mode: Mode) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(apply(provider, plan, mode, &mut |_, _| ()))
}

#[test]
fn observing_writes_nothing() {
    let provider = Scripted::default();
    let outcome = run(&provider, &plan(vec![create("a", 0, &[]), create("b", 1, &[])]), Mode::Observe);
    assert_eq!(outcome.skipped, [0, 1].into());
    assert!(provider.writes.lock().unwrap().is_empty());
}

#[test]
fn what_may_pass_is_tried_again_and_what_needs_a_person_is_not() {
    let steps = plan(vec![create("a", 0, &[])]);
    let unreachable = Problem::Unreachable("no route".to_owned());
    for (problem, writes, is_complete) in [(unreachable, 2, true), (busy(), 2, true), (refusal(), 1, false)] {
        let provider = Scripted::new([Mishap::Refuses(problem.clone())]);
        let outcome = run(&provider, &steps, Mode::Act);
        assert_eq!((provider.writes.lock().unwrap().len(), outcome.is_complete()), (writes, is_complete), "{problem}");
    }
}

#[test]
fn a_step_whose_answer_was_lost_is_looked_for_and_not_sent_twice() {
    let provider = Scripted::new([Mishap::Loses]);
    let outcome = run(&provider, &plan(vec![create("a", 0, &[]), create("b", 1, &[])]), Mode::Act);
    assert_eq!(outcome.written, [0, 1].into());
    assert_eq!(*provider.writes.lock().unwrap(), [2]);
}

#[test]
fn somebody_elses_change_in_between_is_left_to_the_next_plan() {
    let provider = Scripted::default();
    provider.zone.lock().unwrap().insert("a".into(), "198.51.100.9".into());
    let outcome = run(&provider, &plan(vec![create("a", 0, &[]), create("b", 1, &[])]), Mode::Act);
    assert_eq!((outcome.written, outcome.failed.keys().copied().collect()), ([1].into(), vec![0]));
    assert_eq!(provider.zone.lock().unwrap()[&Str::from("a")], "198.51.100.9".into());
}

#[test]
fn what_waits_for_a_failed_step_is_not_tried() {
    let provider = Scripted::new([Mishap::RefusesName("a", refusal())]);
    let steps = vec![create("a", 0, &[]), create("b", 1, &[]), create("c", 2, &[0]), create("d", 3, &[1])];
    let outcome = run(&provider, &plan(steps), Mode::Act);
    assert_eq!(outcome.failed.keys().copied().collect::<Vec<_>>(), [0]);
    assert_eq!((outcome.written, outcome.skipped), ([1, 3].into(), [2].into()));
}

#[test]
fn who_asks_for_an_hour_is_left_alone() {
    let provider = Scripted::new([Mishap::Asks(Duration::from_secs(3600))]);
    let outcome = run(&provider, &plan(vec![create("a", 0, &[])]), Mode::Act);
    assert_eq!((outcome.failed.len(), provider.writes.lock().unwrap().len()), (1, 1));
}

#[test]
fn a_pause_is_at_least_what_was_asked_for_and_never_the_same() {
    let asks = |seconds| Error { retry_after: Some(Duration::from_secs(seconds)), ..Error::new(busy()) };
    let errors = [asks(3), asks(7)];
    let waits: BTreeSet<Duration> = (0..50).map(|_| wait(PAUSE, errors.iter())).collect();
    assert!(waits.first().is_some_and(|shortest| *shortest >= Duration::from_secs(7)));
    assert!(waits.last().is_some_and(|longest| *longest <= Duration::from_secs(14)));
    assert!(waits.len() > 25, "{waits:?}");
}

#[test]
fn batches_end_at_zones_and_waits_but_never_inside_a_group() {
    let steps = vec![create("a", 0, &[]), create("b", 1, &[]), create("c", 2, &[1]), create("d", 2, &[])];
    assert_eq!(batch_end(&steps, 0), 2);
    assert_eq!(batch_end(&steps, 2), 4);
    let many: Vec<PlanStep> = (0..BATCH + 5).map(|i| create("x", i, &[])).collect();
    assert_eq!(batch_end(&many, 0), BATCH);
    let one_group: Vec<PlanStep> = (0..BATCH + 5).map(|_| create("x", 7, &[])).collect();
    assert_eq!(batch_end(&one_group, 0), BATCH + 5);
}
