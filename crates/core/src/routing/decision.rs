//! Which listener serves a request: only the one with the most specific hostname, even if none of its rules matches.

use super::answer::{RoutingAnswer, RoutingOutcome};
use super::compile::RuleMatch;
use super::request::ParsedRequest;
use super::{IdleListener, Router, Scheme, ServingListener};
use crate::names::Hostname;

/// The maximum number of sentences about listeners and routes that were not chosen.
pub(super) const MANY: usize = 8;

/// The routing of one request, with its explanation so far.
pub(super) struct RoutingDecision<'a> {
    pub(super) router: &'a Router,
    pub(super) asked: &'a ParsedRequest<'a>,
    pub(super) because: Vec<String>,
}

/// A rule that matches, and the hostname by which it was found.
#[derive(Clone, Copy)]
pub(super) struct ChosenRule<'a> {
    pub(super) entry: RuleMatch,
    pub(super) hostname: &'a Hostname,
}

/// Routes a request.
pub(super) fn run(router: &Router, asked: &ParsedRequest<'_>) -> RoutingAnswer {
    let mut decision = RoutingDecision { router, asked, because: Vec::new() };
    if let Some(reason) = router.refused {
        decision.say(format!("Gateway/{} is not accepted: {reason}", router.gateway));
        return decision.end(RoutingOutcome::Rejected);
    }
    match asked.request.scheme {
        Scheme::Http => decision.http(),
        Scheme::Https => decision.https(),
        Scheme::Tls => decision.tls(),
        Scheme::Tcp | Scheme::Udp => decision.raw(),
    }
}

impl<'a> RoutingDecision<'a> {
    pub(super) fn say(&mut self, sentence: impl Into<String>) {
        self.because.push(sentence.into());
    }

    /// An answer without a listener.
    fn end(self, outcome: RoutingOutcome) -> RoutingAnswer {
        RoutingAnswer::new(outcome, self.because)
    }

    /// An answer of a listener.
    pub(super) fn end_at(self, outcome: RoutingOutcome, listener: &ServingListener) -> RoutingAnswer {
        RoutingAnswer { listener: Some(listener.key.clone()), ..RoutingAnswer::new(outcome, self.because) }
    }

    fn http(mut self) -> RoutingAnswer {
        let host = &self.asked.host;
        if !self.listens(Scheme::Http) {
            return self.nobody(&[Scheme::Http]);
        }
        match self.best(Scheme::Http, host) {
            Some(listener) => {
                self.chosen(listener, "Host", host);
                self.at_http(listener)
            }
            None => self.unknown("Host", host, RoutingOutcome::NotFound),
        }
    }

    /// The server name of the handshake selects the listener; the Host must select the same one.
    fn https(mut self) -> RoutingAnswer {
        let (host, sni) = (&self.asked.host, &self.asked.sni);
        let Some(listener) = self.secure(Scheme::Https) else { return self.no_handshake() };
        self.chosen(listener, "SNI", sni);
        if listener.scheme == Scheme::Tls {
            self.say("it is not an HTTPS listener: the content of the TLS connection is not inspected".to_string());
            return self.at_connection(listener);
        }
        match self.best(Scheme::Https, host) {
            Some(other) if other.id == listener.id => self.at_http(listener),
            Some(other) => {
                let sentence =
                    format!("the Host {} belongs to {}, not to the listener of the handshake", named(host), other.key);
                self.say(sentence);
                self.end_at(RoutingOutcome::Misdirected, listener)
            }
            None => {
                self.say(format!(
                    "no HTTPS listener on port {} has a hostname for the Host {}",
                    listener.port,
                    named(host)
                ));
                self.end_at(RoutingOutcome::NotFound, listener)
            }
        }
    }

    fn tls(mut self) -> RoutingAnswer {
        let Some(listener) = self.secure(Scheme::Tls) else { return self.no_handshake() };
        self.chosen(listener, "SNI", &self.asked.sni);
        if listener.scheme == Scheme::Https {
            self.say("it is an HTTPS listener, which takes no other protocol inside TLS".to_string());
            return self.end_at(RoutingOutcome::Rejected, listener);
        }
        self.at_connection(listener)
    }

    fn raw(mut self) -> RoutingAnswer {
        let scheme = self.asked.request.scheme;
        match self.best(scheme, "") {
            Some(listener) => {
                self.say(format!("{} takes all {} traffic on port {}", listener.key, protocol(scheme), listener.port));
                self.at_connection(listener)
            }
            None => self.nobody(&[scheme]),
        }
    }

    /// The listener for a handshake. HTTPS and TLS listeners of a port share hostnames; the scheme of the client breaks ties.
    fn secure(&self, own: Scheme) -> Option<&'a ServingListener> {
        let other = if own == Scheme::Https { Scheme::Tls } else { Scheme::Https };
        let best = [self.best(other, &self.asked.sni), self.best(own, &self.asked.sni)];
        best.into_iter().flatten().max_by_key(|listener| listener.hostname.specificity())
    }

    fn no_handshake(self) -> RoutingAnswer {
        if self.listens(Scheme::Https) || self.listens(Scheme::Tls) {
            let sni = &self.asked.sni;
            return self.unknown("SNI", sni, RoutingOutcome::Rejected);
        }
        self.nobody(&[Scheme::Https, Scheme::Tls])
    }

    fn listens(&self, scheme: Scheme) -> bool {
        self.router.listeners_by_hostname.contains_key(&(self.asked.request.port, scheme))
    }

    fn best(&self, scheme: Scheme, name: &'a str) -> Option<&'a ServingListener> {
        let index = self.router.listeners_by_hostname.get(&(self.asked.request.port, scheme))?;
        index.best(name).map(|(_, listener)| &self.router.listeners[*listener])
    }

    fn chosen(&mut self, listener: &ServingListener, what: &str, name: &str) {
        let next = self
            .router
            .listeners_by_hostname
            .get(&(listener.port, listener.scheme))
            .and_then(|index| index.lookup(name).nth(1));
        let hostname = hostname(&listener.hostname);
        let mut sentence = format!("{} takes it: {hostname} matches the {what} {}", listener.key, named(name));
        if let Some((_, next)) = next {
            sentence.push_str(&format!(" and is more specific than {}", self.router.listeners[*next].key));
        }
        self.say(sentence);
        self.say_idle(name, Some(&listener.hostname));
        if let Some(reason) = listener.certificate {
            self.say(format!("its certificate cannot be used ({reason}), so that a handshake fails until it can"));
        }
        if listener.scheme != Scheme::Http {
            self.say_uncovered(listener, name);
        }
        if listener.has_filters {
            self.say("its own filters run before a rule is chosen and may change this answer");
        }
    }

    /// Mentions that a certificate does not cover the name: what routes at any depth is certified one label deep.
    fn say_uncovered(&mut self, listener: &ServingListener, name: &str) {
        let is_covered = |known: &Hostname| known.as_str() == name || known.covers_in_certificate(name);
        let is_wide = |known: &Hostname| known.is_wildcard() && known.matches(name);
        let depth = "a wildcard in a certificate covers one label only";
        match &listener.certified {
            Some(names) if names.iter().any(is_covered) || name.is_empty() => {}
            Some(names) if names.iter().any(is_wide) => {
                self.say(format!("its certificate does not cover {}: {depth}, so the handshake fails", named(name)));
            }
            Some(_) => self.say(format!("its certificate does not cover {}, so the handshake fails", named(name))),
            None if listener.is_terminating && is_wide(&listener.hostname) && !is_covered(&listener.hostname) => {
                let hostname = &listener.hostname;
                self.say(format!("a certificate for `{hostname}` does not cover {}: {depth}", named(name)));
            }
            None => {}
        }
    }

    /// No listener of the port has the scheme of the client.
    fn nobody(mut self, schemes: &[Scheme]) -> RoutingAnswer {
        let port = self.asked.request.port;
        let wanted: Vec<_> = schemes.iter().map(|scheme| protocol(*scheme)).collect();
        let others: Vec<_> = self.router.ports().filter(|(p, _)| *p == port).map(|(_, s)| protocol(s)).collect();
        let mut sentence =
            format!("no {} listener of Gateway/{} serves port {port}", wanted.join(" or "), self.router.gateway);
        if !others.is_empty() {
            sentence.push_str(&format!(", only {}", others.join(" and ")));
        }
        self.say(sentence);
        self.say_idle(&self.asked.host, None);
        self.end(RoutingOutcome::Rejected)
    }

    /// No listener has a hostname for the name.
    fn unknown(mut self, what: &str, name: &str, outcome: RoutingOutcome) -> RoutingAnswer {
        let port = self.asked.request.port;
        self.say(format!("no listener on port {port} has a hostname for the {what} {}", named(name)));
        self.say_dot(name);
        self.say_idle(name, None);
        self.end(outcome)
    }

    /// A name from DNS may end with a dot; a hostname field cannot.
    pub(super) fn say_dot(&mut self, name: &str) {
        if name.ends_with('.') {
            self.say("the name ends with a dot, which Gateways do not agree to take off; here it stays");
        }
    }

    /// Mentions listeners that would have been chosen if they were accepted.
    fn say_idle(&mut self, name: &str, chosen: Option<&Hostname>) {
        let idle = self.router.idle.get(&self.asked.request.port).map_or(&[][..], |idle| idle);
        let better = |idle: &&IdleListener| {
            idle.hostname.matches(name) && chosen.is_none_or(|c| c.specificity() <= idle.hostname.specificity())
        };
        let sentence =
            |idle: &IdleListener| format!("{} would match, but takes no requests: {}", idle.key, idle.reason);
        self.because.extend(idle.iter().filter(better).take(MANY).map(sentence));
    }
}

/// A name in a sentence.
pub(super) fn named(name: &str) -> String {
    if name.is_empty() { "that is not given".to_owned() } else { format!("`{name}`") }
}

/// A hostname of an object in a sentence.
pub(super) fn hostname(hostname: &Hostname) -> String {
    if hostname.is_any() { "its unset hostname".to_owned() } else { format!("its hostname `{hostname}`") }
}

fn protocol(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Http => "HTTP",
        Scheme::Https => "HTTPS",
        Scheme::Tls => "TLS",
        Scheme::Tcp => "TCP",
        Scheme::Udp => "UDP",
    }
}
