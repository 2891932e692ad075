//! The verdict on a name, and the first cause where it is bad.

use super::*;
use crate::health::HealthState;
use crate::reason::Severity;

/// What is to be said of a name as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameVerdict {
    /// It is published, and requests are answered as the routes say.
    Works,
    /// It is published, but requests for it fail.
    RequestsFail,
    /// A route has it, and no record is published.
    NotPublished,
    /// Routes ask for it, and none is attached under it.
    NotAttached,
    /// Nothing asks for it.
    NotAsked,
}

impl NameVerdict {
    /// The text form in output.
    pub fn as_str(self) -> &'static str {
        match self {
            NameVerdict::Works => "works",
            NameVerdict::RequestsFail => "requests-fail",
            NameVerdict::NotPublished => "not-published",
            NameVerdict::NotAttached => "not-attached",
            NameVerdict::NotAsked => "not-asked",
        }
    }
}

impl Publication {
    /// The verdict on the name.
    pub fn verdict(&self, explanation: &Explanation) -> NameVerdict {
        let is_attached = explanation.chains.iter().any(Chain::is_attached);
        let is_annotated = !self.annotated.is_empty();
        let closest = super::publication::closest_routes(explanation);
        let is_meant = |chain: &Chain| chain.is_attached() && closest.contains(&chain.route);
        match self.is_published() {
            true if is_attached || is_annotated => match self.failures().next() {
                Some(_) => NameVerdict::RequestsFail,
                None => NameVerdict::Works,
            },
            false if explanation.chains.iter().any(is_meant) => NameVerdict::NotPublished,
            _ if !explanation.chains.is_empty() => NameVerdict::NotAttached,
            _ if self.withheld.iter().any(|w| self.is_about(w)) => NameVerdict::NotPublished,
            _ => NameVerdict::NotAsked,
        }
    }

    /// The first cause of a bad verdict; nothing where the name works, or where nothing asks for it.
    pub fn cause(&self, explanation: &Explanation) -> Option<Diagnostic> {
        let withheld =
            self.withheld.first().map(|w| Diagnostic::new(w.reason, &w.object, w.field.clone(), &*w.message));
        let left_out = self
            .passed_over
            .first()
            .map(|passed| Diagnostic::new(reason::NOT_SELECTED, &passed.object, FieldPath::root(), &*passed.because));
        match self.verdict(explanation) {
            NameVerdict::Works | NameVerdict::NotAsked => None,
            NameVerdict::RequestsFail => self.failures().next(),
            NameVerdict::NotPublished => withheld.or(left_out),
            NameVerdict::NotAttached => explanation.chains.iter().find_map(|chain| chain.broken.clone()),
        }
    }

    /// Everything that makes requests for the name fail, the first cause first.
    pub fn failures(&self) -> impl Iterator<Item = Diagnostic> {
        let at_listeners = self.requests.iter().flat_map(|outcome| {
            let certificate = self.certificate_problem(&outcome.listener);
            certificate.into_iter().chain(outcome.cause.iter().filter(|_| outcome.fails).cloned())
        });
        at_listeners.chain(self.losing.iter().cloned()).chain(self.unhealthy())
    }

    /// That every address of the name fails its health check, if so: what is published then only keeps answers from being empty.
    fn unhealthy(&self) -> Option<Diagnostic> {
        let (policy, first) = self.addresses.first()?;
        let is_unhealthy = self.addresses.iter().all(|(_, address)| address.state == HealthState::Unhealthy);
        let (name, error) = (&first.hostname, &first.error);
        let message = format!("every address of `{name}` fails its health check; `{}`: {error}", first.address);
        let found =
            Diagnostic::new(reason::ALL_ADDRESSES_UNHEALTHY, policy, FieldPath::of("spec.healthCheck"), message);
        is_unhealthy.then_some(found)
    }

    /// Why no handshake for the name succeeds at a listener; nothing where one of its certificates is good or not known.
    pub fn certificate_problem(&self, listener: &ListenerKey) -> Option<Diagnostic> {
        let mut walks = self.certificates.iter().filter(|walk| walk.listener == *listener).peekable();
        if walks.peek().is_none() {
            return self.unsecured.iter().find(|(key, _)| key == listener).map(|(_, problem)| problem.clone());
        }
        let problems: Option<Vec<Diagnostic>> = walks.map(CertificateWalk::problem).collect();
        problems?.into_iter().min_by_key(|problem| problem.severity).filter(|d| d.severity < Severity::Info)
    }
}
