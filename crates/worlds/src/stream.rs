//! The changes that a cluster shows: what people and programs do to the objects of a world while it runs.
//!
//! A change carries the object whole, as a watch does. Status that others would write because of it is theirs to write: a
//! route keeps what it was told about a ListenerSet until somebody tells it otherwise.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::{Kind, ObjectRef};

use crate::layout::{ListenerLayout, ListenerProtocol, web_port};
use crate::platform;
use crate::random::RandomSequence;
use crate::size::HOLDER_LIMIT;
use crate::world::{Document, Style, World, document, holder_kind};

/// How many changes a burst has.
const BURST: usize = 20;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A route has other hostnames, or only another label.
    RouteEdited,
    /// A route is new.
    RouteAdded,
    /// A route is gone.
    RouteDeleted,
    /// A Gateway or ListenerSet has one more listener.
    ListenerAdded,
    /// A namespace is admitted no more, or again.
    LabelFlipped,
    /// A Gateway has other addresses.
    AddressChanged,
    /// A ListenerSet is gone; the next time, it is back.
    SetDeleted,
    /// Many routes of one team change at once, some of them twice.
    Burst,
}

impl Event {
    /// Every event with how often clusters show it.
    pub const USUAL: [(Event, u32); 8] = [
        (Event::RouteEdited, 60),
        (Event::RouteAdded, 10),
        (Event::RouteDeleted, 10),
        (Event::ListenerAdded, 5),
        (Event::LabelFlipped, 3),
        (Event::AddressChanged, 2),
        (Event::SetDeleted, 3),
        (Event::Burst, 7),
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Event::RouteEdited => "route-edited",
            Event::RouteAdded => "route-added",
            Event::RouteDeleted => "route-deleted",
            Event::ListenerAdded => "listener-added",
            Event::LabelFlipped => "label-flipped",
            Event::AddressChanged => "address-changed",
            Event::SetDeleted => "set-deleted",
            Event::Burst => "burst",
        }
    }
}

/// What one event tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStep {
    /// What happened.
    pub event: Event,
    /// What a watch tells of it, in order.
    pub told: Vec<StreamChange>,
}

/// One thing that a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamChange {
    /// The object is there, in this shape, as a line of JSON.
    Upsert(Document),
    /// The object is gone.
    Delete(ObjectRef),
}

impl StreamChange {
    /// As a line of a watch: `{"type":"MODIFIED","object":…}` or `{"type":"DELETED","object":…}`.
    pub fn line(&self) -> String {
        match self {
            StreamChange::Upsert(document) => {
                format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", document.text.trim_end())
            }
            StreamChange::Delete(object) => {
                let group = object.kind.group();
                let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
                let gone = serde_json::json!({"type": "DELETED", "object": {
                    "apiVersion": version,
                    "kind": object.kind.as_str(),
                    "metadata": {"namespace": &*object.key.namespace, "name": &*object.key.name},
                }});
                format!("{gone}\n")
            }
        }
    }
}

/// An endless stream of changes to a world.
#[derive(Clone, Debug)]
pub struct Stream<'w> {
    world: &'w World,
    events: Vec<(Event, u32)>,
    random: RandomSequence,
    /// How often each route was edited.
    edits: BTreeMap<usize, usize>,
    gone_routes: BTreeSet<usize>,
    added_routes: usize,
    /// Listeners that were added, by Gateway and place.
    listeners: BTreeMap<(usize, usize), Vec<ListenerLayout>>,
    /// How often the addresses of a Gateway were changed.
    moves: BTreeMap<usize, usize>,
    flipped: BTreeSet<usize>,
    gone_sets: BTreeSet<(usize, usize)>,
}

impl World {
    /// The stream of a seed with events by weight; [`Event::USUAL`] is what clusters show.
    pub fn stream(&self, seed: u64, events: &[(Event, u32)]) -> Stream<'_> {
        Stream {
            world: self,
            events: events.to_vec(),
            random: RandomSequence::of(seed, "stream", self.size().routes),
            edits: BTreeMap::new(),
            gone_routes: BTreeSet::new(),
            added_routes: 0,
            listeners: BTreeMap::new(),
            moves: BTreeMap::new(),
            flipped: BTreeSet::new(),
            gone_sets: BTreeSet::new(),
        }
    }
}

impl Iterator for Stream<'_> {
    type Item = StreamStep;

    fn next(&mut self) -> Option<StreamStep> {
        let event = self.random.weighted(&self.events)?;
        Some(StreamStep { event, told: self.tell(event) })
    }
}

impl Stream<'_> {
    fn tell(&mut self, event: Event) -> Vec<StreamChange> {
        match event {
            Event::RouteEdited => self.edit_any().into_iter().collect(),
            Event::RouteAdded => vec![self.add_route()],
            Event::RouteDeleted => self.delete_route().into_iter().collect(),
            Event::ListenerAdded => self.add_listener().into_iter().collect(),
            Event::LabelFlipped => vec![self.flip_label()],
            Event::AddressChanged => vec![self.move_gateway()],
            Event::SetDeleted => self.flip_set().into_iter().collect(),
            Event::Burst => self.burst(),
        }
    }

    /// How many routes there ever were.
    fn numbers(&self) -> usize {
        self.world.size().routes + self.added_routes
    }

    fn edit_any(&mut self) -> Option<StreamChange> {
        let number = self.random.below(self.numbers());
        (self.numbers() > 0).then(|| self.edit(number))
    }

    /// Edits a route; one that was gone comes back.
    fn edit(&mut self, number: usize) -> StreamChange {
        self.gone_routes.remove(&number);
        let edits = self.edits.entry(number).or_default();
        *edits += 1;
        StreamChange::Upsert(self.world.edited_route(number, *edits, Style::JsonLines))
    }

    fn add_route(&mut self) -> StreamChange {
        self.added_routes += 1;
        StreamChange::Upsert(self.world.route(self.numbers() - 1, Style::JsonLines))
    }

    fn delete_route(&mut self) -> Option<StreamChange> {
        let number = self.random.below(self.numbers());
        if self.numbers() == 0 || !self.gone_routes.insert(number) {
            return None;
        }
        Some(StreamChange::Delete(self.world.route(number, Style::JsonLines).object))
    }

    /// A listener for an existing zone on another port, so that it takes routes; or for a zone that no route has names in.
    fn add_listener(&mut self) -> Option<StreamChange> {
        let (gateway, place) = self.any_holder()?;
        let tree = &self.world.trees[gateway];
        let added = self.listeners.entry((gateway, place)).or_default();
        let holder = &tree.holders[place];
        if holder.listeners.len() + added.len() >= HOLDER_LIMIT {
            return None;
        }
        let number = added.len();
        let of_route = holder.zones.get(self.random.below(holder.zones.len())).filter(|_| self.random.happens(0.5));
        let (zone, port) = match of_route {
            Some(zone) => (tree.zones[*zone].name.clone(), 20_000 + number as u16),
            None => (format!("new-{number}.{}", tree.zones[0].name), web_port(self.world.size())),
        };
        added.push(ListenerLayout {
            name: format!("added-{number}"),
            port,
            speech: ListenerProtocol::Web,
            zone: Some(zone),
            attached: 0,
        });
        self.gone_sets.remove(&(gateway, place));
        Some(self.holder(gateway, place))
    }

    fn flip_label(&mut self) -> StreamChange {
        let size = self.world.size();
        let number = self.random.below(size.team_namespaces());
        if !self.flipped.insert(number) {
            self.flipped.remove(&number);
        }
        let is_admitted = platform::is_admitted(size, number) != self.flipped.contains(&number);
        StreamChange::Upsert(document(
            Kind::Namespace,
            &platform::namespace(size, number, is_admitted),
            Style::JsonLines,
        ))
    }

    fn move_gateway(&mut self) -> StreamChange {
        let gateway = self.random.below(self.world.trees.len());
        *self.moves.entry(gateway).or_default() += 1;
        self.holder(gateway, 0)
    }

    fn flip_set(&mut self) -> Option<StreamChange> {
        let (gateway, place) = self.any_holder().filter(|(_, place)| *place > 0)?;
        if !self.gone_sets.insert((gateway, place)) {
            self.gone_sets.remove(&(gateway, place));
            return Some(self.holder(gateway, place));
        }
        let holder = &self.world.trees[gateway].holders[place];
        Some(StreamChange::Delete(ObjectRef::new(holder_kind(holder), holder.namespace.as_str(), holder.name.as_str())))
    }

    fn burst(&mut self) -> Vec<StreamChange> {
        let first = self.random.below(self.numbers());
        let count = BURST.min(self.numbers());
        let mut told: Vec<StreamChange> = (0..count).map(|step| self.edit((first + step) % self.numbers())).collect();
        let again: Vec<usize> = (0..count / 4).map(|_| (first + self.random.below(count)) % self.numbers()).collect();
        told.extend(again.into_iter().map(|number| self.edit(number)).collect::<Vec<_>>());
        told
    }

    fn any_holder(&mut self) -> Option<(usize, usize)> {
        let gateway = self.random.below(self.world.trees.len());
        let holders = self.world.trees.get(gateway)?.holders.len();
        Some((gateway, self.random.below(holders)))
    }

    /// A Gateway or ListenerSet as it is now.
    fn holder(&self, gateway: usize, place: usize) -> StreamChange {
        let mut moment = self.world.moment(gateway, place);
        let added = self.listeners.get(&(gateway, place)).map(Vec::as_slice).unwrap_or_default();
        let mut holder = moment.holder.clone().into_owned();
        holder.listeners.extend_from_slice(added);
        let kind = holder_kind(&holder);
        moment.edits = added.len();
        moment.moves = if place == 0 { self.moves.get(&gateway).copied().unwrap_or_default() } else { 0 };
        moment.holder = Cow::Owned(holder);
        StreamChange::Upsert(document(kind, &moment.object(), Style::JsonLines))
    }
}
