//! Whether names are as they ought to be: what is wanted, what the provider has stored, and what every server answers.
//!
//! What is compared is decided before anything is asked, and what it comes to is decided from the answers alone. Nothing here
//! writes, and nothing here prints.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use gatepost_core::attachment::ListenerKey;
use gatepost_core::external_dns;
use gatepost_core::model::{ObjectRef, Str};
use gatepost_core::names::Hostname;
use gatepost_core::plan::{Content, Observed, RecordSet, ZoneContent, ZoneState};
use gatepost_core::publication::wildcards::DnsTree;
use gatepost_core::publication::{Desired, Record, RecordType, Withheld};
use gatepost_dns::authority::ServerAnswer;

mod answers;
pub mod handshake;
pub mod servers;

pub use answers::{Limits, ask_all};
pub use handshake::Handshake;

/// One name, and everything there is to say about it.
#[derive(Clone, Debug)]
pub struct Check {
    /// The provider, where there are several.
    pub provider: Option<Str>,
    /// The name as it is wanted; may be a wildcard.
    pub name: Str,
    /// The name that is asked for: itself, or a made one below a wildcard.
    pub asked: Str,
    /// Routes that ask for it.
    pub routes: Vec<ObjectRef>,
    /// Listeners that serve it.
    pub listeners: Vec<ListenerKey>,
    /// Why it gets nothing, where it does.
    pub withheld: Vec<Withheld>,
    /// What is compared, by type.
    pub types: Vec<TypeCheck>,
    /// Why no server could be asked, where none was found.
    pub unasked: Option<String>,
    /// What its addresses show over TLS, where that was asked.
    pub tls: Vec<Handshake>,
}

/// One type of a name.
#[derive(Clone, Debug)]
pub struct TypeCheck {
    /// The type.
    pub kind: RecordType,
    /// What ought to be there, sorted; nothing where the type ought not to be there.
    pub wanted: Vec<Str>,
    /// Whether a part of it will do, because the provider chooses among several sets.
    pub any_part: bool,
    /// Whether what ought to be there is an alias record: servers answer with the addresses that its target has by now.
    pub is_alias: bool,
    /// What the provider has; nothing where no provider was read.
    pub stored: Option<Vec<Str>>,
    /// What each server says.
    pub answered: Vec<CheckedAnswer>,
}

/// What one server says.
#[derive(Clone, Debug)]
pub struct CheckedAnswer {
    /// The server: its name or address.
    pub server: String,
    /// What it comes to.
    pub verdict: Verdict,
    /// What it said, or why nothing was heard.
    pub answer: Result<ServerAnswer, String>,
}

/// What an answer comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it ought to be.
    Right,
    /// Nothing is there, and something ought to be.
    Missing,
    /// Something else is there.
    Differs,
    /// Something is there, and nothing ought to be.
    Extra,
    /// The server did not answer, or does not speak for the zone.
    Unanswered,
}

impl Verdict {
    /// As shown to people and machines.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Right => "right",
            Verdict::Missing => "missing",
            Verdict::Differs => "differs",
            Verdict::Extra => "extra",
            Verdict::Unanswered => "unanswered",
        }
    }
}

impl Check {
    /// Whether everything is as it ought to be, on every server.
    pub fn is_right(&self) -> bool {
        let is_wanted = self.types.iter().any(|check| !check.wanted.is_empty());
        let is_answered = self.unasked.is_none() && self.types.iter().all(TypeCheck::is_right);
        is_wanted && is_answered && self.tls.iter().all(Handshake::is_right)
    }
}

impl TypeCheck {
    /// Whether every server says what it ought to.
    pub fn is_right(&self) -> bool {
        self.answered.iter().all(|answer| answer.verdict == Verdict::Right)
    }

    /// What an answer comes to.
    fn judge(&self, answer: &Result<ServerAnswer, String>) -> Verdict {
        let Ok(answer) = answer else { return Verdict::Unanswered };
        if !answer.is_authoritative || !matches!(answer.code.as_str(), "NOERROR" | "NXDOMAIN") {
            return Verdict::Unanswered;
        }
        let found = canonical(self.kind, &answer.values);
        if self.is_alias {
            // A target may well have no IPv6 address.
            let is_answered = answer.alias.is_none() && (!found.is_empty() || self.kind == RecordType::Aaaa);
            return if is_answered { Verdict::Right } else { Verdict::Missing };
        }
        let wanted = canonical(self.kind, &self.wanted);
        match (wanted.is_empty(), found.is_empty()) {
            (true, true) if answer.alias.is_none() => Verdict::Right,
            (true, _) => Verdict::Extra,
            (false, true) if answer.alias.is_some() => Verdict::Differs,
            (false, true) => Verdict::Missing,
            (false, false) if found == wanted || (self.any_part && found.is_subset(&wanted)) => Verdict::Right,
            (false, false) => Verdict::Differs,
        }
    }
}

/// What to compare: every name that is published, or those that are asked for. `label` stands for the star of a wildcard.
pub fn checks(desired: &Desired, hostnames: &[Hostname], label: &str) -> Vec<Check> {
    let by_name = wanted(desired);
    if hostnames.is_empty() {
        return by_name.iter().map(|(name, records)| check(name, records, label)).collect();
    }
    let owners = DnsTree::of(desired.records.iter().map(|record| &*record.name));
    let found = hostnames.iter().map(|hostname| {
        let name = Str::from(hostname.to_string());
        let records = by_name.get(&name).or_else(|| by_name.get(&Str::from(owners.owner(&name)?)));
        let mut check = check(&name, records.map_or(&[][..], |records| records), label);
        check.withheld = desired.withheld.iter().filter(|withheld| is_about(withheld, hostname)).cloned().collect();
        check
    });
    found.collect()
}

/// The records of each name; where several compete, the one that is published when the name is new.
fn wanted(desired: &Desired) -> BTreeMap<Str, Vec<Record>> {
    let all: Vec<Record> = desired.records.iter().chain(&desired.covered).cloned().collect();
    let mut names: BTreeMap<Str, Vec<Record>> = BTreeMap::new();
    for record in external_dns::settle(all).records {
        names.entry(record.name.to_ascii_lowercase().into()).or_default().push(record);
    }
    names
}

fn is_about(withheld: &Withheld, hostname: &Hostname) -> bool {
    Hostname::parse(&withheld.hostname).is_ok_and(|other| other.intersect(hostname).is_some())
}

fn check(name: &Str, records: &[Record], label: &str) -> Check {
    let asked = name.strip_prefix("*.").map_or_else(|| name.clone(), |rest| format!("{label}.{rest}").into());
    let is_alias = records.iter().any(|record| record.kind == RecordType::Cname);
    let kinds: &[RecordType] = if is_alias { &[RecordType::Cname] } else { &[RecordType::A, RecordType::Aaaa] };
    let routes: BTreeSet<ObjectRef> = records.iter().flat_map(|record| record.routes.iter().cloned()).collect();
    let types = kinds.iter().map(|kind| type_check(*kind, records)).collect();
    let listeners: BTreeSet<ListenerKey> = records.iter().flat_map(|record| record.listeners.iter().cloned()).collect();
    Check {
        provider: None,
        name: name.clone(),
        asked,
        routes: routes.into_iter().collect(),
        listeners: listeners.into_iter().collect(),
        withheld: Vec::new(),
        types,
        unasked: None,
        tls: Vec::new(),
    }
}

fn type_check(kind: RecordType, records: &[Record]) -> TypeCheck {
    let of_kind = || records.iter().filter(|record| record.kind == kind);
    let wanted: BTreeSet<Str> = of_kind().flat_map(|record| record.targets.iter().cloned()).collect();
    let any_part = of_kind().any(|record| record.set_identifier.is_some());
    let wanted = wanted.into_iter().collect();
    TypeCheck { kind, wanted, any_part, is_alias: false, stored: None, answered: Vec::new() }
}

/// Adds what the provider has, where its zone was read.
pub fn fill_stored(checks: &mut [Check], observed: &Observed) {
    let zones: BTreeMap<&Str, (&ZoneContent, DnsTree<'_>)> = observed
        .zones()
        .filter_map(|(name, state)| match state {
            ZoneState::Read(content) => {
                Some((name, (content, DnsTree::of(content.sets().iter().map(|set| &*set.name)))))
            }
            ZoneState::Unreadable(_) => None,
        })
        .collect();
    for check in checks {
        let zone = observed.zone_of(&check.name).and_then(|zone| zones.get(zone));
        let Some((content, tree)) = zone else { continue };
        let owner = tree.owner(&check.asked).unwrap_or(&check.asked);
        let from = content.sets().partition_point(|set| &*set.name < owner);
        let at = || content.sets()[from..].iter().take_while(|set| &*set.name == owner);
        if let [cname] = &check.types[..] {
            let aliases: Vec<TypeCheck> = at().filter_map(|set| as_alias(cname, set)).collect();
            if !aliases.is_empty() {
                check.types = aliases;
            }
        }
        for one in &mut check.types {
            let sets = at().filter(|set| set.made() == Some(one.kind));
            let values: BTreeSet<Str> = sets.flat_map(|set| set.values.iter().cloned()).collect();
            one.stored = Some(values.into_iter().collect());
        }
    }
}

/// What is compared where a provider keeps a CNAME as alias records: each of its types by itself.
fn as_alias(cname: &TypeCheck, set: &RecordSet) -> Option<TypeCheck> {
    let kind = set.made().filter(|kind| Content::of(set).is_alias_of(*kind))?;
    let is_meant = cname.kind == RecordType::Cname
        && canonical(cname.kind, &cname.wanted) == canonical(RecordType::Cname, &set.values);
    is_meant.then(|| TypeCheck { kind, is_alias: true, ..cname.clone() })
}

/// Values in the form in which they are compared.
fn canonical(kind: RecordType, values: &[Str]) -> BTreeSet<String> {
    let form = |value: &Str| match kind {
        RecordType::A | RecordType::Aaaa => {
            value.parse::<IpAddr>().map_or_else(|_| value.to_string(), |ip| ip.to_string())
        }
        _ => value.trim_end_matches('.').to_ascii_lowercase(),
    };
    values.iter().map(form).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_core::model::{Kind, RouteKind};
    use gatepost_core::publication::NameSource;

    fn record(name: &str, kind: RecordType, targets: &[&str]) -> Record {
        Record {
            name: name.into(),
            kind,
            targets: targets.iter().map(|target| (*target).into()).collect(),
            ttl: None,
            set_identifier: None,
            provider_specific: Vec::new(),
            routes: [ObjectRef::new(Kind::Route(RouteKind::Http), "shop", "web")].into(),
            listeners: Default::default(),
            source: NameSource::Intersected,
            provider: None,
        }
    }

    fn desired() -> Desired {
        Desired {
            records: vec![
                record("*.example.org", RecordType::A, &["192.0.2.1"]),
                record("www.example.org", RecordType::A, &["192.0.2.1"]),
                record("www.example.org", RecordType::Aaaa, &["2001:DB8::1"]),
                record("alias.example.org", RecordType::Cname, &["LB.example.net."]),
            ],
            covered: vec![record("deep.example.org", RecordType::A, &["192.0.2.1"])],
            ..Desired::default()
        }
    }

    fn answer(code: &str, values: &[&str]) -> Result<ServerAnswer, String> {
        let values = values.iter().map(|value| (*value).into()).collect();
        Ok(ServerAnswer { code: code.to_owned(), is_authoritative: true, values, alias: None })
    }

    #[test]
    fn every_name_is_checked_and_a_wildcard_by_a_made_one() {
        let found: Vec<_> =
            checks(&desired(), &[], "made").into_iter().map(|c| (c.name, c.asked, c.types.len())).collect();
        let row = |name: &str, asked: &str, types| (Str::from(name), Str::from(asked), types);
        assert_eq!(
            found,
            [
                row("*.example.org", "made.example.org", 2),
                row("alias.example.org", "alias.example.org", 1),
                row("deep.example.org", "deep.example.org", 2),
                row("www.example.org", "www.example.org", 2),
            ]
        );
    }

    #[test]
    fn a_named_name_is_what_a_wildcard_makes_of_it() {
        let name = |text: &str| Hostname::parse(text).unwrap();
        let found = checks(&desired(), &[name("other.example.org"), name("www.example.com")], "made");
        assert_eq!(found[0].types[0].wanted, ["192.0.2.1".into()]);
        assert!(found[1].types.iter().all(|check| check.wanted.is_empty()));
        assert!(!found[1].is_right(), "nothing asks for it");
    }

    #[test]
    fn answers_come_to_verdicts() {
        let check = |kind, wanted: &[&str]| type_check(kind, &[record("a", kind, wanted)]);
        let four = check(RecordType::A, &["192.0.2.1"]);
        let none = type_check(RecordType::Aaaa, &[]);
        let alias = check(RecordType::Cname, &["LB.example.net."]);
        let alias_of = |kind, alias: &TypeCheck| TypeCheck { kind, is_alias: true, ..alias.clone() };
        let (flat, flat_six) = (alias_of(RecordType::A, &alias), alias_of(RecordType::Aaaa, &alias));
        let lame = Ok(ServerAnswer { is_authoritative: false, ..answer("NOERROR", &["192.0.2.1"]).unwrap() });
        let aliased = Ok(ServerAnswer { alias: Some("x".into()), ..answer("NOERROR", &[]).unwrap() });
        let rows = [
            (&four, answer("NOERROR", &["192.0.2.1"]), Verdict::Right),
            (&flat, answer("NOERROR", &["192.0.2.77"]), Verdict::Right),
            (&flat, answer("NOERROR", &[]), Verdict::Missing),
            (&flat_six, answer("NOERROR", &[]), Verdict::Right),
            (&flat_six, answer("NXDOMAIN", &[]), Verdict::Right),
            (&four, answer("NOERROR", &["192.0.2.2"]), Verdict::Differs),
            (&four, answer("NOERROR", &["192.0.2.1", "192.0.2.2"]), Verdict::Differs),
            (&four, answer("NXDOMAIN", &[]), Verdict::Missing),
            (&four, answer("REFUSED", &[]), Verdict::Unanswered),
            (&four, lame, Verdict::Unanswered),
            (&four, aliased, Verdict::Differs),
            (&four, Err("late".to_owned()), Verdict::Unanswered),
            (&none, answer("NOERROR", &[]), Verdict::Right),
            (&none, answer("NOERROR", &["2001:db8::1"]), Verdict::Extra),
            (&alias, answer("NOERROR", &["lb.example.net"]), Verdict::Right),
        ];
        for (check, answer, verdict) in rows {
            assert_eq!(check.judge(&answer), verdict, "{answer:?}");
        }
    }
}
