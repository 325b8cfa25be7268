//! Zone transfers over TLS (RFC 9103), signed with TSIG: `nonesuch serve --config` as primary of
//! BIND, NSD and itself, and as their secondary; servers with a wrong identity. Knot DNS supports
//! TLS from version 3.4 on.

use crate::common;
use crate::common::certificates;
use crate::common::transferring;
use certificates::{Certificates, HOST};
use common::configured::Configured;
use common::{folder, free_address, generate_keys, is_installed, made, peers, run, snapshot, text};
use nonesuch_lab::peers::{Peer, PrimaryTls, Setup, TlsIdentity};
use nonesuch_testing::require_peer;
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use transferring::{
    SECRET, ZONE, assert_serves, free_port, primary_setup, secondary_setup, sign_next, sign_version,
    start_with, wait_for_zone,
};

/// Number of versions that a secondary follows.
const LAST: u32 = 4;

/// Top of the configuration of a server with TLS.
fn identity(files: &Certificates) -> String {
    format!(
        "listen-tls = [\"127.0.0.1:0\"]\ntls-certificate = \"{}\"\ntls-key = \"{}\"\ntls-authorities = \"{}\"\n",
        text(&files.server),
        text(&files.key),
        text(&files.authority)
    )
}

fn tls_address(server: &Configured) -> SocketAddr {
    server.ready["tls_addresses"][0].as_str().and_then(|text| text.parse().ok()).expect("an address")
}

/// A primary of this project with version 1, which permits transfers only over TLS.
fn start_primary(dir: &Path, files: &Certificates, notified: &str) -> Configured {
    generate_keys(&made(dir, "keys"), ZONE, "ecdsap256sha256");
    sign_version(dir, 1, "nsec");
    let zones = format!(
        "[zone.\"{ZONE}\"]\nfile = \"zone\"\ntransfer = [\"127.0.0.1 key:transfer.key. tls\"]\nalso-notify = [\"{notified}\"]\n"
    );
    let server = start_with(dir, free_port(), &identity(files), &zones);
    server.wait_for(ZONE, 1);
    server
}

/// Publishes the versions one after the other, and waits until `secondary` serves each of them.
fn publish_to(primary: &Configured, dir: &Path, secondary: SocketAddr, log: impl Fn() -> String) {
    for serial in 1..=LAST {
        if serial > 1 {
            sign_next(dir, serial);
            primary.ctl(&["reload"]).expect_done("reload");
        }
        wait_for_zone(secondary, ZONE, &dir.join("zone"), || format!("{}\n{}", log(), primary.logged()));
    }
    let sent = |kind: &str| primary.events("transfer-ended", &["outcome=sent", kind]).len();
    let expected = (1, LAST as usize - 1);
    assert_eq!((sent("kind=AXFR"), sent("kind=IXFR")), expected, "{}", primary.logged());
}

/// `lines` permits transfers without a key.
fn is_followed_by(peer: Peer, lines: &str) {
    require_peer!(peer.info().programs[0]);
    let (home, theirs) = (folder(), folder());
    let files = Certificates::make(home.path());
    let port = free_port();
    let primary = start_primary(home.path(), &files, &format!("127.0.0.1:{port}"));
    let tls = PrimaryTls { authorities: files.authority, name: HOST.to_owned() };
    let setup = secondary_setup(theirs.path(), tls_address(&primary), Some(tls));
    let mut setup = Setup { port: Some(port), ..setup };
    lines.clone_into(&mut setup.zones[0].lines);
    let peer = peers::start(peer, &setup);
    publish_to(&primary, home.path(), peer.address, || peer.log());
}

#[test]
fn bind_follows_over_tls() {
    is_followed_by(Peer::Bind, "  allow-transfer { 127.0.0.1; };");
}

#[test]
fn nsd_follows_over_tls() {
    is_followed_by(Peer::Nsd, "  provide-xfr: 127.0.0.1 NOKEY");
}

/// Both directions over TLS: the secondary receives NOTIFY over TLS, too.
#[test]
fn ours_follows_ours_over_tls() {
    let (home, theirs) = (folder(), folder());
    let files = Certificates::make(home.path());
    let secondary_tls = free_address();
    let primary = start_primary(
        home.path(),
        &files,
        &format!("127.0.0.1:{} tls:{HOST} key:transfer.key.", secondary_tls.port()),
    );
    let top = identity(&files).replace("127.0.0.1:0", &secondary_tls.to_string());
    let zones = format!(
        "[zone.\"{ZONE}\"]\nprimaries = [\"{} tls:{HOST} key:transfer.key.\"]\ntransfer = [\"127.0.0.1\"]\n",
        tls_address(&primary)
    );
    let secondary = start_with(theirs.path(), free_port(), &top, &zones);
    publish_to(&primary, home.path(), secondary.address, || secondary.logged());
}

/// A secondary of this project that transfers the zone over TLS from `primary`. Its log is in JSON.
fn start_secondary(dir: &Path, port: u16, primary: u16, host: &str, authority: &Path) -> Configured {
    let top = format!("tls-authorities = \"{}\"\n", text(authority));
    let zones = format!(
        "[log]\nformat = \"json\"\n\
         [zone.\"{ZONE}\"]\nprimaries = [\"127.0.0.1:{primary} {host} key:transfer.key.\"]\ntransfer = [\"127.0.0.1\"]\nretry-min = \"1s\"\n"
    );
    start_with(dir, port, &top, &zones)
}

/// Versions of a peer arrive over TLS. Nothing is transferred if the peer does not have the
/// configured identity.
fn follow(peer: Peer) {
    require_peer!(peer.info().programs[0]);
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    let files = Certificates::make(dir);
    generate_keys(&made(dir, "keys"), ZONE, "ecdsap256sha256");
    sign_version(dir, 1, "nsec");
    let port = free_port();
    let identity = TlsIdentity { certificate: files.server.clone(), key: files.key.clone() };
    let peer = peers::start(peer, &Setup { tls: Some(identity), ..primary_setup(dir, port) });
    let tls = peer.tls_address.expect("an address for TLS").port();
    let server = start_secondary(home.path(), port, tls, &format!("tls:{HOST}"), &files.authority);
    server.wait_for(ZONE, 1);
    assert_serves(&server, ZONE, &dir.join("zone"));
    for serial in 2..=LAST {
        sign_version(dir, serial, "nsec");
        peer.reload().expect("it runs");
        server.wait_for(ZONE, serial);
        assert_serves(&server, ZONE, &dir.join("zone"));
    }
    drop(server);
    is_refused(tls, &files);
}

/// Another name and another authority: nothing is requested, and the log contains the reason.
fn is_refused(primary: u16, files: &Certificates) {
    is_refused_as(primary, "tls:other.example", &files.authority, "primary with another name");
    let named = format!("tls:{HOST}");
    is_refused_as(primary, &named, &files.stranger, "primary with a certificate of another authority");
}

/// The transfer fails. The log and the status of the zone have the same error, which is the section
/// `case` of a snapshot.
fn is_refused_as(primary: u16, host: &str, authority: &Path, case: &str) {
    let home = folder();
    let server = start_secondary(home.path(), free_port(), primary, host, authority);
    let failure = || {
        let log = server.logged();
        let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.find(|line| {
            line["event"] == "transfer-failed" && line["level"] == "warn" && line["zone"] == ZONE
        })
    };
    let transfer_error = || server.ctl_json(&["zone", "status", ZONE])[0]["transfer_error"].clone();
    server.wait_until("a refusal", || failure().is_some() && transfer_error().is_string());
    assert_eq!(server.serial(ZONE), None);
    let (failure, error) = (failure().unwrap_or_default(), transfer_error());
    let [logged, shown] =
        [&failure["error"], &error].map(|error| without_days(error.as_str().unwrap_or_default()));
    assert_eq!(logged, shown);
    snapshot::check("serve", case, &logged);
}

/// The text with `N days` in place of the number of days since a time.
fn without_days(text: &str) -> String {
    let Some((before, after)) = text.split_once(" days ") else { return text.to_owned() };
    format!("{}N days {after}", before.trim_end_matches(|letter: char| letter.is_ascii_digit()))
}

/// Nothing is transferred from a primary with an expired certificate; the log and the status of the
/// zone contain the reason.
#[test]
fn a_primary_whose_certificate_has_expired_is_refused() {
    let home = folder();
    let files = Certificates::make(home.path());
    let expired = Certificates { server: files.expired.clone(), ..files.clone() };
    let case = "primary with an expired certificate";
    let primary = start_primary(home.path(), &expired, "127.0.0.1:9");
    let named = format!("tls:{HOST}");
    let tls = tls_address(&primary).port();
    is_refused_as(tls, &named, &files.authority, case);
    is_refused_as(tls, &named, &files.expired, case);
    for peer in [Peer::Bind, Peer::Nsd] {
        if !is_installed(peer.info().programs[0]) {
            continue;
        }
        let theirs = folder();
        fs::copy(home.path().join("zone"), theirs.path().join("zone")).expect("copied");
        let identity = TlsIdentity { certificate: files.expired.clone(), key: files.key.clone() };
        let peer = peers::start(peer, &Setup { tls: Some(identity), ..primary_setup(theirs.path(), 9) });
        let tls = peer.tls_address.expect("an address for TLS").port();
        is_refused_as(tls, &named, &files.authority, case);
    }
}

#[test]
fn bind_is_followed_over_tls() {
    follow(Peer::Bind);
}

#[test]
fn nsd_is_followed_over_tls() {
    follow(Peer::Nsd);
}

/// A zone that is permitted only over TLS is refused over TCP, even with the key. A connection
/// without authentication is still encrypted.
#[test]
fn ours_gives_nothing_without_tls_and_is_believed_where_it_is_who_it_should_be() {
    let home = folder();
    let files = Certificates::make(home.path());
    let primary = start_primary(home.path(), &files, "127.0.0.1:9");
    let tls = tls_address(&primary);
    is_refused(tls.port(), &files);
    let blind = folder();
    let server = start_secondary(blind.path(), free_port(), tls.port(), "tls", &files.stranger);
    server.wait_for(ZONE, 1);
    assert_serves(&server, ZONE, &home.path().join("zone"));
    require_peer!("dig");
    let key = format!("hmac-sha256:transfer.key:{SECRET}");
    let dig = |address: SocketAddr, more: &[&str]| {
        let port = address.port().to_string();
        let fixed =
            ["@127.0.0.1", "-p", &port, "+tries=1", "+time=10", "+comments", ZONE, "AXFR", "-y", &key];
        run(Command::new("dig").args(fixed).args(more)).stdout
    };
    let plain = dig(primary.address, &[]);
    assert!(plain.contains("Transfer failed") && !plain.contains("XFR size"), "{plain}");
    let encrypted = dig(tls, &["+tls"]);
    assert!(encrypted.contains("XFR size"), "{encrypted}");
}
