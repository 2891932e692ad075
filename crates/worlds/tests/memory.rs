//! What routes cost in memory: bytes and blocks, counted and not measured, what several have in common counted once.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatepost_core::model::*;
use gatepost_worlds::{Size, World, values};

/// What stands before the items of a shared block: how many hold it.
const COUNTS: usize = 16;

/// Blocks of memory by their address, with their size.
#[derive(Default)]
struct Blocks(BTreeMap<usize, usize>);

impl Blocks {
    fn block<T>(&mut self, at: *const T, bytes: usize) {
        if bytes > 0 {
            self.0.insert(at.addr(), COUNTS + bytes);
        }
    }

    fn items<T>(&mut self, items: &[T]) {
        self.block(items.as_ptr(), size_of_val(items));
    }

    fn text(&mut self, text: &Str) {
        self.items(text.as_bytes());
    }

    fn texts<'a>(&mut self, texts: impl IntoIterator<Item = &'a Str>) {
        texts.into_iter().for_each(|text| self.text(text));
    }

    fn labels(&mut self, labels: &Labels) {
        if let Some((first, _)) = labels.iter().next() {
            self.block(first, labels.len() * size_of::<(Str, Str)>());
        }
        self.texts(labels.iter().flat_map(|(key, value)| [key, value]));
    }

    fn reference(&mut self, reference: &Reference) {
        self.texts([&reference.group, &reference.kind, &reference.name].into_iter().chain(&reference.namespace));
    }

    fn parent(&mut self, parent: &ParentRef) {
        self.reference(&parent.target);
        self.texts(&parent.section);
    }

    fn rule(&mut self, rule: &Rule) {
        self.texts(&rule.name);
        self.items(&rule.filters);
        self.items(&rule.backends);
        for backend in rule.backends.iter() {
            self.reference(&backend.target);
            self.items(&backend.filters);
        }
        if let Matches::Http(matches) = &rule.matches {
            self.items(matches);
            for one in matches.iter() {
                self.texts([&one.path.value].into_iter().chain(&one.method));
                self.items(&one.headers);
                self.items(&one.query);
            }
        }
    }

    fn status(&mut self, status: &ParentStatus) {
        self.parent(&status.parent);
        self.text(&status.controller);
        self.items(&status.conditions);
        for said in status.conditions.iter() {
            self.texts([&said.kind, &said.status, &said.reason, &said.message]);
        }
    }

    fn route(&mut self, route: &Arc<Route>) {
        self.block(Arc::as_ptr(route), size_of::<Route>());
        self.texts([&route.meta.key.namespace, &route.meta.key.name]);
        self.labels(&route.meta.labels);
        self.labels(&route.meta.annotations);
        if route.hostnames.spilled() {
            self.items(&route.hostnames);
        }
        for hostname in &route.hostnames {
            self.text(hostname.text());
            self.texts(hostname.name().ok().map(|name| name.text()));
        }
        self.items(&route.parents);
        route.parents.iter().for_each(|parent| self.parent(parent));
        self.items(&route.rules);
        route.rules.iter().for_each(|rule| self.rule(rule));
        self.items(&route.status);
        route.status.iter().for_each(|status| self.status(status));
    }
}

/// Bytes and blocks of each route of a world.
fn cost(size: Size) -> (f64, f64) {
    let routes = size.routes;
    let snapshot = values::snapshot(&World::new(size).expect("the size is possible"));
    assert_eq!(snapshot.routes.len(), routes);
    let mut blocks = Blocks::default();
    snapshot.routes.values().for_each(|route| blocks.route(route));
    let bytes: usize = blocks.0.values().sum();
    (bytes as f64 / routes as f64, blocks.0.len() as f64 / routes as f64)
}

/// A bound that leaves room for what must be remembered of each: itself, its name, its hostname, its labels.
#[track_caller]
fn holds(size: Size, most_bytes: f64, most_blocks: f64) {
    let shape = format!("{} routes, {} parents each", size.routes, size.parents);
    let (bytes, blocks) = cost(size);
    assert!(bytes <= most_bytes && blocks <= most_blocks, "{shape}: {bytes:.0} bytes and {blocks:.2} blocks a route");
}

#[test]
fn a_route_costs_little_more_than_what_is_its_own() {
    holds(Size::routes(2000), 420.0, 4.5);
}

#[test]
fn parents_that_others_have_too_cost_nothing() {
    holds(Size { listeners: 1000, parents: 16, ..Size::routes(1000) }, 480.0, 4.5);
}

#[test]
fn parents_that_differ_from_route_to_route_cost_themselves() {
    let differing = Size { listeners: 64, sections: 1.0, gateways: 4, ..Size::routes(1000) };
    holds(differing, 800.0, 6.0);
}

#[test]
fn the_types_are_as_small_as_they_were_made() {
    let sizes = [
        ("Route", size_of::<Route>(), 208),
        ("ParentRef", size_of::<ParentRef>(), 88),
        ("ParentStatus", size_of::<ParentStatus>(), 120),
        ("Condition", size_of::<Condition>(), 80),
        ("Rule", size_of::<Rule>(), 72),
        ("WrittenHostname", size_of::<WrittenHostname>(), 32),
        ("RouteStatus", size_of::<RouteStatus>(), 32),
    ];
    for (name, size, most) in sizes {
        assert!(size <= most, "{name} has {size} bytes, {most} were enough");
    }
}
