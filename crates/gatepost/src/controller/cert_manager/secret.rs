//! The content of a Certificate object's Secret. Only the chain is parsed; the private key is dropped with the
//! response.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost_core::model::Key;
use gatepost_kube::resource::GroupVersionResource;
use gatepost_kube::{Connection, Error};
use gatepost_tls::chain::{Chain, Leaf, MAX_CHAIN};
use gatepost_tls::issuers::cert_manager::{OWNER, OWNER_LABEL};
use serde_json::Value;

/// The content of a Secret, and its owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// The certificate in it, if it is usable.
    pub(super) leaf: Option<Leaf>,
    /// Why the certificate is not usable.
    pub(super) unusable: Option<String>,
    /// Why the Secret must not be filled: it exists and was not created for us.
    pub(super) stranger: Option<String>,
    /// UIDs of its owner references.
    pub(super) owners: Vec<String>,
}

const SECRETS: GroupVersionResource = GroupVersionResource { group: "", version: "v1", plural: "secrets" };

impl Content {
    /// Reads a Secret; one that does not exist has no content.
    pub(super) async fn read(connection: &Connection, secret: &Key) -> Result<Content, Error> {
        let stored = SECRETS.read(connection, secret).await?;
        Ok(stored.map(|stored| Content::of(secret, &stored.value)).unwrap_or_default())
    }

    fn of(secret: &Key, value: &Value) -> Content {
        let metadata = &value["metadata"];
        let is_ours = metadata["labels"][OWNER_LABEL] == OWNER;
        let stranger = (!is_ours).then(|| {
            let fix = format!("give it the label {OWNER_LABEL}={OWNER} to have it replaced, or name another Secret");
            format!("Secret {secret} was made by somebody else: {fix}")
        });
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owners = owners.filter_map(|owner| owner["uid"].as_str().map(str::to_owned)).collect();
        match leaf(value) {
            Ok(leaf) => Content { leaf: Some(leaf), unusable: None, stranger, owners },
            Err(why) => Content { leaf: None, unusable: Some(why), stranger, owners },
        }
    }
}

fn leaf(value: &Value) -> Result<Leaf, String> {
    let encoded = value["data"]["tls.crt"].as_str().ok_or("it has no tls.crt")?;
    if encoded.len() > MAX_CHAIN / 3 * 4 + 4 {
        return Err(format!("tls.crt is larger than {} KiB", MAX_CHAIN >> 10));
    }
    let bytes = STANDARD.decode(encoded).map_err(|_| "tls.crt is not base64")?;
    let text = String::from_utf8(bytes).map_err(|_| "tls.crt is not text")?;
    Chain::read(&text).map(|chain| chain.leaf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn content(value: &Value) -> Content {
        Content::of(&Key::new("infra", "tls"), value)
    }

    #[test]
    fn what_cannot_be_read_is_told_and_harms_nothing() {
        for (data, word) in [
            (json!({}), "no tls.crt"),
            (json!({"tls.crt": "%"}), "not base64"),
            (json!({"tls.crt": "/w=="}), "not text"),
            (json!({"tls.crt": "A".repeat(2 << 20)}), "larger than"),
            (json!({"tls.crt": ""}), "no certificate"),
        ] {
            let content = content(&json!({"data": data}));
            assert!(content.leaf.is_none() && content.unusable.as_ref().unwrap().contains(word), "{content:?}");
        }
    }

    #[test]
    fn a_secret_without_our_label_is_a_strangers() {
        let labelled =
            json!({"metadata": {"labels": {"gatepost.dev/managed-by": "gatepost"}, "ownerReferences": [{"uid": "7"}]}});
        assert_eq!((content(&labelled).stranger, content(&labelled).owners), (None, vec!["7".to_owned()]));
        assert!(content(&json!({"metadata": {}})).stranger.unwrap().contains("infra/tls was made by somebody else"));
    }
}
