//! `nonesuch query` with NSD, Knot DNS, BIND and this project's server, over UDP, TCP and TLS if
//! they support it: truncated responses, types without a mnemonic, refusals.

use crate::common;
use crate::common::certificates;
use crate::common::transferring;
use certificates::{Certificates, HOST};
use common::configured::{Configured, configure, plain_zone};
use common::{Ended, folder, nonesuch, peers, run, snapshot, text};
use nonesuch_lab::peers::{Peer, Setup, TlsIdentity};
use nonesuch_testing::require_peer;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use transferring::{ZONE, free_port, primary_setup};

/// Maximum number of attempts until a server has loaded its zone.
const TRIES: usize = 500;

fn write_zone(dir: &Path) {
    let mut zone = plain_zone(ZONE, 1);
    zone.push_str("unknown 60 TYPE65400 \\# 3 0102ff\n");
    for number in 0..20 {
        zone.push_str(&format!("big 60 TXT \"{number} {}\"\n", "x".repeat(200)));
    }
    fs::write(dir.join("zone"), zone).expect("written");
}

fn query(server: SocketAddr, words: &[&str]) -> Ended {
    run(nonesuch(["query", &format!("@{server}")]).args(words))
}

/// Queries a server over all transports. `tls` is its address for TLS, with a certificate of
/// `authority`.
fn ask_all(server: SocketAddr, tls: Option<SocketAddr>, authority: &Path) {
    let name = |label: &str| format!("{label}.{ZONE}");
    let is_loaded = (0..TRIES).any(|_| query(server, &[ZONE, "SOA"]).status == 0);
    assert!(is_loaded, "{}", query(server, &[ZONE, "SOA"]).text());
    let strict = ["--tls", "--tls-ca", text(authority), "--tls-hostname", HOST];
    let ways = [(server, &[][..], "UDP"), (server, &["--tcp"], "TCP")];
    for (server, way, word) in ways.into_iter().chain(tls.map(|tls| (tls, &strict[..], "TLS"))) {
        let ask = |words: &[&str]| query(server, &[words, way].concat());
        let answer = ask(&[&name("ns")]).expect_done("query").stdout;
        assert!(
            answer.contains("\tA\t192.0.2.1\n") && answer.contains(&format!(" over {word} in ")),
            "{answer}"
        );
        let unknown = ask(&[&name("unknown"), "TYPE65400"]).expect_done("query").stdout;
        assert!(
            unknown.contains("\tIN\tTYPE65400\t\\# 3 0102ff") || unknown.contains("\\# 3 0102FF"),
            "{unknown}"
        );
        let big = ask(&["--short", &name("big"), "TXT"]).expect_done("query").stdout;
        assert_eq!(big.lines().count(), 20, "{big}");
        let denied = ask(&[&name("none"), "A"]).expect_done("query").stdout;
        assert!(denied.contains(";; QUERY NXDOMAIN") && denied.contains("\tSOA\t"), "{denied}");
        let refused = ask(&["elsewhere.test.", "A"]);
        assert!(refused.status == 1 && refused.stdout.contains(";; QUERY REFUSED"), "{}", refused.text());
    }
    let big = query(server, &[&name("big"), "TXT"]).expect_done("query").stdout;
    assert!(big.contains(" over TCP in "), "{big}");
    let note = big.lines().find(|line| line.contains(" UDP ")).unwrap_or_default();
    // The number of octets depends on the server.
    let note: String = note.chars().filter(|character| !character.is_ascii_digit()).collect();
    snapshot::check("query", "truncated response", &note);
}

/// Queries a program that also answers over TLS.
fn ask_over_tls(peer: Peer) {
    require_peer!(peer.info().programs[0]);
    let folder = folder();
    let dir = folder.path();
    write_zone(dir);
    let files = Certificates::make(dir);
    let tls = TlsIdentity { certificate: files.server.clone(), key: files.key.clone() };
    let peer = peers::start(peer, &Setup { tls: Some(tls), ..primary_setup(dir, free_port()) });
    ask_all(peer.address, peer.tls_address, &files.authority);
}

#[test]
fn nsd_is_asked_in_every_way() {
    ask_over_tls(Peer::Nsd);
}

#[test]
fn bind_is_asked_in_every_way() {
    ask_over_tls(Peer::Bind);
}

#[test]
fn knot_is_asked_in_every_way() {
    require_peer!("knotd");
    let folder = folder();
    let dir = folder.path();
    write_zone(dir);
    let peer = peers::start(Peer::Knot, &primary_setup(dir, free_port()));
    ask_all(peer.address, None, dir);
}

#[test]
fn ours_is_asked_in_every_way() {
    let folder = folder();
    let dir = folder.path();
    write_zone(dir);
    let files = Certificates::make(dir);
    let zones = format!(
        "listen-tls = [\"127.0.0.1:0\"]\ntls-certificate = \"{}\"\ntls-key = \"{}\"\n[zone.\"{ZONE}\"]\nfile = \"zone\"\n",
        text(&files.server),
        text(&files.key)
    );
    let server = Configured::start(&configure(dir, &zones));
    let tls = server.ready["tls_addresses"][0].as_str().and_then(|text| text.parse().ok());
    assert!(tls.is_some());
    ask_all(server.address, tls, &files.authority);
}
