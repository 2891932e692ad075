//! Worlds that random search found, each reduced to what matters.

use super::model::*;
use crate::plan::layout::Layout;
use crate::plan::settings::TxtRegistry;
use crate::plan::{PlanSettings, Registry};
use crate::reason;

/// Markers below the names they are for, a star replaced by `any`: the marker of `*.c` hides `any.c`.
fn settings_with_any() -> PlanSettings {
    let layout = Layout::new("%{record_type}-own.", "", "any").unwrap();
    PlanSettings::new(Registry::Txt(Box::new(TxtRegistry { layout, ..registry() })))
}

/// A zone with a wildcard of ours.
fn wild(settings: &PlanSettings) -> Model {
    let mut model = Model::of(&[]);
    model.settle(&TestIntent::of(&[record("*.example.com", &["192.0.2.1"])]), settings);
    model
}

#[test]
fn a_marker_does_not_hide_a_name_that_is_not_known() {
    let settings = settings_with_any();
    let mut model = wild(&settings);
    let before = model.clone();
    let wish = TestIntent {
        holds: vec![hold("any.c.example.com")],
        ..TestIntent::of(&[record("*.c.example.com", &["192.0.2.1"])])
    };
    let plan = model.settle(&wish, &settings);
    assert_eq!(model, before);
    let stopped = plan.held.iter().find(|held| *held.name == *"*.c.example.com").unwrap();
    assert_eq!((stopped.reason, stopped.cause), (reason::SOURCE_UNKNOWN, Some(reason::STATUS_MISSING)));
    assert!(stopped.message.contains("`any.c.example.com`"), "{}", stopped.message);
    // Once it is known, the wildcard is made.
    model.settle(&TestIntent { holds: Vec::new(), ..wish }, &settings);
    assert_eq!(model.values("*.c.example.com", "A"), ["192.0.2.1"]);
}

#[test]
fn a_name_above_does_not_hide_a_name_that_is_not_known() {
    let settings = settings_with_any();
    let mut model = wild(&settings);
    let records = [record("*.b.example.com", &["192.0.2.1"]), record("b.example.com", &["192.0.2.1"])];
    let plan =
        model.settle(&TestIntent { holds: vec![hold("any.b.example.com")], ..TestIntent::of(&records) }, &settings);
    assert_eq!(model.values("b.example.com", "A"), [""; 0]);
    assert!(held(&plan).contains(&"b.example.com source-unknown".to_owned()), "{:?}", plan.held);
}

#[test]
fn a_name_that_is_not_known_gets_records_of_its_own_where_it_can() {
    let mut model = wild(&settings());
    let wish = TestIntent {
        holds: vec![hold("x.b.example.com")],
        ..TestIntent::of(&[record("b.example.com", &["192.0.2.2"])])
    };
    model.settle(&wish, &settings());
    assert_eq!(model.values("b.example.com", "A"), ["192.0.2.2"]);
    assert_eq!(model.values("x.b.example.com", "A"), ["192.0.2.1"]);
}
