//! What the chosen rule does with a request: answer it itself, or forward it to backends by weight.

use super::answer::{RoutingAnswer, RoutingOutcome, Share, Unavailable};
use super::decision::{ChosenRule, RoutingDecision};
use super::filters::{FilterContext, Passage, cors};
use super::{Scheme, ServingListener};
use crate::attachment::BackendUse;
use crate::model::*;
use crate::reason::{self, Reason};

/// The backends of a rule, sorted.
struct Backends<'a> {
    usable: Vec<(&'a BackendRef, Key)>,
    unavailable: Vec<Unavailable>,
}

impl<'a> RoutingDecision<'a> {
    /// Carries out a rule for an HTTP request.
    pub(super) fn serve_http(mut self, listener: &'a ServingListener, pick: ChosenRule<'a>) -> RoutingAnswer {
        let place = FilterContext {
            asked: self.asked,
            prefix: self.router.test(pick.entry).prefix(),
            scheme: if listener.scheme == Scheme::Https { "https" } else { "http" },
            port: listener.port,
        };
        let rule = self.rule(pick);
        let mut passage = Passage::new(self.asked).through(&rule.filters, &place);
        self.because.append(&mut passage.notes);
        self.say_filter_backends(pick);
        if let Some(filter) = passage.broken {
            self.say_broken(&filter);
            return self.end_with(RoutingOutcome::BackendError, listener, pick);
        }
        let backends = self.backends(pick);
        if let Some(cors) = preflight_filter(rule, &backends).filter(|_| cors::is_preflight(self.asked)) {
            let (response, sentence) = cors::preflight(cors, self.asked);
            self.say(format!("the CORS filter answers the preflight: {sentence}"));
            return RoutingAnswer { response, ..self.end_with(RoutingOutcome::Preflight, listener, pick) };
        }
        if let Some(redirect) = passage.redirect.take() {
            let response = passage.response;
            return RoutingAnswer { response, ..self.redirect(redirect, listener, pick) };
        }
        self.forward(listener, pick, backends, &passage, &place)
    }

    /// Carries out a rule for a connection.
    pub(super) fn serve_connection(mut self, listener: &'a ServingListener, pick: ChosenRule<'a>) -> RoutingAnswer {
        let backends = self.backends(pick);
        self.say_unavailable(&backends.unavailable, "refused");
        let outcome = if backends.usable.is_empty() { RoutingOutcome::Rejected } else { RoutingOutcome::Forward };
        if backends.usable.is_empty() {
            self.say("no backend of the rule can be used, so the connection is refused");
        }
        let shares = backends.usable.iter().map(|(backend, key)| share(backend, key)).collect();
        let unavailable = backends.unavailable;
        RoutingAnswer { backends: shares, unavailable, ..self.end_with(outcome, listener, pick) }
    }

    fn rule(&self, pick: ChosenRule<'a>) -> &'a Rule {
        &self.router.attached(pick.entry).route.rules[pick.entry.rule]
    }

    /// An answer of a rule.
    fn end_with(self, outcome: RoutingOutcome, listener: &ServingListener, pick: ChosenRule<'a>) -> RoutingAnswer {
        let route = Some(self.route_of(pick.entry));
        RoutingAnswer { route, rule: Some(pick.entry.rule), ..self.end_at(outcome, listener) }
    }

    fn redirect(
        mut self,
        (status, location): (u16, String),
        listener: &ServingListener,
        pick: ChosenRule<'a>,
    ) -> RoutingAnswer {
        self.say(format!("its filter redirects to {location}"));
        RoutingAnswer {
            status: Some(status),
            location: Some(location),
            ..self.end_with(RoutingOutcome::Redirect, listener, pick)
        }
    }

    /// Applies the filters of each backend to the request.
    fn forward(
        mut self,
        listener: &ServingListener,
        pick: ChosenRule<'a>,
        backends: Backends<'a>,
        rule: &Passage,
        place: &FilterContext<'_>,
    ) -> RoutingAnswer {
        let Backends { usable, mut unavailable } = backends;
        let mut shares: Vec<(Share, Passage)> = Vec::new();
        let mut redirects = Vec::new();
        for (backend, key) in &usable {
            let mut passage = rule.clone().through(&backend.filters, place);
            self.because.append(&mut passage.notes);
            if let Some(filter) = passage.broken.take() {
                self.say_broken(&filter);
                unavailable.push(refused(backend, key, reason::FILTER_UNSUPPORTED));
            } else if let Some((status, location)) = passage.redirect.take() {
                self.say(format!("the share of {key} (weight {}) is redirected to {location}", backend.weight));
                redirects.push((status, location));
            } else {
                shares.push((share(backend, key), passage));
            }
        }
        self.say_unavailable(&unavailable, "answered 500");
        match (shares.is_empty(), redirects.into_iter().next()) {
            (true, Some(redirect)) => RoutingAnswer { unavailable, ..self.redirect(redirect, listener, pick) },
            (true, None) => {
                self.say("no backend of the rule can be used, so it answers 500");
                RoutingAnswer { unavailable, ..self.end_with(RoutingOutcome::BackendError, listener, pick) }
            }
            (false, _) => RoutingAnswer {
                unavailable,
                ..forwarded(shares, self.end_with(RoutingOutcome::Forward, listener, pick))
            },
        }
    }

    /// Sorts the backends of a rule; those of weight 0 get nothing and are left out.
    fn backends(&self, pick: ChosenRule<'a>) -> Backends<'a> {
        let attached = self.router.attached(pick.entry);
        let own = &attached.route.meta.key.namespace;
        let mut backends = Backends { usable: Vec::new(), unavailable: Vec::new() };
        let weighted = self.rule(pick).backends.iter().enumerate().filter(|(_, backend)| backend.weight > 0);
        for (i, backend) in weighted {
            let key = Key::new(backend.target.namespace_or(own).clone(), backend.target.name.clone());
            let here = |place| place == BackendUse::Backend(i);
            let problem = attached.problems.iter().find(|p| p.rule == pick.entry.rule && here(p.place));
            match problem {
                Some(problem) => backends.unavailable.push(refused(backend, &key, problem.reason)),
                None => backends.usable.push((backend, key)),
            }
        }
        backends
    }

    fn say_unavailable(&mut self, unavailable: &[Unavailable], what: &str) {
        for Unavailable { backend, weight, reason, .. } in unavailable {
            self.say(format!("{backend} (weight {weight}) cannot be used: {reason}; its share is {what}"));
        }
    }

    fn say_broken(&mut self, filter: &str) {
        self.say(format!(
            "{filter} is not known here, and a filter is never skipped: 500, unless the Gateway knows it"
        ));
    }

    /// Mirrors whose target cannot be used.
    fn say_filter_backends(&mut self, pick: ChosenRule<'a>) {
        let problems = &self.router.attached(pick.entry).problems;
        for problem in problems.iter().filter(|p| p.rule == pick.entry.rule) {
            if let BackendUse::Filter(i) = problem.place {
                self.say(format!("the backend of filter {i} cannot be used: {}", problem.reason));
            }
        }
    }
}

/// The CORS filter that answers a preflight: the rule's, or that of the first backend.
fn preflight_filter<'a>(rule: &'a Rule, backends: &Backends<'a>) -> Option<&'a Cors> {
    let first = backends.usable.first().map_or(&[][..], |(backend, _)| &backend.filters);
    rule.filters.iter().chain(first).find_map(|filter| match filter {
        Filter::Cors(cors) => Some(cors),
        _ => None,
    })
}

/// The answer holds what the first backend gets; the others hold what is different for them.
fn forwarded(shares: Vec<(Share, Passage)>, answer: RoutingAnswer) -> RoutingAnswer {
    let first = shares.first().map(|(_, passage)| (passage.request.clone(), passage.response.clone()));
    let (request, response) = first.map_or((None, Default::default()), |(request, response)| (Some(request), response));
    let differing = |(share, passage): (Share, Passage)| Share {
        request: Some(passage.request).filter(|own| Some(own) != request.as_ref()),
        response: Some(passage.response).filter(|own| *own != response),
        ..share
    };
    let backends = shares.into_iter().map(differing).collect();
    RoutingAnswer { backends, request, response, ..answer }
}

fn share(backend: &BackendRef, key: &Key) -> Share {
    Share { backend: key.clone(), port: backend.port, weight: backend.weight, request: None, response: None }
}

fn refused(backend: &BackendRef, key: &Key, reason: Reason) -> Unavailable {
    Unavailable { backend: key.clone(), port: backend.port, weight: backend.weight, reason }
}
