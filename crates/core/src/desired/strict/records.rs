//! From claims to records: who shares a name, who loses it, and where a wildcard stands for it.
//!
//! Addresses of all claims on a name are united (D8). A CNAME stands alone: where one claim wants it and another addresses,
//! the claim that goes first keeps the name. A wildcard that only stands for other names makes no difference to those who
//! want the wildcard itself. A name that a listener's wildcard answers for by RFC 4592, with the very same
//! records, needs none of its own; every other name has its own (D13).

use std::collections::{BTreeMap, BTreeSet};

use super::addresses::Targets;
use super::claims::Claim;
use super::why::Obstacle;
use super::{Context, Ledger};
use crate::desired::wildcards::{self, Tree};
use crate::desired::{Desired, NameSource, Record};
use crate::diagnostic::FieldPath;
use crate::model::{Kind, ObjectRef, Str};
use crate::names::Hostname;
use crate::policy::{HostnameReport, HostnameState};
use crate::reason::{self, Reason};
use crate::topology::ListenerKey;

/// A name with the claims that have it.
struct Held {
    sets: Vec<RecordSet>,
    /// Whether a wildcard may stand for it: every claim says so.
    is_coverable: bool,
    source: NameSource,
}

/// Records of one name that are told apart by a set identifier.
struct RecordSet {
    set_identifier: Option<Str>,
    targets: Targets,
    ttl: Option<u32>,
    properties: Vec<(Str, Str)>,
    routes: BTreeSet<ObjectRef>,
    listeners: BTreeSet<ListenerKey>,
}

/// A claim that does not get its name.
struct Loss {
    claim: Claim,
    winner: ObjectRef,
    reason: Reason,
}

/// Makes the records of all claims.
pub(super) fn build(
    context: Context<'_>,
    claims: Vec<Claim>,
    others: &[Str],
    desired: &mut Desired,
    ledger: &mut Ledger,
) {
    let mut by_name: BTreeMap<Hostname, Vec<Claim>> = BTreeMap::new();
    for claim in claims {
        if let Some(wildcard) = claim.of_wildcard() {
            by_name.entry(wildcard.name.clone()).or_default().push(wildcard);
        }
        by_name.entry(claim.name.clone()).or_default().push(claim);
    }
    let mut held = BTreeMap::new();
    for (name, mut claims) in by_name {
        claims.sort_by(|a, b| a.rank.cmp(&b.rank).then(a.source.cmp(&b.source)));
        let (wishes, stand_ins) = claims.into_iter().partition(|claim| claim.source != NameSource::ListenerWildcard);
        let (winners, losses) = contest(wishes);
        winners.iter().for_each(|claim| tell(context, claim, HostnameState::Served, String::new(), ledger));
        losses.into_iter().for_each(|loss| withhold(context, loss, desired, ledger));
        held.insert(name, hold(context, &winners, stand_ins));
    }
    let owners = owners(&held, others);
    let (owning, covered): (Vec<_>, Vec<_>) = held.iter().partition(|(name, _)| owners.contains(name.as_str()));
    desired.records = owning.into_iter().flat_map(records).collect();
    desired.covered = covered.into_iter().flat_map(records).collect();
}

/// Tells the claims that can share a name from those that cannot; they come in order.
fn contest(claims: Vec<Claim>) -> (Vec<Claim>, Vec<Loss>) {
    let Some(first) = claims.first().cloned() else { return (claims, Vec::new()) };
    let is_name = first.answer.targets.is_name();
    let mut names: BTreeMap<Option<Str>, Claim> = BTreeMap::new();
    let (mut winners, mut losses) = (Vec::new(), Vec::new());
    for claim in claims {
        if claim.answer.targets.is_name() != is_name {
            losses.push(Loss { winner: first.gateway(), reason: reason::TYPE_CLASH, claim });
            continue;
        }
        let holder = names.entry(claim.answer.set_identifier.clone()).or_insert_with(|| claim.clone());
        if is_name && holder.answer.targets != claim.answer.targets {
            losses.push(Loss { winner: holder.gateway(), reason: reason::SEVERAL_CNAME_TARGETS, claim });
        } else {
            winners.push(claim);
        }
    }
    (winners, losses)
}

/// What a name has. Who only needs a wildcard to stand for other names takes it as those have it who want the wildcard
/// itself, or not at all.
fn hold(context: Context<'_>, winners: &[Claim], stand_ins: Vec<Claim>) -> Held {
    if winners.is_empty() {
        return share(context, &contest(stand_ins).0);
    }
    let mut held = share(context, winners);
    if let [set] = &mut held.sets[..] {
        for claim in stand_ins.iter().filter(|claim| set.targets == *claim.answer.targets) {
            set.routes.insert(claim.route.clone());
            set.listeners.insert(context.topology.listener(claim.listener).key());
        }
    }
    held
}

/// Unites claims that share a name; they come in order.
fn share(context: Context<'_>, winners: &[Claim]) -> Held {
    let mut sets: BTreeMap<Option<Str>, Vec<&Claim>> = BTreeMap::new();
    for claim in winners {
        sets.entry(claim.answer.set_identifier.clone()).or_default().push(claim);
    }
    let sources = winners.iter().map(|claim| claim.source);
    Held {
        sets: sets.into_iter().filter_map(|(id, claims)| record_set(context, id, &claims)).collect(),
        is_coverable: winners.iter().all(|claim| claim.wildcard.is_some()),
        source: sources.min().unwrap_or(NameSource::Intersected),
    }
}

fn record_set(context: Context<'_>, set_identifier: Option<Str>, claims: &[&Claim]) -> Option<RecordSet> {
    let mut targets = (*claims.first()?.answer.targets).clone();
    claims.iter().for_each(|claim| targets.unite(&claim.answer.targets));
    let route_ttl = claims.iter().find_map(|claim| claim.answer.route_ttl);
    let policy_ttl = || claims.iter().find_map(|claim| claim.answer.policy_ttl);
    let properties = claims.iter().map(|claim| &claim.answer.properties).find(|p| !p.is_empty());
    Some(RecordSet {
        set_identifier,
        targets,
        ttl: route_ttl.or_else(policy_ttl),
        properties: properties.cloned().unwrap_or_default(),
        routes: claims.iter().map(|claim| claim.route.clone()).collect(),
        listeners: claims.iter().map(|claim| context.topology.listener(claim.listener).key()).collect(),
    })
}

/// The names that have records of their own.
fn owners<'a>(held: &'a BTreeMap<Hostname, Held>, others: &'a [Str]) -> BTreeSet<&'a str> {
    let (covered, owners): (Vec<_>, Vec<_>) = held.iter().partition(|(_, held)| held.is_coverable);
    let owners = owners.into_iter().map(|(name, _)| name.as_str());
    let mut tree = Tree::of(owners.clone());
    others.iter().for_each(|name| tree.insert_existing(name));
    let by_name: BTreeMap<&str, &Held> = held.iter().map(|(name, held)| (name.as_str(), held)).collect();
    let suits = |name: &str, owner: &str| match (by_name.get(name), by_name.get(owner)) {
        (Some(wanted), Some(given)) => is_same_answer(&wanted.sets, &given.sets),
        _ => false,
    };
    let covered = covered.into_iter().map(|(name, _)| name.as_str());
    let mut all = wildcards::explicit(&mut tree, covered, suits);
    all.extend(owners);
    all
}

fn is_same_answer(wanted: &[RecordSet], given: &[RecordSet]) -> bool {
    let ([wanted], [given]) = (wanted, given) else { return false };
    wanted.targets == given.targets
        && wanted.ttl == given.ttl
        && wanted.set_identifier == given.set_identifier
        && wanted.properties == given.properties
}

fn records((name, held): (&Hostname, &Held)) -> Vec<Record> {
    let of_set = |set: &RecordSet| {
        let record = |(kind, targets)| Record {
            name: name.as_str().into(),
            kind,
            targets,
            ttl: set.ttl,
            set_identifier: set.set_identifier.clone(),
            provider_specific: set.properties.clone(),
            routes: set.routes.iter().cloned().collect(),
            listeners: set.listeners.iter().cloned().collect(),
            source: held.source,
        };
        set.targets.by_type().into_iter().map(record).collect::<Vec<_>>()
    };
    held.sets.iter().flat_map(of_set).collect()
}

/// Reports what became of a claim to its policy.
fn tell(context: Context<'_>, claim: &Claim, state: HostnameState, message: String, ledger: &mut Ledger) {
    let listener = context.topology.listener(claim.listener).key();
    let hostname = claim.name.as_str().into();
    let report = HostnameReport { hostname, listener, route: claim.route.clone(), state, message };
    ledger.add(Kind::DnsPolicy, claim.policy.as_ref(), report);
}

fn withhold(context: Context<'_>, loss: Loss, desired: &mut Desired, ledger: &mut Ledger) {
    let Loss { claim, winner, reason } = loss;
    let gateway = claim.gateway();
    let message = match reason {
        reason::TYPE_CLASH => {
            let (own, theirs) =
                if claim.answer.targets.is_name() { ("a CNAME", "addresses") } else { ("addresses", "a CNAME") };
            format!("`{}` would have {own} by {gateway}, and has {theirs} by {winner}, which goes first", claim.name)
        }
        _ => format!("`{}` is a CNAME already by {winner}, which goes first, and has one target only", claim.name),
    };
    tell(context, &claim, HostnameState::Skipped(reason), message.clone(), ledger);
    let obstacle = Obstacle { reason, message, object: gateway, field: FieldPath::of("status.addresses") };
    let listener = context.topology.listener(claim.listener).key();
    desired.withheld.push(obstacle.withhold(&claim.route, claim.name.as_str(), Some(listener)));
}
