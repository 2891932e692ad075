//! Which rule of the chosen listener serves a request, and why the others do not.
//!
//! Order of precedence: the hostname as written in the route, longest precise first, then longest; then the criteria of the
//! route kind; then age, name, and position. A regular expression in a path ranks by its length among prefixes, because the
//! specification leaves its rank open; the answer mentions it.

use super::answer::{RoutingAnswer, RoutingOutcome};
use super::compile::RuleMatch;
use super::decision::{ChosenRule, MANY, RoutingDecision, hostname};
use super::{Scheme, ServingListener};
use crate::model::{ObjectRef, RouteKind};
use crate::names::Hostname;

/// The maximum number of rules that an explanation examines.
const SCANNED: usize = 512;

/// Why a route was not chosen.
enum Loss {
    /// One of its rules fits as well.
    Behind(RuleMatch, String),
    /// None matches; the failed condition of the first.
    Missed(String),
}

impl<'a> RoutingDecision<'a> {
    /// Routes an HTTP request or a gRPC call on a listener.
    pub(super) fn at_http(mut self, listener: &'a ServingListener) -> RoutingAnswer {
        match self.choose(listener) {
            Some(pick) => self.serve_http(listener, pick),
            None => self.end_at(RoutingOutcome::NotFound, listener),
        }
    }

    /// Routes a connection on a listener.
    pub(super) fn at_connection(mut self, listener: &'a ServingListener) -> RoutingAnswer {
        match self.choose(listener) {
            Some(pick) => self.serve_connection(listener, pick),
            None => self.end_at(RoutingOutcome::Rejected, listener),
        }
    }

    /// Chooses a rule and explains the choice.
    fn choose(&mut self, listener: &'a ServingListener) -> Option<ChosenRule<'a>> {
        let pick = self.pick(listener);
        self.say_losers(listener, pick);
        match pick {
            Some(pick) => self.say_winner(listener, pick),
            None => self.say_nothing_fits(listener),
        }
        pick
    }

    /// The name that routes are compared with.
    fn name(&self, listener: &ServingListener) -> &'a str {
        if listener.scheme == Scheme::Tls { &self.asked.sni } else { &self.asked.host }
    }

    /// The rules to test, in order of precedence. Routes with hostnames come before those without.
    fn candidates(&self, listener: &'a ServingListener) -> impl Iterator<Item = ChosenRule<'a>> {
        let is_call = self.asked.grpc;
        let groups = listener.named.lookup(self.name(listener));
        let named = groups
            .flat_map(move |(hostname, group)| group.entries(is_call).map(move |entry| ChosenRule { entry, hostname }));
        named.chain(listener.raw.iter().map(|entry| ChosenRule { entry: *entry, hostname: &listener.hostname }))
    }

    fn fits(&self, entry: RuleMatch) -> bool {
        self.router.test(entry).check(self.asked).is_ok()
    }

    fn pick(&self, listener: &'a ServingListener) -> Option<ChosenRule<'a>> {
        self.candidates(listener).find(|pick| self.fits(pick.entry))
    }

    /// The rule that would be chosen if hostnames counted as intersected with the listener's: all that are no more specific
    /// than the listener's own are then equal.
    fn pick_by_intersection(&self, listener: &'a ServingListener, pick: ChosenRule<'a>) -> Option<RuleMatch> {
        if !pick.hostname.contains(&listener.hostname) {
            return None;
        }
        let wide = listener.named.lookup(self.name(listener)).filter(|(name, _)| name.contains(&listener.hostname));
        let best = wide.filter_map(|(_, group)| group.entries(self.asked.grpc).find(|entry| self.fits(*entry)));
        best.min_by_key(|entry| (self.router.attached(*entry).route.kind != self.kind(), self.router.rank(*entry)))
    }

    /// The kind of route that goes first for this request.
    fn kind(&self) -> RouteKind {
        if self.asked.grpc { RouteKind::Grpc } else { RouteKind::Http }
    }

    pub(super) fn route_of(&self, entry: RuleMatch) -> ObjectRef {
        self.router.attached(entry).route.object()
    }

    fn say_winner(&mut self, listener: &'a ServingListener, pick: ChosenRule<'a>) {
        let route = self.route_of(pick.entry);
        let test = self.router.test(pick.entry);
        let name =
            if pick.hostname.is_any() { "no hostname".to_owned() } else { format!("hostname `{}`", pick.hostname) };
        self.say(format!("{route} rule {} serves it: {name}, {test}", pick.entry.rule));
        let other = self.pick_by_intersection(listener, pick).filter(|other| other.route != pick.entry.route);
        if let Some(other) = other.filter(|_| !self.router.claims_written) {
            let sentence = format!(
                "a Gateway that ranks by intersected hostnames would choose {} rule {}; the GatewayClass does not claim {}",
                self.route_of(other),
                other.rule,
                super::WRITTEN_PRECEDENCE
            );
            self.say(sentence);
        }
    }

    fn say_losers(&mut self, listener: &'a ServingListener, winner: Option<ChosenRule<'a>>) {
        let losers = self.losers(listener, winner);
        let has_expression = |entry: &RuleMatch| self.router.test(*entry).has_path_expression();
        let lost_expression =
            losers.iter().any(|(_, loss)| matches!(loss, Loss::Behind(entry, _) if has_expression(entry)));
        let first = losers.iter().any(|(_, loss)| matches!(loss, Loss::Behind(..)))
            && winner.is_some_and(|winner| has_expression(&winner.entry));
        let routes = &self.router.routes;
        let sentence = |(route, loss): &(usize, Loss)| match loss {
            Loss::Behind(entry, why) => {
                format!("{} rule {} fits too: {why}", routes[*route].route.object(), entry.rule)
            }
            Loss::Missed(why) => format!("{} does not fit: {why}", routes[*route].route.object()),
        };
        self.because.extend(losers.iter().take(MANY).map(sentence));
        if losers.len() > MANY {
            self.say(format!("{} more routes on this listener were not chosen", losers.len() - MANY));
        }
        if first || lost_expression {
            self.say("where regular expressions rank among paths is left to implementations; here by length");
        }
    }

    /// The routes that were not chosen, in order of precedence, up to the limit.
    fn losers(&self, listener: &'a ServingListener, winner: Option<ChosenRule<'a>>) -> Vec<(usize, Loss)> {
        let mut losers: Vec<(usize, Loss)> = Vec::new();
        for pick in self.candidates(listener).take(SCANNED) {
            let route = pick.entry.route;
            if winner.is_some_and(|winner| winner.entry.route == route) {
                continue;
            }
            let known = losers.iter().position(|(known, _)| *known == route);
            let missed = |at: usize| matches!(losers[at].1, Loss::Missed(_));
            match (known, self.router.test(pick.entry).check(self.asked), winner) {
                (None, Err(miss), _) => losers.push((route, Loss::Missed(miss.to_string()))),
                (None, Ok(()), Some(winner)) => losers.push((route, Loss::Behind(pick.entry, self.why(pick, winner)))),
                (Some(at), Ok(()), Some(winner)) if missed(at) => {
                    losers[at].1 = Loss::Behind(pick.entry, self.why(pick, winner));
                }
                _ => {}
            }
        }
        losers
    }

    /// Why a rule that matches ranks behind the chosen one.
    fn why(&self, loser: ChosenRule<'_>, winner: ChosenRule<'_>) -> String {
        let (ours, theirs) = (self.router.rank(winner.entry), self.router.rank(loser.entry));
        let kinds = [winner, loser].map(|pick| self.router.attached(pick.entry).route.kind);
        if loser.hostname != winner.hostname {
            return format!("{} is less specific than {}", hostname(loser.hostname), shown(winner.hostname));
        }
        if kinds[0] != kinds[1] {
            return format!("{} goes before {}", kinds[0], kinds[1]);
        }
        let criteria = self.router.test(winner.entry).criteria();
        let differs = ours.0.0.iter().zip(theirs.0.0).position(|(a, b)| *a != b);
        match differs {
            Some(at) => format!("the chosen rule has {}", criteria[at]),
            None if ours.1.0 != theirs.1.0 => "its route is younger".to_owned(),
            None => "its route is of the same age and comes later by name".to_owned(),
        }
    }

    fn say_nothing_fits(&mut self, listener: &'a ServingListener) {
        let name = self.name(listener);
        self.say(format!("no rule of a route on {} fits", listener.key));
        self.say_dot(name);
        self.say_hidden(listener, name);
        let refused = self.router.refused_by_hostname.lookup(name).flat_map(|(_, routes)| routes).filter_map(|index| {
            let refused = &self.router.refusals[*index];
            let concerns = |id: &Option<_>| id.is_none_or(|id| id == listener.id);
            let (_, reason) = refused.verdicts.iter().find(|(id, _)| concerns(id))?;
            Some(format!("{} has a hostname for it and is not attached here: {reason}", refused.route))
        });
        let sentences: Vec<_> = refused.take(MANY).collect();
        self.because.extend(sentences);
    }

    /// Mentions rules of less specific listeners, which never get requests for this name.
    fn say_hidden(&mut self, listener: &'a ServingListener, name: &'a str) {
        let Some(index) = self.router.listeners_by_hostname.get(&(listener.port, listener.scheme)) else { return };
        let others =
            index.lookup(name).map(|(_, index)| &self.router.listeners[*index]).filter(|l| l.id != listener.id);
        let sentence = |other: &'a ServingListener| {
            let pick = self.pick(other)?;
            let route = self.route_of(pick.entry);
            Some(format!("{route} would serve it on {}, but that name belongs to {}", other.key, listener.key))
        };
        let sentences: Vec<_> = others.filter_map(sentence).take(MANY).collect();
        self.because.extend(sentences);
    }
}

fn shown(hostname: &Hostname) -> String {
    if hostname.is_any() { "none".to_owned() } else { format!("`{hostname}`") }
}
