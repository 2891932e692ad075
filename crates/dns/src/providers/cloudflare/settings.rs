//! What `cloudflare` declares: its flags, and how the values given become its configuration.

use std::sync::Arc;
use std::time::Duration;

use super::Cloudflare;
use crate::provider::kind::{ProviderAccess, ProviderKind};
use crate::provider::settings::{ProviderSettings, SecretText, Setting};
use crate::provider::{ProviderError, Result};

/// Where the API is.
pub const DEFAULT_URL: &str = "https://api.cloudflare.com/client/v4";

/// How long a question with its answer may take, where settings do not say.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Records on one page, where settings do not say; that of external-dns.
const PER_PAGE: usize = 100;

/// The fewest and the most records that may be asked for at once.
const PAGE_SIZES: std::ops::RangeInclusive<usize> = 5..=5000;

const API_TOKEN: Setting = Setting::secret(
    "cloudflare-api-token",
    "cloudflare: the API token; others on this machine see it here, so rather use the file",
    "cloudflare: a file with the API token",
);
const PROXIED: Setting =
    Setting::switch("cloudflare-proxied", "cloudflare: proxy records that no annotation speaks of");
const PER_PAGE_SETTING: Setting = Setting::text(
    "cloudflare-dns-records-per-page",
    "NUMBER",
    "cloudflare: how many records are read with one call, 5 to 5000",
)
.with_default("100");
const RECORD_COMMENT: Setting = Setting::text(
    "cloudflare-record-comment",
    "TEXT",
    "cloudflare: the comment of records for which no annotation has one",
);
const API_URL: Setting =
    Setting::text("cloudflare-api-url", "URL", "cloudflare: where the API is").with_default(DEFAULT_URL);

/// The kind, for the registry.
pub const KIND: ProviderKind = ProviderKind {
    settings: &[API_TOKEN, PROXIED, PER_PAGE_SETTING, RECORD_COMMENT, API_URL],
    ..ProviderKind::new(
        "cloudflare",
        "Zones at Cloudflare, over its API",
        ProviderAccess::Network {
            open: |settings| Ok(Arc::new(Cloudflare::new(CloudflareConfig::from_settings(settings)?)?)),
            timeout: TIMEOUT,
        },
    )
};

/// The settings of this provider.
#[derive(Clone, Debug)]
pub struct CloudflareConfig {
    /// Where the API is.
    pub url: String,
    /// The API token.
    pub token: SecretText,
    /// The domains that publication is limited to; all where empty.
    pub domains: Vec<String>,
    /// Whether records are proxied that no annotation speaks of.
    pub is_proxied: bool,
    /// How many records are read with one call.
    pub per_page: usize,
    /// The comment of records for which no annotation has one.
    pub comment: String,
    /// How long a question with its answer may take.
    pub timeout: Duration,
}

impl CloudflareConfig {
    /// The usual settings with this token.
    pub fn new(token: impl Into<String>) -> CloudflareConfig {
        CloudflareConfig {
            url: DEFAULT_URL.to_owned(),
            token: SecretText::new(token),
            domains: Vec::new(),
            is_proxied: false,
            per_page: PER_PAGE,
            comment: String::new(),
            timeout: TIMEOUT,
        }
    }

    /// The configuration that settings amount to; what cannot be used is refused with the flag to set.
    fn from_settings(settings: &ProviderSettings) -> Result<CloudflareConfig> {
        let token = settings.secret(&API_TOKEN).map(|token| token.reveal().trim().to_owned()).unwrap_or_default();
        if token.is_empty() {
            return Err(ProviderError::settings("--provider cloudflare needs --cloudflare-api-token-file"));
        }
        Ok(CloudflareConfig {
            url: settings.text(&API_URL).unwrap_or(DEFAULT_URL).to_owned(),
            domains: settings.domains.clone(),
            is_proxied: settings.is_on(&PROXIED),
            per_page: per_page(settings)?,
            comment: settings.text(&RECORD_COMMENT).unwrap_or_default().trim().to_owned(),
            timeout: settings.timeout.unwrap_or(TIMEOUT),
            ..CloudflareConfig::new(token)
        })
    }
}

fn per_page(settings: &ProviderSettings) -> Result<usize> {
    let Some(text) = settings.text(&PER_PAGE_SETTING) else { return Ok(PER_PAGE) };
    let number = text.trim().parse().ok().filter(|number| PAGE_SIZES.contains(number));
    number.ok_or_else(|| {
        ProviderError::settings(format!(
            "--cloudflare-dns-records-per-page `{text}`: it must be a number from {} to {}",
            PAGE_SIZES.start(),
            PAGE_SIZES.end()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::settings::SettingValue;

    fn opened(given: &[(&Setting, SettingValue)]) -> Result<CloudflareConfig> {
        let mut settings = ProviderSettings::default();
        given.iter().for_each(|(setting, value)| settings.set(setting, value.clone()));
        CloudflareConfig::from_settings(&settings)
    }

    fn token(text: &str) -> (&'static Setting, SettingValue) {
        (&API_TOKEN, SettingValue::Secret(SecretText::new(text)))
    }

    #[test]
    fn what_cannot_be_used_names_its_flag() {
        for given in [&[][..], &[token(" \n")]] {
            assert!(opened(given).unwrap_err().to_string().contains("--cloudflare-api-token-file"));
        }
        for number in ["0", "4", "5001", "many", "-1", ""] {
            let given = [token("t"), (&PER_PAGE_SETTING, SettingValue::Text(number.to_owned()))];
            assert!(opened(&given).unwrap_err().to_string().contains("--cloudflare-dns-records-per-page"), "{number}");
        }
    }

    #[test]
    fn a_token_is_trimmed_and_not_shown() {
        let config = opened(&[token("canary\n"), (&PER_PAGE_SETTING, SettingValue::Text("5000".to_owned()))]).unwrap();
        assert_eq!((config.token.reveal(), config.per_page), ("canary", 5000));
        let provider = Cloudflare::new(config.clone()).unwrap();
        assert!(!format!("{config:?} {provider:?}").contains("canary"));
    }
}
