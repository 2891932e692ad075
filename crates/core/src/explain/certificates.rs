//! What the terminating listeners of a name can show for it. Nothing is told of a Secret that no ReferenceGrant opens.

use super::index::PublicationIndex;
use super::*;
use crate::attachment::certificates::is_provided;
use crate::names::Hostname;

/// A terminating listener that serves the name, and what it can show for it.
#[derive(Clone, Debug)]
pub struct CertificateWalk {
    /// Which listener.
    pub listener: ListenerKey,
    /// The Secret it names.
    pub secret: Key,
    /// The field that names it.
    pub field: FieldPath,
    /// Whether the certificate that is wanted there covers the name.
    pub wanted: bool,
    /// Why it is not wanted, if it is not.
    pub unwanted: Option<String>,
    /// What the Secret holds now.
    pub held: SecretContent,
    /// What is wrong with the reference.
    pub finding: Option<Diagnostic>,
    /// The name in question.
    pub hostname: Hostname,
}

/// What a Secret holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretContent {
    /// It is in another namespace, and no ReferenceGrant permits its use.
    NotPermitted,
    /// It is not there.
    Missing,
    /// It is not there, and another controller makes it.
    Provided,
    /// It cannot be used, and why.
    Unusable(Str),
    /// A certificate: whether it covers the name, and when it ends.
    Certificate {
        /// Whether it covers the name.
        covers: bool,
        /// When it ends, in seconds since 1970.
        not_after: i64,
    },
}

impl CertificateWalk {
    /// Why a handshake for the name fails with this certificate; of severity info where it is not known that it does.
    pub(super) fn problem(&self) -> Option<Diagnostic> {
        match &self.held {
            SecretContent::Provided | SecretContent::Certificate { covers: true, .. } => None,
            SecretContent::Certificate { covers: false, .. } => {
                let (secret, name) = (&self.secret, &self.hostname);
                let message = format!("the certificate in Secret {secret} does not cover `{name}`");
                let message = match &self.unwanted {
                    Some(why) => format!("{message}: {why}"),
                    None => message,
                };
                let help = match self.wanted {
                    true => "let Gatepost issue the certificate anew, or put one that covers the name into the Secret",
                    false => "put a certificate that covers the name into the Secret, or name another Secret",
                };
                let owner = &self.listener.owner;
                let problem = Diagnostic::new(reason::CERTIFICATE_CANNOT_COVER, owner, self.field.clone(), message);
                Some(problem.help(help))
            }
            _ => self.finding.clone(),
        }
    }
}

/// The certificates of the terminating listeners among the given ones.
pub(super) fn walks(
    index: &PublicationIndex<'_>,
    listeners: &[ListenerId],
    hostname: &Hostname,
) -> Vec<CertificateWalk> {
    let topology = index.context.topology;
    let states = listeners.iter().map(|id| topology.listener(*id)).filter(|l| l.spec().terminates_tls());
    states.flat_map(|listener| of_listener(index, listener, hostname)).collect()
}

/// Terminating listeners that name no certificate at all.
pub(super) fn unsecured(context: LintContext<'_>, listeners: &[ListenerId]) -> Vec<(ListenerKey, Diagnostic)> {
    let states = listeners.iter().map(|id| context.topology.listener(*id));
    states.filter_map(|listener| Some((listener.key(), crate::lint::unsecured(listener)?))).collect()
}

fn of_listener(index: &PublicationIndex<'_>, listener: &ListenerState, hostname: &Hostname) -> Vec<CertificateWalk> {
    let context = index.context;
    let own = listener.owner.object();
    let findings = context.listener(listener.id);
    let walk = |(position, target): (usize, &Reference)| {
        let secret = Key::new(target.namespace_or(own.namespace()).clone(), target.name.clone());
        let field = crate::lint::listener_field(listener, "tls.certificateRefs").index(position);
        let unwanted = unwanted(index, &secret, listener, hostname);
        CertificateWalk {
            listener: listener.key(),
            wanted: unwanted.is_none(),
            unwanted,
            held: held(context, listener, position, target, &secret, hostname),
            finding: findings.iter().find(|finding| finding.field == field).cloned(),
            secret,
            field,
            hostname: hostname.clone(),
        }
    };
    listener.spec().tls.iter().flat_map(|tls| &tls.certificates).enumerate().map(walk).collect()
}

/// Why the certificate that is planned for a Secret does not cover the name, if it does not.
fn unwanted(
    index: &PublicationIndex<'_>,
    secret: &Key,
    listener: &ListenerState,
    hostname: &Hostname,
) -> Option<String> {
    let Some(certificate) = index.desired.certificates.iter().find(|c| c.secret == *secret) else {
        return Some("no certificate is planned for this Secret".to_owned());
    };
    if covers(&certificate.dns_names, hostname) {
        return None;
    }
    let names = certificate.dns_names.iter().filter_map(|name| Hostname::parse(name).ok());
    let wide = names.filter(|name| name.is_wildcard() && name.contains(hostname)).max_by_key(Hostname::specificity);
    let Some(wide) = wide else { return Some(uncovered(index, listener, hostname)) };
    let who = match &certificate.policy {
        Some(policy) => format!("TLSPolicy {policy} allows `{wide}`"),
        None => format!("the planned certificate has `{wide}`"),
    };
    Some(format!("{who}, which covers one label only and does not reach `{hostname}`"))
}

/// Why no name of the planned certificate is near the name: the wildcard that serves it may not be certified.
fn uncovered(index: &PublicationIndex<'_>, listener: &ListenerState, hostname: &Hostname) -> String {
    let key = listener.key();
    let records = index.answer(hostname.as_str()).iter();
    let wide = records.filter(|record| record.listeners.contains(&key)).find(|record| record.name.starts_with('*'));
    match wide {
        Some(record) => format!("no TLSPolicy allows a certificate for `{}`", record.name),
        None => "not wanted by any policy".to_owned(),
    }
}

fn held(
    context: LintContext<'_>,
    listener: &ListenerState,
    index: usize,
    target: &Reference,
    secret: &Key,
    hostname: &Hostname,
) -> SecretContent {
    let place = CertificateUse::Own(index);
    let problem = listener.certificates.iter().find(|problem| problem.place == place).map(|problem| problem.reason);
    if problem == Some(reason::REFERENCE_NOT_PERMITTED) {
        return SecretContent::NotPermitted;
    }
    match context.snapshot.secrets.get(secret).map(|secret| &secret.certificate) {
        None if is_provided(context.snapshot, listener, target) => SecretContent::Provided,
        None => SecretContent::Missing,
        Some(Material::Missing) => SecretContent::Unusable("it has no `tls.crt`".into()),
        Some(Material::Malformed(why)) => SecretContent::Unusable(why.clone()),
        Some(Material::Present(certificate)) => SecretContent::Certificate {
            covers: covers(&certificate.dns_names, hostname),
            not_after: certificate.not_after,
        },
    }
}

/// Whether one of a certificate's names is good for a hostname; a wildcard is covered by itself only.
fn covers(names: &[Str], hostname: &Hostname) -> bool {
    let good = |name: &Hostname| name == hostname || name.covers_in_certificate(hostname.as_str());
    names.iter().filter_map(|name| Hostname::parse(name).ok()).any(|name| good(&name))
}
