//! `gatepost crds`: generated from the same types that policies are written with.

use std::io::Write;

use clap::{Args, ValueEnum};
use gatepost_objects::crds;
use serde_json::json;

use super::{Ending, Failure};
use crate::view::write_json;

/// Print the CustomResourceDefinitions of DNSPolicy, TLSPolicy and HostnameGrant
///
/// For a cluster: gatepost crds | kubectl apply --server-side -f -
#[derive(Args, Debug)]
pub(super) struct Crds {
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    output: CrdsFormat,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum CrdsFormat {
    /// One document for each kind
    #[default]
    Yaml,
    /// One List
    Json,
}

impl Crds {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Ending, Failure> {
        match self.output {
            CrdsFormat::Yaml => out.write_all(crds::yaml().map_err(Failure::usage)?.as_bytes())?,
            CrdsFormat::Json => {
                write_json(out, &json!({"apiVersion": "v1", "kind": "List", "items": crds::definitions()}))?
            }
        }
        Ok(Ending::Done)
    }
}
