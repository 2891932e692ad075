//! The objects around the tree that Kubernetes itself defines: Namespace, Service, Secret, ConfigMap.
//!
//! Only what the rules need is read, and nothing is said about other fields.

use gatepost_core::model::{ConfigMap, Material, Meta, Namespace, Secret, Service, ServicePort};
use gatepost_core::snapshot::Object;

use crate::certificates::{self, PemEntry};
use crate::fields::Fields;

/// Reads a Namespace.
pub(crate) fn namespace(meta: Meta, _root: &Fields<'_>, _version: &str) -> Object {
    Object::Namespace(Namespace { meta })
}

/// Reads a Service.
pub(crate) fn service(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    let ports = root.mapping("spec", |f| f.mappings("ports", port)).unwrap_or_default();
    Object::Service(Service { meta, ports })
}

fn port(f: &Fields<'_>) -> ServicePort {
    ServicePort { port: f.port("port").unwrap_or(0), protocol: f.text("protocol").unwrap_or_else(|| "TCP".into()) }
}

/// Reads a Secret: its certificate, and whether a key is there. The key itself goes no further.
pub(crate) fn secret(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    let certificate = PemEntry::of_secret(root, "tls.crt");
    let material = match &certificate {
        PemEntry::Missing => Material::Missing,
        _ => match PemEntry::of_secret(root, "tls.key").private_key() {
            Ok(()) => certificate.certificates("tls.crt"),
            Err(why) => Material::Malformed(why.into()),
        },
    };
    Object::Secret(Secret { meta, kind: root.text("type").unwrap_or_else(|| "Opaque".into()), certificate: material })
}

/// Reads a ConfigMap: its CA certificates.
pub(crate) fn config_map(meta: Meta, root: &Fields<'_>, _version: &str) -> Object {
    let ca = certificates::of_config_map(root, "ca.crt");
    Object::ConfigMap(ConfigMap { meta, ca })
}
