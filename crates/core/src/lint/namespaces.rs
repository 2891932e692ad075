//! Namespaces that files leave open: labels of one that is not among them, and objects that state none.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Which object has a selector, and where.
type Asker = (ObjectRef, FieldPath);

/// One note for every selector that asks for labels which are not known. A route or ListenerSet that is refused because of
/// them has a diagnostic of its own.
pub(super) fn unknown(context: LintContext<'_>) -> Vec<Diagnostic> {
    if context.snapshot.origin == Origin::Cluster {
        return Vec::new();
    }
    let mut asked: BTreeMap<Asker, BTreeSet<&Str>> = BTreeMap::new();
    for route in context.topology.routes.values().filter(|route| is_unknown(context, &route.route.object())) {
        for id in (0..route.parents.len())
            .filter(|parent| route.parents[*parent].refused != Some(reason::NAMESPACE_NOT_ALLOWED))
            .flat_map(|parent| crate::attachment::routes::referred_listeners(context.topology, route, parent))
        {
            let listener = context.topology.listener(id);
            if asks_labels(&listener.spec().allowed_routes.namespaces) {
                let field = listener_field(listener, "allowedRoutes.namespaces.selector");
                asked.entry((listener.owner.object(), field)).or_default().insert(&route.route.meta.key.namespace);
            }
        }
    }
    for set in context.snapshot.listener_sets.values().filter(|set| is_unknown(context, &set.object())) {
        let own = &set.meta.key.namespace;
        let key = Key::new(set.parent.namespace_or(own).clone(), set.parent.name.clone());
        let refused = context.topology.sets.get(&set.object()).and_then(|state| state.refused);
        let admits = refused != Some(reason::LISTENER_SET_NOT_ALLOWED);
        let asks = |gateway: &std::sync::Arc<Gateway>| admits && asks_labels(&gateway.allowed_listeners);
        if context.snapshot.gateways.get(&key).is_some_and(asks) {
            let gateway = ObjectRef { kind: Kind::Gateway, key };
            let field = FieldPath::of("spec.allowedListeners.namespaces.selector");
            asked.entry((gateway, field)).or_default().insert(own);
        }
    }
    asked.into_iter().map(|((object, field), namespaces)| told(&object, field, &namespaces)).collect()
}

/// Whether the labels of an object's namespace are not known. Where the namespace itself is not, nothing is said about them.
fn is_unknown(context: LintContext<'_>, object: &ObjectRef) -> bool {
    !context.is_namespace_assumed(object) && !context.snapshot.namespaces.contains_key(object.namespace())
}

/// Lowers a refusal because of labels to a warning where these are not known.
pub(super) fn lowered_if_unknown(
    context: LintContext<'_>,
    mut diagnostic: Diagnostic,
    namespace: &Str,
    admission: &Admission,
) -> Diagnostic {
    let is_known = context.snapshot.origin == Origin::Cluster || context.snapshot.namespaces.contains_key(namespace);
    if !is_known && asks_labels(admission) {
        diagnostic.severity = reason::Severity::Warning;
        diagnostic.help = Some(format!("Add Namespace {namespace} to the files, so that its labels are known."));
        diagnostic.fix = None;
    }
    diagnostic
}

/// One note about all objects that state no namespace, on the first of them.
pub(super) fn assumed(context: LintContext<'_>) -> Option<Diagnostic> {
    let objects = &context.snapshot.file_facts.without_namespace;
    let first = objects.first()?;
    let others = match objects.len() - 1 {
        0 => String::new(),
        1 => " and on 1 other object".to_owned(),
        n => format!(" and on {n} other objects"),
    };
    let message = format!(
        "`metadata.namespace` is not set here{others}; `{}` is assumed, and nothing that depends on it is reported",
        first.namespace()
    );
    Some(Diagnostic::new(reason::NAMESPACE_ASSUMED, first, FieldPath::of("metadata.namespace"), message))
}

/// One note about all objects that another program completes, on the first of them.
pub(super) fn incomplete(context: LintContext<'_>) -> Option<Diagnostic> {
    let objects = &context.snapshot.file_facts.incomplete;
    let first = objects.first()?;
    let message = match objects.len() - 1 {
        0 => "placeholders or patches complete this object; what depends on it is not checked".to_owned(),
        1 => "placeholders or patches complete this object and 1 other; what depends on them is not checked".to_owned(),
        n => {
            format!("placeholders or patches complete this object and {n} others; what depends on them is not checked")
        }
    };
    Some(Diagnostic::new(reason::OBJECT_INCOMPLETE, first, FieldPath::root(), message))
}

/// Whether an admission depends on labels of the Namespace other than its name.
fn asks_labels(admission: &Admission) -> bool {
    matches!(admission, Admission::Selector(Some(selector)) if selector.asks_labels())
}

fn told(object: &ObjectRef, field: FieldPath, namespaces: &BTreeSet<&Str>) -> Diagnostic {
    let names = listed(namespaces.iter().map(|name| &***name));
    let (namespace, is) = if namespaces.len() == 1 { ("namespace", "is") } else { ("namespaces", "are") };
    let message =
        format!("{namespace} {names} {is} not among the files, so that labels it asks for are taken as absent");
    Diagnostic::new(reason::NAMESPACE_NOT_IN_INPUT, object, field, message)
}
