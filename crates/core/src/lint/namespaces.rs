//! Selectors that need the labels of a namespace that is not among the files. In a cluster the namespace always exists.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::selector::Selector;

/// Which object has a selector, and where.
type Asker = (ObjectRef, FieldPath);

/// One note for every selector that asks for labels which are not known.
pub(super) fn unknown(context: LintContext<'_>) -> Vec<Diagnostic> {
    if context.snapshot.origin == Origin::Cluster {
        return Vec::new();
    }
    let mut asked: BTreeMap<Asker, BTreeSet<&Str>> = BTreeMap::new();
    for route in context.topology.routes.values().filter(|route| is_unknown(context, &route.route.meta)) {
        for id in (0..route.parents.len())
            .flat_map(|parent| crate::attachment::routes::referred_listeners(context.topology, route, parent))
        {
            let listener = context.topology.listener(id);
            if asks_labels(&listener.spec().allowed_routes.namespaces) {
                let field = listener_field(listener, "allowedRoutes.namespaces.selector");
                asked.entry((listener.owner.object(), field)).or_default().insert(&route.route.meta.key.namespace);
            }
        }
    }
    for set in context.snapshot.listener_sets.values().filter(|set| is_unknown(context, &set.meta)) {
        let own = &set.meta.key.namespace;
        let key = Key::new(set.parent.namespace_or(own).clone(), set.parent.name.clone());
        if context.snapshot.gateways.get(&key).is_some_and(|gateway| asks_labels(&gateway.allowed_listeners)) {
            let gateway = ObjectRef { kind: Kind::Gateway, key };
            let field = FieldPath::of("spec.allowedListeners.namespaces.selector");
            asked.entry((gateway, field)).or_default().insert(own);
        }
    }
    asked.into_iter().map(|((object, field), namespaces)| told(&object, field, &namespaces)).collect()
}

fn is_unknown(context: LintContext<'_>, meta: &Meta) -> bool {
    !context.snapshot.namespaces.contains_key(&meta.key.namespace)
}

/// Whether an admission depends on labels of the Namespace other than its name.
fn asks_labels(admission: &Admission) -> bool {
    let asks = |selector: &Selector| selector.requirements.iter().any(|r| &*r.key != "kubernetes.io/metadata.name");
    matches!(admission, Admission::Selector(Some(selector)) if asks(selector))
}

fn told(object: &ObjectRef, field: FieldPath, namespaces: &BTreeSet<&Str>) -> Diagnostic {
    let names = listed(namespaces.iter().map(|name| &***name));
    let (namespace, is) = if namespaces.len() == 1 { ("namespace", "is") } else { ("namespaces", "are") };
    let message =
        format!("{namespace} {names} {is} not among the files, so that labels it asks for are taken as absent");
    Diagnostic::new(reason::NAMESPACE_NOT_IN_INPUT, object, field, message)
}
