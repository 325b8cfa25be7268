//! Faults of NSEC5: its chain, its keys, misplaced records, and algorithm numbers that resolvers
//! without NSEC5 know.

use super::*;
use crate::denial::nsec5::chain::label;
use crate::keys::Nsec5Key;
use crate::tests::nsec5::{hash, twin_of, vrf, vrf_of};
use data_encoding::{BASE32HEX_NOPAD, BASE64};
use nonesuch_crypto::vrf::VrfAlgorithm;

pub(super) const NSEC5: Option<Rtype> = Some(Rtype::NSEC5);
const NSEC5KEY: Option<Rtype> = Some(Rtype::NSEC5KEY);
const APEX: &str = "example.";
const B: &str = "b.example.";
/// The section about signing zones has most of the rules.
const SIGNING: &str = "draft-vcelak-nsec5-07 §9.1";
const RECORD: &str = "draft-vcelak-nsec5-07 §6";
const KEY: &str = "draft-vcelak-nsec5-07 §5";

pub(super) const ROWS: &[Row] = &[
    row("name left out of the NSEC5 chain", SIGNING, Scope::Nsec5, |bench| left_out(bench, B)),
    row("empty non-terminal left out of the NSEC5 chain", SIGNING, Scope::Nsec5, |bench| {
        left_out(bench, "ent.example.")
    }),
    row("wildcard left out of the NSEC5 chain", SIGNING, Scope::Nsec5, |bench| {
        left_out(bench, "*.w.example.")
    }),
    row("secure delegation left out of the NSEC5 chain", SIGNING, Scope::Nsec5, |bench| {
        left_out(bench, "s.example.")
    }),
    row("empty non-terminal of an insecure delegation left out of NSEC5", SIGNING, Scope::Nsec5, |bench| {
        left_out(bench, "un.example.")
    }),
    row("insecure delegation left out of NSEC5 without opt-out", SIGNING, Scope::Nsec5Complete, |bench| {
        left_out(bench, "d.example.")
    }),
    row("NSEC5 record missing", SIGNING, Scope::Nsec5, record_missing),
    row("NSEC5 link broken", RECORD, Scope::Nsec5, link_broken),
    row("NSEC5 record of no name", SIGNING, Scope::Nsec5, |bench| record_too_much(bench, "nope.example.")),
    row("NSEC5 record of an occluded name", SIGNING, Scope::Nsec5, |bench| {
        record_too_much(bench, "o.n.example.")
    }),
    row("NSEC5 records twice", SIGNING, Scope::Nsec5, records_twice),
    row("NSEC5 record cut short", RECORD, Scope::Nsec5, |bench| {
        damaged_record(bench, FaultReason::MalformedRecord, |rdata| rdata.truncate(20))
    }),
    row("NSEC5 hash of another length", RECORD, Scope::Nsec5, |bench| {
        damaged_record(bench, FaultReason::Nsec5NextLength(31), |rdata| {
            rdata[3] = 31;
            rdata.remove(4);
        })
    }),
    row("NSEC5 flags unknown", RECORD, Scope::Nsec5, |bench| {
        let flags = 4 | u8::from(bench.mechanism.is_opt_out());
        damaged_record(bench, FaultReason::UnknownNsec5Flags(flags), |rdata| rdata[2] |= 4)
    }),
    row("wildcard flag clear", RECORD, Scope::Nsec5, |bench| {
        let name = name("w.example.");
        flag_changed(bench, "w.example.", 2, FaultReason::WildcardFlagClear { name })
    }),
    row("wildcard flag clear over a wildcard without data", RECORD, Scope::Nsec5, |bench| {
        bench.sign_anew(&zone(&format!("{RECORDS}\na.*.wild TXT \"t\"")));
        let name = name("wild.example.");
        flag_changed(bench, "wild.example.", 2, FaultReason::WildcardFlagClear { name })
    }),
    row("wildcard flag set", RECORD, Scope::Nsec5, |bench| {
        flag_changed(bench, B, 2, FaultReason::WildcardFlagSet { name: name(B) })
    }),
    row("opt-out flag set on one record", RECORD, Scope::Nsec5Complete, |bench| {
        flag_changed(bench, B, 1, FaultReason::MixedOptOut)
    }),
    row("opt-out flag clear on one record", RECORD, Scope::Nsec5OptOut, opt_out_clear_on_one),
    row("NSEC5 bit map shows NSEC5", RECORD, Scope::Nsec5, |bench| shows(bench, B, Rtype::NSEC5)),
    row("NSEC5 bit map shows NSEC3", RECORD, Scope::Nsec5, |bench| shows(bench, B, Rtype::NSEC3)),
    row("NSEC5 bit map of an insecure delegation shows RRSIG", RECORD, Scope::Nsec5Complete, |bench| {
        shows(bench, "d.example.", Rtype::RRSIG)
    }),
    row("NSEC5 bit map shows glue", RECORD, Scope::Nsec5Complete, |bench| {
        shows(bench, "g.example.", Rtype::A)
    }),
    row("NSEC5 bit map of an empty non-terminal shows a type", RECORD, Scope::Nsec5, |bench| {
        shows(bench, "ent.example.", Rtype::TXT)
    }),
    row("NSEC5 bit map of the apex lacks NSEC5KEY", RECORD, Scope::Nsec5, |bench| {
        let at = without_key_in_bitmap(bench);
        found(&at, NSEC5, FaultReason::BitmapMissing(Rtype::NSEC5KEY))
    }),
    row("NSEC5 record of an unknown key", SIGNING, Scope::Nsec5, |bench| {
        let tag = tag() ^ 1;
        of_key(bench, tag, FaultReason::UnknownNsec5Key { tag })
    }),
    row("NSEC5 record of another key of the zone", SIGNING, Scope::Nsec5, |bench| {
        let other = Nsec5Key::of(&vrf_of(VrfAlgorithm::P256_SHA256_TAI, 5));
        add_key(bench, other.rdata());
        of_key(bench, other.tag(), FaultReason::OtherNsec5Key { tag: other.tag(), chain: tag() })
    }),
    row("no signature: NSEC5KEY", KEY, Scope::Nsec5, |bench| {
        bench.remove_signatures(APEX, "NSEC5KEY");
        found(APEX, NSEC5KEY, FaultReason::NoSignature)
    }),
    row("two NSEC5 keys of one tag", "draft-vcelak-nsec5-07 §9.3", Scope::Nsec5, two_keys_of_one_tag),
    row("no NSEC5KEY", KEY, Scope::Nsec5, no_key),
    row("NSEC5KEY that is no key", KEY, Scope::Nsec5, no_point),
    row("NSEC5KEY of an unknown algorithm alone", "draft-vcelak-nsec5-07 §11.3", Scope::Nsec5, unknown_vrf),
    row("DNSKEY with a known number", "draft-vcelak-nsec5-07 §2", Scope::Nsec5, plain_dnskey),
    row("signature with a known number", "draft-vcelak-nsec5-07 §2", Scope::Nsec5, plain_signature),
    row("CDS with a known number", "draft-vcelak-nsec5-07 §2", Scope::Nsec5, plain_cds),
    row("NSEC next to NSEC5", SIGNING, Scope::Nsec5, |bench| {
        beside(bench, B, Rtype::NSEC, "c.example. A TXT RRSIG NSEC")
    }),
    row("NSEC3 next to NSEC5", SIGNING, Scope::Nsec5, |bench| {
        let at = hashed(B);
        beside(bench, &at, Rtype::NSEC3, "1 0 0 - 00000000000000000000000000000000 A TXT RRSIG")
    }),
    row("NSEC3PARAM next to NSEC5", SIGNING, Scope::Nsec5, |bench| {
        bench.edit_chain(APEX, |rdata| format!("{rdata} NSEC3PARAM"));
        beside(bench, APEX, Rtype::NSEC3PARAM, "1 0 0 -")
    }),
    row("NSEC5 next to another mechanism", SIGNING, Scope::NotNsec5, |bench| {
        let at = crate::tests::nsec5::hashed(B);
        let next = BASE32HEX_NOPAD.encode(&hash(APEX));
        beside(bench, &at, Rtype::NSEC5, &format!("{} 0 {next} A TXT RRSIG", tag()))
    }),
    row("NSEC5 record at no hash", RECORD, Scope::Nsec5, |bench| {
        let next = BASE32HEX_NOPAD.encode(&hash(APEX));
        misplaced(bench, Rtype::NSEC5, &format!("{} 0 {next} A TXT RRSIG", tag()), FaultReason::ChainExtra)
    }),
    row("NSEC5KEY away from the apex", KEY, Scope::Nsec5, |bench| {
        let text = key_text(Nsec5Key::of(&vrf()).rdata());
        misplaced(bench, Rtype::NSEC5KEY, &text, FaultReason::UnexpectedRecords)
    }),
    row("NSEC5PROOF in the zone", "draft-vcelak-nsec5-07 §7", Scope::Nsec5, |bench| {
        let text = format!("{} {}", tag(), BASE64.encode(&[1; 80]));
        misplaced(bench, Rtype::NSEC5PROOF, &text, FaultReason::UnexpectedRecords)
    }),
];

#[test]
fn faults_of_nsec5() {
    plant_all(ROWS);
}

/// Without stored proofs, the report has the numbers of records in the chain and names in the zone.
#[test]
fn numbers_of_records_are_told() {
    let algorithm = number_for(Algorithm::ED25519, Mechanism::Nsec5);
    let mut bench = control(algorithm, Mechanism::Nsec5);
    let names = hashed_owners(&bench).len() as u64;
    take_out(&mut bench, B);
    let reason = FaultReason::ChainCount { records: names - 1, min_names: names, max_names: names };
    assert_eq!(report(&bench.contents()).faults, found(APEX, NSEC5, reason).faults);
    // If an insecure delegation replaces a secure one, the total number is correct, and the numbers
    // of the kinds are not.
    let mut bench = control(algorithm, Mechanism::Nsec5OptOut);
    take_out(&mut bench, "s.example.");
    record_too_much(&mut bench, "d.example.");
    let kind = |types: &[Rtype], records, names| FaultReason::ChainKindCount {
        types: types.to_vec(),
        wildcard: false,
        records,
        min_names: names,
        max_names: names,
    };
    let expected = found(APEX, NSEC5, kind(&[Rtype::NS, Rtype::DS, Rtype::RRSIG], 0, 1)).and(
        APEX,
        NSEC5,
        kind(&[Rtype::A, Rtype::TXT, Rtype::RRSIG], 2, 1),
    );
    let mut faults = report(&bench.contents()).faults;
    faults.sort_by_key(|fault| matches!(fault.reason, FaultReason::ChainKindCount { records: 2, .. }));
    assert_eq!(faults, expected.faults);
}

/// Tag of the key of the chain.
fn tag() -> u16 {
    Nsec5Key::of(&vrf()).tag()
}

/// Fields of the record at `hashed`: tag, flags, next hash, types.
fn fields(bench: &Bench, hashed: &str) -> Vec<String> {
    let line = bench.lines.iter().find(|line| Bench::is(line, hashed, "NSEC5")).unwrap();
    Bench::fields(line)[4].splitn(4, ' ').map(str::to_owned).collect()
}

fn edit_at(bench: &mut Bench, hashed: &str, change: impl Fn(&str) -> String) {
    bench.edit(hashed, "NSEC5", change);
    bench.sign_again(hashed, Rtype::NSEC5, untouched);
}

fn set_next(bench: &mut Bench, hashed: &str, next: &str) {
    let old = fields(bench, hashed)[2].clone();
    edit_at(bench, hashed, |rdata| rdata.replacen(&old, next, 1));
}

fn hashed_owners(bench: &Bench) -> Vec<String> {
    let contents = bench.contents();
    let nodes = contents.nodes().filter(|node| node.has(Rtype::NSEC5));
    nodes.map(|node| node.name().to_string()).collect()
}

/// Owner of the record that precedes the hash in `hashed`.
fn before(bench: &Bench, hashed: &str) -> String {
    let owners = hashed_owners(bench);
    owners.iter().rfind(|owner| owner.as_str() < hashed).or_else(|| owners.last()).unwrap().clone()
}

fn missing(bench: &Bench, owner: &str, hashed: &str) -> Found {
    let hashed = name(hashed);
    let reason = match bench.mechanism.is_opt_out() {
        true => FaultReason::OptOutOverSecure { hashed },
        false => FaultReason::Nsec5Missing { hashed },
    };
    found(owner, NSEC5, reason)
}

/// Removes the record of `owner` from the chain and closes the gap.
pub(super) fn take_out(bench: &mut Bench, owner: &str) {
    let hashed = bench.chain_owner(owner);
    let (before, next) = (before(bench, &hashed), fields(bench, &hashed)[2].clone());
    bench.lines.retain(|line| name(Bench::fields(line)[0]) != name(&hashed));
    set_next(bench, &before, &next);
}

fn left_out(bench: &mut Bench, owner: &str) -> Found {
    take_out(bench, owner);
    missing(bench, owner, &bench.chain_owner(owner))
}

fn owner_of(hash: &[u8; 32]) -> String {
    format!("{}.example.", String::from_utf8_lossy(&label(hash)))
}

fn record_missing(bench: &mut Bench) -> Found {
    let hashed = bench.chain_owner(B);
    let (before, next) = (before(bench, &hashed), fields(bench, &hashed)[2].to_lowercase());
    bench.lines.retain(|line| name(Bench::fields(line)[0]) != name(&hashed));
    let broken =
        FaultReason::ChainBroken { expected: name(&format!("{next}.example.")), found: name(&hashed) };
    missing(bench, B, &hashed).and(&before, NSEC5, broken)
}

fn link_broken(bench: &mut Bench) -> Found {
    let hashed = bench.chain_owner(B);
    let expected = format!("{}.example.", fields(bench, &hashed)[2].to_lowercase());
    set_next(bench, &hashed, &BASE32HEX_NOPAD.encode(&[7; 32]));
    found(
        &hashed,
        NSEC5,
        FaultReason::ChainBroken { expected: name(&expected), found: name(&owner_of(&[7; 32])) },
    )
}

/// Adds a record for `owner` to the chain, with the flags and types of the record of `b`.
fn record_too_much(bench: &mut Bench, owner: &str) -> Found {
    let hashed = bench.chain_owner(owner);
    let before = before(bench, &hashed);
    let (like, next) = (fields(bench, &bench.chain_owner(B)), fields(bench, &before)[2].clone());
    bench.add(&format!("{hashed} 900 IN NSEC5 {} {} {next} {}", like[0], like[1], like[3]));
    bench.sign_more(&hashed, Rtype::NSEC5, untouched);
    set_next(bench, &before, hashed.split('.').next().unwrap());
    found(&hashed, NSEC5, FaultReason::ChainExtra)
}

fn records_twice(bench: &mut Bench) -> Found {
    let hashed = bench.chain_owner(B);
    let second = fields(bench, &hashed).join(" ").replace(" A TXT", " A MX TXT");
    bench.add(&format!("{hashed} 900 IN NSEC5 {second}"));
    bench.sign_again(&hashed, Rtype::NSEC5, untouched);
    found(&hashed, NSEC5, FaultReason::MultipleRecords)
}

fn damaged_record(bench: &mut Bench, reason: FaultReason, change: impl Fn(&mut Vec<u8>)) -> Found {
    let at = bench.chain_owner(B);
    let contents = damaged(bench, &at, Rtype::NSEC5, change);
    found(&at, NSEC5, reason).within(contents)
}

fn change_flag(bench: &mut Bench, hashed: &str, flag: u8) {
    let mut fields = fields(bench, hashed);
    fields[1] = (fields[1].parse::<u8>().unwrap() ^ flag).to_string();
    edit_at(bench, hashed, |_| fields.join(" "));
}

fn flag_changed(bench: &mut Bench, owner: &str, flag: u8, reason: FaultReason) -> Found {
    let at = bench.chain_owner(owner);
    change_flag(bench, &at, flag);
    found(&at, NSEC5, reason)
}

/// Not on a record that covers an insecure delegation: its missing record would be another fault.
fn opt_out_clear_on_one(bench: &mut Bench) -> Found {
    let insecure = ["d.example.", "g.example.", "i.un.example."];
    let covering = insecure.map(|owner| before(bench, &bench.chain_owner(owner)));
    let at = hashed_owners(bench).into_iter().find(|owner| !covering.contains(owner)).unwrap();
    change_flag(bench, &at, 1);
    found(&at, NSEC5, FaultReason::MixedOptOut)
}

fn shows(bench: &mut Bench, owner: &str, rtype: Rtype) -> Found {
    let at = bench.edit_chain(owner, |rdata| format!("{rdata} {rtype}"));
    found(&at, NSEC5, FaultReason::BitmapExtra(rtype))
}

fn without_key_in_bitmap(bench: &mut Bench) -> String {
    bench.edit_chain(APEX, |rdata| {
        let words = rdata.split(' ').filter(|word| !is_type(word, "NSEC5KEY"));
        words.collect::<Vec<_>>().join(" ")
    })
}

fn of_key(bench: &mut Bench, tag: u16, reason: FaultReason) -> Found {
    let at = bench.edit_chain(B, |rdata| format!("{tag} {}", rdata.split_once(' ').unwrap().1));
    found(&at, NSEC5, reason)
}

/// NSEC5KEY RDATA in presentation form.
fn key_text(rdata: &[u8]) -> String {
    format!("{} {}", rdata[0], BASE64.encode(&rdata[1..]))
}

fn add_key(bench: &mut Bench, rdata: &[u8]) {
    bench.add(&format!("example. 3600 IN NSEC5KEY {}", key_text(rdata)));
    bench.sign_again(APEX, Rtype::NSEC5KEY, untouched);
}

fn set_key(bench: &mut Bench, rdata: &[u8]) {
    bench.edit(APEX, "NSEC5KEY", |_| key_text(rdata));
    bench.sign_again(APEX, Rtype::NSEC5KEY, untouched);
}

fn unusable(tag: u16) -> VerifyWarning {
    VerifyWarning::UnusableNsec5Key { tag, algorithm: VrfAlgorithm(99) }
}

fn two_keys_of_one_tag(bench: &mut Bench) -> Found {
    let tag = tag();
    add_key(bench, &twin_of(tag));
    found(APEX, NSEC5KEY, FaultReason::SameNsec5Tag { tag }).warned(unusable(tag))
}

fn no_key(bench: &mut Bench) -> Found {
    bench.remove(APEX, "NSEC5KEY");
    bench.remove_signatures(APEX, "NSEC5KEY");
    without_key_in_bitmap(bench);
    found(APEX, NSEC5KEY, FaultReason::NoNsec5Key).warned(VerifyWarning::NamesNotMatched)
}

/// y = 2 is not the coordinate of a point of the curve.
fn no_point(bench: &mut Bench) -> Found {
    let mut rdata = vec![3, 2];
    rdata.resize(33, 0);
    set_key(bench, &rdata);
    let key = Nsec5Key::from_rdata(&rdata).unwrap();
    let error = key.public_key().unwrap_err();
    found(APEX, NSEC5KEY, FaultReason::MalformedNsec5Key { tag: key.tag(), error })
        .warned(VerifyWarning::NamesNotMatched)
}

fn unknown_vrf(bench: &mut Bench) -> Found {
    let rdata = [99, 1, 2, 3];
    set_key(bench, &rdata);
    let tag = Nsec5Key::from_rdata(&rdata).unwrap().tag();
    found(APEX, NSEC5KEY, FaultReason::NoUsableNsec5Key)
        .warned(unusable(tag))
        .warned(VerifyWarning::NamesNotMatched)
}

/// The key is not a zone key and signs nothing, but its algorithm number is in the zone.
fn plain_dnskey(bench: &mut Bench) -> Found {
    let algorithm = key_of(bench).1.without_alias();
    let public = [9; 32];
    bench.add(&format!("example. 3600 IN DNSKEY 0 3 {} {}", algorithm.0, BASE64.encode(&public)));
    bench.sign_again(APEX, Rtype::DNSKEY, untouched);
    let tag = nonesuch_crypto::key_tag(&[&[0, 0, 3, algorithm.0][..], &public].concat());
    found(APEX, DNSKEY, FaultReason::NotAliasAlgorithm { algorithm, count: 1 })
        .warned(VerifyWarning::NotAZoneKey { tag, flags: 0 })
}

/// Signatures by unknown keys are otherwise only warnings.
fn plain_signature(bench: &mut Bench) -> Found {
    let (tag, alias) = key_of(bench);
    let algorithm = alias.without_alias();
    let mut expected =
        found("a.example.", Some(Rtype::RRSIG), FaultReason::NotAliasAlgorithm { algorithm, count: 2 });
    for owner in ["a.example.", B] {
        bench.sign_more(owner, Rtype::A, |fields| fields.algorithm = algorithm);
        let reason = FaultReason::UnknownKey { tag, algorithm };
        let owner = name(owner);
        expected = expected.warned(VerifyWarning::SurplusSignature { owner, rtype: Rtype::A, reason });
    }
    expected
}

fn plain_cds(bench: &mut Bench) -> Found {
    let algorithm = key_of(bench).1.without_alias();
    bench.add(&format!("example. 3600 IN CDS 1 {} 2 {}", algorithm.0, "00".repeat(32)));
    bench.sign_again(APEX, Rtype::CDS, untouched);
    bench.edit_chain(APEX, |rdata| format!("{rdata} CDS"));
    let rtype = Some(Rtype::CDS);
    found(APEX, rtype, FaultReason::CdsBreaksDelegation).and(
        APEX,
        rtype,
        FaultReason::NotAliasAlgorithm { algorithm, count: 1 },
    )
}

/// A record of another mechanism.
fn beside(bench: &mut Bench, owner: &str, rtype: Rtype, rdata: &str) -> Found {
    bench.add(&format!("{owner} 900 IN {rtype} {rdata}"));
    bench.sign_more(owner, rtype, untouched);
    found(owner, Some(rtype), FaultReason::MixedDenial)
}

/// A record at `b` that is signed and in the chain like any other record.
fn misplaced(bench: &mut Bench, rtype: Rtype, rdata: &str, reason: FaultReason) -> Found {
    bench.add(&format!("{B} 900 IN {rtype} {rdata}"));
    bench.sign_more(B, rtype, untouched);
    bench.edit_chain(B, |rdata| format!("{rdata} {rtype}"));
    found(B, Some(rtype), reason)
}
