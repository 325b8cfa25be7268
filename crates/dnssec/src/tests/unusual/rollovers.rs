//! Keys in each step of a rollover (RFC 6781 §4.1, RFC 7583, RFC 5011), unused keys, DS records and
//! CDS.

use super::*;
use crate::keys::{REVOKE, ds_rdata};
use nonesuch_crypto::{DigestType, KeyError, key_tag};

pub(super) const ROWS: &[Row] = &[
    row("KSK and ZSK", "RFC 6781 §3.1", Scope::Every, |cell| keys(cell, &[(257, 1), (256, 2)])),
    row("one key for everything", "RFC 6781 §3.1", Scope::Every, |cell| keys(cell, &[(257, 1)])),
    row("one key without SEP", "RFC 4034 §2.1.1", Scope::Every, |cell| keys(cell, &[(256, 1)])),
    row("two KSKs", "RFC 6781 §4.1.2", Scope::Every, |cell| keys(cell, &[(257, 1), (257, 3), (256, 2)])),
    row("two ZSKs", "RFC 6781 §4.1.1.2", Scope::Every, |cell| keys(cell, &[(257, 1), (256, 2), (256, 3)])),
    row("two keys for everything", "RFC 6781 §4.1.3", Scope::Every, |cell| {
        keys(cell, &[(257, 1), (257, 2)])
    }),
    row("ZSK, pre-publish: the new one published", "RFC 6781 §4.1.1.1", Scope::Every, |cell| {
        published(cell, &[(257, 1), (256, 2)], &[(256, 3)])
    }),
    row("ZSK, pre-publish: the new one signs", "RFC 6781 §4.1.1.1", Scope::Every, |cell| {
        published(cell, &[(257, 1), (256, 3)], &[(256, 2)])
    }),
    row("ZSK, pre-publish: both sign in part", "RFC 6781 §4.1.1.1", Scope::Every, zsk_in_part),
    row("ZSK, double signature", "RFC 6781 §4.1.1.2", Scope::Every, |cell| {
        keys(cell, &[(257, 1), (256, 3), (256, 2)])
    }),
    row("ZSK: signatures of the old one left over", "RFC 6781 §4.1.1.1", Scope::Every, zsk_left_over),
    row(
        "ZSK: signatures of the new one before it is published",
        "RFC 6781 §4.1.1.2",
        Scope::Every,
        zsk_beforehand,
    ),
    row("KSK, double signature: DS of the old one", "RFC 6781 §4.1.2", Scope::Every, |cell| {
        ksk_double(cell, &[1])
    }),
    row("KSK, double signature: DS of both", "RFC 6781 §4.1.2", Scope::Every, |cell| {
        ksk_double(cell, &[1, 3])
    }),
    row("KSK, double signature: DS of the new one", "RFC 6781 §4.1.2", Scope::Every, |cell| {
        ksk_double(cell, &[3])
    }),
    row("KSK, double DS: the new key is nowhere yet", "RFC 7583 §3.3.2", Scope::Every, |cell| {
        ksk_double_ds(cell, 1, 3)
    }),
    row("KSK, double DS: the old key is gone", "RFC 7583 §3.3.2", Scope::Every, |cell| {
        ksk_double_ds(cell, 3, 1)
    }),
    row("KSK: the next one published, not signing", "RFC 5011 §2.4", Scope::Every, |cell| {
        published(cell, &[(257, 1), (256, 2)], &[(257, 3)])
    }),
    row("KSK: the old one revoked", "RFC 5011 §2.1", Scope::Every, |cell| {
        keys(cell, &[(257 | REVOKE, 1), (257, 3), (256, 2)])
    }),
    row("KSK: the old one revoked, a key for everything", "RFC 5011 §2.1", Scope::Every, |cell| {
        keys(cell, &[(257 | REVOKE, 1), (257, 3)])
    }),
    row("KSK: revoked and not signing", "RFC 5011 §2.1", Scope::Every, revoked_silently),
    row("ZSK revoked", "RFC 5011 §2.1", Scope::Every, |cell| {
        keys(cell, &[(257, 1), (256 | REVOKE, 3), (256, 2)])
    }),
    row("from KSK and ZSK to one key: both sign", "RFC 6781 §4.1.3", Scope::Every, to_one_key),
    row("the KSK signs data too", "RFC 6781 §3.1", Scope::Every, ksk_signs_data),
    row("the ZSK signs the keys too", "RFC 4035 §2.2", Scope::Every, zsk_signs_keys),
    row("the keys signed with the ZSK alone", "RFC 4035 §2.2", Scope::Every, zsk_alone_signs_keys),
    row("algorithm: signatures first", "RFC 6781 §4.1.4", Scope::Every, algorithm_signatures_first),
    row("algorithm: both whole", "RFC 6781 §4.1.4", Scope::Every, algorithm_both),
    row("algorithm: both whole, DS of the new one", "RFC 6781 §4.1.4", Scope::Every, algorithm_ds_changed),
    row("algorithm: signatures last", "RFC 6781 §4.1.4", Scope::Every, algorithm_signatures_last),
    row("three algorithms", "RFC 4035 §2.2", Scope::Every, three_algorithms),
    row("many keys", "RFC 4035 §2.1", Scope::Every, many_keys),
    row("another operator's ZSK published", "RFC 8901 §2.1.1", Scope::Every, |cell| {
        published(cell, &[(257, 1), (256, 2)], &[(256, 3)])
    }),
    row("another operator's KSK and ZSK published", "RFC 8901 §2.1.2", Scope::Every, |cell| {
        published(cell, &[(257, 1)], &[(257, 2), (256, 3)])
    }),
    row("a key of an unknown algorithm", "RFC 4035 §5.2", Scope::NotNsec5, unknown_algorithm),
    row("a key that is too short", "RFC 5702 §2.1", Scope::Every, short_key),
    row("a key that is no zone key", "RFC 4034 §2.1.1", Scope::Every, |cell| unfit(cell, [0, 1, 3], 1)),
    row("a key of another protocol", "RFC 4034 §2.1.2", Scope::Every, |cell| unfit(cell, [1, 0, 2], 256)),
    row("a key with reserved flags", "RFC 4034 §2.1.1", Scope::Every, reserved_flags),
    row("DS with SHA-1", "RFC 4509 §3", Scope::Every, |cell| digest(cell, DigestType::SHA1)),
    row("DS with SHA-256", "RFC 4509 §2", Scope::Every, |cell| digest(cell, DigestType::SHA256)),
    row("DS with SHA-384", "RFC 6605 §2", Scope::Every, |cell| digest(cell, DigestType::SHA384)),
    row("DS with an unknown digest beside a known one", "RFC 4509 §3", Scope::Every, unknown_digest),
    row("DS of a key that is gone beside a good one", "RFC 4035 §5.2", Scope::Every, |cell| {
        ksk_double_ds(cell, 1, 2)
    }),
    row("an anchor that is the key", "RFC 4035 §5", Scope::Every, |cell| {
        let bench = cell.signed(RECORDS, cell.csk());
        let anchor = Anchor::Dnskey(bench.keys.keys()[0].dnskey_rdata());
        Sound::from(bench).against(vec![anchor])
    }),
    row("CDS and CDNSKEY", "RFC 7344 §4", Scope::Every, cds_and_cdnskey),
    row("CDS alone", "RFC 7344 §4", Scope::Every, |cell| told(cell, &[&cds(cell, 1)])),
    row("CDNSKEY alone", "RFC 7344 §4", Scope::Every, |cell| told(cell, &[&cdnskey(cell, 1)])),
    row("CDS with two digests beside one CDNSKEY", "RFC 7344 §4", Scope::Every, cds_with_two_digests),
    row("CDS with an unknown digest", "RFC 7344 §4", Scope::Every, |cell| {
        told(cell, &[&format!("@ CDS {} {} 99 00", cell.key(257, 1).tag(), cell.algorithm.0)])
    }),
    row("CDS of the next key beside the present one", "RFC 7344 §4.1", Scope::Every, |cell| {
        told(cell, &[&cds(cell, 1), &cds(cell, 3), &cdnskey(cell, 1), &cdnskey(cell, 3)])
    }),
    row("removal of all DS records", "RFC 8078 §4", Scope::Every, |cell| {
        told(cell, &["@ CDS 0 0 0 00", "@ CDNSKEY 0 3 0 AA=="])
    }),
    row("removal of all DS records by CDS alone", "RFC 8078 §4", Scope::Every, |cell| {
        told(cell, &["@ CDS 0 0 0 00"])
    }),
    row("CDS of a key of an unknown algorithm", "RFC 7344 §4.1", Scope::NotNsec5, cds_of_unknown_algorithm),
];

#[test]
fn unusual_keys() {
    try_all(ROWS);
}

/// Flags and seed of a key.
type Plan = (u16, u8);

fn made(cell: Cell, plans: &[Plan]) -> Vec<KeyPair> {
    plans.iter().map(|(flags, seed)| cell.key(*flags, *seed)).collect()
}

fn keys(cell: Cell, plans: &[Plan]) -> Sound {
    cell.signed(RECORDS, made(cell, plans)).into()
}

/// Key records, followed by those of the zone.
fn with_keys(records: &[&KeyPair]) -> String {
    let lines = records.iter().map(|key| format!("@ DNSKEY {}\n", text_of_key(key)));
    lines.chain([RECORDS.to_owned()]).collect()
}

/// The keys `signing` sign; the keys `silent` are only in the DNSKEY RRset.
fn published(cell: Cell, signing: &[Plan], silent: &[Plan]) -> Sound {
    let silent = made(cell, silent);
    cell.signed(&with_keys(&silent.iter().collect::<Vec<_>>()), made(cell, signing)).into()
}

fn zsk_in_part(cell: Cell) -> Sound {
    let new = cell.key(256, 3);
    let mut bench = cell.signed(&with_keys(&[&new]), made(cell, &[(257, 1), (256, 2)]));
    for (owner, rtype) in [("a.example.", Rtype::A), ("b.example.", Rtype::TXT)] {
        bench.remove_signatures(owner, &rtype.to_string());
        bench.sign_by(owner, rtype, &new);
    }
    bench.into()
}

/// A signature by a key that is not in the DNSKEY RRset, in addition to a valid one.
fn spare(owner: &str, rtype: Rtype, key: &KeyPair) -> VerifyWarning {
    let reason = FaultReason::UnknownKey { tag: key.tag(), algorithm: key.algorithm() };
    VerifyWarning::SpareSignature { owner: name(owner), rtype, reason }
}

fn stranger_signs_too(cell: Cell, stranger: &KeyPair) -> Sound {
    let mut bench = cell.signed(RECORDS, made(cell, &[(257, 1), (256, 2)]));
    bench.sign_by("a.example.", Rtype::A, stranger);
    bench.sign_by("b.example.", Rtype::TXT, stranger);
    Sound::from(bench).warned(spare("a.example.", Rtype::A, stranger)).warned(spare(
        "b.example.",
        Rtype::TXT,
        stranger,
    ))
}

fn zsk_left_over(cell: Cell) -> Sound {
    stranger_signs_too(cell, &cell.key(256, 3))
}

fn zsk_beforehand(cell: Cell) -> Sound {
    let mut sound = stranger_signs_too(cell, &cell.key(256, 3));
    sound.anchors = vec![ds(&cell.key(257, 1), DigestType::SHA256)];
    sound
}

fn ds(key: &KeyPair, digest: DigestType) -> Anchor {
    Anchor::Ds(ds_rdata(key.owner.view(), &key.dnskey_rdata(), digest).unwrap())
}

fn ksk_double(cell: Cell, of: &[u8]) -> Sound {
    let anchors = of.iter().map(|seed| ds(&cell.key(257, *seed), DigestType::SHA256)).collect();
    keys(cell, &[(257, 1), (257, 3), (256, 2)]).against(anchors)
}

/// DS records of an existing and of a missing key.
fn ksk_double_ds(cell: Cell, there: u8, absent: u8) -> Sound {
    let (there, absent) = (cell.key(257, there), cell.key(257, absent));
    let anchors = vec![ds(&there, DigestType::SHA256), ds(&absent, DigestType::SHA256)];
    let unused = VerifyWarning::AnchorUnused { tag: absent.tag(), algorithm: absent.algorithm() };
    Sound::from(cell.signed(RECORDS, vec![there])).against(anchors).warned(unused)
}

/// Validators do not detect the revocation, which causes a warning.
fn revoked_silently(cell: Cell) -> Sound {
    let revoked = cell.key(257 | REVOKE, 3);
    let bench = cell.signed(&with_keys(&[&revoked]), made(cell, &[(257, 1), (256, 2)]));
    Sound::from(bench).warned(VerifyWarning::RevokedNotSigning { tag: revoked.tag() })
}

/// The key also signs all RRsets that the first key does not sign.
fn signed_by_too(bench: &mut Bench, key: &KeyPair, which: impl Fn(Rtype) -> bool) {
    let contents = bench.contents();
    for node in contents.nodes() {
        let signatures = node.rrsets().filter(|rrset| rrset.rtype() == Rtype::RRSIG);
        for rtype in signatures.map(|rrset| rrset.covered()).filter(|rtype| which(*rtype)) {
            bench.sign_with(&contents, &node.name().to_string(), rtype, key, |_| {});
        }
    }
}

fn to_one_key(cell: Cell) -> Sound {
    let csk = cell.key(257, 3);
    let mut bench = cell.signed(&with_keys(&[&csk]), made(cell, &[(257, 1), (256, 2)]));
    signed_by_too(&mut bench, &csk, |_| true);
    bench.into()
}

fn ksk_signs_data(cell: Cell) -> Sound {
    let mut bench = cell.signed(RECORDS, made(cell, &[(257, 1), (256, 2)]));
    signed_by_too(&mut bench, &cell.key(257, 1), |rtype| rtype != Rtype::DNSKEY);
    bench.into()
}

fn zsk_signs_keys(cell: Cell) -> Sound {
    let mut bench = cell.signed(RECORDS, made(cell, &[(257, 1), (256, 2)]));
    bench.sign_by("example.", Rtype::DNSKEY, &cell.key(256, 2));
    bench.into()
}

fn zsk_alone_signs_keys(cell: Cell) -> Sound {
    let zsk = cell.key(256, 2);
    let mut bench = cell.signed(RECORDS, made(cell, &[(257, 1), (256, 2)]));
    bench.remove_signatures("example.", "DNSKEY");
    bench.sign_by("example.", Rtype::DNSKEY, &zsk);
    let silent = VerifyWarning::SepKeysNotSigning { tags: vec![cell.key(257, 1).tag()] };
    Sound::from(bench).against(vec![ds(&zsk, DigestType::SHA256)]).warned(silent)
}

/// A key of the new algorithm in an algorithm rollover.
fn other_key(cell: Cell) -> KeyPair {
    key("example.", 257, number_for(Algorithm::ECDSAP384SHA384, cell.mechanism), 3)
}

/// A zone with one key, and with spare signatures of another key that is not in the DNSKEY RRset.
fn spare_signatures_of(cell: Cell, own: KeyPair, spare_key: &KeyPair) -> Sound {
    let mut bench = cell.signed(RECORDS, vec![own]);
    let contents = bench.contents();
    signed_by_too(&mut bench, spare_key, |_| true);
    let mut sound = Sound::from(bench);
    for node in contents.nodes() {
        for rrset in node.rrsets().filter(|rrset| rrset.rtype() == Rtype::RRSIG) {
            sound = sound.warned(spare(&node.name().to_string(), rrset.covered(), spare_key));
        }
    }
    sound
}

fn algorithm_signatures_first(cell: Cell) -> Sound {
    spare_signatures_of(cell, cell.key(257, 1), &other_key(cell))
}

fn algorithm_signatures_last(cell: Cell) -> Sound {
    spare_signatures_of(cell, other_key(cell), &cell.key(257, 1))
}

fn algorithm_both(cell: Cell) -> Sound {
    Sound::from(cell.signed(RECORDS, vec![cell.key(257, 1), other_key(cell)]))
        .against(vec![ds(&cell.key(257, 1), DigestType::SHA256)])
}

fn algorithm_ds_changed(cell: Cell) -> Sound {
    algorithm_both(cell).against(vec![ds(&other_key(cell), DigestType::SHA256)])
}

fn three_algorithms(cell: Cell) -> Sound {
    let is_first = cell.algorithm.without_alias() == Algorithm::ED25519;
    let third = if is_first { Algorithm::ECDSAP256SHA256 } else { Algorithm::ED25519 };
    let third = number_for(third, cell.mechanism);
    cell.signed(RECORDS, vec![cell.key(257, 1), other_key(cell), key("example.", 257, third, 2)]).into()
}

fn many_keys(cell: Cell) -> Sound {
    published(cell, &[(257, 1)], &[(257, 2), (256, 2), (257, 3), (256, 3)])
}

fn unknown_algorithm(cell: Cell) -> Sound {
    let bench = cell.signed(RECORDS, cell.csk());
    let rdata = [1, 0, 3, 5, 3, 1, 0, 1];
    let error = KeyError::UnknownAlgorithm(Algorithm(5));
    with_dnskey(bench, &rdata).warned(VerifyWarning::UnusableKey { tag: key_tag(&rdata), error })
}

fn short_key(cell: Cell) -> Sound {
    let bench = cell.signed(RECORDS, cell.csk());
    let algorithm = number_for(Algorithm::RSASHA256, cell.mechanism);
    let rdata = [&[1, 0, 3, algorithm.0, 3, 1, 0, 1][..], &[0xff; 64]].concat();
    let error = KeyError::ModulusBits { bits: 512 };
    with_dnskey(bench, &rdata).warned(VerifyWarning::UnusableKey { tag: key_tag(&rdata), error })
}

/// Adds a DNSKEY record and signs the RRset again.
fn with_dnskey(mut bench: Bench, rdata: &[u8]) -> Sound {
    bench.add(&format!("example. 3600 IN DNSKEY {}", text_of(Rtype::DNSKEY, rdata)));
    bench.sign_again("example.", Rtype::DNSKEY, |_| {});
    bench.into()
}

fn unfit(cell: Cell, head: [u8; 3], flags: u16) -> Sound {
    let mut rdata = cell.key(256, 3).dnskey_rdata();
    rdata[..3].copy_from_slice(&head);
    let tag = key_tag(&rdata);
    with_dnskey(cell.signed(RECORDS, cell.csk()), &rdata).warned(VerifyWarning::NotAZoneKey { tag, flags })
}

/// Reserved flags are ignored: the key is usable.
fn reserved_flags(cell: Cell) -> Sound {
    keys(cell, &[(257 | 0xfe00, 1), (256 | 0x007e, 2)])
}

fn digest(cell: Cell, digest: DigestType) -> Sound {
    keys(cell, &[(257, 1), (256, 2)]).against(vec![ds(&cell.key(257, 1), digest)])
}

fn unknown_digest(cell: Cell) -> Sound {
    let key = cell.key(257, 1);
    let (tag, algorithm) = (key.tag(), key.algorithm());
    let unknown = Anchor::Ds([&tag.to_be_bytes()[..], &[algorithm.0, 99, 1, 2, 3]].concat());
    let sound = digest(cell, DigestType::SHA256).warned(VerifyWarning::AnchorUnused { tag, algorithm });
    let anchors = [vec![unknown], sound.anchors.clone()].concat();
    sound.against(anchors)
}

fn cds(cell: Cell, seed: u8) -> String {
    let key = cell.key(257, seed);
    let rdata = ds_rdata(key.owner.view(), &key.dnskey_rdata(), DigestType::SHA256).unwrap();
    format!("@ CDS {}", text_of(Rtype::CDS, &rdata))
}

fn cdnskey(cell: Cell, seed: u8) -> String {
    format!("@ CDNSKEY {}", text_of_key(&cell.key(257, seed)))
}

/// A zone with one key and with these CDS and CDNSKEY records.
fn told(cell: Cell, records: &[&str]) -> Sound {
    cell.signed(&format!("{}\n{RECORDS}", records.join("\n")), cell.csk()).into()
}

fn cds_and_cdnskey(cell: Cell) -> Sound {
    let options = SignOptions { publish_cds: true, ..cell.options() };
    cell.bench(&zone(RECORDS), made(cell, &[(257, 1), (257, 3), (256, 2)]), &options).into()
}

fn cds_with_two_digests(cell: Cell) -> Sound {
    let key = cell.key(257, 1);
    let other = ds_rdata(key.owner.view(), &key.dnskey_rdata(), DigestType::SHA384).unwrap();
    told(cell, &[&cds(cell, 1), &format!("@ CDS {}", text_of(Rtype::CDS, &other)), &cdnskey(cell, 1)])
}

/// It is unknown whether that key signs.
fn cds_of_unknown_algorithm(cell: Cell) -> Sound {
    let rdata = [1, 1, 3, 5, 3, 1, 0, 1];
    let other = ds_rdata(name("example.").view(), &rdata, DigestType::SHA256).unwrap();
    let records = format!("@ CDS {}\n{}\n{RECORDS}", text_of(Rtype::CDS, &other), cds(cell, 1));
    let bench = cell.signed(&records, cell.csk());
    let error = KeyError::UnknownAlgorithm(Algorithm(5));
    with_dnskey(bench, &rdata).warned(VerifyWarning::UnusableKey { tag: key_tag(&rdata), error })
}
