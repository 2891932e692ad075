//! The annotations of external-dns, read once per object.
//!
//! They are read with one or more prefixes; the first prefix with a value wins. An invalid value is reported on its
//! object and counts as unset; the rest of the object is still read. Nothing here decides what is published.

use super::RecordType;
use super::targets::{Strategy, comma_list, record_type, target_list};
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::model::{Labels, Meta, ObjectRef, Str};
use crate::reason;

mod properties;
mod ttl;

pub use ttl::{TtlError, ttl};

/// The value of `controller` on objects that this program reads.
pub const OWN_CONTROLLER: &str = "dns-controller";

/// The annotations of one object with one of the prefixes, by their names after the prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations<'a> {
    entries: Vec<AnnotationEntry<'a>>,
    overruled: Vec<(AnnotationEntry<'a>, AnnotationEntry<'a>)>,
}

/// One annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnotationEntry<'a> {
    /// The part after the prefix: `hostname`.
    pub name: &'a str,
    /// The whole key.
    pub key: &'a Str,
    /// The value.
    pub value: &'a Str,
    /// The index of its prefix.
    prefix: usize,
}

impl<'a> Annotations<'a> {
    /// The annotations of an object.
    pub fn of(meta: &'a Meta, prefixes: &[Str]) -> Self {
        if meta.annotations.is_empty() {
            return Annotations::default();
        }
        let mut found: Vec<AnnotationEntry<'a>> =
            meta.annotations.iter().filter_map(|(k, v)| entry(k, v, prefixes)).collect();
        found.sort_by_key(|entry| (entry.name, entry.prefix));
        let mut annotations = Annotations::default();
        for entry in found {
            annotations.add(entry);
        }
        annotations
    }

    /// One annotation, by its name after the prefix.
    pub fn entry(&self, name: &str) -> Option<&AnnotationEntry<'a>> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The value of an annotation, by its name after the prefix.
    pub fn value(&self, name: &str) -> Option<&'a str> {
        self.entry(name).map(|entry| &**entry.value)
    }

    /// All annotations, sorted by name.
    pub fn entries(&self) -> &[AnnotationEntry<'a>] {
        &self.entries
    }

    /// Whether the object belongs to another controller.
    pub fn is_for_others(&self) -> bool {
        self.value("controller").is_some_and(|value| value != OWN_CONTROLLER)
    }

    /// The targets of the `target` annotation.
    pub fn targets(&self) -> Vec<Str> {
        self.value("target").map(target_list).unwrap_or_default()
    }

    /// Reports problems of any kind of object: different values under two prefixes, and invalid targets.
    pub fn report(&self, object: &ObjectRef, diagnostics: &mut Vec<Diagnostic>) {
        diagnostics.extend(self.overruled.iter().map(|(winner, loser)| disagreement(object, winner, loser)));
        if let Some(entry) = self.entry("target") {
            let odd = target_list(entry.value).into_iter().filter(|target| is_odd_target(target));
            diagnostics.extend(odd.take(1).map(|target| odd_target(object, entry, &target)));
        }
    }

    /// Reports annotations of a Gateway or ListenerSet that have an effect on routes only.
    pub fn report_without_effect(&self, object: &ObjectRef, diagnostics: &mut Vec<Diagnostic>) {
        const OF_ROUTES: [&str; 5] =
            ["gateway-hostname-source", "hostname", "set-identifier", "target-strategy", "ttl"];
        for entry in self.entries.iter().filter(|entry| OF_ROUTES.contains(&entry.name)) {
            let message = format!("`{}` has an effect on routes only, not on a {}", entry.key, object.kind);
            let field = annotation_field(entry.key);
            diagnostics.push(Diagnostic::new(reason::ANNOTATION_WITHOUT_EFFECT, object, field, message));
        }
    }

    fn add(&mut self, entry: AnnotationEntry<'a>) {
        match self.entries.last() {
            Some(last) if last.name == entry.name && last.value != entry.value => self.overruled.push((*last, entry)),
            Some(last) if last.name == entry.name => {}
            _ => self.entries.push(entry),
        }
    }
}

/// An annotation by its full key, for filters and templates. A key with the first prefix is also found with the others.
pub fn look_up<'a>(annotations: &'a Labels, key: &str, prefixes: &[Str]) -> Option<&'a Str> {
    let found = annotations.get(key);
    if found.is_some() {
        return found;
    }
    let (first, others) = prefixes.split_first()?;
    let name = key.strip_prefix(&**first)?;
    others.iter().find_map(|prefix| annotations.get(format!("{prefix}{name}").as_str()))
}

/// The field path of an annotation.
pub fn annotation_field(key: &Str) -> FieldPath {
    FieldPath::of("metadata.annotations").key(key.clone())
}

/// The values of a route's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteAnnotations {
    /// The items of `hostname`, including empty ones; unset without that annotation.
    pub hostnames: Option<Vec<Str>>,
    /// The key of `hostname`.
    pub hostname_key: Option<Str>,
    /// Which hostnames are used.
    pub hostname_source: HostnameSource,
    /// Targets.
    pub targets: Vec<Str>,
    /// The key of `target`.
    pub target_key: Option<Str>,
    /// The target strategy.
    pub strategy: Strategy,
    /// TTL in seconds.
    pub ttl: Option<u32>,
    /// Set identifier.
    pub set_identifier: Option<Str>,
    /// Properties for providers, sorted by name.
    pub properties: Vec<(Str, Str)>,
}

/// `gateway-hostname-source`: which hostnames of a route are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostnameSource {
    /// All sources.
    #[default]
    All,
    /// The annotation only.
    AnnotationOnly,
    /// The spec and the template.
    DefinedHostsOnly,
}

impl RouteAnnotations {
    /// Reads a route's annotations; invalid values are reported and count as unset.
    pub fn read(annotations: &Annotations, route: &ObjectRef, diagnostics: &mut Vec<Diagnostic>) -> Self {
        if annotations.entries.is_empty() {
            return RouteAnnotations::default();
        }
        annotations.report(route, diagnostics);
        let mut report = Report { annotations, route, diagnostics };
        let hostname = annotations.entry("hostname");
        RouteAnnotations {
            hostnames: hostname.map(|entry| comma_list(entry.value)),
            hostname_key: hostname.map(|entry| entry.key.clone()),
            hostname_source: report.read("gateway-hostname-source", hostname_source).unwrap_or_default(),
            targets: annotations.targets(),
            target_key: annotations.entry("target").map(|entry| entry.key.clone()),
            strategy: report.read("target-strategy", strategy).unwrap_or_default(),
            ttl: report.read("ttl", |text| ttl(text).map_err(|error| error.to_string())),
            set_identifier: annotations.value("set-identifier").filter(|value| !value.is_empty()).map(Str::from),
            properties: properties::properties(annotations, report.read("alias", alias).unwrap_or_default()),
        }
    }
}

/// Reads values and reports invalid ones.
struct Report<'r, 'a> {
    annotations: &'r Annotations<'a>,
    route: &'r ObjectRef,
    diagnostics: &'r mut Vec<Diagnostic>,
}

impl Report<'_, '_> {
    fn read<T>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let entry = self.annotations.entry(name)?;
        match parse(entry.value) {
            Ok(value) => Some(value),
            Err(problem) => {
                let message = format!("`{}: {}` is ignored: {problem}", entry.key, entry.value);
                let field = annotation_field(entry.key);
                self.diagnostics.push(Diagnostic::new(reason::ANNOTATION_INVALID, self.route, field, message));
                None
            }
        }
    }
}

fn entry<'a>(key: &'a Str, value: &'a Str, prefixes: &[Str]) -> Option<AnnotationEntry<'a>> {
    let found = |(prefix, text): (usize, &Str)| {
        key.strip_prefix(&**text).map(|name| AnnotationEntry { name, key, value, prefix })
    };
    prefixes.iter().enumerate().find_map(found)
}

fn disagreement(object: &ObjectRef, winner: &AnnotationEntry, loser: &AnnotationEntry) -> Diagnostic {
    let message = format!(
        "`{}: {}` is ignored, because `{}: {}` is there too and comes first",
        loser.key, loser.value, winner.key, winner.value
    );
    Diagnostic::new(reason::ANNOTATION_PREFIXES_DISAGREE, object, annotation_field(loser.key), message).related(
        object,
        annotation_field(winner.key),
        "this one counts",
    )
}

/// Whether a target is neither an IP address nor a valid name.
pub(crate) fn is_odd_target(target: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.*".contains(c);
    target.is_empty() || (record_type(target) == RecordType::Cname && !target.chars().all(is_name))
}

fn odd_target(object: &ObjectRef, entry: &AnnotationEntry, target: &str) -> Diagnostic {
    let problem = if target.is_empty() { "has an empty item".to_owned() } else { format!("holds `{target}`") };
    let message = format!("`{}: {}` {problem}, which is neither an address nor a hostname", entry.key, entry.value);
    Diagnostic::new(reason::TARGET_INVALID, object, annotation_field(entry.key), message)
}

fn hostname_source(text: &str) -> Result<HostnameSource, String> {
    match text.to_lowercase().as_str() {
        "annotation-only" => Ok(HostnameSource::AnnotationOnly),
        "defined-hosts-only" => Ok(HostnameSource::DefinedHostsOnly),
        _ => Err("use annotation-only or defined-hosts-only".to_owned()),
    }
}

fn strategy(text: &str) -> Result<Strategy, String> {
    Strategy::parse(text).ok_or_else(|| format!("use {}", Strategy::WORDS))
}

fn alias(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("use true or false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, RouteKind};
    use crate::publication::settings::{ALPHA_PREFIX, GA_PREFIX};

    fn meta(pairs: &[(&str, &str)]) -> Meta {
        let mut meta = Meta::named("shop", "web");
        meta.annotations = pairs.iter().map(|(k, v)| (Str::from(*k), Str::from(*v))).collect();
        meta
    }

    fn both() -> Vec<Str> {
        vec![GA_PREFIX.into(), ALPHA_PREFIX.into()]
    }

    fn read(pairs: &[(&str, &str)]) -> (RouteAnnotations, Vec<Diagnostic>) {
        let meta = meta(pairs);
        let mut diagnostics = Vec::new();
        let route = ObjectRef::new(Kind::Route(RouteKind::Http), "shop", "web");
        let read = RouteAnnotations::read(&Annotations::of(&meta, &both()), &route, &mut diagnostics);
        (read, diagnostics)
    }

    #[test]
    fn the_first_prefix_wins_and_a_disagreement_is_told() {
        let (read, diagnostics) = read(&[
            ("external-dns.kubernetes.io/ttl", "60"),
            ("external-dns.alpha.kubernetes.io/ttl", "90"),
            ("external-dns.alpha.kubernetes.io/set-identifier", "blue"),
        ]);
        assert_eq!((read.ttl, read.set_identifier.as_deref()), (Some(60), Some("blue")));
        assert_eq!(diagnostics.len(), 1);
        assert_eq!(diagnostics[0].reason, reason::ANNOTATION_PREFIXES_DISAGREE);
        assert_eq!(diagnostics[0].field.to_string(), "metadata.annotations[\"external-dns.alpha.kubernetes.io/ttl\"]");
    }

    #[test]
    fn equal_values_under_both_prefixes_are_no_disagreement() {
        let (read, diagnostics) =
            read(&[("external-dns.kubernetes.io/ttl", "60"), ("external-dns.alpha.kubernetes.io/ttl", "60")]);
        assert_eq!((read.ttl, diagnostics), (Some(60), vec![]));
    }

    #[test]
    fn an_empty_value_under_the_first_prefix_hides_the_second() {
        let (read, _) = read(&[
            ("external-dns.kubernetes.io/target", ""),
            ("external-dns.alpha.kubernetes.io/target", "192.0.2.1"),
        ]);
        assert!(read.targets.is_empty());
    }

    #[test]
    fn one_given_prefix_is_the_only_one() {
        let meta = meta(&[("external-dns.kubernetes.io/ttl", "60"), ("dns.example/ttl", "90")]);
        let annotations = Annotations::of(&meta, &["dns.example/".into()]);
        assert_eq!(annotations.value("ttl"), Some("90"));
        assert_eq!(annotations.entries().len(), 1);
    }

    #[test]
    fn bad_values_are_reported_one_by_one_and_mean_unset() {
        let (read, diagnostics) = read(&[
            ("external-dns.kubernetes.io/ttl", "soon"),
            ("external-dns.kubernetes.io/target-strategy", "mine"),
            ("external-dns.kubernetes.io/gateway-hostname-source", "guess"),
            ("external-dns.kubernetes.io/alias", "yes"),
            ("external-dns.kubernetes.io/hostname", "a.example.com"),
        ]);
        assert_eq!(read.ttl, None);
        assert_eq!(read.strategy, Strategy::RoutePreferred);
        assert_eq!(read.hostname_source, HostnameSource::All);
        assert_eq!(read.hostnames.as_deref(), Some(&["a.example.com".into()][..]));
        assert!(read.properties.is_empty());
        assert_eq!(diagnostics.len(), 4);
        assert!(diagnostics.iter().all(|d| d.reason == reason::ANNOTATION_INVALID));
        assert!(
            diagnostics[0]
                .message
                .starts_with("`external-dns.kubernetes.io/gateway-hostname-source: guess` is ignored")
        );
    }

    #[test]
    fn the_hostname_source_is_read_in_any_case() {
        let (read, _) = read(&[("external-dns.kubernetes.io/gateway-hostname-source", "Annotation-ONLY")]);
        assert_eq!(read.hostname_source, HostnameSource::AnnotationOnly);
    }

    #[test]
    fn an_empty_target_is_kept_and_told() {
        let (read, diagnostics) = read(&[("external-dns.kubernetes.io/target", "lb.example.net.,")]);
        assert_eq!(read.targets, vec![Str::from("lb.example.net"), "".into()]);
        assert_eq!(diagnostics[0].reason, reason::TARGET_INVALID);
        for (target, expected) in
            [("192.0.2.1", false), ("2001:db8::1", false), ("_x.example.net", false), ("http://x", true), ("a b", true)]
        {
            assert_eq!(is_odd_target(target), expected, "{target}");
        }
    }

    #[test]
    fn any_other_controller_takes_the_object_away() {
        for (value, expected) in [("dns-controller", false), ("other", true), ("", true)] {
            let meta = meta(&[("external-dns.kubernetes.io/controller", value)]);
            assert_eq!(Annotations::of(&meta, &both()).is_for_others(), expected, "{value}");
        }
        assert!(!Annotations::default().is_for_others());
    }

    #[test]
    fn filters_find_a_key_under_either_prefix() {
        let meta = meta(&[("external-dns.alpha.kubernetes.io/managed", "true"), ("own", "x")]);
        let find = |key: &str, prefixes: &[Str]| look_up(&meta.annotations, key, prefixes).map(|v| v.to_string());
        assert_eq!(find("external-dns.kubernetes.io/managed", &both()).as_deref(), Some("true"));
        assert_eq!(find("external-dns.kubernetes.io/managed", &[GA_PREFIX.into()]), None);
        assert_eq!(find("external-dns.alpha.kubernetes.io/managed", &both()).as_deref(), Some("true"));
        assert_eq!(find("own", &both()).as_deref(), Some("x"));
    }
}
