//! Credentials as the token service, a container and an instance of AWS hand them out.

use super::account::AwsAccount;
use super::answers::{AwsAnswer, element};
use super::{AwsCall, pairs, signature};

/// The role that may be assumed.
pub const ROLE: &str = "arn:aws:iam::000000000000:role/gatepost";

/// The key of that role, which needs its token.
pub(super) const ROLE_KEY: &str = "ASIACANARYOFTHEROLE";

/// Its secret.
pub const ROLE_SECRET: &str = "canary/secret+of/the+role";

/// Its token.
pub(super) const ROLE_TOKEN: &str = "canary-session-token==";

/// What stands for the role at the token service.
pub const WEB_IDENTITY: &str = "canary.web.identity";

/// What the container proves with that it may ask.
pub const CONTAINER_TOKEN: &str = "canary-container-token";

/// The token of a session with the instance.
const SESSION: &str = "canary-instance-session";

/// Answers a question for credentials; nothing where it is none.
pub(super) fn answer(call: &AwsCall, account: &AwsAccount) -> Option<AwsAnswer> {
    let denied = || AwsAnswer::error(401, "Unauthorized", "unauthorized");
    let has = |name: &str, value: &str| call.header(name) == Some(value);
    let role = "/latest/meta-data/iam/security-credentials/";
    Some(match (&*call.method, &*call.path) {
        ("POST", "/") => token_service(call, account),
        ("GET", "/container") if has("authorization", CONTAINER_TOKEN) => document(false),
        ("PUT", "/latest/api/token") if call.header("x-aws-ec2-metadata-token-ttl-seconds").is_some() => {
            AwsAnswer { status: 200, headers: Vec::new(), body: SESSION.to_owned() }
        }
        ("GET", path) if path.starts_with(role) && has("x-aws-ec2-metadata-token", SESSION) => {
            match &path[role.len()..] {
                "" => AwsAnswer { status: 200, headers: Vec::new(), body: "gatepost-role".to_owned() },
                "gatepost-role" => document(true),
                _ => AwsAnswer { status: 404, headers: Vec::new(), body: String::new() },
            }
        }
        (_, path) if path == "/container" || path.starts_with("/latest/") => denied(),
        _ => return None,
    })
}

fn token_service(call: &AwsCall, account: &AwsAccount) -> AwsAnswer {
    let form = pairs(&call.body);
    let get = |key: &str| form.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
    let action = get("Action").unwrap_or_default();
    let is_known = get("RoleArn") == Some(ROLE) && get("RoleSessionName").is_some_and(|name| !name.is_empty());
    let allowed = match action {
        "AssumeRole" => match signature::check(call, account) {
            Ok(()) => get("ExternalId").is_none_or(|id| id == "external"),
            Err(refusal) => return refusal,
        },
        "AssumeRoleWithWebIdentity" => get("WebIdentityToken") == Some(WEB_IDENTITY),
        _ => false,
    };
    if !is_known || !allowed || get("Version") != Some("2011-06-15") {
        let message = format!("User is not authorized to perform: sts:{action} with {}", call.body);
        return AwsAnswer::error(403, "AccessDenied", &message);
    }
    let inner = [
        element("AccessKeyId", ROLE_KEY),
        element("SecretAccessKey", ROLE_SECRET),
        element("SessionToken", ROLE_TOKEN),
        element("Expiration", "2099-01-01T00:00:00Z"),
    ];
    let body = format!(
        "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><Credentials>{}\
         </Credentials></{action}Result></{action}Response>",
        inner.concat()
    );
    AwsAnswer { status: 200, headers: Vec::new(), body }
}

fn document(is_of_instance: bool) -> AwsAnswer {
    let code = if is_of_instance { "\"Code\":\"Success\",\"Type\":\"AWS-HMAC\"," } else { "" };
    let body = format!(
        "{{{code}\"AccessKeyId\":\"{ROLE_KEY}\",\"SecretAccessKey\":\"{ROLE_SECRET}\",\"Token\":\"{ROLE_TOKEN}\",\
         \"Expiration\":\"2099-01-01T00:00:00Z\"}}"
    );
    AwsAnswer { status: 200, headers: Vec::new(), body }
}
