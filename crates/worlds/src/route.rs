//! Routes: which holder, which zone, which names, and the one mistake that some have.
//!
//! A route is drawn from its number alone, so that any of them can be written, or written anew, without the others.

use gatepost_core::model::{Kind, RouteKind};

use crate::layout::{CLOSED, GatewayLayout, Holder, INFRA, ListenerProtocol, team_name};
use crate::names;
use crate::random::RandomSequence;
use crate::size::Size;
use crate::wire::*;

const GONE: &str = "gone";

/// The properties of a generated route, before its names and status are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RouteLayout {
    pub(crate) number: usize,
    pub(crate) kind: RouteKind,
    pub(crate) tree: usize,
    /// The holder it belongs to.
    pub(crate) home: usize,
    pub(crate) zone: usize,
    /// The route whose names it has: its own number, or that of an earlier one.
    pub(crate) names_of: usize,
    pub(crate) names_section: bool,
    pub(crate) mistake: Option<Mistake>,
}

/// What may be wrong with a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// No listener has such a hostname.
    Hostname,
    /// The parent does not exist.
    Parent,
    /// The parent has no such listener.
    Section,
    /// No listener admits the namespace.
    Namespace,
    /// The Service does not exist; the route is attached all the same.
    Backend,
}

impl Mistake {
    fn reason(self) -> &'static str {
        match self {
            Mistake::Hostname => "NoMatchingListenerHostname",
            Mistake::Parent | Mistake::Section => "NoMatchingParent",
            Mistake::Namespace => "NotAllowedByListeners",
            Mistake::Backend => "BackendNotFound",
        }
    }
}

/// Generates routes for the layout of a world.
#[derive(Clone, Copy)]
pub(crate) struct RouteGenerator<'a> {
    pub(crate) size: &'a Size,
    pub(crate) trees: &'a [GatewayLayout],
}

impl RouteGenerator<'_> {
    /// Draws a route.
    pub(crate) fn draft(&self, number: usize) -> RouteLayout {
        let mut draft = self.own(number);
        if let Some(earlier) = self.shares_with(number, &draft) {
            let home = self.own(earlier);
            draft = RouteLayout { tree: home.tree, home: home.home, zone: home.zone, names_of: earlier, ..draft };
        }
        draft.mistake = self.mistake(&draft);
        draft
    }

    /// The holders a draft names, its own first.
    pub(crate) fn parents(&self, draft: &RouteLayout) -> Vec<usize> {
        let holders = self.trees[draft.tree].holders.len();
        let count = if ListenerProtocol::of(draft.kind) == ListenerProtocol::Web { self.size.parents } else { 1 };
        (0..count).map(|step| (draft.home + step) % holders).collect()
    }

    /// The listeners of a holder that a draft is attached to.
    pub(crate) fn hits(&self, draft: &RouteLayout, holder: usize) -> Vec<usize> {
        if draft.mistake.is_some_and(|mistake| mistake != Mistake::Backend) {
            return Vec::new();
        }
        let hits = self.trees[draft.tree].hits(holder, ListenerProtocol::of(draft.kind), draft.zone);
        match self.section(draft, holder) {
            Some(section) => hits.into_iter().filter(|door| *door == section).collect(),
            None => hits,
        }
    }

    /// The namespace of a route. Routes with neighbouring numbers share one, and some have many more than others.
    pub(crate) fn namespace(&self, draft: &RouteLayout) -> String {
        if draft.mistake == Some(Mistake::Namespace) {
            return CLOSED.to_owned();
        }
        team_name(team(self.size, draft.number))
    }

    fn own(&self, number: usize) -> RouteLayout {
        let mut random = RandomSequence::of(self.size.seed, "route", number);
        let kind = random.weighted(&self.size.kinds).unwrap_or(RouteKind::Http);
        let tree = random.below(self.trees.len());
        let holders = &self.trees[tree].holders;
        let homes: Vec<usize> = (0..holders.len()).filter(|at| !holders[*at].zones.is_empty()).collect();
        let picked = homes[random.below(homes.len())];
        let home = if ListenerProtocol::of(kind) == ListenerProtocol::Web { picked } else { 0 };
        let zones = &holders[picked].zones;
        let zone = zones[random.skewed(zones.len(), 1.5)];
        let names_section = random.happens(self.size.sections);
        RouteLayout { number, kind, tree, home, zone, names_of: number, names_section, mistake: None }
    }

    /// The earlier route whose hostnames this one repeats. It must be for the web, too, and have names of its own.
    fn shares_with(&self, number: usize, draft: &RouteLayout) -> Option<usize> {
        let mut random = RandomSequence::of(self.size.seed, "share", number);
        if number == 0 || ListenerProtocol::of(draft.kind) != ListenerProtocol::Web || !random.happens(self.size.shared)
        {
            return None;
        }
        let earlier = random.below(number);
        (ListenerProtocol::of(self.own(earlier).kind) == ListenerProtocol::Web).then_some(earlier)
    }

    fn mistake(&self, draft: &RouteLayout) -> Option<Mistake> {
        let mut random = RandomSequence::of(self.size.seed, "mistake", draft.number);
        if !random.happens(self.size.refused) {
            return None;
        }
        let is_web = ListenerProtocol::of(draft.kind) == ListenerProtocol::Web;
        let is_strict = is_web && self.parents(draft).iter().all(|at| !self.trees[draft.tree].is_open(*at));
        let choices = [
            (Mistake::Hostname, u32::from(is_strict)),
            (Mistake::Parent, 1),
            (Mistake::Section, 1),
            (Mistake::Namespace, u32::from(self.size.selectors)),
            (Mistake::Backend, 1),
        ];
        random.weighted(&choices)
    }

    /// The listener that a draft names at a holder.
    fn section(&self, draft: &RouteLayout, holder: usize) -> Option<usize> {
        let named = draft.names_section && holder == draft.home;
        let hits = || self.trees[draft.tree].hits(holder, ListenerProtocol::of(draft.kind), draft.zone);
        named.then(hits).and_then(|hits| hits.last().copied())
    }

    /// Writes a route as it is after so many edits: every other one changes its names, the rest only a label.
    pub(crate) fn object(&self, draft: &RouteLayout, edits: usize) -> Object<RouteSpec, RouteStatus> {
        let at = names::time(crate::platform::OLDEST_ROUTE + draft.number);
        let hostnames = self.hostnames(draft, edits.div_ceil(2));
        let has_field = draft.kind.has_hostnames();
        let mut metadata = self.metadata(draft, edits, &at);
        if !has_field {
            metadata.annotations.push(("external-dns.kubernetes.io/hostname", hostnames.join(",")));
        }
        let generation = metadata.generation;
        let refs: Vec<ParentRef> =
            self.parents(draft).into_iter().map(|holder| self.parent_ref(draft, holder)).collect();
        let status = self.size.status.then(|| self.status(draft, &refs, generation, &at));
        let spec = RouteSpec {
            parent_refs: refs,
            hostnames: if has_field { hostnames } else { Vec::new() },
            rules: self.rules(draft),
        };
        let api_version = if has_field { GATEWAY_API } else { "gateway.networking.k8s.io/v1alpha2" };
        Object { api_version, kind: draft.kind.as_str(), metadata, spec: Some(spec), status }
    }

    /// The name of a route.
    pub(crate) fn name(draft: &RouteLayout) -> String {
        let prefix = draft.kind.as_str().trim_end_matches("Route").to_ascii_lowercase();
        format!("{prefix}-{}", draft.number)
    }

    fn metadata(&self, draft: &RouteLayout, edits: usize, at: &str) -> Metadata {
        let namespace = self.namespace(draft);
        let mut labels = vec![("app", format!("app-{}", draft.number % 97)), ("team", namespace.clone())];
        if edits > 0 {
            labels.push(("edits", edits.to_string()));
        }
        Metadata {
            name: Self::name(draft),
            namespace,
            uid: crate::platform::uid(self.size, 1, draft.number),
            generation: 1 + edits.div_ceil(2),
            creation_timestamp: at.to_owned(),
            labels,
            annotations: Vec::new(),
        }
    }

    fn hostnames(&self, draft: &RouteLayout, renamed: usize) -> Vec<String> {
        let zone = &self.trees[draft.tree].zones[draft.zone].name;
        let zone = if draft.mistake == Some(Mistake::Hostname) { "elsewhere.invalid" } else { zone };
        let mut random = RandomSequence::of(self.size.seed, "hostname", draft.names_of);
        let name = |at: usize| hostname(&mut random, self.size, draft.names_of, at, renamed, zone);
        (0..self.size.hostnames).map(name).collect()
    }

    fn parent_ref(&self, draft: &RouteLayout, at: usize) -> ParentRef {
        let holder = &self.trees[draft.tree].holders[at];
        let mut parent = parent_ref(holder);
        match draft.mistake {
            Some(Mistake::Parent) => parent.name.insert_str(0, "no-"),
            Some(Mistake::Section) => parent.section_name = Some(GONE.to_owned()),
            _ => parent.section_name = self.section(draft, at).map(|door| holder.listeners[door].name.clone()),
        }
        parent
    }

    fn status(&self, draft: &RouteLayout, refs: &[ParentRef], generation: usize, at: &str) -> RouteStatus {
        let resolved = match draft.mistake {
            Some(Mistake::Backend) => condition("ResolvedRefs", false, Mistake::Backend.reason(), at, generation),
            _ => condition("ResolvedRefs", true, "ResolvedRefs", at, generation),
        };
        let refusal = draft.mistake.filter(|mistake| *mistake != Mistake::Backend);
        let accepted = match refusal {
            Some(mistake) => condition("Accepted", false, mistake.reason(), at, generation),
            None => condition("Accepted", true, "Accepted", at, generation),
        };
        // Nobody answers for a parent that does not exist.
        let answered = refs.iter().filter(|_| refusal != Some(Mistake::Parent));
        let parents = answered.map(|parent_ref| ParentStatus {
            parent_ref: parent_ref.clone(),
            controller_name: CONTROLLER,
            conditions: vec![accepted.clone(), resolved.clone()],
        });
        RouteStatus { parents: parents.collect() }
    }

    fn rules(&self, draft: &RouteLayout) -> Vec<Rule> {
        let mut random = RandomSequence::of(self.size.seed, "rules", draft.number);
        let count = match draft.kind {
            RouteKind::Http => 1 + random.below(self.size.rules),
            _ => 1,
        };
        (0..count).map(|at| rule(draft, at, random.happens(0.3) && at > 0)).collect()
    }
}

/// The team that a route belongs to: squares, so that the first teams have the most.
pub(crate) fn team(size: &Size, number: usize) -> usize {
    let place = (number as f64 / size.routes.max(1) as f64).min(1.0);
    let teams = size.team_namespaces();
    ((place * place * teams as f64) as usize).min(teams - 1)
}

pub(crate) fn parent_ref(holder: &Holder) -> ParentRef {
    let kind = if holder.is_gateway { Kind::Gateway } else { Kind::ListenerSet };
    ParentRef {
        group: GROUP,
        kind: kind.as_str(),
        namespace: holder.namespace.clone(),
        name: holder.name.clone(),
        section_name: None,
    }
}

/// A reference to a Gateway that does not exist.
pub(crate) fn nobody() -> ParentRef {
    let (namespace, name) = (INFRA.to_owned(), GONE.to_owned());
    ParentRef { group: GROUP, kind: "Gateway", namespace, name, section_name: None }
}

/// One name below a zone; most are one label below it, some two, few three.
fn hostname(random: &mut RandomSequence, size: &Size, number: usize, at: usize, renamed: usize, zone: &str) -> String {
    let mut stem = format!("{}-{}-{number}", names::service(random.below(64)), names::word(random.below(6_000)));
    for (mark, count) in [("h", at), ("r", renamed)].into_iter().filter(|(_, count)| *count > 0) {
        stem.push_str(&format!("-{mark}{count}"));
    }
    let deeper = match random.below(100) {
        0..85 => String::new(),
        85..98 => format!("{}.", names::word(random.below(9))),
        _ => format!("{}.{}.", names::word(random.below(9)), names::word(random.below(9))),
    };
    let star = if random.happens(size.wildcards) { "*." } else { "" };
    format!("{star}{stem}.{deeper}{zone}")
}

fn rule(draft: &RouteLayout, at: usize, has_filter: bool) -> Rule {
    let path = match (at, draft.names_of == draft.number) {
        (0, true) => "/".to_owned(),
        _ => format!("/{}/{at}", names::word(draft.number)),
    };
    let matches = match draft.kind {
        RouteKind::Http => vec![Match::Path(WirePath { kind: "PathPrefix", value: path })],
        RouteKind::Grpc => {
            vec![Match::Method(Method { service: format!("{}.v1.Main", names::word(draft.number % 500)) })]
        }
        _ => Vec::new(),
    };
    let header = Header { name: "x-part", value: at.to_string() };
    let filter = WireFilter { kind: "RequestHeaderModifier", request_header_modifier: Headers { set: vec![header] } };
    let name = if draft.mistake == Some(Mistake::Backend) { GONE } else { "app" };
    let port = if draft.kind == RouteKind::Udp { 8053 } else { 8080 };
    Rule {
        matches,
        filters: has_filter.then_some(filter).into_iter().collect(),
        backend_refs: vec![Backend { name, port }],
    }
}
