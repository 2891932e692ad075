//! Running the program as people run it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The built program.
#[derive(Clone, Debug)]
pub struct Program(PathBuf);

/// What the program said.
#[derive(Clone, Debug)]
pub struct Answer {
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
        Program(path.into())
    }

    /// Runs it with these words in an environment without settings, with `input` on standard input.
    pub fn run(&self, words: &[String], input: &str) -> Result<Answer, String> {
        self.run_in(Path::new("."), words, input)
    }

    /// The same, from another directory.
    pub fn run_in(&self, directory: &Path, words: &[String], input: &str) -> Result<Answer, String> {
        let failed = |error| format!("{}: {error}", self.0.display());
        let mut child = Command::new(&self.0)
            .args(words)
            .current_dir(directory)
            .env_clear()
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
        Ok(Answer {
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
        match c {
            '\'' => inside = !inside,
            ' ' if !inside => fresh = true,
            _ => {
                if std::mem::take(&mut fresh) {
                    words.push(String::new());
                }
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(super::words("route  -H 'x-a: 1' http://a/"), ["route", "-H", "x-a: 1", "http://a/"]);
    }
}
