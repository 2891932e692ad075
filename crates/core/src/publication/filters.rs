//! Which objects the settings select: namespaces, labels, annotations, names, classes, and the `controller` annotation.
//!
//! Each function returns the setting that excludes an object, as text, or nothing. The consequences are not decided here.

use super::annotations::{Annotations, OWN_CONTROLLER, look_up};
use super::settings::PublicationSettings;
use crate::model::{Gateway, Labels, ListenerSet, Meta, Route};
use crate::selector::Selector;

/// The setting that excludes a route, if any.
pub fn route(route: &Route, annotations: &Annotations, settings: &PublicationSettings) -> Option<String> {
    if !settings.sources.contains(&route.kind) {
        return Some(format!("`--source` does not list {}", route.kind.source()));
    }
    let namespace = settings.namespace.as_ref().filter(|wanted| **wanted != route.meta.key.namespace);
    namespace
        .map(|wanted| format!("`--namespace {wanted}` asks for another namespace"))
        .or_else(|| labels("--label-filter", settings.label_filter.as_ref(), &route.meta.labels))
        .or_else(|| annotation_filter(&route.meta, settings))
        .or_else(|| controller(annotations))
}

/// The setting that excludes a Gateway, if any. [`gateway_name`] checks `--gateway-name` separately.
pub fn gateway(gateway: &Gateway, annotations: &Annotations, settings: &PublicationSettings) -> Option<String> {
    let namespace = settings.gateway_namespace.as_ref().filter(|wanted| **wanted != gateway.meta.key.namespace);
    let is_other_class = !settings.gateway_classes.is_empty() && !settings.gateway_classes.contains(&gateway.class);
    namespace
        .map(|wanted| format!("`--gateway-namespace {wanted}` asks for another namespace"))
        .or_else(|| is_other_class.then(|| format!("`--gateway-class` does not list `{}`", gateway.class)))
        .or_else(|| labels("--gateway-label-filter", settings.gateway_label_filter.as_ref(), &gateway.meta.labels))
        .or_else(|| controller(annotations))
}

/// The setting that excludes a Gateway of this name, if any. A ListenerSet is checked by the name of its Gateway.
pub fn gateway_name(name: &str, settings: &PublicationSettings) -> Option<String> {
    let wanted = settings.gateway_name.as_ref().filter(|wanted| ***wanted != *name)?;
    Some(format!("`--gateway-name {wanted}` asks for another Gateway"))
}

/// The setting that excludes a ListenerSet, if any.
pub fn listener_set(set: &ListenerSet, annotations: &Annotations, settings: &PublicationSettings) -> Option<String> {
    annotation_filter(&set.meta, settings).or_else(|| controller(annotations))
}

fn labels(flag: &str, selector: Option<&Selector>, labels: &Labels) -> Option<String> {
    let selector = selector?;
    (!selector.matches(labels)).then(|| format!("its labels do not match `{flag} {selector}`"))
}

fn annotation_filter(meta: &Meta, settings: &PublicationSettings) -> Option<String> {
    let selector = settings.annotation_filter.as_ref()?;
    let matches = selector.matches_with(|key| look_up(&meta.annotations, key, &settings.annotation_prefixes));
    (!matches).then(|| format!("its annotations do not match `--annotation-filter {selector}`"))
}

/// The `controller` annotation that leaves an object to another controller, if any.
pub fn controller(annotations: &Annotations) -> Option<String> {
    let entry = annotations.entry("controller").filter(|_| annotations.is_for_others())?;
    Some(format!("`{}: {}` leaves it to another controller than `{OWN_CONTROLLER}`", entry.key, entry.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external_dns::fixtures;
    use crate::model::{RouteKind, Str};

    fn selector(text: &str) -> Option<Selector> {
        Some(Selector::parse(text).unwrap())
    }

    fn route_refusal(settings: &PublicationSettings) -> Option<String> {
        let mut object = fixtures::route(RouteKind::Http, "shop", "web", &[]);
        object.meta.labels.insert("tier".into(), "web".into());
        object.meta.annotations.insert("external-dns.alpha.kubernetes.io/managed".into(), "true".into());
        route(&object, &Annotations::of(&object.meta, &settings.annotation_prefixes), settings)
    }

    #[test]
    fn routes_pass_every_filter_that_is_set() {
        let open = PublicationSettings::default();
        assert_eq!(route_refusal(&open), None);
        let table: [(PublicationSettings, Option<&str>); 8] = [
            (
                PublicationSettings { sources: [RouteKind::Tcp].into(), ..open.clone() },
                Some("`--source` does not list gateway-httproute"),
            ),
            (PublicationSettings { namespace: Some("shop".into()), ..open.clone() }, None),
            (
                PublicationSettings { namespace: Some("other".into()), ..open.clone() },
                Some("`--namespace other` asks for another namespace"),
            ),
            (PublicationSettings { label_filter: selector("tier=web"), ..open.clone() }, None),
            (
                PublicationSettings { label_filter: selector("tier!=web"), ..open.clone() },
                Some("its labels do not match `--label-filter tier!=web`"),
            ),
            (
                PublicationSettings {
                    annotation_filter: selector("external-dns.kubernetes.io/managed=true"),
                    ..open.clone()
                },
                None,
            ),
            (
                PublicationSettings { annotation_filter: selector("own"), ..open.clone() },
                Some("its annotations do not match `--annotation-filter own`"),
            ),
            (
                PublicationSettings {
                    annotation_filter: selector("external-dns.kubernetes.io/managed"),
                    annotation_prefixes: vec!["external-dns.kubernetes.io/".into()],
                    ..open
                },
                Some("its annotations do not match `--annotation-filter external-dns.kubernetes.io/managed`"),
            ),
        ];
        for (settings, expected) in table {
            assert_eq!(route_refusal(&settings).as_deref(), expected);
        }
    }

    #[test]
    fn gateways_are_chosen_by_namespace_class_label_and_controller() {
        let open = PublicationSettings::default();
        let mut object = fixtures::gateway("infra", "edge");
        let refusal = |object: &Gateway, settings: &PublicationSettings| {
            gateway(object, &Annotations::of(&object.meta, &settings.annotation_prefixes), settings)
        };
        assert_eq!(refusal(&object, &open), None);
        let other: Str = "other".into();
        assert!(
            refusal(&object, &PublicationSettings { gateway_namespace: Some(other.clone()), ..open.clone() }).is_some()
        );
        assert!(
            refusal(&object, &PublicationSettings { gateway_classes: vec![other.clone()], ..open.clone() }).is_some()
        );
        assert!(
            refusal(&object, &PublicationSettings { gateway_label_filter: selector("a=b"), ..open.clone() }).is_some()
        );
        assert!(gateway_name("edge", &PublicationSettings { gateway_name: Some(other), ..open.clone() }).is_some());
        assert_eq!(
            gateway_name("edge", &PublicationSettings { gateway_name: Some("edge".into()), ..open.clone() }),
            None
        );
        object.meta.annotations.insert("external-dns.kubernetes.io/controller".into(), "x".into());
        assert_eq!(
            refusal(&object, &open).as_deref(),
            Some("`external-dns.kubernetes.io/controller: x` leaves it to another controller than `dns-controller`")
        );
    }

    #[test]
    fn listener_sets_obey_the_annotation_filter() {
        let settings =
            PublicationSettings { annotation_filter: selector("managed=true"), ..PublicationSettings::default() };
        let mut set = fixtures::listener_set("team", "extra", "infra", "edge");
        let refusal = |set: &ListenerSet| {
            listener_set(set, &Annotations::of(&set.meta, &settings.annotation_prefixes), &settings)
        };
        assert!(refusal(&set).is_some());
        set.meta.annotations.insert("managed".into(), "true".into());
        assert_eq!(refusal(&set), None);
    }
}
