//! The certificates of everything at once: what is asked of each Secret, by name, and who stands behind it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Crowd, Line, Settled, Want, Wanted};
use crate::attachment::ListenerId;
use crate::few::Few;
use crate::model::{Key, Route};
use crate::publication::PublicationSettings;
use crate::publication::certificates::{self, Ask};
use crate::publication::listener_context::Outlet;
use crate::publication::strict::{Outlets, SecretDecision};

/// The routes behind a Secret, in order.
pub(super) type Routes = Vec<Arc<Route>>;

/// The Secrets that listeners name, by number.
pub(in crate::publication) struct Secrets<'a> {
    /// Sorted.
    pub(super) keys: Vec<&'a Key>,
    /// The numbers of each listener's, by hall and slot.
    numbers: Vec<Vec<Few<u32>>>,
}

impl<'a> Secrets<'a> {
    /// Those of all listeners.
    pub(super) fn of_all(outlets: &'a Outlets) -> Self {
        let named = outlets.all().flat_map(|outlet| outlet.secrets().map(|key| (key, outlet.id)));
        let mut named: Vec<(&Key, ListenerId)> = named.collect();
        named.sort_unstable();
        let mut secrets = Secrets { keys: Vec::new(), numbers: Vec::new() };
        for outlet in outlets.all() {
            let (hall, slot) = (outlet.id.hall as usize, outlet.id.slot as usize);
            secrets.numbers.resize_with(secrets.numbers.len().max(hall + 1), Vec::new);
            let slots = &mut secrets.numbers[hall];
            slots.resize_with(slots.len().max(slot + 1), Few::default);
        }
        for (key, id) in named {
            if secrets.keys.last() != Some(&key) {
                secrets.keys.push(key);
            }
            secrets.numbers[id.hall as usize][id.slot as usize].push(secrets.keys.len() as u32 - 1);
        }
        secrets
    }

    /// Those of a listener.
    pub(in crate::publication) fn of(&self, outlet: &Outlet) -> &[u32] {
        &self.numbers[outlet.id.hall as usize][outlet.id.slot as usize]
    }
}

/// Puts a route behind a Secret; routes come in order.
pub(super) fn add_behind(behind: &mut Routes, route: &Arc<Route>) {
    if !behind.last().is_some_and(|last| Arc::ptr_eq(last, route)) {
        behind.push(route.clone());
    }
}

impl Crowd<'_> {
    /// Decides about every Secret, in order. `behind` are the routes of each.
    pub(super) fn secrets(
        &self,
        settings: &PublicationSettings,
        settled: &Settled<'_>,
        behind: Vec<Routes>,
    ) -> Vec<SecretDecision> {
        let secrets = self.servings.secrets();
        let mut drawers = self.drawers(settled, &behind);
        let mut mixed: BTreeSet<u32> = BTreeSet::new();
        for (place, contribution) in self.walked.iter().filter(|(_, one)| one.has_wishes()) {
            for ask in contribution.wished(*place) {
                secrets.of(ask.outlet).iter().for_each(|secret| drawers[*secret as usize].push(ask));
                mixed.extend(secrets.of(ask.outlet));
            }
        }
        for secret in mixed {
            drawers[secret as usize].sort_by(|a, b| a.name.cmp(b.name));
        }
        let limit = settings.certificate_names;
        let asked = secrets.keys.iter().zip(drawers).zip(behind).filter(|((_, asks), _)| !asks.is_empty());
        asked.map(|((secret, asks), routes)| certificates::decide(limit, secret, &asks, routes)).collect()
    }

    /// What is wanted in each Secret by claims on names; those come in order, and so stay in order here.
    fn drawers<'c>(&'c self, settled: &Settled<'c>, behind: &[Routes]) -> Vec<Vec<Ask<'c>>> {
        let mut drawers: Vec<Vec<Ask<'c>>> = behind.iter().map(|routes| Vec::with_capacity(routes.len())).collect();
        let mut wants = settled.order.iter();
        for (rank, outcome) in settled.outcomes.iter().enumerate() {
            for want in wants.by_ref().take(outcome.wants as usize) {
                self.file(settled, *want, rank as u32, &mut drawers);
            }
        }
        drawers
    }

    /// Files what is wanted with one name of this rank.
    fn file<'c>(&'c self, settled: &Settled<'c>, want: Want, rank: u32, drawers: &mut [Vec<Ask<'c>>]) {
        let Some(line) = self.lines.get(want.line as usize) else {
            for ask in settled.wanted[want.line as usize - self.lines.len()].asks() {
                let secrets = self.servings.secrets().of(ask.outlet).iter();
                secrets.for_each(|secret| drawers[*secret as usize].push(Ask { rank, ..ask }));
            }
            return;
        };
        for (secret, outlet) in &self.servings.at(line.serving).secrets {
            drawers[*secret as usize].push(line.ask(outlet, rank));
        }
    }
}

impl<'a> Line<'a> {
    /// The name in the certificates of a listener. Plain routes have no wildcards.
    fn ask(&self, outlet: &'a Outlet, rank: u32) -> Ask<'a> {
        let Line { name, route, created, place, .. } = *self;
        Ask { place, is_added: false, is_wildcard: false, rank, created, route, outlet, name }
    }
}

impl<'c> Wanted<'c> {
    /// The name in certificates, where it is not wanted only to stand for others.
    fn asks(&self) -> impl Iterator<Item = Ask<'c>> + use<'c> {
        let Wanted { name, contribution, place } = *self;
        let own = contribution.names.iter().find(|known| std::ptr::eq(&known.name, name));
        own.into_iter().flat_map(move |own| contribution.certified(own, place))
    }
}
