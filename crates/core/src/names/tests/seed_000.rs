//! The document "Hostnames in Gateway API" (000): every row of its tables and every example of its prose.

use super::super::{HostnameError, PreciseHostname, host_of};
use super::*;

#[test]
fn validation_examples() {
    let bad = |text| Hostname::parse(text).expect_err(text);
    assert_eq!(name("*.example.com").as_str(), "*.example.com", "000 wildcards: `*.example.com` is valid");
    assert_eq!(bad("f*.example.com"), HostnameError::WildcardPosition, "000 wildcards: the star must stand leftmost");
    assert_eq!(
        bad("*oo.example.com"),
        HostnameError::WildcardPosition,
        "000 wildcards: the star must be a whole label"
    );
    assert_eq!(
        bad("f*.com"),
        HostnameError::WildcardPosition,
        "000 SNI: valid in a certificate, not in a hostname field"
    );
    for ip in ["192.168.0.1", "192.168.0.2", "2001:db8::1", "[2001:db8::1]"] {
        assert_eq!(bad(ip), HostnameError::IpAddress, "000 warning: IP addresses are never valid hostnames");
    }
    let precise = |text| PreciseHostname::parse(text);
    assert_eq!(precise("www.example.com").unwrap().as_str(), "www.example.com", "000 types: PreciseHostname");
    assert_eq!(precise("*.example.com"), Err(HostnameError::WildcardNotAllowed), "000 types: PreciseHostname");
}

#[test]
fn wildcards_match_one_or_more_labels() {
    let rows = [
        ("000 wildcards: one label", "*.example.com", "www.example.com", true),
        ("000 wildcards: two labels", "*.example.com", "sub.domain.example.com", true),
        ("000 wildcards: never the apex", "*.example.com", "example.com", false),
        ("000 wildcards: `*.com`, one label", "*.com", "example.com", true),
        ("000 wildcards: `*.com`, two labels", "*.com", "www.example.com", true),
    ];
    for (row, hostname, request, matches) in rows {
        assert_eq!(name(hostname).matches(request), matches, "{row}");
        assert_eq!(name(hostname).contains(&name(request)), matches, "{row}, as containment");
    }
}

#[test]
fn intersection_table() {
    let rows = [
        ("000 intersection row 1: precise with itself", "www.example.com", "www.example.com", "www.example.com"),
        ("000 intersection row 2: precise under a wildcard", "*.example.com", "www.example.com", "www.example.com"),
        ("000 intersection row 3: several labels", "*.example.com", "sub.domain.example.com", "sub.domain.example.com"),
        ("000 intersection row 4: wildcard on the route", "www.example.com", "*.example.com", "www.example.com"),
        (
            "000 intersection row 5: several labels, wildcard on the route",
            "sub.domain.example.com",
            "*.example.com",
            "sub.domain.example.com",
        ),
        ("000 intersection row 6: wildcard with itself", "*.example.com", "*.example.com", "*.example.com"),
        ("000 intersection row 7: the more specific wildcard", "*.com", "*.example.com", "*.example.com"),
        ("000 intersection row 8: anything with precise", "*", "www.example.com", "www.example.com"),
        ("000 intersection row 9: anything with anything", "*", "*", "*"),
    ];
    for (row, listener, route, expected) in rows {
        assert_eq!(common(listener, route), expected, "{row}");
    }
}

#[test]
fn specificity_examples() {
    let rows = [
        ("000 ordering row 1", "www.example.com", "*.example.com"),
        ("000 ordering row 2", "*.example.com", "*.com"),
        ("000 ordering row 3", "*.com", "*"),
    ];
    for (row, more, less) in rows {
        let (more, less) = (name(more), name(less));
        assert!(more.specificity() > less.specificity(), "{row}: {more} before {less}");
    }
}

#[test]
fn listeners_are_tried_exact_then_wildcard_then_any() {
    let mut listeners = ["*", "*.com", "www.example.com", "*.example.com"].map(name);
    listeners.sort_by_key(|listener| std::cmp::Reverse(listener.specificity()));
    assert_eq!(
        listeners,
        ["www.example.com", "*.example.com", "*.com", "*"].map(name),
        "000 ordering: general pattern"
    );
}

#[test]
fn sni_table() {
    let rows = [
        ("000 SNI row 1: equal", "www.example.com", "www.example.com", true),
        ("000 SNI row 2: another name", "www.example.com", "foo.example.com", false),
        ("000 SNI row 3: one label", "*.example.com", "www.example.com", true),
        ("000 SNI row 4: one label", "*.example.com", "foo.example.com", true),
        ("000 SNI row 5: two labels", "*.example.com", "foo.bar.example.com", false),
        ("000 SNI quotation: `*.a.com` matches `foo.a.com`", "*.a.com", "foo.a.com", true),
        ("000 SNI quotation: but not `bar.foo.a.com`", "*.a.com", "bar.foo.a.com", false),
    ];
    for (row, certificate, sni, expected) in rows {
        assert_eq!(name(certificate).covers_in_certificate(sni), expected, "{row}");
    }
}

#[test]
fn host_header_table() {
    let rows = [
        ("000 Host row 1: equal", "www.example.com", "www.example.com", true),
        ("000 Host row 2: another name", "www.example.com", "foo.example.com", false),
        ("000 Host row 3: one label", "*.example.com", "www.example.com", true),
        ("000 Host row 4: one label", "*.example.com", "foo.example.com", true),
        ("000 Host row 5: two labels", "*.example.com", "foo.bar.example.com", true),
    ];
    for (row, hostname, host, expected) in rows {
        assert_eq!(name(hostname).matches(host), expected, "{row}");
        assert_eq!(name(hostname).matches(&host_of(&format!("{host}:8443"))), expected, "{row}, with a port");
    }
}

/// A row of the table "Expected match examples": what is asked, and whether it matches. An empty question is not asked.
struct Example {
    row: &'static str,
    listener: &'static str,
    route: &'static str,
    common: &'static str,
    sni: (&'static str, bool),
    host: (&'static str, bool),
}

const NOT_ASKED: (&str, bool) = ("", false);

/// An example without TLS: the Host header alone decides.
const fn plain(
    row: &'static str,
    listener: &'static str,
    route: &'static str,
    common: &'static str,
    host: (&'static str, bool),
) -> Example {
    Example { row, listener, route, common, sni: NOT_ASKED, host }
}

/// An example where TLS terminates at the gateway: SNI and, behind it, the Host header.
const fn terminated(
    row: &'static str,
    route: &'static str,
    common: &'static str,
    sni: (&'static str, bool),
    host: (&'static str, bool),
) -> Example {
    Example { row, listener: "*.example.com", route, common, sni, host }
}

/// An example of a TLSRoute: the SNI alone decides.
const fn tls(
    row: &'static str,
    listener: &'static str,
    route: &'static str,
    common: &'static str,
    sni: (&'static str, bool),
) -> Example {
    Example { row, listener, route, common, sni, host: NOT_ASKED }
}

const WWW: &str = "www.example.com";
const FOO: &str = "foo.example.com";
const DEEP: &str = "foo.bar.example.com";
const WILD: &str = "*.example.com";

const EXAMPLES: [Example; 17] = [
    plain("000 examples row 1: HTTP, equal", WWW, WWW, WWW, (WWW, true)),
    plain("000 examples row 2: HTTP, wildcard listener", WILD, WWW, WWW, (WWW, true)),
    plain("000 examples row 3: HTTP, two wildcards", WILD, "*.com", WILD, (WWW, true)),
    plain("000 examples row 4: HTTP, two wildcards, two labels", WILD, "*.com", WILD, (DEEP, true)),
    plain("000 examples row 5: HTTP, the apex", WILD, WWW, WWW, ("example.com", false)),
    plain("000 examples row 6: HTTP, another name", WILD, WWW, WWW, (FOO, false)),
    terminated("000 examples row 7: HTTPS, precise route", WWW, WWW, (WWW, true), (WWW, true)),
    terminated("000 examples row 8: HTTPS, precise route of two labels", DEEP, DEEP, (DEEP, true), (DEEP, true)),
    terminated("000 examples row 9: HTTPS, wildcard certificate, two labels", WILD, WILD, (DEEP, false), NOT_ASKED),
    terminated("000 examples row 10: HTTPS, precise route", FOO, FOO, (FOO, true), (FOO, true)),
    tls("000 examples row 11: passthrough, equal", WWW, WWW, WWW, (WWW, true)),
    tls("000 examples row 12: passthrough, wildcard listener", WILD, WWW, WWW, (WWW, true)),
    tls("000 examples row 13: passthrough, another name", WILD, WWW, WWW, (FOO, false)),
    tls("000 examples row 14: passthrough, another name than the intersection", WILD, DEEP, DEEP, (WWW, false)),
    tls("000 examples row 15: passthrough, route without hostname", WILD, "unset", WILD, (WWW, true)),
    tls("000 examples row 16: passthrough, route without hostname, two labels", WILD, "unset", WILD, (DEEP, false)),
    tls("000 examples row 17: TLS terminated, equal", WWW, WWW, WWW, (WWW, true)),
];

#[test]
fn expected_match_examples() {
    for example in &EXAMPLES {
        let row = example.row;
        let both = name(example.listener).intersect(&name(example.route)).unwrap_or_else(|| panic!("{row}: attaches"));
        assert_eq!(both, name(example.common), "{row}: intersected hostname");
        if !example.sni.0.is_empty() {
            assert_eq!(both.covers_in_certificate(example.sni.0), example.sni.1, "{row}: SNI");
        }
        if !example.host.0.is_empty() {
            assert_eq!(both.matches(example.host.0), example.host.1, "{row}: Host");
        }
    }
}

#[test]
fn a_listener_certificate_is_not_good_for_every_intersected_name() {
    let note = "000 examples row 8, note: the certificate must carry the intersected hostname";
    assert!(!name(WILD).covers_in_certificate(DEEP), "{note}");
    assert!(name(WILD).matches(DEEP), "{note}; the request is routed all the same");
}

#[test]
fn names_that_need_records_and_certificates() {
    for route in ["foo.example.com", "bar.example.com", "baz.quux.example.com"] {
        assert_eq!(common("*.example.com", route), route, "000 DNS example: {route}");
        assert!(!name(route).matches("quux.example.com"), "000 DNS example: `quux` is nobody's");
    }
}
