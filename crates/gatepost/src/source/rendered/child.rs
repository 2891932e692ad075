//! Runs a program to its end, within bounds of time and output.

use std::ffi::OsStr;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// What a program may use.
pub(super) struct ChildLimits {
    /// How long it may take.
    pub(super) time: Duration,
    /// How many bytes it may write on standard output.
    pub(super) output: u64,
    /// How many bytes of standard error are kept.
    pub(super) errors: u64,
}

/// How often it is looked whether a program whose output ended has ended itself.
const PAUSE: Duration = Duration::from_millis(5);

/// What a program writes on standard output; the reason where it fails, takes too long or writes too much.
pub(super) fn run(words: &[&OsStr], limits: &ChildLimits) -> Result<Vec<u8>, String> {
    let (program, arguments) = words.split_first().ok_or("no program is named")?;
    let name = program.to_string_lossy().into_owned();
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{name} cannot be started: {error}"))?;
    let mut running = Running { child, deadline: Instant::now() + limits.time };
    let (output, errors) = running.written(limits).map_err(|problem| format!("{name} {problem}"))?;
    let status = running.ended().map_err(|problem| format!("{name} {problem}"))?;
    match status.success() {
        true => Ok(output),
        false => Err(format!("{name} failed ({status}): {}", told(&errors))),
    }
}

/// A program that is ended where this is dropped before it ended by itself.
struct Running {
    child: Child,
    deadline: Instant,
}

/// One of the two outputs of a program, whole or too large.
enum Written {
    Output(Result<Vec<u8>, String>),
    Errors(Vec<u8>),
}

impl Running {
    /// Both outputs, once they ended.
    fn written(&mut self, limits: &ChildLimits) -> Result<(Vec<u8>, Vec<u8>), String> {
        let (sender, received) = channel();
        let (output, errors) = (self.child.stdout.take(), self.child.stderr.take());
        let (most, kept) = (limits.output, limits.errors);
        spawn(sender.clone(), move || Written::Output(bounded(output, most)));
        spawn(sender, move || Written::Errors(first(errors, kept)));
        let (mut output, mut errors) = (None, None);
        while output.is_none() || errors.is_none() {
            let left = self.deadline.saturating_duration_since(Instant::now());
            match received.recv_timeout(left) {
                Ok(Written::Output(bytes)) => output = Some(bytes?),
                Ok(Written::Errors(bytes)) => errors = Some(bytes),
                Err(RecvTimeoutError::Timeout) => return Err(too_long(limits.time)),
                Err(RecvTimeoutError::Disconnected) => return Err("could not be read".to_owned()),
            }
        }
        Ok((output.unwrap_or_default(), errors.unwrap_or_default()))
    }

    fn ended(&mut self) -> Result<ExitStatus, String> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() < self.deadline => std::thread::sleep(PAUSE),
                Ok(None) => return Err("did not end".to_owned()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn spawn(sender: Sender<Written>, read: impl FnOnce() -> Written + Send + 'static) {
    // A thread that cannot be started drops its sender, and that is noticed.
    let _ = std::thread::Builder::new().name("render".to_owned()).spawn(move || sender.send(read()));
}

fn bounded(source: Option<impl Read>, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    if let Some(source) = source {
        source.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    }
    match bytes.len() as u64 > most {
        true => Err(format!("writes more than {} MiB", most >> 20)),
        false => Ok(bytes),
    }
}

/// The first bytes; the rest is read and dropped, so that the program is not held up.
fn first(source: Option<impl Read>, kept: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut source) = source {
        let _ = source.by_ref().take(kept).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut source, &mut std::io::sink());
    }
    bytes
}

fn too_long(time: Duration) -> String {
    format!("takes longer than {} seconds", time.as_secs())
}

fn told(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let text = text.trim();
    if text.is_empty() { "it said nothing".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ChildLimits = ChildLimits { time: Duration::from_secs(60), output: 100, errors: 10 };

    fn shell(script: &str, limits: &ChildLimits) -> Result<String, String> {
        let words = ["/bin/sh", "-c", script].map(OsStr::new);
        run(&words, limits).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn output_is_given_and_failures_say_why() {
        assert_eq!(shell("echo a; echo b >&2", &LIMITS).unwrap(), "a\n");
        let failed = shell("echo 0123456789abc >&2; exit 3", &LIMITS).unwrap_err();
        assert!(failed.contains("exit status: 3") && failed.ends_with("0123456789"), "{failed}");
        assert!(shell("echo a; kill -9 $$", &LIMITS).is_err());
    }

    #[test]
    fn a_program_is_ended_that_takes_too_long_or_writes_too_much() {
        let short = ChildLimits { time: Duration::ZERO, ..LIMITS };
        assert!(shell("exec sleep 1000", &short).unwrap_err().contains("takes longer"));
        assert!(shell("exec cat /dev/zero", &LIMITS).unwrap_err().contains("writes more"));
    }
}
