//! Whether a listener's certificates and client CA certificates can be used.
//!
//! The grant is checked before existence, so that nothing about another namespace is disclosed. Certificates are never
//! verified here.

use super::*;
use crate::snapshot::Visibility;

/// What is wrong with one reference of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateProblem {
    /// The field that contains the reference.
    pub place: CertificateUse,
    /// Why it cannot be used.
    pub reason: Reason,
    /// The reason of the `ResolvedRefs` condition.
    pub condition: &'static str,
}

/// The field in which a listener refers to certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateUse {
    /// `tls.certificateRefs[i]` of the listener.
    Own(usize),
    /// `spec.tls.frontend` of the Gateway: index in `perPort` (unset for the default), and index of the CA reference.
    Client(Option<usize>, usize),
}

/// The problems of a listener's references, and whether client validation is required without any usable CA
/// certificate.
pub(super) fn problems(
    snapshot: &Snapshot,
    grants: &Grants,
    listener: &ListenerState,
) -> (Vec<CertificateProblem>, bool) {
    let mut problems = own_problems(snapshot, grants, listener);
    let checks = client_problems(snapshot, grants, listener);
    let is_unusable = !checks.is_empty() && checks.iter().all(Option::is_some);
    problems.extend(checks.into_iter().flatten());
    (problems, is_unusable)
}

fn own_problems(snapshot: &Snapshot, grants: &Grants, listener: &ListenerState) -> Vec<CertificateProblem> {
    let spec = listener.spec();
    let refs = spec.tls.iter().filter(|_| spec.terminates_tls()).flat_map(|tls| &tls.certificates);
    let problem = |(i, target): (usize, &Reference)| {
        let reason = own_problem(snapshot, grants, listener, target)?;
        Some(CertificateProblem { place: CertificateUse::Own(i), reason, condition: reason.row().condition.1 })
    };
    refs.enumerate().filter_map(problem).collect()
}

fn own_problem(snapshot: &Snapshot, grants: &Grants, listener: &ListenerState, target: &Reference) -> Option<Reason> {
    let owner = listener.owner.object();
    if !grants.permit(Referrer { kind: owner.kind, namespace: owner.namespace() }, target) {
        return Some(reason::REFERENCE_NOT_PERMITTED);
    }
    if !target.group.is_empty() || &*target.kind != "Secret" {
        return Some(reason::CERTIFICATE_MISSING);
    }
    let key = Key::new(target.namespace_or(owner.namespace()).clone(), target.name.clone());
    match snapshot.secrets.get(&key).map(|secret| &secret.certificate) {
        Some(Material::Present(_)) => None,
        Some(_) => Some(reason::CERTIFICATE_MALFORMED),
        // Without permission to read Secrets, their validity is left to the Gateway implementation.
        None if *snapshot.visibility(Kind::Secret) != Visibility::Complete => None,
        None => Some(reason::CERTIFICATE_MISSING),
    }
}

/// Whether another controller makes a Secret in the cluster: cert-manager, as an annotation asks it to or for a
/// Certificate among the files, or whoever turns an ExternalSecret or SealedSecret into one.
pub(crate) fn is_provided(snapshot: &Snapshot, listener: &ListenerState, target: &Reference) -> bool {
    let own = &listener.owner.meta().key.namespace;
    let namespace = target.namespace_or(own);
    let parent = listener.gateway.as_ref().and_then(|key| snapshot.gateways.get(key));
    let owners = [Some(listener.owner.meta()), parent.map(|gateway| &gateway.meta)];
    let is_annotated = owners
        .into_iter()
        .flatten()
        .any(|meta| ISSUER_ANNOTATIONS.iter().any(|annotation| meta.annotations.contains_key(annotation)));
    let key = Key::new(namespace.clone(), target.name.clone());
    // cert-manager makes Secrets beside the object that has the annotation only.
    (is_annotated && namespace == own) || snapshot.file_facts.announced_secrets.contains(&key)
}

/// Annotations that have cert-manager make the Secrets of a Gateway or ListenerSet.
const ISSUER_ANNOTATIONS: [&str; 2] = ["cert-manager.io/issuer", "cert-manager.io/cluster-issuer"];

/// One entry per CA reference that applies to the listener.
fn client_problems(snapshot: &Snapshot, grants: &Grants, listener: &ListenerState) -> Vec<Option<CertificateProblem>> {
    let spec = listener.spec();
    let Some(gateway) = frontend_owner(snapshot, listener).filter(|_| spec.protocol == Protocol::Https) else {
        return Vec::new();
    };
    let port = gateway.frontend.per_port.iter().position(|(port, _)| *port == spec.port);
    let validation = match port {
        Some(entry) => gateway.frontend.per_port[entry].1.as_ref(),
        None => gateway.frontend.default.as_ref(),
    };
    let refs = validation.iter().flat_map(|v| &v.ca_certificates).enumerate();
    let problem = |(i, target): (usize, &Reference)| {
        let (reason, condition) = ca_problem(snapshot, grants, gateway, target)?;
        Some(CertificateProblem { place: CertificateUse::Client(port, i), reason, condition })
    };
    refs.map(problem).collect()
}

/// The Gateway whose `spec.tls.frontend` applies to a listener.
fn frontend_owner<'a>(snapshot: &'a Snapshot, listener: &'a ListenerState) -> Option<&'a Gateway> {
    match &listener.owner {
        Owner::Gateway(gateway) => Some(gateway),
        Owner::Set(_) => snapshot.gateways.get(listener.gateway.as_ref()?).map(|g| &**g),
    }
}

fn ca_problem(
    snapshot: &Snapshot,
    grants: &Grants,
    gateway: &Gateway,
    target: &Reference,
) -> Option<(Reason, &'static str)> {
    let own = &gateway.meta.key.namespace;
    if !target.group.is_empty() || &*target.kind != "ConfigMap" {
        return Some((reason::CA_CERTIFICATE_UNUSABLE, "InvalidCACertificateKind"));
    }
    if !grants.permit(Referrer { kind: Kind::Gateway, namespace: own }, target) {
        return Some((reason::REFERENCE_NOT_PERMITTED, "RefNotPermitted"));
    }
    let key = Key::new(target.namespace_or(own).clone(), target.name.clone());
    match snapshot.config_maps.get(&key).map(|map| &map.ca) {
        Some(Material::Present(_)) => None,
        _ => Some((reason::CA_CERTIFICATE_UNUSABLE, "InvalidCACertificateRef")),
    }
}
