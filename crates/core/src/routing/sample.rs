//! Requests that the matches of a route accept, to find out what a client would meet.
//!
//! A sample is checked with the compiled match, so that one that could not be made right is left out. Nothing is routed here.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::matching::Test;
use super::request::{GatewayRequest, ParsedRequest, Scheme};
use crate::model::*;

/// How often at most a part of an expression is repeated.
const REPEATED: u32 = 64;

/// Where sample requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleSite {
    /// The protocol of the client.
    pub scheme: Scheme,
    /// The host.
    pub host: String,
    /// The listener's port.
    pub port: u16,
}

impl SampleSite {
    /// A request for a path.
    pub fn get(&self, path: &str) -> GatewayRequest {
        GatewayRequest {
            scheme: self.scheme,
            host: self.host.clone(),
            sni: None,
            port: self.port,
            method: "GET".to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            grpc: false,
        }
    }

    /// Requests that a rule of a route accepts, one per item of its matches.
    pub fn requests(&self, kind: RouteKind, rule: &Rule) -> Vec<GatewayRequest> {
        let made: Vec<Option<GatewayRequest>> = match (&rule.matches, kind.traffic()) {
            (Matches::Http(items), _) => items.iter().map(|item| self.http(item)).collect(),
            (Matches::Grpc(items), _) if !items.is_empty() => items.iter().map(|item| self.call(item)).collect(),
            (_, TrafficKind::Calls) => vec![Some(self.any_call())],
            _ => vec![Some(self.get("/"))],
        };
        let tests = Test::of(kind, &rule.matches);
        let is_accepted = |test: &Test, request: &GatewayRequest| test.check(&ParsedRequest::new(request)).is_ok();
        made.into_iter().zip(&tests).filter_map(|(request, test)| request.filter(|r| is_accepted(test, r))).collect()
    }

    fn http(&self, item: &HttpMatch) -> Option<GatewayRequest> {
        let path = match item.path.kind {
            MatchKind::Regex => sample(&item.path.value)?,
            _ => item.path.value.to_string(),
        };
        let mut path = if path.starts_with('/') { path } else { format!("/{path}") };
        for (i, parameter) in item.query.iter().enumerate() {
            path.push(if i == 0 { '?' } else { '&' });
            path.push_str(&format!("{}={}", encoded(&parameter.name), encoded(&value(parameter)?)));
        }
        let method = item.method.as_deref().unwrap_or("GET").to_owned();
        Some(GatewayRequest { method, headers: headers(&item.headers)?, ..self.get(&path) })
    }

    fn any_call(&self) -> GatewayRequest {
        GatewayRequest { method: "POST".to_owned(), grpc: true, ..self.get("/any.Service/Method") }
    }

    fn call(&self, item: &GrpcMatch) -> Option<GatewayRequest> {
        let part = |text: &Option<Str>, otherwise: &str| match (text, &item.kind) {
            (Some(text), MatchKind::Regex) if !text.is_empty() => sample(text),
            (Some(text), _) if !text.is_empty() => Some(text.to_string()),
            _ => Some(otherwise.to_owned()),
        };
        let path = format!("/{}/{}", part(&item.service, "any.Service")?, part(&item.method, "Method")?);
        Some(GatewayRequest { path, headers: headers(&item.headers)?, ..self.any_call() })
    }
}

fn headers(items: &[ValueMatch]) -> Option<Vec<(String, String)>> {
    items.iter().map(|item| Some((item.name.to_string(), value(item)?))).collect()
}

fn value(item: &ValueMatch) -> Option<String> {
    if item.kind == MatchKind::Regex { sample(&item.value) } else { Some(item.value.to_string()) }
}

/// A value of a query parameter, with everything encoded that has a meaning in a query.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// A short text that an expression matches, as far as it can be told from its syntax.
fn sample(expression: &str) -> Option<String> {
    let mut text = String::new();
    append(&regex_syntax::parse(expression).ok()?, &mut text);
    Some(text)
}

fn append(hir: &Hir, text: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => text.extend(member(class)),
        HirKind::Repetition(part) => (0..part.min.min(REPEATED)).for_each(|_| append(&part.sub, text)),
        HirKind::Capture(part) => append(&part.sub, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| append(part, text)),
        HirKind::Alternation(parts) => parts.iter().take(1).for_each(|part| append(part, text)),
    }
}

/// A character of a class: a letter or a digit if it has one.
fn member(class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.ranges().iter().map(|r| (r.start(), r.end())).collect(),
        Class::Bytes(class) => class.ranges().iter().map(|r| (r.start().into(), r.end().into())).collect(),
    };
    let has = |c: &char| ranges.iter().any(|(start, end)| (*start..=*end).contains(c));
    ['a', '0', 'A', '-'].into_iter().find(has).or_else(|| ranges.first().map(|(start, _)| *start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> SampleSite {
        SampleSite { scheme: Scheme::Https, host: "www.x.com".into(), port: 443 }
    }

    fn value(kind: MatchKind, name: &str, value: &str) -> ValueMatch {
        ValueMatch { kind, name: name.into(), value: value.into() }
    }

    #[test]
    fn expressions_have_a_sample() {
        let table = [
            ("/api/v[0-9]+/.*", "/api/v0/"),
            ("/(items|orders)/\\d{2}", "/items/00"),
            ("^/a$", "/a"),
            ("/[x-z]?b*", "/"),
        ];
        for (expression, text) in table {
            assert_eq!(sample(expression).as_deref(), Some(text), "{expression}");
        }
        assert_eq!(sample("/(a"), None);
    }

    #[test]
    fn a_sample_has_everything_that_a_match_asks_for() {
        let item = HttpMatch {
            path: PathMatch { kind: MatchKind::Regex, value: "/a/[^/]+".into() },
            headers: vec![value(MatchKind::Regex, "x-a", "v[12]")].into(),
            query: vec![value(MatchKind::Exact, "q", "1&2"), value(MatchKind::Exact, "r", "ä")].into(),
            method: Some("PUT".into()),
        };
        let rule = Rule { matches: Matches::Http(vec![item].into()), ..Rule::default() };
        let requests = site().requests(RouteKind::Http, &rule);
        assert_eq!(requests[0].path, "/a/a?q=1%262&r=%C3%A4");
        assert_eq!(requests[0].method, "PUT");
        assert_eq!(requests[0].headers, [("x-a".to_owned(), "v1".to_owned())]);
    }

    #[test]
    fn a_match_that_nothing_fits_has_no_sample() {
        let never = HttpMatch {
            path: PathMatch { kind: MatchKind::Other("Glob".into()), value: "/*".into() },
            ..HttpMatch::default()
        };
        let rule = Rule { matches: Matches::Http(vec![never, HttpMatch::default()].into()), ..Rule::default() };
        let requests = site().requests(RouteKind::Http, &rule);
        assert_eq!(requests.iter().map(|r| &*r.path).collect::<Vec<_>>(), ["/"]);
    }
}
