//! What a field takes: lengths, letter case, international names, and the mistakes people make.

use super::super::{HostnameError, HostnameLint, PreciseHostname, host_of, is_below, is_ip};
use super::*;

/// A name of exactly this many characters, in labels of at most 63.
fn of_length(characters: usize) -> String {
    let mut text = "a".repeat(characters);
    for dot in (1..characters / 64 + 1).map(|i| i * 64 - 1).filter(|dot| *dot + 1 < characters) {
        text.replace_range(dot..=dot, ".");
    }
    text
}

#[test]
fn a_label_has_at_most_63_octets() {
    let label = "a".repeat(63);
    assert!(Hostname::parse(&format!("{label}.example.com")).is_ok());
    assert!(Hostname::parse(&format!("*.{label}.com")).is_ok());
    let long = "a".repeat(64);
    for text in [format!("{long}.example.com"), format!("*.{long}.com"), format!("www.{long}")] {
        assert_eq!(Hostname::parse(&text), Err(HostnameError::LabelTooLong(long.clone())), "{text}");
    }
}

#[test]
fn a_hostname_has_at_most_253_octets_and_the_wildcard_counts() {
    let whole = of_length(253);
    assert_eq!(whole.len(), 253);
    assert!(Hostname::parse(&whole).is_ok());
    assert_eq!(Hostname::parse(&of_length(254)), Err(HostnameError::TooLong(254)));
    assert!(Hostname::parse(&format!("*.{}", of_length(251))).is_ok());
    assert_eq!(Hostname::parse(&format!("*.{}", of_length(252))), Err(HostnameError::TooLong(254)));
    assert_eq!(Hostname::parse(&of_length(300)), Err(HostnameError::TooLong(300)));
    assert_eq!(Hostname::parse(&"a".repeat(1 << 20)), Err(HostnameError::TooLong(1 << 20)));
}

#[test]
fn letter_case_is_folded_and_told() {
    assert_eq!(name("WWW.Example.COM"), name("www.example.com"));
    assert_eq!(name("*.EXAMPLE.com"), name("*.example.com"));
    assert_eq!(HostnameLint::of("WWW.Example.COM"), [HostnameLint::UpperCase("www.example.com".into())]);
    assert_eq!(HostnameLint::of("www.example.com"), []);
    assert_eq!(host_of("WWW.Example.COM:80"), "www.example.com");
}

#[test]
fn international_names_are_answered_with_their_ascii_form() {
    let rows = [
        ("bücher.example", Some("xn--bcher-kva.example")),
        ("*.bücher.example", Some("*.xn--bcher-kva.example")),
        ("BÜCHER.example", Some("xn--bcher-kva.example")),
        ("例え.テスト", Some("xn--r8jz45g.xn--zckzah")),
        ("bü cher.example", None),
        ("bücher_1.example", None),
        ("１９２.0.2.1", None),
    ];
    for (text, ascii) in rows {
        let expected = HostnameError::NotAscii(ascii.map(str::to_owned));
        assert_eq!(Hostname::parse(text), Err(expected), "{text}");
    }
}

#[test]
fn international_names_in_ascii_are_told() {
    let rows = [
        ("xn--bcher-kva.example", HostnameLint::International("bücher.example".into())),
        ("*.xn--bcher-kva.example", HostnameLint::International("*.bücher.example".into())),
        ("www.xn--zzzzzzz999999.example", HostnameLint::BrokenPunycode("xn--zzzzzzz999999".into())),
        ("xn--example-.com", HostnameLint::BrokenPunycode("xn--example-".into())),
        ("xn--.example.com", HostnameLint::BrokenPunycode("xn--".into())),
    ];
    for (text, expected) in rows {
        assert_eq!(HostnameLint::of(text), [expected], "{text}");
    }
}

#[test]
fn mistakes_are_named_as_a_whole() {
    let rows = [
        ("", HostnameError::Empty),
        ("*", HostnameError::BareWildcard),
        ("*.", HostnameError::EmptyLabel),
        (".", HostnameError::TrailingDot),
        (".example.com", HostnameError::EmptyLabel),
        ("www..example.com", HostnameError::EmptyLabel),
        ("www.example.com.", HostnameError::TrailingDot),
        ("www.example.com:443", HostnameError::Port),
        ("192.0.2.1:443", HostnameError::Port),
        ("https://www.example.com", HostnameError::Url),
        ("https://www.example.com:8443/shop", HostnameError::Url),
        ("www.example.com/shop", HostnameError::Url),
        ("user@example.com", HostnameError::Url),
        ("www.*.com", HostnameError::WildcardPosition),
        ("*.*.example.com", HostnameError::WildcardPosition),
        ("**.example.com", HostnameError::WildcardPosition),
        ("www.example.*", HostnameError::WildcardPosition),
        ("*.192.0.2.1", HostnameError::IpAddress),
        ("under_score.example.com", HostnameError::Character('_')),
        ("with space.example.com", HostnameError::Character(' ')),
        ("nul\0.example.com", HostnameError::Character('\0')),
        ("-www.example.com", HostnameError::Hyphen("-www".into())),
        ("www-.example.com", HostnameError::Hyphen("www-".into())),
    ];
    for (text, expected) in rows {
        assert_eq!(Hostname::parse(text), Err(expected), "{text:?}");
    }
}

#[test]
fn what_looks_odd_and_is_valid() {
    for text in ["localhost", "*.com", "1.example.com", "3com.example", "a--b.example.com", "1.2.3", "256.256.256.256"]
    {
        assert_eq!(name(text).as_str(), text);
    }
}

#[test]
fn precise_fields_take_no_wildcard() {
    assert_eq!(PreciseHostname::parse("WWW.example.com").unwrap().to_string(), "www.example.com");
    assert_eq!(PreciseHostname::parse("*.example.com"), Err(HostnameError::WildcardNotAllowed));
    assert_eq!(PreciseHostname::parse("*"), Err(HostnameError::BareWildcard));
    assert_eq!(name("*.example.com").precise(), None);
    assert_eq!(Hostname::any().precise(), None);
}

#[test]
fn every_error_reads_as_a_clause() {
    let texts = [
        "",
        "*",
        "*.",
        "a..b",
        "a.",
        "a:1",
        "a/b",
        "a*",
        "_",
        "-",
        "ü",
        "ü_",
        "10.0.0.1",
        &"a".repeat(64),
        &of_length(254),
    ];
    for text in texts {
        let clause = Hostname::parse(text).expect_err(text).to_string();
        assert!(
            clause.starts_with("is ") || clause.starts_with("has ") || clause.ends_with("dot") || clause.contains(' '),
            "{clause}"
        );
        assert!(!clause.ends_with('.') && clause.len() < 120, "{clause}");
    }
}

#[test]
fn hosts_are_compared_without_port() {
    let rows = [
        ("www.example.com", "www.example.com"),
        ("www.example.com:1234", "www.example.com"),
        ("192.0.2.1:80", "192.0.2.1"),
        ("[2001:db8::1]:80", "[2001:db8::1]"),
        ("[2001:DB8::1]", "[2001:db8::1]"),
        ("2001:db8::1", "2001:db8::1"),
        ("::1", "::1"),
        (":80", ""),
        ("", ""),
        ("www.example.com:http", "www.example.com:http"),
    ];
    for (header, expected) in rows {
        assert_eq!(host_of(header), expected, "{header}");
    }
}

#[test]
fn an_ip_as_host_matches_only_unset_hostnames() {
    for host in ["192.0.2.1", "[2001:db8::1]", ""] {
        assert!(Hostname::any().matches(host));
        assert!(!name("*.1").matches(host), "a wildcard over the last octet is no wildcard over an address");
        assert!(!name("*.example.com").matches(host));
    }
    assert!(is_ip("192.0.2.1") && is_ip("[::1]") && is_ip("::1") && !is_ip("[192.0.2") && !is_ip("example.com"));
}

#[test]
fn wildcards_stand_for_whole_labels() {
    assert!(!is_below("badexample.com", "example.com"));
    assert!(!is_below(".example.com", "example.com"));
    assert!(!is_below("example.com", "example.com"));
    assert!(is_below("a.example.com", "example.com"));
    assert_eq!(common("*.example.com", "*.badexample.com"), "none");
    assert_eq!(common("*.example.com", "*.a.example.com"), "*.a.example.com");
}

#[test]
fn a_certificate_never_covers_by_any_or_by_a_wildcard_name() {
    assert!(!Hostname::any().covers_in_certificate("www.example.com"));
    assert!(!name("*.example.com").covers_in_certificate("*.example.com"));
    assert!(!name("*.example.com").covers_in_certificate("example.com"));
    assert!(!name("*.example.com").covers_in_certificate(".example.com"));
    assert!(!name("*.com").covers_in_certificate("www.example.com"));
}
