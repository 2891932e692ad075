//! `--fqdn-template`: hostnames computed from a route.
//!
//! The language is Go's text/template with the functions of external-dns. A template is first rendered with Go field
//! names (`.Spec.Hostnames`); if that fails, with JSON field names (`.Spec.hostnames`). A template that does not parse
//! is refused with the settings; one that fails for a route fails for that route only. The size of the output is
//! bounded. Names are not validated here.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use gtmpl_ng::{Context, ErrorContext, ExecError, Limits, ParseError};

use crate::model::{Route, RouteKind, Str};

mod context;
mod dialect;
mod functions;

/// The output text for a missing value.
const NO_VALUE: &str = "<no value>";

/// Maximum size of one rendering, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// Maximum length of an engine message, in characters.
const MAX_MESSAGE: usize = 160;

/// Parsed templates, joined by commas.
#[derive(Clone)]
pub struct Template {
    text: Str,
    parts: TemplateParts,
    /// One per route kind, because `isSource` depends on it.
    by_kind: Arc<[gtmpl_ng::Template]>,
}

/// The large parts of a route that a template uses; others are not converted.
#[derive(Clone, Copy)]
struct TemplateParts {
    rules: bool,
    status: bool,
}

impl TemplateParts {
    fn of(text: &str) -> Self {
        let mentions = |word: &str| text.contains(word) || text.contains("Object") || text.contains(".Spec}");
        TemplateParts { rules: mentions("ules"), status: mentions("tatus") }
    }
}

/// The names that a template rendered for a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// Names, sorted, without duplicates.
    pub names: Vec<Str>,
    /// Names with a missing value, because the route lacks a field that the template uses.
    pub incomplete: Vec<Str>,
}

/// Why a template is invalid, or failed for a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Index of the template with the error, if known.
    pub template: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Parses the values of `--fqdn-template`; `None` if all are blank.
    pub fn parse<T: AsRef<str>>(templates: &[T]) -> Result<Option<Template>, TemplateError> {
        let mut joined = String::new();
        for (i, template) in templates.iter().enumerate() {
            if i > 0 {
                joined.push(',');
            }
            joined.push_str(template.as_ref());
            engine(&joined, RouteKind::Http).map_err(|message| refused(i, template.as_ref(), message))?;
        }
        if joined.trim().is_empty() {
            return Ok(None);
        }
        let engines = RouteKind::ALL.into_iter().map(|kind| engine(&joined, kind)).collect::<Result<Vec<_>, _>>();
        let by_kind = engines.map_err(|message| TemplateError { template: None, message })?.into();
        Ok(Some(Template { parts: TemplateParts::of(&joined), text: joined.into(), by_kind }))
    }

    /// The hostnames of a route. `prefixes` are the prefixes of its annotations.
    pub fn render(&self, route: &Route, prefixes: &[Str]) -> Result<Rendered, TemplateError> {
        let typed = self.output(route.kind, context::typed(route, prefixes, self.parts));
        let output = typed.or_else(|first| {
            let json = context::json(route, prefixes, self.parts);
            self.output(route.kind, json).map_err(|second| failure(&first, &second))
        })?;
        Ok(split(&output))
    }

    fn output(&self, kind: RouteKind, data: gtmpl_ng::Value) -> Result<String, String> {
        let position = RouteKind::ALL.iter().position(|k| *k == kind).unwrap_or_default();
        self.by_kind[position].render(&Context::from(data)).map_err(|error| exec_message(&error))
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({:?})", self.text)
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Template {}

/// A template for one kind of route.
fn engine(text: &str, kind: RouteKind) -> Result<gtmpl_ng::Template, String> {
    let mut engine = gtmpl_ng::Template::with_limits(Limits::default().with_output_bytes(MAX_OUTPUT));
    functions::register(&mut engine, kind);
    engine.parse(dialect::rewrite(text)?).map_err(|error| parse_message(&error))?;
    Ok(engine)
}

/// The error of one template; positions are relative to its own start if they can be converted.
fn refused(place: usize, template: &str, in_all: String) -> TemplateError {
    let message = engine(template, RouteKind::Http).err().unwrap_or(in_all);
    TemplateError { template: Some(place), message: format!("`{template}`: {message}") }
}

fn parse_message(error: &ParseError) -> String {
    match error {
        ParseError::WithContext(place, message) => at(place, message),
        other => plain(&other.to_string()),
    }
}

fn exec_message(error: &ExecError) -> String {
    match error.as_structured() {
        Some(error) => at(&error.context, &error.message),
        None => plain(&error.to_string()),
    }
}

fn at(place: &ErrorContext, message: &str) -> String {
    format!("line {}, column {}: {}", place.line, place.col, plain(message))
}

/// The message of the engine on one line, without values.
fn plain(message: &str) -> String {
    let message = message.split(" in map[").next().unwrap_or_default();
    let words: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(MAX_MESSAGE).collect()
}

fn failure(first: &str, second: &str) -> TemplateError {
    let message = if first == second { first.to_owned() } else { format!("{first}; with JSON names: {second}") };
    TemplateError { template: None, message }
}

/// The names in an output: split at commas, without surrounding blanks and one trailing dot.
fn split(output: &str) -> Rendered {
    let names = output.split(',').map(str::trim).map(|name| name.strip_suffix('.').unwrap_or(name));
    let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    let (incomplete, names): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| name.contains(NO_VALUE));
    let owned = |names: Vec<&str>| names.into_iter().map(Str::from).collect();
    Rendered { names: owned(names), incomplete: owned(incomplete) }
}

/// The sources of external-dns other than routes, for `isSource`.
pub(super) fn is_known_source(name: &str) -> bool {
    const OTHERS: [&str; 20] = [
        "ambassador-host",
        "connector",
        "contour-httpproxy",
        "crd",
        "empty",
        "f5-transportserver",
        "f5-virtualserver",
        "fake",
        "gloo-proxy",
        "ingress",
        "istio-gateway",
        "istio-virtualservice",
        "kong-tcpingress",
        "node",
        "openshift-route",
        "pod",
        "service",
        "skipper-routegroup",
        "traefik-proxy",
        "unstructured",
    ];
    let ours = RouteKind::ALL.into_iter().map(RouteKind::source);
    OTHERS.into_iter().chain(ours).any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external_dns::fixtures::route;

    fn shop() -> Route {
        let mut route = route(RouteKind::Http, "shop", "Web", &["a.example.com", "b.example.com"]);
        route.meta.labels.insert("team".into(), "blue".into());
        route.meta.annotations.insert("x.io/zone".into(), "z1".into());
        route
    }

    fn names(template: &str, route: &Route) -> Result<Vec<String>, TemplateError> {
        let template = Template::parse(&[template])?.expect("not blank");
        Ok(template.render(route, &[])?.names.iter().map(|n| n.to_string()).collect())
    }

    #[test]
    fn go_names_and_functions_are_known() {
        let table = [
            ("{{.Name}}.{{.Namespace}}.test", &["Web.shop.test"][..]),
            ("{{.Name | toLower}}.one.test. ,  b.test,b.test", &["b.test", "web.one.test"]),
            ("{{range .Spec.Hostnames}}x-{{.}},{{end}}", &["x-a.example.com", "x-b.example.com"]),
            ("{{range $i, $h := .Spec.Hostnames}}{{$i}}.{{$h}},{{end}}", &["0.a.example.com", "1.b.example.com"]),
            ("{{.Kind | toLower}}.test", &["httproute.test"]),
            ("{{.APIVersion}}", &["gateway.networking.k8s.io/v1"]),
            ("{{index .Annotations \"x.io/zone\"}}.test", &["z1.test"]),
            ("{{if hasKey .Labels \"team\"}}{{.Labels.team}}.test{{end}}", &["blue.test"]),
            ("{{if hasKey .Labels \"none\"}}x{{else}}y{{end}}.test", &["y.test"]),
            ("{{with .Labels.none}}x{{else}}y{{end}}.test", &["y.test"]),
            ("{{replace \"e\" \"3\" \"test\"}}", &["t3st"]),
            ("{{trimPrefix \"abc\" \"a\"}}{{trimSuffix \"abc\" \"c\"}}", &["bcab"]),
            ("{{if contains \"abc\" \"b\"}}yes{{end}}", &["yes"]),
            ("{{trim \" x \"}}.test", &["x.test"]),
            ("{{isIPv4 \"192.0.2.1\"}}.{{isIPv6 \"::1\"}}.{{isIPv4 \"::1\"}}", &["true.true.false"]),
            ("{{isSource \"gateway-HTTPRoute\"}}.{{isSource \"service\"}}", &["true.false"]),
            ("{{(fromJson \"{\\\"a\\\": [\\\"x\\\"]}\").a | len}}", &["1"]),
            ("{{printf \"%03d\" 7}}.test", &["007.test"]),
            ("{{\"\\x41\"}}{{`\\`}}{{'a'}}", &["A\\97"]),
            ("{{with .Labels.none}}x{{else with .Labels.team}}{{.}}{{end}}.test", &["blue.test"]),
            ("{{(index .Spec.ParentRefs 0).Name}}.test", &["edge.test"]),
            ("{{.ObjectMeta.Name}}.{{.GetNamespace}}", &["Web.shop"]),
            ("", &[]),
        ];
        for (template, expected) in table.into_iter().filter(|(template, _)| !template.is_empty()) {
            assert_eq!(
                names(template, &shop()).as_deref(),
                Ok(expected.iter().map(|n| n.to_string()).collect::<Vec<_>>().as_slice()),
                "{template}"
            );
        }
    }

    #[test]
    fn json_names_are_the_second_try() {
        let table = [
            ("{{range .Spec.hostnames}}{{.}}.json.test,{{end}}", "a.example.com.json.test"),
            ("{{.Metadata.name}}.test", "Web.test"),
            ("{{.Object.metadata.namespace}}.test", "shop.test"),
            ("{{(index .Spec.parentRefs 0).name}}.test", "edge.test"),
            ("{{(index .Status.parents 0).parentRef.name}}.test", "edge.test"),
        ];
        for (template, first) in table {
            assert_eq!(names(template, &shop()).map(|n| n[0].clone()), Ok(first.to_owned()), "{template}");
        }
    }

    #[test]
    fn what_is_missing_is_an_error_in_the_second_try() {
        let bare = route(RouteKind::Http, "shop", "web", &[]);
        for template in [
            "{{.Spec.hostnames}}",
            "{{.Nothing}}",
            "{{.Spec.Nothing.x}}",
            "{{toLower .Labels.none}}",
            "{{isSource \"nonsense\"}}",
        ] {
            assert!(names(template, &bare).is_err(), "{template}");
        }
        let error = names("{{.Spec.Nothing}}", &bare).unwrap_err().to_string();
        assert_eq!(error, "line 1, column 3: no field `Nothing`");
        let tcp = route(RouteKind::Tcp, "shop", "web", &[]);
        assert!(names("{{.Spec.Hostnames}}", &tcp).is_err());
        assert_eq!(names("{{.APIVersion}}", &tcp), Ok(vec!["gateway.networking.k8s.io/v1alpha2".to_owned()]));
    }

    #[test]
    fn incomplete_names_are_told_apart() {
        let template = Template::parse(&["{{.Labels.none}}.test", "b.test"]).unwrap().unwrap();
        let rendered = template.render(&shop(), &[]).unwrap();
        assert_eq!(rendered.names, vec![Str::from("b.test")]);
        assert_eq!(rendered.incomplete, vec![Str::from("<no value>.test")]);
        assert_eq!(names("x{{index .Labels \"none\"}}y.test", &shop()), Ok(vec!["xy.test".to_owned()]));
    }

    #[test]
    fn a_template_that_does_not_parse_is_named() {
        let error = Template::parse(&["{{.Name}}.test", "{{.Name"]).unwrap_err();
        assert_eq!(error.template, Some(1));
        assert_eq!(error.to_string(), "`{{.Name`: line 1, column 8: unclosed action");
        assert!(Template::parse(&["{{nonsense .Name}}"]).is_err());
    }

    #[test]
    fn blank_templates_are_none() {
        assert_eq!(Template::parse::<&str>(&[]), Ok(None));
        assert_eq!(Template::parse(&["", " "]).map(|t| t.is_some()), Ok(true));
        assert_eq!(Template::parse(&[" "]), Ok(None));
    }

    #[test]
    fn annotations_are_seen_under_both_prefixes() {
        let mut route = shop();
        route.meta.annotations.insert("alpha/zone".into(), "z9".into());
        let template = Template::parse(&["{{index .Annotations \"ga/zone\"}}.test"]).unwrap().unwrap();
        let rendered = template.render(&route, &["ga/".into(), "alpha/".into()]).unwrap();
        assert_eq!(rendered.names, vec![Str::from("z9.test")]);
    }

    #[test]
    fn a_runaway_template_is_stopped() {
        assert!(names("{{range 100000000}}x{{end}}", &shop()).is_err());
        assert!(names("{{define \"r\"}}{{template \"r\" .}}{{end}}{{template \"r\" .}}", &shop()).is_err());
    }
}
