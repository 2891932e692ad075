//! `gatepost rbac`: the rights of a controller, generated from the features that are on.

use std::io::Write;

use clap::{Args, ValueEnum};
use gatepost_core::model::RouteKind;
use gatepost_dns::provider::kind::ProviderKind;
use gatepost_dns::providers::dnsendpoint;
use gatepost_objects::render;
use serde_json::{Value, json};

use super::flags::issuer::IssuerFlag;
use super::flags::provider::named_kind;
use super::{Ending, Failure, flags};
use crate::rights::{Feature, Right, RoleScope};
use crate::view::write_json;
use crate::web::PageMode;

/// Print the roles that a controller with these features needs
///
/// Nothing is granted for a feature that is off: without --issuer no Secret can be read, and no rule has a wildcard.
/// For a cluster: gatepost rbac | kubectl apply -f -
#[derive(Args, Debug)]
pub(super) struct Rbac {
    /// Name of the roles, their bindings and the service account
    #[arg(long, default_value = "gatepost", env = "GATEPOST_RBAC_NAME")]
    name: String,
    #[command(flatten)]
    features: Features,
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: RbacFormat,
}

/// Which features of a controller are on.
#[derive(Args, Debug)]
#[command(next_help_heading = "What the controller is to do")]
pub(super) struct Features {
    /// Namespace that the controller runs in
    #[arg(long, default_value = "gatepost", env = "GATEPOST_CONTROLLER_NAMESPACE")]
    controller_namespace: String,
    /// Kinds of routes to read, as for the controller; may be repeated [default: all]
    #[arg(long, value_name = "SOURCE", value_parser = flags::source, env = "GATEPOST_SOURCE", value_delimiter = ',')]
    source: Vec<RouteKind>,
    /// Where records go; only dnsendpoint needs rights of its own
    #[arg(long, value_parser = named_kind(), env = "GATEPOST_PROVIDER")]
    provider: Option<&'static ProviderKind>,
    /// Where certificates come from; may be repeated, for policies that name an issuer of cert-manager beside another
    #[arg(long, value_enum, env = "GATEPOST_ISSUER", value_delimiter = ',')]
    issuer: Vec<IssuerFlag>,
    /// Whether the controller keeps what the policies of `gatepost admission` read
    #[arg(long, env = "GATEPOST_ADMISSION")]
    admission: bool,
    /// Namespace of Gateways and ListenerSets whose Secrets are filled; may be repeated. `*` grants the Secrets of all
    /// namespaces. Required where an issuer is set
    #[arg(long, value_name = "NAMESPACE", env = "GATEPOST_CERTIFICATE_NAMESPACE", value_delimiter = ',')]
    certificate_namespace: Vec<String>,
    /// To whom the page is served; only `cluster` needs rights of its own
    #[arg(long, value_enum, value_name = "WHERE", default_value_t, env = "GATEPOST_PAGE")]
    page: PageMode,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum RbacFormat {
    /// One document for each object
    #[default]
    Yaml,
    /// One List
    Json,
    /// The rules as named templates of the chart, each under the condition of its feature
    #[value(hide = true)]
    Helm,
}

impl Rbac {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        self.features.check(matches!(self.output, RbacFormat::Helm))?;
        match self.output {
            RbacFormat::Yaml => out.write_all(render::yaml(&self.objects()).map_err(Failure::usage)?.as_bytes())?,
            RbacFormat::Json => write_json(out, &json!({"apiVersion": "v1", "kind": "List", "items": self.objects()}))?,
            RbacFormat::Helm => out.write_all(helm().as_bytes())?,
        }
        Ok(Ending::Done)
    }

    fn objects(&self) -> Vec<Value> {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": self.name, "namespace": self.features.controller_namespace}});
        let mut objects = vec![account];
        objects.extend(self.role(&self.name, "", self.features.rules(RoleScope::Everywhere)));
        objects.extend(self.role(&self.name, &self.features.controller_namespace, self.features.rules(RoleScope::Own)));
        // In the controller's own namespace it stands beside the role of before.
        let name = format!("{}-certificates", self.name);
        for namespace in self.features.named_namespaces() {
            objects.extend(self.role(&name, namespace, self.features.rules(RoleScope::Certificates)));
        }
        objects
    }

    /// A role and its binding, in a namespace or, without one, everywhere; nothing where there are no rules.
    fn role(&self, name: &str, namespace: &str, rules: Vec<Value>) -> Vec<Value> {
        if rules.is_empty() {
            return Vec::new();
        }
        let kind = if namespace.is_empty() { "ClusterRole" } else { "Role" };
        let mut metadata = json!({"name": name});
        if !namespace.is_empty() {
            metadata["namespace"] = namespace.into();
        }
        let api = "rbac.authorization.k8s.io";
        let role = json!({"apiVersion": format!("{api}/v1"), "kind": kind, "metadata": metadata, "rules": rules});
        let binding = json!({"apiVersion": format!("{api}/v1"), "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": api, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.features.controller_namespace}]});
        vec![role, binding]
    }
}

/// Stands for all namespaces.
const ALL: &str = "*";

impl Features {
    /// Refuses rights on Secrets of all namespaces that nobody asked for by a word of its own.
    pub(super) fn check(&self, is_for_any: bool) -> Result<(), Failure> {
        let needs_names = Feature::all().into_iter().filter(|feature| self.is_on(*feature)).flat_map(Feature::rights);
        let needs_names = needs_names.into_iter().any(|right| right.place == RoleScope::Certificates);
        if !needs_names || is_for_any || !self.certificate_namespace.is_empty() {
            return Ok(());
        }
        Err(Failure::usage(
            "--issuer needs rights on Secrets: name the namespaces of the Gateways and ListenerSets whose certificates are made with \
             --certificate-namespace (`kubectl get gateways,listenersets -A` lists them); --certificate-namespace '*' grants the Secrets of all namespaces",
        ))
    }

    /// The namespaces that are named one by one.
    fn named_namespaces(&self) -> impl Iterator<Item = &String> {
        let is_all = self.certificate_namespace.iter().any(|name| name == ALL);
        self.certificate_namespace.iter().filter(move |_| !is_all)
    }

    /// Every right that is needed, with the namespace it is needed in; nothing where it is needed everywhere.
    pub(super) fn rights(&self) -> Vec<(Right, Option<&str>)> {
        let own = Some(self.controller_namespace.as_str());
        let named = self.named_namespaces().map(|name| (RoleScope::Certificates, Some(name.as_str())));
        let places = [(RoleScope::Everywhere, None), (RoleScope::Own, own)].into_iter().chain(named);
        places
            .flat_map(|(place, namespace)| self.rights_in(place).into_iter().map(move |right| (right, namespace)))
            .collect()
    }

    fn is_on(&self, feature: Feature) -> bool {
        match feature {
            Feature::Routes(kind) => self.source.is_empty() || self.source.contains(&kind),
            Feature::Admission => self.admission,
            Feature::DnsEndpoints => self.provider.is_some_and(ProviderKind::is_of_cluster),
            Feature::Secrets => self.issuer.iter().any(|issuer| *issuer != IssuerFlag::CertManager),
            Feature::CertManager => self.issuer.contains(&IssuerFlag::CertManager),
            Feature::Page => self.page == PageMode::Cluster,
            Feature::Tree | Feature::Policies | Feature::Events | Feature::LeaderElection => true,
        }
    }

    /// The rights that hold in a place.
    fn rights_in(&self, place: RoleScope) -> Vec<Right> {
        let features = Feature::all().into_iter().filter(|feature| self.is_on(*feature));
        features.flat_map(Feature::rights).filter(|right| self.place(right) == place).collect()
    }

    /// The rules that hold in a place, one for each right.
    fn rules(&self, place: RoleScope) -> Vec<Value> {
        self.rights_in(place).iter().map(rule).collect()
    }

    /// Where a right holds here.
    fn place(&self, right: &Right) -> RoleScope {
        match right.place {
            RoleScope::Certificates if self.named_namespaces().next().is_none() => RoleScope::Everywhere,
            place => place,
        }
    }
}

fn rule(right: &Right) -> Value {
    json!({"apiGroups": [right.group], "resources": [right.resource], "verbs": right.verbs})
}

/// The rules as templates of the chart: `gatepost.rules.everywhere`, `.certificates` and `.own`.
fn helm() -> String {
    let mut text = String::from("{{/* Written by `gatepost rbac -o helm`; `make bless` writes it anew. */}}\n");
    let places =
        [(RoleScope::Everywhere, "everywhere"), (RoleScope::Certificates, "certificates"), (RoleScope::Own, "own")];
    for (place, name) in places {
        text.push_str(&format!("{{{{- define \"gatepost.rules.{name}\" -}}}}\n"));
        for feature in Feature::all() {
            let rights: Vec<_> = feature.rights().into_iter().filter(|right| right.place == place).collect();
            text.push_str(&guarded(feature, &rights));
        }
        text.push_str("{{- end }}\n");
    }
    text
}

/// Rules under the condition of their feature.
fn guarded(feature: Feature, rights: &[Right]) -> String {
    let rules: String = rights.iter().map(|right| format!("- {}\n", rule(right))).collect();
    match condition(feature) {
        _ if rights.is_empty() => String::new(),
        None => rules,
        Some(condition) => format!("{{{{- if {condition} }}}}\n{rules}{{{{- end }}}}\n"),
    }
}

/// When a feature is on, in the words of the chart's settings.
fn condition(feature: Feature) -> Option<String> {
    match feature {
        Feature::Tree | Feature::Policies | Feature::Events | Feature::LeaderElection => None,
        Feature::Routes(kind) => {
            let source = kind.source();
            Some(format!("or (not .Values.settings.source) (has {source:?} (.Values.settings.source | default list))"))
        }
        Feature::Admission => Some(".Values.admission.enabled".to_owned()),
        Feature::DnsEndpoints => {
            Some(format!("eq (.Values.settings.provider | default \"\") \"{}\"", dnsendpoint::KIND.name))
        }
        Feature::Secrets => {
            Some("has (.Values.settings.issuer | default \"\") (list \"embedded\" \"acme\")".to_owned())
        }
        Feature::Page => Some(".Values.page.enabled".to_owned()),
        Feature::CertManager => {
            let is_usual = "eq (.Values.settings.issuer | default \"\") \"cert-manager\"";
            Some(format!("or .Values.rbac.certManager ({is_usual})"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn objects(words: &[&str]) -> Vec<Value> {
        let cli = Cli::try_parse_from(["gatepost", "rbac"].iter().chain(words)).expect("these words are a command");
        match cli.command {
            crate::cli::Command::Rbac(rbac) => rbac.objects(),
            other => panic!("{other:?}"),
        }
    }

    fn resources(object: &Value) -> Vec<&str> {
        object["rules"].as_array().into_iter().flatten().filter_map(|rule| rule["resources"][0].as_str()).collect()
    }

    #[test]
    fn a_feature_that_is_off_asks_for_nothing() {
        let plain = objects(&["--source", "gateway-httproute"]);
        let cluster = resources(&plain[1]);
        assert!(cluster.contains(&"httproutes") && !cluster.contains(&"grpcroutes"));
        assert!(!plain.iter().any(|object| resources(object).iter().any(|r| ["secrets", "dnsendpoints"].contains(r))));
    }

    #[test]
    fn secrets_of_named_namespaces_are_no_cluster_wide_right() {
        let place = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["namespace"]).replace('"', "");
        let with_secrets = |objects: &[Value]| -> Vec<String> {
            objects.iter().filter(|object| resources(object).contains(&"secrets")).map(place).collect()
        };
        let named = objects(&["--issuer", "acme", "--certificate-namespace", "infra,gatepost"]);
        assert_eq!(with_secrets(&named), ["Role gatepost", "Role infra", "Role gatepost"]);
        let all = objects(&["--issuer", "embedded", "--certificate-namespace", "*"]);
        assert_eq!(with_secrets(&all), ["ClusterRole null", "Role gatepost"]);
        let identity = |o: &Value| format!("{} {}", place(o), o["metadata"]["name"]);
        let names: std::collections::BTreeSet<_> = named.iter().map(identity).collect();
        assert_eq!(names.len(), named.len(), "two objects have one name: {names:?}");
    }

    #[test]
    fn what_is_asked_of_cert_manager_reads_secrets_and_writes_none() {
        let objects = objects(&["--issuer", "cert-manager", "--certificate-namespace", "infra"]);
        assert!(resources(&objects[1]).ends_with(&["certificates", "certificaterequests"]));
        let with_secrets: Vec<_> = objects.iter().filter(|object| resources(object).contains(&"secrets")).collect();
        assert_eq!(with_secrets.len(), 1);
        assert_eq!(with_secrets[0]["metadata"]["namespace"], "infra");
        assert_eq!(with_secrets[0]["rules"][0]["verbs"], json!(["get"]));
    }

    #[test]
    fn rights_on_the_secrets_of_all_namespaces_are_given_by_name_only() {
        for issuer in ["embedded", "acme", "cert-manager"] {
            let parse =
                |words: &[&str]| Cli::try_parse_from(["gatepost", "rbac", "--issuer", issuer].iter().chain(words));
            let run = |words: &[&str]| match parse(words).expect("these words are a command").command {
                crate::cli::Command::Rbac(rbac) => rbac.run(&mut Vec::new()),
                other => panic!("{other:?}"),
            };
            let Err(Failure::Usage(error)) = run(&[]) else { panic!("{issuer} without namespaces is refused") };
            assert!(error.to_string().contains("--certificate-namespace"), "{error}");
            assert!(
                run(&["--certificate-namespace", "infra"]).is_ok() && run(&["--certificate-namespace", "*"]).is_ok()
            );
        }
    }

    #[test]
    fn a_page_for_people_of_the_cluster_asks_for_reviews() {
        let reviews = |words: &[&str]| -> Vec<String> {
            let objects = objects(words);
            let named = resources(&objects[1]).into_iter().filter(|resource| resource.ends_with("reviews"));
            named.map(str::to_owned).collect()
        };
        assert_eq!(reviews(&["--page", "cluster"]), ["tokenreviews", "subjectaccessreviews"]);
        assert!(reviews(&["--page", "any"]).is_empty() && reviews(&[]).is_empty());
    }

    #[test]
    fn records_as_objects_need_a_right_of_their_own() {
        let objects = objects(&["--provider", "dnsendpoint"]);
        assert!(!resources(&objects[1]).contains(&"dnsendpoints"), "they are written in one namespace");
        assert!(resources(&objects[3]).contains(&"dnsendpoints"));
        assert_eq!(objects[3]["metadata"]["namespace"], "gatepost");
    }
}
