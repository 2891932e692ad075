//! What the tests share: manifests in a folder, and a look at what comes out.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gatepost_testkit::Failed;
use gatepost_testkit::program::{Program, ProgramOutput, words};
use gatepost_testkit::scratch::Scratch;
use gatepost_tls::chain::{Chain, Leaf};
use gatepost_tls::key::PrivateKey;

pub(crate) type Test = fn() -> Result<(), Failed>;

/// A Gateway with one listener that ends TLS; `more` goes into its spec.
pub(crate) fn gateway(class: &str, more: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{namespace: infra, name: edge}}
spec:
  gatewayClassName: {class}
  {more}
  listeners:
  - name: https
    port: 443
    protocol: HTTPS
    hostname: '*.example.org'
    allowedRoutes: {{namespaces: {{from: All}}}}
    tls: {{certificateRefs: [{{name: edge-tls}}]}}
"
    )
}

/// A folder of manifests, and one for certificates.
pub(crate) struct Bed {
    pub(crate) folder: Scratch,
}

impl Bed {
    pub(crate) fn new(hostnames: &[&str]) -> Bed {
        let bed = Bed { folder: Scratch::new().unwrap() };
        bed.folder.file("in/gateway.yaml", &gateway("standard", "addresses: [{value: 192.0.2.7}]")).unwrap();
        bed.routes(hostnames);
        bed
    }

    /// One route with these hostnames.
    pub(crate) fn routes(&self, hostnames: &[&str]) {
        let text = format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{namespace: shop, name: web}}\nspec:\n  \
             parentRefs: [{{namespace: infra, name: edge}}]\n  hostnames: ['{}']\n  rules: [{{backendRefs: [{{name: web, port: 80}}]}}]\n",
            hostnames.join("', '")
        );
        self.folder.file("in/route.yaml", &text).unwrap();
    }

    /// A policy for the Gateway.
    pub(crate) fn policy(&self, kind: &str, spec: &str) {
        let text = format!(
            "apiVersion: gatepost.dev/v1alpha1\nkind: {kind}\nmetadata: {{namespace: infra, name: all}}\nspec:\n  \
             targetRef: {{group: gateway.networking.k8s.io, kind: Gateway, name: edge}}\n  {spec}\n"
        );
        self.folder.file(&format!("in/{kind}.yaml"), &text).unwrap();
    }

    pub(crate) fn input(&self) -> String {
        format!("-f '{}'", self.folder.path().join("in").display())
    }

    pub(crate) fn certificates(&self) -> PathBuf {
        self.folder.path().join("certs")
    }

    pub(crate) fn flags(&self) -> String {
        format!("{} --cert-dir '{}'", self.input(), self.certificates().display())
    }

    /// What is stored; key and chain must belong together.
    pub(crate) fn leaf(&self) -> Option<Leaf> {
        let folder = self.certificates().join("infra/edge-tls");
        let chain = Chain::read(&std::fs::read_to_string(folder.join("tls.crt")).ok()?).unwrap();
        let key = PrivateKey::from_pem(&std::fs::read_to_string(folder.join("tls.key")).unwrap()).unwrap();
        assert!(chain.is_for(&key), "the key is another one's");
        Some(chain.leaf)
    }

    /// Waits for a certificate of exactly these names.
    pub(crate) fn comes_to(&self, names: &[&str]) -> Leaf {
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let leaf = self.leaf();
            match leaf {
                Some(leaf) if leaf.names.iter().map(|name| &**name).eq(names.iter().copied()) => return leaf,
                other => assert!(Instant::now() < end, "{names:?} do not come, there is {other:?}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn run(&self, line: &str) -> ProgramOutput {
        Program::at(env!("CARGO_BIN_EXE_gatepost")).run(&words(line), "").unwrap()
    }
}

/// Response code and number of answers for the addresses or, as type 16, the texts of a name.
pub(crate) fn ask(server: SocketAddr, name: &str, kind: u8) -> Option<(u8, u8)> {
    let mut question = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend(label.as_bytes());
    }
    question.extend([0, 0, kind, 0, 1]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.send_to(&question, server).unwrap();
    let mut answer = [0; 1500];
    socket.recv(&mut answer).ok()?;
    Some((answer[3] & 15, answer[7]))
}
