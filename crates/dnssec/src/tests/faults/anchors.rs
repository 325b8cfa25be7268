//! Trust anchors and DS records that match no key of the zone (RFC 4035 §5.2, RFC 4509, RFC 5011
//! §2.1).

use super::*;
use crate::keys::{REVOKE, ds_rdata};
use nonesuch_crypto::DigestType;

pub(super) const ROWS: &[Row] = &[
    row("DS of another key", "RFC 4035 §5.2", Scope::Every, ds_of_another_key),
    row("DS with another digest", "RFC 4035 §5.2", Scope::Every, ds_with_another_digest),
    row("DS with another tag", "RFC 4035 §5.2", Scope::Every, ds_with_another_tag),
    row("DS with another algorithm", "RFC 4035 §5.2", Scope::Every, ds_with_another_algorithm),
    row("DS cut short", "RFC 4034 §5.1", Scope::Every, ds_cut_short),
    row("DS of an unknown digest alone", "RFC 4509 §3", Scope::Every, ds_of_an_unknown_digest),
    row("DS of a key that does not sign the keys", "RFC 4035 §5.2", Scope::Every, ds_of_the_zsk),
    row("DS of a revoked key", "RFC 5011 §2.1", Scope::Every, ds_of_a_revoked_key),
    row("anchor of another key", "RFC 4035 §5.2", Scope::Every, anchor_of_another_key),
    row("anchor empty", "RFC 4034 §2.1", Scope::Every, |bench| {
        not_led_by(bench, Anchor::Dnskey(Vec::new()))
    }),
];

#[test]
fn faults_of_anchors() {
    plant_all(ROWS);
}

fn ds(key: &KeyPair) -> Vec<u8> {
    ds_rdata(name("example.").view(), &key.dnskey_rdata(), DigestType::SHA256).unwrap()
}

/// The anchor matches no key: a fault, and a warning that names the anchor.
fn not_led_by(_: &mut Bench, anchor: Anchor) -> Found {
    let (tag, algorithm) = match &anchor {
        Anchor::Dnskey(rdata) => (nonesuch_crypto::key_tag(rdata), rdata.get(3).copied().unwrap_or(0)),
        Anchor::Ds(rdata) if rdata.len() > 2 => (u16::from_be_bytes([rdata[0], rdata[1]]), rdata[2]),
        Anchor::Ds(_) => (0, 0),
    };
    found("example.", DNSKEY, FaultReason::AnchorMismatch)
        .warned(VerifyWarning::AnchorUnused { tag, algorithm: Algorithm(algorithm) })
        .against(vec![anchor])
}

fn altered_ds(bench: &mut Bench, change: impl Fn(&mut Vec<u8>)) -> Found {
    let mut rdata = ds(&bench.keys.keys()[0]);
    change(&mut rdata);
    not_led_by(bench, Anchor::Ds(rdata))
}

fn ds_with_another_digest(bench: &mut Bench) -> Found {
    altered_ds(bench, |rdata| rdata[20] ^= 1)
}

fn ds_with_another_tag(bench: &mut Bench) -> Found {
    altered_ds(bench, |rdata| rdata[1] ^= 1)
}

fn ds_with_another_algorithm(bench: &mut Bench) -> Found {
    altered_ds(bench, |rdata| rdata[2] ^= 1)
}

fn ds_cut_short(bench: &mut Bench) -> Found {
    altered_ds(bench, |rdata| rdata.truncate(2))
}

fn ds_of_an_unknown_digest(bench: &mut Bench) -> Found {
    altered_ds(bench, |rdata| rdata[3] = 99)
}

fn ds_of_another_key(bench: &mut Bench) -> Found {
    let stranger = key("example.", 257, key_of(bench).1, 3);
    not_led_by(bench, Anchor::Ds(ds(&stranger)))
}

fn anchor_of_another_key(bench: &mut Bench) -> Found {
    let stranger = key("example.", 257, key_of(bench).1, 3);
    not_led_by(bench, Anchor::Dnskey(stranger.dnskey_rdata()))
}

fn ds_of_the_zsk(bench: &mut Bench) -> Found {
    with_keys(bench, [257, 256]);
    let zsk = ds(bench.keys.keys().iter().find(|key| !key.is_sep()).unwrap());
    not_led_by(bench, Anchor::Ds(zsk))
}

fn ds_of_a_revoked_key(bench: &mut Bench) -> Found {
    with_keys(bench, [257 | REVOKE, 257]);
    let revoked = ds(bench.keys.keys().iter().find(|key| key.is_revoked()).unwrap());
    not_led_by(bench, Anchor::Ds(revoked))
}
