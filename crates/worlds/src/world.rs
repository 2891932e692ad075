//! A world: the objects of a [`Size`], one after the other, without ever holding them all.

use std::borrow::Cow;

use gatepost_core::model::{Kind, ObjectRef};
use serde::Serialize;

use crate::layout::{GatewayLayout, Holder};
use crate::platform::{self, HolderRevision};
use crate::route::{RouteGenerator, team};
use crate::size::{Size, Unfit};
use crate::wire::Object;

/// A world of one size and seed.
#[derive(Clone, Debug)]
pub struct World {
    size: Size,
    pub(crate) trees: Vec<GatewayLayout>,
}

/// How objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Block YAML, as people write it.
    Yaml,
    /// One JSON object a line, as programs write it.
    JsonLines,
    /// The same with `---` between objects, for programs that read only YAML.
    JsonDocuments,
}

/// One object, written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Which object it is.
    pub object: ObjectRef,
    /// Its text, with a line end.
    pub text: String,
}

impl World {
    /// Lays a world out; says so where its numbers do not fit together.
    pub fn new(size: Size) -> Result<World, Unfit> {
        size.check()?;
        let trees = (0..size.gateways).map(|gateway| GatewayLayout::new(&size, gateway)).collect();
        let mut world = World { size, trees };
        world.count();
        Ok(world)
    }

    /// Its size.
    pub fn size(&self) -> &Size {
        &self.size
    }

    /// Every object: first what the platform team owns, then each team's, routes last. The same world gives the same texts.
    pub fn documents(&self, style: Style) -> impl Iterator<Item = Document> + '_ {
        self.platform(style).chain((0..self.size.team_namespaces()).flat_map(move |team| self.team(team, style)))
    }

    /// What the platform team owns: class, namespaces, Gateways and their policies, and nobody's ListenerSets.
    pub fn platform(&self, style: Style) -> impl Iterator<Item = Document> + '_ {
        let class = std::iter::once_with(move || self.class(style));
        let teams = self.size.team_namespaces();
        let own = (teams..platform::namespaces(&self.size)).flat_map(move |number| self.namespace(number, style));
        let gateways = (0..self.trees.len()).flat_map(move |gateway| self.holder(gateway, 0, style));
        let refused = (0..platform::refused_sets(&self.size))
            .map(move |number| platform::refused_set(&self.size, &self.trees, number))
            .map(move |moment| document(Kind::ListenerSet, &moment.object(), style));
        class.chain(own).chain(gateways).chain(refused)
    }

    /// What a team owns: its namespace, Services, ListenerSets with their policies, routes. There are
    /// [`Size::team_namespaces`] teams.
    pub fn team(&self, team: usize, style: Style) -> impl Iterator<Item = Document> + '_ {
        let own = std::iter::once_with(move || self.namespace(team, style)).flatten();
        let sets = self.sets_of(team).flat_map(move |(gateway, place)| self.holder(gateway, place, style));
        own.chain(sets).chain(self.routes_of(team).map(move |number| self.route(number, style)))
    }

    /// A route by its number; there are [`Size::routes`] of them.
    pub fn route(&self, number: usize, style: Style) -> Document {
        self.edited_route(number, 0, style)
    }

    pub(crate) fn generator(&self) -> RouteGenerator<'_> {
        RouteGenerator { size: &self.size, trees: &self.trees }
    }

    pub(crate) fn edited_route(&self, number: usize, edits: usize, style: Style) -> Document {
        let generator = self.generator();
        let draft = generator.draft(number);
        document(Kind::Route(draft.kind), &generator.object(&draft, edits), style)
    }

    pub(crate) fn moment(&self, gateway: usize, place: usize) -> HolderRevision<'_> {
        let holder = Cow::Borrowed(&self.trees[gateway].holders[place]);
        HolderRevision { size: &self.size, gateway, place, holder, edits: 0, moves: 0, refusal: None }
    }

    fn class(&self, style: Style) -> Document {
        document(Kind::GatewayClass, &platform::class(&self.size), style)
    }

    fn namespace(&self, number: usize, style: Style) -> [Document; 2] {
        let namespace = platform::namespace(&self.size, number, platform::is_admitted(&self.size, number));
        let service = platform::service(&self.size, number);
        [document(Kind::Namespace, &namespace, style), document(Kind::Service, &service, style)]
    }

    /// A Gateway or ListenerSet with its policies.
    fn holder(&self, gateway: usize, place: usize, style: Style) -> impl Iterator<Item = Document> + use<> {
        let holder = &self.trees[gateway].holders[place];
        let object = document(holder_kind(holder), &self.moment(gateway, place).object(), style);
        let policies: Vec<Document> = [Kind::DnsPolicy, Kind::TlsPolicy]
            .into_iter()
            .filter_map(|kind| {
                let policy = platform::policy(&self.size, kind, gateway, place, holder)?;
                Some(document(kind, &policy, style))
            })
            .collect();
        std::iter::once(object).chain(policies)
    }

    /// The ListenerSets in the namespace of a team, as Gateway and place.
    fn sets_of(&self, team: usize) -> impl Iterator<Item = (usize, usize)> {
        let (sets, teams) = (self.size.sets_per_gateway(), self.size.team_namespaces());
        (team..self.size.gateways * sets).step_by(teams).map(move |number| (number / sets, 1 + number % sets))
    }

    /// The routes of a team stand together. Those that are in the wrong namespace are written by their team all the same.
    fn routes_of(&self, wanted: usize) -> std::ops::Range<usize> {
        let first = |wanted: usize| {
            let (mut low, mut high) = (0, self.size.routes);
            while low < high {
                let middle = low + (high - low) / 2;
                if team(&self.size, middle) < wanted { low = middle + 1 } else { high = middle }
            }
            low
        };
        first(wanted)..first(wanted + 1)
    }

    /// Counts the routes of every listener.
    fn count(&mut self) {
        let mut hits = Vec::new();
        for number in (0..self.size.routes).filter(|_| self.size.status) {
            let generator = self.generator();
            let draft = generator.draft(number);
            hits.extend(
                generator
                    .parents(&draft)
                    .into_iter()
                    .flat_map(|at| generator.hits(&draft, at).into_iter().map(move |d| (at, d))),
            );
            let tree = &mut self.trees[draft.tree];
            hits.drain(..).for_each(|(holder, door)| tree.holders[holder].listeners[door].attached += 1);
        }
    }
}

/// Which kind a holder is.
pub(crate) fn holder_kind(holder: &Holder) -> Kind {
    if holder.is_gateway { Kind::Gateway } else { Kind::ListenerSet }
}

/// Writes an object.
pub(crate) fn document<Spec: Serialize, Status: Serialize>(
    kind: Kind,
    object: &Object<Spec, Status>,
    style: Style,
) -> Document {
    let meta = &object.metadata;
    let reference = ObjectRef::new(kind, meta.namespace.as_str(), meta.name.as_str());
    // The shapes are plain mappings, lists and texts, which both formats can hold.
    let text = match style {
        Style::Yaml => serde_saphyr::to_string(object).expect("YAML holds every shape"),
        Style::JsonLines | Style::JsonDocuments => {
            serde_json::to_string(object).expect("JSON holds every shape") + "\n"
        }
    };
    Document { object: reference, text }
}

impl Style {
    /// What stands between two documents.
    pub fn separator(self) -> &'static str {
        match self {
            Style::Yaml | Style::JsonDocuments => "---\n",
            Style::JsonLines => "",
        }
    }

    /// How names of files end.
    pub fn extension(self) -> &'static str {
        match self {
            Style::Yaml | Style::JsonDocuments => "yaml",
            Style::JsonLines => "json",
        }
    }
}
