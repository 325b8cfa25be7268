//! NSD, Knot DNS and BIND as secondaries of a zone of this server: complete transfers, incremental
//! transfers and TSIG. Each version is compared record by record. The test names and skips programs
//! that are not installed.
#![allow(unreachable_pub)] // used only by other test programs

#[path = "secondaries/peers.rs"]
mod peers;
#[path = "secondaries/primary.rs"]
mod primary;

use nonesuch_authoritative::transfer::outbound::{TransferKind, TransferOutcome};
use nonesuch_crypto::{Algorithm, PrivateKey};
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
use nonesuch_lab::peers::Peer;
use nonesuch_server::tsig;
use nonesuch_zone::Contents;
use nonesuch_zone::read::read_text;
use peers::{SECONDARIES, SECRET, Secondary, apex, records_of};
use primary::Primary;
use std::path::Path;

/// Number of changes that are compared, one after the other.
const CHANGES: u32 = 100;
/// Number of names in the zone, and number of versions in which each name does not change.
const NAMES: u32 = 120;
const STAYS: u32 = 20;

/// Returns a version of a zone. Each change removes, adds and alters records, whole names, TTLs,
/// delegations with glue, letter case, and the apex.
fn version(serial: u32) -> Contents {
    let mut text = format!(
        "$ORIGIN example.\n$TTL 300\n@ SOA ns h {serial} 3600 60 604800 60\n@ NS ns\n@ NS ns{}\n",
        serial % 5
    );
    text.push_str("ns A 192.0.2.1\n");
    for index in 0..NAMES {
        // Each name is the same for `STAYS` versions and then changes; a few names change in each
        // version.
        let era = (serial + index * 7) / STAYS;
        let state =
            (era.wrapping_mul(2_654_435_761) ^ index.wrapping_mul(40_503)).wrapping_mul(0x9e37_79b9) >> 16;
        match state % 7 {
            0 => {}
            1 => text.push_str(&format!(
                "h{index} {} A 192.0.2.{}\nh{index} TXT \"{state}\"\n",
                60 + state % 3,
                state % 250
            )),
            2 => text.push_str(&format!(
                "h{index} NS ns.h{index}\nns.h{index} AAAA 2001:db8::{:x}\n",
                state % 4096
            )),
            3 => text
                .push_str(&format!("H{index} MX {} Mail.H{index}\nh{index} MX 10 other.test.\n", state % 3)),
            4 => text.push_str(&format!("*.h{index} CNAME h{}\n", (index + 1) % NAMES)),
            5 => text.push_str(&format!(
                "h{index} NS ns.test.\nh{index} DS {} 13 2 {}\n",
                state % 60_000,
                "ab".repeat(32)
            )),
            _ => text.push_str(&format!(
                "a.b.h{index} SRV 1 2 {} Target.test.\nh{index} TYPE65400 \\# 3 0102{:02x}\n",
                state % 9000,
                state % 256
            )),
        }
    }
    read_text(text.as_bytes(), Path::new("zone"), None).expect("a zone").contents
}

fn signed(contents: &Contents, inception: u32, mechanism: Mechanism) -> Contents {
    // The serial number is that of the version.
    let options = SignOptions {
        drop_foreign_dnskeys: true,
        ..SignOptions::new(mechanism, inception, inception + 86_400)
    };
    let text = format!(
        "Private-key-format: v1.3\nAlgorithm: 15 (X)\nPrivateKey: {}\n",
        data_encoding::BASE64.encode(&[7; 32])
    );
    assert!(text.contains(&Algorithm::ED25519.0.to_string()));
    let pair = KeyPair::new(apex(), 257, PrivateKey::from_bind(&text).expect("a key"));
    let keys = KeySet::new(&apex(), vec![pair]).expect("keys");
    sign(contents, &keys, &options).expect("signed").into_contents()
}

/// Makes a secondary transfer version 1, then each change up to `last`, and compares every version.
fn follow(peer: Peer, algorithm: &str, mechanism: Option<Mechanism>, last: u32) {
    // The same for all versions, so that signatures over unchanged RRsets do not change.
    let inception = primary::now() as u32 - 3600;
    let make = |serial: u32| match mechanism {
        Some(mechanism) => signed(&version(serial), inception, mechanism),
        None => version(serial),
    };
    let directory = tempfile::tempdir().expect("a directory");
    let primary = Primary::start(make(1), directory.path(), algorithm, SECRET);
    let Some(secondary) = Secondary::start(peer, primary.address, directory.path(), algorithm) else {
        return;
    };
    for serial in 1..=last {
        if serial > 1 {
            primary.publish(make(serial));
            secondary.notify();
        }
        secondary.wait_for(serial);
        assert_eq!(secondary.records(serial), records_of(&primary.contents()), "{peer:?}: version {serial}");
    }
    let ended = primary.ended();
    let count = |kind| {
        ended.iter().filter(|status| status.kind == kind && status.outcome == TransferOutcome::Sent).count()
    };
    println!(
        "{peer:?} {algorithm}: {} AXFR, {} IXFR over TCP",
        count(TransferKind::Axfr),
        count(TransferKind::Ixfr)
    );
    // The first transfer is the complete zone; all others are changes. They use TCP, unless the
    // program first sends the request over UDP.
    assert_eq!((count(TransferKind::Axfr), count(TransferKind::IxfrAsAxfr)), (1, 0), "{peer:?}");
    assert_eq!(count(TransferKind::Ixfr) as u32, last - 1, "{peer:?}");
    assert!(primary.refused().is_empty());
}

#[test]
fn nsd_follows_changes() {
    follow(Peer::Nsd, "hmac-sha256", None, CHANGES + 1);
}

#[test]
fn knot_follows_changes() {
    follow(Peer::Knot, "hmac-sha384", Some(Mechanism::Nsec), CHANGES + 1);
}

#[test]
fn bind_follows_changes() {
    follow(Peer::Bind, "hmac-sha512", Some(Mechanism::Nsec3), CHANGES + 1);
}

#[test]
#[ignore = "a minute: each of the three with each way of signing"]
fn all_follow_a_hundred_changes() {
    for (peer, algorithm) in SECONDARIES.into_iter().zip(["hmac-sha256", "hmac-sha384", "hmac-sha512"]) {
        for mechanism in [None, Some(Mechanism::Nsec), Some(Mechanism::Nsec3)] {
            follow(peer, algorithm, mechanism, CHANGES + 1);
        }
    }
}

/// Returns a signed zone of a hundred thousand delegations, a third of them secure. `changed` of
/// them differ from other versions.
fn registry(serial: u32, changed: u32, inception: u32) -> Contents {
    let mut text = format!(
        "$ORIGIN example.\n$TTL 3600\n@ SOA ns h {serial} 3600 60 604800 60\n@ NS ns\nns A 192.0.2.1\n"
    );
    for index in 0..100_000_u32 {
        let version = if index < changed { serial } else { 0 };
        text.push_str(&format!(
            "d{index} NS ns{version}.d{index}\nd{index} NS ns.test.\nns{version}.d{index} A 192.0.2.2\n"
        ));
        if index % 3 == 0 {
            text.push_str(&format!("d{index} DS {} 13 2 {}\n", index % 60_000, "ab".repeat(32)));
        }
    }
    let contents = read_text(text.as_bytes(), Path::new("zone"), None).expect("a zone").contents;
    signed(&contents, inception, Mechanism::Nsec)
}

#[test]
#[ignore = "a minute: a zone of a hundred thousand delegations"]
fn all_take_a_hundred_thousand_delegations() {
    let inception = primary::now() as u32 - 3600;
    let versions = [registry(1, 0, inception), registry(2, 50, inception)];
    for peer in SECONDARIES {
        let directory = tempfile::tempdir().expect("a directory");
        let primary = Primary::start(versions[0].clone(), directory.path(), "hmac-sha256", SECRET);
        let Some(secondary) = Secondary::start(peer, primary.address, directory.path(), "hmac-sha256") else {
            continue;
        };
        for serial in [1, 2] {
            if serial == 2 {
                primary.publish(versions[1].clone());
                secondary.notify();
            }
            secondary.wait_for(serial);
            assert!(
                secondary.records(serial) == records_of(&primary.contents()),
                "{peer:?}: version {serial}"
            );
        }
        // NSD queries again for newer changes, and gets the answer that there are none.
        let ended = primary.ended().into_iter().filter(|status| status.outcome == TransferOutcome::Sent);
        let ended: Vec<_> = ended.collect();
        for status in &ended {
            let (kind, records, octets) = (status.kind, status.records, status.octets);
            println!("{peer:?}: {kind}, {records} records, {octets} octets, {:?}", status.elapsed);
        }
        let kinds: Vec<TransferKind> = ended.iter().map(|status| status.kind).collect();
        assert_eq!(kinds, [TransferKind::Axfr, TransferKind::Ixfr]);
    }
}

/// With a wrong secret, no program can transfer the zone, and the server records each attempt.
#[test]
fn another_secret_gets_nothing() {
    let other = data_encoding::BASE64.encode(b"another secret of thirty-two oct");
    for peer in SECONDARIES {
        let directory = tempfile::tempdir().expect("a directory");
        let primary = Primary::start(version(1), directory.path(), "hmac-sha256", &other);
        let Some(secondary) = Secondary::start(peer, primary.address, directory.path(), "hmac-sha256") else {
            continue;
        };
        let started_at = std::time::Instant::now();
        while primary.refused().is_empty() {
            assert!(started_at.elapsed().as_secs() < 60, "{peer:?} does not ask");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(primary.refused().iter().all(|error| *error == tsig::TsigError::BadSig), "{peer:?}");
        assert!(
            primary.ended().is_empty() && secondary.serial().is_none_or(|serial| serial == 0),
            "{peer:?}"
        );
    }
}
