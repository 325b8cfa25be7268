//! Denials by NSEC (RFC 4035 §5.4, RFC 6840 §4), including minimally covering records (RFC 4470).

use super::*;

impl Reply {
    pub(super) fn nsec(self, owner: &str, next: &str, types: &str) -> Self {
        self.nsec_as(owner, next, types, |_| {})
    }

    fn nsec_as(self, owner: &str, next: &str, types: &str, change: impl Fn(&mut Rrsig<'_>)) -> Self {
        let rdata = [name(next).wire(), &map(types)].concat();
        self.raw_signed(Section::Authority, &name(owner), Rtype::NSEC, &[rdata], change)
    }
}

const APEX: &str = "NS SOA RRSIG NSEC DNSKEY";
const DATA: &str = "A RRSIG NSEC";
const CUT: &str = "NS RRSIG NSEC";

fn nxdomain(question: &str) -> Reply {
    Reply::to(question, Rtype::A).rcode(Rcode::NXDOMAIN).soa()
}

fn nodata(question: &str, rtype: Rtype) -> Reply {
    Reply::to(question, rtype).soa()
}

/// One record covers the name and one covers the wildcard, or one record covers both.
#[test]
fn a_name_and_its_wildcard_are_covered() {
    let cover = |reply: Reply| reply.nsec("a.example.", "c.example.", DATA);
    let wildcard = |reply: Reply| reply.nsec("example.", "a.example.", APEX);
    let b = || nxdomain("b.example.");
    let validation = wildcard(cover(b())).assert_secure(&ProvedAnswer::NxDomain);
    assert_eq!((validation.rcode, validation.work.signatures), (Rcode::NXDOMAIN, 3));
    nxdomain("b.example.").nsec("example.", "example.", APEX).assert_secure(&ProvedAnswer::NxDomain);
    let last = nxdomain("z.example.").nsec("example.", "a.example.", APEX);
    last.clone().nsec("c.example.", "example.", DATA).assert_secure(&ProvedAnswer::NxDomain);

    wildcard(b()).assert_bogus(BogusReason::NotCovered(name("b.example.")));
    cover(b()).assert_bogus(BogusReason::WildcardNotDenied(name("*.example.")));
    last.nsec("c.example.", "d.example.", DATA).assert_bogus(BogusReason::NotCovered(name("z.example.")));
    // The wildcard exists as an empty non-terminal.
    let wild = cover(b()).nsec("example.", "*.example.", APEX);
    wild.assert_bogus(BogusReason::WildcardNotDenied(name("*.example.")));
    wild.nsec("*.example.", "a.example.", DATA).assert_bogus(BogusReason::WildcardExists(name("*.example.")));
    let empty = cover(b()).nsec("example.", "x.*.example.", APEX);
    empty.assert_bogus(BogusReason::WildcardExists(name("*.example.")));
    // The name exists as an empty non-terminal.
    let there = wildcard(b()).nsec("b.example.", "c.example.", DATA);
    there.assert_bogus(BogusReason::NameExists(name("b.example.")));
    let empty = wildcard(b()).nsec("a.example.", "x.b.example.", DATA);
    empty.assert_bogus(BogusReason::NameExists(name("b.example.")));
}

/// A denial needs no SOA RRset. An SOA RRset limits the time for which the denial is valid, and
/// must be signed.
#[test]
fn a_soa_rrset_beside_a_denial_is_verified() {
    let sound = nxdomain("b.example.").nsec("example.", "example.", APEX);
    let (soa, tag) = (|| is("example.", Rtype::SOA), sound.signer.tag());
    sound.assert_secure(&ProvedAnswer::NxDomain);
    sound.clone().without(soa()).assert_secure(&ProvedAnswer::NxDomain);
    let unsigned = sound.clone().without(is_signature("example.", Rtype::SOA));
    unsigned.assert_bogus(BogusReason::NoSignature { owner: name("example."), rtype: Rtype::SOA });
    let forged = sound.altered(soa(), |record| record.rdata[20] ^= 1);
    forged.assert_bogus(BogusReason::BadSignature { covered: Rtype::SOA, tag });
}

/// The closest encloser is the longest common ancestor of the name and one end of the span.
#[test]
fn the_wildcard_is_that_of_the_closest_encloser() {
    let deep = || nxdomain("x.b.c.example.").nsec("a.b.c.example.", "d.example.", DATA);
    deep().assert_bogus(BogusReason::WildcardNotDenied(name("*.b.c.example.")));
    deep().nsec("b.c.example.", "a.b.c.example.", DATA).assert_secure(&ProvedAnswer::NxDomain);
    deep()
        .nsec("c.example.", "b.c.example.", DATA)
        .assert_bogus(BogusReason::WildcardNotDenied(name("*.b.c.example.")));
}

/// RFC 6840 §4.1, RFC 6672 §5.3.4.1: records of the parent prove nothing about names below a zone
/// cut or a DNAME.
#[test]
fn records_of_cuts_and_dnames_say_nothing_of_what_is_below() {
    let with = |types| nxdomain("b.a.example.").nsec("a.example.", "c.example.", types);
    with(DATA).assert_secure(&ProvedAnswer::NxDomain);
    with("NS SOA RRSIG NSEC").assert_secure(&ProvedAnswer::NxDomain);
    with(CUT).assert_bogus(BogusReason::ParentSideRecord(name("a.example.")));
    with("A DNAME RRSIG NSEC").assert_bogus(BogusReason::BelowDname(name("a.example.")));
    // The same rule for the wildcard.
    let wildcard = |types| {
        nxdomain("b.a.example.").nsec("a.a.example.", "c.example.", DATA).nsec(
            "a.example.",
            "a.a.example.",
            types,
        )
    };
    wildcard(DATA).assert_secure(&ProvedAnswer::NxDomain);
    wildcard(CUT).assert_bogus(BogusReason::ParentSideRecord(name("a.example.")));
    // The same rule for an empty non-terminal, and for a closer match than a wildcard.
    let empty = |types| nodata("e.a.example.", Rtype::A).nsec("a.example.", "x.e.a.example.", types);
    empty(DATA).assert_secure(&ProvedAnswer::NoData);
    empty(CUT).assert_bogus(BogusReason::ParentSideRecord(name("a.example.")));
    let closer = |types| {
        Reply::to("b.a.example.", Rtype::A).expanded("b.a.example.", Rtype::A, "192.0.2.1", 1).nsec(
            "example.",
            "z.example.",
            types,
        )
    };
    closer(APEX).assert_secure(&ProvedAnswer::WildcardAnswer);
    let under = |types| {
        Reply::to("b.a.example.", Rtype::A).expanded("b.a.example.", Rtype::A, "192.0.2.1", 2).nsec(
            "a.example.",
            "z.example.",
            types,
        )
    };
    under(DATA).assert_secure(&ProvedAnswer::WildcardAnswer);
    under(CUT).assert_bogus(BogusReason::ParentSideRecord(name("a.example.")));
    under("A DNAME RRSIG NSEC").assert_bogus(BogusReason::BelowDname(name("a.example.")));
}

/// If the proof is incomplete, the reason is the fault of the ignored record.
#[test]
fn records_that_do_not_count_are_passed_over() {
    let base = || nxdomain("b.example.").nsec("example.", "a.example.", APEX);
    let (owner, rtype) = (name("a.example."), Rtype::NSEC);
    let sound = || base().nsec("a.example.", "c.example.", DATA);
    sound().assert_secure(&ProvedAnswer::NxDomain);
    for next in ["c.test.", "z.", "a.example.", "0.example."] {
        let reply = base().nsec("a.example.", next, DATA);
        reply.assert_bogus(BogusReason::BadNextName(owner.clone()));
    }
    let expanded = base().nsec_as("a.example.", "c.example.", DATA, |fields| fields.labels = 1);
    expanded.assert_bogus(BogusReason::ExpandedFromWildcard { owner: owner.clone(), rtype });
    sound()
        .without(is_signature("a.example.", rtype))
        .assert_bogus(BogusReason::NoSignature { owner: owner.clone(), rtype });
    let tag = sound().signer.tag();
    let forged = sound().altered(is("a.example.", rtype), |record| record.rdata[1] = b'z');
    forged.assert_bogus(BogusReason::BadSignature { covered: rtype, tag });
    let two =
        [[name("c.example.").wire(), &map(DATA)].concat(), [name("d.example.").wire(), &map(DATA)].concat()];
    let two = base().raw_signed(Section::Authority, &owner, rtype, &two, |_| {});
    two.assert_bogus(BogusReason::SeveralDenials(rtype));
    let malformed = [[name("c.example.").wire(), &[0, 0]].concat()];
    let malformed = base().raw_signed(Section::Authority, &owner, rtype, &malformed, |_| {});
    malformed.assert_bogus(BogusReason::MalformedDenial(rtype));
    let elsewhere = nxdomain("b.example.").nsec("a.", "c.example.", DATA);
    elsewhere.assert_bogus(BogusReason::OutsideZone(name("a.")));
    let additional = sound().altered(|_| true, |record| record.section = Section::Additional);
    additional.assert_bogus(BogusReason::NoDenial);
    // Together with a valid record it has no effect.
    let beside = sound().nsec("aa.example.", "c.test.", DATA);
    beside.assert_secure(&ProvedAnswer::NxDomain);
}

#[test]
fn a_type_is_denied_by_the_record_of_the_name() {
    let with = |types| nodata("a.example.", Rtype::AAAA).nsec("a.example.", "c.example.", types);
    let a = || name("a.example.");
    with(DATA).assert_secure(&ProvedAnswer::NoData);
    with("NS SOA RRSIG NSEC").assert_secure(&ProvedAnswer::NoData);
    with("A AAAA RRSIG NSEC").assert_bogus(BogusReason::TypeExists { name: a(), rtype: Rtype::AAAA });
    with("CNAME RRSIG NSEC").assert_bogus(BogusReason::AliasExists(a()));
    with(CUT).assert_bogus(BogusReason::ParentSideRecord(a()));
    let other = nodata("a.example.", Rtype::AAAA).nsec("b.example.", "c.example.", DATA);
    other.assert_bogus(BogusReason::NotMatched(a()));
    // The name exists and is not denied.
    with(DATA).rcode(Rcode::NXDOMAIN).assert_bogus(BogusReason::NameExists(a()));
    // The query is for CNAME.
    let cname = Reply { rtype: Rtype::CNAME, ..with("CNAME RRSIG NSEC") };
    cname.assert_bogus(BogusReason::TypeExists { name: a(), rtype: Rtype::CNAME });
    // RFC 6840 §4.2: the query is for all types.
    let any = |types| Reply { rtype: Rtype::ANY, ..with(types) };
    any("RRSIG NSEC").assert_secure(&ProvedAnswer::NoData);
    any("TXT RRSIG NSEC").assert_bogus(BogusReason::TypeExists { name: a(), rtype: Rtype::TXT });
}

/// RFC 4035 §5.2, RFC 6840 §4.1 and §4.4.
#[test]
fn ds_is_denied_by_the_parents_record() {
    let with = |types| nodata("a.example.", Rtype::DS).nsec("a.example.", "c.example.", types);
    with(CUT).assert_secure(&ProvedAnswer::NoData);
    with(DATA).assert_secure(&ProvedAnswer::NoData);
    with("NS SOA RRSIG NSEC").assert_bogus(BogusReason::ChildSideRecord(name("a.example.")));
    let ds = BogusReason::TypeExists { name: name("a.example."), rtype: Rtype::DS };
    with("NS DS RRSIG NSEC").assert_bogus(ds);
    let apex = nodata("example.", Rtype::DS).nsec("example.", "a.example.", APEX);
    apex.assert_bogus(BogusReason::ChildSideRecord(name("example.")));
}

#[test]
fn an_empty_non_terminal_is_shown_by_the_next_name() {
    let with = |next| nodata("ent.example.", Rtype::A).nsec("c.example.", next, DATA);
    with("x.ent.example.").assert_secure(&ProvedAnswer::NoData);
    with("x.y.ent.example.").assert_secure(&ProvedAnswer::NoData);
    with("x.ent.example.").rcode(Rcode::NXDOMAIN).assert_bogus(BogusReason::NameExists(name("ent.example.")));
    with("f.example.").assert_bogus(BogusReason::NotMatched(name("ent.example.")));
    let ds = Reply { rtype: Rtype::DS, ..with("x.ent.example.") };
    ds.assert_secure(&ProvedAnswer::NoData);
}

/// RFC 4035 §5.3.4: the response must prove that no closer match than the wildcard exists.
#[test]
fn a_wildcard_answers_where_nothing_is_closer() {
    let reply = |question: &str| Reply::to(question, Rtype::A).expanded(question, Rtype::A, "192.0.2.1", 2);
    let b = || reply("b.w.example.");
    b().nsec("*.w.example.", "c.w.example.", DATA).assert_secure(&ProvedAnswer::WildcardAnswer);
    b().assert_bogus(BogusReason::NoDenial);
    let next = || name("b.w.example.");
    b().nsec("a.example.", "w.example.", DATA).assert_bogus(BogusReason::NotCovered(next()));
    b().nsec("*.w.example.", "x.b.w.example.", DATA).assert_bogus(BogusReason::NameExists(next()));
    b().nsec("b.w.example.", "c.w.example.", DATA).assert_bogus(BogusReason::NotCovered(next()));
    // The name itself does not exist, but one of its ancestors does.
    let deep = || reply("y.b.w.example.");
    deep().nsec("a.b.w.example.", "c.w.example.", DATA).assert_bogus(BogusReason::NotCovered(next()));
    deep().nsec("*.w.example.", "c.w.example.", DATA).assert_secure(&ProvedAnswer::WildcardAnswer);
    // A query for the wildcard name itself is not an expansion.
    let itself = Reply::to("*.w.example.", Rtype::A).answer("*.w.example.", Rtype::A, "192.0.2.1");
    itself.assert_secure(&ProvedAnswer::Answer);
    // An alias can be expanded from a wildcard too.
    let alias = Reply::to("b.w.example.", Rtype::A)
        .expanded("b.w.example.", Rtype::CNAME, "h.example.", 2)
        .answer("h.example.", Rtype::A, "192.0.2.1");
    alias.assert_bogus(BogusReason::NoDenial);
    alias.nsec("*.w.example.", "c.w.example.", "CNAME RRSIG NSEC").assert_secure(&ProvedAnswer::Answer);
}

#[test]
fn a_wildcard_has_not_the_type() {
    let with = |types| nodata("b.w.example.", Rtype::AAAA).nsec("*.w.example.", "c.w.example.", types);
    let wildcard = || name("*.w.example.");
    with(DATA).assert_secure(&ProvedAnswer::WildcardNoData);
    with("AAAA RRSIG NSEC").assert_bogus(BogusReason::TypeExists { name: wildcard(), rtype: Rtype::AAAA });
    with("CNAME RRSIG NSEC").assert_bogus(BogusReason::AliasExists(wildcard()));
    with(CUT).assert_bogus(BogusReason::ParentSideRecord(wildcard()));
    let ds = |types| Reply { rtype: Rtype::DS, ..with(types) };
    ds(DATA).assert_secure(&ProvedAnswer::WildcardNoData);
    ds("NS SOA RRSIG NSEC").assert_bogus(BogusReason::ChildSideRecord(wildcard()));
    // The name exists, with data or as an empty non-terminal; or no record proves that it does not
    // exist.
    let empty = nodata("b.w.example.", Rtype::AAAA).nsec("*.w.example.", "x.b.w.example.", DATA);
    empty.assert_secure(&ProvedAnswer::NoData);
    let not_covered = nodata("b.w.example.", Rtype::AAAA).nsec("*.w.example.", "a.w.example.", DATA);
    not_covered.assert_bogus(BogusReason::NotMatched(name("b.w.example.")));
    // Only the wildcard directly below the closest encloser matches.
    let further = nodata("b.w.example.", Rtype::AAAA).nsec("a.w.example.", "c.w.example.", DATA).nsec(
        "*.example.",
        "a.example.",
        DATA,
    );
    further.assert_bogus(BogusReason::NotMatched(name("b.w.example.")));
    // The wildcard is an empty non-terminal.
    let empty = nodata("b.w.example.", Rtype::AAAA).nsec("x.*.w.example.", "c.w.example.", DATA);
    empty.assert_bogus(BogusReason::NotMatched(name("b.w.example.")));
    empty.nsec("w.example.", "x.*.w.example.", DATA).assert_secure(&ProvedAnswer::WildcardNoData);
}

#[test]
fn an_unsigned_delegation_is_shown_by_its_own_record() {
    let with = |owner, types| {
        Reply::to("www.d.example.", Rtype::A)
            .unsigned(Section::Authority, "d.example.", Rtype::NS, "ns.test.")
            .nsec(owner, "e.example.", types)
    };
    let d = || name("d.example.");
    let referral = ProvedAnswer::Referral { child: d(), has_ds: false };
    with("d.example.", CUT).assert_insecure(InsecureReason::UnsignedDelegation, &referral);
    with("d.example.", DATA).assert_bogus(BogusReason::NotADelegation(d()));
    with("d.example.", "NS SOA RRSIG NSEC").assert_bogus(BogusReason::ChildSideRecord(d()));
    with("d.example.", "NS DS RRSIG NSEC").assert_bogus(BogusReason::SignedDelegation(d()));
    with("c.example.", CUT).assert_bogus(BogusReason::NotMatched(d()));
}

/// RFC 4470: owners and next names that do not exist are as valid as existing ones.
#[test]
fn minimal_spans_are_as_good_as_wide_ones() {
    let wildcard = |reply: Reply| reply.nsec(")\\255.example.", "*\\000.example.", "RRSIG NSEC");
    let cover = |reply: Reply| reply.nsec("a\\255.example.", "b\\000.example.", "RRSIG NSEC");
    wildcard(cover(nxdomain("b.example."))).assert_secure(&ProvedAnswer::NxDomain);
    wildcard(cover(nxdomain("x.b.example."))).assert_secure(&ProvedAnswer::NxDomain);
    wildcard(cover(nxdomain("c.example."))).assert_bogus(BogusReason::NotCovered(name("c.example.")));
    cover(nxdomain("b.example.")).assert_bogus(BogusReason::WildcardNotDenied(name("*.example.")));
    let matching = nodata("b.example.", Rtype::A).nsec("b.example.", "\\000.b.example.", "TXT RRSIG NSEC");
    matching.assert_secure(&ProvedAnswer::NoData);
}
