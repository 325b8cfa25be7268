//! Keys in each step of a rollover (RFC 6781 §4.1, RFC 7583, RFC 5011), unused keys, DS records and
//! CDS.

use super::*;
use crate::keys::{REVOKE, ds_rdata};
use nonesuch_crypto::{DigestType, KeyError, key_tag};

pub(super) const ROWS: &[Row] = &[
    row("KSK and ZSK", "RFC 6781 §3.1", Scope::Every, |variant| keys(variant, &[(257, 1), (256, 2)])),
    row("one key for everything", "RFC 6781 §3.1", Scope::Every, |variant| keys(variant, &[(257, 1)])),
    row("one key without SEP", "RFC 4034 §2.1.1", Scope::Every, |variant| keys(variant, &[(256, 1)])),
    row("two KSKs", "RFC 6781 §4.1.2", Scope::Every, |variant| {
        keys(variant, &[(257, 1), (257, 3), (256, 2)])
    }),
    row("two ZSKs", "RFC 6781 §4.1.1.2", Scope::Every, |variant| {
        keys(variant, &[(257, 1), (256, 2), (256, 3)])
    }),
    row("two keys for everything", "RFC 6781 §4.1.3", Scope::Every, |variant| {
        keys(variant, &[(257, 1), (257, 2)])
    }),
    row("ZSK, pre-publish: the new one published", "RFC 6781 §4.1.1.1", Scope::Every, |variant| {
        published(variant, &[(257, 1), (256, 2)], &[(256, 3)])
    }),
    row("ZSK, pre-publish: the new one signs", "RFC 6781 §4.1.1.1", Scope::Every, |variant| {
        published(variant, &[(257, 1), (256, 3)], &[(256, 2)])
    }),
    row("ZSK, pre-publish: both sign in part", "RFC 6781 §4.1.1.1", Scope::Every, zsk_in_part),
    row("ZSK, double signature", "RFC 6781 §4.1.1.2", Scope::Every, |variant| {
        keys(variant, &[(257, 1), (256, 3), (256, 2)])
    }),
    row("ZSK: signatures of the old one left over", "RFC 6781 §4.1.1.1", Scope::Every, zsk_left_over),
    row(
        "ZSK: signatures of the new one before it is published",
        "RFC 6781 §4.1.1.2",
        Scope::Every,
        zsk_beforehand,
    ),
    row("KSK, double signature: DS of the old one", "RFC 6781 §4.1.2", Scope::Every, |variant| {
        ksk_double(variant, &[1])
    }),
    row("KSK, double signature: DS of both", "RFC 6781 §4.1.2", Scope::Every, |variant| {
        ksk_double(variant, &[1, 3])
    }),
    row("KSK, double signature: DS of the new one", "RFC 6781 §4.1.2", Scope::Every, |variant| {
        ksk_double(variant, &[3])
    }),
    row("KSK, double DS: the new key is nowhere yet", "RFC 7583 §3.3.2", Scope::Every, |variant| {
        ksk_double_ds(variant, 1, 3)
    }),
    row("KSK, double DS: the old key is gone", "RFC 7583 §3.3.2", Scope::Every, |variant| {
        ksk_double_ds(variant, 3, 1)
    }),
    row("KSK: the next one published, not signing", "RFC 5011 §2.4", Scope::Every, |variant| {
        published(variant, &[(257, 1), (256, 2)], &[(257, 3)])
    }),
    row("KSK: the old one revoked", "RFC 5011 §2.1", Scope::Every, |variant| {
        keys(variant, &[(257 | REVOKE, 1), (257, 3), (256, 2)])
    }),
    row("KSK: the old one revoked, a key for everything", "RFC 5011 §2.1", Scope::Every, |variant| {
        keys(variant, &[(257 | REVOKE, 1), (257, 3)])
    }),
    row("KSK: revoked and not signing", "RFC 5011 §2.1", Scope::Every, revoked_silently),
    row("ZSK revoked", "RFC 5011 §2.1", Scope::Every, |variant| {
        keys(variant, &[(257, 1), (256 | REVOKE, 3), (256, 2)])
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
    row("another operator's ZSK published", "RFC 8901 §2.1.1", Scope::Every, |variant| {
        published(variant, &[(257, 1), (256, 2)], &[(256, 3)])
    }),
    row("another operator's KSK and ZSK published", "RFC 8901 §2.1.2", Scope::Every, |variant| {
        published(variant, &[(257, 1)], &[(257, 2), (256, 3)])
    }),
    row("a key of an unknown algorithm", "RFC 4035 §5.2", Scope::NotNsec5, unknown_algorithm),
    row("a key that is too short", "RFC 5702 §2.1", Scope::Every, short_key),
    row("a key that is no zone key", "RFC 4034 §2.1.1", Scope::Every, |variant| {
        unfit(variant, [0, 1, 3], 1)
    }),
    row("a key of another protocol", "RFC 4034 §2.1.2", Scope::Every, |variant| {
        unfit(variant, [1, 0, 2], 256)
    }),
    row("a key with reserved flags", "RFC 4034 §2.1.1", Scope::Every, reserved_flags),
    row("DS with SHA-1", "RFC 4509 §3", Scope::Every, |variant| digest(variant, DigestType::SHA1)),
    row("DS with SHA-256", "RFC 4509 §2", Scope::Every, |variant| digest(variant, DigestType::SHA256)),
    row("DS with SHA-384", "RFC 6605 §2", Scope::Every, |variant| digest(variant, DigestType::SHA384)),
    row("DS with an unknown digest next to a known one", "RFC 4509 §3", Scope::Every, unknown_digest),
    row("DS of a key that is gone next to a good one", "RFC 4035 §5.2", Scope::Every, |variant| {
        ksk_double_ds(variant, 1, 2)
    }),
    row("an anchor that is the key", "RFC 4035 §5", Scope::Every, |variant| {
        let bench = variant.signed(RECORDS, variant.csk());
        let anchor = Anchor::Dnskey(bench.keys.keys()[0].dnskey_rdata());
        Sound::from(bench).against(vec![anchor])
    }),
    row("CDS and CDNSKEY", "RFC 7344 §4", Scope::Every, cds_and_cdnskey),
    row("CDS alone", "RFC 7344 §4", Scope::Every, |variant| told(variant, &[&cds(variant, 1)])),
    row("CDNSKEY alone", "RFC 7344 §4", Scope::Every, |variant| told(variant, &[&cdnskey(variant, 1)])),
    row("CDS with two digests next to one CDNSKEY", "RFC 7344 §4", Scope::Every, cds_with_two_digests),
    row("CDS with an unknown digest", "RFC 7344 §4", Scope::Every, |variant| {
        told(variant, &[&format!("@ CDS {} {} 99 00", variant.key(257, 1).tag(), variant.algorithm.0)])
    }),
    row("CDS of the next key next to the present one", "RFC 7344 §4.1", Scope::Every, |variant| {
        told(variant, &[&cds(variant, 1), &cds(variant, 3), &cdnskey(variant, 1), &cdnskey(variant, 3)])
    }),
    row("removal of all DS records", "RFC 8078 §4", Scope::Every, |variant| {
        told(variant, &["@ CDS 0 0 0 00", "@ CDNSKEY 0 3 0 AA=="])
    }),
    row("removal of all DS records by CDS alone", "RFC 8078 §4", Scope::Every, |variant| {
        told(variant, &["@ CDS 0 0 0 00"])
    }),
    row("CDS of a key of an unknown algorithm", "RFC 7344 §4.1", Scope::NotNsec5, cds_of_unknown_algorithm),
];

#[test]
fn unusual_keys() {
    try_all(ROWS);
}

/// Flags and seed of a key.
type Plan = (u16, u8);

fn made(variant: Variant, plans: &[Plan]) -> Vec<KeyPair> {
    plans.iter().map(|(flags, seed)| variant.key(*flags, *seed)).collect()
}

fn keys(variant: Variant, plans: &[Plan]) -> Sound {
    variant.signed(RECORDS, made(variant, plans)).into()
}

/// Key records, followed by those of the zone.
fn with_keys(records: &[&KeyPair]) -> String {
    let lines = records.iter().map(|key| format!("@ DNSKEY {}\n", text_of_key(key)));
    lines.chain([RECORDS.to_owned()]).collect()
}

/// The keys `signing` sign; the keys `silent` are only in the DNSKEY RRset.
fn published(variant: Variant, signing: &[Plan], silent: &[Plan]) -> Sound {
    let silent = made(variant, silent);
    variant.signed(&with_keys(&silent.iter().collect::<Vec<_>>()), made(variant, signing)).into()
}

fn zsk_in_part(variant: Variant) -> Sound {
    let new = variant.key(256, 3);
    let mut bench = variant.signed(&with_keys(&[&new]), made(variant, &[(257, 1), (256, 2)]));
    for (owner, rtype) in [("a.example.", Rtype::A), ("b.example.", Rtype::TXT)] {
        bench.remove_signatures(owner, &rtype.to_string());
        bench.sign_by(owner, rtype, &new);
    }
    bench.into()
}

/// A signature by a key that is not in the DNSKEY RRset, in addition to a valid one.
fn spare(owner: &str, rtype: Rtype, key: &KeyPair) -> VerifyWarning {
    let reason = FaultReason::UnknownKey { tag: key.tag(), algorithm: key.algorithm() };
    VerifyWarning::SurplusSignature { owner: name(owner), rtype, reason }
}

fn stranger_signs_too(variant: Variant, stranger: &KeyPair) -> Sound {
    let mut bench = variant.signed(RECORDS, made(variant, &[(257, 1), (256, 2)]));
    bench.sign_by("a.example.", Rtype::A, stranger);
    bench.sign_by("b.example.", Rtype::TXT, stranger);
    Sound::from(bench).warned(spare("a.example.", Rtype::A, stranger)).warned(spare(
        "b.example.",
        Rtype::TXT,
        stranger,
    ))
}

fn zsk_left_over(variant: Variant) -> Sound {
    stranger_signs_too(variant, &variant.key(256, 3))
}

fn zsk_beforehand(variant: Variant) -> Sound {
    let mut sound = stranger_signs_too(variant, &variant.key(256, 3));
    sound.anchors = vec![ds(&variant.key(257, 1), DigestType::SHA256)];
    sound
}

fn ds(key: &KeyPair, digest: DigestType) -> Anchor {
    Anchor::Ds(ds_rdata(key.owner.view(), &key.dnskey_rdata(), digest).unwrap())
}

fn ksk_double(variant: Variant, of: &[u8]) -> Sound {
    let anchors = of.iter().map(|seed| ds(&variant.key(257, *seed), DigestType::SHA256)).collect();
    keys(variant, &[(257, 1), (257, 3), (256, 2)]).against(anchors)
}

/// DS records of an existing and of a missing key.
fn ksk_double_ds(variant: Variant, there: u8, absent: u8) -> Sound {
    let (there, absent) = (variant.key(257, there), variant.key(257, absent));
    let anchors = vec![ds(&there, DigestType::SHA256), ds(&absent, DigestType::SHA256)];
    let unused = VerifyWarning::AnchorUnused { tag: absent.tag(), algorithm: absent.algorithm() };
    Sound::from(variant.signed(RECORDS, vec![there])).against(anchors).warned(unused)
}

/// Validators do not detect the revocation, which causes a warning.
fn revoked_silently(variant: Variant) -> Sound {
    let revoked = variant.key(257 | REVOKE, 3);
    let bench = variant.signed(&with_keys(&[&revoked]), made(variant, &[(257, 1), (256, 2)]));
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

fn to_one_key(variant: Variant) -> Sound {
    let csk = variant.key(257, 3);
    let mut bench = variant.signed(&with_keys(&[&csk]), made(variant, &[(257, 1), (256, 2)]));
    signed_by_too(&mut bench, &csk, |_| true);
    bench.into()
}

fn ksk_signs_data(variant: Variant) -> Sound {
    let mut bench = variant.signed(RECORDS, made(variant, &[(257, 1), (256, 2)]));
    signed_by_too(&mut bench, &variant.key(257, 1), |rtype| rtype != Rtype::DNSKEY);
    bench.into()
}

fn zsk_signs_keys(variant: Variant) -> Sound {
    let mut bench = variant.signed(RECORDS, made(variant, &[(257, 1), (256, 2)]));
    bench.sign_by("example.", Rtype::DNSKEY, &variant.key(256, 2));
    bench.into()
}

fn zsk_alone_signs_keys(variant: Variant) -> Sound {
    let zsk = variant.key(256, 2);
    let mut bench = variant.signed(RECORDS, made(variant, &[(257, 1), (256, 2)]));
    bench.remove_signatures("example.", "DNSKEY");
    bench.sign_by("example.", Rtype::DNSKEY, &zsk);
    let silent = VerifyWarning::SepKeysNotSigning { tags: vec![variant.key(257, 1).tag()] };
    Sound::from(bench).against(vec![ds(&zsk, DigestType::SHA256)]).warned(silent)
}

/// A key of the new algorithm in an algorithm rollover.
fn other_key(variant: Variant) -> KeyPair {
    key("example.", 257, number_for(Algorithm::ECDSAP384SHA384, variant.mechanism), 3)
}

/// A zone with one key, and with spare signatures of another key that is not in the DNSKEY RRset.
fn spare_signatures_of(variant: Variant, own: KeyPair, spare_key: &KeyPair) -> Sound {
    let mut bench = variant.signed(RECORDS, vec![own]);
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

fn algorithm_signatures_first(variant: Variant) -> Sound {
    spare_signatures_of(variant, variant.key(257, 1), &other_key(variant))
}

fn algorithm_signatures_last(variant: Variant) -> Sound {
    spare_signatures_of(variant, other_key(variant), &variant.key(257, 1))
}

fn algorithm_both(variant: Variant) -> Sound {
    Sound::from(variant.signed(RECORDS, vec![variant.key(257, 1), other_key(variant)]))
        .against(vec![ds(&variant.key(257, 1), DigestType::SHA256)])
}

fn algorithm_ds_changed(variant: Variant) -> Sound {
    algorithm_both(variant).against(vec![ds(&other_key(variant), DigestType::SHA256)])
}

fn three_algorithms(variant: Variant) -> Sound {
    let is_first = variant.algorithm.without_alias() == Algorithm::ED25519;
    let third = if is_first { Algorithm::ECDSAP256SHA256 } else { Algorithm::ED25519 };
    let third = number_for(third, variant.mechanism);
    variant
        .signed(RECORDS, vec![variant.key(257, 1), other_key(variant), key("example.", 257, third, 2)])
        .into()
}

fn many_keys(variant: Variant) -> Sound {
    published(variant, &[(257, 1)], &[(257, 2), (256, 2), (257, 3), (256, 3)])
}

fn unknown_algorithm(variant: Variant) -> Sound {
    let bench = variant.signed(RECORDS, variant.csk());
    let rdata = [1, 0, 3, 5, 3, 1, 0, 1];
    let error = KeyError::UnknownAlgorithm(Algorithm(5));
    with_dnskey(bench, &rdata).warned(VerifyWarning::UnusableKey { tag: key_tag(&rdata), error })
}

fn short_key(variant: Variant) -> Sound {
    let bench = variant.signed(RECORDS, variant.csk());
    let algorithm = number_for(Algorithm::RSASHA256, variant.mechanism);
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

fn unfit(variant: Variant, head: [u8; 3], flags: u16) -> Sound {
    let mut rdata = variant.key(256, 3).dnskey_rdata();
    rdata[..3].copy_from_slice(&head);
    let tag = key_tag(&rdata);
    with_dnskey(variant.signed(RECORDS, variant.csk()), &rdata)
        .warned(VerifyWarning::NotAZoneKey { tag, flags })
}

/// Reserved flags are ignored: the key is usable.
fn reserved_flags(variant: Variant) -> Sound {
    keys(variant, &[(257 | 0xfe00, 1), (256 | 0x007e, 2)])
}

fn digest(variant: Variant, digest: DigestType) -> Sound {
    keys(variant, &[(257, 1), (256, 2)]).against(vec![ds(&variant.key(257, 1), digest)])
}

fn unknown_digest(variant: Variant) -> Sound {
    let key = variant.key(257, 1);
    let (tag, algorithm) = (key.tag(), key.algorithm());
    let unknown = Anchor::Ds([&tag.to_be_bytes()[..], &[algorithm.0, 99, 1, 2, 3]].concat());
    let sound = digest(variant, DigestType::SHA256).warned(VerifyWarning::AnchorUnused { tag, algorithm });
    let anchors = [vec![unknown], sound.anchors.clone()].concat();
    sound.against(anchors)
}

fn cds(variant: Variant, seed: u8) -> String {
    let key = variant.key(257, seed);
    let rdata = ds_rdata(key.owner.view(), &key.dnskey_rdata(), DigestType::SHA256).unwrap();
    format!("@ CDS {}", text_of(Rtype::CDS, &rdata))
}

fn cdnskey(variant: Variant, seed: u8) -> String {
    format!("@ CDNSKEY {}", text_of_key(&variant.key(257, seed)))
}

/// A zone with one key and with these CDS and CDNSKEY records.
fn told(variant: Variant, records: &[&str]) -> Sound {
    variant.signed(&format!("{}\n{RECORDS}", records.join("\n")), variant.csk()).into()
}

fn cds_and_cdnskey(variant: Variant) -> Sound {
    let options = SignOptions { publish_cds: true, ..variant.options() };
    variant.bench(&zone(RECORDS), made(variant, &[(257, 1), (257, 3), (256, 2)]), &options).into()
}

fn cds_with_two_digests(variant: Variant) -> Sound {
    let key = variant.key(257, 1);
    let other = ds_rdata(key.owner.view(), &key.dnskey_rdata(), DigestType::SHA384).unwrap();
    told(
        variant,
        &[&cds(variant, 1), &format!("@ CDS {}", text_of(Rtype::CDS, &other)), &cdnskey(variant, 1)],
    )
}

/// It is unknown whether that key signs.
fn cds_of_unknown_algorithm(variant: Variant) -> Sound {
    let rdata = [1, 1, 3, 5, 3, 1, 0, 1];
    let other = ds_rdata(name("example.").view(), &rdata, DigestType::SHA256).unwrap();
    let records = format!("@ CDS {}\n{}\n{RECORDS}", text_of(Rtype::CDS, &other), cds(variant, 1));
    let bench = variant.signed(&records, variant.csk());
    let error = KeyError::UnknownAlgorithm(Algorithm(5));
    with_dnskey(bench, &rdata).warned(VerifyWarning::UnusableKey { tag: key_tag(&rdata), error })
}
