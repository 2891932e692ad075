//! The names that a route requests at a listener (D17).
//!
//! These are its hostnames, those of the annotation and those of the template; the listener's hostname only if there
//! are none of them. Nothing here decides whether a name is published.

use crate::diagnostic::{Diagnostic, FieldPath};
use crate::model::{Route, ShortVec, Str, WrittenHostname};
use crate::names::{Hostname, HostnameError};
use crate::publication::NameSource;
use crate::publication::annotations::{HostnameSource, RouteAnnotations};
use crate::publication::hostnames::{HostnameOrigin, WantedHostname, annotation_names, spec_names, template_names};
use crate::publication::settings::PublicationSettings;
use crate::publication::targets::without_dot;

/// A hostname that a route requests.
pub(super) enum AskedName<'a> {
    /// A hostname of the route's spec, with its index.
    Own(usize, &'a WrittenHostname),
    /// A hostname from elsewhere, parsed; `*` if the listener's hostname is to be used.
    Other(WantedHostname, Result<Hostname, Box<HostnameError>>),
}

/// A requested name at one listener.
pub(super) struct NameAtListener<'a> {
    /// The intersection with the listener's hostname; `*` if neither side has one.
    pub(super) hostname: &'a Hostname,
    /// The requested hostname that it comes from.
    pub(super) asked: &'a AskedName<'a>,
}

/// The hostnames that a route requests, in order; none if an annotation excludes them all.
pub(super) fn of_route<'a>(
    route: &'a Route,
    annotations: &RouteAnnotations,
    settings: &PublicationSettings,
    diagnostics: &mut Vec<Diagnostic>,
) -> ShortVec<AskedName<'a>> {
    // The usual case: hostnames in the spec and no annotations.
    let is_plain = annotations.hostnames.is_none() && annotations.hostname_source == HostnameSource::All;
    if is_plain && are_all_its_own(route, settings) {
        return route.hostnames.iter().enumerate().map(|(index, written)| AskedName::Own(index, written)).collect();
    }
    let mut wanted = Vec::new();
    if annotations.hostname_source != HostnameSource::AnnotationOnly && route.kind.has_hostnames() {
        wanted.extend(spec_names(route));
    }
    if annotations.hostname_source != HostnameSource::DefinedHostsOnly && !settings.ignore_hostname_annotation {
        wanted.extend(annotation_names(annotations).into_iter().filter(|name| !name.text.is_empty()));
    }
    let takes_template = wanted.is_empty() || settings.combine_fqdn_annotation;
    if annotations.hostname_source != HostnameSource::AnnotationOnly && takes_template {
        wanted.extend(template_names(route, settings, diagnostics));
    }
    if wanted.is_empty() && annotations.hostname_source == HostnameSource::All {
        wanted.push(WantedHostname { text: "".into(), origin: HostnameOrigin::Listener });
    }
    wanted.into_iter().map(|wanted| read(route, wanted)).collect()
}

/// The request for the listeners' own hostnames, if a route names no hostname of its own and no listener serves those of
/// its annotation or template.
pub(super) fn last_resort<'a, 'l>(
    route: &Route,
    annotations: &RouteAnnotations,
    asked: &[AskedName<'_>],
    mut listeners: impl Iterator<Item = &'l Hostname>,
) -> Option<AskedName<'a>> {
    let is_own = |one: &AskedName<'_>| one.is_the_listeners() || matches!(one, AskedName::Own(..));
    let names_hostnames = route.kind.has_hostnames() && !route.hostnames.is_empty();
    if names_hostnames || annotations.hostname_source != HostnameSource::All || asked.iter().any(is_own) {
        return None;
    }
    let is_served = listeners.any(|listener| asked.iter().any(|one| one.at(listener).is_some()));
    let wanted = WantedHostname { text: "".into(), origin: HostnameOrigin::Listener };
    (!is_served).then(|| AskedName::Other(wanted, Ok(Hostname::any())))
}

/// Whether a route without annotations requests exactly its own hostnames: it has some, and no template is combined
/// with them.
pub(super) fn are_all_its_own(route: &Route, settings: &PublicationSettings) -> bool {
    let is_combined = settings.combine_fqdn_annotation && settings.fqdn_template.is_some();
    !is_combined && route.kind.has_hostnames() && !route.hostnames.is_empty()
}

/// The intersections of the names with a listener's hostname, without duplicates; the first requested hostname of each
/// is its source. Sets `is_answered` for every name that intersects.
pub(super) fn at_listener<'a>(
    asked: &'a [AskedName<'a>],
    listener: &'a Hostname,
    is_answered: &mut [bool],
) -> ShortVec<NameAtListener<'a>> {
    let mut names: ShortVec<NameAtListener<'_>> = ShortVec::new();
    for (one, is_answered) in asked.iter().zip(is_answered) {
        let Some(hostname) = one.at(listener) else { continue };
        *is_answered = true;
        if names.iter().all(|known| known.hostname != hostname) {
            names.push(NameAtListener { hostname, asked: one });
        }
    }
    names
}

impl AskedName<'_> {
    /// The parsed hostname, or why the text is not one.
    pub(super) fn name(&self) -> Result<&Hostname, &HostnameError> {
        match self {
            AskedName::Own(_, written) => written.name(),
            AskedName::Other(_, name) => name.as_ref().map_err(|error| &**error),
        }
    }

    /// Its intersection with a listener's hostname.
    pub(super) fn at<'s>(&'s self, listener: &'s Hostname) -> Option<&'s Hostname> {
        listener.common(self.name().ok()?)
    }

    /// The text of the field; empty if the listener's hostname is used.
    pub(super) fn text(&self) -> &Str {
        match self {
            AskedName::Own(_, written) => written.text(),
            AskedName::Other(wanted, _) => &wanted.text,
        }
    }

    /// The source of names that come from it.
    pub(super) fn source(&self) -> NameSource {
        match self {
            AskedName::Own(..) => NameSource::Intersected,
            AskedName::Other(wanted, _) => wanted.source(),
        }
    }

    /// Whether the listener's hostname is used.
    pub(super) fn is_the_listeners(&self) -> bool {
        matches!(self, AskedName::Other(WantedHostname { origin: HostnameOrigin::Listener, .. }, _))
    }

    /// The field of the route to edit.
    pub(super) fn field(&self) -> FieldPath {
        self.wanted().field()
    }

    /// The text form in output.
    pub(super) fn shown(&self) -> Str {
        self.wanted().shown()
    }

    fn wanted(&self) -> WantedHostname {
        match self {
            AskedName::Own(index, written) => {
                WantedHostname { text: written.text().clone(), origin: HostnameOrigin::Spec(*index) }
            }
            AskedName::Other(wanted, _) => wanted.clone(),
        }
    }
}

fn read(route: &Route, wanted: WantedHostname) -> AskedName<'_> {
    let name = match wanted.origin {
        HostnameOrigin::Spec(index) => match route.hostnames.get(index) {
            Some(written) => return AskedName::Own(index, written),
            None => Hostname::parse(&wanted.text).map_err(Box::new),
        },
        HostnameOrigin::Listener => Ok(Hostname::any()),
        HostnameOrigin::Annotation(_) | HostnameOrigin::Template => {
            Hostname::parse(without_dot(&wanted.text)).map_err(Box::new)
        }
    };
    AskedName::Other(wanted, name)
}
