//! A clock that is wrong for one process only: a library that stands before the system's and moves the time of day.
//!
//! How long something takes is measured by another clock, which nobody can set, and which is left as it is.

use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::servers::{Scratch, find, output};

/// What the library does.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    const char *moved = clock == CLOCK_REALTIME ? getenv("CLOCK_MOVED") : NULL;
    if (!failed && moved) now->tv_sec += atol(moved);
    return failed;
}
"#;

/// The library.
pub struct MovedClock {
    folder: Scratch,
}

impl MovedClock {
    /// Whether one can be made here: Rust links with the same compiler.
    pub fn is_wanted() -> bool {
        cfg!(target_os = "linux") && (find("cc").is_some() || std::env::var_os("CI").is_some())
    }

    /// Makes it.
    pub fn build() -> io::Result<MovedClock> {
        let clock = MovedClock { folder: Scratch::new("clock")? };
        let source = clock.folder.path().join("clock.c");
        std::fs::write(&source, SOURCE)?;
        output(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(clock.library()).arg(source))?;
        Ok(clock)
    }

    /// The variables of a process whose clock is so many seconds ahead.
    pub fn ahead(&self, seconds: i64) -> [(&'static str, String); 2] {
        [("LD_PRELOAD", self.library().display().to_string()), ("CLOCK_MOVED", seconds.to_string())]
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("clock.so")
    }
}
