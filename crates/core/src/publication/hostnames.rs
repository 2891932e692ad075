//! The hostnames that a route requests: its own, those of the `hostname` annotation or template, or the listener's.
//!
//! Names are unparsed text. The caller decides whether a name is valid and which listener serves it.

use super::NameSource;
use super::annotations::{HostnameSource, RouteAnnotations, annotation_field};
use super::settings::PublicationSettings;
use super::template::Rendered;
use crate::diagnostic::{Diagnostic, FieldPath};
use crate::model::{Route, Str};
use crate::reason;

/// A hostname that a route requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedHostname {
    /// Its text; empty for the hostname of the listener.
    pub text: Str,
    /// The field that contains it.
    pub origin: HostnameOrigin,
}

/// The field that contains a hostname.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostnameOrigin {
    /// `spec.hostnames`, with the index.
    Spec(usize),
    /// The annotation with this key.
    Annotation(Str),
    /// The template.
    Template,
    /// None: the listener's hostname is used.
    Listener,
}

impl WantedHostname {
    /// The source of names that come from it.
    pub fn source(&self) -> NameSource {
        match self.origin {
            HostnameOrigin::Spec(_) | HostnameOrigin::Listener => NameSource::Intersected,
            HostnameOrigin::Annotation(_) => NameSource::Annotation,
            HostnameOrigin::Template => NameSource::Template,
        }
    }

    /// The field of the route to edit.
    pub fn field(&self) -> FieldPath {
        match &self.origin {
            HostnameOrigin::Spec(index) => FieldPath::of("spec.hostnames").index(*index),
            HostnameOrigin::Annotation(key) => annotation_field(key),
            HostnameOrigin::Template => FieldPath::root(),
            HostnameOrigin::Listener => FieldPath::of("spec.hostnames"),
        }
    }

    /// The text form in output.
    pub fn shown(&self) -> Str {
        if self.text.is_empty() { "*".into() } else { self.text.clone() }
    }
}

/// The hostnames that external-dns reads from a route, in its order. An empty one means the listener's.
pub fn of_route(
    route: &Route,
    asked: &RouteAnnotations,
    settings: &PublicationSettings,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<WantedHostname> {
    let annotation = if settings.ignore_hostname_annotation { Vec::new() } else { annotation_names(asked) };
    if asked.hostname_source == HostnameSource::AnnotationOnly {
        return annotation;
    }
    let mut wanted = spec_names(route);
    if asked.hostname_source == HostnameSource::All {
        wanted.extend(annotation.into_iter().filter(|name| !name.text.is_empty()));
    }
    if wanted.is_empty() || settings.combine_fqdn_annotation {
        wanted.extend(template_names(route, settings, diagnostics));
    }
    if asked.hostname_source == HostnameSource::All && route.hostnames.is_empty() {
        wanted.push(WantedHostname { text: "".into(), origin: HostnameOrigin::Listener });
    }
    wanted
}

/// The route's own hostnames.
pub fn spec_names(route: &Route) -> Vec<WantedHostname> {
    let names = route.hostnames.iter().enumerate();
    names
        .map(|(index, name)| WantedHostname { text: name.text().clone(), origin: HostnameOrigin::Spec(index) })
        .collect()
}

/// The items of the `hostname` annotation, including empty ones.
pub fn annotation_names(asked: &RouteAnnotations) -> Vec<WantedHostname> {
    let (Some(names), Some(key)) = (&asked.hostnames, &asked.hostname_key) else { return Vec::new() };
    names
        .iter()
        .map(|text| WantedHostname { text: text.clone(), origin: HostnameOrigin::Annotation(key.clone()) })
        .collect()
}

/// The names that the template renders for a route; an error is reported on the route and gives no names.
pub fn template_names(
    route: &Route,
    settings: &PublicationSettings,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<WantedHostname> {
    let Some(template) = &settings.fqdn_template else { return Vec::new() };
    let mut report = |message: String| {
        let object = route.object();
        diagnostics.push(Diagnostic::new(reason::TEMPLATE_FAILED, &object, FieldPath::root(), message));
    };
    match template.render(route, &settings.annotation_prefixes) {
        Ok(Rendered { names, incomplete }) => {
            for name in incomplete {
                report(format!("`--fqdn-template` yields `{name}`: it uses something that this route does not have"));
            }
            names.into_iter().map(|text| WantedHostname { text, origin: HostnameOrigin::Template }).collect()
        }
        Err(error) => {
            report(format!("`--fqdn-template` fails on this route: {error}"));
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external_dns::fixtures;
    use crate::model::RouteKind;
    use crate::publication::annotations::Annotations;
    use crate::publication::settings::GA_PREFIX;
    use crate::publication::template::Template;

    struct HostnameCase {
        hostnames: &'static [&'static str],
        annotations: &'static [(&'static str, &'static str)],
        settings: PublicationSettings,
        expected: &'static [&'static str],
    }

    fn template() -> PublicationSettings {
        PublicationSettings {
            fqdn_template: Template::parse(&["{{.Name}}.tmpl"]).unwrap(),
            ..PublicationSettings::default()
        }
    }

    fn combining() -> PublicationSettings {
        PublicationSettings { combine_fqdn_annotation: true, ..template() }
    }

    fn ignoring() -> PublicationSettings {
        PublicationSettings { ignore_hostname_annotation: true, ..PublicationSettings::default() }
    }

    fn names(case: &HostnameCase) -> Vec<String> {
        let mut route = fixtures::route(RouteKind::Http, "shop", "web", case.hostnames);
        for (name, value) in case.annotations {
            route.meta.annotations.insert(format!("{GA_PREFIX}{name}").into(), (*value).into());
        }
        let annotations = Annotations::of(&route.meta, &case.settings.annotation_prefixes);
        let asked = RouteAnnotations::read(&annotations, &route.object(), &mut Vec::new());
        let wanted = of_route(&route, &asked, &case.settings, &mut Vec::new());
        wanted.iter().map(|name| name.text.to_string()).collect()
    }

    const ONLY_ANNOTATION: (&str, &str) = ("gateway-hostname-source", "annotation-only");
    const ONLY_DEFINED: (&str, &str) = ("gateway-hostname-source", "defined-hosts-only");

    #[test]
    fn hostnames_come_in_the_order_of_external_dns() {
        const TOLD: (&str, &str) = ("hostname", "b.test, c.test");
        let cases = [
            HostnameCase { hostnames: &["a.test"], annotations: &[], settings: open(), expected: &["a.test"] },
            HostnameCase { hostnames: &[], annotations: &[], settings: open(), expected: &[""] },
            HostnameCase {
                hostnames: &["a.test"],
                annotations: &[TOLD],
                settings: open(),
                expected: &["a.test", "b.test", "c.test"],
            },
            HostnameCase {
                hostnames: &[],
                annotations: &[TOLD],
                settings: open(),
                expected: &["b.test", "c.test", ""],
            },
            HostnameCase {
                hostnames: &["a.test"],
                annotations: &[("hostname", "b.test,")],
                settings: open(),
                expected: &["a.test", "b.test"],
            },
            HostnameCase { hostnames: &["a.test"], annotations: &[TOLD], settings: ignoring(), expected: &["a.test"] },
            HostnameCase { hostnames: &[], annotations: &[TOLD], settings: ignoring(), expected: &[""] },
        ];
        for case in cases {
            assert_eq!(names(&case), case.expected, "{:?} {:?}", case.hostnames, case.annotations);
        }
    }

    #[test]
    fn the_template_is_kept_out_by_names_unless_it_is_combined() {
        const TOLD: (&str, &str) = ("hostname", "b.test");
        let cases = [
            HostnameCase { hostnames: &["a.test"], annotations: &[], settings: template(), expected: &["a.test"] },
            HostnameCase {
                hostnames: &["a.test"],
                annotations: &[],
                settings: combining(),
                expected: &["a.test", "web.tmpl"],
            },
            HostnameCase { hostnames: &[], annotations: &[], settings: template(), expected: &["web.tmpl", ""] },
            HostnameCase { hostnames: &[], annotations: &[TOLD], settings: template(), expected: &["b.test", ""] },
            HostnameCase {
                hostnames: &[],
                annotations: &[("hostname", "")],
                settings: template(),
                expected: &["web.tmpl", ""],
            },
            HostnameCase {
                hostnames: &[],
                annotations: &[TOLD],
                settings: combining(),
                expected: &["b.test", "web.tmpl", ""],
            },
        ];
        for case in cases {
            assert_eq!(names(&case), case.expected, "{:?} {:?}", case.hostnames, case.annotations);
        }
    }

    #[test]
    fn a_route_may_say_which_hostnames_count() {
        const TOLD: (&str, &str) = ("hostname", "b.test,");
        let cases = [
            HostnameCase {
                hostnames: &["a.test"],
                annotations: &[ONLY_ANNOTATION, TOLD],
                settings: open(),
                expected: &["b.test", ""],
            },
            HostnameCase { hostnames: &["a.test"], annotations: &[ONLY_ANNOTATION], settings: open(), expected: &[] },
            HostnameCase {
                hostnames: &["a.test"],
                annotations: &[ONLY_ANNOTATION, TOLD],
                settings: ignoring(),
                expected: &[],
            },
            HostnameCase {
                hostnames: &["a.test"],
                annotations: &[ONLY_ANNOTATION, TOLD],
                settings: combining(),
                expected: &["b.test", ""],
            },
            HostnameCase {
                hostnames: &["a.test"],
                annotations: &[ONLY_DEFINED, TOLD],
                settings: open(),
                expected: &["a.test"],
            },
            HostnameCase { hostnames: &[], annotations: &[ONLY_DEFINED, TOLD], settings: open(), expected: &[] },
            HostnameCase {
                hostnames: &[],
                annotations: &[ONLY_DEFINED, TOLD],
                settings: template(),
                expected: &["web.tmpl"],
            },
            HostnameCase {
                hostnames: &["a.test"],
                annotations: &[ONLY_DEFINED],
                settings: combining(),
                expected: &["a.test", "web.tmpl"],
            },
        ];
        for case in cases {
            assert_eq!(names(&case), case.expected, "{:?} {:?}", case.hostnames, case.annotations);
        }
    }

    fn open() -> PublicationSettings {
        PublicationSettings::default()
    }

    #[test]
    fn a_failing_template_is_told_on_the_route_alone() {
        let settings = PublicationSettings {
            fqdn_template: Template::parse(&["{{.Spec.hostnames}}"]).unwrap(),
            ..PublicationSettings::default()
        };
        let route = fixtures::route(RouteKind::Http, "shop", "web", &[]);
        let mut diagnostics = Vec::new();
        let wanted = of_route(&route, &RouteAnnotations::default(), &settings, &mut diagnostics);
        assert_eq!(wanted.len(), 1);
        assert_eq!(diagnostics[0].reason, reason::TEMPLATE_FAILED);
        assert_eq!(diagnostics[0].object, Some(route.object()));
    }
}
