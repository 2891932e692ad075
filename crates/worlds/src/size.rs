//! How large a world is and what it is made of.

use std::fmt;

use gatepost_core::model::RouteKind;

/// How many listeners a Gateway or ListenerSet may have.
pub const HOLDER_LIMIT: usize = 64;
/// How many parents a route may have.
pub const PARENT_LIMIT: usize = 32;
/// How many hostnames a route may have.
pub const HOSTNAME_LIMIT: usize = 16;
/// How many ListenerSets and routes names leave room for, and how many Gateways addresses do.
const OBJECT_LIMIT: usize = 100_000_000;
const GATEWAY_LIMIT: usize = 60_000;

/// The numbers and shares of a world. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// Routes of all kinds.
    pub routes: usize,
    /// Which kinds, by weight.
    pub kinds: Vec<(RouteKind, u32)>,
    /// Gateways.
    pub gateways: usize,
    /// Listeners of each Gateway, those of its ListenerSets included.
    pub listeners: usize,
    /// ListenerSets of each Gateway; unset means as few as can hold the listeners.
    pub sets: Option<usize>,
    /// Hostnames of each route.
    pub hostnames: usize,
    /// Parents of each route: its own, then others of the same Gateway. Above 1, every Gateway and ListenerSet has a listener
    /// without hostname on a port of its own, so that each of them takes every route.
    pub parents: usize,
    /// Rules of each route, at most.
    pub rules: usize,
    /// Namespaces that routes live in; unset means one for fifty routes, five hundred at most.
    pub namespaces: Option<usize>,
    /// Domains that hostnames are below.
    pub domains: usize,
    /// Share of hostnames that are wildcards.
    pub wildcards: f64,
    /// Share of routes that have the hostnames of an earlier one, as routes do that split a host by path.
    pub shared: f64,
    /// Share of parentRefs that name their listener.
    pub sections: f64,
    /// Share of routes and ListenerSets with one mistake each.
    pub refused: f64,
    /// Share of Gateways and ListenerSets with a DNSPolicy, and the same again with a TLSPolicy.
    pub policies: f64,
    /// Whether listeners and Gateways admit namespaces by label instead of all.
    pub selectors: bool,
    /// Whether listeners for the web are HTTPS and name a Secret each; the Secrets are not in the world.
    pub https: bool,
    /// What addresses Gateways have.
    pub addresses: Addresses,
    /// Whether objects carry the status that a healthy implementation would have written.
    pub status: bool,
    /// What chance starts from.
    pub seed: u64,
}

/// What addresses Gateways have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// One IPv4 address.
    #[default]
    V4,
    /// One of each.
    Dual,
    /// A hostname.
    Hostname,
}

impl Default for Size {
    fn default() -> Self {
        Size {
            routes: 1000,
            kinds: vec![(RouteKind::Http, 1)],
            gateways: 1,
            listeners: 1,
            sets: None,
            hostnames: 1,
            parents: 1,
            rules: 1,
            namespaces: None,
            domains: 300,
            wildcards: 0.01,
            shared: 0.1,
            sections: 0.0,
            refused: 0.0,
            policies: 0.0,
            selectors: false,
            https: false,
            addresses: Addresses::V4,
            status: true,
            seed: 1,
        }
    }
}

impl Size {
    /// So many HTTPRoutes on one Gateway with one listener; nothing is refused.
    pub fn routes(routes: usize) -> Self {
        Size { routes, ..Size::default() }
    }

    /// A platform as companies have it: four Gateways with ListenerSets, namespaces admitted by label, some policies, all kinds
    /// of routes, one object in a hundred wrong, and no status, as manifests in a repository have none.
    pub fn platform(routes: usize) -> Self {
        Size {
            routes,
            kinds: kinds_of_a_company(),
            gateways: 4,
            listeners: 16,
            sets: Some(3),
            rules: 3,
            refused: 0.01,
            policies: 0.3,
            selectors: true,
            https: true,
            status: false,
            ..Size::default()
        }
    }

    /// ListenerSets of each Gateway.
    pub fn sets_per_gateway(&self) -> usize {
        self.sets.unwrap_or_else(|| self.listeners.div_ceil(HOLDER_LIMIT).saturating_sub(1))
    }

    /// Namespaces that routes live in.
    pub fn team_namespaces(&self) -> usize {
        self.namespaces.unwrap_or_else(|| (self.routes / 50).clamp(1, 500)).max(1)
    }

    /// Says what does not fit together.
    pub(crate) fn check(&self) -> Result<(), Unfit> {
        let holders = 1 + self.sets_per_gateway();
        let protocols = crate::layout::own_doors(self).len();
        let most = HOLDER_LIMIT * holders;
        within("gateways", self.gateways, 1, GATEWAY_LIMIT)?;
        within("routes", self.routes, 0, OBJECT_LIMIT)?;
        within("listenersets", self.sets_per_gateway(), 0, OBJECT_LIMIT)?;
        within("listeners", self.listeners, holders + protocols, most)?;
        within("parents", self.parents, 1, PARENT_LIMIT.min(holders))?;
        within("hostnames-per-route", self.hostnames, 1, HOSTNAME_LIMIT)?;
        within("rules", self.rules, 1, HOSTNAME_LIMIT)?;
        within("domains", self.domains, self.gateways, OBJECT_LIMIT)?;
        let shares = [self.wildcards, self.shared, self.sections, self.refused, self.policies];
        if shares.iter().any(|share| !(0.0..=1.0).contains(share)) {
            return Err(Unfit("a share is a number from 0 to 1".to_owned()));
        }
        if self.kinds.iter().all(|(_, weight)| *weight == 0) {
            return Err(Unfit("`kinds` names no kind of route with a weight above 0".to_owned()));
        }
        Ok(())
    }
}

fn kinds_of_a_company() -> Vec<(RouteKind, u32)> {
    vec![(RouteKind::Http, 16), (RouteKind::Grpc, 2), (RouteKind::Tls, 1), (RouteKind::Tcp, 1)]
}

fn within(what: &str, value: usize, least: usize, most: usize) -> Result<(), Unfit> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Unfit(format!("`{what}` is {value}, and in such a world it is {least} to {most}")))
}

/// Numbers that no world can have together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(pub(crate) String);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_said() {
        let unfit = |size: Size| size.check().unwrap_err().to_string();
        let base = Size::default();
        assert_eq!(base.check(), Ok(()));
        assert_eq!(Size { listeners: 1000, ..base.clone() }.check(), Ok(()));
        assert_eq!(
            unfit(Size { listeners: 65, sets: Some(0), ..base.clone() }),
            "`listeners` is 65, and in such a world it is 1 to 64"
        );
        assert_eq!(unfit(Size { parents: 2, ..base.clone() }), "`parents` is 2, and in such a world it is 1 to 1");
        assert_eq!(unfit(Size { wildcards: 1.5, ..base.clone() }), "a share is a number from 0 to 1");
        assert!(unfit(Size { kinds: vec![], ..base }).starts_with("`kinds`"));
    }

    #[test]
    fn sets_are_as_few_as_can_hold_the_listeners() {
        let sets = |listeners| Size { listeners, ..Size::default() }.sets_per_gateway();
        assert_eq!([1, 64, 65, 1000].map(sets), [0, 0, 1, 15]);
    }
}
