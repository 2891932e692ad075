//! Certificates as text: names wanted, names held, expiry, order, challenge, last error.

use gatepost_core::reason::Reason;
use gatepost_tls::certifier::{IssuanceState, OpenOrder};

use super::explanation::date;
use super::inert_line;

/// What is to be said about the certificate of one Secret, for one of its names.
pub fn walk(state: &IssuanceState, hostname: &str) -> Vec<String> {
    let mut lines = vec![format!("  {} is to hold {}", state.secret, state.wanted.join(", "))];
    lines.push(format!("    held         {}", held(state)));
    if let Some(renewal) = state.renewal.filter(|_| state.held.is_some()) {
        lines.push(format!("    renewal      about {}", date(renewal)));
    }
    lines.extend(state.order.iter().flat_map(order));
    if let Some((reason, why)) = state.obstacle(hostname) {
        lines.push(format!("    {hostname} has no certificate: {why} {}", code(reason)));
    }
    for (name, why, until) in state.failing.iter().filter(|(name, ..)| **name != *hostname) {
        lines.push(format!("    failing      {name} until {}: {why}", date(*until)));
    }
    lines.iter().map(|line| inert_line(line)).collect()
}

fn held(state: &IssuanceState) -> String {
    match (&state.held, &state.unusable) {
        (Some(leaf), _) if leaf.not_after <= state.now => format!("expired on {}", date(leaf.not_after)),
        (Some(leaf), _) => {
            format!("{} until {}, issued by {}", leaf.names.join(", "), date(leaf.not_after), leaf.issuer)
        }
        (None, Some(why)) => format!("nothing that can serve: {why}"),
        (None, None) => "nothing yet".to_owned(),
    }
}

fn order(order: &OpenOrder) -> Vec<String> {
    let place = order.url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
    let mut lines = vec![format!("    order        {} for {}{place}", order.step, order.names.join(", "))];
    for challenge in &order.challenges {
        lines.push(format!("    challenge    {} TXT {}", challenge.owner(), challenge.value));
    }
    lines.extend(order.trouble.iter().map(|trouble| format!("    last error   {trouble}")));
    lines
}

fn code(reason: Reason) -> String {
    let row = reason.row();
    format!("[{} {}]", row.code, row.name)
}
