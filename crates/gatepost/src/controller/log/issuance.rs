//! Log lines, metrics and notes about certificates. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::Str;
use gatepost_tls::certifier::{IssuanceEventKind, IssuanceState};
use tracing::{info, warn};

use crate::metrics::MetricSet;
use crate::run::Pass;

/// Maximum number of names without a certificate listed in `/readyz`; the rest is only counted.
const MOST_LISTED: usize = 10;

/// The state of certificates as of the last pass, and counters since the start.
#[derive(Default)]
pub(super) struct IssuanceLog {
    happened: BTreeMap<IssuanceEventKind, u64>,
    held: usize,
    open: usize,
    soonest: Option<i64>,
    /// Number of names without a certificate, by reason.
    missing: BTreeMap<&'static str, usize>,
    lines: Vec<String>,
    logged: BTreeSet<String>,
}

impl IssuanceLog {
    pub(super) fn take(&mut self, pass: &Pass) {
        for news in &pass.news {
            *self.happened.entry(news.what).or_default() += 1;
            let (secret, what, detail) = (news.secret.to_string(), news.what.as_str(), news.text.as_str());
            match news.what {
                IssuanceEventKind::Failed | IssuanceEventKind::Trouble => warn!(secret, what, detail, "certificate"),
                IssuanceEventKind::Ordered | IssuanceEventKind::Issued | IssuanceEventKind::LetGo => {
                    info!(secret, what, detail, "certificate")
                }
            }
        }
        let states = &pass.issuing;
        self.held = states.iter().filter(|state| state.held.is_some()).count();
        self.open = states.iter().filter(|state| state.order.is_some()).count();
        self.soonest = states.iter().filter_map(|state| Some(state.held.as_ref()?.not_after)).min();
        self.miss(pass);
    }

    /// Logs names without a certificate, each once while its reason lasts.
    fn miss(&mut self, pass: &Pass) {
        (self.missing, self.lines) = (BTreeMap::new(), pass.notes.clone());
        let mut logged = BTreeSet::new();
        for (state, name) in pass.issuing.iter().flat_map(|state| state.wanted.iter().map(move |name| (state, name))) {
            let Some((reason, why)) = state.obstacle(name) else { continue };
            *self.missing.entry(reason.name()).or_default() += 1;
            let line = format!("{} {name} {}", state.secret, reason.name());
            if !self.logged.contains(&line) {
                let (secret, hostname) = (state.secret.to_string(), &**name);
                info!(secret, hostname, reason = reason.name(), detail = why, "no certificate yet");
            }
            self.note(state, name, &why);
            logged.insert(line);
        }
        self.logged = logged;
    }

    fn note(&mut self, state: &IssuanceState, name: &Str, why: &str) {
        if self.lines.len() < MOST_LISTED {
            self.lines.push(format!("{name} has no certificate in Secret {}: {why}", state.secret));
        }
    }

    /// Notes for people that do not affect readiness.
    pub(super) fn notes(&self) -> &[String] {
        &self.lines
    }

    /// Adds the metrics of certificates.
    pub(super) fn add_metrics(&self, metrics: &mut MetricSet) {
        metrics.gauge("certificates_held", "Certificates that are in their Secrets.", self.held);
        metrics.gauge("certificate_orders_open", "Orders for certificates that are under way.", self.open);
        let missing = self.missing.iter().map(|(reason, count)| (*reason, *count));
        let help = "Names without a certificate, by reason.";
        metrics.whole_gauges(("certificate_names_missing", help), "reason", missing);
        let help = "When the first certificate expires, in seconds since 1970.";
        metrics.known_gauge("certificate_soonest_expiry_seconds", help, self.soonest);
        let happened = IssuanceEventKind::ALL
            .into_iter()
            .map(|what| (what.as_str(), self.happened.get(&what).copied().unwrap_or(0)));
        metrics.counters(("certificate_events", "Events of certificates since the start."), "what", happened);
    }
}
