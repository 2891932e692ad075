//! Rules that only name backends: those of TLSRoutes, TCPRoutes and UDPRoutes.

use gatepost_core::model::{Matches, Rule, SharedList};

use super::parts::{backends, rule_name};
use crate::fields::Fields;
use crate::rules;

/// Reads `rules`: exactly one, except in v1alpha2, which allowed sixteen.
pub(super) fn plain_rules(f: &Fields<'_>, version: &str) -> SharedList<Rule> {
    let rules = f.mappings("rules", rule);
    rules::count(f, "rules", rules.len(), 1, if version == "v1alpha2" { 16 } else { 1 });
    rules::unique_names(f, &rules);
    f.share_list(rules)
}

fn rule(f: &Fields<'_>) -> Rule {
    let backends = backends(f, |_| SharedList::default());
    if backends.is_empty() {
        f.invalid("backendRefs", "is empty; a rule has 1 to 16 backends");
    }
    Rule { name: rule_name(f), matches: Matches::Everything, filters: SharedList::default(), backends }
}
