//! Certificates of a controller: whose they are to be, and the term of leading that they are made in.
//!
//! What is remembered is read anew with every term, because another replica may have written it since; within a term it is
//! read again only when somebody else wrote it after all. Who does not lead orders nothing, and reads only what its own DNS
//! server is to answer.

use std::sync::Arc;

use gatepost_core::model::Str;
use gatepost_core::publication::Record;
use gatepost_core::reason;
use gatepost_core::snapshot::Snapshot;
use gatepost_kube::Connection;
use gatepost_tls::certifier::Certifier;
use gatepost_tls::decide::IssuanceRules;
use gatepost_tls::issuer::Issuer;

use crate::certificates::{self, Certificates, now};
use crate::cli::Failure;
use crate::cli::flags::issuer::{ChallengeSources, IssuerFlag, IssuerFlags, unusable};
use crate::cli::flags::issuing::Bystander;
use crate::cli::session::Session;
use crate::controller::permit::Permit;
use crate::controller::secrets::{SecretNotebook, SecretStore};
use crate::run::{ChallengeRecords, Pass};

/// Where certificates are made and kept.
pub(super) struct Issuance {
    flags: IssuerFlags,
    places: ChallengeSources,
    secrets: SecretSettings,
    /// The words of the term that certificates were opened in, and where they are remembered.
    open: Option<(String, Arc<SecretNotebook>)>,
    /// What stands in the way of everything.
    trouble: Option<String>,
    wake: Option<i64>,
}

/// The Secrets of a controller.
#[derive(Clone)]
pub(super) struct SecretSettings {
    pub(super) connection: Connection,
    /// The controller's own namespace.
    pub(super) namespace: String,
    /// What the names of its own Secrets begin with.
    pub(super) prefix: String,
    /// Who may write.
    pub(super) permit: Permit,
}

/// The issuer is not asked more often behind one pass: records of other names wait for its answers.
const CALLS: usize = 10;
/// After so many seconds it is tried again where nothing could be done.
const AGAIN: i64 = 10;
/// How often a replica that does not lead looks which challenges its own DNS server is to answer, in seconds.
const LOOK: i64 = 3;

impl Issuance {
    /// Issuance by an issuer that makes key pairs; nothing where there is none. IssuanceEventKind cannot work is told at once.
    pub(super) fn new(
        flags: &IssuerFlags,
        places: ChallengeSources,
        secrets: SecretSettings,
    ) -> Result<Option<Issuance>, Failure> {
        flags.check()?;
        match flags.kind() {
            Some(IssuerFlag::Embedded | IssuerFlag::Acme) => {}
            Some(IssuerFlag::CertManager) | None => return Ok(None),
        }
        flags.acme(secrets.notebook(None))?;
        Ok(Some(Issuance { flags: flags.clone(), places, secrets, open: None, trouble: None, wake: None }))
    }

    /// When something is to be done, in seconds since 1970.
    pub(super) fn wake(&self) -> Option<i64> {
        self.wake
    }

    /// Opens certificates for our term, and closes those of a term that is over.
    pub(super) async fn prepare(&mut self, session: &mut Session) {
        let permit = &self.secrets.permit;
        let term = permit.fencing_token().filter(|_| permit.leads());
        let is_open = |(words, notes): &(String, Arc<SecretNotebook>)| Some(words) == term.as_ref() && !notes.is_lost();
        if self.open.as_ref().is_some_and(is_open) {
            return;
        }
        (self.open, session.certificates, self.wake) = (None, None, None);
        match term.filter(|_| permit.refusal().is_none()) {
            Some(term) => self.begin(term, session).await,
            None if session.local.is_some() => self.follow(session).await,
            None => {}
        }
    }

    async fn begin(&mut self, term: String, session: &mut Session) {
        let notebook = self.secrets.notebook(Some(term.clone()));
        match self.certificates(notebook.clone()).await {
            Ok(certificates) => {
                session.challenge_records = certificates.challenge_records();
                session.certificates = Some(certificates);
                (self.open, self.trouble) = (Some((term, notebook)), None);
            }
            Err(Failure::Usage(error) | Failure::Unreadable(error)) => self.stumble(format!("{error:#}")),
            Err(Failure::Unheard) => {}
        }
    }

    async fn certificates(&self, notebook: Arc<SecretNotebook>) -> Result<Certificates, Failure> {
        let issuer = self.flags.open(notebook.clone()).await?;
        let store = self.secrets.store(&*issuer);
        let rules = IssuanceRules { calls: CALLS, ..self.flags.rules(issuer.limits()) };
        let certifier = Certifier::open(issuer, Arc::new(store), notebook, rules).await.map_err(unusable)?;
        Ok(Certificates::new(certifier, self.flags.challenge_servers(self.places.clone()).await?))
    }

    /// Looks which challenges the leader wants answered: our own DNS server answers for it as well.
    async fn follow(&mut self, session: &mut Session) {
        self.wake = Some(now() + LOOK);
        let bystander: Arc<dyn Issuer> = Arc::new(Bystander(Default::default()));
        let (store, notebook) = (self.secrets.store(&*bystander), self.secrets.notebook(None));
        let rules = self.flags.rules(bystander.limits());
        if let Ok(certifier) = Certifier::open(bystander, Arc::new(store), notebook, rules).await {
            session.challenge_records = after(&session.challenge_records, certifier.challenges());
        }
    }

    /// Lets orders advance behind a pass, and puts what became of them into its reports.
    pub(super) async fn certify(&mut self, session: &mut Session, snapshot: &Snapshot, pass: &mut Pass) {
        if session.certificates.is_some() && self.secrets.permit.refusal().is_none() {
            match session.certify(snapshot, pass).await {
                Ok(again) => {
                    let wake = session.certificates.as_ref().and_then(|certificates| certificates.round().wake);
                    self.wake = if again { Some(now()) } else { wake };
                    self.trouble = None;
                }
                Err(why) => self.stumble(why),
            }
        } else {
            let idle =
                || self.secrets.permit.refusal().unwrap_or_else(|| "only a leader that may write issues".to_owned());
            let (reason, why) = match &self.trouble {
                Some(why) => (reason::CERTIFICATE_NOT_STORED, why.clone()),
                None => (reason::CERTIFICATE_PENDING, idle()),
            };
            let known = &pass.issuing;
            let withhold = |desired: &mut _| certificates::withhold(desired, snapshot, known, reason, &why);
            pass.touched.policies.extend(session.desired.reflect(withhold));
        }
        pass.notes.extend(self.trouble.iter().map(|why| format!("certificates: {why}")));
    }

    fn stumble(&mut self, why: String) {
        (self.trouble, self.wake) = (Some(why), Some(now() + AGAIN));
    }
}

impl SecretSettings {
    /// What is remembered, to be written in a term of leading, or only to be read.
    fn notebook(&self, term: Option<String>) -> Arc<SecretNotebook> {
        let (connection, permit) = (self.connection.clone(), self.permit.clone());
        Arc::new(SecretNotebook::new(connection, permit, &self.namespace, &self.prefix, term))
    }

    fn store(&self, issuer: &dyn Issuer) -> SecretStore {
        SecretStore::new(self.connection.clone(), self.permit.clone(), issuer.kind(), issuer.root())
    }
}

/// What is to be answered now; what was to be answered before goes.
fn after(before: &ChallengeRecords, challenges: Vec<Record>) -> ChallengeRecords {
    let is_wanted = |name: &Str, value: &Str| challenges.iter().any(|r| r.name == *name && r.targets.contains(value));
    let mut retired = before.challenges.clone();
    for record in &mut retired {
        let left = record.targets.iter().filter(|value| !is_wanted(&record.name, value));
        record.targets = left.cloned().collect();
    }
    retired.retain(|record| !record.targets.is_empty());
    ChallengeRecords { challenges, retired }
}
