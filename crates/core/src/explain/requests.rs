//! What a client meets at each listener that serves a name: one sample request per match of the routes, each routed by
//! [`crate::routing`]. No rule of routing is written here.

use std::collections::BTreeMap;

use super::index::{PublicationIndex, Routers};
use super::redirects::Target;
use super::*;
use crate::publication::Record;
use crate::routing::{GatewayRequest, Router, RoutingAnswer, RoutingOutcome, SampleSite, Scheme};
use crate::snapshot::Origin;

/// The most sample requests at one listener.
const MOST_SAMPLES: usize = 128;

/// What a client meets at one listener.
#[derive(Clone, Debug)]
pub struct ListenerOutcome {
    /// The listener under which the name is attached.
    pub listener: ListenerKey,
    /// The request, as a URL: one that fails, if there is one.
    pub url: String,
    /// The answer to it.
    pub answer: RoutingAnswer,
    /// What is wrong with it, or cannot be told from the input.
    pub cause: Option<Diagnostic>,
    /// Whether requests fail because of that.
    pub fails: bool,
}

/// A listener that serves the name.
pub(super) struct Site {
    pub(super) listener: ListenerId,
    gateway: Key,
    sample: SampleSite,
    routes: BTreeSet<ObjectRef>,
}

/// What is wrong with an answer, and whether it fails because of it.
type Problem = (Diagnostic, bool);

/// The listeners that serve the name, where it is published.
pub(super) fn sites(
    index: &PublicationIndex<'_>,
    explanation: &Explanation,
    records: &[Record],
    annotated: &[AnnotatedName],
) -> Vec<Site> {
    let (context, ids) = (index.context, &index.listeners);
    let host = sample_host(context, &explanation.hostname);
    let gateway_of = |id: ListenerId| context.topology.listener(id).gateway.clone();
    let gateways = gateways(index, records);
    let mut sites: BTreeMap<ListenerId, Site> = BTreeMap::new();
    let mut add = |id: ListenerId, route: &ObjectRef| {
        let listener = context.topology.listener(id);
        let (Some(gateway), Some(scheme)) = (gateway_of(id), Scheme::of(&listener.spec().protocol)) else { return };
        let sample = SampleSite { scheme, host: host.clone(), port: listener.spec().port };
        let site = Site { listener: id, gateway, sample, routes: BTreeSet::new() };
        sites.entry(id).or_insert(site).routes.insert(route.clone());
    };
    for chain in explanation.chains.iter().filter(|chain| chain.is_attached() && !records.is_empty()) {
        let Some(id) = chain.listener else { continue };
        let is_published = gateway_of(id).is_some_and(|gateway| gateways.contains(&gateway));
        if is_published && context.topology.listener(id).spec().protocol.has_hostname() {
            add(id, &chain.route);
        }
    }
    for name in annotated {
        let listeners = records.iter().filter(|r| r.routes.contains(&name.object)).flat_map(|r| r.listeners.iter());
        listeners.filter_map(|key| ids.get(key)).for_each(|id| add(*id, &name.object));
    }
    let mut sites: Vec<Site> = sites.into_values().collect();
    sites.sort_by_cached_key(|site| context.topology.listener(site.listener).precedence());
    sites
}

/// The Gateways that records lead to.
pub(super) fn gateways(index: &PublicationIndex<'_>, records: &[Record]) -> BTreeSet<Key> {
    let published: BTreeSet<&ListenerKey> = records.iter().flat_map(|record| record.listeners.iter()).collect();
    let listeners = published.into_iter().filter_map(|key| index.listeners.get(key));
    listeners.filter_map(|id| index.context.topology.listener(*id).gateway.clone()).collect()
}

/// The host to ask for: a precise name below a wildcard, one that nothing else names.
fn sample_host(context: LintContext<'_>, hostname: &Hostname) -> String {
    let Some(base) = hostname.wildcard_base() else { return hostname.to_string() };
    let routes = context.topology.routes.values().flat_map(|state| &state.route.hostnames);
    let listeners = context.topology.listener_ids().map(|(_, listener)| listener.hostname.to_string());
    let taken: BTreeSet<String> = routes.map(|written| written.text().to_string()).chain(listeners).collect();
    let mut labels = std::iter::once("any".to_owned()).chain((2..).map(|n| format!("any{n}")));
    let free = labels.find_map(|label| Some(format!("{label}.{base}")).filter(|name| !taken.contains(name)));
    free.unwrap_or_else(|| format!("any.{base}"))
}

/// What a client meets at each of the sites, and the routes that get none of the requests for exactly this name.
pub(super) fn outcomes(
    index: &mut PublicationIndex<'_>,
    sites: &[Site],
    hostname: &Hostname,
) -> (Vec<ListenerOutcome>, Vec<Diagnostic>) {
    let context = index.context;
    let mut client = RequestProbe { context, routers: &mut index.routers, contests: BTreeMap::new() };
    let outcomes = sites.iter().filter_map(|site| client.visit(site)).collect();
    let losing = client.contests.iter().filter_map(|(route, contest)| losing(context, route, contest, hostname));
    (outcomes, losing.collect())
}

/// Whether a route was reached by any of the requests that its rules match, and who else was.
#[derive(Default)]
struct Contest {
    is_reached: bool,
    winners: BTreeSet<ObjectRef>,
}

/// Sends requests through routers, which are compiled when first needed.
pub(super) struct RequestProbe<'a> {
    pub(super) context: LintContext<'a>,
    routers: &'a mut Routers,
    contests: BTreeMap<ObjectRef, Contest>,
}

impl RequestProbe<'_> {
    /// The answer of a Gateway; nothing if there is no such Gateway.
    pub(super) fn ask(&mut self, gateway: &Key, request: &GatewayRequest) -> Option<RoutingAnswer> {
        let LintContext { snapshot, topology } = self.context;
        let router = self.routers.entry(gateway.clone());
        Some(router.or_insert_with(|| Router::compile(snapshot, topology, gateway)).as_ref()?.route(request))
    }

    /// The worst of what happens to the sample requests at a listener.
    fn visit(&mut self, site: &Site) -> Option<ListenerOutcome> {
        let mut worst: Option<ListenerOutcome> = None;
        for (route, request) in self.samples(site) {
            let answer = self.ask(&site.gateway, &request)?;
            if let Some(route) = route {
                let contest = self.contests.entry(route.clone()).or_default();
                contest.is_reached |= answer.route.as_ref() == Some(&route);
                contest.winners.extend(answer.route.clone());
            }
            let problem = self.problem(site, &request, &answer);
            let (fails, listener) = (problem.as_ref().is_some_and(|(_, fails)| *fails), self.key(site.listener));
            let cause = problem.map(|(cause, _)| cause);
            let outcome = ListenerOutcome { listener, url: url(&request), answer, cause, fails };
            let badness = |o: &ListenerOutcome| (o.fails, o.cause.is_some());
            if worst.as_ref().is_none_or(|known| badness(&outcome) > badness(known)) {
                worst = Some(outcome);
            }
        }
        worst
    }

    fn key(&self, id: ListenerId) -> ListenerKey {
        self.context.topology.listener(id).key()
    }

    /// The requests to try, with the route whose match each is made for.
    fn samples(&self, site: &Site) -> Vec<(Option<ObjectRef>, GatewayRequest)> {
        let states = site.routes.iter().filter_map(|route| self.context.topology.routes.get(route));
        let requests = states.flat_map(|state| {
            let requests = state.route.rules.iter().flat_map(|rule| site.sample.requests(state.route.kind, rule));
            requests.map(|request| (Some(state.route.object()), request))
        });
        let mut samples: Vec<_> = requests.take(MOST_SAMPLES).collect();
        if samples.is_empty() {
            samples.push((None, site.sample.get("/")));
        }
        samples
    }

    fn problem(&mut self, site: &Site, request: &GatewayRequest, answer: &RoutingAnswer) -> Option<Problem> {
        match answer.outcome {
            RoutingOutcome::Redirect => self.follow(Target::of(answer, &site.gateway, request)?),
            _ => self.fault(answer).or_else(|| self.unreached(site, request, answer)),
        }
    }

    /// What is wrong with the rule that was chosen.
    pub(super) fn fault(&self, answer: &RoutingAnswer) -> Option<Problem> {
        let is_whole = answer.outcome.is_served() && answer.unavailable.is_empty();
        let (route, rule) = (answer.route.as_ref()?, answer.rule?);
        if is_whole {
            return None;
        }
        let state = self.context.topology.routes.get(route)?;
        let problems = self.backend_problems(state, rule);
        let first = problems.iter().find(|(_, fails)| *fails).or(problems.first()).cloned();
        first.or_else(|| without_backend(state, rule))
    }

    /// The backends of a rule that get requests and cannot be used.
    fn backend_problems(&self, state: &RouteState, rule: usize) -> Vec<Problem> {
        let diagnostics = self.context.backends(state);
        let missing_ports = backends::missing_ports(self.context.snapshot, state);
        let problems = state.backends.iter().chain(&missing_ports).filter(|problem| problem.rule == rule);
        let told = problems.filter_map(|problem| {
            let BackendUse::Backend(index) = problem.place else { return None };
            let backend = state.route.rules.get(rule)?.backends.get(index).filter(|backend| backend.weight > 0)?;
            let field = format!("spec.rules[{rule}].backendRefs[{index}]");
            let diagnostic = diagnostics.iter().find(|d| d.reason == problem.reason && is_at(d, &field))?;
            Some((diagnostic.clone(), !self.is_open(problem.reason, backend)))
        });
        told.collect()
    }

    /// Whether the input cannot tell that a backend is unusable: its kind may be known to the implementation, or the files
    /// hold no Services at all.
    fn is_open(&self, problem: reason::Reason, backend: &BackendRef) -> bool {
        let snapshot = self.context.snapshot;
        match problem {
            reason::BACKEND_KIND_UNKNOWN => !backend.target.group.is_empty(),
            reason::BACKEND_MISSING => snapshot.origin == Origin::Files && snapshot.services.is_empty(),
            _ => false,
        }
    }

    /// Requests for the name that no route of the listener gets.
    fn unreached(&self, site: &Site, request: &GatewayRequest, answer: &RoutingAnswer) -> Option<Problem> {
        if answer.outcome.is_served() {
            return None;
        }
        let hostname = Hostname::parse(&request.host).ok()?;
        let states = site.routes.iter().filter_map(|route| self.context.topology.routes.get(route));
        let mut states = states.peekable();
        let first = states.peek()?.route.object();
        if let Some(shadow) = states.find_map(|state| walk::shadowed(self.context, state, site.listener, &hostname)) {
            return Some((shadow, true));
        }
        if let Some(problem) = self.unlisted(site, &hostname, answer) {
            return Some((problem, true));
        }
        let status = answer.status.map_or("refused".to_owned(), |status| format!("answered {status}"));
        let why = answer.because.first().map(|sentence| format!(": {sentence}")).unwrap_or_default();
        let message = format!("{} is {status}{why}", url(request));
        let field = FieldPath::of("spec.rules");
        Some((Diagnostic::new(reason::HOSTNAME_UNREACHABLE, &first, field, message), true))
    }
}

impl RequestProbe<'_> {
    /// A name that an annotation or a template publishes and that no route lists.
    fn unlisted(&self, site: &Site, hostname: &Hostname, answer: &RoutingAnswer) -> Option<Diagnostic> {
        let states = site.routes.iter().filter_map(|route| self.context.topology.routes.get(route));
        let lists = |state: &RouteState| {
            let names = state.attachments().flat_map(|attachment| &attachment.names);
            names.into_iter().any(|name| name.hostname.contains(hostname))
        };
        let mut states = states.peekable();
        let object = states.peek()?.route.object();
        if states.any(|state| lists(state)) {
            return None;
        }
        let listener = self.key(site.listener);
        let status = answer.status.map(|status| format!(" ({status})")).unwrap_or_default();
        let message = format!("it publishes `{hostname}`, and no route answers for that name at {listener}{status}");
        let problem = Diagnostic::new(reason::HOSTNAME_UNREACHABLE, &object, FieldPath::of("spec.hostnames"), message);
        Some(problem.help(format!("add `{hostname}` to `spec.hostnames` of the route that is to answer")))
    }
}

fn is_at(diagnostic: &Diagnostic, field: &str) -> bool {
    let own = diagnostic.field.to_string();
    own == field || own.starts_with(&format!("{field}."))
}

/// A rule that forwards to nothing, or whose filters are not known here.
fn without_backend(state: &RouteState, rule: usize) -> Option<Problem> {
    let (object, spec) = (state.route.object(), state.route.rules.get(rule)?);
    let field = FieldPath::of("spec.rules").index(rule);
    let is_foreign =
        |filter: &Filter| matches!(filter, Filter::Extension(_) | Filter::Other(_) | Filter::ExternalAuth(_));
    let filter = spec.filters.iter().position(is_foreign);
    let foreign = filter.map(|i| field.key("filters").index(i)).or_else(|| {
        let backend = spec.backends.iter().position(|backend| backend.filters.iter().any(is_foreign))?;
        Some(field.key("backendRefs").index(backend).key("filters"))
    });
    if let Some(field) = foreign {
        let message = "the filter is not known here; whether requests are served depends on the implementation";
        return Some((Diagnostic::new(reason::FILTER_UNSUPPORTED, &object, field, message), false));
    }
    let field = field.key("backendRefs");
    let problem = match spec.backends.is_empty() {
        true => Diagnostic::new(reason::BACKEND_MISSING, &object, field, format!("rule {rule} has no backendRefs"))
            .help("add a backendRef, or a filter that redirects; requests of this rule are answered 500"),
        false => {
            let message = format!("every backendRef of rule {rule} has weight 0, so requests are answered 500");
            Diagnostic::new(reason::BACKEND_WEIGHTS_ZERO, &object, field, message)
        }
    };
    Some((problem, true))
}

/// A route that asks for exactly this name and gets none of the requests that its rules match.
fn losing(context: LintContext<'_>, route: &ObjectRef, contest: &Contest, hostname: &Hostname) -> Option<Diagnostic> {
    let state = context.topology.routes.get(route)?;
    let is_precise = state.route.hostnames.iter().any(|written| written.name().is_ok_and(|name| name == hostname));
    if contest.is_reached || contest.winners.is_empty() || !is_precise {
        return None;
    }
    let winners: Vec<String> = contest.winners.iter().map(ToString::to_string).collect();
    let message = format!(
        "{} gets every request for `{hostname}` that the rules of this route match",
        crate::lint::listed(winners.iter().map(|winner| &**winner))
    );
    let problem = Diagnostic::new(reason::ROUTE_LOSES_ALL, route, FieldPath::of("spec.rules"), message);
    let winner = contest.winners.first()?;
    Some(problem.related(winner, FieldPath::of("metadata.creationTimestamp"), "it goes first"))
}

/// A request as a URL. The port is left out where the scheme implies it.
pub(super) fn url(request: &GatewayRequest) -> String {
    let port = match request.scheme.default_port() {
        Some(port) if port == request.port => String::new(),
        _ => format!(":{}", request.port),
    };
    let path = if matches!(request.scheme, Scheme::Http | Scheme::Https) { &*request.path } else { "" };
    let scheme = match (request.scheme, request.grpc) {
        (Scheme::Http, true) => "grpc",
        (Scheme::Https, true) => "grpcs",
        (scheme, _) => scheme.as_str(),
    };
    format!("{scheme}://{}{port}{path}", request.host)
}
