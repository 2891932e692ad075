//! The cost of a plan follows the number of names, counted in questions whether a name exists.

use super::model::*;
use crate::plan::answers::LOOKUPS;
use crate::plan::{Plan, PlanSettings};

/// Names in the departments of one domain, one in twenty of them a wildcard.
fn names(count: usize) -> TestIntent {
    let name = |n: usize| match n % 20 {
        0 => format!("*.team-{n}.shop.example.com"),
        1..=9 => format!("host-{n}.shop.example.com"),
        _ => format!("host-{n}.team-{}.shop.example.com", n / 20 * 20),
    };
    let address = |n: usize| format!("192.0.2.{}", n % 200);
    TestIntent::of(&(0..count).map(|n| record(&name(n), &[&address(n)])).collect::<Vec<_>>())
}

fn planned(model: &Model, wish: &TestIntent, settings: &PlanSettings) -> (usize, Plan) {
    LOOKUPS.set(0);
    let plan = model.plan(wish, settings);
    (LOOKUPS.get(), plan)
}

/// What plans of so many names ask: into an empty zone, into one whose every second name is foreign, into one that holds all
/// of them, for a world of which every second name is unknown, and for one of which most names are gone.
fn lookups(count: usize) -> [usize; 5] {
    let wish = names(count);
    let mut foreign = Model::of(&[]);
    for record in wish.records.iter().step_by(2) {
        foreign.put(&record.name, "A", &["198.51.100.1"]);
    }
    let mut filled = Model::of(&[]);
    filled.settle(&wish, &settings());
    let unknown = TestIntent {
        records: wish.records.iter().step_by(2).cloned().collect(),
        holds: wish.records.iter().skip(1).step_by(2).map(|record| hold(&record.name)).collect(),
        ..TestIntent::default()
    };
    let few = TestIntent::of(&wish.records[..count / 10]);
    let confirmed = PlanSettings { confirm_deletes: true, ..settings() };
    let (into_empty, plan) = planned(&Model::of(&[]), &wish, &settings());
    assert_eq!(plan.steps.len(), count);
    let (into_foreign, plan) = planned(&foreign, &wish, &settings());
    assert_eq!((plan.steps.len(), plan.held.len()), (count / 2, count / 2));
    let (into_filled, plan) = planned(&filled, &wish, &settings());
    assert_eq!(plan.steps.len(), 0);
    let (with_unknown, plan) = planned(&filled, &unknown, &settings());
    assert_eq!((plan.steps.len(), plan.held.len()), (0, count / 2));
    let (of_deletes, plan) = planned(&filled, &few, &confirmed);
    assert_eq!(plan.steps.len(), count - count / 10);
    [into_empty, into_foreign, into_filled, with_unknown, of_deletes]
}

#[test]
fn four_times_the_names_cost_four_times_as_much() {
    let (few, many) = (lookups(200), lookups(800));
    for (few, many) in few.into_iter().zip(many) {
        assert!(many <= 5 * few + 100, "{few} questions for 200 names and {many} for 800");
    }
}
