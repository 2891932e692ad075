//! CORS: the preflight that the Gateway answers itself, and the headers of the following request.
//!
//! The origin of the request is always returned as it came, never `*`, which the specification allows in every case. An origin
//! that is not allowed gets no header; the browser then refuses the response.

use crate::model::{Cors, Str};
use crate::routing::answer::ResponseChange;
use crate::routing::request::ParsedRequest;

use super::{Passage, headers};

/// Whether the request is a CORS preflight.
pub(in crate::routing) fn is_preflight(asked: &ParsedRequest<'_>) -> bool {
    let has = |name| asked.header(name).is_some_and(|value| !value.is_empty());
    asked.request.method == "OPTIONS" && has("origin") && has("access-control-request-method")
}

/// The answer to a preflight, and what a browser will make of it.
pub(in crate::routing) fn preflight(cors: &Cors, asked: &ParsedRequest<'_>) -> (ResponseChange, String) {
    let mut response = ResponseChange::default();
    let origin = asked.header("origin").unwrap_or_default();
    if !allows_origin(cors, &origin) {
        return (response, format!("the origin `{origin}` is not allowed, so the browser will not send the request"));
    }
    let method = asked.header("access-control-request-method").unwrap_or_default();
    let wanted = asked.header("access-control-request-headers");
    share_headers(cors, &origin, &mut response);
    let mut add = |name: &str, value: Option<String>| {
        value.into_iter().for_each(|value| headers::set_response(&mut response, name, &value));
    };
    add("access-control-allow-methods", list(&cors.methods, cors.credentials, Some(&method)));
    add("access-control-allow-headers", list(&cors.headers, cors.credentials, wanted.as_deref()));
    add("access-control-max-age", Some(cors.max_age.to_string()));
    let verdict = match refused(cors, &method, wanted.as_deref().unwrap_or_default()) {
        Some(what) => format!("{what} is not allowed, so the browser will not send the request"),
        None => format!("the origin `{origin}` is allowed"),
    };
    (response, verdict)
}

/// The headers of an answer to a cross-origin request.
pub(super) fn share(cors: &Cors, asked: &ParsedRequest<'_>, passage: &mut Passage) {
    let Some(origin) = asked.header("origin") else { return };
    if allows_origin(cors, &origin) {
        share_headers(cors, &origin, &mut passage.response);
    } else {
        passage
            .notes
            .push(format!("the origin `{origin}` is not allowed by the CORS filter, so a browser hides the answer"));
    }
}

fn share_headers(cors: &Cors, origin: &str, response: &mut ResponseChange) {
    headers::set_response(response, "access-control-allow-origin", origin);
    if cors.credentials {
        headers::set_response(response, "access-control-allow-credentials", "true");
    }
    if let Some(exposed) = list(&cors.expose, cors.credentials, None) {
        headers::set_response(response, "access-control-expose-headers", &exposed);
    }
}

/// A list as a header value. With credentials a `*` would mean a literal star, so that what was asked for is named instead.
fn list(values: &[Str], credentials: bool, asked: Option<&str>) -> Option<String> {
    if credentials && values.iter().any(|value| &**value == "*") {
        return asked.map(str::to_owned);
    }
    (!values.is_empty()).then(|| values.join(", "))
}

/// The method or header that a browser will find missing in the answer.
fn refused(cors: &Cors, method: &str, wanted: &str) -> Option<String> {
    let allows = |values: &[Str], value: &str| values.iter().any(|v| &**v == "*" || v.eq_ignore_ascii_case(value));
    if !["GET", "HEAD", "POST"].contains(&method) && !cors.methods.iter().any(|m| &**m == "*" || &**m == method) {
        return Some(format!("the method {method}"));
    }
    let mut names = wanted.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.find(|name| !allows(&cors.headers, name)).map(|name| format!("the header `{name}`"))
}

fn allows_origin(cors: &Cors, origin: &str) -> bool {
    cors.origins.iter().any(|pattern| &**pattern == "*" || origin_matches(pattern, origin))
}

fn origin_matches(pattern: &str, origin: &str) -> bool {
    let (Some((scheme, host, port)), Some((asked_scheme, asked_host, asked_port))) = (parts(pattern), parts(origin))
    else {
        return false;
    };
    scheme == asked_scheme && port == asked_port && host_matches(&host, &asked_host)
}

/// Scheme, host and port of an origin, folded; the port is the scheme's where none is written.
fn parts(origin: &str) -> Option<(String, String, String)> {
    let (scheme, rest) = origin.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => (host, port),
        _ => (rest, if scheme == "https" { "443" } else { "80" }),
    };
    Some((scheme, host.to_ascii_lowercase(), port.to_owned()))
}

/// Every `*` matches at least one character, dots included.
fn host_matches(pattern: &str, host: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = host.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match after_one(rest).and_then(|tail| tail.split_once(part)) {
            Some((_, tail)) => rest = tail,
            None => return false,
        }
    }
    after_one(rest).is_some_and(|tail| tail.ends_with(last))
}

fn after_one(text: &str) -> Option<&str> {
    let mut characters = text.chars();
    characters.next().map(|_| characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_compared_by_scheme_host_and_port() {
        let rows = [
            ("https://www.foo.com", "https://www.foo.com", true),
            ("https://www.foo.com", "HTTPS://WWW.FOO.COM:443", true),
            ("https://www.foo.com", "http://www.foo.com", false),
            ("https://www.foo.com", "https://www.foo.com:8443", false),
            ("https://*.bar.com", "https://www.bar.com", true),
            ("https://*.bar.com", "https://xpto.www.bar.com", true),
            ("https://*.bar.com", "https://bar.com", false),
            ("https://*.bar.com", "https://foobar.com", false),
            ("https://*", "https://anything.example:443", true),
            ("https://a*.x*.com", "https://ab.xy.com", true),
            ("https://a*.x*.com", "https://a.xy.com", false),
            ("https://foo.com", "null", false),
        ];
        for (pattern, origin, expected) in rows {
            assert_eq!(origin_matches(pattern, origin), expected, "{pattern} {origin}");
        }
    }

    #[test]
    fn a_star_is_spelt_out_where_credentials_are_allowed() {
        let star = ["*".into()];
        assert_eq!(list(&star, false, Some("PUT")).as_deref(), Some("*"));
        assert_eq!(list(&star, true, Some("PUT")).as_deref(), Some("PUT"));
        assert_eq!(list(&star, true, None), None);
        assert_eq!(list(&[], true, Some("PUT")), None);
    }
}
