//! Denials by NSEC5: each test makes exactly one check of the validator fail.

mod batches;

use super::*;
use crate::denial::nsec5::chain;
use crate::keys::Nsec5Key;
use crate::tests::nsec5::vrf_of;
use crate::validate::{Limit, RrsetStatus};
use nonesuch_crypto::vrf::{VRF_ALGORITHMS, VrfAlgorithm, VrfPrivateKey};

const OPT_OUT: u8 = 1;
const WILDCARD: u8 = 2;
const APEX: &str = "NS SOA RRSIG DNSKEY NSEC5KEY";
const DATA: &str = "A RRSIG";

/// A VRF key with its NSEC5KEY record.
struct Vrf {
    key: VrfPrivateKey,
    record: Nsec5Key,
}

/// The fields of an NSEC5 record.
#[derive(Clone)]
struct Made {
    tag: u16,
    hash: [u8; 32],
    next: Vec<u8>,
    flags: u8,
    types: &'static str,
}

fn stepped(hash: [u8; 32], up: bool) -> [u8; 32] {
    let mut out = hash;
    for octet in out.iter_mut().rev() {
        *octet = if up { octet.wrapping_add(1) } else { octet.wrapping_sub(1) };
        if *octet != if up { 0 } else { 255 } {
            break;
        }
    }
    out
}

impl Vrf {
    fn new(algorithm: VrfAlgorithm, seed: u8) -> Self {
        let key = vrf_of(algorithm, seed);
        let record = Nsec5Key::of(&key);
        Self { key, record }
    }

    fn first() -> Self {
        Self::new(VrfAlgorithm::EDWARDS25519_SHA512_ELL2, 7)
    }

    /// Proof and hash of a name.
    fn prove(&self, owner: &str) -> (Vec<u8>, [u8; 32]) {
        let (mut canonical, mut proof) = (Vec::new(), Vec::new());
        name(owner).view().push_canonical(&mut canonical);
        let hash = self.key.prove(&canonical, &mut proof).unwrap();
        (proof, hash)
    }

    fn matching(&self, owner: &str, types: &'static str) -> Made {
        let hash = self.prove(owner).1;
        Made { tag: self.record.tag(), hash, next: stepped(hash, true).to_vec(), flags: 0, types }
    }

    fn covering(&self, owner: &str) -> Made {
        let matching = self.matching(owner, "");
        Made { hash: stepped(matching.hash, false), ..matching }
    }

    fn proof_rdata(&self, owner: &str) -> Vec<u8> {
        [self.record.tag().to_be_bytes().to_vec(), self.prove(owner).0].concat()
    }
}

impl Made {
    fn flags(self, flags: u8) -> Self {
        Self { flags, ..self }
    }

    fn owner(&self) -> Name {
        Name::prepend(&chain::label(&self.hash), name("example.").view()).unwrap()
    }

    fn rdata(&self) -> Vec<u8> {
        let mut out = self.tag.to_be_bytes().to_vec();
        out.extend_from_slice(&[self.flags, self.next.len() as u8]);
        out.extend_from_slice(&self.next);
        out.extend_from_slice(&map(self.types));
        out
    }
}

impl Reply {
    /// A response of a zone with NSEC5. The validator trusts the key `vrf`.
    fn of(vrf: &Vrf, question: &str, rtype: Rtype) -> Self {
        let nsec5_keys = vec![vrf.record.rdata().to_vec()];
        Self { nsec5_keys, ..Self::to(question, rtype).by(&signer(Algorithm(231))) }
    }

    fn nsec5(self, made: &Made) -> Self {
        self.raw_signed(Section::Authority, &made.owner(), Rtype::NSEC5, &[made.rdata()], |_| {})
    }

    fn proof(self, vrf: &Vrf, owner: &str) -> Self {
        self.raw(Section::Authority, &name(owner), Rtype::NSEC5PROOF, &[vrf.proof_rdata(owner)])
    }

    /// Adds a record and a proof that match a name.
    fn proved(self, vrf: &Vrf, owner: &str, types: &'static str) -> Self {
        self.nsec5(&vrf.matching(owner, types)).proof(vrf, owner)
    }

    /// Adds a record and a proof that cover a name.
    fn covered_by(self, vrf: &Vrf, owner: &str, flags: u8) -> Self {
        self.nsec5(&vrf.covering(owner).flags(flags)).proof(vrf, owner)
    }
}

fn nxdomain(vrf: &Vrf, question: &str) -> Reply {
    Reply::of(vrf, question, Rtype::A).rcode(Rcode::NXDOMAIN).soa()
}

fn proof_of(owner: &'static str) -> impl Fn(&Record) -> bool {
    is(owner, Rtype::NSEC5PROOF)
}

#[test]
fn a_name_is_denied_with_every_vrf() {
    for entry in &VRF_ALGORITHMS {
        let vrf = Vrf::new(entry.algorithm, 3);
        let reply = nxdomain(&vrf, "b.a.example.").proved(&vrf, "a.example.", DATA);
        let reply = reply.covered_by(&vrf, "b.a.example.", 0);
        let validation = reply.assert_secure(&ProvedAnswer::NxDomain);
        assert_eq!((validation.work.proofs, validation.work.signatures), (2, 3), "{}", entry.name);
        // A change of one octet of a proof.
        for place in [2, 40, 60, 81] {
            let forged = reply.clone().altered(proof_of("b.a.example."), |record| record.rdata[place] ^= 1);
            forged.assert_bogus(BogusReason::BadProof(name("b.a.example.")));
        }
    }
}

#[test]
fn a_name_is_denied_by_encloser_and_next_closer_name() {
    let vrf = Vrf::first();
    let base = || nxdomain(&vrf, "b.a.example.");
    let sound = base().proved(&vrf, "a.example.", DATA).covered_by(&vrf, "b.a.example.", 0);
    sound.assert_secure(&ProvedAnswer::NxDomain);
    Reply { name: name("Z.y.B.a.example."), ..sound.clone() }.assert_secure(&ProvedAnswer::NxDomain);
    // One record matches the encloser and covers the next closer name.
    let apex = vrf.matching("example.", APEX);
    let alone = Made { next: apex.hash.to_vec(), ..apex };
    let one = nxdomain(&vrf, "b.example.").nsec5(&alone).proof(&vrf, "example.").proof(&vrf, "b.example.");
    assert_eq!(one.assert_secure(&ProvedAnswer::NxDomain).work.signatures, 2);

    for missing in ["a.example.", "b.a.example."] {
        let reply = sound.clone().without(proof_of(missing));
        reply.assert_bogus(BogusReason::NoProof(name("b.a.example.")));
    }
    let uncovered = base().proved(&vrf, "a.example.", DATA).proof(&vrf, "b.a.example.");
    uncovered.assert_bogus(BogusReason::NotCovered(name("b.a.example.")));
    let unmatched = base().covered_by(&vrf, "b.a.example.", 0).covered_by(&vrf, "a.example.", 0);
    unmatched.assert_bogus(BogusReason::NotMatched(name("a.example.")));
    let no_record = base().covered_by(&vrf, "b.a.example.", 0).proof(&vrf, "a.example.");
    no_record.assert_bogus(BogusReason::NotCovered(name("a.example.")));
    let there = base().proved(&vrf, "a.example.", DATA).proved(&vrf, "b.a.example.", DATA);
    there.assert_bogus(BogusReason::NameExists(name("b.a.example.")));
    // The next closer name is one label longer than the encloser.
    let far = Reply { name: name("c.b.a.example."), ..base() };
    let far = far.proved(&vrf, "a.example.", DATA).covered_by(&vrf, "c.b.a.example.", 0);
    far.assert_bogus(BogusReason::NoProof(name("c.b.a.example.")));
    // Names above the apex belong to another zone.
    let above = nxdomain(&vrf, "b.a.example.").proved(&vrf, ".", APEX).covered_by(&vrf, "example.", 0);
    above.assert_bogus(BogusReason::NoProof(name("b.a.example.")));
    // Caches decrement TTLs, which can therefore differ.
    let lowered = sound.altered(proof_of("a.example."), |record| record.ttl = 1);
    lowered.assert_secure(&ProvedAnswer::NxDomain);
    // An encloser that is not an ancestor of the name.
    let beside = base().proved(&vrf, "c.example.", DATA).covered_by(&vrf, "b.a.example.", 0);
    beside.assert_bogus(BogusReason::NoProof(name("b.a.example.")));
}

/// The encloser must not be a zone cut, have a DNAME record, or have a wildcard below it.
#[test]
fn what_the_enclosers_record_says() {
    let vrf = Vrf::first();
    let with = |types, flags| {
        let made = vrf.matching("a.example.", types).flags(flags);
        let base = nxdomain(&vrf, "b.a.example.").nsec5(&made).proof(&vrf, "a.example.");
        base.covered_by(&vrf, "b.a.example.", 0)
    };
    let a = || name("a.example.");
    with(DATA, 0).assert_secure(&ProvedAnswer::NxDomain);
    with("NS SOA RRSIG", 0).assert_secure(&ProvedAnswer::NxDomain);
    with("NS DS RRSIG", 0).assert_bogus(BogusReason::ParentSideRecord(a()));
    with("DNAME RRSIG", 0).assert_bogus(BogusReason::BelowDname(a()));
    with(DATA, WILDCARD).assert_bogus(BogusReason::WildcardFlag(a()));
    // Only the Opt-Out flag of the covering record is relevant.
    with(DATA, OPT_OUT).assert_secure(&ProvedAnswer::NxDomain);
}

#[test]
fn a_type_is_denied_by_the_record_of_the_name() {
    let vrf = Vrf::first();
    let with = |rtype, types| Reply::of(&vrf, "a.example.", rtype).soa().proved(&vrf, "a.example.", types);
    let a = || name("a.example.");
    assert_eq!(with(Rtype::AAAA, DATA).assert_secure(&ProvedAnswer::NoData).work.proofs, 1);
    with(Rtype::AAAA, "").assert_secure(&ProvedAnswer::NoData);
    with(Rtype::AAAA, "NS SOA RRSIG").assert_secure(&ProvedAnswer::NoData);
    with(Rtype::A, DATA).assert_bogus(BogusReason::TypeExists { name: a(), rtype: Rtype::A });
    with(Rtype::A, "CNAME RRSIG").assert_bogus(BogusReason::AliasExists(a()));
    with(Rtype::A, "NS").assert_bogus(BogusReason::ParentSideRecord(a()));
    with(Rtype::DS, "NS").assert_secure(&ProvedAnswer::NoData);
    with(Rtype::DS, "NS SOA RRSIG").assert_bogus(BogusReason::ChildSideRecord(a()));
    with(Rtype::DS, "NS DS RRSIG").assert_bogus(BogusReason::TypeExists { name: a(), rtype: Rtype::DS });
    with(Rtype::AAAA, DATA).rcode(Rcode::NXDOMAIN).assert_bogus(BogusReason::NameExists(a()));
    with(Rtype::AAAA, DATA).without(proof_of("a.example.")).assert_bogus(BogusReason::NoProof(a()));
    let covered = Reply::of(&vrf, "a.example.", Rtype::A).soa().covered_by(&vrf, "a.example.", 0);
    covered.assert_bogus(BogusReason::NoProof(a()));
    // The wildcard flag is irrelevant for the denial of a type.
    let flagged = vrf.matching("a.example.", DATA).flags(WILDCARD);
    let flagged = Reply::of(&vrf, "a.example.", Rtype::AAAA).soa().nsec5(&flagged).proof(&vrf, "a.example.");
    flagged.assert_secure(&ProvedAnswer::NoData);
    // The record of the apex proves nothing about DS, except at the root, which has no parent.
    let apex = Reply::of(&vrf, "example.", Rtype::DS).soa().proved(&vrf, "example.", APEX);
    apex.assert_bogus(BogusReason::ChildSideRecord(name("example.")));
    let root = Arc::new(key(".", 257, Algorithm(231), 1));
    let made = vrf.matching(".", APEX);
    let owner = Name::prepend(&chain::label(&made.hash), name(".").view()).unwrap();
    let root = Reply::of(&vrf, ".", Rtype::DS).by(&root);
    let root = root.raw_signed(Section::Authority, &owner, Rtype::NSEC5, &[made.rdata()], |_| {});
    root.proof(&vrf, ".").assert_secure(&ProvedAnswer::NoData);
}

#[test]
fn a_wildcard_answers_where_the_next_closer_name_is_covered() {
    let vrf = Vrf::first();
    let base = || {
        let question = "c.b.a.example.";
        Reply::of(&vrf, question, Rtype::A).expanded(question, Rtype::A, "192.0.2.1", 2)
    };
    let next = || name("b.a.example.");
    let sound = base().covered_by(&vrf, "b.a.example.", 0).assert_secure(&ProvedAnswer::WildcardAnswer);
    assert_eq!(sound.work.proofs, 1);
    base().assert_bogus(BogusReason::NoDenial);
    for other in ["c.b.a.example.", "a.example."] {
        base().covered_by(&vrf, other, 0).assert_bogus(BogusReason::NoProof(next()));
    }
    base().proved(&vrf, "b.a.example.", "").assert_bogus(BogusReason::NameExists(next()));
    base()
        .proof(&vrf, "b.a.example.")
        .nsec5(&vrf.covering("x.example."))
        .assert_bogus(BogusReason::NotCovered(next()));
}

#[test]
fn a_wildcard_has_not_the_type() {
    let vrf = Vrf::first();
    let base = || Reply::of(&vrf, "c.b.a.example.", Rtype::AAAA).soa();
    let with = |types| base().covered_by(&vrf, "b.a.example.", 0).proved(&vrf, "*.a.example.", types);
    let wildcard = || name("*.a.example.");
    assert_eq!(with(DATA).assert_secure(&ProvedAnswer::WildcardNoData).work.proofs, 2);
    with("").assert_secure(&ProvedAnswer::WildcardNoData);
    with("AAAA RRSIG").assert_bogus(BogusReason::TypeExists { name: wildcard(), rtype: Rtype::AAAA });
    with("CNAME RRSIG").assert_bogus(BogusReason::AliasExists(wildcard()));
    with("NS").assert_bogus(BogusReason::ParentSideRecord(wildcard()));
    let ds = |types| Reply { rtype: Rtype::DS, ..with(types) };
    ds("NS").assert_secure(&ProvedAnswer::WildcardNoData);
    ds("NS SOA RRSIG").assert_bogus(BogusReason::ChildSideRecord(wildcard()));
    // The wildcard must be directly below the closest encloser, like the next closer name.
    for (next, wildcard) in [("b.a.example.", "*.b.a.example."), ("c.b.a.example.", "*.a.example.")] {
        let far = base().covered_by(&vrf, next, 0).proved(&vrf, wildcard, DATA);
        far.assert_bogus(BogusReason::NoProof(name("c.b.a.example.")));
    }
    let uncovered = base().proof(&vrf, "b.a.example.").proved(&vrf, "*.a.example.", DATA);
    uncovered.assert_bogus(BogusReason::NotCovered(name("b.a.example.")));
    let there = base().proved(&vrf, "b.a.example.", "").proved(&vrf, "*.a.example.", DATA);
    there.assert_bogus(BogusReason::NameExists(name("b.a.example.")));
    let unmatched = base().covered_by(&vrf, "b.a.example.", 0).covered_by(&vrf, "*.a.example.", 0);
    unmatched.assert_bogus(BogusReason::NotMatched(wildcard()));
    // The types of a wildcard do not deny a name.
    with(DATA).rcode(Rcode::NXDOMAIN).assert_bogus(BogusReason::NoProof(name("c.b.a.example.")));
}

#[test]
fn unsigned_delegations_are_matched_or_opted_out() {
    let vrf = Vrf::first();
    let d = || name("d.example.");
    let refer = || {
        let base = Reply::of(&vrf, "www.d.example.", Rtype::A);
        base.unsigned(Section::Authority, "d.example.", Rtype::NS, "ns.test.")
    };
    let referral = ProvedAnswer::Referral { child: d(), has_ds: false };
    refer().proved(&vrf, "d.example.", "NS").assert_insecure(InsecureReason::UnsignedDelegation, &referral);
    refer().proved(&vrf, "d.example.", "").assert_bogus(BogusReason::NotADelegation(d()));
    refer().proved(&vrf, "d.example.", "NS SOA RRSIG").assert_bogus(BogusReason::ChildSideRecord(d()));
    refer().proved(&vrf, "d.example.", "NS DS RRSIG").assert_bogus(BogusReason::SignedDelegation(d()));
    let span = || refer().proved(&vrf, "example.", APEX);
    span().covered_by(&vrf, "d.example.", OPT_OUT).assert_insecure(InsecureReason::OptOut, &referral);
    span().covered_by(&vrf, "d.example.", 0).assert_bogus(BogusReason::NotOptOut(d()));
    span().assert_bogus(BogusReason::NoProof(d()));
    refer().covered_by(&vrf, "d.example.", OPT_OUT).assert_bogus(BogusReason::NoProof(d()));

    let ds = || Reply::of(&vrf, "d.example.", Rtype::DS).soa().proved(&vrf, "example.", APEX);
    ds().covered_by(&vrf, "d.example.", OPT_OUT)
        .assert_insecure(InsecureReason::OptOut, &ProvedAnswer::NoData);
    ds().covered_by(&vrf, "d.example.", 0).assert_bogus(BogusReason::NotOptOut(d()));
    // An opt-out span denies only DS. All other types would be in the chain.
    let other = Reply { rtype: Rtype::A, ..ds().covered_by(&vrf, "d.example.", OPT_OUT) };
    other.assert_bogus(BogusReason::NotMatched(d()));
    // The flag of the encloser's record is irrelevant.
    let flagged = vrf.matching("example.", APEX).flags(OPT_OUT);
    let flagged = Reply::of(&vrf, "d.example.", Rtype::DS).soa().nsec5(&flagged).proof(&vrf, "example.");
    flagged.covered_by(&vrf, "d.example.", 0).assert_bogus(BogusReason::NotOptOut(d()));
    let below = Reply::of(&vrf, "e.d.example.", Rtype::DS).soa().proved(&vrf, "d.example.", "NS");
    below.covered_by(&vrf, "e.d.example.", OPT_OUT).assert_bogus(BogusReason::ParentSideRecord(d()));
}

/// RFC 5155 §9.2 applies to NSEC5 too.
#[test]
fn opt_out_makes_insecure() {
    let (vrf, opt_out) = (Vrf::first(), InsecureReason::OptOut);
    let base = nxdomain(&vrf, "b.a.example.").proved(&vrf, "a.example.", DATA);
    base.clone().covered_by(&vrf, "b.a.example.", 0).assert_secure(&ProvedAnswer::NxDomain);
    base.covered_by(&vrf, "b.a.example.", OPT_OUT).assert_insecure(opt_out, &ProvedAnswer::NxDomain);
    let answer =
        || Reply::of(&vrf, "b.a.example.", Rtype::A).expanded("b.a.example.", Rtype::A, "192.0.2.1", 2);
    answer().covered_by(&vrf, "b.a.example.", 0).assert_secure(&ProvedAnswer::WildcardAnswer);
    answer()
        .covered_by(&vrf, "b.a.example.", OPT_OUT)
        .assert_insecure(opt_out, &ProvedAnswer::WildcardAnswer);
    let nodata = Reply::of(&vrf, "b.a.example.", Rtype::AAAA).soa().proved(&vrf, "*.a.example.", DATA);
    nodata.covered_by(&vrf, "b.a.example.", OPT_OUT).assert_insecure(opt_out, &ProvedAnswer::WildcardNoData);
}

/// Step 2: a record that is not a chain record is ignored.
#[test]
fn records_that_do_not_count_are_passed_over() {
    let (vrf, rtype) = (Vrf::first(), Rtype::NSEC5);
    let base = || nxdomain(&vrf, "b.example.").proved(&vrf, "example.", APEX).proof(&vrf, "b.example.");
    let made = || vrf.covering("b.example.");
    base().nsec5(&made()).assert_secure(&ProvedAnswer::NxDomain);
    for flags in [4, 5, 0x80] {
        base().nsec5(&made().flags(flags)).assert_bogus(BogusReason::UnknownFlags { rtype, flags });
    }
    for octets in [0, 20, 31, 33] {
        let other = Made { next: vec![0xff; octets], ..made() };
        base().nsec5(&other).assert_bogus(BogusReason::NextHashLength { rtype, octets });
    }
    let at = |owner: Name| base().raw_signed(Section::Authority, &owner, rtype, &[made().rdata()], |_| {});
    let below = Name::prepend(&chain::label(&made().hash), name("a.example.").view()).unwrap();
    for owner in [below, name("b.example."), name("example.")] {
        at(owner).assert_bogus(BogusReason::OwnerNotAHash(rtype));
    }
    let (owner, rdata) = (made().owner(), [made().rdata()]);
    let signed =
        |change: fn(&mut Rrsig<'_>)| base().raw_signed(Section::Authority, &owner, rtype, &rdata, change);
    signed(|_| {}).assert_secure(&ProvedAnswer::NxDomain);
    signed(|fields| fields.labels = 1)
        .assert_bogus(BogusReason::ExpandedFromWildcard { owner: owner.clone(), rtype });
    signed(|fields| fields.expiration = NOW - 1)
        .assert_bogus(BogusReason::Expired { covered: rtype, expiration: NOW - 1 });
    let unsigned = base().raw(Section::Authority, &owner, rtype, &rdata);
    unsigned.assert_bogus(BogusReason::NoSignature { owner: owner.clone(), rtype });
    let test = key("test.", 257, Algorithm(231), 1);
    let foreign = sign_by(&test, &owner, rtype, &rdata, |_| {});
    let foreign = base().raw(Section::Authority, &owner, rtype, &rdata).raw(
        Section::Authority,
        &owner,
        Rtype::RRSIG,
        &[foreign],
    );
    foreign.assert_bogus(BogusReason::WrongSigner { covered: rtype, signer: name("test.") });
    let two = [made().rdata(), made().flags(OPT_OUT).rdata()];
    let two = base().raw_signed(Section::Authority, &owner, rtype, &two, |_| {});
    two.assert_bogus(BogusReason::SeveralDenials(rtype));
    let malformed = [[made().rdata(), vec![0, 0]].concat()];
    let malformed = base().raw_signed(Section::Authority, &owner, rtype, &malformed, |_| {});
    malformed.assert_bogus(BogusReason::MalformedDenial(rtype));
    // Together with a valid record it has no effect.
    base().nsec5(&made()).nsec5(&vrf.covering("z.example.").flags(4)).assert_secure(&ProvedAnswer::NxDomain);
}

/// Step 3: the proof is for its owner and by a key of the zone.
#[test]
fn a_proof_is_of_its_owner() {
    let vrf = Vrf::first();
    let sound = nxdomain(&vrf, "b.example.").proved(&vrf, "example.", APEX).covered_by(&vrf, "b.example.", 0);
    sound.assert_secure(&ProvedAnswer::NxDomain);
    let proof = || proof_of("b.example.");
    let of_another = vrf.proof_rdata("c.example.");
    let moved = sound.clone().altered(proof(), |record| record.rdata.clone_from(&of_another));
    moved.assert_bogus(BogusReason::BadProof(name("b.example.")));
    let tag = vrf.record.tag().wrapping_add(1);
    let unknown =
        sound.clone().altered(proof(), |record| record.rdata[..2].copy_from_slice(&tag.to_be_bytes()));
    unknown.assert_bogus(BogusReason::UnknownProofKey(tag));
    let short = sound.clone().altered(proof(), |record| record.rdata.truncate(1));
    short.assert_bogus(BogusReason::MalformedDenial(Rtype::NSEC5PROOF));
    for length in [2, 81, 83] {
        let cut = sound.clone().altered(proof(), |record| record.rdata.resize(length, 0));
        cut.assert_bogus(BogusReason::BadProof(name("b.example.")));
    }
    // Names are proved in canonical form, regardless of their case.
    let upper = sound.altered(proof(), |record| record.owner = name("B.EXAMPLE."));
    Reply { name: name("b.ExAmPlE."), ..upper }.assert_secure(&ProvedAnswer::NxDomain);
}

/// Step 4: during a rollover, a proof by one key gives a random position in the chain of the other
/// key. Without this check, it would deny existing names.
#[test]
fn a_proof_is_used_with_records_of_its_own_key_alone() {
    let (one, two) = (Vrf::first(), Vrf::new(VrfAlgorithm::EDWARDS25519_SHA512_ELL2, 8));
    let roll = |reply: Reply| {
        let nsec5_keys = vec![one.record.rdata().to_vec(), two.record.rdata().to_vec()];
        Reply { nsec5_keys, ..reply }
    };
    let apex = || roll(nxdomain(&one, "b.example.")).proved(&one, "example.", APEX);
    apex().covered_by(&one, "b.example.", 0).assert_secure(&ProvedAnswer::NxDomain);
    // Each name by its own key, with records of that key.
    apex().covered_by(&two, "b.example.", 0).assert_secure(&ProvedAnswer::NxDomain);
    // The record would cover the hash of the other key; this is the only error.
    let other = Made { tag: one.record.tag(), ..two.covering("b.example.") };
    apex()
        .nsec5(&other)
        .proof(&two, "b.example.")
        .assert_bogus(BogusReason::ProofKeyMismatch(name("b.example.")));
    let sound = apex().nsec5(&Made { tag: two.record.tag(), ..other }).proof(&two, "b.example.");
    sound.assert_secure(&ProvedAnswer::NxDomain);
    let other = Made { tag: two.record.tag(), ..one.matching("b.example.", DATA) };
    let nodata = || roll(Reply::of(&one, "b.example.", Rtype::AAAA)).soa();
    nodata()
        .nsec5(&other)
        .proof(&one, "b.example.")
        .assert_bogus(BogusReason::ProofKeyMismatch(name("b.example.")));
    nodata().proved(&one, "b.example.", DATA).assert_secure(&ProvedAnswer::NoData);
    // One proof for each chain: the proof that leads to a record is used.
    let both = nodata().proof(&two, "b.example.").proved(&one, "b.example.", DATA);
    both.assert_secure(&ProvedAnswer::NoData);
}

/// RDATA with the same tag: the tag is a sum of words in any order.
fn same_tag(rdata: &[u8]) -> Vec<u8> {
    let mut other = rdata.to_vec();
    other[2..6].rotate_left(2);
    assert_ne!(other, rdata);
    other
}

/// Step 1 and the limit of keys: without a usable key, denials are Bogus, and answers are not
/// affected.
#[test]
fn what_the_set_of_keys_must_be() {
    let vrf = Vrf::first();
    let denial =
        nxdomain(&vrf, "b.example.").proved(&vrf, "example.", APEX).covered_by(&vrf, "b.example.", 0);
    let answer = Reply::of(&vrf, "b.example.", Rtype::A).answer("b.example.", Rtype::A, "192.0.2.1");
    let known = vrf.record.rdata().to_vec();
    let other = |seed| Vrf::new(VrfAlgorithm::EDWARDS25519_SHA512_TAI, seed).record.rdata().to_vec();
    let unknown = vec![99, 1, 2, 3];
    let twin = same_tag(&known);
    let cases: [(Vec<Vec<u8>>, Option<BogusReason>); 9] = [
        (vec![known.clone()], None),
        (vec![known.clone(), unknown.clone()], None),
        (vec![known.clone(), known.clone()], None),
        (vec![known.clone(), other(1), other(2), other(3)], None),
        (vec![known.clone(), other(1), other(2), other(3), other(4)], Some(BogusReason::TooManyNsec5Keys(5))),
        (vec![], Some(BogusReason::NoNsec5Key)),
        (vec![unknown], Some(BogusReason::NoUsableNsec5Key)),
        (vec![known[..20].to_vec()], Some(BogusReason::NoUsableNsec5Key)),
        (vec![known, twin], Some(BogusReason::SameNsec5Tag(vrf.record.tag()))),
    ];
    for (nsec5_keys, reason) in cases {
        Reply { nsec5_keys: nsec5_keys.clone(), ..answer.clone() }.assert_secure(&ProvedAnswer::Answer);
        let denial = Reply { nsec5_keys, ..denial.clone() };
        match reason {
            None => drop(denial.assert_secure(&ProvedAnswer::NxDomain)),
            Some(reason) => denial.assert_bogus(reason),
        }
    }
}

/// Step 1: the NSEC5KEY RRset is itself Secure.
#[test]
fn keys_are_learnt_from_a_secure_answer_alone() {
    let vrf = Vrf::first();
    let denial =
        nxdomain(&vrf, "b.example.").proved(&vrf, "example.", APEX).covered_by(&vrf, "b.example.", 0);
    let apex = name("example.");
    let rdatas = [vrf.record.rdata().to_vec()];
    let base = || Reply::to("example.", Rtype::NSEC5KEY).by(&denial.signer);
    let good = base().raw_signed(Section::Answer, &apex, Rtype::NSEC5KEY, &rdatas, |_| {});
    let unsigned = base().raw(Section::Answer, &apex, Rtype::NSEC5KEY, &rdatas);
    let learn = |reply: &Reply| {
        let mut keys = trust(&denial.signer);
        let learnt = keys.learn_nsec5_keys(&reply.message(), NOW, &mut Budget::default()).status;
        (learnt, denial.validate_with(&keys, NOW, &mut Budget::default()).status)
    };
    assert_eq!(learn(&good), (SecurityStatus::Secure, SecurityStatus::Secure));
    let no_signature = BogusReason::NoSignature { owner: apex, rtype: Rtype::NSEC5KEY };
    assert_eq!(
        learn(&unsigned),
        (SecurityStatus::Bogus(no_signature), SecurityStatus::Bogus(BogusReason::NoNsec5Key))
    );
}

/// NSEC5 records are valid only under alias algorithm numbers. Under these numbers, other
/// mechanisms are valid too.
#[test]
fn nsec5_is_signed_under_aliases() {
    let vrf = Vrf::first();
    let plain = signer(Algorithm::ED25519);
    let sound = |signer: &Arc<KeyPair>| {
        let base = nxdomain(&vrf, "b.example.").by(signer);
        let base = Reply { records: Vec::new(), ..base }.proved(&vrf, "example.", APEX);
        base.covered_by(&vrf, "b.example.", 0)
    };
    sound(&signer(Algorithm(231))).assert_secure(&ProvedAnswer::NxDomain);
    sound(&plain).assert_bogus(BogusReason::NotAliasAlgorithm(Algorithm::ED25519));
    // If both numbers have signatures, the one with the alias number is used.
    let alias = signer(Algorithm(231));
    let mut both = sound(&plain);
    for record in both.records.clone().iter().filter(|record| record.rtype == Rtype::NSEC5) {
        let signature =
            sign_by(&alias, &record.owner, Rtype::NSEC5, std::slice::from_ref(&record.rdata), |_| {});
        both = both.raw(Section::Authority, &record.owner, Rtype::RRSIG, &[signature]);
    }
    let dnskeys = [plain.dnskey_rdata(), alias.dnskey_rdata()];
    let mut keys =
        TrustedKeys::new(&name("example."), dnskeys.iter().map(Vec::as_slice), &ValidationLimits::default());
    keys.set_nsec5_keys([vrf.record.rdata()], &ValidationLimits::default());
    let validation = both.validate_with(&keys, NOW, &mut Budget::default());
    assert_eq!(
        (validation.status, validation.proved),
        (SecurityStatus::Secure, Some(ProvedAnswer::NxDomain))
    );

    let nsec = Reply::to("b.example.", Rtype::A).by(&alias).rcode(Rcode::NXDOMAIN);
    nsec.nsec("example.", "example.", "NS SOA RRSIG NSEC").assert_secure(&ProvedAnswer::NxDomain);
}

#[test]
fn records_of_two_mechanisms_are_refused() {
    let vrf = Vrf::first();
    let sound = nxdomain(&vrf, "b.example.").proved(&vrf, "example.", APEX).covered_by(&vrf, "b.example.", 0);
    sound.assert_secure(&ProvedAnswer::NxDomain);
    sound.nsec("example.", "example.", "NS SOA RRSIG NSEC").assert_bogus(BogusReason::MixedDenial);
}

/// Step 5: the validator tries two more proofs than necessary, and at most four in one response.
#[test]
fn proofs_have_a_budget() {
    let vrf = Vrf::first();
    let next = "b.example.";
    let forged = |change: u8| {
        let mut rdata = vrf.proof_rdata(next);
        rdata[2] ^= change;
        rdata
    };
    // In canonical order the valid proof follows those with a lower first octet.
    let good = forged(0);
    let beside = |count: usize| -> Vec<Vec<u8>> {
        let mut rdatas: Vec<Vec<u8>> = (1..=255).map(forged).filter(|rdata| *rdata < good).collect();
        assert!(rdatas.len() >= 3, "another name, please");
        rdatas.truncate(count);
        rdatas.push(good.clone());
        rdatas
    };
    let reply = |count| {
        let base = nxdomain(&vrf, next).proved(&vrf, "example.", APEX).nsec5(&vrf.covering(next));
        base.raw(Section::Authority, &name(next), Rtype::NSEC5PROOF, &beside(count))
    };
    assert_eq!(reply(0).assert_secure(&ProvedAnswer::NxDomain).work.proofs, 2);
    assert_eq!(reply(2).assert_secure(&ProvedAnswer::NxDomain).work.proofs, 4);
    reply(3).assert_bogus(BogusReason::BadProof(name(next)));

    // Four wildcards on the path, each with a separate proof. A fifth exceeds the limit.
    let chain = |count: usize| {
        let mut reply = Reply::of(&vrf, "x.w0.example.", Rtype::A);
        for step in 0..count {
            let owner = format!("x.w{step}.example.");
            let target = format!("x.w{}.example.", step + 1);
            reply = reply.expanded(&owner, Rtype::CNAME, &target, 2).covered_by(&vrf, &owner, 0);
        }
        reply.answer(&format!("x.w{count}.example."), Rtype::A, "192.0.2.1")
    };
    assert_eq!(chain(4).assert_secure(&ProvedAnswer::Answer).work.proofs, 4);
    chain(5).assert_undecided(IndeterminateReason::Limit(Limit::Proofs));
    // Twelve proofs for one query, regardless of the number of responses.
    let mut keys = trust(&chain(0).signer);
    keys.set_nsec5_keys([vrf.record.rdata()], &ValidationLimits::default());
    let mut budget = Budget::default();
    for _ in 0..3 {
        assert_eq!(chain(4).validate_with(&keys, NOW, &mut budget).status, SecurityStatus::Secure);
    }
    let over = chain(1).validate_with(&keys, NOW, &mut budget);
    assert_eq!(over.status, SecurityStatus::Indeterminate(IndeterminateReason::Limit(Limit::Proofs)));
    assert_eq!(over.work.proofs, 0);
}

#[test]
fn proofs_that_were_used_are_told_from_those_that_were_not() {
    let vrf = Vrf::first();
    let base = nxdomain(&vrf, "b.a.example.").proved(&vrf, "a.example.", DATA);
    let sound = base.covered_by(&vrf, "b.a.example.", 0).proof(&vrf, "stray.example.");
    let of_proofs = |reply: &Reply| -> Vec<(String, RrsetStatus, u32)> {
        let rrsets = reply.validate().rrsets.into_iter().filter(|rrset| rrset.rtype == Rtype::NSEC5PROOF);
        rrsets.map(|rrset| (rrset.owner.to_string(), rrset.status, rrset.ttl)).collect()
    };
    sound.assert_secure(&ProvedAnswer::NxDomain);
    // The TTL of proofs is not signed. The NSEC5 records that they lead to limit it.
    for (said, kept) in [(TTL, TTL), (5, 5), (u32::MAX, TTL)] {
        let is_proof = |record: &Record| record.rtype == Rtype::NSEC5PROOF;
        let reply = sound.clone().altered(is_proof, |record| record.ttl = said);
        let expected = [
            ("a.example.".to_owned(), RrsetStatus::Proven, kept),
            ("b.a.example.".to_owned(), RrsetStatus::Proven, kept),
            ("stray.example.".to_owned(), RrsetStatus::Unused, said),
        ];
        assert_eq!(of_proofs(&reply), expected);
    }
    // If the response has no NSEC5 records, the validator does not verify the proofs.
    let lone = sound.without(|record| record.rtype == Rtype::NSEC5);
    assert!(of_proofs(&lone).iter().all(|(_, status, _)| *status == RrsetStatus::Unused));
}

#[test]
fn records_of_nsec3_and_nsec5_prove_a_denial_in_a_conservative_transition() {
    let vrf = Vrf::first();
    let nsec5 = nxdomain(&vrf, "b.example.").proved(&vrf, "example.", APEX).covered_by(&vrf, "b.example.", 0);
    let both = nsec5.matched("example.", APEX).covered("*.example.").covered("b.example.");
    both.assert_secure(&ProvedAnswer::NxDomain);
}
