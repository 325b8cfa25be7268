//! Compact denial (RFC 9824): each nonexistent name has an NSEC record with NXNAME.

use super::*;

const MISSING: &str = "RRSIG NSEC NXNAME";

fn reply(types: &str) -> Reply {
    Reply::to("m.example.", Rtype::A).soa().nsec("m.example.", "\\000.m.example.", types)
}

/// RFC 9824 §3.1, §5.1: with NOERROR, and with NXDOMAIN for clients that set the CO flag.
#[test]
fn a_missing_name_has_nxname_and_nothing_else() {
    for rcode in [Rcode::NOERROR, Rcode::NXDOMAIN] {
        let validation = reply(MISSING).rcode(rcode).assert_secure(&ProvedAnswer::NxDomain);
        assert_eq!((validation.rcode, validation.work.signatures), (Rcode::NXDOMAIN, 2));
        let beside = BogusReason::NxnameWithTypes(name("m.example."));
        reply("A RRSIG NSEC NXNAME").rcode(rcode).assert_bogus(beside);
    }
    let exists = BogusReason::NameExists(name("m.example."));
    reply("TXT RRSIG NSEC").rcode(Rcode::NXDOMAIN).assert_bogus(exists.clone());
    reply("RRSIG NSEC").rcode(Rcode::NXDOMAIN).assert_bogus(exists);
}

#[test]
fn it_says_nothing_of_other_names() {
    for other in ["n.example.", "x.m.example.", "\\000.m.example.", "example."] {
        let moved = Reply { name: name(other), ..reply(MISSING) };
        moved.assert_bogus(BogusReason::NotMatched(name(other)));
        moved.clone().rcode(Rcode::NXDOMAIN).assert_bogus(BogusReason::NotCovered(name(other)));
    }
}

#[test]
fn types_and_empty_non_terminals_are_shown_as_ever() {
    reply("TXT RRSIG NSEC").assert_secure(&ProvedAnswer::NoData);
    reply("RRSIG NSEC").assert_secure(&ProvedAnswer::NoData);
    let there = BogusReason::TypeExists { name: name("m.example."), rtype: Rtype::A };
    reply("A RRSIG NSEC").assert_bogus(there);
}

/// RFC 9824 §3.3: a record that a wildcard provides is signed as a record of the name itself.
#[test]
fn wildcards_are_answered_as_exact_matches() {
    let exact = Reply::to("b.w.example.", Rtype::A).answer("b.w.example.", Rtype::A, "192.0.2.1");
    exact.assert_secure(&ProvedAnswer::Answer);
}

/// RFC 9824 §3.4.
#[test]
fn an_unsigned_delegation_has_a_record_of_its_own() {
    let with = |types| {
        Reply::to("www.d.example.", Rtype::A)
            .unsigned(Section::Authority, "d.example.", Rtype::NS, "ns.test.")
            .nsec("d.example.", "d\\000.example.", types)
    };
    let child = name("d.example.");
    let referral = ProvedAnswer::Referral { child: child.clone(), has_ds: false };
    with("NS RRSIG NSEC").assert_insecure(InsecureReason::UnsignedDelegation, &referral);
    with(MISSING).assert_bogus(BogusReason::NotADelegation(child));
}
