//! The account with an issuer: one key for everything, made once and kept.
//!
//! The key is written down before the issuer hears of it. A server that knows the key answers with the account it has, so a crash
//! in between leaves one account, not two.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::AcmeSettings;
use super::client::{Client, Signer};
use super::jws::{AccountKey, encode};
use crate::error::{Error, IssuanceProblem, Result};
use crate::store::StateStore;

/// A key, and where the server keeps its account.
pub(super) struct Account {
    key: AccountKey,
    url: String,
    page: SavedAccount,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedAccount {
    version: u32,
    directory: String,
    /// PKCS #8, in base64.
    secret_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl Account {
    /// The account that is kept for this directory, or a new one.
    pub(super) async fn open(
        client: &Client,
        settings: &AcmeSettings,
        state_store: &dyn StateStore,
        now: i64,
    ) -> Result<Account> {
        let name = page_name(&settings.directory);
        let mut page = match state_store.read(&name).await? {
            Some(text) => SavedAccount::read(&name, &text)?,
            None => SavedAccount::make(settings)?,
        };
        let key = AccountKey::from_pkcs8(&page.key(&name)?)?;
        if let Some(url) = page.url.clone().filter(|url| client.transport.is_own(url)) {
            return Ok(Account { key, url, page });
        }
        page.write(&name, state_store).await?;
        let url = register(client, settings, &key, now).await?;
        page.url = Some(url.clone());
        page.write(&name, state_store).await?;
        Ok(Account { key, url, page })
    }

    /// Who signs.
    pub(super) fn signer(&self) -> Signer<'_> {
        Signer { key: &self.key, account: Some(&self.url) }
    }

    /// Forgets where the server keeps the account, where it says that there is none. The key stays.
    pub(super) async fn forget(
        &self,
        settings: &AcmeSettings,
        state_store: &dyn StateStore,
        error: &Error,
    ) -> Result<()> {
        let is_unknown =
            matches!(&error.problem, IssuanceProblem::Refused { kind, .. } if kind == "accountDoesNotExist");
        if !is_unknown {
            return Ok(());
        }
        let page = SavedAccount { url: None, ..self.page.clone() };
        page.write(&page_name(&settings.directory), state_store).await
    }
}

/// Tells the server of the key, and asks where it keeps the account.
async fn register(client: &Client, settings: &AcmeSettings, key: &AccountKey, now: i64) -> Result<String> {
    let place = &client.directory.new_account;
    let mut payload = json!({"termsOfServiceAgreed": true});
    if let Some(email) = &settings.email {
        payload["contact"] = json!([format!("mailto:{email}")]);
    }
    match &settings.external {
        Some(external) => payload["externalAccountBinding"] = key.bind(external, place),
        None if client.directory.meta.external_account_required => {
            let message = "wants an account that was made there before: give --acme-eab-kid and --acme-eab-hmac-file";
            return Err(Error::settings(message).at(&client.transport));
        }
        None => {}
    }
    let answer = client.post(&Signer { key, account: None }, place, Some(&payload), now).await?;
    let url = answer.header("location").filter(|url| client.transport.is_own(url));
    url.map(str::to_owned).ok_or_else(|| Error::protocol("it did not say where the account is").at(&client.transport))
}

/// One page per directory, so that trying another one loses nothing.
fn page_name(directory: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, directory.as_bytes());
    let mark: String = digest.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("account-{mark}")
}

impl SavedAccount {
    fn make(settings: &AcmeSettings) -> Result<SavedAccount> {
        let secret_key = encode(AccountKey::generate()?);
        Ok(SavedAccount { version: 1, directory: settings.directory.clone(), secret_key, url: None })
    }

    fn read(name: &str, text: &str) -> Result<SavedAccount> {
        let page: Option<SavedAccount> = serde_json::from_str(text).ok();
        page.filter(|page| page.version == 1).ok_or_else(|| damaged(name))
    }

    fn key(&self, name: &str) -> Result<Vec<u8>> {
        use base64::Engine;
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(&self.secret_key);
        bytes.map_err(|_| damaged(name))
    }

    async fn write(&self, name: &str, state_store: &dyn StateStore) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|_| damaged(name))?;
        state_store.write(name, &text).await
    }
}

/// The cause would repeat parts of the key.
fn damaged(name: &str) -> Error {
    Error::storage("be read", format!("{name}.json"), "it is damaged; remove it for a new account")
}
