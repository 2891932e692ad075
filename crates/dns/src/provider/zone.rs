//! Zones by name: which one a name belongs to, and what tells one state of a zone from another.

use gatepost_core::model::Str;
use gatepost_core::plan::ZoneContent;
use ring::digest;

/// A domain as a zone: lower case, no dots around it.
pub(crate) fn zone_name(domain: &str) -> Str {
    domain.trim().trim_matches('.').to_ascii_lowercase().into()
}

/// The longest zone at or above a name.
pub(crate) fn zone_of<'z>(zones: impl IntoIterator<Item = &'z Str>, name: &str) -> Option<&'z Str> {
    zones.into_iter().filter(|zone| is_at_or_below(name, zone)).max_by_key(|zone| zone.len())
}

/// Whether a name is a domain or below it.
pub(crate) fn is_at_or_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|front| front.is_empty() || front.ends_with('.'))
}

/// Whether names of a zone may be published: it is at, below or above one of the domains, or there are none.
pub(crate) fn is_published(domains: &[String], zone: &str) -> bool {
    let domains: Vec<Str> =
        domains.iter().map(|domain| zone_name(domain)).filter(|domain| !domain.is_empty()).collect();
    domains.is_empty() || domains.iter().any(|domain| is_at_or_below(zone, domain) || is_at_or_below(domain, zone))
}

/// A digest of everything in a zone, for services without a serial.
pub(crate) fn fingerprint(content: &ZoneContent) -> Str {
    let mut context = digest::Context::new(&digest::SHA256);
    for set in content.sets() {
        context.update(format!("{set:?}\n").as_bytes());
    }
    let hex: String = context.finish().as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    hex.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_the_longest_zone() {
        let zones: Vec<Str> = ["example.com", "sub.example.com"].map(zone_name).into();
        let rows = [
            ("example.com", Some("example.com")),
            ("www.example.com", Some("example.com")),
            ("a.sub.example.com", Some("sub.example.com")),
            ("badexample.com", None),
        ];
        for (name, zone) in rows {
            assert_eq!(zone_of(&zones, name).map(|zone| &**zone), zone, "{name}");
        }
    }
}
