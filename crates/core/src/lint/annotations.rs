//! Annotations and labels that are nearly well-known ones.

use super::*;

/// Keys that decide something about Gateways, ListenerSets and routes.
const KNOWN: [&str; 27] = [
    "acme.cert-manager.io/http01-ingress-class",
    "acme.cert-manager.io/http01-solver",
    "cert-manager.io/allow-direct-injection",
    "cert-manager.io/cluster-issuer",
    "cert-manager.io/common-name",
    "cert-manager.io/duration",
    "cert-manager.io/email-sans",
    "cert-manager.io/ip-sans",
    "cert-manager.io/issuer",
    "cert-manager.io/issuer-group",
    "cert-manager.io/issuer-kind",
    "cert-manager.io/private-key-algorithm",
    "cert-manager.io/private-key-encoding",
    "cert-manager.io/private-key-rotation-policy",
    "cert-manager.io/private-key-size",
    "cert-manager.io/renew-before",
    "cert-manager.io/renew-before-percentage",
    "cert-manager.io/revision-history-limit",
    "cert-manager.io/secret-template",
    "cert-manager.io/subject-organizations",
    "cert-manager.io/uri-sans",
    "cert-manager.io/usages",
    suppression::IGNORE,
    "gatepost.dev/confirm-deletes",
    "kubernetes.io/metadata.name",
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
];

/// The prefixes of external-dns.
const EXTERNAL_DNS: [&str; 2] = ["external-dns.alpha.kubernetes.io/", "external-dns.kubernetes.io/"];

/// What stands behind them.
const EXTERNAL_DNS_NAMES: [&str; 13] = [
    "access",
    "alias",
    "controller",
    "endpoints-type",
    "gateway-hostname-source",
    "hostname",
    "ingress",
    "ingress-hostname-source",
    "internal-hostname",
    "set-identifier",
    "target",
    "target-strategy",
    "ttl",
];

/// Names behind the prefixes of external-dns that belong to one provider.
const PROVIDERS: [&str; 9] =
    ["aws-", "cloudflare-", "coredns-", "google-", "ibmcloud-", "ovh-", "pihole-", "scw-", "webhook-"];

pub(super) fn misspelt(context: LintContext<'_>) -> Vec<Diagnostic> {
    let is_meant = |object: &ObjectRef| {
        object.kind.route().is_some() || [Kind::Gateway, Kind::ListenerSet, Kind::XListenerSet].contains(&object.kind)
    };
    let mut all = Vec::new();
    for (object, meta) in context.snapshot.metas().filter(|(object, _)| is_meant(object)) {
        for (part, map) in [("annotations", &meta.annotations), ("labels", &meta.labels)] {
            for (key, _) in map.iter() {
                all.extend(near(key).map(|known| told(&object, part, key, &known)));
            }
        }
    }
    all
}

/// The well-known key that this one is nearly.
fn near(key: &str) -> Option<String> {
    if KNOWN.contains(&key) || !key.contains('/') {
        return None;
    }
    if let Some(name) = EXTERNAL_DNS.iter().find_map(|prefix| key.strip_prefix(prefix)) {
        let is_own = EXTERNAL_DNS_NAMES.contains(&name) || PROVIDERS.iter().any(|prefix| name.starts_with(prefix));
        let near = (!is_own).then(|| closest(name, EXTERNAL_DNS_NAMES.into_iter())).flatten()?;
        return Some(format!("{}{near}", &key[..key.len() - name.len()]));
    }
    let (prefix, name) = key.split_once('/')?;
    // One or two letters of a prefix: another one may well be somebody's own.
    let known_prefix = |known: &&str| {
        let whole = known.split('/').next().unwrap_or(known);
        whole != prefix && distance(prefix, whole, 2).is_some()
    };
    if let Some(prefix) = EXTERNAL_DNS.into_iter().find(known_prefix)
        && EXTERNAL_DNS_NAMES.contains(&name)
    {
        return Some(format!("{prefix}{name}"));
    }
    KNOWN.iter().filter(|known| distance(key, known, 2).is_some()).map(|known| (*known).to_owned()).next()
}

fn told(object: &ObjectRef, part: &str, key: &Str, known: &str) -> Diagnostic {
    let field = FieldPath::of("metadata").key(part).key(key.clone());
    let kind = if part == "labels" { "label" } else { "annotation" };
    let message = format!("the {kind} `{key}` has no meaning");
    Diagnostic::new(reason::ANNOTATION_MISSPELT, object, field, message).help(format!("did you mean `{known}`?"))
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn only_what_is_nearly_a_known_key_is_told() {
        for (key, meant) in [
            ("cert-manager.io/cluster-isuer", "cert-manager.io/cluster-issuer"),
            ("cert-manger.io/issuer", "cert-manager.io/issuer"),
            ("external-dns.alpha.kubernetes.io/hostnam", "external-dns.alpha.kubernetes.io/hostname"),
            ("external-dns.alpha.kuberntes.io/target", "external-dns.alpha.kubernetes.io/target"),
            ("gatepost.dev/ignor", "gatepost.dev/ignore"),
        ] {
            assert_eq!(near(key).as_deref(), Some(meant), "{key}");
        }
        for key in [
            "cert-manager.io/issuer",
            "external-dns.alpha.kubernetes.io/ttl",
            "external-dns.alpha.kubernetes.io/aws-region",
            "external-dns.kubernetes.io/something-else",
            "example.com/hostname",
            "hostname",
        ] {
            assert_eq!(near(key), None, "{key}");
        }
    }
}
