//! Rules about the listeners of one Gateway or ListenerSet.

use std::collections::BTreeMap;

use gatepost_core::diagnostic::FieldPath;
use gatepost_core::model::{Listener, Protocol, TlsMode};

use crate::fields::Fields;
use crate::rules;

/// Checks all listeners of one owner.
pub(crate) fn check(spec: &Fields<'_>, listeners: &[Listener]) {
    if spec.has("listeners") {
        rules::count(spec, "listeners", listeners.len(), 1, 64);
    }
    rules::unique(spec, "listeners", Some("name"), listeners.iter().map(|l| &l.name), "name");
    distinct(spec, listeners);
    for (i, listener) in listeners.iter().enumerate() {
        let path = spec.path().key("listeners").field().index(i);
        tls(spec, &path, listener);
        hostname(spec, &path, listener);
        filters(spec, &path, listener);
    }
}

/// Port, protocol and hostname together must be unique.
fn distinct(spec: &Fields<'_>, listeners: &[Listener]) {
    let mut first: BTreeMap<(u16, &Protocol, Option<&str>), usize> = BTreeMap::new();
    for (i, listener) in listeners.iter().enumerate().filter(|(_, l)| l.port != 0) {
        let hostname = listener.hostname.as_ref().map(|h| &**h.text());
        let earlier = *first.entry((listener.port, &listener.protocol, hostname)).or_insert(i);
        if earlier != i {
            let what = hostname.map_or("no hostname".to_owned(), |h| format!("hostname {h}"));
            let message = format!(
                "has the same port {}, protocol {} and {what} as `{}`; one of the three must differ",
                listener.port,
                listener.protocol.as_str(),
                listeners[earlier].name,
            );
            spec.invalid_at(spec.path().key("listeners").field().index(i), message);
        }
    }
}

fn tls(spec: &Fields<'_>, path: &FieldPath, listener: &Listener) {
    let protocol = listener.protocol.as_str();
    match (&listener.protocol, &listener.tls) {
        (Protocol::Http | Protocol::Tcp | Protocol::Udp, Some(_)) => {
            spec.invalid_at(path.key("tls"), format!("must be left out on a listener of protocol {protocol}"));
        }
        (Protocol::Https, Some(tls)) if tls.mode == TlsMode::Passthrough => {
            let message = "is Passthrough; HTTPS ends TLS at the Gateway: use Terminate, or protocol TLS";
            spec.invalid_at(path.key("tls").key("mode"), message);
        }
        (Protocol::Tls, None) => {
            spec.invalid_at(
                path.key("tls"),
                "is missing; a listener of protocol TLS needs it, with mode Terminate or Passthrough",
            );
        }
        _ => {}
    }
    if let Some(tls) = &listener.tls
        && tls.mode == TlsMode::Terminate
        && tls.certificates.is_empty()
        && tls.options == 0
    {
        spec.invalid_at(
            path.key("tls").key("certificateRefs"),
            "is empty; mode Terminate needs a certificate, or `options`",
        );
    }
}

fn hostname(spec: &Fields<'_>, path: &FieldPath, listener: &Listener) {
    let written = listener.hostname.as_ref().is_some_and(|h| !h.text().is_empty());
    if written && matches!(listener.protocol, Protocol::Tcp | Protocol::Udp) {
        let message = format!("must be left out on a listener of protocol {}", listener.protocol.as_str());
        spec.invalid_at(path.key("hostname"), message);
    }
}

fn filters(spec: &Fields<'_>, path: &FieldPath, listener: &Listener) {
    if listener.has_filters && !matches!(listener.protocol, Protocol::Http | Protocol::Https) {
        spec.invalid_at(path.key("filters"), "are only for listeners of protocol HTTP or HTTPS");
    }
}
