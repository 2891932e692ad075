//! The `hostnames` field of HTTPRoute (001): every example of its prose. The text lost its asterisks; `.example.com` there
//! is `*.example.com` here.

use super::super::host_of;
use super::*;

#[test]
fn attachment_examples() {
    let rows = [
        ("001 precise listener: route without hostnames", "test.example.com", "unset", "test.example.com"),
        ("001 precise listener: the same name", "test.example.com", "test.example.com", "test.example.com"),
        ("001 precise listener: a wildcard above it", "test.example.com", "*.example.com", "test.example.com"),
        ("001 wildcard listener: route without hostnames", "*.example.com", "unset", "*.example.com"),
        ("001 wildcard listener: the same wildcard", "*.example.com", "*.example.com", "*.example.com"),
        ("001 wildcard listener: one label below", "*.example.com", "test.example.com", "test.example.com"),
        ("001 wildcard listener: two labels below", "*.example.com", "foo.test.example.com", "foo.test.example.com"),
        ("001 wildcard listener: the apex does not match", "*.example.com", "example.com", "none"),
        ("001 wildcard listener: another domain does not match", "*.example.com", "test.example.net", "none"),
    ];
    for (row, listener, route, expected) in rows {
        assert_eq!(common(listener, route), expected, "{row}");
    }
}

#[test]
fn wildcards_are_suffix_matches() {
    let rows = [
        ("001 suffix: one label", "test.example.com", true),
        ("001 suffix: two labels", "foo.test.example.com", true),
        ("001 suffix: never the apex", "example.com", false),
    ];
    for (row, host, expected) in rows {
        assert_eq!(name("*.example.com").matches(host), expected, "{row}");
    }
}

#[test]
fn hostnames_without_intersection_are_ignored() {
    let listener = name("*.example.com");
    let route = ["test.example.com", "test.example.net"].map(name);
    let kept: Vec<_> = route.iter().filter_map(|hostname| listener.intersect(hostname)).collect();
    assert_eq!(kept, [name("test.example.com")], "001 ignored hostnames: `test.example.net` is not considered");
}

#[test]
fn the_port_of_a_host_header_is_ignored() {
    for header in ["test.example.com", "test.example.com:80", "test.example.com:", "TEST.example.com:8080"] {
        assert!(name("test.example.com").matches(&host_of(header)), "001 port of `{header}`");
    }
}

#[test]
fn longer_names_come_first() {
    let rows = [
        ("001 precedence 1: non-wildcard before wildcard", "a.b.com", "*.a-long-suffix.b.com"),
        ("001 precedence 1: more characters without wildcard", "test.example.com", "a.com"),
        ("001 precedence 2: more characters with wildcard", "*.test.example.com", "*.example.com"),
        ("001 precedence 2: a route without hostnames comes last", "*.com", "unset"),
    ];
    for (row, first, second) in rows {
        assert!(name(first).specificity() > name(second).specificity(), "{row}");
    }
}
