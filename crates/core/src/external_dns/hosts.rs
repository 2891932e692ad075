//! Hostnames as external-dns compares them: as text, not as [`crate::names::Hostname`].
//!
//! The empty text matches every name. A trailing dot is an ordinary character, labels follow RFC 1123, and a leading `*.`
//! matches one or more labels.

use std::borrow::Cow;
use std::net::Ipv4Addr;

/// The form in which a hostname is compared, if it is one: lower case.
pub(super) fn canonical(text: &str) -> Option<Cow<'_, str>> {
    if !text.is_empty() && !is_valid(text) {
        return None;
    }
    let is_lower = !text.bytes().any(|b| b.is_ascii_uppercase());
    Some(if is_lower { text.into() } else { text.to_ascii_lowercase().into() })
}

/// The more specific of two hostnames that overlap. Both must be canonical.
pub(super) fn common<'a>(a: &'a str, b: &'a str) -> Option<&'a str> {
    if a.is_empty() || covers(a, b) {
        Some(b)
    } else if b.is_empty() || a == b || covers(b, a) {
        Some(a)
    } else {
        None
    }
}

/// The part of a wildcard after `*.`.
pub(super) fn wildcard_base(host: &str) -> Option<&str> {
    host.strip_prefix("*.")
}

/// Whether a wildcard matches every name that another hostname matches.
fn covers(wildcard: &str, host: &str) -> bool {
    wildcard_base(wildcard).is_some_and(|base| crate::names::is_below(host, base))
}

fn is_valid(text: &str) -> bool {
    let base = text.strip_prefix("*.").unwrap_or(text);
    let labels = base.strip_suffix('.').unwrap_or(base);
    text.parse::<Ipv4Addr>().is_err() && (1..=255).contains(&base.len()) && labels.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= 63
        && is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::OverlapIndex;

    fn intersection(a: &str, b: &str) -> Option<String> {
        let (a, b) = (canonical(a)?, canonical(b)?);
        common(&a, &b).map(str::to_owned)
    }

    #[test]
    fn overlapping_names_yield_the_more_specific_one() {
        let table = [
            ("", "", Some("")),
            ("", "a.test", Some("a.test")),
            ("", "*.a.test", Some("*.a.test")),
            ("", "a", Some("a")),
            ("a.test", "a.test", Some("a.test")),
            ("A.Test", "a.tEST", Some("a.test")),
            ("*.test", "a.test", Some("a.test")),
            ("*.test", "b.a.test", Some("b.a.test")),
            ("*.test", "test", None),
            ("*.test", "atest", None),
            ("*.a.test", "*.test", Some("*.a.test")),
            ("*.a.test", "*.a.test", Some("*.a.test")),
            ("*.a.test", "*.b.test", None),
            ("*.a.test", "a.test", None),
            ("*.a.test", "b.test", None),
            ("*.a.test", "xa.test", None),
            ("a.test", "b.test", None),
            ("a.test", "a.test.", None),
            ("*.test", "a.test.", None),
            ("*.test.", "a.test.", Some("a.test.")),
            ("", "a.test.", Some("a.test.")),
            ("xn--bcher-kva.test", "*.test", Some("xn--bcher-kva.test")),
            ("*.xn--p1ai", "a.xn--p1ai", Some("a.xn--p1ai")),
            ("*.10.0.0.1", "a.10.0.0.1", Some("a.10.0.0.1")),
            ("1.test", "*.test", Some("1.test")),
            ("*.com", "a.b.c.d.com", Some("a.b.c.d.com")),
            ("*.b.com", "a.b.com", Some("a.b.com")),
            ("*.bb.com", "a.b.com", None),
        ];
        for (a, b, expected) in table {
            assert_eq!(intersection(a, b).as_deref(), expected, "{a:?} and {b:?}");
            assert_eq!(intersection(b, a).as_deref(), expected, "{b:?} and {a:?}");
        }
    }

    #[test]
    fn what_is_no_name_has_nothing_in_common() {
        let long = "a".repeat(64);
        let texts = [
            "*",
            "*.",
            ".",
            "..",
            "a..b",
            ".a",
            "a..",
            "*foo.com",
            "f*.com",
            "*.*.com",
            "a_b.test",
            "192.0.2.1",
            "::1",
            "bücher.test",
            "-a.test",
            "a-.test",
            "a b.test",
            "a/b",
            "http://a.test",
            "a.test:80",
            &long,
            "<no value>.test",
        ];
        for text in texts {
            assert_eq!(intersection("", text), None, "{text:?}");
            assert_eq!(intersection(text, text), None, "{text:?}");
        }
    }

    #[test]
    fn lengths_are_counted_as_external_dns_does() {
        let label = "a".repeat(63);
        let long = [label.as_str(); 4].join(".");
        assert_eq!(long.len(), 255);
        assert!(canonical(&long).is_some());
        assert!(canonical(&format!("*.{long}")).is_some());
        assert!(canonical(&format!("{long}.")).is_none());
    }

    fn index(hosts: &[&str]) -> OverlapIndex {
        OverlapIndex::new(hosts.iter().map(|host| Some((*host).into())))
    }

    const HOSTS: [&str; 18] = [
        "",
        "a.test",
        "b.test",
        "test",
        "*.test",
        "*.a.test",
        "*.b.a.test",
        "x.a.test",
        "x.b.a.test",
        "*.xa.test",
        "xa.test",
        "a.test.",
        "*.test.",
        "y.a.test.",
        "*.other",
        "other",
        "q.other",
        "*.a.test",
    ];

    #[test]
    fn the_index_answers_as_comparing_with_each_would() {
        let index = index(&HOSTS);
        for host in HOSTS.into_iter().chain(["none", "*.none", "z.y.x.b.a.test", "*.z.a.test"]) {
            let mut found = Vec::new();
            index.overlapping(host, |listener| found.push(listener));
            found.sort();
            let expected: Vec<u32> =
                (0..HOSTS.len() as u32).filter(|i| common(HOSTS[*i as usize], host).is_some()).collect();
            assert_eq!(found, expected, "{host}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_index_answers_so_for_any_hosts(hosts in proptest::collection::vec("(\\*\\.)?([ab]\\.){0,3}(a|b|ab)\\.?|", 0..12)) {
            let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
            let index = index(&hosts);
            for host in &hosts {
                let mut found = Vec::new();
                index.overlapping(host, |listener| found.push(listener));
                found.sort();
                let expected: Vec<u32> = (0..hosts.len() as u32).filter(|i| common(hosts[*i as usize], host).is_some()).collect();
                proptest::prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn listeners_without_a_valid_hostname_are_never_found() {
        let index = OverlapIndex::new([None, Some("a.test".into())].into_iter());
        let mut found = Vec::new();
        index.overlapping("", |listener| found.push(listener));
        assert_eq!(found, [1]);
    }
}
