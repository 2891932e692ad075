//! Running the program as people run it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The built program.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    environment: Vec<(String, String)>,
}

/// What the program said.
#[derive(Clone, Debug)]
pub struct ProgramOutput {
    /// Exit status; -1 where a signal ended it.
    pub exit: i32,
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub errors: String,
}

impl Program {
    /// The program at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Program { path: path.into(), environment: Vec::new() }
    }

    /// The same with a variable in its environment, which is empty otherwise.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it with these words, with `input` on standard input.
    pub fn run(&self, words: &[String], input: &str) -> Result<ProgramOutput, String> {
        self.run_in(Path::new("."), words, input)
    }

    /// The same, from another directory.
    pub fn run_in(&self, directory: &Path, words: &[String], input: &str) -> Result<ProgramOutput, String> {
        let failed = |error| format!("{}: {error}", self.path.display());
        let mut child = Command::new(&self.path)
            .args(words)
            .current_dir(directory)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        if let Some(mut pipe) = child.stdin.take() {
            // A program that does not read its input is no failure of the test bed.
            let _ = pipe.write_all(input.as_bytes());
        }
        let done = child.wait_with_output().map_err(failed)?;
        Ok(ProgramOutput {
            exit: done.status.code().unwrap_or(-1),
            output: String::from_utf8_lossy(&done.stdout).into_owned(),
            errors: String::from_utf8_lossy(&done.stderr).into_owned(),
        })
    }
}

/// A command line in words: parted at spaces, except inside single quotes.
pub fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut inside = false;
    let mut fresh = true;
    for c in line.chars() {
        if c == ' ' && !inside {
            fresh = true;
            continue;
        }
        if std::mem::take(&mut fresh) {
            words.push(String::new());
        }
        match words.last_mut() {
            Some(word) if c != '\'' => word.push(c),
            _ => inside = !inside,
        }
    }
    words
}

#[cfg(test)]
mod tests {
    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(super::words("route  -H 'x-a: 1' http://a/"), ["route", "-H", "x-a: 1", "http://a/"]);
        assert_eq!(super::words("a '' b"), ["a", "", "b"]);
    }
}
