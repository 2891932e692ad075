//! Secrets on the command line: as a flag, a variable or a file, and never shown.

use std::fmt;
use std::path::PathBuf;

use crate::cli::Failure;

/// The value of a flag that is never shown.
#[derive(Clone)]
pub(in crate::cli) struct SecretFlag(String);

/// The largest file with a secret.
const LARGEST: u64 = 64 << 10;

impl SecretFlag {
    /// Takes any text.
    pub(super) fn parse(text: &str) -> Result<SecretFlag, String> {
        Ok(SecretFlag(text.to_owned()))
    }
}

impl fmt::Debug for SecretFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A secret from its flag or from a file; both at once is an error.
pub(super) fn secret(
    flag: &str,
    text: &Option<SecretFlag>,
    file: &Option<PathBuf>,
) -> Result<Option<Vec<u8>>, Failure> {
    match (text, file) {
        (Some(_), Some(_)) => Err(Failure::usage(format!("{flag} and {flag}-file exclude each other: keep one"))),
        (Some(SecretFlag(text)), None) => Ok(Some(text.clone().into_bytes())),
        (None, Some(path)) => {
            let failed = |error: String| Failure::usage(format!("{flag}-file {}: {error}", path.display()));
            let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
            if size > LARGEST {
                return Err(failed("is larger than 64 KiB, so it is not a secret".to_owned()));
            }
            std::fs::read(path).map(Some).map_err(|error| failed(error.to_string()))
        }
        (None, None) => Ok(None),
    }
}
