//! The TSIG key: its name, secret and algorithm, checked before anything is sent.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::tsig::{Algorithm, Key, KeyName};

use crate::provider::settings::SecretText;
use crate::provider::{ProviderError, Result};

/// The setting that holds the secret.
pub(super) const TSIG_SECRET: &str = "rfc2136-tsig-secret";

/// A TSIG key as settings have it.
#[derive(Clone, Debug)]
pub struct KeyConfig {
    /// The key's name on the server.
    pub name: String,
    /// The secret in base64.
    pub secret: SecretText,
    /// `hmac-sha256`, `hmac-sha384`, `hmac-sha512`, or `hmac-sha1` for old servers.
    pub algorithm: String,
}

impl KeyConfig {
    /// A key from its parts.
    pub fn new(name: &str, secret: &str, algorithm: &str) -> KeyConfig {
        KeyConfig { name: name.to_owned(), secret: SecretText::new(secret), algorithm: algorithm.to_owned() }
    }

    /// The key in a key file of BIND, as `tsig-keygen` writes it: `key "name" { algorithm hmac-sha256; secret "..."; };`.
    /// Nothing where the text is something else, such as a bare secret.
    pub(super) fn of_key_file(file: &SecretText) -> Option<KeyConfig> {
        let is_comment = |line: &&str| !["#", "//"].iter().any(|sign| line.trim_start().starts_with(sign));
        let text = file.reveal().lines().filter(is_comment).collect::<Vec<_>>().join(" ");
        let (name, rest) = text.trim().strip_prefix("key")?.split_once('{')?;
        let value = |word: &str| {
            let statement = rest.split(['{', '}', ';']).find_map(|part| part.trim().strip_prefix(word));
            statement.map(|value| value.trim().trim_matches('"').to_owned())
        };
        let name = name.trim().trim_matches('"');
        let key = KeyConfig::new(name, "", &value("algorithm").unwrap_or_default());
        Some(KeyConfig { secret: file.part(&value("secret")?), ..key })
    }

    /// The key, ready to sign.
    pub(super) fn build(&self) -> Result<Key> {
        let name = KeyName::from_str(self.name.trim_end_matches('.'));
        let name = name.map_err(|_| ProviderError::settings(format!("`{}` is not a name of a TSIG key", self.name)))?;
        let refusal = |what: &str| {
            ProviderError::settings(format!("the TSIG secret is {what} ({})", self.secret.flag(TSIG_SECRET)))
        };
        let secret = STANDARD.decode(self.secret.reveal().trim()).map_err(|_| refusal("not base64"))?;
        if secret.is_empty() {
            return Err(refusal("empty"));
        }
        let key = Key::new(algorithm(&self.algorithm)?, &secret, name, None, None);
        key.map_err(|_| ProviderError::settings("the TSIG key cannot be used"))
    }
}

fn algorithm(text: &str) -> Result<Algorithm> {
    let plain = text.trim_end_matches('.').to_ascii_lowercase();
    if plain.is_empty() {
        return Ok(Algorithm::Sha256);
    }
    Algorithm::from_str(&plain).map_err(|_| {
        let offered = "use hmac-sha256, hmac-sha384 or hmac-sha512 (hmac-sha1 for servers that know nothing better)";
        ProviderError::settings(format!(
            "the TSIG algorithm `{text}` is not supported; {offered} in --rfc2136-tsig-secret-alg"
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn algorithms() {
        for good in ["hmac-sha256", "HMAC-SHA512.", "hmac-sha384", "hmac-sha1", ""] {
            assert!(KeyConfig::new("k", "c2VjcmV0", good).build().is_ok(), "{good}");
        }
        for bad in ["hmac-md5", "hmac-sha224", "sha256", "hmac-md5.sig-alg.reg.int"] {
            let error = KeyConfig::new("k", "c2VjcmV0", bad).build().unwrap_err().to_string();
            assert!(error.contains(bad) && error.contains("hmac-sha256"), "{error}");
        }
    }

    #[test]
    fn key_files_of_bind_are_read() {
        let file = "# made by tsig-keygen\nkey \"gatepost.\" {\n\talgorithm hmac-sha512;\n\tsecret \"c2VjcmV0\";\n};\n";
        let key = KeyConfig::of_key_file(&SecretText::new(file)).unwrap();
        assert_eq!((&*key.name, key.secret.reveal(), &*key.algorithm), ("gatepost.", "c2VjcmV0", "hmac-sha512"));
        assert!(key.build().is_ok());
        let line =
            KeyConfig::of_key_file(&SecretText::new("key k { secret \"c2VjcmV0\"; algorithm hmac-sha256; };")).unwrap();
        assert_eq!((&*line.name, &*line.algorithm), ("k", "hmac-sha256"));
        for other in ["c2VjcmV0", "keyc2VjcmV0", "", "key \"k\" { algorithm hmac-sha256; };"] {
            assert!(KeyConfig::of_key_file(&SecretText::new(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn the_secret_is_checked_and_never_shown() {
        for bad in ["", "not base64!", "c2Vj cmV0"] {
            assert!(KeyConfig::new("k", bad, "hmac-sha256").build().is_err(), "{bad}");
        }
        let file = Path::new("/run/tsig");
        for (text, what) in [("canary!", "not base64"), ("key k { secret \"canary!\"; };", "not base64"), ("", "empty")]
        {
            let secret = SecretText::of_file(text, file);
            let bare = KeyConfig { secret: secret.clone(), ..KeyConfig::new("k", "", "") };
            let error = KeyConfig::of_key_file(&secret).unwrap_or(bare).build().unwrap_err().to_string();
            assert!(error.contains(&format!("{what} (--rfc2136-tsig-secret-file /run/tsig)")), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
        let key = KeyConfig::new("k", "c2VjcmV0", "hmac-sha256");
        assert!(!format!("{key:?}{:?}", key.build().unwrap()).contains("c2VjcmV0"));
    }
}
