//! Synthetic worlds: Gateways of a platform team, ListenerSets, and the routes of many teams, of any size.
//!
//! The same size and seed give the same bytes. Everything attaches, except where [`Size::mistakes`] asks for routes with one
//! plain mistake each. Nothing here knows the rules: a world is built so that it is right, never by asking.

use serde_json::{Value, json};

const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";
/// The listeners of one Gateway that have a domain of their own.
const DOMAINS: usize = 7;
/// How many routes share a namespace.
const ROUTES_PER_TEAM: usize = 50;
const SERVICES_PER_TEAM: usize = 5;
/// Every so many teams bring a ListenerSet of their own.
const TEAMS_PER_SET: usize = 10;

/// How large a world is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// HTTPRoutes.
    pub routes: usize,
    /// Gateways.
    pub gateways: usize,
    /// One route in so many has a mistake; 0 for none.
    pub mistakes: usize,
    /// What chance starts from.
    pub seed: u64,
}

impl Size {
    /// So many routes on four Gateways, one in a hundred with a mistake.
    pub fn routes(routes: usize) -> Self {
        Size { routes, gateways: 4, mistakes: 100, seed: 1 }
    }
}

/// How files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Block YAML, as people write it.
    Yaml,
    /// One JSON object a line, as programs write it.
    JsonLines,
}

/// A file of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without folders.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

/// The files of a world: one for the platform, one for each team.
pub fn files(size: Size, style: Style) -> Result<Vec<File>, String> {
    let teams = size.routes.div_ceil(ROUTES_PER_TEAM);
    let mut chance = Chance(size.seed);
    let mut files = vec![file("platform", &platform(size), style)?];
    for team in 0..teams {
        let first = team * ROUTES_PER_TEAM;
        let routes = first..size.routes.min(first + ROUTES_PER_TEAM);
        let mut objects = belongings(size, team);
        objects.extend(routes.map(|number| route(size, team, number, &mut chance)));
        files.push(file(&format!("team-{team}"), &objects, style)?);
    }
    Ok(files)
}

fn file(name: &str, objects: &[Value], style: Style) -> Result<File, String> {
    let (extension, separator) = match style {
        Style::Yaml => ("yaml", "---\n"),
        Style::JsonLines => ("json", ""),
    };
    let written = objects.iter().map(|object| match style {
        Style::Yaml => serde_saphyr::to_string(object).map_err(|error| error.to_string()),
        Style::JsonLines => Ok(format!("{object}\n")),
    });
    let documents: Vec<String> = written.collect::<Result<_, _>>()?;
    Ok(File { name: format!("{name}.{extension}"), text: documents.join(separator) })
}

/// What the platform team owns.
fn platform(size: Size) -> Vec<Value> {
    let class = json!({
        "apiVersion": GATEWAY_API, "kind": "GatewayClass", "metadata": {"name": "shared"},
        "spec": {"controllerName": "gateway.example/controller"},
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "infra"}});
    [class, namespace].into_iter().chain((0..size.gateways).map(gateway)).collect()
}

fn gateway(number: usize) -> Value {
    let listeners: Vec<Value> =
        (0..DOMAINS).map(|at| listener(&format!("d{at}"), &format!("*.{}", domain(number, at)))).collect();
    json!({
        "apiVersion": GATEWAY_API, "kind": "Gateway", "metadata": {"name": format!("edge-{number}"), "namespace": "infra"},
        "spec": {
            "gatewayClassName": "shared",
            "addresses": [{"type": "IPAddress", "value": format!("192.0.2.{}", 1 + number % 250)}],
            "allowedListeners": {"namespaces": {"from": "All"}},
            "listeners": listeners,
        },
    })
}

fn listener(name: &str, hostname: &str) -> Value {
    json!({
        "name": name, "hostname": hostname, "port": 80, "protocol": "HTTP",
        "allowedRoutes": {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"gateway-access": "yes"}}}},
    })
}

fn domain(gateway: usize, at: usize) -> String {
    format!("shop{at}.edge{gateway}.example")
}

/// What a team owns besides routes.
fn belongings(size: Size, team: usize) -> Vec<Value> {
    let name = format!("team-{team}");
    let labels = json!({"gateway-access": "yes", "team": name});
    let mut all = vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})];
    all.extend((0..SERVICES_PER_TEAM).map(|number| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("app-{number}"), "namespace": name},
            "spec": {"selector": {"app": format!("app-{number}")}, "ports": [{"name": "http", "port": 8080}]},
        })
    }));
    if brings_set(team) {
        all.push(listener_set(size, team, &name));
    }
    all
}

fn brings_set(team: usize) -> bool {
    team.is_multiple_of(TEAMS_PER_SET)
}

fn listener_set(size: Size, team: usize, namespace: &str) -> Value {
    json!({
        "apiVersion": GATEWAY_API, "kind": "ListenerSet", "metadata": {"name": "own", "namespace": namespace},
        "spec": {
            "parentRef": {"name": edge(size, team), "namespace": "infra"},
            "listeners": [listener("own", &format!("*.{}", own_domain(team)))],
        },
    })
}

fn own_domain(team: usize) -> String {
    format!("team{team}.example")
}

/// The Gateway that a team uses.
fn edge(size: Size, team: usize) -> String {
    format!("edge-{}", team % size.gateways.max(1))
}

fn route(size: Size, team: usize, number: usize, chance: &mut Chance) -> Value {
    let own = brings_set(team) && chance.below(2) == 0;
    let zone = if own { own_domain(team) } else { domain(team % size.gateways.max(1), chance.below(DOMAINS)) };
    let parent = if own {
        json!({"kind": "ListenerSet", "name": "own"})
    } else {
        json!({"name": edge(size, team), "namespace": "infra"})
    };
    let mut hostnames = vec![format!("app-{number}.{zone}")];
    if chance.below(5) == 0 {
        hostnames.push(format!("www.app-{number}.{zone}"));
    }
    let mut rules: Vec<Value> = (0..1 + chance.below(3)).map(|at| rule(at, chance)).collect();
    if size.mistakes > 0 && number.is_multiple_of(size.mistakes) {
        match number / size.mistakes % 2 {
            0 => hostnames = vec![format!("app-{number}.elsewhere.example")],
            _ => rules[0]["backendRefs"][0]["name"] = json!("app-gone"),
        }
    }
    let labels = json!({"app.kubernetes.io/name": format!("app-{number}"), "team": format!("team-{team}")});
    json!({
        "apiVersion": GATEWAY_API, "kind": "HTTPRoute",
        "metadata": {"name": format!("app-{number}"), "namespace": format!("team-{team}"), "labels": labels},
        "spec": {"parentRefs": [parent], "hostnames": hostnames, "rules": rules},
    })
}

fn rule(at: usize, chance: &mut Chance) -> Value {
    let service = format!("app-{}", chance.below(SERVICES_PER_TEAM));
    let path = if at == 0 { "/".to_owned() } else { format!("/part-{at}") };
    let mut rule = json!({
        "matches": [{"path": {"type": "PathPrefix", "value": path}}],
        "backendRefs": [{"name": service, "port": 8080}],
    });
    if chance.below(3) == 0 {
        let header = json!({"set": [{"name": "x-part", "value": at.to_string()}]});
        rule["filters"] = json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": header}]);
    }
    rule
}

/// Chance that repeats itself: splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // 31 bits fit every usize there is.
        (mixed >> 33) as usize % limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use gatepost_core::topology::{Scope, Topology};
    use gatepost_objects::{Loaded, Settings, collect};

    use super::*;

    fn read(size: Size, style: Style) -> Loaded {
        let texts = files(size, style).unwrap().into_iter().map(|file| (file.name.into(), file.text.into_bytes()));
        collect(texts, &Settings::default())
    }

    #[test]
    fn a_size_and_seed_give_the_same_bytes() {
        let size = Size::routes(60);
        assert_eq!(files(size, Style::Yaml), files(size, Style::Yaml));
        assert_ne!(files(size, Style::Yaml), files(Size { seed: 2, ..size }, Style::Yaml));
    }

    #[test]
    fn both_styles_say_the_same() {
        let size = Size::routes(120);
        let (yaml, json) = (read(size, Style::Yaml), read(size, Style::JsonLines));
        assert_eq!(yaml.snapshot.routes.len(), 120);
        assert_eq!(yaml.snapshot, json.snapshot);
        assert_eq!(yaml.diagnostics, []);
        assert_eq!(json.diagnostics, []);
    }

    #[test]
    fn everything_attaches_but_the_mistakes() {
        let size = Size { mistakes: 0, ..Size::routes(600) };
        let accepted = |size| {
            let loaded = read(size, Style::JsonLines);
            let topology = Topology::build(&loaded.snapshot, &Scope::default());
            topology.routes.values().filter(|route| route.parents[0].is_accepted()).count()
        };
        assert_eq!(accepted(size), 600);
        assert_eq!(accepted(Size { mistakes: 100, ..size }), 597);
    }
}
