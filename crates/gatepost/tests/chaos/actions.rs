//! What happens, by the dice: edits of objects, statuses that blink, and faults, each of which is healed some actions later.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gatepost_testkit::Failed;
use gatepost_testkit::servers::kube::proxy::Fault;

use super::world::{Addresses, CONTROLLERS, GATEWAYS, LIVELY, REPLICAS, World};
use crate::bed::{self, ZONE};
use crate::dice::Dice;

/// A kind of action, and how often it comes among as many actions as all of these together.
const KINDS: [(Kind, usize); 14] = [
    (Kind::Rename, 4),
    (Kind::Delete, 2),
    (Kind::Create, 4),
    (Kind::Move, 4),
    (Kind::NoAddresses, 2),
    (Kind::NotProgrammed, 2),
    (Kind::Kill, 3),
    (Kind::Pause, 3),
    (Kind::CutApi, 3),
    (Kind::CutDns, 3),
    (Kind::KillNameServer, 1),
    (Kind::KillApiServer, 1),
    (Kind::HandEdit, 2),
    (Kind::RemoveFence, 1),
];

/// As many actions as show every kind.
pub(crate) fn whole_deck() -> usize {
    KINDS.iter().map(|(_, weight)| weight).sum()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Rename,
    Delete,
    Create,
    Move,
    NoAddresses,
    NotProgrammed,
    Kill,
    Pause,
    CutApi,
    CutDns,
    KillNameServer,
    KillApiServer,
    HandEdit,
    RemoveFence,
}

/// A fault that is there until it is healed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Gateway(usize),
    Killed(usize),
    Paused(usize),
    Api(usize),
    Dns(usize),
    NameServer,
}

/// A route that is edited.
#[derive(Clone, Debug)]
struct Lively {
    exists: bool,
    gateway: usize,
    /// The number of its hostname; each is used once.
    name: usize,
}

pub(crate) struct Driver<'w> {
    world: &'w World,
    dice: Dice,
    routes: Vec<Lively>,
    wanted: Addresses,
    /// Every name that was ever wanted, with every address that it may have.
    ever: BTreeMap<String, Vec<String>>,
    foreign: Vec<String>,
    /// Faults, and the action before which each is healed.
    open: Vec<(usize, Open)>,
    /// Kinds of actions that are still to come.
    deck: Vec<Kind>,
    done: usize,
    deletes: usize,
    counts: BTreeMap<Kind, usize>,
}

/// What the observer has to know.
pub(crate) struct Told<'d> {
    pub(crate) ever: &'d BTreeMap<String, Vec<String>>,
    pub(crate) foreign: &'d [String],
}

impl<'w> Driver<'w> {
    pub(crate) fn new(seed: u64, world: &'w World) -> Driver<'w> {
        let routes = vec![Lively { exists: true, gateway: 0, name: 0 }; LIVELY];
        let mut driver = Driver {
            world,
            dice: Dice::new(seed),
            routes,
            wanted: world.steady.clone(),
            ever: BTreeMap::new(),
            foreign: Vec::new(),
            open: Vec::new(),
            deck: Vec::new(),
            done: 0,
            deletes: 0,
            counts: BTreeMap::new(),
        };
        (0..LIVELY).for_each(|i| driver.is_wanted(i));
        driver
    }

    pub(crate) fn told(&self) -> Told<'_> {
        Told { ever: &self.ever, foreign: &self.foreign }
    }

    pub(crate) fn wanted(&self) -> &Addresses {
        &self.wanted
    }

    pub(crate) fn counts(&self) -> String {
        let counts = self.counts.iter().map(|(kind, count)| format!("{kind:?} {count}"));
        counts.collect::<Vec<_>>().join(", ")
    }

    /// Heals what is due, and does the next thing.
    pub(crate) fn act(&mut self) -> Result<(), Failed> {
        self.done += 1;
        let due: Vec<Open> = self.open.iter().filter(|(until, _)| *until <= self.done).map(|(_, open)| *open).collect();
        due.into_iter().try_for_each(|open| self.heal(open))?;
        let kind = self.next_kind();
        *self.counts.entry(kind).or_default() += 1;
        self.do_it(kind)?;
        // The moment of a pass at which the next thing happens is what is tried.
        std::thread::sleep(Duration::from_millis(self.dice.below(900) as u64));
        Ok(())
    }

    /// Every kind comes as often as its weight says before any comes once more.
    fn next_kind(&mut self) -> Kind {
        if self.deck.is_empty() {
            self.deck = KINDS.iter().flat_map(|(kind, weight)| std::iter::repeat_n(*kind, *weight)).collect();
        }
        let at = self.dice.below(self.deck.len());
        self.deck.swap_remove(at)
    }

    pub(crate) fn heal_everything(&mut self) -> Result<(), Failed> {
        let all: Vec<Open> = self.open.iter().map(|(_, open)| *open).collect();
        all.into_iter().try_for_each(|open| self.heal(open))
    }

    fn do_it(&mut self, kind: Kind) -> Result<(), Failed> {
        let route = self.dice.below(LIVELY);
        let (gateway, controller) = (self.dice.below(GATEWAYS.len()), self.dice.below(CONTROLLERS));
        let replica = self.dice.below(REPLICAS);
        match kind {
            Kind::Rename => self.rename(route),
            Kind::Delete => self.delete(route),
            Kind::Create => self.create(),
            Kind::Move => self.move_to_other_gateway(route),
            Kind::NoAddresses => self.blink(gateway, "True", &[]),
            Kind::NotProgrammed => self.blink(gateway, "False", &[GATEWAYS[gateway].1]),
            Kind::Kill => self.kill(controller),
            Kind::Pause => self.pause(controller),
            Kind::CutApi => self.cut_api(controller),
            Kind::CutDns => self.cut_dns(replica),
            Kind::KillNameServer => self.kill_name_server(),
            Kind::KillApiServer => self.kill_api_server(),
            Kind::HandEdit => self.hand_edit(),
            Kind::RemoveFence => self.remove_fence(),
        }
    }

    /// A quarter of all names may go: more than a third within an hour is braked, and that has tests of its own.
    fn may_delete(&self) -> bool {
        self.deletes < self.world.steady.len() / 4
    }

    fn is_wanted(&mut self, i: usize) {
        let (name, address) = (self.hostname(i), GATEWAYS[self.routes[i].gateway].1.to_owned());
        let ever = self.ever.entry(name.clone()).or_default();
        if !ever.contains(&address) {
            ever.push(address.clone());
        }
        self.wanted.insert(name, address);
    }

    fn hostname(&self, i: usize) -> String {
        format!("v{i}-{}.{ZONE}", self.routes[i].name)
    }

    fn rename(&mut self, i: usize) -> Result<(), Failed> {
        if !self.routes[i].exists || !self.may_delete() {
            return Ok(());
        }
        self.wanted.remove(&self.hostname(i));
        self.deletes += 1;
        self.routes[i].name += 1;
        self.is_wanted(i);
        self.apply(i)
    }

    fn delete(&mut self, i: usize) -> Result<(), Failed> {
        if !self.routes[i].exists || !self.may_delete() {
            return Ok(());
        }
        self.wanted.remove(&self.hostname(i));
        self.deletes += 1;
        self.routes[i].exists = false;
        let route = format!("httproute/v{i}");
        let words = ["delete", &*route, "-n", "shop", "--wait=false", "--ignore-not-found"];
        insist(|| Ok(self.world.cluster.kubectl(&words).map(drop)?))
    }

    fn create(&mut self) -> Result<(), Failed> {
        let Some(i) = self.routes.iter().position(|route| !route.exists) else { return Ok(()) };
        self.routes[i] = Lively { exists: true, gateway: self.routes[i].gateway, name: self.routes[i].name + 1 };
        self.is_wanted(i);
        self.apply(i)
    }

    fn move_to_other_gateway(&mut self, i: usize) -> Result<(), Failed> {
        if !self.routes[i].exists {
            return Ok(());
        }
        self.routes[i].gateway = 1 - self.routes[i].gateway;
        self.is_wanted(i);
        self.apply(i)
    }

    fn apply(&self, i: usize) -> Result<(), Failed> {
        let gateway = format!("name: {}", GATEWAYS[self.routes[i].gateway].0);
        let text = bed::route_text(&format!("v{i}"), &self.hostname(i)).replace("name: edge", &gateway);
        insist(|| {
            self.world.cluster.apply(&text)?;
            bed::accept_route(&self.world.cluster, "httproute", &format!("v{i}"))
        })
    }

    fn blink(&mut self, gateway: usize, programmed: &str, addresses: &[&str]) -> Result<(), Failed> {
        insist(|| bed::gateway_status(&self.world.cluster, GATEWAYS[gateway].0, programmed, addresses))?;
        self.opens(Open::Gateway(gateway));
        Ok(())
    }

    fn kill(&mut self, i: usize) -> Result<(), Failed> {
        if self.opens(Open::Killed(i)) {
            self.world.kill(i);
        }
        Ok(())
    }

    fn pause(&mut self, i: usize) -> Result<(), Failed> {
        if self.opens(Open::Paused(i)) {
            self.world.signal(i, "STOP");
        }
        Ok(())
    }

    fn cut_api(&mut self, i: usize) -> Result<(), Failed> {
        self.opens(Open::Api(i));
        let (kind, bytes) = (self.dice.below(4), 100 + self.dice.below(20_000));
        self.world.api(i).judge(move |_| match kind {
            0 => Fault::Hang,
            1 => Fault::Refuse(500, None),
            2 => Fault::Refuse(429, Some(1)),
            _ => Fault::Cut(bytes),
        });
        Ok(())
    }

    fn cut_dns(&mut self, i: usize) -> Result<(), Failed> {
        self.opens(Open::Dns(i));
        self.world.cut_dns(i, true);
        Ok(())
    }

    fn kill_name_server(&mut self) -> Result<(), Failed> {
        if self.opens(Open::NameServer) {
            self.world.answers.store(false, Ordering::SeqCst);
            self.world.zone.kill();
        }
        Ok(())
    }

    fn kill_api_server(&mut self) -> Result<(), Failed> {
        self.world.cluster.kill_api();
        std::thread::sleep(Duration::from_millis(self.dice.below(3000) as u64));
        insist(|| Ok(self.world.cluster.run_api()?))
    }

    /// A record of somebody else, which has to stay as it is.
    fn hand_edit(&mut self) -> Result<(), Failed> {
        if self.open.iter().any(|(_, open)| *open == Open::NameServer) {
            return Ok(());
        }
        let name = format!("foreign{}.{ZONE}", self.foreign.len());
        self.world.zone.edit(ZONE, &[&format!("update add {name} 77 A 198.51.100.9")])?;
        self.foreign.push(name);
        Ok(())
    }

    fn remove_fence(&mut self) -> Result<(), Failed> {
        let lines = self.world.zone.dump(ZONE).unwrap_or_default();
        let fences: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
        let fences = fences.into_iter().filter(|name| name.starts_with("_gatepost-"));
        let edits: Vec<String> = fences.map(|name| format!("update delete {name} TXT")).collect();
        if edits.is_empty() {
            return Ok(());
        }
        Ok(self.world.zone.edit(ZONE, &edits.iter().map(String::as_str).collect::<Vec<_>>())?)
    }

    /// Notes a fault, for two to seven actions; whether it was not there before, nor another one of its process.
    fn opens(&mut self, fault: Open) -> bool {
        let of = |open: Open| match open {
            Open::Killed(i) | Open::Paused(i) => Some(i),
            _ => None,
        };
        let is_free =
            !self.open.iter().any(|(_, open)| *open == fault || of(fault).is_some() && of(*open) == of(fault));
        if is_free {
            self.open.push((self.done + 2 + self.dice.below(6), fault));
        }
        is_free
    }

    fn heal(&mut self, fault: Open) -> Result<(), Failed> {
        self.open.retain(|(_, open)| *open != fault);
        match fault {
            Open::Gateway(i) => insist(|| bed::accept(&self.world.cluster, GATEWAYS[i].0, &[GATEWAYS[i].1]))?,
            // It begins again with another clock, at most 200 seconds off: BIND allows for 300.
            Open::Killed(i) => self.world.run(i, self.dice.below(401) as i64 - 200),
            Open::Paused(i) => self.world.signal(i, "CONT"),
            Open::Api(i) => self.world.api(i).judge(|_| Fault::Pass),
            Open::Dns(i) => self.world.cut_dns(i, false),
            Open::NameServer => {
                self.world.zone.run()?;
                self.world.answers.store(true, Ordering::SeqCst);
            }
        }
        Ok(())
    }
}

/// Does it again where an API server that has just begun to run, or a machine that does too much, took too long.
fn insist(edit: impl Fn() -> Result<(), Failed>) -> Result<(), Failed> {
    (0..4).find_map(|_| edit().ok()).map_or_else(&edit, Ok)
}
