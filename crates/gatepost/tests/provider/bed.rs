//! What the tests share: a BIND with a zone that holds other people's records, and the program with its flags.

use gatepost_testkit::program::{Program, ProgramOutput, words};
use gatepost_testkit::scratch::Scratch;
use gatepost_testkit::servers::{DnsServer, KEY_NAME, KEY_SECRET, Kind, Primary};

/// A server, a folder, and nothing else.
pub(crate) struct Bed {
    pub(crate) server: DnsServer,
    pub(crate) folder: Scratch,
}

const ZONE: &str = "\
$ORIGIN example.org.
@ 3600 IN SOA ns1.example.org. hostmaster.example.org. 1 3600 600 1209600 60
@ 3600 IN NS ns1.example.org.
ns1 3600 IN A 192.0.2.53
@ 300 IN MX 10 mail.example.org.
@ 300 IN TXT \"v=spf1 -all\"
mail 300 IN A 192.0.2.25
hand 120 IN A 192.0.2.7
_sip._tcp 300 IN SRV 1 2 5060 mail.example.org.
";

const TARGETS: &str = "\
$ORIGIN example.net.
@ 3600 IN SOA ns1.example.net. hostmaster.example.net. 1 3600 600 1209600 60
@ 3600 IN NS ns1.example.net.
ns1 3600 IN A 192.0.2.53
lb 60 IN A 198.51.100.1
lb 60 IN AAAA 2001:db8::51
soon 1 IN A 198.51.100.3
";

impl Bed {
    /// A bed; nothing where there is no BIND to lie in it.
    pub(crate) fn new() -> Option<Bed> {
        Bed::with(Primary::default())
    }

    /// The same with further zones and rights.
    pub(crate) fn with(mut primary: Primary) -> Option<Bed> {
        if !Kind::Bind.is_wanted() {
            // A skip with a name; where CI is set a missing server is a failure instead.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: named is not installed\n");
            return None;
        }
        primary.zones.push(("example.org".to_owned(), ZONE.to_owned()));
        primary.zones.push(("example.net".to_owned(), TARGETS.to_owned()));
        let server = Kind::Bind.start(&primary).unwrap();
        Some(Bed { server, folder: Scratch::new().unwrap() })
    }

    /// The flags that reach the server.
    pub(crate) fn flags(&self) -> String {
        let secret = self.folder.file("secret", &format!("{KEY_SECRET}\n")).unwrap();
        format!(
            "--provider rfc2136 --rfc2136-host {} --rfc2136-zone example.org --rfc2136-tsig-keyname {KEY_NAME} \
             --rfc2136-tsig-secret-file '{secret}' --txt-owner-id me",
            self.server.address
        )
    }

    /// Runs a command with these flags on these objects.
    pub(crate) fn run(&self, line: &str, objects: &str) -> ProgramOutput {
        run(&format!("{line} {}", self.flags()), objects)
    }

    /// The same, and its answer as JSON.
    pub(crate) fn json(&self, line: &str, objects: &str) -> (i32, serde_json::Value) {
        let answer = self.run(&format!("{line} -o json"), objects);
        let json = serde_json::from_str(&answer.output);
        (answer.exit, json.unwrap_or_else(|error| panic!("{error}: {}{}", answer.output, answer.errors)))
    }

    /// The whole zone as the server has it.
    pub(crate) fn zone(&self) -> Vec<String> {
        self.server.dump("example.org").unwrap()
    }

    /// The addresses of a name, as the server has them.
    pub(crate) fn addresses(&self, name: &str) -> Vec<String> {
        let of_name = |line: &&String| line.starts_with(&format!("{name}. ")) && !line.contains(" IN TXT ");
        let zone = self.zone();
        let found = zone.iter().filter(of_name).filter(|line| line.contains(" in a ") || line.contains(" in aaaa "));
        found.filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect()
    }

    /// How many updates the server carried out.
    pub(crate) fn updates(&self) -> usize {
        self.server.log().matches("updating zone").count()
    }
}

/// Runs a command line on objects that are handed over as standard input.
pub(crate) fn run(line: &str, objects: &str) -> ProgramOutput {
    let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"));
    program.run(&words(&format!("{command} -f - {rest}")), objects).unwrap()
}

/// A Gateway with an address, and a route per hostname.
pub(crate) fn world(address: &str, hostnames: &[&str]) -> String {
    let kind = if address.starts_with(|c: char| c.is_ascii_digit()) { "IPAddress" } else { "Hostname" };
    let text = format!(
        "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{namespace: infra, name: edge}}
spec:
  gatewayClassName: standard
  listeners: [{{name: web, port: 80, protocol: HTTP}}]
status: {{addresses: [{{type: {kind}, value: \"{address}\"}}]}}
"
    );
    text + &routes(hostnames)
}

/// A route on the Gateway for each hostname.
pub(crate) fn routes(hostnames: &[&str]) -> String {
    let mut text = String::new();
    for (i, hostname) in hostnames.iter().enumerate() {
        text += &format!(
            "---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{namespace: infra, name: route-{i}}}
spec: {{parentRefs: [{{name: edge}}], hostnames: [\"{hostname}\"]}}
"
        );
    }
    text
}
