//! Hostnames of the Gateway API: validity, intersection, matching.
//!
//! A [`Hostname`] is precise (`www.example.com`), a wildcard (`*.example.com`, one *or more* labels) or [`Hostname::any`],
//! the `*` of a field that is not set. It is parsed once, at the border, and always valid afterwards. This module knows no
//! objects and makes no DNS queries.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, LazyLock};

mod lint;
mod overlap;
mod parse;
#[cfg(test)]
mod tests;

pub use lint::HostnameLint;
pub use overlap::OverlapIndex;
pub use parse::HostnameError;

/// A valid hostname of a listener or route: precise, wildcard, or the `*` of an unset field.
#[derive(Clone, Eq)]
pub struct Hostname(Arc<str>);

/// A hostname without wildcard: what a client can ask for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PreciseHostname(Arc<str>);

/// How closely a hostname describes a request; greater is more specific. For one request all names that match it form a
/// chain, so that comparing two of these never contradicts the length rules of the Gateway API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    precise: bool,
    characters: usize,
}

impl Hostname {
    /// Parses a hostname field. Upper case is folded; [`HostnameLint::of`] reports what a cluster would refuse.
    pub fn parse(text: &str) -> Result<Self, HostnameError> {
        parse::hostname(text).map(|text| Hostname(text.into()))
    }

    /// The hostname of a field that is not set: it matches everything.
    pub fn any() -> Self {
        static ANY: LazyLock<Arc<str>> = LazyLock::new(|| "*".into());
        Hostname(ANY.clone())
    }

    /// The name as a shared text.
    pub fn text(&self) -> &Arc<str> {
        &self.0
    }

    /// The name as text; `*` for [`Hostname::any`].
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the `*` of an unset field.
    pub fn is_any(&self) -> bool {
        &*self.0 == "*"
    }

    /// Whether the first label is a wildcard; `*` itself is not counted.
    pub fn is_wildcard(&self) -> bool {
        self.0.starts_with("*.")
    }

    /// Whether the name has no wildcard at all.
    pub fn is_precise(&self) -> bool {
        !self.0.starts_with('*')
    }

    /// The part of a wildcard after `*.`.
    pub fn wildcard_base(&self) -> Option<&str> {
        self.0.strip_prefix("*.")
    }

    /// This name as a precise one, if it is.
    pub fn precise(&self) -> Option<PreciseHostname> {
        self.is_precise().then(|| PreciseHostname(self.0.clone()))
    }

    /// The intersection of two hostnames, if any: the more specific one.
    pub fn intersect(&self, other: &Hostname) -> Option<Hostname> {
        self.common(other).cloned()
    }

    /// The one of two hostnames that is their intersection, if any.
    pub fn common<'a>(&'a self, other: &'a Hostname) -> Option<&'a Hostname> {
        if self.contains(other) {
            Some(other)
        } else if other.contains(self) {
            Some(self)
        } else {
            None
        }
    }

    /// Whether two hostnames intersect.
    pub fn overlaps(&self, other: &Hostname) -> bool {
        self.contains(other) || other.contains(self)
    }

    /// Whether this hostname matches every name that `other` matches.
    pub fn contains(&self, other: &Hostname) -> bool {
        if self.is_any() || self == other {
            return true;
        }
        match (self.wildcard_base(), other.wildcard_base()) {
            (Some(base), Some(inner)) => is_below(inner, base),
            (Some(base), None) => !other.is_any() && is_below(&other.0, base),
            (None, _) => false,
        }
    }

    /// Whether a request for this host belongs here: suffix match of any depth, never of an IP address. The host is
    /// compared as [`host_of`] gives it.
    pub fn matches(&self, host: &str) -> bool {
        match self.wildcard_base() {
            _ if self.is_any() => true,
            Some(base) => is_below(host, base) && !(host.ends_with(|c: char| c.is_ascii_digit()) && is_ip(host)),
            None => &*self.0 == host,
        }
    }

    /// Whether a certificate with this name is valid for `name`: a wildcard matches exactly one label (RFC 2818).
    pub fn covers_in_certificate(&self, name: &str) -> bool {
        match self.wildcard_base() {
            _ if self.is_any() => false,
            Some(base) => name.split_once('.').is_some_and(|(label, rest)| rest == base && !matches!(label, "" | "*")),
            None => &*self.0 == name,
        }
    }

    /// The rank of this name among those that match one request.
    pub fn specificity(&self) -> Specificity {
        let characters = if self.is_any() { 0 } else { self.0.len() };
        Specificity { precise: self.is_precise(), characters }
    }
}

impl PreciseHostname {
    /// Reads a field that takes no wildcard.
    pub fn parse(text: &str) -> Result<Self, HostnameError> {
        let name = Hostname::parse(text)?;
        name.precise().ok_or(HostnameError::WildcardNotAllowed)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Hostname {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Ord for Hostname {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for Hostname {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Hostname {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Borrow<str> for Hostname {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<PreciseHostname> for Hostname {
    fn from(name: PreciseHostname) -> Self {
        Hostname(name.0)
    }
}

impl fmt::Display for Hostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Hostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for PreciseHostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PreciseHostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The host of a `Host` header or authority as it is compared: port stripped, lower case. An IPv6 literal keeps its brackets.
pub fn host_of(header: &str) -> String {
    let host = match header.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !is_bare_ipv6(header) => host,
        _ => header,
    };
    host.to_ascii_lowercase()
}

/// Whether `text` is an IP address, with or without brackets.
pub fn is_ip(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    inner.parse::<Ipv4Addr>().is_ok() || inner.parse::<Ipv6Addr>().is_ok()
}

/// Whether `name` has at least one label in front of `base`.
pub fn is_below(name: &str, base: &str) -> bool {
    name.strip_suffix(base).and_then(|front| front.strip_suffix('.')).is_some_and(|front| !front.is_empty())
}

fn is_bare_ipv6(text: &str) -> bool {
    !text.starts_with('[') && text.matches(':').count() > 1
}
