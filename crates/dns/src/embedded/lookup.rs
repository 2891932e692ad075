//! What one zone says to one name and type (RFC 1034, section 4.3.2, and RFC 4592).
//!
//! One step only: who follows an alias calls again. Work is bounded by the labels of the zone's deepest name.

use super::name::LabelPath;
use super::record::kind;
use super::rrset::Rrset;
use super::zone::{Zone, ZoneNode};

/// What a zone says.
pub(crate) enum LookupResult<'z> {
    /// The records asked for.
    Answer(Rrset<'z>),
    /// The name is an alias.
    Alias(Rrset<'z>),
    /// The name exists, or a wildcard covers it, but has no such records.
    NoData,
    /// There is no such name.
    NoName,
    /// Others know: the delegation and its name servers.
    Elsewhere(ZoneNode<'z>, Rrset<'z>),
}

/// Asks a zone for a name that lies in it.
pub(crate) fn find<'z>(zone: &'z Zone, path: &LabelPath, kind: u16) -> LookupResult<'z> {
    let start = path.labels().saturating_sub(zone.deepest());
    for taken in start..=path.labels() {
        let Some(node) = zone.node(path.without(taken)) else { continue };
        return at_encloser(zone, node, taken == 0, kind);
    }
    LookupResult::NoName
}

/// Decides at the deepest existing name at or above the one asked for.
fn at_encloser<'z>(zone: &'z Zone, node: ZoneNode<'z>, exact: bool, kind: u16) -> LookupResult<'z> {
    if let Some(cut) = node.cut()
        && let Some(servers) = cut.set(kind::NS)
        && !(exact && kind == kind::DS && cut.is(&node))
    {
        return LookupResult::Elsewhere(cut, servers);
    }
    if exact {
        return at_node(zone, node, kind);
    }
    node.wildcard().map_or(LookupResult::NoName, |wildcard| at_node(zone, wildcard, kind))
}

/// Decides at a name that exists. Any type is answered with one set, which stands for all of them (RFC 8482).
fn at_node<'z>(zone: &'z Zone, node: ZoneNode<'z>, kind: u16) -> LookupResult<'z> {
    let set = if kind == kind::ANY { node.sets().next() } else { zone.set(node, kind) };
    if let Some(set) = set {
        return LookupResult::Answer(set);
    }
    node.set(kind::CNAME).map_or(LookupResult::NoData, LookupResult::Alias)
}
