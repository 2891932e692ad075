//! Which namespaces may have a hostname: the HostnameGrants (D28).
//!
//! The most specific pattern that covers a name decides, and of equal patterns that of the oldest grant. Names that no grant
//! covers are free unless grants are required. A grant with an invalid value, or one that could not be seen, leaves the
//! names that it may be about unknown: nothing is created and nothing deleted. Claims are not known here.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::wildcards::above;
use crate::diagnostic::FieldPath;
use crate::model::{HostnameGrant, Kind, ObjectRef, Str};
use crate::names::Hostname;
use crate::reason::{self, Reason};
use crate::snapshot::{Origin, Snapshot, Visibility};

/// The HostnameGrants by pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostnameGrants {
    precise: BTreeMap<Str, GrantedPattern>,
    /// By the base of the wildcard.
    wildcards: BTreeMap<Str, GrantedPattern>,
    /// Precise patterns by the name directly above them.
    below: BTreeMap<Str, Vec<Str>>,
    /// Patterns of younger grants that an older grant has too.
    conflicts: Vec<GrantConflict>,
    /// Grants with a value that a cluster would refuse.
    invalid: Vec<Arc<HostnameGrant>>,
    has_selectors: bool,
}

/// A pattern, and the grant that decides about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantedPattern {
    /// The grant.
    pub grant: Arc<HostnameGrant>,
    /// The index of the pattern in its `hostnames`.
    pub index: usize,
}

/// A pattern that two grants have: only the older one decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantConflict {
    /// The younger one.
    pub younger: GrantedPattern,
    /// The older one.
    pub older: GrantedPattern,
}

/// The grants, and what their decisions depend on.
#[derive(Clone, Copy)]
pub(crate) struct GrantRules<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) grants: &'a HostnameGrants,
    /// Whether a name needs a grant.
    pub(crate) is_required: bool,
}

/// Why a namespace may not have a name, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrantRefusal {
    /// `hostname-not-granted`, or a reason that means unknown.
    pub(crate) reason: Reason,
    /// The reason as text.
    pub(crate) message: String,
    /// The object and field to edit, if it is not the one that asks.
    pub(crate) place: Option<(ObjectRef, FieldPath)>,
}

/// Whether a grant admits a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admittance {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// Its selector asks for labels that are not known.
    Unknown,
}

impl GrantedPattern {
    /// The field that has the pattern.
    pub fn field(&self) -> FieldPath {
        FieldPath::of("spec.hostnames").index(self.index)
    }

    /// The text of the pattern.
    pub fn text(&self) -> &Str {
        self.grant.hostnames[self.index].text()
    }
}

impl HostnameGrants {
    /// The grants of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut grants = HostnameGrants::default();
        let mut all: Vec<&Arc<HostnameGrant>> = snapshot.hostname_grants.values().collect();
        all.sort_by(|a, b| a.meta.seniority().cmp(&b.meta.seniority()));
        all.into_iter().for_each(|grant| grants.add(grant));
        grants
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.precise.is_empty() && self.wildcards.is_empty() && self.invalid.is_empty()
    }

    /// Whether a grant selects namespaces by labels.
    pub(crate) fn has_selectors(&self) -> bool {
        self.has_selectors
    }

    /// The grant that decides about a name, with the most specific pattern that covers it.
    pub fn covering(&self, name: &Hostname) -> Option<&GrantedPattern> {
        let own = self.precise.get(name.as_str()).filter(|_| name.is_precise());
        own.or_else(|| above(name.as_str()).find_map(|base| self.wildcards.get(base)))
    }

    /// Patterns that have no effect, because an older grant has them too.
    pub fn conflicts(&self) -> &[GrantConflict] {
        &self.conflicts
    }

    /// Grants with a value that a cluster would refuse: it is not known who may have their hostnames.
    pub fn invalid(&self) -> &[Arc<HostnameGrant>] {
        &self.invalid
    }

    /// Every pattern that decides, with its grant.
    pub fn patterns(&self) -> impl Iterator<Item = &GrantedPattern> {
        self.precise.values().chain(self.wildcards.values())
    }

    /// Adds a grant; older ones were added before.
    fn add(&mut self, grant: &Arc<HostnameGrant>) {
        let is_readable = grant.hostnames.iter().all(|hostname| hostname.name().is_ok());
        if grant.meta.invalid.is_some() || !is_readable {
            return self.invalid.push(grant.clone());
        }
        self.has_selectors |= grant.namespaces.selector.is_some();
        for (index, hostname) in grant.hostnames.iter().enumerate() {
            let Ok(name) = hostname.name() else { continue };
            let younger = GrantedPattern { grant: grant.clone(), index };
            let (map, key) = match name.wildcard_base() {
                Some(base) => (&mut self.wildcards, Str::from(base)),
                None => (&mut self.precise, name.text().clone()),
            };
            match map.get(&key) {
                Some(older) if older.grant == *grant => {}
                Some(older) => self.conflicts.push(GrantConflict { younger, older: older.clone() }),
                None => {
                    if let Some((_, base)) = name.as_str().split_once('.').filter(|_| name.is_precise()) {
                        self.below.entry(base.into()).or_default().push(name.text().clone());
                    }
                    map.insert(key, younger);
                }
            }
        }
    }

    /// The grant because of whose invalid value it is not known who may have a name, if so: one of its patterns is as
    /// specific as the valid one, or cannot be read.
    fn unclear(&self, name: &Hostname) -> Option<&Arc<HostnameGrant>> {
        let valid = self.covering(name).and_then(|found| found.grant.hostnames[found.index].name().ok());
        let is_decided = valid == Some(name);
        self.invalid.iter().find(|grant| {
            let mut patterns = grant.hostnames.iter();
            patterns.any(|pattern| match pattern.name() {
                Ok(pattern) => pattern.contains(name) && valid.is_none_or(|valid| valid.contains(pattern)),
                Err(_) => !is_decided,
            })
        })
    }
}

impl<'a> GrantRules<'a> {
    /// Whether every namespace may have every name.
    fn is_open(self) -> bool {
        self.grants.is_empty() && !self.is_required && !self.is_hidden(Kind::HostnameGrant)
    }

    fn is_hidden(self, kind: Kind) -> bool {
        *self.snapshot.visibility(kind) != Visibility::Complete
    }

    /// That HostnameGrants could not be listed, if so.
    pub(crate) fn unseen(self) -> Option<GrantRefusal> {
        let message =
            "HostnameGrants could not be listed, so it is not known which namespaces may have which hostnames";
        let unseen = || GrantRefusal { reason: reason::KIND_NOT_VISIBLE, message: message.to_owned(), place: None };
        self.is_hidden(Kind::HostnameGrant).then(unseen)
    }

    /// Why a namespace may not have a name; `None` if it may.
    pub(crate) fn refusal(self, name: &Hostname, namespace: &Str) -> Option<GrantRefusal> {
        if self.is_open() || name.is_any() {
            return None;
        }
        if let Some(unseen) = self.unseen() {
            return Some(unseen);
        }
        if let Some(grant) = self.grants.unclear(name) {
            return Some(of_invalid(grant, name));
        }
        let refused = |message| Some(GrantRefusal { reason: reason::HOSTNAME_NOT_GRANTED, message, place: None });
        let Some(GrantedPattern { grant, .. }) = self.grants.covering(name) else {
            return match self.is_required {
                true => refused(format!("no HostnameGrant covers `{name}`, and `--require-grants` asks for one")),
                false => None,
            };
        };
        let object = grant.object();
        match self.admits(grant, namespace) {
            Admittance::Yes => None,
            Admittance::No => {
                let unseen = match self.misses_labels(grant, namespace) {
                    true => {
                        format!("; Namespace {namespace} is not among the files, so its labels are taken as absent")
                    }
                    false => String::new(),
                };
                refused(format!("{object} decides about `{name}` and does not admit namespace `{namespace}`{unseen}"))
            }
            Admittance::Unknown => {
                let message = format!(
                    "Namespaces could not be listed, so it is not known whether {object}, which decides about `{name}`, admits namespace `{namespace}`"
                );
                Some(GrantRefusal { reason: reason::KIND_NOT_VISIBLE, message, place: None })
            }
        }
    }

    /// Why it is certain that a namespace may not have a name; `None` if it may, or if that is not known.
    pub(crate) fn certain_refusal(self, name: &Hostname, namespace: &Str) -> Option<GrantRefusal> {
        self.refusal(name, namespace).filter(|refusal| !refusal.reason.is_unknown())
    }

    /// Whether a grant admits a namespace.
    pub(crate) fn admits(self, grant: &HostnameGrant, namespace: &Str) -> Admittance {
        if grant.namespaces.names.contains(namespace) {
            return Admittance::Yes;
        }
        let Some(selector) = &grant.namespaces.selector else { return Admittance::No };
        if selector.asks_labels() && self.is_hidden(Kind::Namespace) {
            return Admittance::Unknown;
        }
        match self.snapshot.is_namespace_selected(namespace, selector) {
            true => Admittance::Yes,
            false => Admittance::No,
        }
    }

    /// Whether the answer of a grant may differ once the Namespace is among the files.
    fn misses_labels(self, grant: &HostnameGrant, namespace: &Str) -> bool {
        self.snapshot.origin == Origin::Files
            && !self.snapshot.namespaces.contains_key(namespace)
            && grant.namespaces.selector.as_ref().is_some_and(|selector| selector.asks_labels())
    }

    /// Why a Secret of a namespace may not have a wildcard that no grant covers: the certificate would be valid for a name
    /// directly below it that a grant gives to other namespaces.
    pub(crate) fn wildcard_refusal(self, wildcard: &Hostname, namespace: &Str) -> Option<String> {
        let base = wildcard.wildcard_base()?;
        if self.grants.covering(wildcard).is_some() {
            return None;
        }
        let mut below =
            self.grants.below.get(base).into_iter().flatten().filter_map(|name| self.grants.precise.get(name));
        // Names and grants are not told: whoever reads this need not know them.
        below.any(|found| self.admits(&found.grant, namespace) == Admittance::No).then(|| {
            format!(
                "a certificate for `{wildcard}` would be valid for names directly below it that a HostnameGrant gives to \
                 others than namespace `{namespace}`"
            )
        })
    }
}

fn of_invalid(grant: &HostnameGrant, name: &Hostname) -> GrantRefusal {
    let object = grant.object();
    let unreadable = grant.hostnames.iter().position(|hostname| hostname.name().is_err());
    let (field, what) = match (&grant.meta.invalid, unreadable) {
        (Some(invalid), _) => (invalid.field.clone(), invalid.message.clone()),
        (None, index) => {
            (FieldPath::of("spec.hostnames").index(index.unwrap_or_default()), "a hostname cannot be read".to_owned())
        }
    };
    let message = format!("{object} is not valid, so it is not known which namespaces may have `{name}`: {what}");
    GrantRefusal { reason: reason::INVALID_FIELD, message, place: Some((object, field)) }
}
