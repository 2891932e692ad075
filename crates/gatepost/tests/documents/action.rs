//! The script of the Action, on a repository with a change: annotations, the plan in the summary, and one comment that is edited
//! in place. GitHub is a listener of the test, which keeps comments as GitHub does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use gatepost_testkit::scratch::Scratch;
use gatepost_testkit::{Failed, Trial, servers, tree};
use serde_json::{Value, json};

type Test = fn() -> Result<(), Failed>;

/// What the script runs besides the shell.
const PROGRAMS: [&str; 3] = ["git", "curl", "jq"];

pub(crate) fn trials() -> Vec<Trial> {
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| servers::find(program).is_none()).collect();
    let tests: [(&str, Test); 3] = [
        ("the Action: problems are annotations, and the plan is in the summary", summary),
        ("the Action: one comment, edited in place, and only one of its own", comments),
        ("the Action: a comment that may not be written does not fail the check", refused),
    ];
    let skipped = |name: &str| {
        let name = format!("{name} (skipped: no {})", missing.join(", "));
        Trial::test(name, || Ok(())).with_ignored_flag(true)
    };
    let is_wanted = missing.is_empty() || std::env::var_os("CI").is_some();
    tests.into_iter().map(|(name, test)| if is_wanted { Trial::test(name, test) } else { skipped(name) }).collect()
}

/// A repository with manifests, and a branch on which a hostname is another one.
struct Repository {
    folder: Scratch,
    base: String,
}

impl Repository {
    fn new() -> Result<Repository, Failed> {
        let folder = Scratch::new()?;
        let example = tree::root().join("examples/ci-github/manifests");
        for path in tree::files(&example) {
            folder.file(&format!("work/manifests/{}", tree::below(&example, &path)), &tree::text(&path)?)?;
        }
        let mut repository = Repository { folder, base: String::new() };
        repository.git(&["init", "--quiet", "--initial-branch", "main", "."])?;
        repository.commit()?;
        repository.base = repository.git(&["rev-parse", "HEAD"])?.trim().to_owned();
        repository.replace("shop.example.org", "store.example.org")?;
        Ok(repository)
    }

    fn work(&self) -> std::path::PathBuf {
        self.folder.path().join("work")
    }

    fn git(&self, words: &[&str]) -> Result<String, Failed> {
        let name = ["-c", "user.name=test", "-c", "user.email=test@example.org"];
        let done = Command::new("git").args(name).args(words).current_dir(self.work()).output()?;
        assert!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    fn commit(&self) -> Result<(), Failed> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", "change"]).map(drop)
    }

    fn replace(&self, from: &str, to: &str) -> Result<(), Failed> {
        let path = self.work().join("manifests/shop.yaml");
        std::fs::write(&path, tree::text(&path)?.replace(from, to))?;
        self.commit()
    }

    /// Runs the script as the Action does; status, output, and what is in the summary.
    fn run(&self, variables: &[(&str, &str)]) -> Result<(i32, String, String), Failed> {
        let summary = self.folder.file("summary.md", "")?;
        let mut command = Command::new(tree::root().join("scripts/pull-request"));
        command.current_dir(self.work()).env("GATEPOST", env!("CARGO_BIN_EXE_gatepost")).env("FILES", "manifests\n");
        command.env("BASE", &self.base).env("GITHUB_STEP_SUMMARY", &summary).envs(variables.iter().copied());
        let done = command.output()?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        assert_eq!(self.git(&["worktree", "list"])?.lines().count(), 1, "a worktree is left");
        Ok((done.status.code().unwrap_or(-1), said, tree::text(Path::new(&summary))?))
    }
}

fn summary() -> Result<(), Failed> {
    let repository = Repository::new()?;
    let (exit, said, summary) = repository.run(&[])?;
    assert_eq!(exit, 0, "{said}");
    assert!(summary.starts_with("<!-- gatepost-plan -->\n### Gatepost: 1 name gained, 1 lost"), "{summary}");
    assert!(summary.contains("| `gained` | `store.example.org` |"), "{summary}");

    repository.replace("expose: public", "expose: nobody")?;
    let (exit, said, summary) = repository.run(&[])?;
    assert_eq!(exit, 1, "{said}");
    assert!(said.contains("::error file=manifests/shop.yaml,line="), "{said}");
    assert!(summary.contains("| `lost` | `www.example.org` |"), "{summary}");
    Ok(())
}

/// Comments as GitHub keeps them. Calls without the right token are refused.
#[derive(Clone, Default)]
struct GitHub(Arc<Mutex<Vec<Value>>>);

impl GitHub {
    /// Answers until the test ends; the address to call it at.
    fn start(&self) -> Result<String, Failed> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let github = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = github.answer(stream);
            }
        });
        Ok(address)
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut head, mut length, mut is_allowed) = (String::new(), 0, false);
        reader.read_line(&mut head)?;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? <= 2 {
                break;
            }
            let line = line.trim().to_ascii_lowercase();
            length = line.strip_prefix("content-length: ").and_then(|text| text.parse().ok()).unwrap_or(length);
            is_allowed |= line == "authorization: bearer right";
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let answer = if is_allowed { self.change(method, path, &body) } else { None };
        let (status, text) = answer.map_or(("403 Forbidden", String::new()), |value| ("200 OK", value.to_string()));
        let length = text.len();
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}")
    }

    fn change(&self, method: &str, path: &str, body: &Value) -> Option<Value> {
        let mut comments = self.0.lock().unwrap();
        let text = body["body"].clone();
        let (all, one) = ("/repos/team/manifests/issues/7/comments", "/repos/team/manifests/issues/comments/");
        match method {
            "GET" if path.starts_with(all) => Some(json!(*comments)),
            "POST" if path == all => {
                let id = comments.len();
                comments.push(json!({"id": id, "user": {"type": "Bot"}, "body": text}));
                Some(json!({}))
            }
            "PATCH" => {
                let id: usize = path.strip_prefix(one)?.parse().ok()?;
                comments.get_mut(id)?["body"] = text;
                Some(json!({}))
            }
            _ => None,
        }
    }

    fn bodies(&self) -> Vec<String> {
        let comments = self.0.lock().unwrap();
        comments.iter().map(|comment| comment["body"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// What the Action sets where a comment is wanted.
fn variables<'v>(address: &'v str, token: &'v str) -> [(&'v str, &'v str); 5] {
    [
        ("COMMENT", "true"),
        ("GITHUB_API_URL", address),
        ("GITHUB_REPOSITORY", "team/manifests"),
        ("PULL_REQUEST", "7"),
        ("GITHUB_TOKEN", token),
    ]
}

fn comments() -> Result<(), Failed> {
    let (repository, github) = (Repository::new()?, GitHub::default());
    let address = github.start()?;
    let foreign = "<!-- gatepost-plan --> of somebody";
    github.0.lock().unwrap().push(json!({"id": 0, "user": {"type": "User"}, "body": foreign}));
    let (exit, said, _) = repository.run(&variables(&address, "right"))?;
    assert_eq!(exit, 0, "{said}");
    let bodies = github.bodies();
    assert!(bodies.len() == 2 && bodies[1].contains("store.example.org"), "{bodies:?}");
    repository.replace("store.example.org", "market.example.org")?;
    let (exit, said, _) = repository.run(&variables(&address, "right"))?;
    let bodies = github.bodies();
    assert_eq!(exit, 0, "{said}");
    assert!(bodies.len() == 2 && bodies[1].contains("market.example.org"), "{bodies:?}");
    assert_eq!(bodies[0], foreign, "somebody else's comment is left alone");
    Ok(())
}

fn refused() -> Result<(), Failed> {
    let (repository, github) = (Repository::new()?, GitHub::default());
    let (exit, said, summary) = repository.run(&variables(&github.start()?, "wrong"))?;
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("::warning::the plan could not be written as a comment"), "{said}");
    assert!(summary.contains("store.example.org") && github.bodies().is_empty(), "{summary}");
    assert!(!said.contains("wrong"), "the token is in no log: {said}");
    Ok(())
}
