//! `--resolve-targets`: replaces CNAMEs that are not possible by the addresses of their targets (D24).
//!
//! The planner reports which names these are. If the addresses of a target are not known, the name is not known either,
//! and its published records are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Instant;

use gatepost_core::diagnostic::FieldPath;
use gatepost_core::model::{SharedList, Str};
use gatepost_core::plan::Plan;
use gatepost_core::publication::{Desired, Record, RecordType, Withheld};
use gatepost_core::reason;
use gatepost_dns::resolve::{Resolution, Resolver};

/// The names that need a CNAME where none is possible.
pub(super) fn stuck(plan: &Plan) -> BTreeSet<Str> {
    let held = plan.held.iter().filter(|held| held.reason == reason::CNAME_NOT_POSSIBLE);
    held.map(|held| held.name.clone()).collect()
}

/// Replaces the CNAMEs of these names by addresses; returns notes about outdated addresses.
pub(super) async fn resolve(resolver: &Resolver, stuck: &BTreeSet<Str>, desired: &mut Desired) -> Vec<String> {
    let is_stuck = |record: &Record| {
        record.kind == RecordType::Cname && stuck.contains(&Str::from(record.name.to_ascii_lowercase()))
    };
    let mut lists = [std::mem::take(&mut desired.records), std::mem::take(&mut desired.covered)];
    let aliases = lists.iter().flatten().filter(|record| is_stuck(record));
    let names: BTreeSet<Str> = aliases.flat_map(|record| record.targets.iter().cloned()).collect();
    let found = resolver.resolve(&names, Instant::now()).await;
    for list in &mut lists {
        let (aliases, rest): (Vec<Record>, Vec<Record>) = std::mem::take(list).into_iter().partition(is_stuck);
        *list = rest;
        for alias in &aliases {
            match addresses(alias, &found) {
                Ok(addresses) => list.extend(records(alias, &addresses)),
                Err(why) => desired.withheld.push(unresolved(alias, why)),
            }
        }
        list.sort_by(|a, b| a.rank().cmp(&b.rank()));
    }
    [desired.records, desired.covered] = lists;
    desired.withheld.sort();
    stale(&found)
}

/// All addresses of a CNAME's targets, or why they are not known.
fn addresses(alias: &Record, found: &BTreeMap<Str, Resolution>) -> Result<BTreeSet<IpAddr>, String> {
    let mut all = BTreeSet::new();
    for target in alias.targets.iter() {
        match found.get(target) {
            Some(Resolution::Known { addresses, .. }) => all.extend(addresses.iter().copied()),
            Some(Resolution::Unknown(why)) => return Err(format!("`{target}` could not be resolved ({why})")),
            None => return Err(format!("`{target}` was not resolved")),
        }
    }
    Ok(all)
}

fn records(alias: &Record, addresses: &BTreeSet<IpAddr>) -> Vec<Record> {
    let of_kind = |kind: RecordType| {
        let fits = |ip: &&IpAddr| ip.is_ipv4() == (kind == RecordType::A);
        let targets: SharedList<Str> = addresses.iter().filter(fits).map(|ip| ip.to_string().into()).collect();
        (!targets.is_empty()).then(|| Record { kind, targets, ..alias.clone() })
    };
    [RecordType::A, RecordType::Aaaa].into_iter().filter_map(of_kind).collect()
}

fn unresolved(alias: &Record, why: String) -> Withheld {
    let listener = alias.listeners.first().cloned();
    let route = alias.routes.first().cloned();
    let owner = listener.as_ref().map(|listener| listener.owner.clone());
    // A record always has a route or a listener, so the empty reference is never shown.
    let nobody = || gatepost_core::model::ObjectRef::new(gatepost_core::model::Kind::Gateway, "", "");
    Withheld {
        route: route.clone().or_else(|| owner.clone()).unwrap_or_else(nobody),
        hostname: alias.name.clone(),
        message: format!("no CNAME may stand at `{}`, and {why}; what is published is kept", alias.name),
        object: owner.or(route).unwrap_or_else(nobody),
        listener,
        reason: reason::TARGET_UNRESOLVED,
        field: FieldPath::of("status.addresses"),
    }
}

fn stale(found: &BTreeMap<Str, Resolution>) -> Vec<String> {
    let old = found.iter().filter_map(|(name, resolution)| match resolution {
        Resolution::Known { stale: Some(why), .. } => {
            Some(format!("the addresses of {name} are those of an earlier answer: {why}"))
        }
        _ => None,
    });
    old.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_core::model::{Kind, ObjectRef, RouteKind};
    use gatepost_core::publication::NameSource;

    fn alias(name: &str, targets: &[&str]) -> Record {
        Record {
            name: name.into(),
            kind: RecordType::Cname,
            targets: targets.iter().map(|target| (*target).into()).collect(),
            ttl: Some(60),
            set_identifier: None,
            provider_specific: Vec::new(),
            routes: [ObjectRef::new(Kind::Route(RouteKind::Http), "shop", "web")].into(),
            listeners: Default::default(),
            source: NameSource::Intersected,
            provider: None,
        }
    }

    fn known(addresses: &[&str]) -> Resolution {
        Resolution::Known { addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(), stale: None }
    }

    #[test]
    fn a_name_gets_all_addresses_behind_its_targets() {
        let found = [("a".into(), known(&["192.0.2.1", "2001:db8::1"])), ("b".into(), known(&["192.0.2.2"]))].into();
        let alias = alias("example.com", &["a", "b"]);
        let all = addresses(&alias, &found).unwrap();
        let shown: Vec<String> =
            records(&alias, &all).iter().map(|r| format!("{} {} {:?}", r.name, r.kind, r.targets)).collect();
        assert_eq!(shown, [r#"example.com A ["192.0.2.1", "192.0.2.2"]"#, r#"example.com AAAA ["2001:db8::1"]"#]);
    }

    #[test]
    fn one_unknown_target_makes_the_name_unknown() {
        let found =
            [("a".into(), known(&["192.0.2.1"])), ("b".into(), Resolution::Unknown("NXDOMAIN".to_owned()))].into();
        let alias = alias("example.com", &["a", "b"]);
        let why = addresses(&alias, &found).unwrap_err();
        assert!(why.contains("NXDOMAIN"), "{why}");
        assert!(unresolved(&alias, why).holds());
    }
}
