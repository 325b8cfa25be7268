use super::*;
use crate::testing::{name, response, rrset};
use nonesuch_proto::message::Rcode;

/// Reads the response of a server of `zone`.
fn read(zone: &str, question: (&str, Rtype), rcode: Rcode, lines: &[&str]) -> Result<Reading, Unusable> {
    read_with_flags(zone, question, rcode, flags::AA, lines)
}

fn read_with_flags(
    zone: &str,
    question: (&str, Rtype),
    rcode: Rcode,
    set: u16,
    lines: &[&str],
) -> Result<Reading, Unusable> {
    let mut message = response(question, rcode, lines);
    message.header.flags = message.header.flags & !flags::AA | set;
    let (asked_name, zone) = (name(question.0), name(zone));
    let asked = Asked { name: asked_name.view(), rtype: question.1, zone: zone.view(), is_forwarder: false };
    read_response(asked, &message)
}

const WWW: (&str, Rtype) = ("www.example.", Rtype::A);

#[test]
fn an_answer_is_the_rrset_of_the_question() {
    let lines = ["WWW.example. 60 A 192.0.2.1", "www.EXAMPLE. 30 A 192.0.2.2", "www.example. 60 A 192.0.2.1"];
    let reading = read("example.", WWW, Rcode::NOERROR, &lines).expect("usable");
    let expected = rrset(&["WWW.example. 30 A 192.0.2.1", "WWW.example. 30 A 192.0.2.2"]);
    assert_eq!(reading.content, Content::Answer(vec![expected]));
    assert_eq!((reading.aliases, reading.proofs, reading.glue), (vec![], vec![], vec![]));
}

#[test]
fn records_outside_the_zone_are_dropped() {
    let lines = [
        "www.example. 60 CNAME www.victim.",
        "www.victim. 60 A 203.0.113.1",
        "authority",
        "victim. 60 NS ns.attacker.example.",
        "additional",
        "ns.victim. 60 A 203.0.113.2",
    ];
    let reading = read("example.", WWW, Rcode::NOERROR, &lines).expect("usable");
    assert_eq!(reading.content, Content::Alias);
    assert_eq!(reading.aliases, [rrset(&["www.example. 60 CNAME www.victim."])]);
    assert_eq!(reading.target, name("www.victim."));
    assert_eq!((reading.proofs, reading.glue), (vec![], vec![]));
}

/// CVE-2025-11411: NS RRsets of the zone in the authority section of an answer.
#[test]
fn ns_records_beside_an_answer_are_dropped() {
    let lines = [
        "www.example. 60 A 192.0.2.1",
        "authority",
        "example. 60 NS ns.example.",
        "additional",
        "ns.example. 60 A 203.0.113.1",
    ];
    let reading = read("example.", WWW, Rcode::NOERROR, &lines).expect("usable");
    assert_eq!((reading.proofs, reading.glue), (vec![], vec![]));
}

#[test]
fn aliases_are_followed_inside_the_zone() {
    let lines =
        ["b.example. 60 A 192.0.2.1", "www.example. 60 CNAME a.example.", "a.example. 60 CNAME b.example."];
    let reading = read("example.", WWW, Rcode::NOERROR, &lines).expect("usable");
    assert_eq!(reading.aliases.len(), 2);
    assert_eq!(reading.target, name("b.example."));
    assert_eq!(reading.content, Content::Answer(vec![rrset(&["b.example. 60 A 192.0.2.1"])]));
}

#[test]
fn a_loop_of_aliases_ends() {
    let lines = ["www.example. 60 CNAME a.example.", "a.example. 60 CNAME www.example."];
    let reading = read("example.", WWW, Rcode::NOERROR, &lines).expect("usable");
    assert_eq!((reading.content, reading.aliases.len()), (Content::Alias, 2));
}

/// RFC 6672 §3.1: the CNAME RRset follows from the DNAME RRset, whatever the response has.
#[test]
fn cname_records_of_dname_records_are_synthesised() {
    let question = ("a.b.old.example.", Rtype::A);
    let lines = ["old.example. 60 DNAME new.example.", "a.b.old.example. 60 CNAME evil.example."];
    let reading = read("example.", question, Rcode::NOERROR, &lines).expect("usable");
    assert_eq!(reading.aliases[1], rrset(&["a.b.old.example. 60 CNAME a.b.new.example."]));
    assert_eq!((reading.content, reading.target), (Content::Alias, name("a.b.new.example.")));
}

#[test]
fn a_dname_target_can_be_too_long() {
    let long = format!("{0}.{0}.{0}.old.example.", "x".repeat(60));
    let target = format!("old.example. 60 DNAME {}.example.", "y".repeat(63));
    let reading = read("example.", (&long, Rtype::A), Rcode::YXDOMAIN, &[&target]).expect("usable");
    assert_eq!(reading.content, Content::DnameTooLong);
}

#[test]
fn referrals_have_only_the_glue_of_their_nameservers() {
    let lines = [
        "authority",
        "www.example. 60 NS ns.www.example.",
        "www.example. 60 NS ns.elsewhere.",
        "additional",
        "ns.www.example. 60 A 192.0.2.1",
        "other.example. 60 A 192.0.2.2",
        "ns.elsewhere. 60 A 192.0.2.3",
    ];
    let reading = read_with_flags("example.", WWW, Rcode::NOERROR, 0, &lines).expect("usable");
    let Content::Referral(ns) = &reading.content else { panic!("{reading:?}") };
    assert_eq!(ns.owner, name("www.example."));
    assert_eq!(reading.glue, [rrset(&["ns.www.example. 60 A 192.0.2.1"])]);
}

#[test]
fn lame_servers_refer_upwards_or_to_the_same_zone_or_elsewhere() {
    for zone in [".", "example.", "test."] {
        let lines = ["authority".to_owned(), format!("{zone} 60 NS ns.{}", zone.trim_start_matches('.'))];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let read = read_with_flags("example.", WWW, Rcode::NOERROR, 0, &lines);
        assert_eq!(read, Err(Unusable::Lame), "{zone}");
    }
    // Also with AA, if the zone is above.
    let lines = ["authority", "example. 60 NS ns."];
    assert_eq!(read("a.example.", ("b.a.example.", Rtype::A), Rcode::NOERROR, &lines), Err(Unusable::Lame));
}

#[test]
fn an_answer_of_a_resolver_is_doubtful() {
    let answer = ["www.example. 60 A 192.0.2.1"];
    let reading = read_with_flags("example.", WWW, Rcode::NOERROR, flags::RA, &answer).expect("usable");
    assert!(reading.is_doubtful && matches!(reading.content, Content::Answer(_)));
    let referral = ["authority", "www.example. 60 NS ns."];
    let reading = read_with_flags("example.", WWW, Rcode::NOERROR, flags::RA, &referral).expect("usable");
    assert!(!reading.is_doubtful && matches!(reading.content, Content::Referral(_)));
}

#[test]
fn negative_answers_have_their_soa() {
    let soa = "example. 60 SOA ns.example. root.example. 1 2 3 4 5";
    for (rcode, content) in [(Rcode::NOERROR, Content::NoData), (Rcode::NXDOMAIN, Content::NxDomain)] {
        let reading = read("example.", WWW, rcode, &["authority", soa]).expect("usable");
        assert_eq!(reading.content, content);
        assert_eq!(reading.proofs, [rrset(&[soa])]);
        let lines = ["www.example. 60 CNAME a.example.", "authority", soa];
        let reading = read("example.", WWW, rcode, &lines).expect("usable");
        assert_eq!((reading.content, reading.target), (content, name("a.example.")));
    }
    // The SOA record of another zone does not belong to the name.
    let lines = ["authority", "other.example. 60 SOA ns.example. root.example. 1 2 3 4 5"];
    let reading = read("example.", WWW, Rcode::NXDOMAIN, &lines).expect("usable");
    assert_eq!((reading.content, reading.proofs), (Content::NxDomain, vec![]));
}

#[test]
fn an_empty_response_counts_only_from_an_authoritative_server() {
    assert_eq!(read("example.", WWW, Rcode::NOERROR, &[]).expect("usable").content, Content::NoData);
    assert!(read_with_flags("example.", WWW, Rcode::NOERROR, 0, &[]).expect("usable").is_doubtful);
    assert_eq!(read("example.", WWW, Rcode::SERVFAIL, &[]), Err(Unusable::Rcode(Rcode::SERVFAIL)));
}

/// RFC 4035 §3.1.4.1: a server of the parent that does not know DS refers to the child.
#[test]
fn a_referral_for_ds_at_the_zone_cut_is_a_denial() {
    let lines = ["authority", "www.example. 60 NS ns.www.example."];
    let question = ("www.example.", Rtype::DS);
    let reading = read_with_flags("example.", question, Rcode::NOERROR, 0, &lines).expect("usable");
    assert_eq!(reading.content, Content::NoData);
}

/// The CNAME RRset that a DNAME RRset implies is no data of its own: it has no signature.
#[test]
fn a_dname_answers_a_question_for_cname_with_both() {
    let lines = ["sub.example. 60 DNAME other.", "a.sub.example. 0 CNAME forged."];
    let reading = read("example.", ("a.sub.example.", Rtype::CNAME), Rcode::NOERROR, &lines).expect("usable");
    let expected = ["sub.example. 60 DNAME other.", "a.sub.example. 60 CNAME a.other."];
    assert_eq!(reading.content, Content::Answer(expected.map(|line| rrset(&[line])).to_vec()));
    assert_eq!(reading.aliases, []);
}

/// RFC 4035 §3.1.4.1: the parent zone has the DS RRset of the target.
#[test]
fn a_denial_of_ds_by_the_zone_of_an_alias_target_is_no_answer() {
    let soa = "www.example. 60 SOA ns.example. root.example. 1 2 3 4 5";
    let lines = ["up.www.example. 60 CNAME www.example.", "authority", soa];
    let question = ("up.www.example.", Rtype::DS);
    let reading = read("www.example.", question, Rcode::NOERROR, &lines).expect("usable");
    assert_eq!((reading.content, reading.proofs), (Content::Alias, vec![]));
    let other = read("www.example.", ("up.www.example.", Rtype::A), Rcode::NOERROR, &lines).expect("usable");
    assert_eq!(other.content, Content::NoData);
}
