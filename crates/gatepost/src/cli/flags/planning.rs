//! The flags that say what may be written, and how it is known which records are ours.
//!
//! Names and meaning as in external-dns wherever it has them. Values are read here, once; a wrong combination ends the
//! program with exit status 2, before anything is asked of a provider.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gatepost_core::plan::layout::Layout;
use gatepost_core::plan::seal::SealKey;
use gatepost_core::plan::{Instance, PlanSettings, Policy, Registry, TxtRegistry};
use gatepost_core::publication::RecordType;
use gatepost_dns::provider::kind::ProviderKind;

use super::secret::{SecretFlag, secret};
use crate::apply::Mode;
use crate::cli::Failure;

/// The owner id where none is set, as in external-dns.
const DEFAULT_OWNER: &str = "default";

/// What may be written.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "What may be written, and what is ours")]
pub(in crate::cli) struct PlanningFlags {
    /// What may be written: everything, no deletes, or neither deletes nor changes
    #[arg(long, value_enum, env = "GATEPOST_POLICY")]
    policy: Option<PolicyFlag>,
    /// How it is known which records are ours: by TXT records beside them, or not at all [default: txt; embedded: the whole zone is ours]
    #[arg(long, value_enum, env = "GATEPOST_REGISTRY")]
    registry: Option<RegistryFlag>,
    /// Marks our records in the registry; no other instance may have it
    #[arg(long, value_name = "ID", value_parser = owner, default_value = DEFAULT_OWNER, env = "GATEPOST_TXT_OWNER_ID")]
    txt_owner_id: String,
    /// In front of the names of TXT records; `%{record_type}` stands for the type
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, env = "GATEPOST_TXT_PREFIX")]
    txt_prefix: String,
    /// Behind the first label of the names of TXT records; not together with --txt-prefix
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, env = "GATEPOST_TXT_SUFFIX")]
    txt_suffix: String,
    /// Stands for `*` in the names of TXT records
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        env = "GATEPOST_TXT_WILDCARD_REPLACEMENT"
    )]
    txt_wildcard_replacement: String,
    /// Seal the TXT records with --txt-encrypt-aes-key
    #[arg(long, env = "GATEPOST_TXT_ENCRYPT_ENABLED")]
    txt_encrypt_enabled: bool,
    /// 32 bytes, as they are or in base64; others on this machine see them here, so rather use the file
    #[arg(long, value_name = "KEY", value_parser = SecretFlag::parse, env = "GATEPOST_TXT_ENCRYPT_AES_KEY", hide_env_values = true, hide_default_value = true)]
    txt_encrypt_aes_key: Option<SecretFlag>,
    /// A file with 32 bytes, as they are or in base64
    #[arg(long, value_name = "FILE", env = "GATEPOST_TXT_ENCRYPT_AES_KEY_FILE")]
    txt_encrypt_aes_key_file: Option<PathBuf>,
    /// Take over the records of this owner id
    #[arg(long, value_name = "ID", value_parser = owner, env = "GATEPOST_MIGRATE_FROM_TXT_OWNER")]
    migrate_from_txt_owner: Option<String>,
    /// Take over records that another instance wrote under our owner id, because that instance is gone
    #[arg(long, env = "GATEPOST_REPLACE_INSTANCE")]
    replace_instance: bool,
    /// Take over the records of this name that nobody claims; may be repeated
    #[arg(long, value_name = "NAME", env = "GATEPOST_ADOPT", value_delimiter = ',')]
    adopt: Vec<String>,
    /// Types of records that are looked after; may be repeated
    #[arg(long, value_name = "TYPE", value_parser = record_type, default_values = ["A", "AAAA", "CNAME"], env = "GATEPOST_MANAGED_RECORD_TYPES", value_delimiter = ',')]
    managed_record_types: Vec<String>,
    /// Types of records that are not looked after; may be repeated
    #[arg(long, value_name = "TYPE", value_parser = record_type, env = "GATEPOST_EXCLUDE_RECORD_TYPES", value_delimiter = ',')]
    exclude_record_types: Vec<String>,
    /// Write nothing, whatever else is said
    #[arg(long, env = "GATEPOST_DRY_RUN")]
    dry_run: bool,
    /// Carry out deletes that a safety brake would hold
    #[arg(long, env = "GATEPOST_CONFIRM_DELETES")]
    confirm_deletes: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum PolicyFlag {
    Sync,
    UpsertOnly,
    CreateOnly,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum RegistryFlag {
    Txt,
    Noop,
}

/// The types that external-dns knows; only some of them are made here.
const TYPES: [&str; 11] = ["A", "AAAA", "CNAME", "DNAME", "MX", "NAPTR", "NS", "PTR", "SRV", "TLSA", "TXT"];

/// The types that are made here.
const MADE: [RecordType; 4] = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];

impl PlanningFlags {
    /// The settings they amount to with this provider, if one is named, for this instance.
    pub(in crate::cli) fn settings(
        &self,
        provider: Option<&ProviderKind>,
        instance: Instance,
    ) -> Result<PlanSettings, Failure> {
        let mut settings = PlanSettings::new(self.registry(provider, instance)?);
        settings.policy = match self.policy {
            Some(PolicyFlag::Sync) | None => Policy::Sync,
            Some(PolicyFlag::UpsertOnly) => Policy::UpsertOnly,
            Some(PolicyFlag::CreateOnly) => Policy::CreateOnly,
        };
        settings.managed = self.managed();
        settings.confirm_deletes = self.confirm_deletes;
        settings.adopt = self.adopt.iter().map(|name| name.trim_end_matches('.').to_ascii_lowercase().into()).collect();
        Ok(settings)
    }

    /// Takes from the provider of the command line what was not said for this one. Without an owner id of its
    /// own it has one with this name: two providers may lead to one zone.
    pub(in crate::cli) fn inherit(&mut self, default: &PlanningFlags, name: Option<&str>) {
        self.policy = self.policy.or(default.policy);
        self.dry_run |= default.dry_run;
        self.confirm_deletes |= default.confirm_deletes;
        if let Some(name) = name {
            self.txt_owner_id = format!("{}-{name}", default.txt_owner_id);
        }
    }

    /// Whether somebody said what may be written.
    pub(in crate::cli) fn has_policy(&self) -> bool {
        self.policy.is_some()
    }

    /// Our owner id.
    pub(in crate::cli) fn owner(&self) -> &str {
        &self.txt_owner_id
    }

    /// What is to be said where records are written under the id that every other installation has, too.
    pub(in crate::cli) fn shared_owner_note(&self) -> Option<&'static str> {
        let is_marked = !matches!(self.registry, Some(RegistryFlag::Noop));
        (is_marked && self.txt_owner_id == DEFAULT_OWNER && self.mode() == Mode::Act).then_some(
            "--txt-owner-id is not set, so records are marked with the id `default`; another program in the same zone \
             with that id would treat them as its own, and could delete them",
        )
    }

    /// Whether anything is written.
    pub(in crate::cli) fn mode(&self) -> Mode {
        if self.dry_run { Mode::Observe } else { Mode::Act }
    }

    fn managed(&self) -> BTreeSet<RecordType> {
        let is_managed = |kind: &RecordType| {
            let named = |names: &[String]| names.iter().any(|name| name == kind.as_str());
            named(&self.managed_record_types) && !named(&self.exclude_record_types)
        };
        MADE.into_iter().filter(is_managed).collect()
    }

    fn registry(&self, provider: Option<&ProviderKind>, instance: Instance) -> Result<Registry, Failure> {
        let layout = Layout::new(&self.txt_prefix, &self.txt_suffix, &self.txt_wildcard_replacement)
            .map_err(|error| Failure::usage(format!("{error}: keep one")))?;
        let key = self.seal_key()?;
        match (self.registry, provider) {
            (Some(RegistryFlag::Noop), _) => {
                self.refuse_without_txt()?;
                Ok(Registry::Noop)
            }
            (None, Some(provider)) if provider.is_sole_writer => Ok(Registry::WholeZone),
            (Some(RegistryFlag::Txt) | None, _) => Ok(Registry::Txt(Box::new(TxtRegistry {
                layout,
                key,
                is_sealing: self.txt_encrypt_enabled,
                migrate_from: self.migrate_from_txt_owner.as_deref().map(Into::into),
                replaces_instance: self.replace_instance,
                ..TxtRegistry::new(&self.txt_owner_id, instance)
            }))),
        }
    }

    fn refuse_without_txt(&self) -> Result<(), Failure> {
        let given = [
            ("--txt-encrypt-enabled", self.txt_encrypt_enabled),
            ("--migrate-from-txt-owner", self.migrate_from_txt_owner.is_some()),
            ("--replace-instance", self.replace_instance),
            ("--adopt", !self.adopt.is_empty()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => {
                Err(Failure::usage(format!("{flag} needs a registry: leave --registry noop out, or leave {flag} out")))
            }
            None => Ok(()),
        }
    }

    fn seal_key(&self) -> Result<Option<SealKey>, Failure> {
        let flag = "--txt-encrypt-aes-key";
        let Some(bytes) = secret(flag, &self.txt_encrypt_aes_key, &self.txt_encrypt_aes_key_file)? else {
            return match self.txt_encrypt_enabled {
                true => Err(Failure::usage(format!("--txt-encrypt-enabled needs a key: add {flag}-file"))),
                false => Ok(None),
            };
        };
        let trimmed = || SealKey::parse(bytes.trim_ascii());
        SealKey::parse(&bytes).or_else(|_| trimmed()).map(Some).map_err(|error| Failure::usage(error.to_string()))
    }
}

fn owner(text: &str) -> Result<String, String> {
    let is_owner = TxtRegistry::is_owner(text);
    is_owner.then(|| text.to_owned()).ok_or_else(|| "write 1 to 128 letters, digits or signs, no comma".to_owned())
}

fn record_type(text: &str) -> Result<String, String> {
    let known = TYPES.into_iter().find(|kind| kind.eq_ignore_ascii_case(text));
    known.map(str::to_owned).ok_or_else(|| format!("expected one of {}", TYPES.join(", ")))
}

#[cfg(test)]
mod tests {
    use clap::{FromArgMatches, Parser};

    use super::*;

    #[derive(Parser, Debug)]
    struct PlanningCli {
        #[command(flatten)]
        planning: PlanningFlags,
    }

    fn flags(words: &[&str]) -> PlanningFlags {
        let matches = <PlanningCli as clap::CommandFactory>::command().no_binary_name(true).get_matches_from(words);
        PlanningCli::from_arg_matches(&matches).unwrap().planning
    }

    fn settings(words: &[&str]) -> Result<PlanSettings, String> {
        let found = flags(words).settings(Some(&gatepost_dns::providers::rfc2136::KIND), Instance::default());
        found.map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn the_usual_settings_are_those_of_external_dns() {
        let usual = settings(&[]).unwrap();
        assert_eq!(usual.managed, [RecordType::A, RecordType::Aaaa, RecordType::Cname].into());
        assert_eq!(usual.policy, Policy::Sync);
        match usual.registry {
            Registry::Txt(registry) => assert_eq!(&*registry.owner, "default"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn types_are_named_in_any_case_and_taken_away() {
        let words =
            ["--managed-record-types=a,NS", "--managed-record-types", "CNAME", "--exclude-record-types", "cname"];
        assert_eq!(settings(&words).unwrap().managed, [RecordType::A].into());
    }

    #[test]
    fn what_does_not_go_together_names_the_flag_and_the_fix() {
        let rows: [(&[&str], &str); 6] = [
            (&["--txt-prefix", "a", "--txt-suffix", "b"], "--txt-prefix"),
            (&["--txt-encrypt-enabled"], "--txt-encrypt-aes-key-file"),
            (&["--txt-encrypt-aes-key", "short"], "--txt-encrypt-aes-key"),
            (&["--registry", "noop", "--migrate-from-txt-owner", "x"], "--migrate-from-txt-owner"),
            (&["--registry", "noop", "--txt-encrypt-enabled"], "--txt-encrypt-enabled"),
            (&["--txt-encrypt-aes-key", "k", "--txt-encrypt-aes-key-file", "/nowhere"], "exclude each other"),
        ];
        for (words, named) in rows {
            let error = settings(words).unwrap_err();
            assert!(error.contains(named), "{words:?}: {error}");
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let key = "canary-0123456789abcdef012345678";
        let flags = flags(&["--txt-encrypt-enabled", "--txt-encrypt-aes-key", key]);
        assert!(!format!("{flags:?}").contains("canary"));
        let settings = flags.settings(Some(&gatepost_dns::providers::rfc2136::KIND), Instance::default());
        assert!(!format!("{settings:?}").contains("canary"));
    }
}
