//! One batch of changes by id, made from steps and a fresh reading.
//!
//! The service carries out deletes first, then patches, then posts, whatever the order in the body. So a set that changes is
//! patched as far as it has records to patch, and is never without one; and what only takes away has a batch of its own, after
//! those that add.

use gatepost_core::plan::{Content, SetChange};

use super::adjust::{kept_ttl, tags};
use super::records::{AUTOMATIC, COMMENT, PROXIED, TAGS, has_properties};
use super::wire::{ApiRecord, BatchBody, RecordBody, RecordId};
use crate::provider::look::spelled;
use crate::provider::{Unit, data};

/// Changes in one batch; the least of what the plans of the service allow.
pub(super) const MOST: usize = 200;

/// Steps in the parts that are sent one after the other: none has too many changes, and none both adds and takes away.
pub(super) fn parts<'u, 'a>(units: &'u [Unit<'a>]) -> Vec<&'u [Unit<'a>]> {
    let (mut parts, mut rest) = (Vec::new(), units);
    while let Some(first) = rest.first() {
        // A unit that is too large by itself is sent alone; the service has the last word.
        let (mut length, mut total) = (1, weight(first));
        for unit in &rest[1..] {
            total += weight(unit);
            if total > MOST || only_removes(unit) != only_removes(first) {
                break;
            }
            length += 1;
        }
        let (part, after) = rest.split_at(length);
        parts.push(part);
        rest = after;
    }
    parts
}

/// Adds one change, given the records of its set.
pub(super) fn add(change: &SetChange, present: &[ApiRecord], batch: &mut BatchBody) {
    let Some(new) = &change.new else {
        batch.deletes.extend(present.iter().map(|record| RecordId { id: record.id.clone() }));
        return;
    };
    let kind = change.kind.as_str();
    let is_value = |record: &ApiRecord, value: &str| spelled(kind, &record.value()) == spelled(kind, value);
    let mut left: Vec<&ApiRecord> = present.iter().collect();
    let mut to_come = Vec::new();
    for value in &new.values {
        match left.iter().position(|record| is_value(record, value)) {
            Some(at) => {
                let record = left.remove(at);
                let body = RecordBody { content: record.content.clone(), ..body(change, new, value, Some(record)) };
                patch(record, body, batch);
            }
            None => to_come.push(value),
        }
    }
    let mut left = left.into_iter();
    for value in to_come {
        match left.next() {
            Some(record) => patch(record, body(change, new, value, Some(record)), batch),
            None => batch.posts.push(body(change, new, value, None)),
        }
    }
    batch.deletes.extend(left.map(|record| RecordId { id: record.id.clone() }));
}

fn patch(record: &ApiRecord, body: RecordBody, batch: &mut BatchBody) {
    let is_same = body.content == record.content
        && body.ttl == record.seconds()
        && body.proxied.is_none_or(|proxied| proxied == record.proxied)
        && body.comment.as_ref().is_none_or(|comment| *comment == record.comment)
        && body.tags.as_ref().is_none_or(|tags| tags.join(",") == record.tag_list());
    if !is_same {
        batch.patches.push(RecordBody { id: Some(record.id.clone()), ..body });
    }
}

/// A record with this value, in the place of another one or new.
fn body(change: &SetChange, new: &Content, value: &str, present: Option<&ApiRecord>) -> RecordBody {
    let kind = change.kind.as_str();
    let property = |name: &str| new.properties.iter().find(|(known, _)| &**known == name).map(|(_, value)| &**value);
    let takes = has_properties(kind);
    let is_proxied = takes && property(PROXIED) == Some("true");
    let comment = property(COMMENT).unwrap_or_default().to_owned();
    let tags = tags(property(TAGS).unwrap_or_default());
    let ttl = match (is_proxied, new.ttl) {
        (true, _) => AUTOMATIC,
        (false, Some(ttl)) => kept_ttl(ttl),
        (false, None) => present.map_or(AUTOMATIC, ApiRecord::seconds),
    };
    // What is not wanted is only spoken of where it must go: some plans know no tags.
    let has_comment = !comment.is_empty() || present.is_some_and(|record| !record.comment.is_empty());
    let has_tags = !tags.is_empty() || present.is_some_and(|record| !record.tags.is_empty());
    RecordBody {
        id: None,
        name: change.name.to_string(),
        kind: kind.to_owned(),
        content: content(kind, value),
        ttl,
        proxied: takes.then_some(is_proxied),
        comment: Some(comment).filter(|_| takes && has_comment),
        tags: Some(tags).filter(|_| takes && has_tags),
    }
}

/// A value as the service takes it: names without a dot at the end, texts in quotes and in pieces of 255 bytes.
fn content(kind: &str, value: &str) -> String {
    data::tidy(kind, value).unwrap_or_else(|_| value.to_owned())
}

/// At most so many changes are made for a unit.
fn weight(unit: &Unit<'_>) -> usize {
    let length = |content: &Option<Content>| content.as_ref().map_or(0, |content| content.values.len());
    unit.changes().map(|change| length(&change.old).max(length(&change.new))).sum()
}

fn only_removes(unit: &Unit<'_>) -> bool {
    unit.changes().all(|change| change.new.is_none())
}

#[cfg(test)]
mod tests {
    use gatepost_core::model::Str;
    use gatepost_core::plan::{PlanStep, Verb};
    use gatepost_core::publication::RecordType;
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::units;

    fn record(id: &str, kind: &str, content: &str, ttl: u32) -> ApiRecord {
        let value = json!({"id": id, "name": "a.test", "type": kind, "content": content, "ttl": ttl});
        serde_json::from_value(value).unwrap()
    }

    fn content(values: &[&str], ttl: u32, properties: &[(&str, &str)]) -> Content {
        let properties = properties.iter().map(|(name, value)| (Str::from(*name), Str::from(*value))).collect();
        Content { ttl: Some(ttl), values: values.iter().map(|value| Str::from(*value)).collect(), properties }
    }

    fn change(kind: RecordType, old: Option<Content>, new: Option<Content>) -> SetChange {
        SetChange { name: "a.test".into(), kind, set_identifier: None, old, new }
    }

    fn batch(change: &SetChange, present: &[ApiRecord]) -> Value {
        let mut batch = BatchBody::default();
        add(change, present, &mut batch);
        serde_json::to_value(batch).unwrap()
    }

    #[test]
    fn a_set_is_patched_as_far_as_it_has_records() {
        let present = [record("1", "A", "192.0.2.1", 60), record("2", "A", "192.0.2.2", 60)];
        let patched = |id: &str, value: &str| json!({"id": id, "name": "a.test", "type": "A", "content": value, "ttl": 60, "proxied": false});
        let posted =
            |value: &str| json!({"name": "a.test", "type": "A", "content": value, "ttl": 60, "proxied": false});
        let rows = [
            (&["192.0.2.1", "192.0.2.2"][..], json!({})),
            (&["192.0.2.3", "192.0.2.2"], json!({"patches": [patched("1", "192.0.2.3")]})),
            (&["192.0.2.3"], json!({"deletes": [{"id": "2"}], "patches": [patched("1", "192.0.2.3")]})),
            (&["192.0.2.2"], json!({"deletes": [{"id": "1"}]})),
            (
                &["192.0.2.3", "192.0.2.4", "192.0.2.5"],
                json!({"patches": [patched("1", "192.0.2.3"), patched("2", "192.0.2.4")], "posts": [posted("192.0.2.5")]}),
            ),
        ];
        for (values, expected) in rows {
            let change = change(RecordType::A, None, Some(content(values, 60, &[])));
            assert_eq!(batch(&change, &present), expected, "{values:?}");
        }
        assert_eq!(batch(&change(RecordType::A, None, None), &present), json!({"deletes": [{"id": "1"}, {"id": "2"}]}));
    }

    #[test]
    fn a_proxied_record_has_the_automatic_ttl_and_texts_have_no_properties() {
        let properties = [(PROXIED, "true"), (COMMENT, "ours"), (TAGS, "b:2,a:1")];
        let new = change(RecordType::Cname, None, Some(content(&["Edge.test."], 300, &properties)));
        let body = json!({"name": "a.test", "type": "CNAME", "content": "Edge.test", "ttl": 1, "proxied": true,
            "comment": "ours", "tags": ["a:1", "b:2"]});
        assert_eq!(batch(&new, &[]), json!({"posts": [body]}));
        let text = change(RecordType::Txt, None, Some(content(&["x; y"], 5, &properties)));
        let body = json!({"name": "a.test", "type": "TXT", "content": "\"x; y\"", "ttl": 60});
        assert_eq!(batch(&text, &[]), json!({"posts": [body]}));
    }

    #[test]
    fn what_is_not_wanted_any_more_is_taken_away() {
        let mut present = record("1", "A", "192.0.2.1", 1);
        (present.proxied, present.comment, present.tags) = (true, "ours".to_owned(), vec!["a:1".to_owned()]);
        let new = change(RecordType::A, None, Some(content(&["192.0.2.1"], 300, &[])));
        let body = json!({"id": "1", "name": "a.test", "type": "A", "content": "192.0.2.1", "ttl": 300, "proxied": false,
            "comment": "", "tags": []});
        assert_eq!(batch(&new, &[present]), json!({"patches": [body]}));
    }

    #[test]
    fn what_takes_away_comes_in_a_batch_of_its_own() {
        let one = |group: usize, change: SetChange| PlanStep {
            zone: "test".into(),
            name: "a.test".into(),
            verb: Verb::Update,
            changes: vec![change],
            markers: Vec::new(),
            guards: Vec::new(),
            because: String::new(),
            routes: Vec::new(),
            group,
            after: Vec::new(),
        };
        let some = || Some(content(&["192.0.2.1"], 60, &[]));
        let adds = |group| one(group, change(RecordType::A, None, some()));
        let removes = |group| one(group, change(RecordType::A, some(), None));
        let values: Vec<String> = (0..=MOST).map(|number| format!("192.0.{}.{}", number / 250, number % 250)).collect();
        let many: Vec<&str> = values.iter().map(String::as_str).collect();
        let large = one(1000, change(RecordType::A, None, Some(content(&many, 60, &[]))));
        let mut steps: Vec<PlanStep> = (0..MOST + 1).map(adds).collect();
        steps.extend([large, adds(1001), removes(1002), removes(1003)]);
        let units = units(&steps);
        let lengths: Vec<usize> = parts(&units).iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [MOST, 1, 1, 1, 2]);
    }
}
