//! From question to answer: checks of the message, aliases, wildcards, referrals.

use super::*;
use crate::validate::{Alias, RrsetStatus};

fn alias(from: &str, to: &str, by_dname: bool) -> Alias {
    Alias { name: name(from), target: name(to), by_dname }
}

#[test]
fn what_is_no_answer_decides_nothing() {
    let reply = Reply::to("host.example.", Rtype::A).answer("host.example.", Rtype::A, "192.0.2.1");
    reply.assert_secure(&ProvedAnswer::Answer);
    let with_flags = |flags| Reply { flags, ..reply.clone() };
    with_flags(0).assert_undecided(IndeterminateReason::NotAResponse);
    with_flags(flags::QR | 0x2000).assert_undecided(IndeterminateReason::NotAResponse);
    with_flags(flags::QR | flags::TC).assert_undecided(IndeterminateReason::Truncated);
    for rcode in [Rcode::SERVFAIL, Rcode::REFUSED, Rcode::FORMERR, Rcode::NOTIMP] {
        reply.clone().rcode(rcode).assert_undecided(IndeterminateReason::Rcode(rcode));
    }
    let outside = Reply { name: name("host.test."), ..reply.clone() };
    outside.assert_undecided(IndeterminateReason::OutsideZone);
    for rtype in [Rtype::AXFR, Rtype::NXNAME, Rtype::OPT] {
        Reply { rtype, ..reply.clone() }.assert_undecided(IndeterminateReason::MetaType(rtype));
    }
    let keys = trust(&reply.signer);
    for (other, rtype) in [("other.example.", Rtype::A), ("host.example.", Rtype::AAAA)] {
        let other = name(other);
        let question = Question { name: other.view(), rtype };
        let outcome = validate(question, &reply.message(), &keys, NOW, &mut Budget::default());
        assert_eq!(outcome.status, SecurityStatus::Indeterminate(IndeterminateReason::OtherQuestion));
    }
    let lone = reply.without(|record| record.rtype == Rtype::A);
    Reply { rtype: Rtype::RRSIG, ..lone }.assert_undecided(IndeterminateReason::RrsigQuestion);
}

#[test]
fn an_answer_with_the_code_of_a_denial_is_bogus() {
    let reply = Reply::to("host.example.", Rtype::A).answer("host.example.", Rtype::A, "192.0.2.1");
    for rcode in [Rcode::NXDOMAIN, YXDOMAIN] {
        reply.clone().rcode(rcode).assert_bogus(BogusReason::RcodeNotProved(rcode));
    }
    Reply::to("host.example.", Rtype::A).rcode(YXDOMAIN).assert_bogus(BogusReason::RcodeNotProved(YXDOMAIN));
}

/// RRsets that the answer does not need are not verified, and do not change the status.
#[test]
fn strays_are_not_looked_at() {
    let reply = Reply::to("host.example.", Rtype::A)
        .answer("host.example.", Rtype::A, "192.0.2.1")
        .unsigned(Section::Answer, "bank.example.", Rtype::A, "192.0.2.66")
        .unsigned(Section::Authority, "example.", Rtype::NS, "ns.attacker.test.")
        .unsigned(Section::Additional, "host.example.", Rtype::AAAA, "2001:db8::66");
    let validation = reply.assert_secure(&ProvedAnswer::Answer);
    let unused = validation.rrsets.iter().filter(|rrset| rrset.status == RrsetStatus::Unused);
    assert_eq!((unused.count(), validation.work.signatures), (3, 1));
}

/// RFC 8482, RFC 6840 §4.2: each RRset of the name must be Secure.
#[test]
fn any_is_answered_by_secure_rrsets_alone() {
    let reply = Reply::to("host.example.", Rtype::ANY).answer("host.example.", Rtype::A, "192.0.2.1").answer(
        "host.example.",
        Rtype::AAAA,
        "2001:db8::1",
    );
    reply.assert_secure(&ProvedAnswer::Answer);
    let unsigned = reply.without(is_signature("host.example.", Rtype::AAAA));
    unsigned.assert_bogus(BogusReason::NoSignature { owner: name("host.example."), rtype: Rtype::AAAA });
}

#[test]
fn each_link_of_a_chain_of_aliases_is_verified() {
    let reply = Reply::to("a.example.", Rtype::A)
        .answer("a.example.", Rtype::CNAME, "b.example.")
        .answer("b.example.", Rtype::CNAME, "c.example.")
        .answer("c.example.", Rtype::A, "192.0.2.1");
    let validation = reply.assert_secure(&ProvedAnswer::Answer);
    let steps = [alias("a.example.", "b.example.", false), alias("b.example.", "c.example.", false)];
    assert_eq!(validation.aliases, steps);
    for (owner, rtype) in
        [("a.example.", Rtype::CNAME), ("b.example.", Rtype::CNAME), ("c.example.", Rtype::A)]
    {
        let unsigned = reply.clone().without(is_signature(owner, rtype));
        unsigned.assert_bogus(BogusReason::NoSignature { owner: name(owner), rtype });
    }
    // The query is for the alias itself.
    let itself = Reply { rtype: Rtype::CNAME, ..reply.clone() };
    assert_eq!(itself.assert_secure(&ProvedAnswer::Answer).aliases, []);
    // The omitted target is neither proved nor denied.
    let cut = reply.without(|record| record.owner == name("c.example."));
    cut.assert_secure(&ProvedAnswer::Alias { target: name("c.example.") });
}

#[test]
fn an_alias_may_lead_out_of_the_zone_or_in_circles() {
    let out = Reply::to("a.example.", Rtype::A).answer("a.example.", Rtype::CNAME, "b.test.");
    out.assert_secure(&ProvedAnswer::Alias { target: name("b.test.") });
    // After an alias to another zone, the response code applies to a name of that zone.
    out.clone().rcode(Rcode::NXDOMAIN).assert_secure(&ProvedAnswer::Alias { target: name("b.test.") });
    // Records of other zones are ignored.
    let more = out.unsigned(Section::Answer, "b.test.", Rtype::A, "192.0.2.1");
    more.assert_secure(&ProvedAnswer::Alias { target: name("b.test.") });
    let circle = Reply::to("a.example.", Rtype::A).answer("a.example.", Rtype::CNAME, "b.example.").answer(
        "b.example.",
        Rtype::CNAME,
        "a.example.",
    );
    circle.assert_secure(&ProvedAnswer::Alias { target: name("a.example.") });
}

#[test]
fn a_name_has_one_alias() {
    let two = Reply::to("a.example.", Rtype::A).answer("a.example.", Rtype::CNAME, "b.example.\nc.example.");
    two.assert_bogus(BogusReason::SeveralAliases(name("a.example.")));
    let two = Reply::to("a.d.example.", Rtype::A).answer("d.example.", Rtype::DNAME, "b.test.\nc.test.");
    two.assert_bogus(BogusReason::SeveralAliases(name("d.example.")));
}

/// RFC 6672 §5.3.1.
#[test]
fn a_synthesised_alias_is_exactly_what_the_dname_makes() {
    let base = || Reply::to("x.y.d.example.", Rtype::A).answer("d.example.", Rtype::DNAME, "t.example.");
    let made = |target| base().unsigned(Section::Answer, "x.y.d.example.", Rtype::CNAME, target);
    let end = |reply: Reply| reply.answer("x.y.t.example.", Rtype::A, "192.0.2.1");
    let validation = end(made("X.y.T.example.")).assert_secure(&ProvedAnswer::Answer);
    assert_eq!(validation.aliases, [alias("x.y.d.example.", "x.y.t.example.", true)]);
    let synthesised = |rrset: &&crate::validate::RrsetOutcome| rrset.status == RrsetStatus::Synthesised;
    assert_eq!(validation.rrsets.iter().filter(synthesised).count(), 1);
    // A resolver with the DNAME record can synthesise the CNAME record.
    end(base()).assert_secure(&ProvedAnswer::Answer);
    for forged in ["y.t.example.", "x.y.u.example.", "x.y.d.example.", "t.example."] {
        end(made(forged)).assert_bogus(BogusReason::ForgedAlias(name("x.y.d.example.")));
    }
    let unsigned = end(made("x.y.t.example.")).without(is_signature("d.example.", Rtype::DNAME));
    unsigned.assert_bogus(BogusReason::NoSignature { owner: name("d.example."), rtype: Rtype::DNAME });
    let alone = end(made("x.y.t.example.")).without(|record| record.owner == name("d.example."));
    alone.assert_bogus(BogusReason::NoSignature { owner: name("x.y.d.example."), rtype: Rtype::CNAME });
    let itself = Reply { rtype: Rtype::CNAME, ..made("x.y.t.example.") };
    itself.assert_secure(&ProvedAnswer::Answer);
    let itself = Reply { rtype: Rtype::CNAME, ..base() };
    itself.assert_secure(&ProvedAnswer::Alias { target: name("x.y.t.example.") });
}

/// RFC 6672 §3.1: the CNAME record has the TTL of the DNAME record. It is not signed, so its sender
/// can choose any TTL. Its TTL is therefore limited by that of the DNAME record, or is its own if
/// that is lower (RFC 2181 §5.2).
#[test]
fn a_synthesised_alias_is_kept_no_longer_than_its_dname() {
    let base = Reply::to("x.d.example.", Rtype::A)
        .answer("d.example.", Rtype::DNAME, "t.example.")
        .unsigned(Section::Answer, "x.d.example.", Rtype::CNAME, "x.t.example.")
        .answer("x.t.example.", Rtype::A, "192.0.2.1");
    let ttl_of = |reply: &Reply, rtype| {
        let validation = reply.assert_secure(&ProvedAnswer::Answer);
        validation.rrsets.iter().find(|rrset| rrset.rtype == rtype).unwrap().ttl
    };
    for (said, kept) in [(TTL, TTL), (0, 0), (TTL - 1, TTL - 1), (TTL + 1, TTL), (u32::MAX, TTL)] {
        let reply = base.clone().altered(is("x.d.example.", Rtype::CNAME), |record| record.ttl = said);
        assert_eq!(ttl_of(&reply, Rtype::CNAME), kept, "{said}");
    }
    // The signature limits the TTL of the DNAME record (RFC 4035 §5.3.3) and therefore that of the
    // synthesised record.
    let raised = base.altered(|record| record.owner == name("d.example."), |record| record.ttl = u32::MAX);
    let raised = raised.altered(is("x.d.example.", Rtype::CNAME), |record| record.ttl = u32::MAX);
    assert_eq!((ttl_of(&raised, Rtype::DNAME), ttl_of(&raised, Rtype::CNAME)), (TTL, TTL));
}

/// A DNAME record does not redirect its own name, and a DNAME record from a wildcard does not
/// redirect anything (RFC 6672 §2.3, §3.3).
#[test]
fn a_dname_redirects_what_is_below_it_alone() {
    let beside = Reply::to("d.example.", Rtype::A).answer("d.example.", Rtype::DNAME, "t.example.").unsigned(
        Section::Answer,
        "d.example.",
        Rtype::CNAME,
        "t.example.",
    );
    beside.assert_bogus(BogusReason::NoSignature { owner: name("d.example."), rtype: Rtype::CNAME });
    let expanded = Reply::to("x.d.example.", Rtype::A)
        .expanded("d.example.", Rtype::DNAME, "t.example.", 1)
        .unsigned(Section::Answer, "x.d.example.", Rtype::CNAME, "x.t.example.");
    expanded
        .assert_bogus(BogusReason::ExpandedFromWildcard { owner: name("d.example."), rtype: Rtype::DNAME });
}

#[test]
fn a_dname_may_make_too_long_a_name() {
    let label = "x".repeat(63);
    // 3 × 64 + 48 octets, and 11 octets of "d.example."; "target" has five octets more than "d".
    let question = format!("{label}.{label}.{label}.{}.d.example.", "y".repeat(47));
    let reply = Reply::to(&question, Rtype::A).rcode(YXDOMAIN);
    let long = reply.clone().answer("d.example.", Rtype::DNAME, "target.example.");
    assert_eq!(long.assert_secure(&ProvedAnswer::DnameTooLong).rcode, YXDOMAIN);
    // A response code that no record proves.
    let short = reply.answer("d.example.", Rtype::DNAME, "t.example.");
    short.assert_bogus(BogusReason::RcodeNotProved(YXDOMAIN));
}

#[test]
fn a_signed_referral_has_a_ds_rrset() {
    let reply = Reply::to("www.s.example.", Rtype::A)
        .unsigned(Section::Authority, "s.example.", Rtype::NS, "ns.test.")
        .authority("s.example.", Rtype::DS, DS);
    let child = name("s.example.");
    let validation = reply.assert_secure(&ProvedAnswer::Referral { child: child.clone(), has_ds: true });
    assert_eq!(validation.rrsets[0].status, RrsetStatus::Unsigned);
    let unsigned = reply.clone().without(is_signature("s.example.", Rtype::DS));
    unsigned.assert_bogus(BogusReason::NoSignature { owner: child.clone(), rtype: Rtype::DS });
    // A DS RRset of a wildcard proves nothing about this delegation.
    let expanded = Reply::to("www.s.example.", Rtype::A)
        .unsigned(Section::Authority, "s.example.", Rtype::NS, "ns.test.")
        .signed_as(Section::Authority, "s.example.", Rtype::DS, DS, |fields| fields.labels = 1);
    expanded.assert_bogus(BogusReason::ExpandedFromWildcard { owner: child, rtype: Rtype::DS });
    let none = reply.without(|record| record.rtype != Rtype::NS);
    none.assert_bogus(BogusReason::NoDenial);
    // A delegation elsewhere and the NS RRset of the apex are not referrals.
    for cut in ["t.example.", "example.", "a.www.s.example."] {
        let stray = Reply::to("www.s.example.", Rtype::A)
            .unsigned(Section::Authority, cut, Rtype::NS, "ns.test.")
            .authority("s.example.", Rtype::DS, DS);
        stray.assert_bogus(BogusReason::NoDenial);
    }
    // The parent answers for DS at the zone cut.
    let question = Reply::to("s.example.", Rtype::DS)
        .unsigned(Section::Authority, "s.example.", Rtype::NS, "ns.test.")
        .authority("s.example.", Rtype::DS, DS);
    question.assert_bogus(BogusReason::NoDenial);
}

#[test]
fn an_alias_may_lead_to_a_referral() {
    let reply = Reply::to("a.example.", Rtype::A)
        .answer("a.example.", Rtype::CNAME, "www.s.example.")
        .unsigned(Section::Authority, "s.example.", Rtype::NS, "ns.test.")
        .authority("s.example.", Rtype::DS, DS);
    reply.assert_secure(&ProvedAnswer::Referral { child: name("s.example."), has_ds: true });
}

/// RFC 1034 §4.3.2: a server of both zones follows the alias into the child zone. A resolver
/// validates the target with the keys of the child zone.
#[test]
fn an_alias_may_lead_into_a_child_zone_of_the_same_server() {
    let child = Arc::new(key("s.example.", 257, Algorithm::ED25519, 3));
    let target = name("www.s.example.");
    let alias = ProvedAnswer::Alias { target };
    let base = Reply::to("a.example.", Rtype::A).answer("a.example.", Rtype::CNAME, "www.s.example.");
    let parent = Arc::clone(&base.signer);
    let in_child = |reply: Reply, section, owner, rtype, text| {
        reply.by(&child).signed_as(section, owner, rtype, text, |_| {}).by(&parent)
    };
    let answered = in_child(base.clone(), Section::Answer, "www.s.example.", Rtype::A, "192.0.2.1");
    answered.assert_secure(&alias);
    // The address of an alias within the child zone changes nothing.
    let longer = in_child(base.clone(), Section::Answer, "www.s.example.", Rtype::CNAME, "b.s.example.");
    in_child(longer, Section::Answer, "b.s.example.", Rtype::A, "192.0.2.1").assert_secure(&alias);
    let dname = in_child(base.clone(), Section::Answer, "s.example.", Rtype::DNAME, "t.test.");
    dname.assert_secure(&alias);
    let denied = in_child(base.clone(), Section::Authority, "s.example.", Rtype::SOA, ". . 1 1 1 1 1");
    denied.rcode(Rcode::NXDOMAIN).assert_secure(&alias);
    // Without an alias, the question itself is for the child zone.
    let direct = Reply::to("www.s.example.", Rtype::A).by(&parent);
    let direct = in_child(direct, Section::Answer, "www.s.example.", Rtype::A, "192.0.2.1");
    direct.assert_bogus(BogusReason::WrongSigner { covered: Rtype::A, signer: name("s.example.") });
    // A signature by another zone, and one by the parent zone over records of the child zone.
    let other = Arc::new(key("other.", 257, Algorithm::ED25519, 4));
    let foreign = base.clone().by(&other).answer("www.s.example.", Rtype::A, "192.0.2.1").by(&parent);
    foreign.assert_bogus(BogusReason::WrongSigner { covered: Rtype::A, signer: name("other.") });
    base.answer("www.s.example.", Rtype::A, "192.0.2.1").assert_secure(&ProvedAnswer::Answer);
}

/// The root has no parent: its own records deny DS at its name.
#[test]
fn the_root_zone_is_a_zone_as_any_other() {
    let signer = Arc::new(key(".", 257, Algorithm::ED25519, 1));
    let base = Reply::to(".", Rtype::DS).by(&signer);
    let next =
        base.authority(".", Rtype::SOA, SOA).authority(".", Rtype::NSEC, "aaa. NS SOA RRSIG NSEC DNSKEY");
    next.assert_secure(&ProvedAnswer::NoData);
    let positive = Reply::to("a.", Rtype::A).by(&signer).answer("a.", Rtype::A, "192.0.2.1");
    positive.assert_secure(&ProvedAnswer::Answer);
    let missing = Reply::to("b.a.", Rtype::A)
        .by(&signer)
        .rcode(Rcode::NXDOMAIN)
        .authority("a.", Rtype::NSEC, "c. A RRSIG NSEC")
        .authority(".", Rtype::NSEC, "a. NS SOA RRSIG NSEC");
    missing.assert_secure(&ProvedAnswer::NxDomain);
}
