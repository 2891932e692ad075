//! The laws of intersection, on random names from a few labels so that they overlap often.

use proptest::prelude::*;

use super::super::{HostnameLint, host_of, is_below, is_ip};
use super::*;

fn precise() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", "com"]), 1..5).prop_map(|labels| labels.join("."))
}

fn hostname() -> impl Strategy<Value = Hostname> {
    prop_oneof![
        1 => Just(Hostname::any()),
        4 => precise().prop_map(|text| name(&format!("*.{text}"))),
        4 => precise().prop_map(|text| name(&text)),
    ]
}

/// Intersection where "nothing in common" may already stand on either side.
fn both(a: Option<Hostname>, b: Option<Hostname>) -> Option<Hostname> {
    a?.intersect(&b?)
}

/// A field of a manifest as it may come: nearly right, or anything at all.
fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(\\*\\.)?[a-zA-Z0-9-]{1,6}(\\.[a-z0-9-]{1,6}){0,3}\\.?",
        2 => "[-*.:/@a-z0-9\\[\\]üß]{0,40}",
        1 => any::<String>(),
    ]
}

proptest! {
    #[test]
    fn intersection_does_not_depend_on_the_order(a in hostname(), b in hostname()) {
        prop_assert_eq!(a.intersect(&b), b.intersect(&a));
    }

    #[test]
    fn intersection_with_itself_changes_nothing(a in hostname()) {
        prop_assert_eq!(a.intersect(&a), Some(a));
    }

    #[test]
    fn the_grouping_does_not_matter(a in hostname(), b in hostname(), c in hostname()) {
        let left = both(a.intersect(&b), Some(c.clone()));
        let right = both(Some(a), b.intersect(&c));
        prop_assert_eq!(left, right);
    }

    #[test]
    fn an_unset_name_is_neutral(a in hostname()) {
        prop_assert_eq!(Hostname::any().intersect(&a), Some(a.clone()));
        prop_assert_eq!(a.intersect(&Hostname::any()), Some(a));
    }

    #[test]
    fn the_result_is_the_more_specific_and_lies_in_both(a in hostname(), b in hostname()) {
        if let Some(both) = a.intersect(&b) {
            prop_assert!(a.contains(&both) && b.contains(&both));
            prop_assert_eq!(both.specificity(), a.specificity().max(b.specificity()));
            prop_assert!(both == a || both == b);
        } else {
            prop_assert!(!a.contains(&b) && !b.contains(&a));
        }
    }

    #[test]
    fn a_request_belongs_to_the_intersection_exactly_if_it_belongs_to_both(a in hostname(), b in hostname(), host in precise()) {
        let by_both = a.matches(&host) && b.matches(&host);
        let by_intersection = a.intersect(&b).is_some_and(|both| both.matches(&host));
        prop_assert_eq!(by_both, by_intersection);
    }

    #[test]
    fn matching_is_containment_of_the_precise_name(a in hostname(), host in precise()) {
        prop_assert_eq!(a.matches(&host), a.contains(&name(&host)));
    }

    #[test]
    fn names_that_match_one_request_form_a_chain(a in hostname(), b in hostname(), host in precise()) {
        if a.matches(&host) && b.matches(&host) {
            prop_assert_eq!(a.specificity().cmp(&b.specificity()).is_gt(), b.contains(&a) && a != b);
            prop_assert_eq!(a.specificity() == b.specificity(), a == b);
        }
    }

    #[test]
    fn what_a_certificate_covers_is_also_routed(a in hostname(), host in precise()) {
        prop_assert!(!a.covers_in_certificate(&host) || a.matches(&host));
    }

    #[test]
    fn containment_is_an_order(a in hostname(), b in hostname(), c in hostname()) {
        prop_assert!(a.contains(&a));
        prop_assert!(!(a.contains(&b) && b.contains(&a)) || a == b);
        prop_assert!(!(a.contains(&b) && b.contains(&c)) || a.contains(&c));
    }

    #[test]
    fn a_name_is_read_as_it_is_printed(a in hostname()) {
        if !a.is_any() {
            prop_assert_eq!(Hostname::parse(&a.to_string()), Ok(a));
        }
    }

    #[test]
    fn whatever_is_taken_is_canonical(text in field()) {
        if let Ok(taken) = Hostname::parse(&text) {
            prop_assert_eq!(Hostname::parse(taken.as_str()), Ok(taken.clone()));
            prop_assert_eq!(taken.as_str(), text.to_ascii_lowercase());
            prop_assert!(taken.as_str().len() <= 253 && !is_ip(taken.as_str()));
            prop_assert!(taken.is_wildcard() || taken.is_precise());
        }
    }

    #[test]
    fn the_suggested_ascii_form_is_valid(text in field()) {
        if let Err(super::super::HostnameError::NotAscii(Some(ascii))) = Hostname::parse(&text) {
            prop_assert!(Hostname::parse(&ascii).is_ok());
        }
    }

    #[test]
    fn nothing_panics(text in field(), other in field()) {
        let _ = HostnameLint::of(&text);
        let _ = Hostname::parse(&text).map_err(|e| e.to_string());
        let _ = is_below(&text, &other);
        let host = host_of(&text);
        prop_assert_eq!(host_of(&host.to_ascii_uppercase()).to_ascii_lowercase(), host_of(&host));
        let _ = name("*.example.com").matches(&host);
        let _ = name("*.example.com").covers_in_certificate(&host);
    }
}
