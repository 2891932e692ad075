//! Where a redirect leads: to a Gateway of the input, to somebody else, or nowhere.

use std::collections::BTreeSet;

use super::requests::{RequestProbe, url};
use super::*;
use crate::names::host_of;
use crate::routing::{GatewayRequest, RoutingAnswer, RoutingOutcome, Scheme};

/// The most redirects that are followed; browsers give up after about twenty.
const MOST_HOPS: usize = 10;

/// A redirect to follow.
pub(super) struct Target<'a> {
    route: &'a ObjectRef,
    rule: usize,
    location: &'a str,
    gateway: &'a Key,
    from: &'a GatewayRequest,
}

impl<'a> Target<'a> {
    /// The redirect of an answer.
    pub(super) fn of(answer: &'a RoutingAnswer, gateway: &'a Key, from: &'a GatewayRequest) -> Option<Self> {
        let (route, rule) = (answer.route.as_ref()?, answer.rule?);
        Some(Target { route, rule, location: answer.location.as_deref()?, gateway, from })
    }

    fn problem(&self, context: LintContext<'_>, why: &str) -> Diagnostic {
        let rule = FieldPath::of("spec.rules").index(self.rule);
        let filters = context.topology.routes.get(self.route).and_then(|state| state.route.rules.get(self.rule));
        let filter = filters.and_then(|rule| rule.filters.iter().position(|f| matches!(f, Filter::Redirect(_))));
        let field = filter.map_or(rule.clone(), |i| rule.key("filters").index(i).key("requestRedirect"));
        let message = format!("rule {} redirects to {}, and {why}", self.rule, self.location);
        Diagnostic::new(reason::REDIRECT_UNSERVED, self.route, field, message)
    }
}

impl RequestProbe<'_> {
    /// Follows a redirect to its end. What is not known here counts as served.
    pub(super) fn follow(&mut self, target: Target<'_>) -> Option<(Diagnostic, bool)> {
        let mut seen = BTreeSet::from([url(target.from)]);
        let (mut location, mut gateway) = (target.location.to_owned(), target.gateway.clone());
        for _ in 0..MOST_HOPS {
            let request = request(&location)?;
            if !seen.insert(url(&request)) {
                return Some((target.problem(self.context, "that leads back to where it came from"), true));
            }
            let mut next: Option<(RoutingAnswer, Key)> = None;
            for gateway in self.gateways(&request.host, &gateway, target.from) {
                let answer = self.ask(&gateway, &request)?;
                if let Some(why) = self.refusal(&answer) {
                    return Some((target.problem(self.context, &why), true));
                }
                next.get_or_insert((answer, gateway));
            }
            let (answer, at) = next?;
            location = answer.location.filter(|_| answer.outcome == RoutingOutcome::Redirect)?;
            gateway = at;
        }
        Some((target.problem(self.context, "more redirects follow than a browser takes"), true))
    }

    /// Why a request that a redirect leads to is not served, if so.
    fn refusal(&self, answer: &RoutingAnswer) -> Option<String> {
        let first = || answer.because.first().cloned().unwrap_or_else(|| "nothing serves it".to_owned());
        match answer.outcome {
            RoutingOutcome::Redirect | RoutingOutcome::Preflight => None,
            RoutingOutcome::NotFound if answer.listener.is_some() => {
                let listener = answer.listener.as_ref().map(ToString::to_string).unwrap_or_default();
                Some(format!("no route answers there on {listener} (404)"))
            }
            RoutingOutcome::NotFound | RoutingOutcome::Misdirected => Some(first()),
            RoutingOutcome::Rejected if answer.route.is_none() => Some(first()),
            RoutingOutcome::Forward | RoutingOutcome::BackendError | RoutingOutcome::Rejected => {
                let (fault, _) = self.fault(answer).filter(|(_, fails)| *fails)?;
                Some(format!("there {}: {}", answer.route.as_ref()?, fault.message))
            }
        }
    }

    /// The Gateways that get requests for a host: those that have a route for it, or else the present one if the host is
    /// this input's to serve; none for hosts of somebody else.
    fn gateways(&self, host: &str, present: &Key, from: &GatewayRequest) -> Vec<Key> {
        let context = self.context;
        let attached = context.topology.attachments().filter(|(route, _, names)| {
            route.route.kind.has_hostnames() && names.iter().any(|name| name.hostname.matches(host))
        });
        let listeners = attached.map(|(_, id, _)| context.topology.listener(id));
        let gateways: BTreeSet<&Key> = listeners.filter_map(|listener| listener.gateway.as_ref()).collect();
        if gateways.contains(present) || host == host_of(&from.host) {
            return vec![present.clone()];
        }
        if !gateways.is_empty() {
            return gateways.into_iter().cloned().collect();
        }
        let is_named = |name: &Hostname| !name.is_any() && name.matches(host);
        let in_route = |w: &WrittenHostname| w.name().is_ok_and(is_named);
        let is_ours = context.topology.listener_ids().any(|(_, listener)| is_named(&listener.hostname))
            || context.topology.routes.values().any(|state| state.route.hostnames.iter().any(in_route));
        if is_ours { vec![present.clone()] } else { Vec::new() }
    }
}

/// The request that a client sends to a URL.
fn request(location: &str) -> Option<GatewayRequest> {
    let (scheme, rest) = location.split_once("://")?;
    let scheme = Scheme::parse(scheme)?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).or(scheme.default_port())?;
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Some(crate::routing::SampleSite { scheme, host: host_of(authority), port }.get(&path))
}
