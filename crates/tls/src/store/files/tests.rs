use std::os::unix::fs::PermissionsExt;

use gatepost_testkit::servers::Scratch;

use super::*;

fn pair(text: &str) -> TlsKeyPair {
    TlsKeyPair { chain: format!("chain {text}"), secret_key: format!("key {text}") }
}

#[test]
fn pairs_are_exchanged_whole_and_only_their_owner_reads_them() {
    let scratch = Scratch::new("pairs").unwrap();
    let store = FileStore::new(scratch.path().join("certs"));
    let secret = Key::new("infra", "edge-tls");
    assert!(store.load(&secret).unwrap().is_none());
    for text in ["one", "two", "three"] {
        store.save(&secret, &pair(text)).unwrap();
        assert_eq!(store.load(&secret).unwrap().unwrap(), pair(text));
    }
    let folder = scratch.path().join("certs/infra/edge-tls");
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(folder.clone()), mode(folder.join("tls.key")), mode(folder.join("tls.crt"))),
        (0o700, 0o600, 0o600)
    );
    let names: Vec<_> = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names.len(), 4, "two links, the link behind them, one folder: {names:?}");
}

#[test]
fn what_a_crash_left_is_swept_and_never_served() {
    let scratch = Scratch::new("crash").unwrap();
    let store = FileStore::new(scratch.path());
    let secret = Key::new("infra", "tls");
    store.save(&secret, &pair("old")).unwrap();
    let folder = scratch.path().join("infra/tls");
    fs::create_dir(folder.join("..7")).unwrap();
    fs::write(folder.join("..7/tls.crt"), "half").unwrap();
    symlink("..7", folder.join("....data.new")).unwrap();
    assert_eq!(store.load(&secret).unwrap().unwrap(), pair("old"));
    store.save(&secret, &pair("new")).unwrap();
    assert_eq!(store.load(&secret).unwrap().unwrap(), pair("new"));
    assert!(!folder.join("..7").exists());
}

#[test]
fn files_that_somebody_else_put_there_are_replaced() {
    let scratch = Scratch::new("plain").unwrap();
    let folder = scratch.path().join("infra/tls");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("tls.crt"), "plain").unwrap();
    let store = FileStore::new(scratch.path());
    let secret = Key::new("infra", "tls");
    assert_eq!(store.load(&secret).unwrap().unwrap().chain, "plain");
    store.save(&secret, &pair("ours")).unwrap();
    assert_eq!(store.load(&secret).unwrap().unwrap(), pair("ours"));
}

#[test]
fn hostile_files_and_names_are_refused() {
    let scratch = Scratch::new("hostile").unwrap();
    let store = FileStore::new(scratch.path());
    let folder = scratch.path().join("infra/tls");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("tls.crt"), "A".repeat(1 << 20)).unwrap();
    let error = store.load(&Key::new("infra", "tls")).unwrap_err();
    assert!(matches!(error.problem, crate::IssuanceProblem::Rejected(_)), "{error}");
    fs::write(folder.join("tls.crt"), [0xff, 0xfe]).unwrap();
    assert!(store.load(&Key::new("infra", "tls")).is_err());
    for (namespace, name) in [("..", "x"), ("a", "../../x"), ("", "x"), ("a", ""), ("a", ".hidden"), ("a/b", "x")] {
        assert!(store.folder(&Key::new(namespace, name)).is_err(), "{namespace} {name}");
    }
}

#[test]
fn a_place_that_cannot_be_is_named() {
    let store = FileStore::new("/dev/null/certs");
    let error = store.save(&Key::new("infra", "tls"), &pair("x")).unwrap_err().to_string();
    assert!(error.contains("/dev/null/certs/infra/tls cannot be written"), "{error}");
}

#[tokio::test]
async fn pages_survive_and_only_their_owner_reads_them() {
    let scratch = Scratch::new("pages").unwrap();
    let state_store = FileStateStore::new(scratch.path().join("state"));
    assert_eq!(state_store.read("p").await.unwrap(), None);
    for text in ["one", "two"] {
        state_store.write("p", text).await.unwrap();
        assert_eq!(state_store.read("p").await.unwrap().as_deref(), Some(text));
    }
    let mode = fs::metadata(scratch.path().join("state/p.json")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}
