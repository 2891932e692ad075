//! Who asks, and in which namespaces they may read routes: TokenReview and SubjectAccessReview at the API server.
//!
//! What the server said is remembered for a minute, in a bounded number of entries. A token is never kept, only its digest.
//! Where the server cannot be asked nobody is let in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gatepost_core::model::{Kind, RouteKind};
use gatepost_kube::Connection;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::visibility::Viewer;

/// How long an answer of the API server holds.
const HOLDS: Duration = Duration::from_secs(60);
/// Answers about tokens and about namespaces that are remembered at a time.
const MOST_TOKENS: usize = 1024;
const MOST_NAMESPACES: usize = 65_536;
/// Questions to the API server at a time.
const AT_ONCE: usize = 8;
/// How long a request waits for answers; those that came by then are remembered.
const PATIENCE: Duration = Duration::from_secs(5);
/// A longer token is none.
const LONGEST_TOKEN: usize = 16 * 1024;

/// Why somebody is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewRefusal {
    /// There is no token, or the cluster does not know it.
    Unknown(String),
    /// The cluster could not be asked, or not about everything yet.
    NotYet(String),
}

/// Somebody whom the cluster knows.
#[derive(Debug)]
pub struct ReviewedUser {
    /// `user`, `groups`, `uid` and `extra` of a SubjectAccessReview.
    subject: Value,
    digest: Digest,
}

type Digest = [u8; 32];

/// Asks the API server, and remembers what it said.
pub struct Reviews {
    connection: Connection,
    turns: Semaphore,
    users: Mutex<RecentAnswers<Digest, Option<Arc<ReviewedUser>>>>,
    access: Mutex<RecentAnswers<(Digest, String), bool>>,
}

impl std::fmt::Debug for Reviews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reviews({:?})", self.connection)
    }
}

impl Reviews {
    /// Questions with the controller's own credentials.
    pub fn new(connection: Connection) -> Self {
        Reviews {
            connection,
            turns: Semaphore::new(AT_ONCE),
            users: Mutex::new(RecentAnswers::new(MOST_TOKENS)),
            access: Mutex::new(RecentAnswers::new(MOST_NAMESPACES)),
        }
    }

    /// Who has a token, by TokenReview.
    pub async fn user(&self, token: Option<&str>) -> Result<Arc<ReviewedUser>, ReviewRefusal> {
        let unknown = |why: &str| ReviewRefusal::Unknown(why.to_owned());
        let token = token.ok_or_else(|| unknown("a token of the cluster is needed (Authorization: Bearer)"))?;
        if token.is_empty() || token.len() > LONGEST_TOKEN {
            return Err(unknown("this cannot be a token of the cluster: it is empty or too long"));
        }
        let digest = sha256(token.as_bytes());
        let known = locked(&self.users).get(&digest);
        let user = match known {
            Some(user) => user,
            None => {
                let question = json!({
                    "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
                });
                let answer = self.ask("/apis/authentication.k8s.io/v1/tokenreviews", &question).await?;
                let user = ReviewedUser::of(&answer).map(Arc::new);
                locked(&self.users).put(digest, user.clone());
                user
            }
        };
        user.ok_or_else(|| unknown("the cluster does not know this token, or it has expired"))
    }

    /// What a user may see of these namespaces: those in which they may `get` HTTPRoutes.
    pub async fn viewer(
        self: &Arc<Self>,
        user: &Arc<ReviewedUser>,
        namespaces: &BTreeSet<String>,
    ) -> Result<Viewer, ReviewRefusal> {
        if self.may_read(user, "").await? {
            return Ok(Viewer::everything());
        }
        let mut questions = JoinSet::new();
        for namespace in namespaces.iter().cloned() {
            let (reviews, user) = (self.clone(), user.clone());
            questions.spawn(async move { (reviews.may_read(&user, &namespace).await, namespace) });
        }
        let (mut visible, mut answered) = (BTreeSet::new(), 0);
        let end = tokio::time::Instant::now() + PATIENCE;
        while let Ok(Some(Ok((answer, namespace)))) = tokio::time::timeout_at(end, questions.join_next()).await {
            answered += 1;
            if answer? {
                visible.insert(namespace);
            }
        }
        match answered == namespaces.len() {
            true => Ok(Viewer::of(visible, namespaces)),
            false => Err(ReviewRefusal::NotYet(format!(
                "the API server was asked about {answered} of {} namespaces so far; ask again",
                namespaces.len()
            ))),
        }
    }

    /// Whether a user may `get` HTTPRoutes in a namespace, or, where it is empty, in all.
    async fn may_read(&self, user: &ReviewedUser, namespace: &str) -> Result<bool, ReviewRefusal> {
        let key = (user.digest, namespace.to_owned());
        if let Some(known) = locked(&self.access).get(&key) {
            return Ok(known);
        }
        let routes = Kind::Route(RouteKind::Http);
        let mut spec = user.subject.clone();
        spec["resourceAttributes"] =
            json!({"verb": "get", "group": routes.group(), "resource": routes.resource(), "namespace": namespace});
        let question = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
        let answer = self.ask("/apis/authorization.k8s.io/v1/subjectaccessreviews", &question).await?;
        let may = answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false);
        locked(&self.access).put(key, may);
        Ok(may)
    }

    async fn ask(&self, path: &str, question: &Value) -> Result<Value, ReviewRefusal> {
        let not_yet = |why: String| ReviewRefusal::NotYet(format!("who asks could not be reviewed: {why}"));
        let asked = async {
            let _turn = self.turns.acquire().await.map_err(|error| error.to_string())?;
            let answer = self.connection.send(hyper::Method::POST, path, question).await;
            // What the server says may quote the question, in which the token is.
            answer.map_err(|error| match error.is_forbidden() {
                true => "the controller may not create reviews; `gatepost check --pre --page cluster` tells".to_owned(),
                false => "the API server does not answer".to_owned(),
            })
        };
        let answer = tokio::time::timeout(PATIENCE, asked).await;
        answer.unwrap_or_else(|_| Err("the API server does not answer in time".to_owned())).map_err(not_yet)
    }
}

impl ReviewedUser {
    /// The user of a TokenReview's answer, if the token is good.
    fn of(answer: &Value) -> Option<Self> {
        let status = answer.get("status")?;
        if status.get("authenticated").and_then(Value::as_bool) != Some(true) {
            return None;
        }
        let user = status.get("user")?;
        let name = user.get("username").and_then(Value::as_str).filter(|name| !name.is_empty())?;
        let mut subject = json!({"user": name});
        for field in ["groups", "uid", "extra"] {
            if let Some(value) = user.get(field) {
                subject[field] = value.clone();
            }
        }
        // The identifier of the token differs from one token to the next, and nobody's rights depend on it.
        let digest = sha256(subject.to_string().as_bytes());
        Some(ReviewedUser { subject, digest })
    }
}

/// Answers that hold for a while, at most so many.
#[derive(Debug)]
struct RecentAnswers<K, V> {
    most: usize,
    by_question: BTreeMap<K, (V, Instant)>,
    /// The questions by their age.
    by_age: BTreeMap<u64, K>,
    next: u64,
}

impl<K: Ord + Clone, V: Clone> RecentAnswers<K, V> {
    fn new(most: usize) -> Self {
        RecentAnswers { most, by_question: BTreeMap::new(), by_age: BTreeMap::new(), next: 0 }
    }

    fn get(&self, question: &K) -> Option<V> {
        let (answer, at) = self.by_question.get(question)?;
        (at.elapsed() < HOLDS).then(|| answer.clone())
    }

    /// The oldest entries go first; one that was answered anew may go early, which costs a question.
    fn put(&mut self, question: K, answer: V) {
        while self.by_age.len() >= self.most {
            let Some((_, oldest)) = self.by_age.pop_first() else { break };
            self.by_question.remove(&oldest);
        }
        self.by_age.insert(self.next, question.clone());
        self.next += 1;
        self.by_question.insert(question, (answer, Instant::now()));
    }
}

fn sha256(bytes: &[u8]) -> Digest {
    let mut digest = Digest::default();
    digest.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref());
    digest
}

fn locked<T>(answers: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_of_answers_is_remembered() {
        let mut answers = RecentAnswers::new(3);
        for question in 0..10 {
            answers.put(question, question * 2);
            answers.put(9, 18);
        }
        assert!(answers.by_question.len() <= 3 && answers.by_age.len() <= 3);
        assert_eq!((answers.get(&9), answers.get(&0)), (Some(18), None));
    }

    #[test]
    fn only_an_authenticated_user_with_a_name_is_known() {
        let answer = |status: Value| ReviewedUser::of(&json!({"status": status})).map(|user| user.subject);
        assert_eq!(answer(json!({"authenticated": false, "user": {"username": "a"}})), None);
        assert_eq!(answer(json!({"authenticated": true, "user": {"username": ""}})), None);
        assert_eq!(answer(json!({"authenticated": true})), None);
        let known = answer(json!({"authenticated": true, "user": {"username": "a", "groups": ["b"], "other": 1}}));
        assert_eq!(known, Some(json!({"user": "a", "groups": ["b"]})));
    }
}
