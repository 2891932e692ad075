//! What is said of certificates: a line of log for what happens, numbers, and names that have none.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_core::model::Str;
use gatepost_tls::certifier::{State, What};
use tracing::{info, warn};

use crate::run::Pass;

/// Names without a certificate that are told in `/readyz`; the rest is only counted.
const MOST_TOLD: usize = 10;

/// What is known of certificates since the last pass, and what is counted since the start.
#[derive(Default)]
pub(super) struct IssuanceLog {
    happened: BTreeMap<What, u64>,
    held: usize,
    open: usize,
    soonest: Option<i64>,
    /// Names without a certificate, by reason.
    missing: BTreeMap<&'static str, usize>,
    lines: Vec<String>,
    told: BTreeSet<String>,
}

impl IssuanceLog {
    pub(super) fn take(&mut self, pass: &Pass) {
        for news in &pass.news {
            *self.happened.entry(news.what).or_default() += 1;
            let (secret, what, detail) = (news.secret.to_string(), news.what.as_str(), news.text.as_str());
            match news.what {
                What::Failed | What::Trouble => warn!(secret, what, detail, "certificate"),
                What::Ordered | What::Issued | What::LetGo => info!(secret, what, detail, "certificate"),
            }
        }
        let states = &pass.issuing;
        self.held = states.iter().filter(|state| state.held.is_some()).count();
        self.open = states.iter().filter(|state| state.order.is_some()).count();
        self.soonest = states.iter().filter_map(|state| Some(state.held.as_ref()?.not_after)).min();
        self.miss(pass);
    }

    /// Names that have no certificate: each is logged once for as long as its reason stays so.
    fn miss(&mut self, pass: &Pass) {
        (self.missing, self.lines) = (BTreeMap::new(), pass.notes.clone());
        let mut told = BTreeSet::new();
        for (state, name) in pass.issuing.iter().flat_map(|state| state.wanted.iter().map(move |name| (state, name))) {
            let Some((reason, why)) = state.obstacle(name) else { continue };
            *self.missing.entry(reason.name()).or_default() += 1;
            let line = format!("{} {name} {}", state.secret, reason.name());
            if !self.told.contains(&line) {
                let (secret, hostname) = (state.secret.to_string(), &**name);
                info!(secret, hostname, reason = reason.name(), detail = why, "no certificate yet");
            }
            self.note(state, name, &why);
            told.insert(line);
        }
        self.told = told;
    }

    fn note(&mut self, state: &State, name: &Str, why: &str) {
        if self.lines.len() < MOST_TOLD {
            self.lines.push(format!("{name} has no certificate in Secret {}: {why}", state.secret));
        }
    }

    /// What is to be known though names are published.
    pub(super) fn notes(&self) -> &[String] {
        &self.lines
    }

    /// OpenMetrics.
    pub(super) fn metrics(&self) -> String {
        let mut text = String::new();
        for (name, count) in [("certificates_held", self.held), ("certificate_orders_open", self.open)] {
            text += &format!("# TYPE gatepost_{name} gauge\ngatepost_{name} {count}\n");
        }
        text += "# TYPE gatepost_certificate_names_missing gauge\n";
        for (reason, count) in &self.missing {
            text += &format!("gatepost_certificate_names_missing{{reason=\"{reason}\"}} {count}\n");
        }
        text += "# TYPE gatepost_certificate_soonest_expiry_seconds gauge\n";
        if let Some(soonest) = self.soonest {
            text += &format!("gatepost_certificate_soonest_expiry_seconds {soonest}\n");
        }
        text += "# TYPE gatepost_certificate_events counter\n";
        for what in What::ALL {
            let count = self.happened.get(&what).copied().unwrap_or_default();
            text += &format!("gatepost_certificate_events_total{{what=\"{}\"}} {count}\n", what.as_str());
        }
        text
    }
}
