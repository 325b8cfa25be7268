//! Messages in wire format: a change of any octet does not make anything else Secure.

use super::*;
use crate::validate::validate_octets;
use nonesuch_proto::message::MessageError;
use proptest::prelude::*;

fn replies() -> Vec<(Reply, ProvedAnswer)> {
    let denial = |types| {
        let base = Reply::to("b.example.", Rtype::AAAA).soa();
        base.nsec("b.example.", "\\000.b.example.", types)
    };
    vec![
        (Reply::to("b.example.", Rtype::A).answer("b.example.", Rtype::A, "192.0.2.1"), ProvedAnswer::Answer),
        (denial("A RRSIG NSEC"), ProvedAnswer::NoData),
        (
            Reply::to("b.example.", Rtype::A).rcode(Rcode::NXDOMAIN).soa().nsec(
                "example.",
                "example.",
                "NS SOA RRSIG NSEC",
            ),
            ProvedAnswer::NxDomain,
        ),
        (
            Reply::to("c.b.example.", Rtype::A).expanded("c.b.example.", Rtype::A, "192.0.2.1", 1).nsec(
                "*.example.",
                "example.",
                "A RRSIG NSEC",
            ),
            ProvedAnswer::WildcardAnswer,
        ),
    ]
}

/// Whether a Secure result for `octets` equals that of the unmodified message: the same content is
/// proved by the same records.
fn is_harmless(reply: &Reply, proved: &ProvedAnswer, octets: &[u8]) -> bool {
    let question = Question { name: reply.name.view(), rtype: reply.rtype };
    let validation = validate_octets(question, octets, &trust(&reply.signer), NOW, &mut Budget::default());
    if validation.status != SecurityStatus::Secure {
        return true;
    }
    let message = Message::parse(octets).unwrap();
    let answers = |records: &[Record]| -> Vec<Vec<u8>> {
        let answers = records.iter().filter(|r| r.section == Section::Answer && r.rtype == reply.rtype);
        answers.filter(|record| record.owner == reply.name).map(|record| record.rdata.clone()).collect()
    };
    validation.proved.as_ref() == Some(proved) && answers(&message.records) == answers(&reply.records)
}

#[test]
fn no_octet_can_be_changed_to_prove_something_else() {
    for (reply, proved) in replies() {
        let sound = reply.message().to_octets();
        let question = Question { name: reply.name.view(), rtype: reply.rtype };
        let keys = trust(&reply.signer);
        let validation = validate_octets(question, &sound, &keys, NOW, &mut Budget::default());
        assert_eq!((validation.status, validation.proved.as_ref()), (SecurityStatus::Secure, Some(&proved)));
        for place in 0..sound.len() {
            for bit in [1, 2, 4, 8, 16, 32, 64, 128] {
                let mut octets = sound.clone();
                octets[place] ^= bit;
                assert!(is_harmless(&reply, &proved, &octets), "{proved:?}: octet {place} ^ {bit}");
            }
        }
    }
}

#[test]
fn what_is_no_message_decides_nothing() {
    let (reply, _) = replies().remove(0);
    let octets = reply.message().to_octets();
    let question = Question { name: reply.name.view(), rtype: reply.rtype };
    for length in 0..octets.len() {
        let validation =
            validate_octets(question, &octets[..length], &trust(&reply.signer), NOW, &mut Budget::default());
        let SecurityStatus::Indeterminate(IndeterminateReason::Malformed(error)) = validation.status else {
            panic!("{length}: {:?}", validation.status)
        };
        assert!(matches!(error, MessageError::Truncated | MessageError::Name(_)), "{error:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(4035),
        ..ProptestConfig::default()
    })]

    #[test]
    fn many_octets_changed_prove_nothing_else(
        which in 0..4usize,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
    ) {
        let (reply, proved) = replies().swap_remove(which);
        let mut octets = reply.message().to_octets();
        for (place, value) in changes {
            let length = octets.len();
            octets[place % length] = value;
        }
        prop_assert!(is_harmless(&reply, &proved, &octets));
    }
}
