//! The name of the TXT record that marks a record, in every layout that external-dns has used.
//!
//! `foo.example.com` of type A is marked at `a-foo.example.com`; a prefix or suffix goes around the first label, and one with
//! `%{record_type}` in it replaces the `a-`. Older releases marked all types at the bare name. No zone is read here.

use std::fmt;

use crate::model::Str;

/// The placeholder of the type in a prefix or suffix.
const TEMPLATE: &str = "%{record_type}";

/// The types that a marker's name may begin with.
pub(super) const TYPES: [&str; 11] = ["A", "AAAA", "CNAME", "NS", "MX", "PTR", "SRV", "NAPTR", "TXT", "DNAME", "TLSA"];

/// How markers are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    prefix: Str,
    suffix: Str,
    wildcard: Str,
}

/// A prefix and a suffix were both given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BothAffixes;

impl fmt::Display for BothAffixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`--txt-prefix` and `--txt-suffix` exclude each other")
    }
}

impl Layout {
    /// The layout of `--txt-prefix`, `--txt-suffix` and `--txt-wildcard-replacement`; empty where not given.
    pub fn new(prefix: &str, suffix: &str, wildcard: &str) -> Result<Self, BothAffixes> {
        if !prefix.is_empty() && !suffix.is_empty() {
            return Err(BothAffixes);
        }
        let lower = |text: &str| Str::from(text.to_ascii_lowercase());
        Ok(Layout { prefix: lower(prefix), suffix: lower(suffix), wildcard: lower(wildcard) })
    }

    /// The name that marks a record.
    pub fn marker_of(&self, name: &str, kind: &str) -> String {
        let kind = kind.to_ascii_lowercase();
        let (first, rest) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
        let first = if first == "*" && !self.wildcard.is_empty() { &self.wildcard } else { first };
        let typed = if self.has_template() { first.to_owned() } else { format!("{kind}-{first}") };
        let affix = |text: &str| text.replace(TEMPLATE, &kind);
        let front = format!("{}{typed}{}", affix(&self.prefix), affix(&self.suffix));
        rest.map_or_else(|| front.clone(), |rest| format!("{front}.{rest}"))
    }

    /// The record that a name marks: its name, a wildcard replaced, and its type; no type in the oldest layout.
    pub fn target_of(&self, marker: &str) -> Option<(String, Option<&'static str>)> {
        let marker = marker.to_ascii_lowercase();
        if self.suffix.is_empty() {
            return self.strip(&marker);
        }
        let dots = self.suffix.matches('.').count();
        let split = marker.match_indices('.').nth(dots).map(|(at, _)| at);
        let (front, rest) = split.map_or((&*marker, ""), |at| marker.split_at(at));
        if marker.split('.').count() <= dots {
            return None;
        }
        self.strip(front).map(|(name, kind)| (format!("{name}{rest}"), kind))
    }

    /// The name under which a record is looked up among the targets of markers.
    pub fn lookup_name(&self, name: &str) -> String {
        match name.strip_prefix("*.") {
            Some(rest) if !self.wildcard.is_empty() => format!("{}.{rest}", self.wildcard),
            _ => name.to_owned(),
        }
    }

    /// The wildcard that shares its marker with a name, if it does.
    pub fn wildcard_of(&self, name: &str) -> Option<String> {
        let (first, rest) = name.split_once('.')?;
        (!self.wildcard.is_empty() && first == &*self.wildcard).then(|| format!("*.{rest}"))
    }

    fn has_template(&self) -> bool {
        self.prefix.contains(TEMPLATE) || self.suffix.contains(TEMPLATE)
    }

    /// Takes prefix or suffix off, and the type with it.
    fn strip(&self, name: &str) -> Option<(String, Option<&'static str>)> {
        if self.has_template() {
            let typed = TYPES.iter().find_map(|kind| {
                let bare = self.without_affix(name, &kind.to_ascii_lowercase())?;
                Some((bare.to_owned(), Some(*kind)))
            });
            if typed.is_some() {
                return typed;
            }
        }
        self.without_affix(name, "").map(type_in_front)
    }

    /// What is left of a name without the affix, whose template stands for `kind`.
    fn without_affix<'n>(&self, name: &'n str, kind: &str) -> Option<&'n str> {
        if self.suffix.is_empty() {
            name.strip_prefix(&self.prefix.replace(TEMPLATE, kind))
        } else {
            name.strip_suffix(&self.suffix.replace(TEMPLATE, kind))
        }
    }
}

/// Reads the type off the front of a name: `a-foo`.
fn type_in_front(name: &str) -> (String, Option<&'static str>) {
    let front = name.split('-').next().unwrap_or_default();
    let kind = TYPES.into_iter().find(|kind| kind.to_ascii_lowercase() == front);
    let Some(kind) = kind else { return (name.to_owned(), None) };
    let rest = name.strip_prefix(front).and_then(|rest| rest.strip_prefix('-')).unwrap_or(name);
    (rest.to_owned(), Some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout(prefix: &str, suffix: &str, wildcard: &str) -> Layout {
        Layout::new(prefix, suffix, wildcard).unwrap()
    }

    #[test]
    fn markers_are_named_as_external_dns_names_them() {
        let table = [
            (("", "", ""), "foo.example.com", "A", "a-foo.example.com"),
            (("", "", ""), "example.com", "AAAA", "aaaa-example.com"),
            (("", "", ""), "*.example.com", "A", "a-*.example.com"),
            (("", "", "any"), "*.example.com", "A", "a-any.example.com"),
            (("Own.", "", ""), "foo.example.com", "CNAME", "own.cname-foo.example.com"),
            (("", "-own", ""), "foo.example.com", "A", "a-foo-own.example.com"),
            (("%{record_type}-own.", "", ""), "foo.example.com", "A", "a-own.foo.example.com"),
            (("", "-%{record_type}", ""), "foo.example.com", "AAAA", "foo-aaaa.example.com"),
            (("", "", ""), "localhost", "A", "a-localhost"),
        ];
        for ((prefix, suffix, wildcard), name, kind, marker) in table {
            let layout = layout(prefix, suffix, wildcard);
            assert_eq!(layout.marker_of(name, kind), marker);
            assert_eq!(layout.target_of(marker), Some((layout.lookup_name(name), Some(kind))), "{marker}");
        }
    }

    #[test]
    fn the_oldest_layout_is_read() {
        let table = [
            (("", ""), "foo.example.com", Some(("foo.example.com", None))),
            (("own-", ""), "own-foo.example.com", Some(("foo.example.com", None))),
            (("own-", ""), "foo.example.com", None),
            (("", "-own"), "foo-own.example.com", Some(("foo.example.com", None))),
            (("%{record_type}own-", ""), "own-foo.example.com", Some(("foo.example.com", None))),
            (("", ".own.sub"), "short", None),
        ];
        for ((prefix, suffix), marker, target) in table {
            let target = target.map(|(name, kind): (&str, _)| (name.to_owned(), kind));
            assert_eq!(layout(prefix, suffix, "").target_of(marker), target, "{marker}");
        }
    }

    #[test]
    fn prefix_and_suffix_exclude_each_other() {
        assert_eq!(Layout::new("a", "b", ""), Err(BothAffixes));
    }

    proptest! {
        #[test]
        fn any_name_is_read(prefix in "[a-z.%{}_-]{0,8}", suffix in "[a-z.%{}_-]{0,8}", name in "[a-z.*-]{0,30}") {
            for layout in [layout(&prefix, "", ""), layout("", &suffix, "any")] {
                let _ = (layout.target_of(&name), layout.marker_of(&name, "A"));
            }
        }
    }
}
