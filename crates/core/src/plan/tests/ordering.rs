//! Make before break, by RFC 4592.

use super::model::*;

#[test]
fn creates_come_before_deletes_and_wildcards_come_first_and_go_last() {
    let mut model = Model::of(&[]);
    let old = ["*.w.example.com", "a.b.w.example.com", "c.example.com", "*.v.w.example.com"];
    let stays = record("stays.example.com", &["192.0.2.1"]);
    model.settle(
        &TestIntent::of(&[old.map(|n| record(n, &["192.0.2.1"])).to_vec(), vec![stays.clone()]].concat()),
        &settings(),
    );
    let new = ["*.n.example.com", "x.y.n.example.com", "z.example.com"].map(|name| record(name, &["192.0.2.1"]));
    let plan = model.plan(&TestIntent::of(&[new.to_vec(), vec![stays]].concat()), &settings());
    assert_eq!(
        verbs(&plan),
        [
            "create *.n.example.com",
            "create z.example.com",
            "create x.y.n.example.com",
            "delete a.b.w.example.com",
            "delete c.example.com",
            "delete *.v.w.example.com",
            "delete *.w.example.com",
        ]
    );
}

#[test]
fn names_that_take_each_other_away_from_a_wildcard_are_one_group() {
    let mut model = Model::of(&[]);
    let wild = record("*.example.com", &["192.0.2.1"]);
    model.settle(&TestIntent::of(std::slice::from_ref(&wild)), &settings());
    let deep = ["b.example.com", "x.b.example.com", "q.example.com"].map(|name| record(name, &["192.0.2.1"]));
    let plan = model.plan(&TestIntent::of(&[deep.to_vec(), vec![wild]].concat()), &settings());
    assert_eq!(verbs(&plan), ["create b.example.com", "create q.example.com", "create x.b.example.com"]);
    let groups: Vec<usize> = plan.steps.iter().map(|step| step.group).collect();
    assert_eq!(groups, [0, 0, 0]);
}

#[test]
fn without_wildcards_every_step_is_its_own_group() {
    let names = ["b.example.com", "x.b.example.com"].map(|name| record(name, &["192.0.2.1"]));
    let plan = Model::of(&[]).plan(&TestIntent::of(&names), &settings());
    let groups: Vec<usize> = plan.steps.iter().map(|step| step.group).collect();
    assert_eq!(groups, [0, 1]);
}
