//! `nonesuch validate`: statuses, the chain of trust, and invalid lines.

use crate::common;
use common::{
    Ended, Running, folder, generate_key, made, nonesuch, run, run_on, serve, sign, snapshot, text,
};
use data_encoding::{BASE64, HEXLOWER};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Message;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const ZONE: &str = "$TTL 60\n@ SOA ns h 1 7200 3600 1209600 5\n@ NS ns\nns A 192.0.2.1\na A 192.0.2.2\n\
    c CNAME a\n*.w A 192.0.2.3\nu NS ns.u\nns.u A 192.0.2.4\n";

/// A signed zone, its server, and a file with its DNSKEY record.
struct Signed {
    folder: TempDir,
    anchor: PathBuf,
    server: Running,
}

impl Signed {
    fn new(origin: &str, zone: &str, mechanism: &str) -> Self {
        let folder = folder();
        let keys = made(folder.path(), "keys");
        let more: &[&str] = if mechanism == "nsec5" { &["--csk", "--nsec5"] } else { &["--csk"] };
        let base = generate_key(&keys, origin, "ed25519", more);
        let (unsigned, signed) = (folder.path().join("zone"), folder.path().join("signed"));
        fs::write(&unsigned, zone).expect("written");
        sign(&unsigned, origin, &keys, mechanism, &signed);
        let anchor = keys.join(format!("{base}.key"));
        let server = serve(&signed, &[]);
        Self { folder, anchor, server }
    }

    /// The output of `nonesuch query --json`.
    fn query(&self, words: &str) -> String {
        let mut command = nonesuch(["query", "--json", "--tcp", &format!("@{}", self.server.address)]);
        run(command.args(words.split(' '))).stdout
    }

    fn queries(&self, questions: &[&str]) -> String {
        questions.iter().map(|words| self.query(words)).collect()
    }

    fn ds(&self, origin: &str) -> String {
        let ended =
            run(&mut nonesuch(["key", "ds", origin, "--dir", text(&self.folder.path().join("keys"))]));
        ended.expect_done("key ds").stdout
    }
}

fn validate(input: &str, anchor: &Path, more: &[&str]) -> Ended {
    let folder = folder();
    let file = folder.path().join("input");
    fs::write(&file, input).expect("written");
    run_on(nonesuch(["validate", "--anchor", text(anchor)]).args(more), &file)
}

/// Status and proved content of each line, and the exit status.
fn statuses(ended: &Ended) -> (i32, Vec<(String, String)>) {
    let member = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let results =
        objects(ended).iter().map(|value| (member(value, "status"), member(value, "proved"))).collect();
    (ended.status, results)
}

fn objects(ended: &Ended) -> Vec<Value> {
    ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(status, proved)| ((*status).to_owned(), (*proved).to_owned())).collect()
}

/// The message in a line of `nonesuch query --json`.
fn message(line: &str) -> Vec<u8> {
    let value: Value = serde_json::from_str(line).expect("JSON");
    HEXLOWER.decode(value["messageOctetsHEX"].as_str().expect("a message").as_bytes()).expect("hexadecimal")
}

fn hex(message: &Message) -> String {
    HEXLOWER.encode(&message.to_octets()) + "\n"
}

/// A response without its signatures.
fn without_signatures(line: &str) -> String {
    let mut message = Message::parse(&message(line)).expect("a message");
    message.records.retain(|record| record.rtype != Rtype::RRSIG);
    hex(&message)
}

#[test]
fn answers_and_denials_of_every_mechanism_are_validated() {
    for mechanism in ["nsec", "nsec3", "nsec5"] {
        let zone = Signed::new("example.", ZONE, mechanism);
        let questions = [
            "a.example",
            "c.example",
            "no.example",
            "a.example TXT",
            "b.w.example",
            "x.u.example",
            "example DNSKEY",
            "example NSEC5KEY",
        ];
        let ended = validate(&zone.queries(&questions), &zone.anchor, &["--json"]);
        let last = if mechanism == "nsec5" { "answer" } else { "nodata" };
        let expected = pairs(&[
            ("secure", "answer"),
            ("secure", "answer"),
            ("secure", "nxdomain"),
            ("secure", "nodata"),
            ("secure", "wildcard-answer"),
            ("insecure", "referral-unsigned"),
            ("secure", "answer"),
            ("secure", last),
        ]);
        assert_eq!(statuses(&ended), (0, expected), "{mechanism}: {}", ended.text());
        let denial = &objects(&ended)[2];
        assert_eq!((&denial["line"], &denial["rcode"]), (&3.into(), &"NXDOMAIN".into()), "{denial}");
        assert_eq!(denial["question"], json!({ "name": "no.example.", "type": "A" }));
        assert!(denial["signatures"].as_u64() > Some(0), "{denial}");
        assert_eq!(denial["hashes"].as_u64() > Some(0), mechanism == "nsec3", "{denial}");
        assert_eq!(denial["vrf"].as_u64() > Some(0), mechanism == "nsec5", "{denial}");
    }
}

#[test]
fn the_same_message_in_every_form_has_the_same_status() {
    let zone = Signed::new("example.", ZONE, "nsec");
    let octets = message(&zone.query("a.example"));
    let digits = HEXLOWER.encode(&octets);
    let mut without_question = Message::parse(&octets).expect("a message");
    without_question.questions.clear();
    let question = json!({ "name": "A.example", "type": "a" });
    let dnskey = message(&zone.query("example DNSKEY"));
    let dnskey = Message::parse(&dnskey).expect("a message").records.remove(0).rdata;
    let now = jiff::Timestamp::now().as_second();
    let given = json!({ "zone": "example.", "dnskey": [BASE64.encode(&dnskey)], "now": now,
        "question": question, "response": BASE64.encode(&octets), "id": ["x"] });
    let input = [
        digits.to_uppercase(),
        format!("; comment\n\n  {} {}\r", &digits[..9], &digits[9..]),
        json!({ "messageOctetsHEX": digits }).to_string(),
        json!({ "response": digits, "question": question }).to_string(),
        json!({ "response": BASE64.encode(&octets), "question": [question] }).to_string(),
        json!({ "response": HEXLOWER.encode(&without_question.to_octets()), "question": question })
            .to_string(),
        given.to_string(),
    ];
    let ended = validate(&input.join("\n"), &zone.anchor, &["--json"]);
    let (status, results) = statuses(&ended);
    assert_eq!((status, results.len()), (0, input.len()), "{}", ended.text());
    assert!(
        results.iter().all(|result| *result == ("secure".to_owned(), "answer".to_owned())),
        "{results:?}"
    );
    assert_eq!((&objects(&ended)[6]["id"], &objects(&ended)[6]["line"]), (&json!(["x"]), &json!(9)));
    // The keys of the line are used, not the trust anchor.
    let other = Signed::new("example.", ZONE, "nsec");
    let ended = validate(&format!("{given}\n{digits}\n"), &other.anchor, &["--json"]);
    assert_eq!(statuses(&ended).1[0].0, "secure", "{}", ended.text());
    assert_ne!(statuses(&ended).1[1].0, "secure", "{}", ended.text());
}

#[test]
fn changed_expired_and_unsigned_responses_are_bogus() {
    let zone = Signed::new("example.", ZONE, "nsec");
    let answer = zone.query("a.example");
    let mut changed = Message::parse(&message(&answer)).expect("a message");
    changed.records[0].rdata = vec![192, 0, 2, 99];
    let denial = zone.query("no.example");
    let mut partial = Message::parse(&message(&denial)).expect("a message");
    partial.records.retain(|record| record.rtype != Rtype::NSEC);
    let input = [hex(&changed), without_signatures(&denial), hex(&partial), answer.clone()].concat();
    let ended = validate(&input, &zone.anchor, &["--json"]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    let found = objects(&ended);
    let expected =
        [("bogus", "RFC 4035 §5.3.3", 6), ("bogus", "RFC 4035 §5.3", 10), ("bogus", "RFC 4035 §5.4", 12)];
    for (value, (status, rule, code)) in found.iter().zip(expected) {
        assert_eq!((&value["status"], &value["rule"]), (&status.into(), &rule.into()), "{value}");
        assert_eq!(value["info_code"], code, "{value}");
        assert!(value["reason"].as_str().is_some_and(|reason| reason.contains("zone example.: ")), "{value}");
    }
    assert!(
        found[0]["reason"].as_str().is_some_and(|reason| reason.contains(" a.example. A: ")),
        "{}",
        found[0]
    );
    assert_eq!(found[3]["status"], "secure");
    for (now, code) in [("now+60d", 7), ("now-60d", 8)] {
        let ended = validate(&answer, &zone.anchor, &["--json", "--now", now]);
        assert_eq!((ended.status, &objects(&ended)[0]["info_code"]), (1, &code.into()), "{}", ended.text());
        // The DNSKEY RRset has expired, too.
        let ended = validate(
            &zone.queries(&["example DNSKEY", "a.example"]),
            &zone.anchor,
            &["--now", now, "--json"],
        );
        let found = objects(&ended);
        assert!(found.iter().all(|value| value["info_code"] == code), "{found:?}");
        assert!(found.iter().all(|value| value["status"] == "bogus"), "{found:?}");
    }
}

/// The child zone, the root zone with its DS record, and a delegation without DS record.
fn chain() -> (Signed, Signed) {
    let child = Signed::new("example.", ZONE, "nsec3");
    let root = format!(
        "$ORIGIN .\n$TTL 60\n@ SOA ns. h. 1 7200 3600 1209600 5\n@ NS ns.\nns. A 192.0.2.1\n\
         example. NS ns.example.\nns.example. A 192.0.2.1\nplain. NS ns.plain.\nns.plain. A 192.0.2.1\n{}",
        child.ds("example.")
    );
    let root = Signed::new(".", &root, "nsec");
    (root, child)
}

#[test]
fn the_chain_of_trust_is_built_from_lines_in_any_order() {
    let (root, child) = chain();
    let anchor = root.folder.path().join("anchor");
    fs::write(&anchor, root.ds(".")).expect("written");
    let (root_key, ds) = (root.query(". DNSKEY"), root.query("example DS"));
    let (referral, plain) = (root.query("a.example"), root.query("plain DS"));
    let key = child.query("example DNSKEY");
    // An answer of the unsigned zone: the question, and a record of another zone with another owner.
    let mut unsigned = Message::parse(&message(&child.query("a.example"))).expect("a message");
    unsigned.records.retain(|record| record.rtype == Rtype::A);
    unsigned.questions[0].name = "www.plain.".parse().expect("a name");
    unsigned.records[0].owner = unsigned.questions[0].name.clone();
    let unsigned = hex(&unsigned);
    let answers = child.queries(&["a.example", "no.example"]);
    let status = |lines: &[&str]| {
        let ended = validate(&lines.concat(), &anchor, &["--json"]);
        let found = statuses(&ended);
        (found.0, found.1.into_iter().map(|result| result.0).collect::<Vec<_>>().join(" "), ended.stdout)
    };
    for lines in [
        [&answers, &unsigned, &key, &plain, &ds, &root_key],
        [&root_key, &plain, &referral, &key, &unsigned, &answers],
        [&key, &answers, &unsigned, &referral, &root_key, &plain],
    ] {
        let lines = lines.map(String::as_str);
        let (exit, found, output) = status(&lines);
        assert_eq!((exit, found.matches("insecure").count()), (0, 1), "{output}");
        assert_eq!(found.split(' ').filter(|status| *status == "secure").count(), 6, "{output}");
    }
    // What is missing is named.
    for (lines, missing) in [
        ([&answers, &key, &ds], ". DNSKEY"),
        ([&answers, &key, &root_key], "example. DS"),
        ([&answers, &ds, &root_key], "example. DNSKEY"),
        ([&unsigned, &ds, &root_key], "plain. DS"),
    ] {
        let (exit, found, output) = status(&lines.map(String::as_str));
        assert!(exit == 1 && found.starts_with("indeterminate"), "{output}");
        let named = format!("no response for {missing}");
        assert!(output.lines().next().is_some_and(|line| line.contains(&named)), "{missing}: {output}");
    }
    // The signature over the DS RRset does not verify: everything below is bogus.
    let mut forged = Message::parse(&message(&ds)).expect("a message");
    forged.records[0].rdata[5] ^= 1;
    let (exit, found, output) = status(&[&answers, &hex(&forged), &key, &root_key]);
    assert_eq!((exit, found.as_str()), (1, "bogus bogus bogus bogus secure"), "{output}");
    assert!(output.contains("example. DS: "), "{output}");
}

#[test]
fn invalid_lines_are_reported_with_their_numbers() {
    let zone = Signed::new("example.", ZONE, "nsec");
    let answer = zone.query("a.example");
    let digits = HEXLOWER.encode(&message(&answer));
    let lines = [
        "# comment".to_owned(),
        "zz".to_owned(),
        digits[..40].to_owned(),
        answer.trim_end().to_owned(),
        "{\"id\": 7, \"response\": \"00\"}".to_owned(),
        "{\"response\": 5}".to_owned(),
        "{".to_owned(),
        "{\"id\": 8}".to_owned(),
        format!("{{\"response\": \"{digits}\", \"now\": 5}}"),
        format!("{{\"response\": \"{digits}\", \"dnskey\": []}}"),
        format!("{{\"response\": \"{digits}\", \"question\": {{\"name\": \"a..b\", \"type\": \"A\"}}}}"),
        digits,
    ];
    let input = lines.join("\n");
    let ended = validate(&input, &zone.anchor, &[]);
    assert_eq!(ended.status, 2, "{}", ended.text());
    assert_eq!(ended.stdout.matches(": secure, answer\n").count(), 2, "{}", ended.stdout);
    snapshot::check("validate", "invalid lines", &ended.text());
    let ended = validate(&input, &zone.anchor, &["--json"]);
    let errors: Vec<u64> = objects(&ended)
        .iter()
        .filter(|value| value["status"] == "error")
        .filter_map(|value| value["line"].as_u64())
        .collect();
    assert_eq!((ended.status, errors), (2, vec![2, 3, 5, 6, 7, 8, 9, 10, 11]), "{}", ended.text());
    for (input, anchor) in
        [("", zone.anchor.as_path()), ("# only\n", &zone.anchor), (&answer, Path::new("/none"))]
    {
        assert_eq!(validate(input, anchor, &[]).status, 2);
    }
}

#[test]
fn results_are_readable() {
    let zone = Signed::new("example.", ZONE, "nsec");
    let answers = zone.queries(&["a.example", "no.example", "x.u.example"]);
    let input = answers + &without_signatures(&zone.query("a.example")) + &zone.query("example NSEC5KEY");
    let ended = validate(&input, &zone.anchor, &[]);
    snapshot::check("validate", "results", &ended.text());
    let quiet = validate(&input, &zone.anchor, &["--quiet"]);
    assert_eq!(quiet.stdout.lines().count(), 5, "{}", quiet.stdout);
    // Without --anchor, the trust anchor is the one of the Internet.
    let file = zone.folder.path().join("input");
    fs::write(&file, zone.query("a.example")).expect("written");
    let ended = run(&mut nonesuch(["validate", text(&file)]));
    assert!(ended.status == 1 && ended.stdout.contains("no response for . DNSKEY"), "{}", ended.text());
    snapshot::check("validate", "help", &run(&mut nonesuch(["validate", "-h"])).stdout);
}

/// Responses with changed octets are never secure with other content, and end the command neither early
/// nor late.
#[test]
fn changed_octets_have_a_status() {
    let zone = Signed::new("example.", ZONE, "nsec3");
    let responses = ["example DNSKEY", "a.example", "no.example", "u.example DS"];
    let originals = responses.map(|words| message(&zone.query(words)));
    let mut input = String::new();
    for octets in &originals {
        for at in 0..octets.len() {
            let mut changed = octets.clone();
            changed[at] ^= 1 << (at % 8);
            input += &(HEXLOWER.encode(&changed) + "\n");
        }
    }
    let ended = validate(&input, &zone.anchor, &["--json"]);
    assert!(matches!(ended.status, 1 | 2), "{}", ended.stderr);
    let found = objects(&ended);
    assert_eq!(found.len(), originals.iter().map(Vec::len).sum::<usize>());
    // A changed address is not secure.
    let start = originals[0].len();
    let address = originals[1].windows(4).position(|octets| octets == [192, 0, 2, 2]).expect("an address");
    for value in &found[start + address..start + address + 4] {
        assert_eq!(value["status"], "bogus", "{value}");
    }
}
