//! What `route53` declares: its flags, and how the values given become its configuration.

use std::sync::Arc;
use std::time::Duration;

use super::Route53;
use super::credentials::{AwsEnvironment, CredentialSource, RoleToAssume};
use crate::provider::kind::{ProviderAccess, ProviderKind};
use crate::provider::settings::{ProviderSettings, Setting};
use crate::provider::{ProviderError, Result};

/// How long a call with its answer may take, where settings do not say.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Records in one batch, where settings do not say; the most that the service takes.
const BATCH: usize = 1000;

/// Calls in a second on the long run; the service allows ten, for all programs of an account.
const CALLS: u32 = 8;

/// The region where nothing says which.
const REGION: &str = "us-east-1";

const REGION_SETTING: Setting = Setting::text(
    "aws-region",
    "REGION",
    "route53: the region of the token service that roles are assumed at; the environment has it usually",
)
.with_default("us-east-1");
const ROLE: Setting = Setting::text("aws-assume-role", "ARN", "route53: the role to assume");
const EXTERNAL_ID: Setting =
    Setting::text("aws-assume-role-external-id", "ID", "route53: the external id to assume the role with");
const ZONE_TYPE: Setting =
    Setting::text("aws-zone-type", "public|private", "route53: only zones of this type; of both without it");
const ZONE_TAGS: Setting =
    Setting::list("aws-zone-tags", "KEY=VALUE", "route53: only zones with all these tags; KEY alone means any value");
const ZONE_IDS: Setting = Setting::list("zone-id-filter", "ID", "route53: only zones with these ids");
const BATCH_SIZE: Setting =
    Setting::text("aws-batch-change-size", "NUMBER", "route53: the most records of one batch, 10 to 1000")
        .with_default("1000");
const HEALTH: Setting = Setting::text(
    "aws-evaluate-target-health",
    "true|false",
    "route53: whether alias records follow the health of their target, where no annotation says so",
)
.with_default("true");
const PREFER_CNAME: Setting = Setting::switch(
    "aws-prefer-cname",
    "route53: names of load balancers become CNAME records, unless the annotation `alias` says otherwise",
);
const ENDPOINT: Setting = Setting::text("aws-endpoint-url", "URL", "route53: where the API is; that of the region");

/// The kind, for the registry.
pub const KIND: ProviderKind = ProviderKind {
    settings: &[
        REGION_SETTING,
        ROLE,
        EXTERNAL_ID,
        ZONE_TYPE,
        ZONE_TAGS,
        ZONE_IDS,
        BATCH_SIZE,
        HEALTH,
        PREFER_CNAME,
        ENDPOINT,
    ],
    ..ProviderKind::new(
        "route53",
        "Hosted zones at AWS Route 53, over its API",
        ProviderAccess::Network {
            open: |settings| Ok(Arc::new(Route53::new(Route53Config::from_settings(settings)?)?)),
            timeout: TIMEOUT,
        },
    )
};

/// The settings of this provider.
#[derive(Clone, Debug)]
pub struct Route53Config {
    /// The variables of AWS, which have the credentials or say where they are.
    pub environment: AwsEnvironment,
    /// Where the API is, where settings say.
    pub url: Option<String>,
    /// The region, where settings say.
    pub region: Option<String>,
    /// The role to assume.
    pub role: Option<String>,
    /// What to assume it with.
    pub external_id: Option<String>,
    /// The domains that publication is limited to; all where empty.
    pub domains: Vec<String>,
    /// Whether only private zones count, or only public ones.
    pub only_private: Option<bool>,
    /// Tags that a zone must have, with their values where those matter.
    pub zone_tags: Vec<(String, Option<String>)>,
    /// The ids of zones; all where empty.
    pub zone_ids: Vec<String>,
    /// The most records of one batch.
    pub batch: usize,
    /// Whether aliases follow the health of their target, where no annotation says so.
    pub evaluates_health: bool,
    /// Whether names of load balancers become CNAME records.
    pub prefers_cname: bool,
    /// How long a call with its answer may take.
    pub timeout: Duration,
    /// How many calls are made in a second on the long run.
    pub calls_per_second: u32,
}

impl Route53Config {
    /// The usual settings in this environment.
    pub fn new(environment: AwsEnvironment) -> Route53Config {
        Route53Config {
            environment,
            url: None,
            region: None,
            role: None,
            external_id: None,
            domains: Vec::new(),
            only_private: None,
            zone_tags: Vec::new(),
            zone_ids: Vec::new(),
            batch: BATCH,
            evaluates_health: true,
            prefers_cname: false,
            timeout: TIMEOUT,
            calls_per_second: CALLS,
        }
    }

    /// The configuration that settings amount to; what cannot be used is refused with the flag to set.
    fn from_settings(settings: &ProviderSettings) -> Result<Route53Config> {
        let text = |setting| settings.text(setting).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let (role, external_id) = (text(&ROLE), text(&EXTERNAL_ID));
        if external_id.is_some() && role.is_none() {
            return Err(ProviderError::settings("--aws-assume-role-external-id needs --aws-assume-role"));
        }
        let tag = |text: &String| match text.split_once('=') {
            Some((key, value)) => (key.trim().to_owned(), Some(value.trim().to_owned())),
            None => (text.trim().to_owned(), None),
        };
        let id = |text: &String| text.trim().rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Route53Config {
            url: text(&ENDPOINT),
            region: text(&REGION_SETTING),
            role,
            external_id,
            domains: settings.domains.clone(),
            only_private: choice(settings, &ZONE_TYPE, "public", "private")?,
            zone_tags: settings.list(&ZONE_TAGS).iter().map(tag).collect(),
            zone_ids: settings.list(&ZONE_IDS).iter().map(id).collect(),
            batch: batch(settings)?,
            evaluates_health: choice(settings, &HEALTH, "false", "true")?.unwrap_or(true),
            prefers_cname: settings.is_on(&PREFER_CNAME),
            timeout: settings.timeout.unwrap_or(TIMEOUT),
            ..Route53Config::new(AwsEnvironment::of_process())
        })
    }

    /// Where the API is, and the region that its signatures are for: each partition of AWS has one.
    pub(super) fn endpoint(&self) -> (String, String) {
        let region = self.region();
        let (host, signed) = match region.split('-').next() {
            Some("cn") => ("route53.amazonaws.com.cn", "cn-northwest-1"),
            Some("us") if region.starts_with("us-gov-") => ("route53.us-gov.amazonaws.com", "us-gov-west-1"),
            _ => ("route53.amazonaws.com", "us-east-1"),
        };
        let given = self.url.as_deref().or_else(|| self.environment.endpoint("AWS_ENDPOINT_URL_ROUTE_53"));
        (given.map_or_else(|| format!("https://{host}"), str::to_owned), signed.to_owned())
    }

    /// Where its credentials come from.
    pub(super) fn credentials(&self) -> CredentialSource {
        let role = self.role.clone().map(|arn| RoleToAssume { arn, external_id: self.external_id.clone() });
        CredentialSource::new(self.environment.clone(), self.region(), role, self.timeout)
    }

    fn region(&self) -> &str {
        let of_environment = || ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| self.environment.get(name));
        self.region.as_deref().or_else(of_environment).unwrap_or(REGION)
    }
}

/// A setting of two values: whether it is the second one.
fn choice(settings: &ProviderSettings, setting: &Setting, no: &str, yes: &str) -> Result<Option<bool>> {
    match settings.text(setting).map(str::trim) {
        None | Some("") => Ok(None),
        Some(text) if text == no => Ok(Some(false)),
        Some(text) if text == yes => Ok(Some(true)),
        Some(text) => Err(ProviderError::settings(format!("--{} `{text}`: it must be {no} or {yes}", setting.name))),
    }
}

fn batch(settings: &ProviderSettings) -> Result<usize> {
    let Some(text) = settings.text(&BATCH_SIZE) else { return Ok(BATCH) };
    let number = text.trim().parse().ok().filter(|number| (10..=BATCH).contains(number));
    number.ok_or_else(|| {
        ProviderError::settings(format!("--aws-batch-change-size `{text}`: it must be a number from 10 to {BATCH}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::settings::SettingValue;

    fn opened(given: &[(&Setting, &str)]) -> Result<Route53Config> {
        let mut settings = ProviderSettings::default();
        given.iter().for_each(|(setting, text)| settings.set(setting, SettingValue::Text((*text).to_owned())));
        Route53Config::from_settings(&settings)
    }

    #[test]
    fn what_cannot_be_used_names_its_flag() {
        for (setting, text) in [
            (&BATCH_SIZE, "0"),
            (&BATCH_SIZE, "1001"),
            (&BATCH_SIZE, "many"),
            (&ZONE_TYPE, "both"),
            (&HEALTH, "yes"),
            (&EXTERNAL_ID, "x"),
        ] {
            let error = opened(&[(setting, text)]).unwrap_err().to_string();
            assert!(error.contains(&format!("--{}", setting.name)), "{text}: {error}");
        }
    }

    #[test]
    fn values_become_a_configuration() {
        let config =
            opened(&[(&ZONE_TYPE, "private"), (&HEALTH, "false"), (&BATCH_SIZE, "100"), (&ROLE, "arn")]).unwrap();
        assert_eq!((config.only_private, config.evaluates_health, config.batch), (Some(true), false, 100));
        let mut settings = ProviderSettings::default();
        let list = |texts: &[&str]| SettingValue::List(texts.iter().map(|text| (*text).to_owned()).collect());
        settings.set(&ZONE_TAGS, list(&["a=b=c", "d"]));
        settings.set(&ZONE_IDS, list(&["/hostedzone/Z1", "Z2"]));
        let config = Route53Config::from_settings(&settings).unwrap();
        assert_eq!(config.zone_tags, [("a".to_owned(), Some("b=c".to_owned())), ("d".to_owned(), None)]);
        assert_eq!(config.zone_ids, ["Z1", "Z2"]);
    }

    #[test]
    fn each_partition_has_its_endpoint() {
        let of =
            |variables: &[(&str, &str)]| Route53Config::new(AwsEnvironment::of(variables.iter().copied())).endpoint();
        let rows = [
            (&[][..], "https://route53.amazonaws.com", "us-east-1"),
            (&[("AWS_REGION", "eu-west-1")], "https://route53.amazonaws.com", "us-east-1"),
            (&[("AWS_DEFAULT_REGION", "cn-north-1")], "https://route53.amazonaws.com.cn", "cn-northwest-1"),
            (&[("AWS_REGION", "us-gov-east-1")], "https://route53.us-gov.amazonaws.com", "us-gov-west-1"),
            (
                &[("AWS_ENDPOINT_URL", "https://a"), ("AWS_ENDPOINT_URL_ROUTE_53", "https://b")],
                "https://b",
                "us-east-1",
            ),
        ];
        for (variables, url, region) in rows {
            assert_eq!(of(variables), (url.to_owned(), region.to_owned()), "{variables:?}");
        }
    }

    #[test]
    fn no_variable_is_shown() {
        let environment = AwsEnvironment::of([("AWS_SECRET_ACCESS_KEY", "canary"), ("AWS_ACCESS_KEY_ID", "canary")]);
        let config = Route53Config::new(environment);
        assert!(!format!("{config:?} {:?}", Route53::new(config.clone()).unwrap()).contains("canary"));
    }
}
