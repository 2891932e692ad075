//! TLSRoute, TCPRoute and UDPRoute: rules that only name backends.

use gatepost_core::model::{Matches, Meta, RouteKind, Rule};
use gatepost_core::snapshot::Object;

use super::common::{Spec, backends, hostnames, route, rule_name};
use crate::fields::Fields;
use crate::rules;

/// Reads a TLSRoute.
pub(crate) fn tls(meta: Meta, root: &Fields<'_>, version: &str) -> Object {
    route(RouteKind::Tls, meta, root, |f| {
        let hostnames = hostnames(f, 1024);
        if version != "v1alpha2" && hostnames.is_empty() {
            f.invalid("hostnames", format!("is missing; a TLSRoute of {version} has 1 to 1024 hostnames"));
        }
        Spec { hostnames, rules: plain_rules(f, version) }
    })
}

/// Reads a TCPRoute.
pub(crate) fn tcp(meta: Meta, root: &Fields<'_>, version: &str) -> Object {
    route(RouteKind::Tcp, meta, root, |f| Spec { hostnames: Vec::new(), rules: plain_rules(f, version) })
}

/// Reads a UDPRoute.
pub(crate) fn udp(meta: Meta, root: &Fields<'_>, version: &str) -> Object {
    route(RouteKind::Udp, meta, root, |f| Spec { hostnames: Vec::new(), rules: plain_rules(f, version) })
}

/// Exactly one rule, except in v1alpha2, which allowed sixteen.
fn plain_rules(f: &Fields<'_>, version: &str) -> Vec<Rule> {
    let rules = f.mappings("rules", rule);
    rules::count(f, "rules", rules.len(), 1, if version == "v1alpha2" { 16 } else { 1 });
    rules::unique_names(f, &rules);
    rules
}

fn rule(f: &Fields<'_>) -> Rule {
    let backends = backends(f, |_| Vec::new());
    if backends.is_empty() {
        f.invalid("backendRefs", "is empty; a rule has 1 to 16 backends");
    }
    Rule { name: rule_name(f), matches: Matches::Everything, filters: Vec::new(), backends }
}
