//! Header modifiers: set, then add, then remove; names in any case.

use crate::model::HeaderChange;
use crate::routing::answer::ResponseChange;

type Headers = Vec<(String, String)>;

/// Changes the headers of a request.
pub(super) fn change_request(headers: &mut Headers, change: &HeaderChange) {
    change.set.iter().for_each(|(name, value)| set(headers, name, value));
    change.add.iter().for_each(|(name, value)| add(headers, name, value));
    change.remove.iter().for_each(|name| {
        remove(headers, name);
    });
}

/// Adds a change to a response. The headers of the backend are unknown, so adding and setting are kept apart.
pub(super) fn change_response(response: &mut ResponseChange, change: &HeaderChange) {
    change.set.iter().for_each(|(name, value)| set_response(response, name, value));
    change.add.iter().for_each(|(name, value)| add_response(response, name, value));
    for name in change.remove.iter() {
        remove(&mut response.headers, name);
        forget(&mut response.appended, name);
        forget(&mut response.removed, name);
        response.removed.push(name.to_string());
    }
}

/// Sets a header of a response, overriding the backend and earlier filters.
pub(super) fn set_response(response: &mut ResponseChange, name: &str, value: &str) {
    forget(&mut response.appended, name);
    forget(&mut response.removed, name);
    set(&mut response.headers, name, value);
}

fn add_response(response: &mut ResponseChange, name: &str, value: &str) {
    // What was taken out before is not there to be added to.
    let was_removed = forget(&mut response.removed, name);
    if !was_removed && !holds(&response.headers, name) {
        response.appended.push(name.to_owned());
    }
    add(&mut response.headers, name, value);
}

/// Replaces a header, or adds it at the end.
pub(super) fn set(headers: &mut Headers, name: &str, value: &str) {
    match headers.iter_mut().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
        Some(header) => *header = (name.to_owned(), value.to_owned()),
        None => headers.push((name.to_owned(), value.to_owned())),
    }
}

/// Adds a value to a header.
pub(super) fn add(headers: &mut Headers, name: &str, value: &str) {
    match headers.iter_mut().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
        Some((_, values)) => *values = format!("{values},{value}"),
        None => headers.push((name.to_owned(), value.to_owned())),
    }
}

/// Removes a header and returns its value.
pub(super) fn remove(headers: &mut Headers, name: &str) -> Option<String> {
    let at = headers.iter().position(|(n, _)| n.eq_ignore_ascii_case(name))?;
    Some(headers.remove(at).1)
}

fn holds(headers: &Headers, name: &str) -> bool {
    headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name))
}

fn forget(names: &mut Vec<String>, name: &str) -> bool {
    let before = names.len();
    names.retain(|n| !n.eq_ignore_ascii_case(name));
    names.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(set: &[(&str, &str)], add: &[(&str, &str)], remove: &[&str]) -> HeaderChange {
        let pairs = |pairs: &[(&str, &str)]| pairs.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        HeaderChange { set: pairs(set), add: pairs(add), remove: remove.iter().map(|n| (*n).into()).collect() }
    }

    fn response(changes: &[HeaderChange]) -> ResponseChange {
        let mut response = ResponseChange::default();
        changes.iter().for_each(|c| change_response(&mut response, c));
        response
    }

    #[test]
    fn adding_is_told_from_setting() {
        let response = response(&[change(&[("A", "1")], &[("B", "2")], &["C"])]);
        assert_eq!(response.headers, [("A".into(), "1".into()), ("B".into(), "2".into())]);
        assert_eq!((response.appended, response.removed), (vec!["B".to_string()], vec!["C".to_string()]));
    }

    #[test]
    fn later_filters_see_what_earlier_ones_did() {
        let done = response(&[change(&[("A", "1")], &[], &["B"]), change(&[], &[("a", "2"), ("b", "3")], &[])]);
        assert_eq!(done.headers, [("A".into(), "1,2".into()), ("b".into(), "3".into())]);
        assert!(done.appended.is_empty() && done.removed.is_empty());
        let done = response(&[change(&[], &[("A", "1")], &[]), change(&[], &[], &["a"])]);
        assert!(done.headers.is_empty() && done.appended.is_empty());
        assert_eq!(done.removed, ["a"]);
    }

    #[test]
    fn request_headers_are_set_added_and_removed() {
        let mut headers = vec![("x-a".to_string(), "1".to_string()), ("x-b".into(), "2".into())];
        change_request(&mut headers, &change(&[("X-A", "9")], &[("X-B", "3"), ("X-C", "4")], &["x-c"]));
        assert_eq!(headers, [("X-A".into(), "9".into()), ("x-b".into(), "2,3".into())]);
    }
}
