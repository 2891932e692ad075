//! What goes wrong between us and the server: nothing is written over what was not read, and the message says what to mend.

use gatepost_testkit::servers::KEY_SECRET;

use super::bed::{Bed, run, world};

#[test]
fn a_zone_that_cannot_be_read_is_status_4_and_names_the_cause() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["www.example.org"]);
    let wrong = bed.folder.file("wrong", "d3JvbmcgY2FuYXJ5IHdyb25nIGNhbmFyeSB3cm9uZyE=").unwrap();
    let good = bed.flags();
    let secret = |path: &str| {
        let (front, rest) = good.split_once("--rfc2136-tsig-secret-file '").unwrap();
        format!("{front}--rfc2136-tsig-secret-file '{path}{}", rest.trim_start_matches(|c| c != '\''))
    };
    let rows = [
        (secret(&wrong), "NOTAUTH/BADSIG"),
        (good.replace("--rfc2136-tsig-keyname gatepost", "--rfc2136-tsig-keyname stranger"), "NOTAUTH/BADKEY"),
        (good.replace("--rfc2136-zone example.org", "--rfc2136-zone example.com"), "does not have this zone"),
        (good.replace(&bed.server.address.to_string(), "127.0.0.1:1"), "cannot be reached"),
    ];
    let before = bed.zone();
    for (flags, cause) in rows {
        for command in ["plan", "apply", "plan -o json", "apply -o json"] {
            let answer = run(&format!("{command} {flags}"), &world);
            assert_eq!(answer.exit, 4, "{command} {flags}: {}{}", answer.output, answer.errors);
            assert!(answer.errors.contains(cause), "{command}: no {cause} in {}", answer.errors);
            let said = answer.output + &answer.errors;
            assert!(!said.contains("d3Jvbmcg") && !said.contains(KEY_SECRET), "a secret is shown: {said}");
        }
    }
    assert_eq!(bed.zone(), before);
}

#[test]
fn one_zone_that_cannot_be_read_does_not_keep_another_from_being_written() {
    let Some(bed) = Bed::new() else { return };
    let world = world("192.0.2.10", &["www.example.org", "www.example.com"]);
    let answer = bed.run("apply --rfc2136-zone example.com", &world);
    assert_eq!(answer.exit, 4);
    assert!(answer.output.contains("zone-unreadable"), "{}", answer.output);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.10"]);
}

#[test]
fn the_second_server_is_asked_where_the_first_is_gone() {
    let Some(bed) = Bed::new() else { return };
    let flags = bed.flags().replace("--rfc2136-host ", "--rfc2136-host 127.0.0.1:1 --rfc2136-host ");
    let answer = run(&format!("apply {flags}"), &world("192.0.2.10", &["www.example.org"]));
    assert_eq!(answer.exit, 0, "{}", answer.errors);
    assert_eq!(bed.addresses("www.example.org"), ["192.0.2.10"]);
}

#[test]
fn a_webhook_that_is_not_there_is_no_empty_zone() {
    let answer = run(
        "apply --confirm-deletes --provider webhook --webhook-provider-url http://127.0.0.1:1",
        &world("192.0.2.10", &["www.example.org"]),
    );
    assert_eq!(answer.exit, 4, "{}", answer.output);
    assert!(answer.output.contains("the provider could not be read"), "{}", answer.output);
}

#[test]
fn what_does_not_go_together_is_status_2_with_the_fix() {
    let rows = [
        ("apply", "--provider"),
        ("plan --rfc2136-host ns1", "--provider rfc2136"),
        ("apply --provider rfc2136", "--rfc2136-host"),
        ("apply --provider embedded", "--state-dir"),
        ("apply --provider webhook --rfc2136-zone a", "--rfc2136-zone"),
        ("apply --provider webhook --plan xyz", "--plan"),
        ("apply --provider webhook --plan 123", "--plan"),
        ("apply --provider nowhere", "--provider"),
        ("apply --provider webhook --txt-owner-id a,b", "--txt-owner-id"),
        ("apply --provider webhook --managed-record-types A,X", "--managed-record-types"),
        ("apply --provider webhook --provider-timeout soon", "--provider-timeout"),
        ("plan --resolver 192.0.2.1", "--resolve-targets"),
        ("plan --provider webhook --resolve-targets --resolver nobody", "--resolver"),
    ];
    for (line, named) in rows {
        let answer = run(line, "");
        assert_eq!((answer.exit, answer.output.as_str()), (2, ""), "{line}: {}", answer.errors);
        assert!(answer.errors.contains(named), "{line}: {}", answer.errors);
    }
}

#[test]
fn secrets_are_in_no_help_and_no_message() {
    use gatepost_testkit::program::{Program, words};
    let program = Program::at(env!("CARGO_BIN_EXE_gatepost"))
        .with("GATEPOST_RFC2136_TSIG_SECRET", "canary-one")
        .with("GATEPOST_TXT_ENCRYPT_AES_KEY", "canary-two");
    let lines = [
        "plan --help-all",
        "apply --help-all",
        "serve --help-all",
        "plan -f -",
        "apply -f - --provider rfc2136 --rfc2136-host a --rfc2136-zone b --rfc2136-tsig-keyname c",
        "check --rfc2136-tsig-secret=canary-three",
        "plan --rfc2136-tsig-secret=canary-three --no-such-flag",
    ];
    for line in lines {
        let answer = program.run(&words(line), "").unwrap();
        let said = answer.output + &answer.errors;
        assert!(!said.contains("canary"), "{line}: {said}");
    }
}

#[test]
fn a_settings_file_holds_the_flags_of_providers_too() {
    let Some(bed) = Bed::new() else { return };
    let secret = bed.folder.file("secret", KEY_SECRET).unwrap();
    let text = format!(
        "provider: rfc2136\nrfc2136-host: ['{}']\nrfc2136-zone: [example.org]\nrfc2136-tsig-keyname: gatepost\n\
         rfc2136-tsig-secret-file: '{secret}'\ndry-run: true\nmanaged-record-types: [A]\n",
        bed.server.address
    );
    let settings = bed.folder.file("settings.yaml", &text).unwrap();
    let world = world("192.0.2.10", &["www.example.org"]);
    let answer = run(&format!("apply --settings '{settings}'"), &world);
    assert_eq!(answer.exit, 0, "{}", answer.errors);
    assert!(answer.output.contains("nothing was written (--dry-run)"), "{}", answer.output);
    assert!(bed.addresses("www.example.org").is_empty());
    let canary = bed.folder.file("settings.yaml", &format!("{text}rfc2136-tsig-secret: canary\n")).unwrap();
    let answer = run(&format!("apply --settings '{canary}'"), &world);
    assert!(answer.exit == 2 && answer.errors.contains("exclude each other"), "{}", answer.errors);
    let help = run(&format!("apply --settings '{canary}' --help-all"), "");
    assert!(!(help.output + &help.errors).contains("canary"));
}
