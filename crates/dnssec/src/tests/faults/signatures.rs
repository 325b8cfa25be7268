//! Faults of signatures (RFC 4034 §3, RFC 4035 §2.2 and §5.3).

use super::*;
use crate::verify::UnsignedData;
use nonesuch_proto::NameRef;

pub(super) const ROWS: &[Row] = &[
    row("no signature", "RFC 4035 §2.2", Scope::Every, |bench| unsigned(bench, B, Rtype::A)),
    row("no signature: wildcard", "RFC 4035 §2.2", Scope::Every, |bench| {
        unsigned(bench, "*.w.example.", Rtype::A)
    }),
    row("no signature: SOA", "RFC 4035 §2.2", Scope::Every, |bench| unsigned(bench, "example.", Rtype::SOA)),
    row("no signature: DNSKEY", "RFC 4035 §2.2", Scope::Every, |bench| {
        unsigned(bench, "example.", Rtype::DNSKEY)
    }),
    row("no signature: DS", "RFC 4035 §2.4", Scope::Every, |bench| unsigned(bench, "s.example.", Rtype::DS)),
    row("no signature: alias", "RFC 4035 §2.5", Scope::Every, |bench| {
        unsigned(bench, "c.example.", Rtype::CNAME)
    }),
    row("no signature: chain", "RFC 4035 §2.3", Scope::Every, no_signature_of_chain),
    row("no signature: NSEC3PARAM", "RFC 5155 §7.1", Scope::Nsec3, |bench| {
        unsigned(bench, "example.", Rtype::NSEC3PARAM)
    }),
    row("record altered", "RFC 4035 §5.3.3", Scope::Every, record_altered),
    row("wildcard record altered", "RFC 4035 §5.3.3", Scope::Every, wildcard_altered),
    row("record added", "RFC 4034 §3.1.8.1", Scope::Every, record_added),
    row("record taken out", "RFC 4034 §3.1.8.1", Scope::Every, record_taken_out),
    row("signature altered", "RFC 4035 §5.3.3", Scope::Every, signature_altered),
    row("signature cut short", "RFC 4035 §5.3.3", Scope::Every, signature_cut_short),
    row("signature empty", "RFC 4035 §5.3.3", Scope::Every, signature_empty),
    row("signature of another owner", "RFC 4034 §3.1.8.1", Scope::Every, signature_of_another_owner),
    row("signature by another key", "RFC 4035 §5.3.3", Scope::Every, signature_by_another_key),
    row("bad next to good", "RFC 4035 §5.3.3", Scope::Every, bad_beside_good),
    row("expired", "RFC 4035 §5.3.1", Scope::Every, expired),
    row("expired: keys", "RFC 4035 §5.3.1", Scope::Every, expired_keys),
    row("not yet valid", "RFC 4035 §5.3.1", Scope::Every, early),
    row("validity empty", "RFC 4034 §3.1.5", Scope::Every, empty_period),
    row("wrong signer", "RFC 4035 §5.3.1", Scope::Every, |bench| {
        wrong_signer(bench, b"\x05other\0", "other.")
    }),
    row("wrong signer: parent", "RFC 4035 §5.3.1", Scope::Every, |bench| wrong_signer(bench, b"\0", ".")),
    row("wrong signer: below", "RFC 4035 §5.3.1", Scope::Every, |bench| {
        wrong_signer(bench, b"\x01b\x07example\0", "b.example.")
    }),
    row("too few labels", "RFC 4034 §3.1.3", Scope::Every, |bench| {
        wrong_labels(bench, "x.ent.example.", 3, 2)
    }),
    row("too many labels", "RFC 4034 §3.1.3", Scope::Every, |bench| {
        wrong_labels(bench, "x.ent.example.", 3, 4)
    }),
    row("asterisk counted", "RFC 4034 §3.1.3", Scope::Every, |bench| {
        wrong_labels(bench, "*.w.example.", 2, 3)
    }),
    row("original TTL too high", "RFC 4034 §3.1.4", Scope::Every, original_ttl_too_high),
    row("original TTL too low", "RFC 4035 §5.3.1", Scope::Every, original_ttl_too_low),
    row("TTL raised", "RFC 4035 §5.3.1", Scope::Every, ttl_raised),
    row("signature TTL", "RFC 4034 §3", Scope::Every, signature_ttl),
    row("signatures of different TTLs", "RFC 4034 §3", Scope::Every, signatures_of_different_ttls),
    row("records of different TTLs", "RFC 2181 §5.2", Scope::Every, records_of_different_ttls),
    row("glue of different TTLs", "RFC 2181 §5.2", Scope::Every, glue_of_different_ttls),
    row("no NS at the apex", "RFC 2181 §6.1", Scope::Every, no_name_servers),
    row("unknown key", "RFC 4035 §5.3.1", Scope::Every, unknown_key),
    row("wrong algorithm", "RFC 4035 §5.3.1", Scope::Every, wrong_algorithm),
    row("malformed signature", "RFC 4034 §3.1", Scope::Every, malformed),
    row("algorithm missing", "RFC 4035 §2.2", Scope::Every, algorithm_missing),
    row("glue signed", "RFC 4035 §2.2", Scope::Every, |bench| {
        unexpected(bench, "ns.d.example.", Rtype::A, UnsignedData::BelowCut)
    }),
    row("glue at the cut signed", "RFC 4035 §2.2", Scope::Every, |bench| {
        unexpected(bench, "g.example.", Rtype::A, UnsignedData::Delegation)
    }),
    row("delegation signed", "RFC 4035 §2.2", Scope::Every, |bench| {
        unexpected(bench, "d.example.", Rtype::NS, UnsignedData::Delegation)
    }),
    row("secure delegation signed", "RFC 4035 §2.2", Scope::Every, |bench| {
        unexpected(bench, "s.example.", Rtype::NS, UnsignedData::Delegation)
    }),
    row("occluded data signed", "RFC 6672 §2.4", Scope::Every, |bench| {
        unexpected(bench, "o.n.example.", Rtype::TXT, UnsignedData::BelowDname)
    }),
    row("signature over nothing", "RFC 4035 §2.2", Scope::Every, signature_over_nothing),
    row("signature signed", "RFC 4035 §2.2", Scope::Every, signature_signed),
];

#[test]
fn faults_of_signatures() {
    plant_all(ROWS);
}

const B: &str = "b.example.";

fn unsigned(bench: &mut Bench, owner: &str, rtype: Rtype) -> Found {
    bench.remove_signatures(owner, &rtype.to_string());
    found(owner, Some(rtype), FaultReason::NoSignature)
}

fn no_signature_of_chain(bench: &mut Bench) -> Found {
    let (owner, rtype) = (bench.chain_owner(B), bench.chain_type());
    unsigned(bench, &owner, rtype)
}

fn bad(bench: &Bench) -> FaultReason {
    let (tag, algorithm) = key_of(bench);
    FaultReason::BadSignature { tag, algorithm }
}

fn record_altered(bench: &mut Bench) -> Found {
    bench.edit(B, "A", |_| "192.0.2.2".to_owned());
    found(B, A, bad(bench))
}

fn wildcard_altered(bench: &mut Bench) -> Found {
    bench.edit("*.w.example.", "A", |_| "192.0.2.2".to_owned());
    found("*.w.example.", A, bad(bench))
}

fn record_added(bench: &mut Bench) -> Found {
    bench.add("b.example. 3600 IN A 192.0.2.77");
    found(B, A, bad(bench))
}

fn record_taken_out(bench: &mut Bench) -> Found {
    bench.add("b.example. 3600 IN A 192.0.2.77");
    bench.sign_again(B, Rtype::A, untouched);
    bench.lines.retain(|line| !line.ends_with("\t192.0.2.77"));
    found(B, A, bad(bench))
}

/// The zone with changed octets in the RRSIG records over A at `b`.
fn with_signature(bench: &Bench, change: impl Fn(&mut Vec<u8>)) -> Contents {
    rewrite(&bench.contents(), |node, rtype, covered, rdata| {
        if node.name() == name(B).view() && (rtype, covered) == (Rtype::RRSIG, Rtype::A) {
            change(rdata);
        }
    })
}

/// Number of octets of the RDATA before the signature, for the signer `example.`.
const FIELDS: usize = 18 + 9;

fn signature_altered(bench: &mut Bench) -> Found {
    let contents = with_signature(bench, |rdata| rdata[FIELDS + 20] ^= 4);
    found(B, A, bad(bench)).within(contents)
}

fn signature_cut_short(bench: &mut Bench) -> Found {
    let contents = with_signature(bench, |rdata| rdata.truncate(FIELDS + 20));
    found(B, A, bad(bench)).within(contents)
}

fn signature_empty(bench: &mut Bench) -> Found {
    let contents = with_signature(bench, |rdata| rdata.truncate(FIELDS));
    found(B, A, bad(bench)).within(contents)
}

fn malformed(bench: &mut Bench) -> Found {
    let contents = with_signature(bench, |rdata| rdata.truncate(17));
    found(B, A, FaultReason::MalformedRecord).within(contents)
}

fn signature_of_another_owner(bench: &mut Bench) -> Found {
    bench.remove_signatures(B, "A");
    let line = bench.lines.iter().find(|line| Bench::is_signature(line, "a.example.", "A")).unwrap();
    let moved = line.replacen("a.example.", B, 1);
    bench.lines.push(moved);
    found(B, A, bad(bench))
}

fn signature_by_another_key(bench: &mut Bench) -> Found {
    let (tag, algorithm) = key_of(bench);
    let other = key("example.", 257, algorithm, 3);
    bench.remove_signatures(B, "A");
    let contents = bench.contents();
    bench.sign_with(&contents, B, Rtype::A, &other, |fields| fields.tag = tag);
    found(B, A, bad(bench))
}

fn bad_beside_good(bench: &mut Bench) -> Found {
    bench.sign_more(B, Rtype::A, |fields| fields.expiration = EXPIRATION - 1);
    let line = bench.lines.pop().unwrap();
    // The same signature with another expiration.
    let (earlier, later) = (timestamp_of(EXPIRATION - 1), timestamp_of(EXPIRATION - 2));
    bench.lines.push(line.replacen(&earlier, &later, 1));
    found(B, A, bad(bench))
}

fn timestamp_of(time: u32) -> String {
    let mut text = Vec::new();
    nonesuch_proto::timestamp::push(time, &mut text);
    String::from_utf8(text).unwrap()
}

fn expired(bench: &mut Bench) -> Found {
    let (tag, _) = key_of(bench);
    bench.sign_again(B, Rtype::A, |fields| fields.expiration = NOW - 1);
    found(B, A, FaultReason::Expired { tag, expiration: NOW - 1 })
}

fn expired_keys(bench: &mut Bench) -> Found {
    let (tag, _) = key_of(bench);
    bench.sign_again("example.", Rtype::DNSKEY, |fields| fields.expiration = NOW - 1);
    found("example.", DNSKEY, FaultReason::Expired { tag, expiration: NOW - 1 })
}

fn early(bench: &mut Bench) -> Found {
    let (tag, _) = key_of(bench);
    bench.sign_again(B, Rtype::A, |fields| fields.inception = NOW + 1);
    found(B, A, FaultReason::NotYetValid { tag, inception: NOW + 1 })
}

fn empty_period(bench: &mut Bench) -> Found {
    let (tag, _) = key_of(bench);
    bench.sign_again(B, Rtype::A, |fields| fields.inception = EXPIRATION + 1);
    found(B, A, FaultReason::EmptyPeriod { tag })
}

/// The signature is correct, but its signer is another zone.
fn wrong_signer(bench: &mut Bench, wire: &'static [u8], signer: &str) -> Found {
    let (tag, _) = key_of(bench);
    bench.sign_again(B, Rtype::A, |fields| fields.signer = NameRef::from_wire_unchecked(wire));
    found(B, A, FaultReason::WrongSigner { tag, signer: name(signer) })
}

fn wrong_labels(bench: &mut Bench, owner: &str, expected: u8, wrong: u8) -> Found {
    let (tag, _) = key_of(bench);
    bench.sign_again(owner, Rtype::A, |fields| fields.labels = wrong);
    found(owner, A, FaultReason::WrongLabels { tag, expected, found: wrong })
}

fn original_ttl_too_high(bench: &mut Bench) -> Found {
    let (tag, _) = key_of(bench);
    bench.sign_again(B, Rtype::A, |fields| fields.original_ttl = 3601);
    found(B, A, FaultReason::TtlBelowOriginal { tag, original: 3601, ttl: 3600 })
}

fn original_ttl_too_low(bench: &mut Bench) -> Found {
    let (tag, _) = key_of(bench);
    bench.sign_again(B, Rtype::A, |fields| fields.original_ttl = 3599);
    found(B, A, FaultReason::TtlAboveOriginal { tag, original: 3599, ttl: 3600 })
}

/// The TTL of the RRset and its signatures differs from the TTL at signing.
fn ttl_raised(bench: &mut Bench) -> Found {
    let (tag, _) = key_of(bench);
    let ours = |line: &String| Bench::is(line, B, "A") || Bench::is_signature(line, B, "A");
    for line in bench.lines.iter_mut().filter(|line| ours(line)) {
        *line = line.replacen("\t3600\t", "\t7200\t", 1);
    }
    found(B, A, FaultReason::TtlAboveOriginal { tag, original: 3600, ttl: 7200 })
}

fn signature_ttl(bench: &mut Bench) -> Found {
    for line in bench.lines.iter_mut().filter(|line| Bench::is_signature(line, B, "A")) {
        *line = line.replacen("\t3600\t", "\t60\t", 1);
    }
    found(B, A, FaultReason::WrongSignatureTtl { expected: 3600, found: 60 })
}

/// The lowest TTL, which is used, is that of the RRset.
fn signatures_of_different_ttls(bench: &mut Bench) -> Found {
    bench.sign_more(B, Rtype::A, |fields| fields.inception -= 1);
    let more = bench.lines.last_mut().unwrap();
    *more = more.replacen("\t3600\t", "\t7200\t", 1);
    found(B, A, FaultReason::MixedSignatureTtls)
}

fn records_of_different_ttls(bench: &mut Bench) -> Found {
    bench.add("b.example. 7200 IN A 192.0.2.77");
    bench.sign_again(B, Rtype::A, untouched);
    found(B, A, FaultReason::MixedTtls)
}

fn glue_of_different_ttls(bench: &mut Bench) -> Found {
    bench.add("d.example. 7200 IN NS ns.elsewhere.test.");
    bench.add("ns.d.example. 7200 IN A 192.0.2.77");
    let servers = found("d.example.", Some(Rtype::NS), FaultReason::MixedTtls);
    servers.and("ns.d.example.", A, FaultReason::MixedTtls)
}

fn no_name_servers(bench: &mut Bench) -> Found {
    bench.remove("example.", "NS");
    bench.remove_signatures("example.", "NS");
    bench.edit_chain("example.", |rdata| rdata.replacen(" NS ", " ", 1));
    found("example.", Some(Rtype::NS), FaultReason::NoNs)
}

fn unknown_key(bench: &mut Bench) -> Found {
    let (tag, algorithm) = key_of(bench);
    bench.sign_again(B, Rtype::A, |fields| fields.tag ^= 1);
    found(B, A, FaultReason::UnknownKey { tag: tag ^ 1, algorithm })
}

/// The tag is that of the key, and the algorithm is not.
fn wrong_algorithm(bench: &mut Bench) -> Found {
    let (tag, algorithm) = key_of(bench);
    let other = bench.other_algorithm();
    bench.sign_again(B, Rtype::A, |fields| fields.algorithm = other);
    found(B, A, FaultReason::UnknownKey { tag, algorithm: other }).and(
        B,
        A,
        FaultReason::MissingAlgorithm { algorithm },
    )
}

fn algorithm_missing(bench: &mut Bench) -> Found {
    let (_, algorithm) = key_of(bench);
    let second = bench.other_algorithm();
    let keys = vec![key("example.", 257, algorithm, 1), key("example.", 257, second, 3)];
    *bench = Bench::new(&zone(RECORDS), KeySet::new(&name("example."), keys).unwrap(), bench.mechanism);
    bench
        .lines
        .retain(|line| !(Bench::is_signature(line, B, "A") && line.contains(&format!("\tA {} ", second.0))));
    found(B, A, FaultReason::MissingAlgorithm { algorithm: second })
}

fn unexpected(bench: &mut Bench, owner: &str, rtype: Rtype, data: UnsignedData) -> Found {
    bench.sign_more(owner, rtype, untouched);
    found(owner, Some(rtype), FaultReason::UnexpectedSignature(data))
}

fn signature_over_nothing(bench: &mut Bench) -> Found {
    let line = bench.lines.iter().find(|line| Bench::is_signature(line, B, "A")).unwrap();
    let line = line.replace("\tA ", "\tMX ");
    bench.lines.push(line);
    found(B, Some(Rtype::MX), FaultReason::UnexpectedSignature(UnsignedData::Missing))
}

fn signature_signed(bench: &mut Bench) -> Found {
    bench.sign_more(B, Rtype::RRSIG, untouched);
    found(B, Some(Rtype::RRSIG), FaultReason::UnexpectedSignature(UnsignedData::Signatures))
}

/// An unsigned zone with different TTLs causes a warning and is served with the lowest TTL of each
/// RRset. If the zone has a digest, the digest is verified.
#[test]
fn an_unsigned_zone_has_no_faults_but_those_of_its_digest() {
    let options = VerifyOptions::default();
    let text = "$ORIGIN example.\n$TTL 60\n@ SOA ns h 1 2 3 4 5\nm 30 A 192.0.2.1\nm 60 A 192.0.2.2\n";
    let contents = |text: &str| read_zone(text, &name("example."));
    assert!(crate::verify::into_verified(contents(text), &options).is_ok());
    // An unknown hash algorithm.
    let with_digest = contents(&format!("{text}@ ZONEMD 1 1 241 000102030405060708090A0B\n"));
    let fault = |owner: &str, rtype, reason| Fault { owner: name(owner), rtype: Some(rtype), reason };
    let faults = [
        fault("example.", Rtype::NS, FaultReason::NoNs),
        fault("m.example.", Rtype::A, FaultReason::MixedTtls),
    ];
    assert_eq!(verify(&with_digest, &options).faults, faults);
}
