//! Asking: every server about every type of every name, some at a time.

use std::sync::Arc;
use std::time::Duration;

use gatepost_core::model::Str;
use gatepost_core::publication::RecordType;
use gatepost_dns::authority::{self, ServerAnswer};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::servers::{Server, Servers};
use super::{Check, CheckedAnswer, Verdict};

/// Bounds of asking.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long one question may take.
    pub patience: Duration,
    /// How often a server that does not answer is asked.
    pub tries: usize,
    /// How many questions are open at a time.
    pub at_once: usize,
}

/// Where an answer belongs: the name, the type, the server.
type Place = (usize, usize, String);

impl Default for Limits {
    fn default() -> Self {
        Limits { patience: Duration::from_secs(3), tries: 2, at_once: 32 }
    }
}

/// Asks, and fills in what each server says.
pub async fn ask_all(checks: &mut [Check], servers: &mut Servers, limits: Limits) {
    let places = Arc::new(Semaphore::new(limits.at_once));
    let mut questions: JoinSet<(Place, Result<ServerAnswer, String>)> = JoinSet::new();
    for (i, check) in checks.iter_mut().enumerate() {
        match servers.of(&check.name).await {
            Ok((some, lost)) if some.is_empty() => check.unasked = Some(nobody(&lost)),
            Ok((some, lost)) => {
                lost.into_iter().for_each(|(label, why)| not_found(check, &label, &why));
                for (t, one) in check.types.iter().enumerate() {
                    for server in &some {
                        let place = (i, t, server.label.clone());
                        let (name, kind, places) = (check.asked.clone(), one.kind, places.clone());
                        questions.spawn(question(place, server.clone(), name, kind, places, limits));
                    }
                }
            }
            Err(why) => check.unasked = Some(why),
        }
    }
    for ((i, t, server), answer) in questions.join_all().await {
        let one = &mut checks[i].types[t];
        let verdict = one.judge(&answer);
        one.answered.push(CheckedAnswer { server, verdict, answer });
    }
    for one in checks.iter_mut().flat_map(|check| &mut check.types) {
        one.answered.sort_by(|a, b| a.server.cmp(&b.server));
    }
}

async fn question(
    place: Place,
    server: Server,
    name: Str,
    kind: RecordType,
    places: Arc<Semaphore>,
    limits: Limits,
) -> (Place, Result<ServerAnswer, String>) {
    let _place = places.acquire().await;
    let mut answer = Err("it was not asked".to_owned());
    for _ in 0..limits.tries.max(1) {
        answer = authority::ask(server.address, &name, kind, limits.patience).await;
        if answer.is_ok() {
            break;
        }
    }
    (place, answer)
}

/// A name server without an address answers nobody.
fn not_found(check: &mut Check, label: &str, why: &str) {
    for one in &mut check.types {
        let answer = Err(format!("its address could not be found out: {why}"));
        one.answered.push(CheckedAnswer { server: label.to_owned(), verdict: Verdict::Unanswered, answer });
    }
}

fn nobody(lost: &[(String, String)]) -> String {
    let told: Vec<_> = lost.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    format!("none of its name servers has an address: {}", told.join("; "))
}
