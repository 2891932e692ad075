//! Why work could not go on, for the modules below the command line.
//!
//! The command line turns it into a message and an exit status; nothing here knows either.

/// Settings that cannot be used, or something that cannot be read.
#[derive(Debug)]
pub enum RunError {
    /// A flag, a variable or the settings file is wrong: somebody has to change it.
    Usage(anyhow::Error),
    /// Something could not be read.
    Unreadable(anyhow::Error),
}

impl RunError {
    /// Wrong settings, in one sentence.
    pub fn usage(message: impl Into<String>) -> Self {
        RunError::Usage(anyhow::anyhow!(message.into()))
    }
}

impl From<std::io::Error> for RunError {
    fn from(error: std::io::Error) -> Self {
        RunError::Unreadable(error.into())
    }
}
