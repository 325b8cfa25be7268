//! Denials by NSEC3 (RFC 5155 §8, RFC 9276). The records span the closest neighbours, as in white
//! lies (RFC 7129, appendix B), which are as valid as the records of a complete chain.

use super::*;
use crate::denial::Nsec3Params;
use crate::denial::nsec3::chain;

const OPT_OUT: u8 = 1;

/// The fields of an NSEC3 record.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) hash: [u8; 20],
    pub(super) next: Vec<u8>,
    pub(super) algorithm: u8,
    pub(super) flags: u8,
    pub(super) params: Nsec3Params,
    pub(super) types: &'static str,
}

/// The next or previous hash value; the values form a circle.
fn stepped(hash: [u8; 20], up: bool) -> [u8; 20] {
    let mut out = hash;
    for octet in out.iter_mut().rev() {
        *octet = if up { octet.wrapping_add(1) } else { octet.wrapping_sub(1) };
        if *octet != if up { 0 } else { 255 } {
            break;
        }
    }
    out
}

impl Made {
    fn of(owner: &str, params: &Nsec3Params, types: &'static str) -> Self {
        let hash = params.hash(name(owner).view(), &mut Vec::new());
        let next = stepped(hash, true).to_vec();
        Self { hash, next, algorithm: 1, flags: 0, params: params.clone(), types }
    }

    fn matching(owner: &str, types: &'static str) -> Self {
        Self::of(owner, &Nsec3Params::default(), types)
    }

    fn covering(owner: &str) -> Self {
        let matching = Self::matching(owner, "");
        Self { hash: stepped(matching.hash, false), ..matching }
    }

    fn flags(self, flags: u8) -> Self {
        Self { flags, ..self }
    }

    fn owner(&self) -> Name {
        Name::prepend(&chain::label(&self.hash), name("example.").view()).unwrap()
    }

    fn rdata(&self) -> Vec<u8> {
        let [high, low] = self.params.iterations.to_be_bytes();
        let mut out = vec![self.algorithm, self.flags, high, low, self.params.salt.len() as u8];
        out.extend_from_slice(&self.params.salt);
        out.push(self.next.len() as u8);
        out.extend_from_slice(&self.next);
        out.extend_from_slice(&map(self.types));
        out
    }
}

impl Reply {
    fn nsec3(self, made: &Made) -> Self {
        self.raw_signed(Section::Authority, &made.owner(), Rtype::NSEC3, &[made.rdata()], |_| {})
    }

    pub(super) fn matched(self, owner: &str, types: &'static str) -> Self {
        self.nsec3(&Made::matching(owner, types))
    }

    pub(super) fn covered(self, owner: &str) -> Self {
        self.nsec3(&Made::covering(owner))
    }

    fn opted_out(self, owner: &str) -> Self {
        self.nsec3(&Made::covering(owner).flags(OPT_OUT))
    }
}

const APEX: &str = "NS SOA RRSIG DNSKEY NSEC3PARAM";
const DATA: &str = "A RRSIG";

fn nxdomain(question: &str) -> Reply {
    Reply::to(question, Rtype::A).rcode(Rcode::NXDOMAIN).soa()
}

/// RFC 5155 §8.4.
#[test]
fn a_name_is_denied_by_encloser_next_closer_and_wildcard() {
    let base = || nxdomain("b.a.example.");
    let sound = base().matched("a.example.", DATA).covered("b.a.example.").covered("*.a.example.");
    let validation = sound.assert_secure(&ProvedAnswer::NxDomain);
    assert_eq!((validation.work.signatures, validation.work.hashes), (4, 3));
    // For a deeper name, the next closer name is the same.
    let deep = Reply { name: name("z.y.b.a.example."), ..sound };
    deep.assert_secure(&ProvedAnswer::NxDomain);

    let no_encloser = base().covered("b.a.example.").covered("*.a.example.");
    no_encloser.assert_bogus(BogusReason::NoEncloser(name("b.a.example.")));
    let no_next = base().matched("a.example.", DATA).covered("*.a.example.");
    no_next.assert_bogus(BogusReason::NotCovered(name("b.a.example.")));
    let no_wildcard = base().matched("a.example.", DATA).covered("b.a.example.");
    no_wildcard.assert_bogus(BogusReason::WildcardNotDenied(name("*.a.example.")));
    let exists = no_wildcard.matched("*.a.example.", DATA);
    exists.assert_bogus(BogusReason::WildcardExists(name("*.a.example.")));
    let there = base().matched("b.a.example.", DATA).covered("*.a.example.");
    there.assert_bogus(BogusReason::NameExists(name("b.a.example.")));
    // A closer encloser exists: its next closer name and its wildcard must be denied.
    let closer = Reply { name: name("c.b.a.example."), ..base() };
    let closer = closer.matched("a.example.", DATA).matched("b.a.example.", DATA).covered("*.a.example.");
    closer.assert_bogus(BogusReason::NotCovered(name("c.b.a.example.")));
}

/// RFC 5155 §8.3, RFC 6840 §4.1.
#[test]
fn the_encloser_is_neither_a_cut_nor_a_dname() {
    let with = |types| {
        nxdomain("b.a.example.").matched("a.example.", types).covered("b.a.example.").covered("*.a.example.")
    };
    with(DATA).assert_secure(&ProvedAnswer::NxDomain);
    with("NS SOA RRSIG").assert_secure(&ProvedAnswer::NxDomain);
    with("NS DS RRSIG").assert_bogus(BogusReason::ParentSideRecord(name("a.example.")));
    with("DNAME RRSIG").assert_bogus(BogusReason::BelowDname(name("a.example.")));
}

/// The next hash of the last record is the first one. If a chain has one record, its next hash is
/// its own.
#[test]
fn spans_go_round() {
    let apex = Made::matching("example.", APEX);
    let alone = Made { next: apex.hash.to_vec(), ..apex.clone() };
    nxdomain("b.example.").nsec3(&alone).assert_secure(&ProvedAnswer::NxDomain);
    let hash = Made::matching("b.example.", "").hash;
    let wide = |from: [u8; 20], to: [u8; 20]| Made {
        hash: from,
        next: to.to_vec(),
        ..Made::matching("x.example.", "A")
    };
    let base = || nxdomain("b.example.").nsec3(&apex).covered("*.example.");
    let not_covered = || BogusReason::NotCovered(name("b.example."));
    let (low, high) = ([0; 20], [255; 20]);
    base().nsec3(&wide(low, high)).assert_secure(&ProvedAnswer::NxDomain);
    // From directly after the hash around to directly before it: everything except the hash.
    base().nsec3(&wide(stepped(hash, true), stepped(hash, false))).assert_bogus(not_covered());
    base().nsec3(&wide(stepped(hash, true), hash)).assert_bogus(not_covered());
    base().nsec3(&wide(stepped(hash, false), low)).assert_secure(&ProvedAnswer::NxDomain);
    base().nsec3(&wide(high, stepped(hash, true))).assert_secure(&ProvedAnswer::NxDomain);
    base().nsec3(&wide(high, hash)).assert_bogus(not_covered());
}

/// RFC 5155 §8.5 to §8.7.
#[test]
fn types_are_denied_by_the_record_of_name_or_wildcard() {
    let a = || name("a.example.");
    let with = |rtype, types| Reply::to("a.example.", rtype).soa().matched("a.example.", types);
    with(Rtype::AAAA, DATA).assert_secure(&ProvedAnswer::NoData);
    with(Rtype::AAAA, "").assert_secure(&ProvedAnswer::NoData);
    with(Rtype::A, DATA).assert_bogus(BogusReason::TypeExists { name: a(), rtype: Rtype::A });
    with(Rtype::A, "CNAME RRSIG").assert_bogus(BogusReason::AliasExists(a()));
    with(Rtype::A, "NS").assert_bogus(BogusReason::ParentSideRecord(a()));
    with(Rtype::DS, "NS").assert_secure(&ProvedAnswer::NoData);
    with(Rtype::DS, "NS SOA RRSIG").assert_bogus(BogusReason::ChildSideRecord(a()));
    with(Rtype::AAAA, DATA).rcode(Rcode::NXDOMAIN).assert_bogus(BogusReason::NameExists(a()));

    let wild = |types| {
        let base = Reply::to("b.a.example.", Rtype::AAAA).soa();
        base.matched("a.example.", DATA).covered("b.a.example.").matched("*.a.example.", types)
    };
    let wildcard = || name("*.a.example.");
    wild(DATA).assert_secure(&ProvedAnswer::WildcardNoData);
    wild("").assert_secure(&ProvedAnswer::WildcardNoData);
    wild("AAAA RRSIG").assert_bogus(BogusReason::TypeExists { name: wildcard(), rtype: Rtype::AAAA });
    wild("CNAME RRSIG").assert_bogus(BogusReason::AliasExists(wildcard()));
    wild("NS").assert_bogus(BogusReason::ParentSideRecord(wildcard()));
    let none =
        Reply::to("b.a.example.", Rtype::AAAA).soa().matched("a.example.", DATA).covered("b.a.example.");
    none.assert_bogus(BogusReason::NotMatched(name("b.a.example.")));
    let no_encloser =
        Reply::to("b.a.example.", Rtype::AAAA).soa().covered("b.a.example.").matched("*.a.example.", DATA);
    no_encloser.assert_bogus(BogusReason::NoEncloser(name("b.a.example.")));
}

/// RFC 5155 §8.8.
#[test]
fn a_wildcard_answers_where_the_next_closer_name_is_covered() {
    let reply = || Reply::to("c.b.a.example.", Rtype::A).expanded("c.b.a.example.", Rtype::A, "192.0.2.1", 2);
    reply().covered("b.a.example.").assert_secure(&ProvedAnswer::WildcardAnswer);
    for other in ["c.b.a.example.", "a.example.", "*.a.example."] {
        reply().covered(other).assert_bogus(BogusReason::NotCovered(name("b.a.example.")));
    }
    reply().matched("b.a.example.", "").assert_bogus(BogusReason::NotCovered(name("b.a.example.")));
}

/// RFC 5155 §6 and §9.2: if an unsigned delegation may exist at the name, the denial is not Secure.
#[test]
fn opt_out_makes_insecure() {
    let opt_out = InsecureReason::OptOut;
    let base = || nxdomain("b.a.example.").matched("a.example.", DATA);
    base()
        .opted_out("b.a.example.")
        .covered("*.a.example.")
        .assert_insecure(opt_out, &ProvedAnswer::NxDomain);
    // Only the flag of the record that covers the next closer name is relevant.
    base().covered("b.a.example.").opted_out("*.a.example.").assert_secure(&ProvedAnswer::NxDomain);
    let flagged = Made::matching("a.example.", DATA).flags(OPT_OUT);
    nxdomain("b.a.example.")
        .nsec3(&flagged)
        .covered("b.a.example.")
        .covered("*.a.example.")
        .assert_secure(&ProvedAnswer::NxDomain);
    // If a record with opt-out also covers the next closer name, the denial is Insecure, although
    // another covering record has no opt-out.
    let wide = Made { hash: [0; 20], next: vec![255; 20], ..Made::covering("b.a.example.").flags(OPT_OUT) };
    base().covered("b.a.example.").nsec3(&wide).assert_insecure(opt_out, &ProvedAnswer::NxDomain);

    let answer = Reply::to("b.a.example.", Rtype::A).expanded("b.a.example.", Rtype::A, "192.0.2.1", 2);
    answer.opted_out("b.a.example.").assert_insecure(opt_out, &ProvedAnswer::WildcardAnswer);
    let nodata =
        Reply::to("b.a.example.", Rtype::AAAA).soa().matched("a.example.", DATA).opted_out("b.a.example.");
    nodata.assert_insecure(opt_out, &ProvedAnswer::NoData);
    // A name that is omitted in the chain does not match the wildcard, whatever types the wildcard
    // has.
    nodata.clone().matched("*.a.example.", "AAAA RRSIG").assert_insecure(opt_out, &ProvedAnswer::NoData);
    nodata.matched("*.a.example.", DATA).assert_insecure(opt_out, &ProvedAnswer::WildcardNoData);
}

/// RFC 5155 §8.6 and §8.9.
#[test]
fn unsigned_delegations_are_matched_or_opted_out() {
    let d = || name("d.example.");
    let refer = || {
        Reply::to("www.d.example.", Rtype::A).unsigned(
            Section::Authority,
            "d.example.",
            Rtype::NS,
            "ns.test.",
        )
    };
    let referral = ProvedAnswer::Referral { child: d(), has_ds: false };
    refer().matched("d.example.", "NS").assert_insecure(InsecureReason::UnsignedDelegation, &referral);
    refer().matched("d.example.", "").assert_bogus(BogusReason::NotADelegation(d()));
    refer().matched("d.example.", "NS SOA RRSIG").assert_bogus(BogusReason::ChildSideRecord(d()));
    refer().matched("d.example.", "NS DS RRSIG").assert_bogus(BogusReason::SignedDelegation(d()));
    let span = || refer().matched("example.", APEX);
    span().opted_out("d.example.").assert_insecure(InsecureReason::OptOut, &referral);
    span().covered("d.example.").assert_bogus(BogusReason::NotOptOut(d()));
    span().assert_bogus(BogusReason::NotCovered(d()));
    refer().opted_out("d.example.").assert_bogus(BogusReason::NoEncloser(d()));
    let ds = || Reply::to("d.example.", Rtype::DS).soa().matched("example.", APEX);
    ds().opted_out("d.example.").assert_insecure(InsecureReason::OptOut, &ProvedAnswer::NoData);
    ds().covered("d.example.").assert_bogus(BogusReason::NotMatched(d()));
    // The encloser must not be a zone cut to another zone.
    let below =
        Reply::to("e.d.example.", Rtype::DS).soa().matched("d.example.", "NS").opted_out("e.d.example.");
    below.assert_bogus(BogusReason::ParentSideRecord(d()));
}

/// If the proof is incomplete, the reason is the fault of the ignored record (RFC 5155 §8.1, §8.2).
#[test]
fn records_that_do_not_count_are_passed_over() {
    let (rtype, base) =
        (Rtype::NSEC3, || nxdomain("b.example.").matched("example.", APEX).covered("*.example."));
    let made = || Made::covering("b.example.");
    base().nsec3(&made()).assert_secure(&ProvedAnswer::NxDomain);
    base().nsec3(&Made { algorithm: 2, ..made() }).assert_bogus(BogusReason::UnknownHash(2));
    for flags in [2, 3, 0x80] {
        base().nsec3(&made().flags(flags)).assert_bogus(BogusReason::UnknownFlags { rtype, flags });
    }
    for octets in [19, 21] {
        let other = Made { next: vec![9; octets], ..made() };
        base().nsec3(&other).assert_bogus(BogusReason::NextHashLength { rtype, octets });
    }
    let rdata = || [made().rdata()];
    let at = |owner: Name| base().raw_signed(Section::Authority, &owner, rtype, &rdata(), |_| {});
    let below = Name::prepend(&chain::label(&made().hash), name("a.example.").view()).unwrap();
    for owner in [below, name("example."), name("b.example."), name(&"w".repeat(32))] {
        at(owner).assert_bogus(BogusReason::OwnerNotAHash(rtype));
    }
    let owner = made().owner();
    let expanded = base().raw_signed(Section::Authority, &owner, rtype, &rdata(), |fields| fields.labels = 1);
    expanded.assert_bogus(BogusReason::ExpandedFromWildcard { owner: owner.clone(), rtype });
    let two = [made().rdata(), made().flags(OPT_OUT).rdata()];
    let two = base().raw_signed(Section::Authority, &owner, rtype, &two, |_| {});
    two.assert_bogus(BogusReason::SeveralDenials(rtype));
    let unsigned = base().raw(Section::Authority, &owner, rtype, &rdata());
    unsigned.assert_bogus(BogusReason::NoSignature { owner: owner.clone(), rtype });
    let malformed = [[made().rdata(), vec![0, 0]].concat()];
    let malformed = base().raw_signed(Section::Authority, &owner, rtype, &malformed, |_| {});
    malformed.assert_bogus(BogusReason::MalformedDenial(rtype));
    // Together with a valid record it has no effect.
    let other = Made { algorithm: 2, ..Made::covering("z.example.") };
    base().nsec3(&made()).nsec3(&other).assert_secure(&ProvedAnswer::NxDomain);
}

/// RFC 5155 §8.2.
#[test]
fn records_of_one_response_have_the_same_parameters() {
    let with = |params: Nsec3Params| {
        let all = Nsec3Params::default();
        let matching = Made::of("example.", &all, APEX);
        let next = Made::of("b.example.", &params, "");
        let next = Made { hash: stepped(next.hash, false), ..next };
        nxdomain("b.example.").nsec3(&matching).nsec3(&next).covered("*.example.")
    };
    with(Nsec3Params::default()).assert_secure(&ProvedAnswer::NxDomain);
    with(Nsec3Params { salt: vec![1], iterations: 0 }).assert_bogus(BogusReason::MixedParameters);
    with(Nsec3Params { salt: vec![], iterations: 1 }).assert_bogus(BogusReason::MixedParameters);
}

#[test]
fn records_of_two_mechanisms_are_refused() {
    let nsec3 =
        || nxdomain("b.example.").matched("example.", APEX).covered("*.example.").covered("b.example.");
    nsec3().assert_secure(&ProvedAnswer::NxDomain);
    let both = nsec3().nsec("example.", "example.", "NS SOA RRSIG NSEC");
    both.assert_bogus(BogusReason::MixedDenial);
    // A record without a signature is ignored.
    both.without(is_signature("example.", Rtype::NSEC)).assert_secure(&ProvedAnswer::NxDomain);
}

/// RFC 9276 §3.2: Insecure above 50 iterations and Bogus above 500, after the signature over the
/// record is verified.
#[test]
fn iterations_have_a_limit() {
    let with = |iterations| {
        let params = Nsec3Params { salt: vec![0xaa], iterations };
        let covering = |owner| {
            let made = Made::of(owner, &params, "");
            Made { hash: stepped(made.hash, false), ..made }
        };
        let apex = Made::of("example.", &params, APEX);
        nxdomain("b.example.").nsec3(&apex).nsec3(&covering("b.example.")).nsec3(&covering("*.example."))
    };
    with(0).assert_secure(&ProvedAnswer::NxDomain);
    let validation = with(50).assert_secure(&ProvedAnswer::NxDomain);
    assert_eq!((validation.work.hashes, validation.work.hash_blocks), (3, 3 * 51));
    for iterations in [51, 500] {
        let validation = with(iterations)
            .assert_insecure(InsecureReason::TooManyIterations(iterations), &ProvedAnswer::NxDomain);
        assert_eq!(validation.work.hashes, 0);
    }
    with(501).assert_bogus(BogusReason::TooManyIterations(501));
    let unsigned =
        with(51).without(|record| record.rtype == Rtype::RRSIG && record.owner != name("example."));
    let status = unsigned.validate().status;
    assert!(matches!(status, SecurityStatus::Bogus(BogusReason::NoSignature { .. })), "{status:?}");
    // A Bogus step after an Insecure step makes the answer Bogus.
    let params = Nsec3Params { salt: vec![], iterations: 51 };
    let alias = Reply::to("b.w.example.", Rtype::A)
        .expanded("b.w.example.", Rtype::CNAME, "h.example.", 2)
        .nsec3(&Made::of("example.", &params, APEX));
    let end = alias.clone().answer("h.example.", Rtype::A, "192.0.2.1");
    end.assert_insecure(InsecureReason::TooManyIterations(51), &ProvedAnswer::Answer);
    let forged = alias.unsigned(Section::Answer, "h.example.", Rtype::A, "192.0.2.1");
    forged.assert_bogus(BogusReason::NoSignature { owner: name("h.example."), rtype: Rtype::A });
}
