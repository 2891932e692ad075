//! Provider-specific properties: `aws-weight` becomes `aws/weight`.
//!
//! One table lists the annotations that are properties. Whether the configured provider supports them is not checked here.

use super::Annotations;
use crate::model::Str;

/// Prefixes of annotations that become properties, with the prefix of the property.
const FAMILIES: [(&str, &str); 4] =
    [("aws-", "aws/"), ("coredns-", "coredns/"), ("scw-", "scw/"), ("webhook-", "webhook/")];

/// Annotations that are one property each.
const SINGLES: [(&str, &str); 7] = [
    ("azure-tags", "azure/tags"),
    ("cloudflare-custom-hostname", "cloudflare/custom-hostname"),
    ("cloudflare-proxied", "cloudflare/proxied"),
    ("cloudflare-record-comment", "cloudflare/record-comment"),
    ("cloudflare-region-key", "cloudflare/region-key"),
    ("cloudflare-tags", "cloudflare/tags"),
    ("record-type", "record-type"),
];

/// The properties of an object, sorted by name.
pub(super) fn properties(annotations: &Annotations, is_alias: bool) -> Vec<(Str, Str)> {
    let mut properties: Vec<(Str, Str)> = annotations
        .entries()
        .iter()
        .filter_map(|entry| property_name(entry.name).map(|name| (name, entry.value.clone())))
        .collect();
    if is_alias {
        properties.push(("alias".into(), "true".into()));
    }
    properties.sort();
    properties
}

fn property_name(annotation: &str) -> Option<Str> {
    let single = SINGLES.iter().find(|(name, _)| *name == annotation);
    if let Some((_, property)) = single {
        return Some((*property).into());
    }
    FAMILIES.iter().find_map(|(family, property)| {
        annotation.strip_prefix(family).map(|member| format!("{property}{member}").into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Meta;
    use crate::publication::settings::GA_PREFIX;

    #[test]
    fn annotations_become_properties_as_the_table_says() {
        let table = [
            ("aws-weight", Some("aws/weight")),
            ("aws-", Some("aws/")),
            ("scw-note", Some("scw/note")),
            ("webhook-some-key", Some("webhook/some-key")),
            ("coredns-group", Some("coredns/group")),
            ("azure-tags", Some("azure/tags")),
            ("azure-other", None),
            ("cloudflare-proxied", Some("cloudflare/proxied")),
            ("cloudflare-custom-hostname", Some("cloudflare/custom-hostname")),
            ("cloudflare-region-key", Some("cloudflare/region-key")),
            ("cloudflare-record-comment", Some("cloudflare/record-comment")),
            ("cloudflare-tags", Some("cloudflare/tags")),
            ("cloudflare-other", None),
            ("record-type", Some("record-type")),
            ("ttl", None),
            ("alias", None),
            ("set-identifier", None),
        ];
        for (annotation, expected) in table {
            assert_eq!(property_name(annotation).as_deref(), expected, "{annotation}");
        }
    }

    #[test]
    fn properties_are_sorted_and_alias_is_one() {
        let mut meta = Meta::named("shop", "web");
        for (name, value) in [("scw-note", "x"), ("aws-weight", "10"), ("ttl", "60")] {
            meta.annotations.insert(format!("{GA_PREFIX}{name}").into(), value.into());
        }
        let annotations = Annotations::of(&meta, &[GA_PREFIX.into()]);
        let names: Vec<String> = properties(&annotations, true).iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(names, ["alias=true", "aws/weight=10", "scw/note=x"]);
    }
}
