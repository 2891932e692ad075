//! Roles, assumed at the token service of AWS (STS).

use std::time::Duration;

use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Request};
use jiff::Timestamp;

use super::super::client::check_url;
use super::super::signing::{self, SignedParts, SigningScope};
use super::super::wire::{self, ErrorAnswer};
use super::{AwsEnvironment, Credentials};
use crate::provider::http::Cause;
use crate::provider::http::connections::{AGENT, HttpConnections};
use crate::provider::settings::SecretText;
use crate::provider::{ProviderError, ProviderProblem, Result};

/// The most bytes of an answer.
const MAX_BODY: usize = 256 << 10;

/// A role to assume.
pub(super) struct AssumedRole<'a> {
    pub(super) arn: &'a str,
    pub(super) session: &'a str,
    pub(super) external_id: Option<&'a str>,
}

/// The service, in a region.
pub(super) struct TokenService {
    base: String,
    region: String,
    connections: HttpConnections,
}

impl TokenService {
    pub(super) fn new(environment: &AwsEnvironment, region: &str, patience: Duration) -> Result<TokenService> {
        let base = match environment.endpoint("AWS_ENDPOINT_URL_STS") {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None if region.starts_with("cn-") => format!("https://sts.{region}.amazonaws.com.cn"),
            None => format!("https://sts.{region}.amazonaws.com"),
        };
        check_url("AWS_ENDPOINT_URL_STS", &base)?;
        Ok(TokenService { base, region: region.to_owned(), connections: HttpConnections::new(patience)? })
    }

    /// With credentials.
    pub(super) async fn assume(
        &self,
        role: &AssumedRole<'_>,
        credentials: &Credentials,
        now: Timestamp,
    ) -> Result<Credentials> {
        let mut form = role.form("AssumeRole");
        form.extend(role.external_id.map(|id| ("ExternalId", id)));
        self.ask(&form, role.arn, Some((credentials, now))).await
    }

    /// With a token of somebody else whom AWS trusts.
    pub(super) async fn assume_with_web_identity(&self, role: &AssumedRole<'_>, token: &str) -> Result<Credentials> {
        let mut form = role.form("AssumeRoleWithWebIdentity");
        form.push(("WebIdentityToken", token));
        self.ask(&form, role.arn, None).await
    }

    async fn ask(
        &self,
        form: &[(&str, &str)],
        arn: &str,
        signer: Option<(&Credentials, Timestamp)>,
    ) -> Result<Credentials> {
        let body = signing::query_text(form).into_bytes();
        let host = self.base.split("://").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
        let mut builder = Request::builder().method(Method::POST).uri(format!("{}/", self.base)).header(HOST, host);
        builder = builder.header(CONTENT_TYPE, "application/x-www-form-urlencoded").header(USER_AGENT, AGENT);
        if let Some((credentials, now)) = signer {
            let parts = SignedParts { method: "POST", host, path: "/", query: &[], body: &body };
            let scope = SigningScope { region: self.region.clone(), service: "sts" };
            for (name, value) in signing::headers(&parts, &scope, credentials, now) {
                builder = builder.header(name, value);
            }
        }
        let about = |problem| ProviderError::new(problem).at(&self.base);
        let request = builder.body(Full::new(body.into()));
        let request = request.map_err(|_| ProviderError::settings("credentials with characters that none have"))?;
        let answer = self.connections.send(request, MAX_BODY).await.map_err(|cause| match cause {
            Cause::NotConnected(cause) | Cause::Broken(cause) => {
                about(ProviderProblem::Unreachable(format!("the role `{arn}` could not be assumed: {cause}")))
            }
        })?;
        if !answer.status.is_success() {
            // The service may repeat what was sent to it, so only its code is told.
            let code = ErrorAnswer::read(&answer.body).map(|error| error.code).unwrap_or_default();
            let (code, is_busy) = (wire::plain_code(&code), answer.status.is_server_error() || code == "Throttling");
            let code = format!("status {}, {code}", answer.status.as_u16());
            let meaning = format!("the role `{arn}` could not be assumed");
            return Err(about(match is_busy {
                true => ProviderProblem::Failed { code, meaning },
                false => ProviderProblem::Refused { code, meaning },
            }));
        }
        // The answer is never part of a message: it has the key.
        let odd = || about(ProviderProblem::Protocol(format!("no credentials came for the role `{arn}`")));
        let text = std::str::from_utf8(&answer.body).map_err(|_| odd())?;
        wire::assumed_credentials(text).ok_or_else(odd).and_then(|found| {
            let expires = found.expires.parse().map_err(|_| odd())?;
            let token = Some(SecretText::new(found.token));
            Ok(Credentials {
                key_id: found.key_id,
                secret: SecretText::new(found.secret),
                token,
                expires: Some(expires),
            })
        })
    }
}

impl<'a> AssumedRole<'a> {
    fn form(&self, action: &'a str) -> Vec<(&'a str, &'a str)> {
        vec![("Action", action), ("Version", "2011-06-15"), ("RoleArn", self.arn), ("RoleSessionName", self.session)]
    }
}
