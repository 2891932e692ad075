//! TXT values of certificate orders, beside those of others.

use super::model::*;
use crate::plan::{PlanSettings, Policy, Registry};

const NAME: &str = "_acme-challenge.www.example.com";

fn wish(values: &[&str]) -> TestIntent {
    let challenges = if values.is_empty() { Vec::new() } else { vec![challenge(NAME, values)] };
    TestIntent { challenges, ..TestIntent::of(&[record("www.example.com", &["192.0.2.1"])]) }
}

#[test]
fn values_come_and_go_beside_those_of_others() {
    for policy in [Policy::Sync, Policy::UpsertOnly, Policy::CreateOnly] {
        let settings = PlanSettings { policy, ..settings() };
        let mut model = Model::of(&[(NAME, "TXT", &["\"theirs\" \"split\""])]);
        model.settle(&wish(&["one", "two"]), &settings);
        assert_eq!(model.values(NAME, "TXT"), ["\"one\"", "\"theirssplit\"", "\"two\""]);
        let key = |model: &Model| model.sets.iter().find(|((name, _, _), _)| &**name == NAME).map(|(_, c)| c.clone());
        assert!(key(&model).unwrap().values.contains(&"\"theirs\" \"split\"".into()), "written back as it was read");
        model.settle(&wish(&["two", "three"]), &settings);
        assert_eq!(model.values(NAME, "TXT"), ["\"theirssplit\"", "\"three\"", "\"two\""]);
        let plan = model.settle(&wish(&[]), &settings);
        assert!(plan.held.is_empty());
        assert_eq!(model.values(NAME, "TXT"), ["\"theirssplit\""]);
        assert_eq!(model.sets.len(), 2 + 2 + 1, "{model:?}");
    }
}

#[test]
fn a_set_of_our_own_goes_with_its_last_value() {
    let mut model = Model::of(&[]);
    model.settle(&wish(&["one"]), &settings());
    model.settle(&wish(&[]), &settings());
    assert_eq!(model.sets.len(), 2 + 2);
}

#[test]
fn without_a_registry_what_the_caller_put_there_is_taken_away() {
    for registry in [Registry::Noop, Registry::WholeZone] {
        let settings = PlanSettings::new(registry);
        let mut model = Model::of(&[]);
        model.settle(&wish(&["one"]), &settings);
        assert_eq!(model.values(NAME, "TXT"), ["\"one\""]);
        model.settle(&TestIntent { retired: vec![challenge(NAME, &["one"])], ..wish(&[]) }, &settings);
        assert_eq!(model.values(NAME, "TXT"), [""; 0]);
    }
}

#[test]
fn a_cname_keeps_a_challenge_away() {
    let model = Model::of(&[(NAME, "CNAME", &["elsewhere."])]);
    assert_eq!(held(&model.plan(&wish(&["one"]), &settings())), [format!("{NAME} type-clash")]);
}

#[test]
fn a_challenge_makes_the_name_above_it_explicit_first() {
    let mut model = Model::of(&[]);
    let wild = record("*.example.com", &["192.0.2.1"]);
    model.settle(&TestIntent::of(std::slice::from_ref(&wild)), &settings());
    let covered = vec![record("www.example.com", &["192.0.2.1"]), record("ftp.example.com", &["192.0.2.1"])];
    let wish = TestIntent { covered, challenges: vec![challenge(NAME, &["one"])], ..TestIntent::of(&[wild]) };
    assert_eq!(verbs(&model.plan(&wish, &settings())), ["create www.example.com", &format!("create {NAME}")]);
    model.settle(&wish, &settings());
    let plan = model.settle(&TestIntent { challenges: Vec::new(), ..wish }, &settings());
    assert!(plan.held.is_empty());
    assert_eq!(model.values("www.example.com", "A"), [""; 0]);
}
