//! The flags of health checks.

use clap::Args;

use crate::health::{PER_ADDRESS, ProbeClient, ProbeLimits, Prober};
use crate::run::Pipeline;

/// How addresses are probed.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Health checks")]
pub(in crate::cli) struct ProbingFlags {
    /// How many probes of health checks run at once
    #[arg(long, value_name = "NUMBER", default_value = "64", value_parser = clap::value_parser!(u16).range(1..=4096), env = "GATEPOST_PROBE_CONCURRENCY")]
    probe_concurrency: u16,
}

impl ProbingFlags {
    /// Starts the task that probes; it begins with what the pipeline knows.
    pub(in crate::cli) fn start(&self, pipeline: &Pipeline) -> Prober {
        let client = ProbeClient::new(pipeline.publishing.allow_inward_targets);
        let limits = ProbeLimits { all: self.probe_concurrency.into(), per_address: PER_ADDRESS };
        Prober::start(client, limits, pipeline.health.clone())
    }
}
