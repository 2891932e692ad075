//! PEM texts as blocks of bytes: certificates and keys as Secrets and files hold them.
//!
//! Only takes texts apart. Whether a block holds what its label says is for those who asked. A block has no debug output, for
//! it may be a private key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// One block of a PEM text.
pub struct Block<'a> {
    /// What it says to hold: `CERTIFICATE`.
    pub label: &'a str,
    body: &'a str,
}

impl Block<'_> {
    /// What stands between the two lines, decoded; nothing where it is not base64 or empty.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let is_header = |line: &&str| line.contains(':') || line.trim().is_empty();
        let lines = self.body.lines().skip_while(is_header);
        let compact: Vec<u8> = lines.flat_map(str::bytes).filter(|b| !b.is_ascii_whitespace()).collect();
        STANDARD.decode(compact).ok().filter(|bytes| !bytes.is_empty())
    }
}

/// The blocks of a PEM text, one after the other; text around them is passed over.
pub fn blocks(pem: &str) -> impl Iterator<Item = Block<'_>> {
    let mut rest = pem;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(BEGIN)?;
        let (label, after) = after.split_once("-----")?;
        let (body, after) = after.split_once(END)?;
        rest = after.strip_prefix(label)?.strip_prefix("-----")?;
        Some(Block { label, body })
    })
}
