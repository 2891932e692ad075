//! The records and certificates of one hostname, and what is withheld from it.

use std::collections::BTreeSet;

use super::*;
use crate::publication::{Desired, Record, Withheld};

/// What one hostname gets.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    /// Records that answer a query for it, by the rules of RFC 4592.
    pub records: Vec<Record>,
    /// What it does not get, and why.
    pub withheld: Vec<Withheld>,
    /// The certificate of every terminating listener that serves it.
    pub certificates: Vec<CertificateWalk>,
}

/// A terminating listener that serves the name, and what it can show for it.
#[derive(Clone, Debug)]
pub struct CertificateWalk {
    /// Which listener.
    pub listener: ListenerKey,
    /// The Secret it names.
    pub secret: Key,
    /// Whether the certificate that is wanted there covers the name.
    pub wanted: bool,
    /// What the Secret holds now.
    pub held: SecretContent,
}

/// What a Secret holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretContent {
    /// It is not there.
    Missing,
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

impl Publication {
    /// What a hostname gets in a desired state.
    pub fn of(context: LintContext<'_>, desired: &Desired, explanation: &Explanation) -> Publication {
        let hostname = &explanation.hostname;
        let asks = |w: &&Withheld| Hostname::parse(&w.hostname).is_ok_and(|name| name.contains(hostname));
        Publication {
            records: desired.answer(hostname.as_str()).into_iter().cloned().collect(),
            withheld: desired.withheld.iter().filter(asks).cloned().collect(),
            certificates: certificates(context, desired, explanation),
        }
    }

    /// Whether the name resolves.
    pub fn is_published(&self) -> bool {
        !self.records.is_empty()
    }
}

fn certificates(context: LintContext<'_>, desired: &Desired, explanation: &Explanation) -> Vec<CertificateWalk> {
    let serving: BTreeSet<&str> = explanation
        .chains
        .iter()
        .filter(|chain| chain.works())
        .flat_map(|chain| &chain.links)
        .filter(|link| link.role == Role::Listener)
        .map(|link| &*link.name)
        .collect();
    let listeners = context.topology.listener_ids().map(|(_, listener)| listener).filter(|l| l.spec().terminates_tls());
    let listeners = listeners.filter(|l| serving.contains(&*l.key().to_string()));
    listeners.flat_map(|listener| walks(context, desired, listener, &explanation.hostname)).collect()
}

fn walks(
    context: LintContext<'_>,
    desired: &Desired,
    listener: &ListenerState,
    hostname: &Hostname,
) -> Vec<CertificateWalk> {
    let own = listener.owner.object();
    let references = listener.spec().tls.iter().flat_map(|tls| &tls.certificates);
    let secrets = references.map(|r| Key::new(r.namespace_or(own.namespace()).clone(), r.name.clone()));
    let walk = |secret: Key| {
        let certificate = desired.certificates.iter().find(|c| c.secret == secret);
        let wanted = certificate.is_some_and(|c| covers(&c.dns_names, hostname));
        let held = held(context, &secret, hostname);
        CertificateWalk { listener: listener.key(), secret, wanted, held }
    };
    secrets.map(walk).collect()
}

fn held(context: LintContext<'_>, secret: &Key, hostname: &Hostname) -> SecretContent {
    match context.snapshot.secrets.get(secret).map(|secret| &secret.certificate) {
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
