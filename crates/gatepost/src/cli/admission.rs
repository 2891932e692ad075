//! `gatepost admission`: the policies that refuse hostnames which HostnameGrants give to others, and what they read.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gatepost_core::publication::PublicationSettings;
use gatepost_objects::render;
use serde_json::Value;

use super::{Ending, Failure, Input, flags};
use crate::admission::{self, AdmissionNames};
use crate::source::{Objects, is_unreadable};

/// Print ValidatingAdmissionPolicies that enforce HostnameGrants
///
/// With them the API server refuses a Route, Gateway or ListenerSet with a hostname that a HostnameGrant gives to other
/// namespaces, when it is written, and says which grant decides. Also refused are targets of annotations that point
/// inwards. Without them Gatepost publishes nothing for such hostnames all the same; the policies tell of it earlier.
///
/// An object is judged by what is written in it, a wildcard as a name of its own. Of an update only added hostnames are
/// judged, so every object can be repaired and deleted. A Route without hostnames, and names of --fqdn-template, are
/// decided by the controller alone.
///
/// If an expression fails, the object is refused (failurePolicy Fail), so that no object can be written that costs too
/// much to judge. If the ConfigMap is missing, nothing is refused (parameterNotFoundAction Allow).
/// Needs Kubernetes 1.31.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Admission {
    /// Instead print the ConfigMap that the policies read, from the HostnameGrants in a file, a directory or standard
    /// input (`-`); may be repeated
    #[arg(short = 'f', long = "filename", value_name = "PATH", env = "GATEPOST_FILENAME", value_delimiter = ',')]
    files: Vec<PathBuf>,
    /// First part of the names of all objects; the --lease of the controller that keeps the ConfigMap
    #[arg(long, default_value = "gatepost", value_parser = label, env = "GATEPOST_LEASE")]
    name: String,
    /// Namespace of the ConfigMap, which is the controller's; only who administers the cluster may write there
    #[arg(long, value_name = "NAMESPACE", default_value = "gatepost", value_parser = label, env = "GATEPOST_CONTROLLER_NAMESPACE")]
    controller_namespace: String,
    /// Namespace whose Gateways and ListenerSets may listen for every hostname, such as that of shared Gateways; its
    /// Routes are judged all the same, but for those with which cert-manager answers challenges; may be repeated
    #[arg(long, value_name = "NAMESPACE", value_parser = label, env = "GATEPOST_PLATFORM_NAMESPACE", value_delimiter = ',', conflicts_with = "files")]
    platform_namespace: Vec<String>,
    /// Refuse hostnames that no HostnameGrant covers, as the controller's flag does
    #[arg(long, requires = "files", env = "GATEPOST_REQUIRE_GRANTS")]
    require_grants: bool,
    /// Admit targets of annotations that point inwards, as the controller's flag does
    #[arg(long, requires = "files", env = "GATEPOST_ALLOW_INWARD_TARGETS")]
    allow_inward_targets: bool,
    /// The one prefix of annotations, as the controller's flag has it
    #[arg(long, value_name = "PREFIX", value_parser = flags::prefix, requires = "files", env = "GATEPOST_ANNOTATION_PREFIX")]
    annotation_prefix: Option<String>,
}

const AFTER_HELP: &str = "\
The policies refuse what HostnameGrants give to other namespaces. To set them up:
  1. Have the grants where the policies read them, in one ConfigMap: give the
     controller --admission, or print it from files with each change:
       gatepost admission -f grants/ | kubectl apply --server-side -f -
  2. Install the policies, with the namespaces of shared Gateways:
       gatepost admission --platform-namespace infra |
         kubectl apply --server-side -f -

In the chart: admission.enabled and admission.platformNamespaces.";

impl Admission {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        let text = match self.files.is_empty() {
            true => self.names().policies(&self.platform_namespace),
            false => render::yaml(&[self.parameters()?]).map_err(Failure::usage)?,
        };
        out.write_all(text.as_bytes())?;
        Ok(Ending::Done)
    }

    fn names(&self) -> AdmissionNames {
        AdmissionNames { name: self.name.clone(), namespace: self.controller_namespace.clone() }
    }

    /// The ConfigMap. A grant that cannot be read would leave its hostnames to everybody, so it is a failure.
    fn parameters(&self) -> Result<Value, Failure> {
        let objects = Objects::read(&Input { files: self.files.clone(), ..Input::default() })?;
        super::warn_unreadable(&objects);
        if objects.problems().iter().any(is_unreadable) {
            let why = "some of the files cannot be read, so nothing is printed: a grant that is left out lets everybody have its hostnames";
            return Err(Failure::Unreadable(anyhow::anyhow!(why)));
        }
        let mut settings = PublicationSettings {
            require_grants: self.require_grants,
            allow_inward_targets: self.allow_inward_targets,
            ..PublicationSettings::default()
        };
        if let Some(prefix) = &self.annotation_prefix {
            settings.annotation_prefixes = vec![prefix.as_str().into()];
        }
        let data = admission::parameters(objects.snapshot(), &settings)
            .map_err(|error| Failure::Unreadable(anyhow::anyhow!("{error}; `gatepost check` says what is wrong")))?;
        Ok(self.names().object(&data))
    }
}

/// A name that can be part of others, and stand in YAML as it is.
fn label(text: &str) -> Result<String, String> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label =
        (1..=63).contains(&text.len()) && text.chars().all(is_inner) && !text.starts_with('-') && !text.ends_with('-');
    if is_label { Ok(text.to_owned()) } else { Err("write lower case letters, digits and `-`, at most 63".to_owned()) }
}
