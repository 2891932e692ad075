//! Credentials of AWS from the places where its own programs look: environment, web identity, profile, container, instance.
//!
//! They are kept until shortly before they expire, and then fetched again from where they came. A role that settings name is
//! assumed with them. No key and no token is shown, in errors and debug output neither.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::provider::settings::SecretText;
use crate::provider::{ProviderError, Result};

mod metadata;
mod profile;
mod token_service;

use profile::{AwsProfile, ProfileSource};
use token_service::{AssumedRole, TokenService};

/// So long before they expire credentials are fetched again.
const MARGIN: Duration = Duration::from_secs(300);

/// How sessions of an assumed role are called.
const SESSION: &str = "gatepost";

/// The most roles that profiles lead through.
const LONGEST_CHAIN: usize = 5;

/// A key with which requests are signed.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) key_id: String,
    pub(super) secret: SecretText,
    pub(super) token: Option<SecretText>,
    /// When they stop to be valid.
    pub(super) expires: Option<Timestamp>,
}

/// The environment variables of AWS, and `HOME`. Some of them are secret, so none is shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AwsEnvironment(BTreeMap<String, String>);

/// A role that settings name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RoleToAssume {
    pub(super) arn: String,
    pub(super) external_id: Option<String>,
}

/// Where credentials come from, and those that are in use.
pub(super) struct CredentialSource {
    environment: AwsEnvironment,
    region: String,
    role: Option<RoleToAssume>,
    patience: Duration,
    cached: Mutex<Option<Credentials>>,
}

/// Credentials as containers and instances get them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CredentialDocument {
    access_key_id: String,
    secret_access_key: String,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    expiration: Option<String>,
}

impl AwsEnvironment {
    /// The variables of this process.
    pub fn of_process() -> AwsEnvironment {
        let is_meant = |name: &str| name.starts_with("AWS_") || name == "HOME";
        let text =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        AwsEnvironment(text.filter(|(name, _)| is_meant(name)).collect())
    }

    /// These variables.
    pub fn of<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> AwsEnvironment {
        AwsEnvironment(variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// A variable that is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Where a service is reached, where that is said.
    pub(super) fn endpoint(&self, of_service: &str) -> Option<&str> {
        self.get(of_service).or_else(|| self.get("AWS_ENDPOINT_URL"))
    }
}

impl CredentialSource {
    pub(super) fn new(
        environment: AwsEnvironment,
        region: &str,
        role: Option<RoleToAssume>,
        patience: Duration,
    ) -> CredentialSource {
        CredentialSource { environment, region: region.to_owned(), role, patience, cached: Mutex::default() }
    }

    /// Credentials that are valid now.
    pub(super) async fn get(&self, now: Timestamp) -> Result<Credentials> {
        let mut cached = self.cached.lock().await;
        if let Some(known) = cached.as_ref().filter(|known| known.is_valid(now)) {
            return Ok(known.clone());
        }
        let found = self.fetch(now).await?;
        *cached = Some(found.clone());
        Ok(found)
    }

    /// Those in use were refused: they are fetched again before the next request.
    pub(super) async fn forget(&self) {
        *self.cached.lock().await = None;
    }

    async fn fetch(&self, now: Timestamp) -> Result<Credentials> {
        let base = self.base(now).await?;
        match &self.role {
            Some(role) => {
                let role = AssumedRole { arn: &role.arn, session: SESSION, external_id: role.external_id.as_deref() };
                self.token_service()?.assume(&role, &base, now).await
            }
            None => Ok(base),
        }
    }

    /// The first place that has any.
    async fn base(&self, now: Timestamp) -> Result<Credentials> {
        if let Some(found) = self.of_environment() {
            return Ok(found);
        }
        if let (Some(arn), Some(file)) =
            (self.environment.get("AWS_ROLE_ARN"), self.environment.get("AWS_WEB_IDENTITY_TOKEN_FILE"))
        {
            let session = self.environment.get("AWS_ROLE_SESSION_NAME").unwrap_or(SESSION);
            return self.with_web_identity(arn, session, file).await;
        }
        if let Some(profile) = AwsProfile::chosen(&self.environment)? {
            return self.of_profile(profile, now).await;
        }
        if let Some(found) = metadata::of_container(&self.environment, self.patience).await? {
            return Ok(found);
        }
        metadata::of_instance(&self.environment).await
    }

    fn of_environment(&self) -> Option<Credentials> {
        let key_id = self.environment.get("AWS_ACCESS_KEY_ID")?.to_owned();
        let secret = SecretText::new(self.environment.get("AWS_SECRET_ACCESS_KEY")?);
        let token = self.environment.get("AWS_SESSION_TOKEN").map(SecretText::new);
        Some(Credentials { key_id, secret, token, expires: None })
    }

    async fn with_web_identity(&self, arn: &str, session: &str, file: &str) -> Result<Credentials> {
        let cause = |error| ProviderError::settings(format!("the web identity token `{file}` cannot be read: {error}"));
        let token = std::fs::read_to_string(file).map_err(cause)?;
        let role = AssumedRole { arn, session, external_id: None };
        self.token_service()?.assume_with_web_identity(&role, token.trim()).await
    }

    /// What a profile leads to, through the roles of other profiles.
    async fn of_profile(&self, profile: AwsProfile, now: Timestamp) -> Result<Credentials> {
        let mut roles = Vec::new();
        let mut profile = profile;
        let mut base = loop {
            if roles.len() > LONGEST_CHAIN {
                return Err(profile.refuse("it leads through more than five roles"));
            }
            match profile.source()? {
                ProfileSource::Keys(keys) => break keys,
                ProfileSource::WebIdentity { arn, session, file } => {
                    break self.with_web_identity(&arn, session.as_deref().unwrap_or(SESSION), &file).await?;
                }
                ProfileSource::Role { role, through } => {
                    roles.push(role);
                    profile = profile.other(&through)?;
                }
                ProfileSource::RoleOfPlace { role, place } => {
                    roles.push(role);
                    break self.of_place(&profile, &place).await?;
                }
            }
        };
        for role in roles.iter().rev() {
            let session = role.session.as_deref().unwrap_or(SESSION);
            let role = AssumedRole { arn: &role.arn, session, external_id: role.external_id.as_deref() };
            base = self.token_service()?.assume(&role, &base, now).await?;
        }
        Ok(base)
    }

    async fn of_place(&self, profile: &AwsProfile, place: &str) -> Result<Credentials> {
        match place {
            "Environment" => self.of_environment().ok_or_else(|| profile.refuse("the environment has no key")),
            "EcsContainer" => metadata::of_container(&self.environment, self.patience)
                .await?
                .ok_or_else(|| profile.refuse("the program does not run in a container with a role")),
            "Ec2InstanceMetadata" => metadata::of_instance(&self.environment).await,
            _ => Err(profile.refuse(&format!("the credential_source `{place}` is not known"))),
        }
    }

    fn token_service(&self) -> Result<TokenService> {
        TokenService::new(&self.environment, &self.region, self.patience)
    }
}

impl Credentials {
    fn is_valid(&self, now: Timestamp) -> bool {
        let seconds = i64::try_from(MARGIN.as_secs()).unwrap_or(i64::MAX);
        self.expires.is_none_or(|expires| expires.as_second().saturating_sub(now.as_second()) > seconds)
    }

    /// A text of somebody else, without these credentials.
    pub(super) fn scrubbed(&self, text: &str) -> String {
        let secrets = [Some(&self.secret), self.token.as_ref()].into_iter().flatten().map(SecretText::reveal);
        let secrets = secrets.chain([self.key_id.as_str()]).filter(|secret| !secret.is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }
}

impl CredentialDocument {
    fn into_credentials(self) -> std::result::Result<Credentials, String> {
        let expires = match self.expiration.filter(|text| !text.is_empty()) {
            Some(text) => Some(text.parse().map_err(|_| format!("`{text}` is not a time"))?),
            None => None,
        };
        let token = self.token.filter(|token| !token.is_empty()).map(SecretText::new);
        Ok(Credentials { key_id: self.access_key_id, secret: SecretText::new(self.secret_access_key), token, expires })
    }
}

impl fmt::Debug for AwsEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials { … }")
    }
}
