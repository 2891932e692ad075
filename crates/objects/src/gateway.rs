//! Gateway.

use gatepost_core::model::{
    Address, Admission, ClientValidation, FrontendTls, Gateway, GatewayStatus, Meta, Reference,
};
use gatepost_core::reason::ALLOWED_LISTENERS_SHAPE;
use gatepost_core::snapshot::Object;

use crate::conditions::{conditions, listeners as listener_status};
use crate::fields::Fields;
use crate::listener::{LISTENER_ADMISSION, admission, listeners};
use crate::references;
use crate::rules;
use crate::shapes::Shape;

/// Reads a Gateway.
pub(crate) fn read(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    root.require("spec");
    let status = root.silent_mapping("status", status).unwrap_or_default();
    let mut gateway = Gateway {
        meta,
        class: "".into(),
        listeners: Vec::new(),
        wished_addresses: Vec::new(),
        allowed_listeners: Admission::None,
        parameters: None,
        frontend: FrontendTls::default(),
        status,
    };
    root.mapping("spec", |f| spec(f, &mut gateway));
    Object::Gateway(gateway)
}

fn spec(f: &Fields<'_>, gateway: &mut Gateway) {
    gateway.class = f.required("gatewayClassName", Shape::ObjectName);
    gateway.listeners = listeners(f);
    gateway.wished_addresses = f.mappings("addresses", address);
    rules::addresses::check(f, &gateway.wished_addresses);
    gateway.allowed_listeners = allowed_listeners(f);
    gateway.parameters = f.mapping("infrastructure", infrastructure).flatten();
    gateway.frontend = f.mapping("tls", tls).unwrap_or_default();
    rules::word(f, "defaultScope", &["All", "None"]);
    f.ignore(&["backendTLS"]);
}

fn address(f: &Fields<'_>) -> Address {
    Address {
        kind: f.shaped("type", Shape::Text(253)).unwrap_or_else(|| "IPAddress".into()),
        value: f.shaped("value", Shape::Short(253)).unwrap_or_default(),
        routability: f.shaped("routability", Shape::Short(253)).filter(|word| !word.is_empty()),
    }
}

/// One object since v1; a list in an early draft, which admits nobody here.
fn allowed_listeners(f: &Fields<'_>) -> Admission {
    let Some(node) = f.node("allowedListeners") else { return Admission::None };
    if node.value().as_list().is_some() {
        node.tell(ALLOWED_LISTENERS_SHAPE, "is a list, as in an early draft; write one object, `allowedListeners: {namespaces: {from: Same}}`. No ListenerSet is admitted");
        return Admission::None;
    }
    let namespaces = |f: &Fields<'_>| f.mapping("namespaces", |f| admission(f, LISTENER_ADMISSION, Admission::None));
    node.mapping(namespaces).flatten().unwrap_or(Admission::None)
}

fn infrastructure(f: &Fields<'_>) -> Option<Reference> {
    rules::infrastructure::check(f);
    f.mapping("parametersRef", references::local)
}

fn tls(f: &Fields<'_>) -> FrontendTls {
    f.mapping("backend", |f| f.mapping("clientCertificateRef", |f| references::reference(f, references::SECRET)));
    f.mapping("frontend", frontend).unwrap_or_default()
}

fn frontend(f: &Fields<'_>) -> FrontendTls {
    f.require("default");
    let per_port = f.mappings("perPort", |f| {
        f.require("port");
        f.require("tls");
        (f.port("port").unwrap_or(0), f.mapping("tls", validation).flatten())
    });
    rules::at_most(f, "perPort", per_port.len(), 64);
    rules::unique(f, "perPort", Some("port"), per_port.iter().map(|(port, _)| port), "port");
    FrontendTls { default: f.mapping("default", validation).flatten(), per_port }
}

fn validation(f: &Fields<'_>) -> Option<ClientValidation> {
    f.mapping("validation", |f| {
        let ca_certificates = f.mappings("caCertificateRefs", ca_certificate);
        rules::count(f, "caCertificateRefs", ca_certificates.len(), 1, 16);
        let mode = rules::word(f, "mode", &["AllowValidOnly", "AllowInsecureFallback"]);
        ClientValidation { ca_certificates, mode: mode.unwrap_or_else(|| "AllowValidOnly".into()) }
    })
}

fn ca_certificate(f: &Fields<'_>) -> Reference {
    let reference = references::explicit(f);
    let is_bundle = &*reference.group == "certificates.k8s.io" && &*reference.kind == "ClusterTrustBundle";
    if is_bundle && f.has("namespace") {
        f.invalid("namespace", "must be left out; a ClusterTrustBundle lives in no namespace");
    }
    reference
}

fn status(f: &Fields<'_>) -> GatewayStatus {
    GatewayStatus {
        conditions: conditions(f),
        addresses: f.mappings("addresses", address),
        listeners: listener_status(f),
    }
}
