//! The page: what is committed is what its sources give, and it works in a real browser on a real `serve`.
//!
//! `scripts/page-tools` installs what builds it; the browser is Debian's Chromium. Where they are missing these tests are
//! skipped under a name that says so; with `CI` set they fail instead.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use gatepost_testkit::scratch::Scratch;
use gatepost_testkit::{Failed, Trial, browser, tree};

fn main() {
    gatepost_testkit::run(vec![
        trial("the_committed_page_is_what_its_sources_give", browser::has_tools(), built),
        trial("the_page_works_in_a_browser", browser::is_wanted(), works_in_a_browser),
    ])
}

fn trial(name: &str, is_possible: bool, test: fn() -> Result<(), Failed>) -> Trial {
    match is_possible || std::env::var_os("CI").is_some() {
        true => Trial::test(name, test),
        false => {
            let name = format!("{name} (skipped: scripts/setup tests was not run)");
            Trial::test(name, || Ok(())).with_ignored_flag(true)
        }
    }
}

/// `scripts/page-tools build` writes what is committed; types are checked on the way.
fn built() -> Result<(), Failed> {
    let (folder, page) = (Scratch::new()?, tree::root().join("page"));
    let npm = |words: &[&str]| {
        let done = Command::new("npm").args(["run", "--silent"]).args(words).current_dir(&page).output()?;
        let said = [done.stdout, done.stderr].concat();
        if done.status.success() { Ok(()) } else { Err(Failed::from(String::from_utf8_lossy(&said).into_owned())) }
    };
    npm(&["check"])?;
    npm(&["build", "--", "--emptyOutDir", "--outDir", &folder.path().display().to_string()])?;
    let committed = tree::files(&page.join("dist"));
    let names = |files: &[std::path::PathBuf], top: &Path| -> Vec<String> {
        files.iter().map(|file| tree::below(top, file)).collect()
    };
    assert_eq!(names(&tree::files(folder.path()), folder.path()), names(&committed, &page.join("dist")));
    for file in committed {
        let name = tree::below(&page.join("dist"), &file);
        let is_same = std::fs::read(folder.path().join(&name))? == std::fs::read(&file)?;
        assert!(is_same, "page/dist/{name} is not what the sources give; run scripts/page-tools build");
    }
    Ok(())
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn works_in_a_browser() -> Result<(), Failed> {
    let scratch = Scratch::new()?;
    for file in tree::files(&tree::root().join("examples/quickstart")) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        scratch.file(&format!("files/{name}"), &tree::text(&file)?)?;
    }
    let folder = scratch.path().join("files");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    command.args(["serve", "--dns-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "-f"]).arg(&folder);
    let mut server = Server(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?);
    let mut lines = BufReader::new(server.0.stderr.take().unwrap()).lines();
    let ready = lines.find_map(|line| Some(line.ok()?.split_once("http=")?.1.to_owned()));
    let address = ready.ok_or("serve ended before it was ready")?;
    std::thread::spawn(move || lines.for_each(drop));
    // To look at the page as it is now: GATEPOST_PICTURES=DIRECTORY.
    let pictures = std::env::var("GATEPOST_PICTURES").unwrap_or_default();
    let report = scratch.path().join("report.html");
    let program = Command::new(env!("CARGO_BIN_EXE_gatepost"))
        .args(["report", "-f"])
        .arg(&folder)
        .arg("--out")
        .arg(&report)
        .output()?;
    assert!(program.status.success(), "{}", String::from_utf8_lossy(&program.stderr));
    let task = serde_json::json!({
        "address": address, "folder": folder, "pid": server.0.id(), "pictures": pictures, "report": report,
    });
    let done = browser::script("browser.mjs", &task).output()?;
    let said = [done.stdout, done.stderr].concat();
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&said).into_owned().into()) }
}
