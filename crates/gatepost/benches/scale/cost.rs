//! What something costs: processor time of this thread, memory of this process, and processes of their own to measure in.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::Outcome;

/// The word that makes this program measure one thing and say it as JSON.
pub(super) const CHILD: &str = "child";

const MIB: f64 = 1024.0;

/// The processor time of this thread.
pub(super) fn now() -> Duration {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(clock).unwrap_or_default()
}

/// What a run took, in milliseconds, and what it gave.
pub(super) fn timed<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let before = now();
    let result = run();
    (milliseconds(now().saturating_sub(before)), result)
}

/// The least of several runs, in milliseconds; results are dropped outside of the time.
pub(super) fn least<T>(runs: usize, run: impl FnMut() -> T) -> f64 {
    least_within(runs, 0.0, run)
}

/// The least of so many runs, and of more until so many milliseconds have been spent.
pub(super) fn least_within<T>(runs: usize, turn: f64, mut run: impl FnMut() -> T) -> f64 {
    let (mut least, mut spent) = (f64::INFINITY, 0.0);
    for count in 1.. {
        let (cost, _) = timed(&mut run);
        (least, spent) = (cost.min(least), spent + cost);
        if count >= runs && spent >= turn {
            break;
        }
    }
    least
}

/// The least of every number that was measured twice.
pub(super) fn lesser(mut one: Value, other: &Value) -> Value {
    for (name, value) in one.as_object_mut().into_iter().flatten() {
        if let (Some(a), Some(b)) = (value.as_f64(), other[name].as_f64()) {
            *value = json!(a.min(b));
        }
    }
    one
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// What this process occupies now, in MiB.
pub(super) fn resident() -> f64 {
    status("VmRSS")
}

/// The most that this process has occupied since [`forget_peak`], in MiB.
pub(super) fn peak() -> f64 {
    status("VmHWM")
}

/// Makes the system forget the most so far. Where it cannot, the peak includes what came before.
pub(super) fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn status(field: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / MIB
}

/// Runs this program as a process that measures one thing, and reads what it says.
pub(super) fn child(words: &[&str]) -> Outcome<Value> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(CHILD).args(words);
    Ok(serde_json::from_str(&output(command)?)?)
}

/// The standard output of a command; its errors where it fails.
pub(super) fn output(mut command: Command) -> Outcome<String> {
    let done = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if !done.status.success() {
        return Err(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(String::from_utf8(done.stdout)?)
}

/// A number of an answer.
pub(super) fn number(answer: &Value, name: &str) -> Outcome<f64> {
    answer[name].as_f64().ok_or_else(|| format!("no `{name}` in {answer}").into())
}
