//! Whether a request matches a rule, and if not, which condition fails.
//!
//! Matches are prepared once per route. A regular expression must match the whole value; an expression that does not compile
//! or exceeds a size limit never matches, and neither does an unknown match type.

use std::fmt;

use regex::{Regex, RegexBuilder};

use crate::model::*;

use super::request::ParsedRequest;

/// How large a compiled expression may grow, in octets.
const REGEX_LIMIT: usize = 1 << 20;

/// One item of a rule's `matches`, prepared.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// Every connection.
    Everything,
    Http(HttpTest),
    Grpc(GrpcTest),
}

#[derive(Clone, Debug)]
pub(super) struct HttpTest {
    path: PathTest,
    method: Option<Str>,
    headers: Vec<ValueTest>,
    query: Vec<ValueTest>,
}

#[derive(Clone, Debug)]
pub(super) struct GrpcTest {
    service: Option<Pattern>,
    method: Option<Pattern>,
    headers: Vec<ValueTest>,
}

#[derive(Clone, Debug)]
enum PathTest {
    Whole(Pattern),
    /// Without slashes at its end.
    Prefix(Str),
}

#[derive(Clone, Debug)]
struct ValueTest {
    name: Str,
    pattern: Pattern,
}

#[derive(Clone, Debug)]
struct Pattern {
    text: Str,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    Exact,
    Regex(Regex),
    /// An expression that does not compile, or an unknown match type.
    Never,
}

/// The first condition of a match that a request fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Miss {
    Path(String),
    Method(Str),
    Header(Str),
    Query(Str),
    Call(String),
}

/// How closely a match describes requests, in the order in which it counts; greater goes first.
pub(super) type Score = [usize; 6];

impl Test {
    /// The matches of a rule, in order. A rule that gives none matches everything of its kind.
    pub(super) fn of(kind: RouteKind, matches: &Matches) -> Vec<Test> {
        match matches {
            Matches::Http(items) => items.iter().map(|item| Test::Http(HttpTest::of(item))).collect(),
            Matches::Grpc(items) if !items.is_empty() => items.iter().map(|i| Test::Grpc(GrpcTest::of(i))).collect(),
            Matches::Grpc(_) => vec![Test::Grpc(GrpcTest::everything())],
            Matches::Everything => match kind.traffic() {
                TrafficKind::Requests => vec![Test::Http(HttpTest::of(&HttpMatch::default()))],
                TrafficKind::Calls => vec![Test::Grpc(GrpcTest::everything())],
                TrafficKind::Connections => vec![Test::Everything],
            },
        }
    }

    /// Whether the request matches, or the condition that fails.
    pub(super) fn check(&self, asked: &ParsedRequest<'_>) -> Result<(), Miss> {
        match self {
            Test::Everything => Ok(()),
            Test::Http(test) => test.check(asked),
            Test::Grpc(test) => test.check(asked),
        }
    }

    pub(super) fn score(&self) -> Score {
        match self {
            Test::Everything => Score::default(),
            Test::Http(test) => test.score(),
            Test::Grpc(test) => test.score(),
        }
    }

    /// The parts of a [`Score`], named as in "it has …".
    pub(super) fn criteria(&self) -> [&'static str; 6] {
        match self {
            Test::Grpc(_) => ["a longer service", "a longer method", "more headers", "", "", ""],
            _ => [
                "an exact path",
                "a longer path",
                "a path prefix instead of an expression",
                "a method",
                "more headers",
                "more query parameters",
            ],
        }
    }

    /// The path prefix that filters may replace.
    pub(super) fn prefix(&self) -> Option<&str> {
        match self {
            Test::Http(HttpTest { path: PathTest::Prefix(prefix), .. }) => Some(prefix),
            _ => None,
        }
    }

    /// Whether the path is a regular expression, whose rank the specification leaves open.
    pub(super) fn has_path_expression(&self) -> bool {
        matches!(self, Test::Http(HttpTest { path: PathTest::Whole(Pattern { how: How::Regex(_), .. }), .. }))
    }
}

impl HttpTest {
    fn of(item: &HttpMatch) -> Self {
        let path = match item.path.kind {
            MatchKind::Prefix => PathTest::Prefix(item.path.value.trim_end_matches('/').into()),
            _ => PathTest::Whole(Pattern::new(&item.path.kind, &item.path.value)),
        };
        let method = item.method.clone();
        let headers = values(&item.headers, |a, b| a.eq_ignore_ascii_case(b));
        HttpTest { path, method, headers, query: values(&item.query, |a, b| a == b) }
    }

    fn check(&self, asked: &ParsedRequest<'_>) -> Result<(), Miss> {
        if !self.path.fits(asked.path) {
            return Err(Miss::Path(self.path.to_string()));
        }
        if let Some(method) = self.method.as_ref().filter(|method| ***method != *asked.request.method) {
            return Err(Miss::Method(method.clone()));
        }
        check_headers(&self.headers, asked)?;
        let fits = |test: &&ValueTest| !asked.parameter(&test.name).is_some_and(|value| test.pattern.fits(value));
        self.query.iter().find(fits).map_or(Ok(()), |test| Err(Miss::Query(test.name.clone())))
    }

    /// Exact before anything else; then the longer path, where an expression counts by its own length and yields to a
    /// prefix of the same length; then method, headers and query parameters.
    fn score(&self) -> Score {
        let (exact, length, prefix) = match &self.path {
            PathTest::Prefix(prefix) => (0, prefix.len(), 1),
            PathTest::Whole(Pattern { text, how: How::Exact }) => (1, text.len(), 0),
            PathTest::Whole(pattern) => (0, pattern.text.len(), 0),
        };
        // Exact paths that match one request are equal.
        let length = if exact == 1 { 0 } else { length };
        [exact, length, prefix, usize::from(self.method.is_some()), self.headers.len(), self.query.len()]
    }
}

impl GrpcTest {
    fn of(item: &GrpcMatch) -> Self {
        let pattern = |text: &Option<Str>| {
            text.as_ref().filter(|text| !text.is_empty()).map(|text| Pattern::new(&item.kind, text))
        };
        let headers = values(&item.headers, |a, b| a.eq_ignore_ascii_case(b));
        GrpcTest { service: pattern(&item.service), method: pattern(&item.method), headers }
    }

    fn everything() -> Self {
        GrpcTest { service: None, method: None, headers: Vec::new() }
    }

    fn check(&self, asked: &ParsedRequest<'_>) -> Result<(), Miss> {
        let (service, method) = asked.call().unwrap_or_default();
        let fits = |pattern: &Option<Pattern>, value: &str| pattern.as_ref().is_none_or(|p| p.fits(value));
        if !fits(&self.service, service) || !fits(&self.method, method) {
            return Err(Miss::Call(self.to_string()));
        }
        check_headers(&self.headers, asked)
    }

    fn score(&self) -> Score {
        let length = |pattern: &Option<Pattern>| pattern.as_ref().map_or(0, |p| p.text.len());
        [length(&self.service), length(&self.method), self.headers.len(), 0, 0, 0]
    }
}

impl PathTest {
    fn fits(&self, path: &str) -> bool {
        match self {
            PathTest::Whole(pattern) => pattern.fits(path),
            PathTest::Prefix(prefix) => below_prefix(path, prefix).is_some(),
        }
    }
}

impl Pattern {
    fn new(kind: &MatchKind, text: &Str) -> Self {
        let how = match kind {
            MatchKind::Exact => How::Exact,
            MatchKind::Regex => expression(text).map_or(How::Never, How::Regex),
            MatchKind::Prefix | MatchKind::Other(_) => How::Never,
        };
        Pattern { text: text.clone(), how }
    }

    fn fits(&self, value: &str) -> bool {
        match &self.how {
            How::Exact => *self.text == *value,
            How::Regex(regex) => regex.is_match(value),
            How::Never => false,
        }
    }
}

/// What follows a prefix of whole segments in a path: nothing, or a slash and the rest.
pub(super) fn below_prefix<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    path.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// An expression for the whole value. The text is read alone first, so that it cannot close the group around it.
fn expression(text: &str) -> Option<Regex> {
    let build = |text: &str| RegexBuilder::new(text).size_limit(REGEX_LIMIT).dfa_size_limit(REGEX_LIMIT).build().ok();
    build(text).and_then(|_| build(&format!(r"\A(?:{text})\z")))
}

/// The comparisons of a match; of several with one name only the first counts.
fn values(items: &[ValueMatch], same: impl Fn(&str, &str) -> bool) -> Vec<ValueTest> {
    let mut tests: Vec<ValueTest> = Vec::with_capacity(items.len());
    for item in items {
        if !tests.iter().any(|test| same(&test.name, &item.name)) {
            tests.push(ValueTest { name: item.name.clone(), pattern: Pattern::new(&item.kind, &item.value) });
        }
    }
    tests
}

fn check_headers(tests: &[ValueTest], asked: &ParsedRequest<'_>) -> Result<(), Miss> {
    let misses = |test: &&ValueTest| !asked.header(&test.name).is_some_and(|value| test.pattern.fits(&value));
    tests.iter().find(misses).map_or(Ok(()), |test| Err(Miss::Header(test.name.clone())))
}

impl fmt::Display for PathTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathTest::Prefix(prefix) if prefix.is_empty() => write!(f, "path prefix `/`"),
            PathTest::Prefix(prefix) => write!(f, "path prefix `{prefix}`"),
            PathTest::Whole(pattern) => write!(f, "path {pattern}"),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how {
            How::Exact => write!(f, "`{}`", self.text),
            How::Regex(_) => write!(f, "expression `{}`", self.text),
            How::Never => write!(f, "`{}` (not understood, never matches)", self.text),
        }
    }
}

impl fmt::Display for GrpcTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.service, &self.method) {
            (Some(service), Some(method)) => write!(f, "service {service}, method {method}"),
            (Some(service), None) => write!(f, "service {service}"),
            (None, Some(method)) => write!(f, "method {method}"),
            (None, None) => write!(f, "every call"),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Everything => write!(f, "every connection"),
            Test::Http(test) => write!(f, "{}{}", test.path, Further(test.method.as_ref(), &test.headers, &test.query)),
            Test::Grpc(test) => write!(f, "{test}{}", Further(None, &test.headers, &[])),
        }
    }
}

/// The conditions of a match beside its path.
struct Further<'a>(Option<&'a Str>, &'a [ValueTest], &'a [ValueTest]);

impl fmt::Display for Further<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(method) = self.0 {
            write!(f, ", method {method}")?;
        }
        self.1.iter().try_for_each(|test| write!(f, ", header `{}`", test.name))?;
        self.2.iter().try_for_each(|test| write!(f, ", query parameter `{}`", test.name))
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Miss::Path(path) => write!(f, "it asks for {path}"),
            Miss::Method(method) => write!(f, "it asks for the method {method}"),
            Miss::Header(name) => write!(f, "the header `{name}` is not as it asks"),
            Miss::Query(name) => write!(f, "the query parameter `{name}` is not as it asks"),
            Miss::Call(call) => write!(f, "it asks for {call}"),
        }
    }
}
