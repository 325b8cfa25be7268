//! Single faults in otherwise valid responses. Records are signed again, so that only one check can
//! detect the fault. Also changes that must not matter.

use super::answers::{BOGUS, Case, INDETERMINATE, INSECURE, Shape, Status};
use super::random::Random;
use super::zone::Zone;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPublicKey};
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_proto::message::{Record, Section, flags};
use nonesuch_proto::{Class, Name, NameRef, Rtype, bitmap};
use std::collections::BTreeSet;

/// Plants the fault and returns the expected status. Returns `None` if the response has no place
/// for the fault. For a change that must not matter, the expected status does not change.
type Plant = fn(&Zone, &mut Case, &mut Random) -> Option<Status>;

const OPT_OUT: u8 = 1;
const WILDCARD: u8 = 2;

pub(crate) const FAULTS: &[(&str, Plant)] = &[
    // Proofs.
    ("proof: an octet altered", proof_octet),
    ("proof: of another name", proof_of_another_name),
    ("proof: unknown tag", proof_tag),
    ("proof: missing", proof_missing),
    ("proof: too short", proof_too_short),
    ("proof: under another published key than the record that matches", |zone, case, _| {
        other_key_matched(zone, case, false)
    }),
    ("proof: under another published key than the record that covers", |zone, case, _| {
        other_key_covered(zone, case, false)
    }),
    // Records.
    ("record: missing", record_missing),
    ("record: signature altered", |zone, case, random| {
        with_rrsig(case, &any_record(zone, case, random)?, |rdata| flip_signature(rdata, random))
    }),
    ("record: signature missing", record_unsigned),
    ("record: signature expired", |zone, case, random| {
        signed_again(zone, case, random, |rrsig| rrsig.expiration = rrsig.inception + 3600)
    }),
    ("record: signature of the future", |zone, case, random| {
        signed_again(zone, case, random, |rrsig| rrsig.inception = rrsig.expiration - 3600)
    }),
    ("record: another signer", |zone, case, random| {
        signed_again(zone, case, random, |rrsig| rrsig.signer = rrsig.signer.parent().expect("above"))
    }),
    ("record: expanded from a wildcard", |zone, case, random| {
        signed_again(zone, case, random, |rrsig| rrsig.labels -= 1)
    }),
    ("record: signed under a number that is no alias", record_under_plain_number),
    ("record: next hash of 31 octets", next_hash_too_short),
    ("record: unknown flag", |zone, case, random| {
        let flag = 4 << random.below(6);
        edit(zone, case, &any_record(zone, case, random)?, |record| record.flags |= flag)
    }),
    ("record: owner two labels below the apex", record_deeper),
    ("record: malformed bit map", malformed_bitmap),
    // Content of the records.
    ("NXDOMAIN: the closest encloser has a wildcard", |zone, case, _| {
        edit_matched(zone, case, &[Shape::NxDomain], |record| record.flags |= WILDCARD)
    }),
    ("closest encloser: DNAME", |zone, case, _| {
        edit_matched(zone, case, &ENCLOSED, |record| record.set(Rtype::DNAME))
    }),
    ("closest encloser: delegated", |zone, case, _| {
        edit_matched(zone, case, &ENCLOSED, |record| {
            record.set(Rtype::NS);
            record.types.remove(&Rtype::SOA);
        })
    }),
    ("NODATA: the type is there", |zone, case, _| {
        let rtype = case.rtype;
        edit_matched(zone, case, &LACKING, |record| record.set(rtype))
    }),
    ("NODATA: an alias is there", |zone, case, _| {
        edit_matched(zone, case, &LACKING, |record| record.set(Rtype::CNAME))
    }),
    ("NODATA: delegated", |zone, case, _| {
        (case.rtype != Rtype::DS).then_some(())?;
        edit_matched(zone, case, &LACKING, |record| {
            record.set(Rtype::NS);
            record.types.remove(&Rtype::SOA);
        })
    }),
    ("NODATA for DS: the child's", |zone, case, _| {
        (case.rtype == Rtype::DS).then_some(())?;
        edit_matched(zone, case, &LACKING, |record| record.set(Rtype::SOA))
    }),
    ("unsigned referral: no delegation", |zone, case, _| {
        edit_matched(zone, case, &[Shape::UnsignedReferral], |record| {
            record.types.remove(&Rtype::NS);
        })
    }),
    ("unsigned referral: the child's", |zone, case, _| {
        edit_matched(zone, case, &[Shape::UnsignedReferral], |record| record.set(Rtype::SOA))
    }),
    ("unsigned referral: signed", |zone, case, _| {
        edit_matched(zone, case, &[Shape::UnsignedReferral], |record| record.set(Rtype::DS))
    }),
    ("covered with Opt-Out", covered_with_opt_out),
    ("span without Opt-Out", |zone, case, _| {
        matches!(case.shape, Shape::DsSpan | Shape::ReferralSpan).then_some(())?;
        edit(zone, case, &covering(zone, case.covered.last()?), |record| record.flags &= !OPT_OUT)
    }),
    ("covered: the hash is the owner", |zone, case, _| {
        // For these shapes, the record could be that of the name itself and deny its type.
        (!matches!(case.shape, Shape::DsSpan | Shape::WildcardNoData)).then_some(())?;
        let (old, hash) =
            (covering(zone, case.covered.last()?), zone.prove(&zone.vrf, case.covered.last()?.view()).0);
        move_record(zone, case, &old, &zone.hash_owner(&hash), |_| {})
    }),
    ("covered: the hash is the next", |zone, case, _| {
        let hash = zone.prove(&zone.vrf, case.covered.last()?.view()).0;
        edit(zone, case, &covering(zone, case.covered.last()?), |record| record.next = hash.to_vec())
    }),
    ("covered: elsewhere", |zone, case, _| {
        edit(zone, case, &covering(zone, case.covered.last()?), |record| {
            record.next = successor(&record.owner_hash)
        })
    }),
    ("wildcard NODATA: another wildcard", another_wildcard),
    ("NXDOMAIN: encloser on another branch", |zone, case, _| {
        another_encloser(zone, case, "ent.checked.example.")
    }),
    ("NXDOMAIN: encloser two labels above", encloser_too_high),
    ("NXDOMAIN of an existing name", existing_name_denied),
    ("NODATA of another name", nodata_of_another_name),
    ("referral: DS taken away", ds_taken_away),
    ("referral: signed delegation by its own record", signed_delegation_as_unsigned),
    // Keys.
    ("keys: two of one tag", keys_of_one_tag),
    ("keys: five", |zone, case, random| other_keys(zone, case, random, &Keys::Five)),
    ("keys: none", |zone, case, random| other_keys(zone, case, random, &Keys::None)),
    ("keys: of an unknown algorithm", |zone, case, random| other_keys(zone, case, random, &Keys::Unknown)),
    ("keys: malformed", |zone, case, random| other_keys(zone, case, random, &Keys::Malformed)),
    ("keys: another", |zone, case, random| other_keys(zone, case, random, &Keys::Another)),
    // The rest of the message.
    ("RCODE: NXDOMAIN", |_, case, _| {
        // In an opt-out span, the proofs are the same.
        let shapes = [Shape::NoData, Shape::WildcardNoData, Shape::UnsignedReferral];
        shapes.contains(&case.shape).then(|| case.flags |= 3)?;
        Some(BOGUS)
    }),
    ("RCODE: NOERROR", |zone, case, _| {
        let is_span = zone.is_opt_out() && case.rtype == Rtype::DS;
        (case.shape == Shape::NxDomain && !is_span).then(|| case.flags &= !0xf)?;
        Some(BOGUS)
    }),
    ("answer: signature altered", |_, case, random| {
        let owner = signed_in_answer(case, random)?;
        with_rrsig(case, &owner, |rdata| flip_signature(rdata, random))
    }),
    ("answer: signature missing", |_, case, random| {
        let (owner, rtype) = signed_in_answer(case, random)?;
        // A CNAME without a signature may belong to a DNAME.
        case.records.retain(|record| !is_rrsig_of(record, &owner, rtype));
        Some(BOGUS)
    }),
    ("answer: data altered", |_, case, random| {
        let (owner, rtype) = signed_in_answer(case, random)?;
        let record = case.records.iter_mut().find(|record| record.owner == owner && record.rtype == rtype)?;
        (!matches!(rtype, Rtype::CNAME | Rtype::DNAME)).then_some(())?;
        let last = record.rdata.len() - 1;
        record.rdata[last] ^= 1;
        // A name must still end with the root.
        (rtype == Rtype::A || rtype == Rtype::AAAA).then_some(BOGUS)
    }),
    ("answer: signature expired", |zone, case, random| {
        answer_signed_again(zone, case, random, |rrsig| rrsig.expiration = rrsig.inception + 3600)
    }),
    ("answer: more labels than the owner has", |zone, case, random| {
        answer_signed_again(zone, case, random, |rrsig| rrsig.labels += 1)
    }),
    ("answer: another signer", |zone, case, random| {
        answer_signed_again(zone, case, random, |rrsig| rrsig.signer = rrsig.signer.parent().expect("above"))
    }),
    ("SOA: signature altered", |zone, case, random| {
        let soa = case
            .records
            .iter()
            .any(|record| record.rtype == Rtype::SOA && record.section == Section::Authority);
        soa.then_some(())?;
        with_rrsig(case, &(zone.apex.clone(), Rtype::SOA), |rdata| flip_signature(rdata, random))
    }),
    ("DS: signature altered", |_, case, random| {
        (case.shape == Shape::SignedReferral).then_some(())?;
        let owner = case.records.iter().find(|record| record.rtype == Rtype::DS)?.owner.clone();
        with_rrsig(case, &(owner, Rtype::DS), |rdata| flip_signature(rdata, random))
    }),
    ("DNAME: another CNAME", dname_with_another_cname),
    ("truncated", |_, case, _| {
        case.flags |= flags::TC;
        Some(INDETERMINATE)
    }),
    ("another question", |zone, case, _| {
        case.questions[0].name = Name::prepend(b"another", zone.apex.view()).ok()?;
        Some(INDETERMINATE)
    }),
    // Changes that must not matter.
    ("sound: both records under the other key", |zone, case, _| other_key_matched(zone, case, true)),
    ("sound: the covering record under the other key", |zone, case, _| other_key_covered(zone, case, true)),
    ("sound: lower TTLs", |_, case, random| {
        case.records.iter_mut().for_each(|record| record.ttl = record.ttl.min(random.below(900) as u32));
        Some(case.expected)
    }),
    ("sound: names in mixed case", mixed_case),
    ("sound: a record that is of no use", |zone, case, random| {
        let owner = any_record(zone, case, random)?;
        let stray = zone.covering(&successor(&hash_of(&owner)).try_into().ok()?);
        case.push(zone.records(Section::Authority, stray.view(), stray.view(), Rtype::NSEC5));
        Some(case.expected)
    }),
    ("sound: a proof that is of no use", |zone, case, _| {
        (case.matched.is_some() || !case.covered.is_empty()).then_some(())?;
        let name: Name = "stray.elsewhere.d.checked.example.".parse().ok()?;
        let rdata = zone.prove(&zone.vrf, name.view()).1;
        case.records.push(proof_record(&name, rdata));
        Some(case.expected)
    }),
    ("sound: two proofs that are of no use", two_stray_proofs),
    ("sound: a bad proof in front of the good one", bad_proof_in_front),
    ("sound: a bad record beside", |zone, case, random| {
        let owner = any_record(zone, case, random)?;
        let mut fields = read(case, &owner)?;
        fields.flags = 0x80;
        let stray = zone.hash_owner(&successor(&hash_of(&owner)).try_into().ok()?);
        push_signed(zone, case, &stray, fields.rdata());
        Some(case.expected)
    }),
    ("sound: records in another order", |_, case, random| {
        for at in (1..case.records.len()).rev() {
            case.records.swap(at, random.below(at + 1));
        }
        Some(case.expected)
    }),
    ("sound: Opt-Out clear where nothing asks for it", |zone, case, _| {
        (zone.is_opt_out() && case.covered.len() == 1).then_some(())?;
        matches!(case.shape, Shape::NxDomain | Shape::WildcardAnswer | Shape::WildcardNoData).then_some(())?;
        edit(zone, case, &covering(zone, case.covered.last()?), |record| record.flags &= !OPT_OUT)?;
        Some(super::answers::SECURE)
    }),
    ("sound: an unknown key beside", |_, case, _| {
        case.nsec5_keys.push(vec![200, 1, 2, 3]);
        Some(case.expected)
    }),
];

/// Shapes with a proof of the closest encloser.
const ENCLOSED: [Shape; 3] = [Shape::NxDomain, Shape::DsSpan, Shape::ReferralSpan];
/// Shapes of a name without the type.
const LACKING: [Shape; 2] = [Shape::NoData, Shape::WildcardNoData];

/// The fields of an NSEC5 record.
struct Fields {
    owner_hash: [u8; 32],
    tag: u16,
    flags: u8,
    next: Vec<u8>,
    types: BTreeSet<Rtype>,
}

impl Fields {
    fn set(&mut self, rtype: Rtype) {
        self.types.insert(rtype);
    }

    fn rdata(&self) -> Vec<u8> {
        let mut rdata = self.tag.to_be_bytes().to_vec();
        rdata.extend_from_slice(&[self.flags, self.next.len() as u8]);
        rdata.extend_from_slice(&self.next);
        let types: Vec<Rtype> = self.types.iter().copied().collect();
        bitmap::push(&types, &mut rdata);
        rdata
    }
}

fn hash_of(owner: &Name) -> [u8; 32] {
    let label = owner.view().labels().next().expect("a label").to_ascii_uppercase();
    data_encoding::BASE32HEX_NOPAD.decode(&label).expect("base32hex").try_into().expect("32 octets")
}

/// The hash plus one.
fn successor(hash: &[u8; 32]) -> Vec<u8> {
    let mut next = *hash;
    for octet in next.iter_mut().rev() {
        *octet = octet.wrapping_add(1);
        if *octet != 0 {
            break;
        }
    }
    next.to_vec()
}

/// The hash minus one.
fn predecessor(hash: &[u8; 32]) -> [u8; 32] {
    let mut before = *hash;
    for octet in before.iter_mut().rev() {
        *octet = octet.wrapping_sub(1);
        if *octet != 0xff {
            break;
        }
    }
    before
}

/// The owner of the zone's record that covers or matches a name.
fn covering(zone: &Zone, name: &Name) -> Name {
    zone.covering(&zone.prove(&zone.vrf, name.view()).0)
}

/// Owners of the records that the response needs.
fn needed(zone: &Zone, case: &Case) -> Vec<Name> {
    case.matched.iter().chain(&case.covered).map(|name| covering(zone, name)).collect()
}

fn any_record(zone: &Zone, case: &Case, random: &mut Random) -> Option<Name> {
    let needed = needed(zone, case);
    (!needed.is_empty()).then(|| random.pick(&needed).clone())
}

/// A name that the response needs a proof of.
fn any_proved(case: &Case, random: &mut Random) -> Option<Name> {
    let names: Vec<&Name> = case.matched.iter().chain(&case.covered).collect();
    (!names.is_empty()).then(|| (*random.pick(&names)).clone())
}

fn read(case: &Case, owner: &Name) -> Option<Fields> {
    let record = case.records.iter().find(|record| record.owner == *owner && record.rtype == Rtype::NSEC5)?;
    let rdata = &record.rdata;
    Some(Fields {
        owner_hash: hash_of(owner),
        tag: u16::from_be_bytes([rdata[0], rdata[1]]),
        flags: rdata[2],
        next: rdata[4..36].to_vec(),
        types: bitmap::types(&rdata[36..]).collect(),
    })
}

fn is_rrsig_of(record: &Record, owner: &Name, rtype: Rtype) -> bool {
    record.owner == *owner && record.rtype == Rtype::RRSIG && record.rdata[..2] == rtype.0.to_be_bytes()
}

fn take_out(case: &mut Case, owner: &Name, rtype: Rtype) {
    case.records.retain(|record| {
        !(record.owner == *owner && record.rtype == rtype || is_rrsig_of(record, owner, rtype))
    });
}

fn authority(owner: &Name, rtype: Rtype, rdata: Vec<u8>) -> Record {
    Record { section: Section::Authority, owner: owner.clone(), rtype, class: Class::IN, ttl: 900, rdata }
}

fn proof_record(owner: &Name, rdata: Vec<u8>) -> Record {
    authority(owner, Rtype::NSEC5PROOF, rdata)
}

/// Adds an NSEC5 record with a valid signature.
fn push_signed(zone: &Zone, case: &mut Case, owner: &Name, rdata: Vec<u8>) {
    let signature = zone.signature(owner.view(), Rtype::NSEC5, 900, &[&rdata]);
    case.records.push(authority(owner, Rtype::NSEC5, rdata));
    case.records.push(authority(owner, Rtype::RRSIG, signature));
}

/// Moves a modified record to another owner.
fn move_record(
    zone: &Zone,
    case: &mut Case,
    from: &Name,
    to: &Name,
    alter: impl FnOnce(&mut Fields),
) -> Option<Status> {
    let mut fields = read(case, from)?;
    alter(&mut fields);
    take_out(case, from, Rtype::NSEC5);
    push_signed(zone, case, to, fields.rdata());
    Some(BOGUS)
}

/// Modifies a record and signs it again.
fn edit(zone: &Zone, case: &mut Case, owner: &Name, alter: impl FnOnce(&mut Fields)) -> Option<Status> {
    move_record(zone, case, owner, owner, alter)
}

/// Modifies the matching record, in responses of these shapes.
fn edit_matched(
    zone: &Zone,
    case: &mut Case,
    shapes: &[Shape],
    alter: impl FnOnce(&mut Fields),
) -> Option<Status> {
    shapes.contains(&case.shape).then_some(())?;
    let owner = covering(zone, case.matched.as_ref()?);
    edit(zone, case, &owner, alter)
}

/// Flips a bit at or after a position.
fn flip(octets: &mut [u8], random: &mut Random, from: usize) {
    let from = from.min(octets.len() - 1);
    let at = from + random.below(octets.len() - from);
    octets[at] ^= 1 << random.below(8);
}

/// Flips a bit in the last 32 octets of a signature. Signatures of all algorithms are at least this
/// long.
fn flip_signature(rdata: &mut [u8], random: &mut Random) {
    flip(rdata, random, rdata.len() - 32);
}

fn proof<'c>(case: &'c mut Case, name: &Name) -> Option<&'c mut Record> {
    case.records.iter_mut().find(|record| record.owner == *name && record.rtype == Rtype::NSEC5PROOF)
}

fn proof_octet(_: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let name = any_proved(case, random)?;
    flip(&mut proof(case, &name)?.rdata, random, 2);
    Some(BOGUS)
}

fn proof_of_another_name(zone: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let name = any_proved(case, random)?;
    let other = Name::prepend(b"other", zone.apex.view()).ok()?;
    proof(case, &name)?.rdata = zone.prove(&zone.vrf, other.view()).1;
    Some(BOGUS)
}

fn proof_tag(_: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let name = any_proved(case, random)?;
    proof(case, &name)?.rdata[0] ^= 1;
    Some(BOGUS)
}

/// The maximum number of unneeded proofs that a validator processes in addition to the needed ones.
fn two_stray_proofs(zone: &Zone, case: &mut Case, _: &mut Random) -> Option<Status> {
    (case.matched.is_some() || !case.covered.is_empty()).then_some(())?;
    for stray in ["one.elsewhere.checked.example.", "another.elsewhere.checked.example."] {
        let name: Name = stray.parse().ok()?;
        let rdata = zone.prove(&zone.vrf, name.view()).1;
        case.records.insert(0, proof_record(&name, rdata));
    }
    Some(case.expected)
}

fn bad_proof_in_front(_: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let name = any_proved(case, random)?;
    let mut bad = proof(case, &name)?.clone();
    flip(&mut bad.rdata, random, 2);
    case.records.insert(0, bad);
    Some(case.expected)
}

fn proof_missing(_: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let name = any_proved(case, random)?;
    case.records.retain(|record| !(record.owner == name && record.rtype == Rtype::NSEC5PROOF));
    Some(BOGUS)
}

fn proof_too_short(_: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let name = any_proved(case, random)?;
    proof(case, &name)?.rdata.pop();
    Some(BOGUS)
}

fn publish_other_key(zone: &Zone, case: &mut Case) -> u16 {
    let key = Nsec5Key::of(&zone.other_vrf);
    case.nsec5_keys.push(key.rdata().to_vec());
    key.tag()
}

/// The second published key proves the matched name, and a record exists at that hash. It has the
/// key tag of the first key or, if `sound` is set, of the second.
fn other_key_matched(zone: &Zone, case: &mut Case, sound: bool) -> Option<Status> {
    let name = case.matched.clone()?;
    let owner = covering(zone, &name);
    let (hash, rdata) = zone.prove(&zone.other_vrf, name.view());
    let mut fields = read(case, &owner)?;
    let tag = publish_other_key(zone, case);
    proof(case, &name)?.rdata = rdata;
    if sound {
        fields.tag = tag;
    }
    // The record stays if it also covers a name.
    if !case.covered.iter().any(|covered| covering(zone, covered) == owner) {
        take_out(case, &owner, Rtype::NSEC5);
    }
    push_signed(zone, case, &zone.hash_owner(&hash), fields.rdata());
    Some(if sound { case.expected } else { BOGUS })
}

/// The same for the covered name: a record covers its hash under the second key.
fn other_key_covered(zone: &Zone, case: &mut Case, sound: bool) -> Option<Status> {
    let name = case.covered.last()?.clone();
    let owner = covering(zone, &name);
    let (hash, rdata) = zone.prove(&zone.other_vrf, name.view());
    let mut fields = read(case, &owner)?;
    let tag = publish_other_key(zone, case);
    proof(case, &name)?.rdata = rdata;
    if sound {
        fields.tag = tag;
    }
    fields.next = successor(&hash);
    push_signed(zone, case, &zone.hash_owner(&predecessor(&hash)), fields.rdata());
    Some(if sound { case.expected } else { BOGUS })
}

fn record_missing(zone: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let owner = any_record(zone, case, random)?;
    take_out(case, &owner, Rtype::NSEC5);
    Some(BOGUS)
}

fn record_unsigned(zone: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let owner = any_record(zone, case, random)?;
    case.records.retain(|record| !is_rrsig_of(record, &owner, Rtype::NSEC5));
    Some(BOGUS)
}

/// Selects RRsets by owner, or by owner and type.
trait RrsetSelector {
    fn place(&self) -> (&Name, Rtype);
}

impl RrsetSelector for Name {
    fn place(&self) -> (&Name, Rtype) {
        (self, Rtype::NSEC5)
    }
}

impl RrsetSelector for (Name, Rtype) {
    fn place(&self) -> (&Name, Rtype) {
        (&self.0, self.1)
    }
}

fn with_rrsig(
    case: &mut Case,
    place: &impl RrsetSelector,
    alter: impl FnOnce(&mut Vec<u8>),
) -> Option<Status> {
    let (owner, rtype) = place.place();
    alter(&mut case.records.iter_mut().find(|record| is_rrsig_of(record, owner, rtype))?.rdata);
    Some(BOGUS)
}

/// Signs a needed NSEC5 record with other signature fields.
fn signed_again(
    zone: &Zone,
    case: &mut Case,
    random: &mut Random,
    alter: impl FnOnce(&mut Rrsig<'_>),
) -> Option<Status> {
    let owner = any_record(zone, case, random)?;
    let rdata = read(case, &owner)?.rdata();
    let rdatas = [&rdata[..]];
    let made = zone.signature_with(&zone.signer, owner.view(), Rtype::NSEC5, 900, &rdatas, alter);
    with_rrsig(case, &owner, |rdata| *rdata = made)
}

fn record_under_plain_number(zone: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let owner = any_record(zone, case, random)?;
    let rdata = read(case, &owner)?.rdata();
    let made = zone.signature_with(&zone.plain, owner.view(), Rtype::NSEC5, 900, &[&rdata], |_| {});
    case.dnskeys.push(zone.plain.dnskey_rdata());
    with_rrsig(case, &owner, |rdata| *rdata = made)
}

fn next_hash_too_short(zone: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let owner = any_record(zone, case, random)?;
    edit(zone, case, &owner, |record| record.next.truncate(31))
}

fn record_deeper(zone: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let owner = any_record(zone, case, random)?;
    let label = owner.view().labels().next()?.to_vec();
    let above = Name::prepend(b"x", zone.apex.view()).ok()?;
    move_record(zone, case, &owner, &Name::prepend(&label, above.view()).ok()?, |_| {})
}

fn malformed_bitmap(zone: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let owner = any_record(zone, case, random)?;
    let mut rdata = read(case, &owner)?.rdata();
    // A bit map window that extends beyond the end.
    rdata.extend_from_slice(&[255, 3, 1]);
    take_out(case, &owner, Rtype::NSEC5);
    push_signed(zone, case, &owner, rdata);
    Some(BOGUS)
}

fn covered_with_opt_out(zone: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    (case.expected != INSECURE && !case.covered.is_empty()).then_some(())?;
    let name = random.pick(&case.covered).clone();
    edit(zone, case, &covering(zone, &name), |record| record.flags |= OPT_OUT)?;
    Some(INSECURE)
}

/// Replaces the needed proof with the proof of another matched name.
fn replace_matched(zone: &Zone, case: &mut Case, by: &Name) -> Option<Status> {
    let name = case.matched.clone()?;
    let (old, fresh) = (covering(zone, &name), covering(zone, by));
    case.records.retain(|record| !(record.owner == name && record.rtype == Rtype::NSEC5PROOF));
    if !case.covered.iter().any(|covered| covering(zone, covered) == old) {
        take_out(case, &old, Rtype::NSEC5);
    }
    case.push(zone.records(Section::Authority, fresh.view(), fresh.view(), Rtype::NSEC5));
    let rdata = zone.prove(&zone.vrf, by.view()).1;
    case.push(vec![proof_record(by, rdata)]);
    Some(BOGUS)
}

fn another_wildcard(zone: &Zone, case: &mut Case, _: &mut Random) -> Option<Status> {
    (case.shape == Shape::WildcardNoData).then_some(())?;
    // This name has no data: every type is missing.
    let other: Name = "*.hollow.checked.example.".parse().ok()?;
    (case.matched.as_ref() != Some(&other)).then_some(())?;
    replace_matched(zone, case, &other)
}

fn another_encloser(zone: &Zone, case: &mut Case, by: &str) -> Option<Status> {
    let by: Name = by.parse().ok()?;
    let is_above = case.last.view().is_at_or_below(by.view());
    (case.shape == Shape::NxDomain && !is_above).then(|| replace_matched(zone, case, &by))?
}

fn encloser_too_high(zone: &Zone, case: &mut Case, _: &mut Random) -> Option<Status> {
    let encloser = case.matched.clone().filter(|encloser| *encloser != zone.apex)?;
    let above = encloser.view().parent()?.to_name();
    (case.shape == Shape::NxDomain).then(|| replace_matched(zone, case, &above))?
}

/// Denies an existing name with records of the zone: its encloser, and its own record.
fn existing_name_denied(zone: &Zone, case: &mut Case, _: &mut Random) -> Option<Status> {
    (case.shape == Shape::NoData && case.last == case.name && case.name != zone.apex).then_some(())?;
    let encloser = case.name.view().parent()?.to_name();
    let owner = covering(zone, &encloser);
    case.push(zone.records(Section::Authority, owner.view(), owner.view(), Rtype::NSEC5));
    case.push(vec![proof_record(&encloser, zone.prove(&zone.vrf, encloser.view()).1)]);
    case.flags |= 3;
    Some(BOGUS)
}

fn nodata_of_another_name(zone: &Zone, case: &mut Case, _: &mut Random) -> Option<Status> {
    let other: Name = "b.ent.checked.example.".parse().ok()?;
    (case.shape == Shape::NoData && case.last != other).then(|| replace_matched(zone, case, &other))?
}

fn ds_taken_away(_: &Zone, case: &mut Case, _: &mut Random) -> Option<Status> {
    (case.shape == Shape::SignedReferral).then_some(())?;
    let owner = case.records.iter().find(|record| record.rtype == Rtype::DS)?.owner.clone();
    take_out(case, &owner, Rtype::DS);
    Some(BOGUS)
}

fn signed_delegation_as_unsigned(zone: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let cut = case.records.iter().find(|record| record.rtype == Rtype::DS)?.owner.clone();
    ds_taken_away(zone, case, random)?;
    let owner = covering(zone, &cut);
    case.push(zone.records(Section::Authority, owner.view(), owner.view(), Rtype::NSEC5));
    case.push(vec![proof_record(&cut, zone.prove(&zone.vrf, cut.view()).1)]);
    Some(BOGUS)
}

/// A second key for edwards25519 with the key tag of the first. All its octets except two are
/// random.
fn keys_of_one_tag(zone: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let wanted = Nsec5Key::of(&zone.vrf).tag();
    let algorithm = VrfAlgorithm::EDWARDS25519_SHA512_TAI;
    let key = loop {
        let mut rdata = vec![algorithm.0];
        rdata.extend((0..32).map(|_| random.below(256) as u8));
        let tag = nonesuch_crypto::key_tag(&rdata);
        // Octets 2 and 3 are one word of the sum.
        let word = u16::from_be_bytes([rdata[2], rdata[3]]).wrapping_add(wanted.wrapping_sub(tag));
        rdata[2..4].copy_from_slice(&word.to_be_bytes());
        if nonesuch_crypto::key_tag(&rdata) == wanted && VrfPublicKey::parse(algorithm, &rdata[1..]).is_ok() {
            break rdata;
        }
    };
    case.nsec5_keys.push(key);
    Some(denied(case))
}

/// The expected status if the zone's denial records prove nothing: responses that need none stay
/// valid.
fn denied(case: &Case) -> Status {
    if case.matched.is_some() || !case.covered.is_empty() { BOGUS } else { case.expected }
}

enum Keys {
    Five,
    None,
    Unknown,
    Malformed,
    Another,
}

fn other_keys(zone: &Zone, case: &mut Case, random: &mut Random, keys: &Keys) -> Option<Status> {
    match keys {
        Keys::Five => case
            .nsec5_keys
            .extend((0..4).map(|_| vec![200, random.below(256) as u8, random.below(256) as u8])),
        Keys::None => case.nsec5_keys.clear(),
        // Its tag differs, so that no proof refers to it. If a proof did, no validator could use
        // the key.
        Keys::Unknown => case.nsec5_keys[0][0] = 200,
        Keys::Malformed => drop(case.nsec5_keys[0].pop()),
        Keys::Another => case.nsec5_keys = vec![Nsec5Key::of(&zone.other_vrf).rdata().to_vec()],
    }
    let mut tags: Vec<u16> = case.nsec5_keys.iter().map(|key| nonesuch_crypto::key_tag(key)).collect();
    tags.sort_unstable();
    tags.windows(2).all(|pair| pair[0] != pair[1]).then(|| denied(case))
}

/// An RRset with a signature in the answer section.
fn signed_in_answer(case: &Case, random: &mut Random) -> Option<(Name, Rtype)> {
    let signed: Vec<(Name, Rtype)> = case
        .records
        .iter()
        .filter(|record| record.section == Section::Answer && record.rtype == Rtype::RRSIG)
        .map(|record| (record.owner.clone(), Rtype(u16::from_be_bytes([record.rdata[0], record.rdata[1]]))))
        .collect();
    (!signed.is_empty()).then(|| random.pick(&signed).clone())
}

fn answer_signed_again(
    zone: &Zone,
    case: &mut Case,
    random: &mut Random,
    alter: impl FnOnce(&mut Rrsig<'_>),
) -> Option<Status> {
    let (owner, rtype) = signed_in_answer(case, random)?;
    // From a wildcard, the change would produce another valid response.
    case.covered.is_empty().then_some(())?;
    let rrset = |record: &&Record| {
        record.owner == owner && record.rtype == rtype && record.section == Section::Answer
    };
    let records: Vec<Record> = case.records.iter().filter(rrset).cloned().collect();
    let rdatas: Vec<&[u8]> = records.iter().map(|record| &record.rdata[..]).collect();
    let made = zone.signature_with(&zone.signer, owner.view(), rtype, records[0].ttl, &rdatas, alter);
    with_rrsig(case, &(owner, rtype), |rdata| *rdata = made)
}

fn dname_with_another_cname(zone: &Zone, case: &mut Case, _: &mut Random) -> Option<Status> {
    let dname = case.records.iter().find(|record| record.rtype == Rtype::DNAME)?.owner.clone();
    let synthesised = |record: &&mut Record| {
        record.rtype == Rtype::CNAME
            && record.owner != dname
            && record.owner.view().is_at_or_below(dname.view())
    };
    let record = case.records.iter_mut().find(synthesised)?;
    record.rdata = Name::prepend(b"www", zone.apex.view()).ok()?.wire().to_vec();
    Some(BOGUS)
}

fn mixed_case(_: &Zone, case: &mut Case, random: &mut Random) -> Option<Status> {
    let mut mix = |name: NameRef<'_>| {
        let labels: Vec<Vec<u8>> = name.labels().map(<[u8]>::to_vec).collect();
        labels.iter().rev().fold(Name::root(), |name, label| {
            let label: Vec<u8> = label
                .iter()
                .map(|octet| if random.below(2) == 0 { octet.to_ascii_uppercase() } else { *octet })
                .collect();
            Name::prepend(&label, name.view()).expect("as long as before")
        })
    };
    for record in &mut case.records {
        record.owner = mix(record.owner.view());
    }
    for question in &mut case.questions {
        question.name = mix(question.name.view());
    }
    Some(case.expected)
}
