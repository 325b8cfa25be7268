//! Features that operators of BIND, Knot DNS and NSD use: TSIG keys for both sides, included files,
//! query access lists, a served zone as text.

use crate::common;
use common::configured::{Configured, ask, configure, plain_zone, write_beside};
use common::{
    Ended, done, folder, generate_keys, is_installed, made, nonesuch, prepared, run, sign, snapshot, text,
};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

const ZONE: &str = "example.";

fn failed(arguments: &[&str]) -> String {
    let ended = run(&mut nonesuch(arguments));
    assert_eq!(ended.status, 2, "{arguments:?}: {}", ended.text());
    ended.text()
}

/// The code of the extended error of a response.
fn extended_error(message: &Message) -> Option<u16> {
    message.extended_error().map(|(code, _)| code)
}

/// Generates one key in every form; each file has the name of its form.
fn make_key(dir: &Path, algorithm: &str) {
    let forms = ["nonesuch", "bind", "knot", "nsd", "dig"];
    let forms: Vec<String> = forms.iter().map(|form| format!("{form}={}", text(&dir.join(form)))).collect();
    let forms = forms.iter().flat_map(|form| ["--form", form]);
    let made = done(
        ["key", "tsig", "Transfer.example", "--algorithm", algorithm]
            .into_iter()
            .chain(forms)
            .collect::<Vec<_>>(),
    );
    assert_eq!(made.text(), "", "the secret is in the files alone");
}

#[test]
fn a_tsig_key_is_made_in_the_form_of_every_server() {
    for (algorithm, octets) in [("hmac-sha256", 32), ("hmac-sha384", 48), ("hmac-sha512", 64)] {
        let home = folder();
        let dir = home.path();
        make_key(dir, algorithm);
        let read = |form: &str| fs::read_to_string(dir.join(form)).expect("a file");
        let dig = read("dig");
        let secret = dig.trim_end().strip_prefix(&format!("{algorithm}:transfer.example.:")).expect("a key");
        assert_eq!(data_encoding::BASE64.decode(secret.as_bytes()).expect("Base64").len(), octets);
        for form in ["nonesuch", "bind", "knot", "nsd", "dig"] {
            assert!(read(form).contains(secret) && read(form).contains(algorithm), "{form}");
            let mode = fs::metadata(dir.join(form)).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{form}");
        }
        let accepted = |program: &str, arguments: &[&str]| {
            if is_installed(program) {
                let ended = run(Command::new(program).args(arguments).current_dir(dir));
                assert_eq!(ended.status, 0, "{program} {algorithm}: {}", ended.text());
            }
        };
        accepted("named-checkconf", &["bind"]);
        accepted("knotc", &["-c", "knot", "conf-check"]);
        let nsd = format!("server:\n    zonesdir: \"\"\n{}", read("nsd"));
        fs::write(dir.join("nsd.conf"), nsd).expect("written");
        accepted("nsd-checkconf", &["nsd.conf"]);
    }
}

#[test]
fn a_made_key_replaces_no_file_and_has_a_name_that_all_take() {
    let home = folder();
    let there = home.path().join("there");
    fs::write(&there, "precious").expect("written");
    let (other, form) = (home.path().join("other"), format!("bind={}", text(&there)));
    let said = failed(&["key", "tsig", "k", "--form", &format!("knot={}", text(&other)), "--form", &form]);
    assert!(said.contains("there: "), "{said}");
    snapshot::check("key tsig", "output file exists", &said);
    assert_eq!(fs::read_to_string(&there).expect("a file"), "precious");
    assert!(!other.exists(), "half of a pair");
    let form = format!("bind={}", text(&other));
    let said = failed(&["key", "tsig", "k", "--form", &form, "--form", &form]);
    snapshot::check("key tsig", "two outputs with one file", &said);
    for name in [".", "a b.", "a\\\"b."] {
        snapshot::check("key tsig", &format!("name {name}"), &failed(&["key", "tsig", name]));
    }
    assert!(failed(&["key", "tsig", "k", "--algorithm", "hmac-md5"]).contains("hmac-sha256"));
    // Two generated keys always differ. The default form is a table of the configuration.
    let printed = || done(["key", "tsig", "k"]).stdout;
    let first = printed();
    assert!(first.starts_with("[key.\"k.\"]\nalgorithm = \"hmac-sha256\"\nsecret = \""), "{first}");
    assert_ne!(first, printed());
}

#[test]
fn a_made_key_opens_what_it_should_to_dig_kdig_and_query() {
    let home = folder();
    let dir = home.path();
    make_key(dir, "hmac-sha384");
    fs::write(dir.join("zone"), plain_zone(ZONE, 7)).expect("written");
    let zones = format!(
        "include = [\"nonesuch\"]\n[zone.\"{ZONE}\"]\nfile = \"zone\"\ntransfer = [\"key:transfer.example.\"]\n"
    );
    let server = Configured::start(&configure(dir, &zones));
    server.wait_for(ZONE, 7);
    let right = fs::read_to_string(dir.join("dig")).expect("a key");
    let wrong =
        done(["key", "tsig", "transfer.example.", "--algorithm", "hmac-sha384", "--form", "dig"]).stdout;
    let port = server.address.port().to_string();
    for program in ["dig", "kdig"].into_iter().filter(|program| is_installed(program)) {
        let transfer = |key: &str| {
            run(Command::new(program).args(["@127.0.0.1", "-p", &port, "-y", key.trim_end(), ZONE, "AXFR"]))
        };
        let whole = transfer(&right).text();
        assert!(whole.contains("\"7\"") && whole.contains("192.0.2.1"), "{program}: {whole}");
        assert!(!transfer(&wrong).text().contains("192.0.2.1"), "{program}");
    }
    let at = format!("@{}", server.address);
    // The same key in BIND format.
    let whole = done(["query", ZONE, &at, "--axfr", "--tsig-key", text(&dir.join("bind"))]).stdout;
    assert!(whole.contains("192.0.2.1"), "{whole}");
    let refused = run(&mut nonesuch(["query", ZONE, at.as_str(), "--axfr"]));
    assert_eq!(refused.status, 1, "{}", refused.text());
}

#[test]
fn a_reload_finds_files_that_came_and_went() {
    let home = folder();
    let dir = home.path();
    let zones = made(dir, "zones.d");
    let add = |zone: &str, serial: u32| {
        fs::write(dir.join(format!("{zone}zone")), plain_zone(zone, serial)).expect("written");
        write_beside(
            &zones.join(format!("{zone}toml")),
            &format!("[zone.\"{zone}\"]\nfile = \"../{zone}zone\"\n"),
        );
    };
    add("a.", 1);
    let server = Configured::start(&configure(dir, "include = [\"zones.d/*.toml\"]\n"));
    server.wait_for("a.", 1);
    add("b.", 2);
    let reload = server.ctl_json(&["reload"]);
    assert_eq!(reload["added"], serde_json::json!(["b."]), "{reload}");
    server.wait_for("b.", 2);
    // A faulty file is rejected together with the others, and named.
    write_beside(&zones.join("c.toml"), "[zone.\"A.\"]\nfile = \"z\"\n[limits]\nslip = 1\n");
    let refused = server.ctl(&["reload"]);
    assert_eq!(refused.status, 1, "{}", refused.text());
    let said = refused.text();
    for place in ["c.toml:1:7: zone.\"A.\": ", "a.toml:1:7)", "c.toml:3:2: limits: "] {
        assert!(said.contains(place), "{place}\n{said}");
    }
    snapshot::check("ctl", "reload: faults in an included file", &said);
    let check = run(&mut nonesuch(["serve", "--config", text(&server.configuration), "--check"]));
    assert!(check.status == 2 && check.text().contains("c.toml:1:7: "), "{}", check.text());
    assert_eq!(server.serial("b."), Some(2));
    for gone in ["c.toml", "a.toml"] {
        fs::remove_file(zones.join(gone)).expect("removed");
    }
    let reload = server.ctl_json(&["reload"]);
    assert_eq!(reload["removed"], serde_json::json!(["a."]), "{reload}");
    assert_eq!(server.serial("a."), None);
    let check = done(["serve", "--config", text(&server.configuration), "--check"]).stdout;
    snapshot::check("serve", "check: configuration with an included file", &check);
}

#[test]
fn a_list_for_all_zones_says_who_may_ask_and_a_zones_own_takes_its_place() {
    let home = folder();
    let dir = home.path();
    fs::write(dir.join("zone"), plain_zone("@", 7).replace("$ORIGIN @\n", "")).expect("written");
    let zones = |list: &str| {
        format!(
            "allow-query = [{list}]\n[zone.\"all.\"]\nfile = \"zone\"\ntransfer = [\"any\"]\n\
             [zone.\"own.\"]\nfile = \"zone\"\nallow-query = [\"127.0.0.0/8\"]\n[template.t]\nallow-query = []\n\
             [zone.\"none.\"]\nfile = \"zone\"\ntemplate = \"t\"\n"
        )
    };
    let server = Configured::start(&configure(dir, &zones("\"192.0.2.1\"")));
    server.wait_for("own.", 7);
    let is_refused = |zone: &str| {
        let message = ask(server.address, zone, Rtype::SOA);
        let refused = (message.rcode(), extended_error(&message)) == (Rcode::REFUSED, Some(18));
        assert!(refused || message.rcode() == Rcode::NOERROR, "{zone}: {message:?}");
        refused
    };
    assert!(is_refused("all.") && is_refused("none.") && !is_refused("own."));
    // Over TCP, too. Transfers have a separate access list.
    let at = format!("@{}", server.address);
    let query = |arguments: &[&str]| run(&mut nonesuch([&["query", at.as_str()], arguments].concat()));
    assert!(query(&["all.", "SOA", "--tcp"]).text().contains("REFUSED"));
    let whole: Ended = query(&["all.", "--axfr"]);
    assert!(whole.status == 0 && whole.stdout.contains("192.0.2.1"), "{}", whole.text());
    // A reload changes the list without a new version of the zone.
    fs::write(&server.configuration, format!("{}{}", common::configured::head(dir), zones("\"any\"")))
        .expect("written");
    assert_eq!(server.ctl(&["reload"]).status, 0, "{}", server.logged());
    server.wait_until("everybody may ask", || !is_refused("all."));
    assert!(is_refused("none."));
}

#[test]
fn a_served_zone_is_written_as_text() {
    let home = prepared();
    let dir = home.path();
    let (keys, signed) = (made(dir, "keys"), dir.join("signed"));
    generate_keys(&keys, common::KEYS_ORIGIN, "ed25519");
    sign(&dir.join("zone"), common::KEYS_ORIGIN, &keys, "nsec3", &signed);
    let zones = format!(
        "[zone.\"{0}\"]\nfile = \"signed\"\n[zone.\"held.\"]\nfile = \"held\"\ntransfer = [\"any\"]\n",
        common::KEYS_ORIGIN
    );
    fs::write(dir.join("held"), plain_zone("held.", 3)).expect("written");
    let server = Configured::start(&configure(dir, &zones));
    server.wait_for("held.", 3);
    server.wait_for(common::KEYS_ORIGIN, 1);
    let out = dir.join("out");
    let export = |zone: &str| server.ctl(&["zone", "export", zone, text(&out)]);
    for (zone, file) in [(common::KEYS_ORIGIN, "signed"), ("held.", "held")] {
        let told = export(zone).expect_done(zone);
        snapshot::check("ctl", &format!("zone export {zone}"), &told.stdout);
        let same = run(&mut nonesuch(["zone", "diff", "--all", text(&dir.join(file)), text(&out)]));
        assert_eq!(same.status, 0, "{zone}: {}", same.text());
        if file == "signed" {
            done(["zone", "verify", text(&out)]);
        }
        // An existing file stays.
        let again = export(zone);
        assert_eq!(again.status, 2, "{}", again.text());
        snapshot::check("ctl", "zone export: output file exists", &again.text());
        // Without a file and with `-`, standard output contains only the zone.
        let printed = server.ctl(&["zone", "export", zone]).expect_done(zone).stdout;
        assert_eq!(printed, fs::read_to_string(&out).expect("a zone"));
        assert_eq!(server.ctl(&["zone", "export", zone, "-"]).expect_done(zone).stdout, printed);
        let kept = dir.join(format!("state/zones/{}kept", zone));
        assert_eq!(done(["zone", "print", text(&kept)]).stdout, printed);
        fs::remove_file(&out).expect("removed");
    }
    let unknown = export("other.");
    assert_eq!(unknown.status, 1, "{}", unknown.text());
    snapshot::check("ctl", "zone export: unknown zone", &unknown.text());
    assert!(!out.exists(), "no file of a zone that is not there");
}
