//! A server under a shell that ends it when the test's process is gone, however that came about.
//!
//! A test that is killed drops nothing. The shell reads from a pipe whose other end only the test holds, and kills the server
//! as soon as that end is closed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::other;

const SHELL: &str =
    r#""$@" </dev/null & server=$!; echo $server > "$PID_FILE"; cat >/dev/null; kill -9 $server; wait $server"#;

/// A server that runs.
#[derive(Debug)]
pub(super) struct Process {
    shell: Child,
    server: u32,
    log: PathBuf,
}

impl Process {
    /// Starts a program in a directory; what it says goes to `NAME.log` there.
    pub(super) fn start(name: &str, program: &Path, words: &[String], directory: &Path) -> io::Result<Process> {
        let log = directory.join(format!("{name}.log"));
        let pid = directory.join(format!("{name}.pid"));
        let _ = fs::remove_file(&pid);
        let file = File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new("sh");
        command.args(["-c", SHELL, "sh"]).arg(program).args(words).env("PID_FILE", &pid).current_dir(directory);
        let mut shell = command.stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file).spawn()?;
        match number(&pid) {
            Ok(server) => Ok(Process { shell, server, log }),
            Err(error) => {
                let _ = shell.kill();
                let _ = shell.wait();
                Err(error)
            }
        }
    }

    /// Sends a signal by its name, such as `STOP`.
    pub(super) fn signal(&self, name: &str) {
        let _ = Command::new("kill").args([&format!("-{name}"), &self.server.to_string()]).status();
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&self) -> bool {
        let state = fs::read_to_string(format!("/proc/{}/stat", self.server)).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z ")
    }

    /// What it said.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

fn number(path: &Path) -> io::Result<u32> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        match text.strip_suffix('\n').and_then(|text| text.parse().ok()) {
            Some(number) => return Ok(number),
            None if Instant::now() > end => return Err(other(format!("{} does not appear", path.display()))),
            None => sleep(Duration::from_millis(5)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Scratch;

    #[test]
    fn a_server_ends_with_its_holder() {
        let scratch = Scratch::new("process").unwrap();
        let words = ["60".to_owned()];
        let process = Process::start("sleep", Path::new("/bin/sleep"), &words, scratch.path()).unwrap();
        let file = format!("/proc/{}/stat", process.server);
        assert!(process.is_alive() && Path::new(&file).exists());
        drop(process);
        assert!(!Path::new(&file).exists());
    }
}
