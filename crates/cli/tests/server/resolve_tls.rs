//! `nonesuch resolve` over TLS (RFC 7858): answers, certificates, reloads and limits.

use super::metrics::{OPEN, listening_address, scrape, value};
use super::resolve::start_tree;
use crate::common;
use common::certificates::{Certificates, HOST};
use common::configured::{Configured, ask, write_beside};
use common::watched::wait_until;
use common::{Ended, done, nonesuch, run, snapshot, text};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;
use nonesuch_testing::{record_skip, require_peer};
use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A directory with certificates and the configuration of a resolver that listens for TLS.
struct Scene {
    folder: tempfile::TempDir,
    files: Certificates,
    /// The servers of the root zone. Nothing listens there, unless a test has a tree; local names
    /// have answers nevertheless.
    hints: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = common::folder();
        let hints = folder.path().join("hints");
        fs::write(&hints, ". 60 NS a.root.\na.root. 60 A 127.53.50.1\n").expect("written");
        let files = Certificates::make(folder.path());
        set_mode(&files.key, 0o600);
        Self { folder, files, hints }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the configuration with these files for TLS, and `more` at its end.
    fn configure(&self, certificate: &Path, key: &Path, more: &str) -> PathBuf {
        let path = self.path("resolver.toml");
        let content = format!(
            "version = 1\nlisten = [\"127.0.0.1:0\"]\nlisten-tls = [\"127.0.0.1:0\"]\nworkers = 2\n\
            tls-certificate = {certificate:?}\ntls-key = {key:?}\nhints = {:?}\ncontrol-socket = \"control\"\n\
            metrics-listen = \"127.0.0.1:0\"\n{more}\n[log]\nlevel = \"info\"\n",
            self.hints
        );
        write_beside(&path, &content);
        path
    }

    fn start(&self, more: &str) -> Configured {
        let path = self.configure(&self.files.server, &self.files.key, more);
        Configured::start_command(
            "resolve",
            &["--config", text(&path)],
            &self.path("resolver.toml"),
            Stdio::null(),
        )
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

fn tls_address(resolver: &Configured) -> SocketAddr {
    resolver.ready["tls_addresses"][0].as_str().and_then(|text| text.parse().ok()).expect("an address")
}

fn query(server: SocketAddr, authority: &Path, words: &[&str]) -> Ended {
    let at = format!("@{server}");
    let fixed = ["query", &at, "--tls", "--tls-ca", text(authority), "--tls-hostname", HOST, "--json"];
    run(&mut nonesuch([&fixed, words].concat()))
}

fn json(ended: &Ended) -> serde_json::Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.text()))
}

fn metric(resolver: &Configured, sample: &str) -> Option<f64> {
    let address = listening_address(&resolver.wait_for_event("metrics-listening", &[])).expect("an address");
    value(&scrape(address, OPEN), sample)
}

#[test]
fn answers_over_tls_are_those_over_other_transports() {
    let mut scene = Scene::new();
    let Some((_servers, hints)) = start_tree(scene.folder.path(), 50) else { return };
    scene.hints = hints;
    let anchor = scene.hints.with_file_name("anchor.ds");
    let resolver = scene.start(&format!("trust-anchors = {anchor:?}\n"));
    let server = tls_address(&resolver);
    for _ in ["cold", "cached"] {
        for (name, rcode) in [("host1.z1.example.", "NOERROR"), ("none.z1.example.", "NXDOMAIN")] {
            let answer = json(&query(server, &scene.files.authority, &[name, "A"]));
            assert_eq!(answer["rcode"], rcode, "{answer}");
            assert!(answer["flags"].to_string().contains("\"ad\""), "{answer}");
            assert_eq!(answer["tls"]["authenticated"], true, "{answer}");
            // RFC 8467 §4.1: a padded query, which `nonesuch query` sends, has a padded response.
            assert_eq!(answer["octets"].as_u64().map(|octets| octets % 468), Some(0), "{answer}");
        }
    }
    let queries = scene.path("queries");
    let names: String =
        (0..400).map(|number| format!("host{}.z{}.example. A\n", number % 5, number % 3)).collect();
    fs::write(&queries, names).expect("written");
    let at = server.to_string();
    let report = done([
        "load",
        "--server",
        &at,
        "--queries",
        text(&queries),
        "--limit",
        "4000",
        "--tls",
        "--connections",
        "8",
        "--queries-per-connection",
        "100",
        "--json",
    ]);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).expect("JSON");
    assert_eq!((&report["received"], &report["lost"]), (&4000.into(), &0.into()), "{report}");
    for (sample, expected) in [
        ("nonesuch_queries_total{transport=\"tls\",type=\"A\"}", 4004.0),
        ("nonesuch_responses_total{transport=\"tls\",rcode=\"NXDOMAIN\"}", 2.0),
        ("nonesuch_connections_total{transport=\"tcp\",outcome=\"accepted\"}", 0.0),
        ("nonesuch_connections_total{transport=\"tls\",outcome=\"broken\"}", 0.0),
        ("nonesuch_tls_handshakes_total{outcome=\"failed\"}", 0.0),
    ] {
        assert_eq!(metric(&resolver, sample), Some(expected), "{sample}");
    }
    let full = metric(&resolver, "nonesuch_tls_handshakes_total{outcome=\"full\"}");
    assert!(full.is_some_and(|full| full >= 5.0), "{full:?}");
    let shown = resolver.ctl(&["status"]).stdout;
    assert!(shown.contains(&format!(" (udp, tcp), {server} (tls), resolver\n")), "{shown}");
    resolver.stop();
}

#[test]
fn a_reload_replaces_the_certificate_the_padding_and_the_clients() {
    let scene = Scene::new();
    let resolver = scene.start("");
    let server = tls_address(&resolver);
    let octets = |authority: &Path| {
        let answered = query(server, authority, &["localhost.", "A"]);
        (answered.status == 0).then(|| json(&answered)["octets"].as_u64().expect("a number"))
    };
    assert_eq!(octets(&scene.files.authority), Some(468));
    let other = common::folder();
    let new = Certificates::make(other.path());
    assert_eq!(octets(&new.authority), None);
    // A key of another certificate: the resolver keeps the previous configuration.
    scene.configure(&new.server, &scene.files.key, "padding-block = 0\n");
    let rejected = resolver.ctl(&["reload"]);
    assert_ne!(rejected.status, 0, "{}", rejected.text());
    let shown = rejected.stderr.replace(text(other.path()), "NEW").replace(text(scene.folder.path()), "DIR");
    snapshot::check("resolve", "reload with the key of another certificate", &shown);
    assert_eq!((octets(&scene.files.authority), octets(&new.authority)), (Some(468), None));
    scene.configure(&new.server, &new.key, "padding-block = 0\nallow-query = [\"127.0.0.1 tls\"]\n");
    assert_eq!(resolver.ctl(&["reload"]).status, 0);
    assert_eq!(ask(resolver.address, "localhost.", Rtype::A).rcode(), Rcode::REFUSED);
    assert_eq!(octets(&scene.files.authority), None);
    assert!(octets(&new.authority).is_some_and(|octets| octets < 468));
    // An expired certificate is used, with a warning.
    scene.configure(&new.expired, &new.key, "[limits]\ntls-handshake = \"2s\"\n");
    let reloaded = resolver.ctl_json(&["reload"]);
    assert_eq!(reloaded["needs_restart"], serde_json::json!(["tls-handshake"]), "{reloaded}");
    resolver.wait_for_event("certificate-warning", &[]);
    resolver.stop();
}

/// A client that sends nothing, and one that stops within its handshake.
#[test]
fn a_handshake_without_end_is_closed_by_its_limit() {
    let scene = Scene::new();
    let resolver = scene.start("[limits]\ntls-handshake = \"1s\"\n");
    let server = tls_address(&resolver);
    let mut silent: Vec<TcpStream> = (0..3)
        .map(|_| {
            let stream = TcpStream::connect(server).expect("connected");
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
            stream
        })
        .collect();
    // Meanwhile others are answered.
    assert_eq!(query(server, &scene.files.authority, &["localhost.", "A"]).status, 0);
    for stream in &mut silent {
        assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
    }
    // A connection is closed before it is counted.
    let timed_out = "nonesuch_connections_total{transport=\"tls\",outcome=\"timed_out\"}";
    wait_until("three closed connections", || (metric(&resolver, timed_out) == Some(3.0)).then_some(()));
    resolver.stop();
}

#[test]
fn a_faulty_certificate_or_key_prevents_the_start() {
    let scene = Scene::new();
    let files = &scene.files;
    let missing = scene.path("missing.pem");
    fs::write(scene.path("text.pem"), "no certificate\n").expect("written");
    set_mode(&scene.path("text.pem"), 0o600);
    for (case, certificate, key) in [
        ("certificate file that does not exist", &missing, &files.key),
        ("key file that does not exist", &files.server, &missing),
        ("file without a certificate", &scene.path("text.pem"), &files.key),
        ("file without a key", &files.server, &scene.path("text.pem")),
        ("key of another certificate", &files.stranger, &files.key),
    ] {
        let path = scene.configure(certificate, key, "");
        let mut messages = Vec::new();
        for check in [None, Some("--check")] {
            let words = ["resolve", "--config", text(&path)].into_iter().chain(check);
            let ended = run(&mut nonesuch(words.collect::<Vec<_>>()));
            assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{case}: {}", ended.text());
            messages.push(ended.stderr.replace(text(scene.folder.path()), "DIR"));
        }
        assert_eq!(messages[0], messages[1], "{case}");
        snapshot::check("resolve", case, &messages[0]);
    }
    // An expired certificate is only a warning.
    let path = scene.configure(&files.expired, &files.key, "");
    let checked = run(&mut nonesuch(["resolve", "--config", text(&path), "--check"]));
    assert_eq!(checked.status, 0, "{}", checked.text());
    let warning = checked.stderr.replace(text(scene.folder.path()), "DIR");
    assert!(warning.contains("DIR/resolver.toml:5:19: tls-certificate: DIR/expired.pem: "), "{warning}");
}

/// The resolver reads the key as root, and could not read it at a reload.
#[test]
fn a_key_that_the_user_cannot_read_causes_a_warning() {
    let scene = Scene::new();
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root {
        return record_skip("only root can become another user");
    }
    set_mode(scene.folder.path(), 0o755);
    let user = "user = \"nobody\"\n";
    let resolver = scene.start(user);
    let warning = resolver.wait_for_event("configuration-warning", &[]);
    assert!(warning.contains(" tls-key: ") && warning.contains("a reload would be rejected"), "{warning}");
    assert_eq!(query(tls_address(&resolver), &scene.files.authority, &["localhost.", "A"]).status, 0);
    let rejected = resolver.ctl(&["reload"]);
    assert!(rejected.status != 0 && rejected.stderr.contains(" tls-key: "), "{}", rejected.text());
    resolver.stop();
    let path = scene.configure(&scene.files.server, &scene.files.key, user);
    let checked = run(&mut nonesuch(["resolve", "--config", text(&path), "--check"]));
    assert_eq!(checked.status, 2, "{}", checked.text());
    let shown = checked.stderr.replace(text(scene.folder.path()), "DIR");
    snapshot::check("resolve", "key that the user cannot read, --check", &shown);
    set_mode(&scene.files.key, 0o644);
    let checked = run(&mut nonesuch(["resolve", "--config", text(&path), "--check"]));
    assert_eq!(checked.status, 0, "{}", checked.text());
}

#[test]
fn kdig_asks_a_resolver_over_tls() {
    require_peer!("kdig");
    let scene = Scene::new();
    let resolver = scene.start("");
    let port = tls_address(&resolver).port().to_string();
    let authority = format!("+tls-ca={}", text(&scene.files.authority));
    let by_kdig = |host: &str| {
        let hostname = format!("+tls-hostname={host}");
        let fixed = ["@127.0.0.1", "-p", &port, "+tls", &authority, &hostname, "+retry=0", "+time=10"];
        run(Command::new("kdig").args(fixed).args(["localhost.", "A"])).text()
    };
    let answer = by_kdig(HOST);
    assert!(answer.contains("status: NOERROR") && answer.contains("(TLS1.3)"), "{answer}");
    assert!(!by_kdig("other.example").contains("status: NOERROR"));
    resolver.stop();
}
