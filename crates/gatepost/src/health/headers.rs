//! Headers of probes, from Secrets: each key is the name of a header.
//!
//! What a Secret holds goes into requests only; messages name its keys and never a value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::Value;

/// More headers are refused.
const MOST: usize = 32;
/// Longer values are refused, in bytes.
const LONGEST: usize = 8 << 10;
/// Headers that the probe itself decides about.
const OWN: [&str; 5] = ["host", "connection", "content-length", "transfer-encoding", "upgrade"];

/// The headers in a Secret, by name.
pub fn of_secret(secret: &Value) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let entries = |key: &str| secret[key].as_object().cloned().unwrap_or_default();
    let (data, texts) = (entries("data"), entries("stringData"));
    let mut headers = Vec::new();
    for (key, value) in data.iter().filter(|(key, _)| !texts.contains_key(*key)) {
        let value = value.as_str().and_then(|value| STANDARD.decode(value.trim()).ok());
        headers.push(header(key, &value.ok_or_else(|| format!("`{key}` is not base64"))?)?);
    }
    for (key, value) in &texts {
        headers
            .push(header(key, value.as_str().ok_or_else(|| format!("the value of `{key}` is not text"))?.as_bytes())?);
    }
    match headers.len() {
        0 => Err("it holds no headers".to_owned()),
        MOST.. => Err(format!("it holds {} headers, and {MOST} is too many", headers.len())),
        _ => Ok(headers),
    }
}

fn header(key: &str, value: &[u8]) -> Result<(HeaderName, HeaderValue), String> {
    let name: HeaderName = key.parse().map_err(|_| format!("`{key}` is not a header name"))?;
    if OWN.contains(&name.as_str()) {
        return Err(format!("`{key}` is a header that the probe sets itself"));
    }
    let value = value.trim_ascii();
    if value.len() > LONGEST {
        return Err(format!("the value of `{key}` is longer than {LONGEST} bytes"));
    }
    let mut value =
        HeaderValue::from_bytes(value).map_err(|_| format!("the value of `{key}` cannot stand in a header"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_names_and_values_are_told_to_nobody() {
        let secret = json!({"data": {"X-A": "c2VjcmV0Cg==", "x-b": "b2xk"}, "stringData": {"x-b": "new"}});
        let headers = of_secret(&secret).unwrap();
        let found: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(found, [("x-a", &b"secret"[..]), ("x-b", b"new")]);
        assert!(!format!("{headers:?}").contains("secret"));
        for (secret, words) in [
            (json!({}), "no headers"),
            (json!({"data": {"x-a": "?"}}), "`x-a` is not base64"),
            (json!({"stringData": {"a b": "x"}}), "`a b` is not a header name"),
            (json!({"stringData": {"Host": "x"}}), "sets itself"),
            (json!({"stringData": {"x-a": "secret\nx: y"}}), "the value of `x-a`"),
        ] {
            let error = of_secret(&secret).unwrap_err();
            assert!(error.contains(words) && !error.contains("secret"), "{error}");
        }
    }
}
