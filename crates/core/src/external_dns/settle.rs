//! Which of several records for one name and type is published, as the planner of external-dns decides for a new name.
//!
//! Sources may ask for one name and type more than once: different kinds of routes, different TTLs, several CNAMEs. One of
//! them is published; the others are returned so that they can be reported.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::model::Str;
use crate::publication::{Record, RecordType};

/// The published record of every name and type, and the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// One record for each name, type and set identifier; no CNAME beside another type.
    pub records: Vec<Record>,
    /// Those that lost.
    pub lost: Vec<Lost>,
}

/// A record that is not published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The record.
    pub record: Record,
    /// The type of the record that is published instead.
    pub to: RecordType,
}

/// Chooses between records: addresses before CNAMEs, then fewer targets, then lower targets, then the first.
pub fn settle(records: Vec<Record>) -> Settled {
    let mut rows: BTreeMap<(Str, Option<Str>), Vec<Record>> = BTreeMap::new();
    for record in records {
        rows.entry((record.name.clone(), record.set_identifier.clone())).or_default().push(record);
    }
    let mut settled = Settled::default();
    rows.into_values().for_each(|row| settle_row(row, &mut settled));
    settled.records.sort_by(|a, b| a.rank().cmp(&b.rank()));
    settled
}

fn settle_row(row: Vec<Record>, settled: &mut Settled) {
    let (cnames, others): (Vec<Record>, Vec<Record>) =
        row.into_iter().partition(|record| record.kind == RecordType::Cname);
    let Some(first) = others.first() else { return settle_type(cnames, settled) };
    let to = first.kind;
    settled.lost.extend(cnames.into_iter().map(|record| Lost { record, to }));
    let mut by_type: BTreeMap<RecordType, Vec<Record>> = BTreeMap::new();
    for record in others {
        by_type.entry(record.kind).or_default().push(record);
    }
    by_type.into_values().for_each(|records| settle_type(records, settled));
}

fn settle_type(mut records: Vec<Record>, settled: &mut Settled) {
    records.sort_by(|a, b| compare_targets(&a.targets, &b.targets));
    let mut records = records.into_iter();
    settled.records.extend(records.next());
    settled.lost.extend(records.map(|record| Lost { to: record.kind, record }));
}

/// The order in which external-dns prefers targets of one name and type: fewer first, then lower, addresses as numbers.
pub(crate) fn compare_targets(a: &[Str], b: &[Str]) -> Ordering {
    let by_target =
        || a.iter().zip(b).map(|(a, b)| compare_target(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
    a.len().cmp(&b.len()).then_with(by_target)
}

fn compare_target(a: &str, b: &str) -> Ordering {
    match (a.parse::<IpAddr>(), b.parse::<IpAddr>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publication::NameSource;

    fn record(name: &str, kind: RecordType, targets: &[&str], ttl: Option<u32>) -> Record {
        Record {
            name: name.into(),
            kind,
            targets: targets.iter().map(|target| Str::from(*target)).collect(),
            ttl,
            set_identifier: None,
            provider_specific: vec![],
            routes: Default::default(),
            listeners: Default::default(),
            source: NameSource::Intersected,
            provider: None,
        }
    }

    fn winners(records: Vec<Record>) -> Vec<String> {
        settle(records).records.iter().map(|r| format!("{} {} {}", r.name, r.kind, r.targets.join(","))).collect()
    }

    #[test]
    fn fewer_targets_win_then_lower_ones() {
        use RecordType::{A, Cname};
        let table = [
            (
                vec![record("a", A, &["192.0.2.1", "192.0.2.2"], None), record("a", A, &["192.0.2.9"], None)],
                "a A 192.0.2.9",
            ),
            (vec![record("a", A, &["192.0.2.10"], None), record("a", A, &["192.0.2.9"], None)], "a A 192.0.2.9"),
            (vec![record("a", Cname, &["y"], None), record("a", Cname, &["x"], None)], "a CNAME x"),
            (
                vec![record("a", Cname, &["x"], None), record("a", A, &["192.0.2.1", "192.0.2.2"], None)],
                "a A 192.0.2.1,192.0.2.2",
            ),
        ];
        for (records, expected) in table {
            assert_eq!(winners(records), [expected]);
        }
    }

    #[test]
    fn among_equals_the_first_wins_and_the_other_is_told() {
        let settled = settle(vec![
            record("a", RecordType::A, &["192.0.2.1"], Some(60)),
            record("a", RecordType::A, &["192.0.2.1"], Some(90)),
        ]);
        assert_eq!(settled.records[0].ttl, Some(60));
        assert_eq!(settled.lost[0].record.ttl, Some(90));
    }

    #[test]
    fn types_and_set_identifiers_do_not_compete() {
        let mut blue = record("a", RecordType::A, &["192.0.2.1"], None);
        blue.set_identifier = Some("blue".into());
        let records =
            vec![blue, record("a", RecordType::A, &["192.0.2.1"], None), record("a", RecordType::Aaaa, &["::1"], None)];
        assert_eq!(settle(records).records.len(), 3);
    }
}
