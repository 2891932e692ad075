//! Profiles of the files that all programs of AWS share: `~/.aws/config` and `~/.aws/credentials`.
//!
//! What a profile asks for and nothing here does (single sign-on, processes, codes of a device) is refused by name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{AwsEnvironment, Credentials};
use crate::provider::settings::SecretText;
use crate::provider::{ProviderError, Result};

/// The values of a section, by key.
type Section = BTreeMap<String, String>;

/// A profile, and all others.
pub(super) struct AwsProfile {
    name: String,
    all: Arc<BTreeMap<String, Section>>,
}

/// Where a profile has its credentials from.
pub(super) enum ProfileSource {
    /// They are in the file.
    Keys(Credentials),
    /// A token in a file stands for them.
    WebIdentity { arn: String, session: Option<String>, file: String },
    /// A role that is assumed with those of another profile.
    Role { role: ProfileRole, through: String },
    /// A role that is assumed with those of the environment, the container or the instance.
    RoleOfPlace { role: ProfileRole, place: String },
}

/// A role of a profile.
pub(super) struct ProfileRole {
    pub(super) arn: String,
    pub(super) session: Option<String>,
    pub(super) external_id: Option<String>,
}

impl AwsProfile {
    /// The profile that the environment names, or `default`. Nothing where there is none and none is named.
    pub(super) fn chosen(environment: &AwsEnvironment) -> Result<Option<AwsProfile>> {
        let named = environment.get("AWS_PROFILE");
        let name = named.unwrap_or("default").to_owned();
        let profile = AwsProfile { name, all: Arc::new(read(environment)?) };
        match (profile.all.get(&profile.name), named) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(profile.refuse("there is no such profile in ~/.aws/config and ~/.aws/credentials")),
            (Some(section), None) if !is_about_credentials(section) => Ok(None),
            (Some(_), _) => Ok(Some(profile)),
        }
    }

    /// Another profile of the same files.
    pub(super) fn other(&self, name: &str) -> Result<AwsProfile> {
        let other = AwsProfile { name: name.to_owned(), all: self.all.clone() };
        if self.all.contains_key(name) { Ok(other) } else { Err(other.refuse("there is no such profile")) }
    }

    /// Where it has its credentials from.
    pub(super) fn source(&self) -> Result<ProfileSource> {
        let get = |key: &str| self.all.get(&self.name)?.get(key).cloned().filter(|value| !value.is_empty());
        let keys = || {
            let (key_id, secret) = (get("aws_access_key_id")?, get("aws_secret_access_key")?);
            let token = get("aws_session_token").map(SecretText::new);
            Some(Credentials { key_id, secret: SecretText::new(secret), token, expires: None })
        };
        let Some(arn) = get("role_arn") else { return keys().map(ProfileSource::Keys).ok_or_else(|| self.unusable()) };
        if get("mfa_serial").is_some() {
            return Err(self.refuse("its role needs the code of a device (mfa_serial), which nobody is there to type"));
        }
        let session = get("role_session_name");
        if let Some(file) = get("web_identity_token_file") {
            return Ok(ProfileSource::WebIdentity { arn, session, file });
        }
        let role = ProfileRole { arn, session, external_id: get("external_id") };
        match (get("source_profile"), get("credential_source"), keys()) {
            (Some(through), None, _) if through != self.name => Ok(ProfileSource::Role { role, through }),
            (None, Some(place), _) => Ok(ProfileSource::RoleOfPlace { role, place }),
            _ => Err(self.refuse("its role needs exactly one of source_profile, another one, and credential_source")),
        }
    }

    fn unusable(&self) -> ProviderError {
        let section = self.all.get(&self.name);
        let has = |key: &str| section.is_some_and(|section| section.keys().any(|known| known.starts_with(key)));
        if has("sso_") {
            return self
                .refuse("it is of single sign-on, which is not supported; export keys to the environment instead");
        }
        if has("credential_process") {
            return self.refuse("it runs a program (credential_process), which is not supported");
        }
        self.refuse("it has neither keys nor a role")
    }

    /// A failure of this profile.
    pub(super) fn refuse(&self, cause: &str) -> ProviderError {
        ProviderError::settings(format!("AWS profile `{}`: {cause}", self.name))
    }
}

fn is_about_credentials(section: &Section) -> bool {
    let keys = ["aws_access_key_id", "role_arn", "sso_session", "sso_start_url", "credential_process"];
    keys.iter().any(|key| section.contains_key(*key))
}

/// Both files; what the second has counts more.
fn read(environment: &AwsEnvironment) -> Result<BTreeMap<String, Section>> {
    let mut all = BTreeMap::<String, Section>::new();
    for (variable, file, is_config) in
        [("AWS_CONFIG_FILE", "config", true), ("AWS_SHARED_CREDENTIALS_FILE", "credentials", false)]
    {
        let named = environment.get(variable).map(PathBuf::from);
        let at_home = || Some(PathBuf::from(environment.get("HOME")?).join(".aws").join(file));
        let Some(path) = named.clone().or_else(at_home) else { continue };
        match std::fs::read_to_string(&path) {
            Ok(text) => sections(&text, is_config, &mut all),
            Err(error) if named.is_some() => {
                return Err(ProviderError::settings(format!("{variable}: `{}`: {error}", path.display())));
            }
            Err(_) => {}
        }
    }
    Ok(all)
}

fn sections(text: &str, is_config: bool, all: &mut BTreeMap<String, Section>) {
    let mut name = None;
    for line in text.lines() {
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let title = title.trim();
            // In `config` a profile is `[profile NAME]`, and other sections are of something else.
            let profile = title.strip_prefix("profile ").map(str::trim);
            let is_plain = !is_config || title == "default";
            name = profile.or_else(|| is_plain.then_some(title)).map(str::to_owned);
        } else if let (Some(name), Some((key, value)), false) = (&name, line.split_once('='), is_nested) {
            let value = value.split(" #").next().unwrap_or_default().trim();
            all.entry(name.clone()).or_default().insert(key.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profiles(config: &str, credentials: &str) -> Arc<BTreeMap<String, Section>> {
        let mut all = BTreeMap::new();
        sections(config, true, &mut all);
        sections(credentials, false, &mut all);
        Arc::new(all)
    }

    fn told(all: &Arc<BTreeMap<String, Section>>, name: &str) -> String {
        match (AwsProfile { name: name.to_owned(), all: all.clone() }).source() {
            Ok(ProfileSource::Keys(keys)) => format!("keys {}", keys.key_id),
            Ok(ProfileSource::WebIdentity { arn, file, .. }) => format!("token {arn} {file}"),
            Ok(ProfileSource::Role { role, through }) => format!("role {} {:?} {through}", role.arn, role.external_id),
            Ok(ProfileSource::RoleOfPlace { role, place }) => format!("place {} {place}", role.arn),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn profiles_of_every_sort() {
        let config = "
            [default]\nregion = eu-west-1\n[profile dns]\nrole_arn = arn:1 # ours\nsource_profile=base\nexternal_id = x\n\
            [profile irsa]\nrole_arn=arn:2\nweb_identity_token_file=/token\n[profile ec2]\nrole_arn=arn:3\n\
            credential_source = Ec2InstanceMetadata\n[profile sso]\nsso_session = s\n[sso-session s]\nsso_region = x\n\
            [profile mfa]\nrole_arn=a\nmfa_serial=b\nsource_profile=base\n[profile odd]\nrole_arn=a\ns3 =\n  role_arn = c\n\
            [profile run]\ncredential_process = /bin/x\n";
        let all = profiles(config, "; keys\n[base]\naws_access_key_id=AKID\naws_secret_access_key = canary\n");
        let rows = [
            ("base", "keys AKID"),
            ("dns", "role arn:1 Some(\"x\") base"),
            ("irsa", "token arn:2 /token"),
            ("ec2", "place arn:3 Ec2InstanceMetadata"),
            ("sso", "AWS profile `sso`: it is of single sign-on"),
            ("mfa", "AWS profile `mfa`: its role needs the code"),
            ("odd", "AWS profile `odd`: its role needs exactly one"),
            ("run", "AWS profile `run`: it runs a program"),
            ("s", "AWS profile `s`: it has neither"),
        ];
        for (name, expected) in rows {
            assert!(told(&all, name).starts_with(expected), "{name}: {}", told(&all, name));
        }
        assert!(!is_about_credentials(&all["default"]));
    }
}
