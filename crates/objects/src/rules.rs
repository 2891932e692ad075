//! Rules of the Gateway API that a server enforces and a file escapes: counts, unique names, one of several fields.
//!
//! Each rule tells about the field to change and never drops anything: an object that a cluster would refuse is still used,
//! so that the rest of it can be judged.

use std::collections::BTreeMap;
use std::fmt::Display;

use gatepost_core::model::{Matches, Rule, Str};

use crate::fields::Fields;

pub(crate) mod addresses;
pub(crate) mod filters;
pub(crate) mod infrastructure;
pub(crate) mod listeners;
pub(crate) mod parents;
pub(crate) mod paths;

/// Tells when a list or mapping has too many entries.
pub(crate) fn at_most(f: &Fields<'_>, key: &str, found: usize, most: usize) {
    if found > most {
        f.invalid(key, format!("has {found} entries, at most {most} are allowed"));
    }
}

/// Tells when a list has too few or too many entries.
pub(crate) fn count(f: &Fields<'_>, key: &'static str, found: usize, least: usize, most: usize) {
    if f.is_no_list(key) {
        return;
    }
    let allowed = if least == most { format!("exactly {least} is") } else { format!("{least} to {most} are") };
    if found < least && !f.has(key) {
        f.invalid(key, format!("is missing; {allowed} needed"));
    } else if !(least..=most).contains(&found) {
        f.invalid(key, format!("has {found} entries, {allowed} allowed"));
    }
}

/// Tells about every entry that repeats an earlier one. `member` is the field of an entry that must differ.
pub(crate) fn unique<'v, T: Ord + Display + 'v>(
    f: &Fields<'_>,
    key: &'static str,
    member: Option<&'static str>,
    values: impl Iterator<Item = &'v T>,
    what: &str,
) {
    let mut first: BTreeMap<&T, usize> = BTreeMap::new();
    for (i, value) in values.enumerate() {
        let earlier = *first.entry(value).or_insert(i);
        if earlier != i && !value.to_string().is_empty() {
            let path = f.path().key(key).field().index(i);
            let path = member.map_or(path.clone(), |member| path.key(member));
            f.invalid_at(path, format!("repeats the {what} `{value}` of entry {earlier}; each must be different"));
        }
    }
}

/// Tells when two rules of a route have one name.
pub(crate) fn unique_names(f: &Fields<'_>, rules: &[Rule]) {
    let names: Vec<Str> = rules.iter().map(|rule| rule.name.clone().unwrap_or_default()).collect();
    unique(f, "rules", Some("name"), names.iter(), "rule name");
}

/// Tells when the rules of a route have too many matches in all.
pub(crate) fn total_matches(f: &Fields<'_>, rules: &[Rule]) {
    let of = |rule: &Rule| match &rule.matches {
        Matches::Everything => 0,
        Matches::Http(matches) => matches.len(),
        Matches::Grpc(matches) => matches.len(),
    };
    let total: usize = rules.iter().map(of).sum();
    if total > 128 {
        f.invalid("rules", format!("have {total} matches in all, at most 128 are allowed in one route"));
    }
}

/// Reads a field that takes one of a few words; another word is told and kept.
pub(crate) fn word(f: &Fields<'_>, key: &'static str, known: &[&str]) -> Option<Str> {
    let word: Str = f.node(key)?.text().unwrap_or_default().into();
    if !known.contains(&&*word) {
        f.unknown_value(key, &word, known);
    }
    Some(word)
}
