//! Credentials that containers and instances of AWS get from an address of their own.
//!
//! Container: ECS, and Pod Identity of EKS. Instance: the metadata service in its second version, with a session token. Plain
//! HTTP goes to addresses of the machine only.

use std::time::Duration;

use http_body_util::Full;
use hyper::header::AUTHORIZATION;
use hyper::{Method, Request, Uri};

use super::{AwsEnvironment, CredentialDocument, Credentials};
use crate::provider::http::connections::{HttpAnswer, HttpConnections};
use crate::provider::http::{Cause, is_loopback};
use crate::provider::{ProviderError, ProviderProblem, Result};

/// Where containers of ECS ask.
const CONTAINER: &str = "http://169.254.170.2";

/// The addresses beside the loopback one that a container may ask without TLS.
const CONTAINER_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"];

/// Where instances ask.
const INSTANCE: &str = "http://169.254.169.254";

/// The metadata service is on the same link, so it answers at once or does not exist.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most bytes of an answer.
const MAX_BODY: usize = 64 << 10;

/// What to do where nothing has credentials.
const NONE: &str = "no AWS credentials: neither the environment (AWS_ACCESS_KEY_ID, or AWS_ROLE_ARN with \
                    AWS_WEB_IDENTITY_TOKEN_FILE) nor a profile nor the container has any, and this \
                    machine is not an instance with a role";

/// Those of the container, where this is one with a role.
pub(super) async fn of_container(environment: &AwsEnvironment, patience: Duration) -> Result<Option<Credentials>> {
    let relative = environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").map(|path| format!("{CONTAINER}{path}"));
    let Some(url) = relative.or_else(|| environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI").map(str::to_owned))
    else {
        return Ok(None);
    };
    check(&url)?;
    let mut builder = Request::builder().uri(&url);
    if let Some(token) = authorization(environment)? {
        builder = builder.header(AUTHORIZATION, token);
    }
    let answer = ask(builder, patience, "the container's credentials").await?;
    document(&answer, "the container's credentials").map(Some)
}

/// Those of the instance.
pub(super) async fn of_instance(environment: &AwsEnvironment) -> Result<Credentials> {
    let none = || ProviderError::settings(NONE);
    if environment.get("AWS_EC2_METADATA_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
        return Err(none());
    }
    let base = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or(INSTANCE).trim_end_matches('/');
    let what = "the metadata service of the instance";
    let begin = Request::builder()
        .method(Method::PUT)
        .uri(format!("{base}/latest/api/token"))
        .header("x-aws-ec2-metadata-token-ttl-seconds", "300");
    // Elsewhere than at AWS nobody is there: that is no failure of the network.
    let token = ask(begin, PATIENCE, what).await.map_err(|_| none())?;
    let token = text(&token);
    let path = format!("{base}/latest/meta-data/iam/security-credentials/");
    let with_token = |url: &str| Request::builder().uri(url).header("x-aws-ec2-metadata-token", &token);
    let roles = ask(with_token(&path), PATIENCE, what).await?;
    let roles = text(&roles);
    let role = roles.lines().next().map(str::trim).filter(|role| !role.is_empty()).ok_or_else(none)?;
    document(&ask(with_token(&format!("{path}{role}")), PATIENCE, what).await?, what)
}

/// What the container proves with that it may ask; a file is read each time, because it changes.
fn authorization(environment: &AwsEnvironment) -> Result<Option<String>> {
    let Some(file) = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") else {
        return Ok(environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned));
    };
    let cause = |error| ProviderError::settings(format!("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE `{file}`: {error}"));
    Ok(Some(std::fs::read_to_string(file).map_err(cause)?.trim().to_owned()))
}

fn check(url: &str) -> Result<()> {
    let uri = url.parse::<Uri>().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    match uri.as_ref().and_then(Uri::scheme_str) {
        Some("https") => Ok(()),
        Some("http") if is_loopback(host) || CONTAINER_HOSTS.contains(&host) => Ok(()),
        _ => {
            let message =
                format!("AWS_CONTAINER_CREDENTIALS_FULL_URI `{url}`: it must be https, or an address of this machine");
            Err(ProviderError::settings(message))
        }
    }
}

async fn ask(builder: hyper::http::request::Builder, patience: Duration, what: &str) -> Result<HttpAnswer> {
    let request =
        builder.body(Full::default()).map_err(|_| ProviderError::settings(format!("{what}: bad address or token")))?;
    let failed = |cause: String| ProviderError::new(ProviderProblem::Unreachable(format!("{what}: {cause}")));
    let answer = HttpConnections::new(patience)?.send(request, MAX_BODY).await.map_err(|cause| match cause {
        Cause::NotConnected(cause) | Cause::Broken(cause) => failed(cause),
    })?;
    match answer.status.is_success() {
        true => Ok(answer),
        false => Err(failed(format!("status {}", answer.status.as_u16()))),
    }
}

/// The answer is never part of a message: it has the key.
fn document(answer: &HttpAnswer, what: &str) -> Result<Credentials> {
    let odd = || ProviderError::new(ProviderProblem::Unreachable(format!("{what}: the answer has no credentials")));
    let document: CredentialDocument = serde_json::from_slice(&answer.body).map_err(|_| odd())?;
    document.into_credentials().map_err(|_| odd())
}

fn text(answer: &HttpAnswer) -> String {
    String::from_utf8_lossy(&answer.body).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_asks_itself_only() {
        for good in
            ["http://169.254.170.23/v1/credentials", "http://[fd00:ec2::23]/v1", "http://localhost:1/x", "https://x/y"]
        {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["http://192.0.2.1/x", "http://169.254.170.2.evil.test/", "ftp://localhost", "x", ""] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
