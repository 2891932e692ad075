//! Says on standard error what takes long: on a terminal in one line that is taken away again, elsewhere in a line every few seconds.
//!
//! What takes less than two seconds says nothing. Only commands that run once use this: long-lived ones have a log.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What takes longer than this is told.
const LONG: Duration = Duration::from_secs(2);

/// A part of the work of a command; it ends when this is dropped.
pub struct LongWork {
    end: Option<Sender<()>>,
    teller: Option<JoinHandle<()>>,
}

impl LongWork {
    /// The work begins, in words such as `reading the files`.
    pub fn begin(work: &'static str) -> LongWork {
        let is_terminal = std::io::stderr().is_terminal();
        let pauses = Pauses { first: LONG, next: Duration::from_secs(if is_terminal { 1 } else { 5 }) };
        LongWork::telling(work, is_terminal, pauses, std::io::stderr())
    }

    fn telling(work: &'static str, is_terminal: bool, pauses: Pauses, out: impl Write + Send + 'static) -> LongWork {
        let (end, ended) = channel();
        let teller = std::thread::Builder::new().name("progress".to_owned());
        let teller = teller.spawn(move || tell(work, is_terminal, &pauses, &ended, out)).ok();
        LongWork { end: Some(end), teller }
    }
}

impl Drop for LongWork {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(teller) = self.teller.take() {
            let _ = teller.join();
        }
    }
}

/// How long nothing is said.
struct Pauses {
    first: Duration,
    next: Duration,
}

/// Tells about the work until it has ended. Nobody is harmed if that cannot be written.
fn tell(work: &str, is_terminal: bool, pauses: &Pauses, ended: &Receiver<()>, mut out: impl Write) {
    let (begun, mut pause, mut is_told) = (Instant::now(), pauses.first, false);
    let (before, after) = if is_terminal { ("\r", "\x1b[K") } else { ("", "\n") };
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let _ = write!(out, "{before}{work}, {} s so far{after}", begun.elapsed().as_secs());
        let _ = out.flush();
        (pause, is_told) = (pauses.next, true);
    }
    if is_terminal && is_told {
        let _ = write!(out, "\r\x1b[K");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes on what is written.
    struct Heard(Sender<String>);

    impl Write for Heard {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn heard(is_terminal: bool) -> String {
        let (told, heard) = channel();
        let pauses = Pauses { first: Duration::ZERO, next: Duration::ZERO };
        let work = LongWork::telling("reading the files", is_terminal, pauses, Heard(told));
        let mut text = String::new();
        while text.matches("so far").count() < 2 {
            text += &heard.recv().unwrap();
        }
        drop(work);
        text + &heard.iter().collect::<String>()
    }

    #[test]
    fn a_terminal_has_one_line_that_is_taken_away() {
        let text = heard(true);
        assert!(text.starts_with("\rreading the files, 0 s so far\x1b[K\rreading"), "{text:?}");
        assert!(text.ends_with("\x1b[K\r\x1b[K"), "{text:?}");
    }

    #[test]
    fn elsewhere_there_are_lines() {
        let text = heard(false);
        assert!(text.starts_with("reading the files, 0 s so far\nreading the files, 0 s so far\n"), "{text:?}");
        assert!(text.ends_with("so far\n") && !text.contains('\r'), "{text:?}");
    }

    #[test]
    fn what_is_quick_says_nothing() {
        let (told, heard) = channel();
        let pauses = Pauses { first: Duration::MAX, next: Duration::MAX };
        drop(LongWork::telling("reading the files", true, pauses, Heard(told)));
        assert!(heard.recv().is_err());
    }
}
