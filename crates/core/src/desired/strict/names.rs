//! Which names a route asks for at a listener (D17): its hostnames, those of the annotation, those of the template; the
//! listener's hostname only where the route has none of them.

use crate::desired::annotations::{HostnameSource, RouteAnnotations};
use crate::desired::hostnames::{Origin, Wanted, annotation_names, spec_names, template_names};
use crate::desired::settings::Settings;
use crate::desired::targets::without_dot;
use crate::diagnostic::Diagnostic;
use crate::few::Few;
use crate::model::{Route, WrittenHostname};
use crate::names::{Hostname, HostnameError};

/// A hostname that a route asks for, read.
pub(super) struct Asked {
    /// As written.
    pub(super) wanted: Wanted,
    /// What it stands for: every name where the listener's is to count.
    pub(super) name: Result<Hostname, Box<HostnameError>>,
}

/// A name at a listener.
pub(super) struct Name<'a> {
    /// The name; `*` where neither side names one.
    pub(super) hostname: Hostname,
    /// The hostname behind it, as written.
    pub(super) wanted: &'a Wanted,
}

/// The hostnames that a route asks for, in order; none where an annotation keeps them all out.
pub(super) fn of_route(
    route: &Route,
    told: &RouteAnnotations,
    settings: &Settings,
    diagnostics: &mut Vec<Diagnostic>,
) -> Few<Asked> {
    // Most routes have hostnames and no annotations, and no template is added to them.
    let is_plain = told.hostnames.is_none() && told.hostname_source == HostnameSource::All;
    let is_told = settings.combine_fqdn_annotation && settings.fqdn_template.is_some();
    if is_plain && !is_told && route.kind.has_hostnames() && !route.hostnames.is_empty() {
        return route.hostnames.iter().enumerate().map(|(index, written)| spec_name(index, written)).collect();
    }
    let mut wanted = Vec::new();
    if told.hostname_source != HostnameSource::AnnotationOnly && route.kind.has_hostnames() {
        wanted.extend(spec_names(route));
    }
    if told.hostname_source != HostnameSource::DefinedHostsOnly && !settings.ignore_hostname_annotation {
        wanted.extend(annotation_names(told).into_iter().filter(|name| !name.text.is_empty()));
    }
    let takes_template = wanted.is_empty() || settings.combine_fqdn_annotation;
    if told.hostname_source != HostnameSource::AnnotationOnly && takes_template {
        wanted.extend(template_names(route, settings, diagnostics));
    }
    if wanted.is_empty() && told.hostname_source == HostnameSource::All {
        wanted.push(Wanted { text: "".into(), origin: Origin::Listener });
    }
    wanted.into_iter().map(|wanted| read(route, wanted)).collect()
}

/// What the names have in common with a listener's hostname, each once; the first that asks for one says where it is from.
pub(super) fn at_listener<'a>(asked: &'a [Asked], listener: &Hostname) -> Few<Name<'a>> {
    let mut names: Few<Name<'_>> = Few::None;
    for one in asked {
        if let Some(hostname) = one.at(listener)
            && names.iter().all(|known| known.hostname != hostname)
        {
            names.push(Name { hostname, wanted: &one.wanted });
        }
    }
    names
}

impl Asked {
    /// What it has in common with a listener's hostname.
    pub(super) fn at(&self, listener: &Hostname) -> Option<Hostname> {
        listener.intersect(self.name.as_ref().ok()?)
    }
}

fn spec_name(index: usize, written: &WrittenHostname) -> Asked {
    let wanted = Wanted { text: written.text.clone(), origin: Origin::Spec(index) };
    Asked { wanted, name: written.name.clone() }
}

fn read(route: &Route, wanted: Wanted) -> Asked {
    let name = match wanted.origin {
        Origin::Listener => Ok(Hostname::any()),
        Origin::Spec(index) => match route.hostnames.get(index) {
            Some(written) => written.name.clone(),
            None => Hostname::parse(&wanted.text).map_err(Box::new),
        },
        Origin::Annotation(_) | Origin::Template => Hostname::parse(without_dot(&wanted.text)).map_err(Box::new),
    };
    Asked { wanted, name }
}
