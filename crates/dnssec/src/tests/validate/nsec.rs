//! Denials by NSEC (RFC 4035 §5.4, RFC 6840 §4), minimally covering ones too (RFC 4470).

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

/// One record covers the name, one the wildcard; or one both.
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
    // The wildcard exists; it is an empty non-terminal.
    let wild = cover(b()).nsec("example.", "*.example.", APEX);
    wild.assert_bogus(BogusReason::WildcardNotDenied(name("*.example.")));
    wild.nsec("*.example.", "a.example.", DATA).assert_bogus(BogusReason::WildcardExists(name("*.example.")));
    let empty = cover(b()).nsec("example.", "x.*.example.", APEX);
    empty.assert_bogus(BogusReason::WildcardExists(name("*.example.")));
    // The name exists; it is an empty non-terminal.
    let there = wildcard(b()).nsec("b.example.", "c.example.", DATA);
    there.assert_bogus(BogusReason::NameExists(name("b.example.")));
    let empty = wildcard(b()).nsec("a.example.", "x.b.example.", DATA);
    empty.assert_bogus(BogusReason::NameExists(name("b.example.")));
}

/// A denial needs no SOA RRset; one that is there tells how long it holds, and must be signed.
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

/// The closest encloser is what the name has in common with an end of the span.
#[test]
fn the_wildcard_is_that_of_the_closest_encloser() {
    let deep = || nxdomain("x.b.c.example.").nsec("a.b.c.example.", "d.example.", DATA);
    deep().assert_bogus(BogusReason::WildcardNotDenied(name("*.b.c.example.")));
    deep().nsec("b.c.example.", "a.b.c.example.", DATA).assert_secure(&ProvedAnswer::NxDomain);
    deep()
        .nsec("c.example.", "b.c.example.", DATA)
        .assert_bogus(BogusReason::WildcardNotDenied(name("*.b.c.example.")));
}

/// RFC 6840 §4.1, RFC 6672 §5.3.4.1: below a cut or a DNAME the parent's records say nothing.
#[test]
fn records_of_cuts_and_dnames_say_nothing_of_what_is_below() {
    let with = |types| nxdomain("b.a.example.").nsec("a.example.", "c.example.", types);
    with(DATA).assert_secure(&ProvedAnswer::NxDomain);
    with("NS SOA RRSIG NSEC").assert_secure(&ProvedAnswer::NxDomain);
    with(CUT).assert_bogus(BogusReason::ParentSide(name("a.example.")));
    with("A DNAME RRSIG NSEC").assert_bogus(BogusReason::BelowDname(name("a.example.")));
    // The same of the wildcard alone.
    let wildcard = |types| {
        nxdomain("b.a.example.").nsec("a.a.example.", "c.example.", DATA).nsec(
            "a.example.",
            "a.a.example.",
            types,
        )
    };
    wildcard(DATA).assert_secure(&ProvedAnswer::NxDomain);
    wildcard(CUT).assert_bogus(BogusReason::ParentSide(name("a.example.")));
    // The same of an empty non-terminal, and of what would be closer than a wildcard.
    let empty = |types| nodata("e.a.example.", Rtype::A).nsec("a.example.", "x.e.a.example.", types);
    empty(DATA).assert_secure(&ProvedAnswer::NoData);
    empty(CUT).assert_bogus(BogusReason::ParentSide(name("a.example.")));
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
    under(CUT).assert_bogus(BogusReason::ParentSide(name("a.example.")));
    under("A DNAME RRSIG NSEC").assert_bogus(BogusReason::BelowDname(name("a.example.")));
}

/// A record that does not count is why the proof is not complete.
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
    expanded.assert_bogus(BogusReason::Expanded { owner: owner.clone(), rtype });
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
    // Beside a sound one it does no harm.
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
    with(CUT).assert_bogus(BogusReason::ParentSide(a()));
    let other = nodata("a.example.", Rtype::AAAA).nsec("b.example.", "c.example.", DATA);
    other.assert_bogus(BogusReason::NotMatched(a()));
    // The name is there: it is not denied.
    with(DATA).rcode(Rcode::NXDOMAIN).assert_bogus(BogusReason::NameExists(a()));
    // CNAME is asked for.
    let cname = Reply { rtype: Rtype::CNAME, ..with("CNAME RRSIG NSEC") };
    cname.assert_bogus(BogusReason::TypeExists { name: a(), rtype: Rtype::CNAME });
    // RFC 6840 §4.2: everything is asked for.
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
    with("NS SOA RRSIG NSEC").assert_bogus(BogusReason::ChildSide(name("a.example.")));
    let ds = BogusReason::TypeExists { name: name("a.example."), rtype: Rtype::DS };
    with("NS DS RRSIG NSEC").assert_bogus(ds);
    let apex = nodata("example.", Rtype::DS).nsec("example.", "a.example.", APEX);
    apex.assert_bogus(BogusReason::ChildSide(name("example.")));
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

/// RFC 4035 §5.3.4: nothing may be closer than the wildcard.
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
    // The name itself does not exist, but one above it does.
    let deep = || reply("y.b.w.example.");
    deep().nsec("a.b.w.example.", "c.w.example.", DATA).assert_bogus(BogusReason::NotCovered(next()));
    deep().nsec("*.w.example.", "c.w.example.", DATA).assert_secure(&ProvedAnswer::WildcardAnswer);
    // Asked for by its own name it is no expansion.
    let itself = Reply::to("*.w.example.", Rtype::A).answer("*.w.example.", Rtype::A, "192.0.2.1");
    itself.assert_secure(&ProvedAnswer::Answer);
    // An alias comes from a wildcard too.
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
    with(CUT).assert_bogus(BogusReason::ParentSide(wildcard()));
    let ds = |types| Reply { rtype: Rtype::DS, ..with(types) };
    ds(DATA).assert_secure(&ProvedAnswer::WildcardNoData);
    ds("NS SOA RRSIG NSEC").assert_bogus(BogusReason::ChildSide(wildcard()));
    // The name exists, as an empty non-terminal or not; or nothing says that it does not.
    let empty = nodata("b.w.example.", Rtype::AAAA).nsec("*.w.example.", "x.b.w.example.", DATA);
    empty.assert_secure(&ProvedAnswer::NoData);
    let not_covered = nodata("b.w.example.", Rtype::AAAA).nsec("*.w.example.", "a.w.example.", DATA);
    not_covered.assert_bogus(BogusReason::NotMatched(name("b.w.example.")));
    // A wildcard further away than the closest encloser matches nothing.
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
    let referral = ProvedAnswer::Referral { child: d(), signed: false };
    with("d.example.", CUT).assert_insecure(InsecureReason::UnsignedDelegation, &referral);
    with("d.example.", DATA).assert_bogus(BogusReason::NotADelegation(d()));
    with("d.example.", "NS SOA RRSIG NSEC").assert_bogus(BogusReason::ChildSide(d()));
    with("d.example.", "NS DS RRSIG NSEC").assert_bogus(BogusReason::SignedDelegation(d()));
    with("c.example.", CUT).assert_bogus(BogusReason::NotMatched(d()));
}

/// RFC 4470: neighbours that do not exist are as good as those that do.
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
