//! The budget of one client query (KeyTrap, CVE-2023-50387; NSEC3 hashes, CVE-2023-50868).

use super::*;
use crate::denial::Nsec3Params;
use crate::denial::nsec3::chain;
use crate::validate::Limit;

fn over(limit: Limit) -> SecurityStatus {
    SecurityStatus::Indeterminate(IndeterminateReason::Limit(limit))
}

/// An answer with `count` RRsets, each of which requires one signature verification.
fn many(count: u16) -> Reply {
    let mut reply = Reply::to("a.example.", Rtype::ANY);
    for number in 0..count {
        let rtype = Rtype(1000 + number);
        reply = reply.raw_signed(Section::Answer, &name("a.example."), rtype, &[vec![1]], |_| {});
    }
    reply
}

#[test]
fn signatures_have_a_limit() {
    assert_eq!(many(64).assert_secure(&ProvedAnswer::Answer).work.signatures, 64);
    let validation = many(65).validate();
    assert_eq!((validation.status, validation.work.signatures), (over(Limit::Signatures), 64));
    // All responses of one query share one budget.
    let (keys, mut budget) = (trust(&many(0).signer), Budget::default());
    for _ in 0..2 {
        assert_eq!(many(32).validate_with(&keys, NOW, &mut budget).status, SecurityStatus::Secure);
    }
    let validation = many(1).validate_with(&keys, NOW, &mut budget);
    assert_eq!((validation.status, validation.work.signatures), (over(Limit::Signatures), 0));
}

/// 64 valid signatures are permitted with any algorithm. 16 bad signatures of P-256 take as long as four of
/// P-384.
#[test]
fn bad_signatures_of_expensive_algorithms_count_as_several() {
    let with = |count: u16| {
        let reply = Reply::to("a.example.", Rtype::ANY).by(&signer(Algorithm::ECDSAP384SHA384));
        (0..count).fold(reply, |reply, number| {
            let rtype = Rtype(1000 + number);
            reply.raw_signed(Section::Answer, &name("a.example."), rtype, &[vec![1]], |_| {})
        })
    };
    let work = with(64).assert_secure(&ProvedAnswer::Answer).work;
    assert_eq!((work.signatures, work.cost), (64, 64));
    let bad = with(20).altered(|record| record.rtype == Rtype::RRSIG, |record| record.rdata[30] ^= 1);
    assert_eq!(bad.validate().work.failure_cost, 5);
    let mut budget = Budget::default();
    for _ in 0..4 {
        bad.validate_with(&trust(&bad.signer), NOW, &mut budget);
    }
    let validation = bad.validate_with(&trust(&bad.signer), NOW, &mut budget);
    assert_eq!((validation.status, validation.work.signatures), (over(Limit::SignatureFailures), 0));
}

/// Hashing 64 KiB takes longer than a signature of P-256.
#[test]
fn long_signed_data_count_as_several_signatures() {
    let rdatas: Vec<Vec<u8>> = (0..250_u8).map(|number| vec![number; 255]).collect();
    let reply = Reply::to("a.example.", Rtype(1000));
    let reply = reply.raw_signed(Section::Answer, &name("a.example."), Rtype(1000), &rdatas, |_| {});
    let work = reply.assert_secure(&ProvedAnswer::Answer).work;
    assert_eq!((work.signatures, work.cost), (1, 2));
}

/// The tags of two keys of an honest zone are equal, and signatures are by the second one.
#[test]
fn a_signature_by_the_second_key_of_a_tag_is_no_failure() {
    let reply = many(24);
    let real = reply.signer.dnskey_rdata();
    let mut other = real.clone();
    other[4..8].rotate_left(2);
    let keys = [other.as_slice(), &real];
    let keys = TrustedKeys::new(&name("example."), keys, &ValidationLimits::default());
    let validation = reply.validate_with(&keys, NOW, &mut Budget::default());
    assert_eq!(validation.status, SecurityStatus::Secure);
    assert_eq!((validation.work.signatures, validation.work.signature_failures), (48, 0));
}

#[test]
fn a_fetch_gets_half_of_the_rest_and_refunds_what_it_did_not_use() {
    let mut budget = Budget::default();
    let mut part = budget.start_part();
    assert_eq!((part.limits().signatures, part.limits().signature_failures), (32, 8));
    assert_eq!(budget.start_part().limits().signatures, 16);
    let keys = trust(&many(0).signer);
    assert_eq!(many(32).validate_with(&keys, NOW, &mut part).status, SecurityStatus::Secure);
    assert_eq!(many(1).validate_with(&keys, NOW, &mut part).status, over(Limit::Signatures));
    let mut budget = Budget::default();
    let mut part = budget.start_part();
    many(5).validate_with(&keys, NOW, &mut part);
    budget.refund(part);
    assert_eq!(budget.spent().cost, 5);
}

#[test]
fn signatures_that_fail_have_a_limit() {
    let with = |count: u8| {
        let mut reply = Reply::to("z.example.", Rtype::A).rcode(Rcode::NXDOMAIN);
        for number in 0..count {
            reply = reply.nsec(&format!("n{number}.example."), "y.example.", "A RRSIG NSEC");
        }
        let is_signature = |record: &Record| record.rtype == Rtype::RRSIG;
        let reply = reply.altered(is_signature, |record| record.rdata[30] ^= 1);
        reply.nsec("example.", "example.", "NS SOA RRSIG NSEC")
    };
    let validation = with(15).assert_secure(&ProvedAnswer::NxDomain);
    assert_eq!((validation.work.signatures, validation.work.signature_failures), (16, 15));
    let validation = with(17).validate();
    assert_eq!((validation.status, validation.work.signatures), (over(Limit::SignatureFailures), 16));
}

/// Keys with the same tag: two of them are tried for each signature, and eight signatures are
/// tried.
#[test]
fn keys_of_one_tag_times_many_signatures_stay_cheap() {
    let reply =
        Reply::to("a.example.", Rtype::A).unsigned(Section::Answer, "a.example.", Rtype::A, "192.0.2.1");
    let real = reply.signer.dnskey_rdata();
    let mut keys = vec![];
    for place in 0..15 {
        let mut other = real.clone();
        let at = 4 + 2 * place;
        other[at..at + 4].rotate_left(2);
        keys.push(other);
    }
    let rdatas = [octets(Rtype::A, "192.0.2.1")];
    let mut signature = reply.sign(&reply.name, Rtype::A, &rdatas, |_| {});
    let mut signatures = Vec::new();
    for _ in 0..100 {
        *signature.last_mut().unwrap() ^= 1;
        signature[40] = signature[40].wrapping_add(1);
        signatures.push(signature.clone());
    }
    let reply = reply.clone().raw(Section::Answer, &reply.name, Rtype::RRSIG, &signatures);
    let keys =
        TrustedKeys::new(&name("example."), keys.iter().map(Vec::as_slice), &ValidationLimits::default());
    let validation = reply.validate_with(&keys, NOW, &mut Budget::default());
    assert!(
        matches!(validation.status, SecurityStatus::Bogus(BogusReason::BadSignature { .. })),
        "{:?}",
        validation.status
    );
    assert_eq!((validation.work.signatures, validation.work.signature_failures), (16, 16));
}

/// Adds a record that names itself as the next one and therefore covers every other hash.
fn nsec3(reply: Reply, hash: [u8; 20], iterations: u16) -> Reply {
    let owner = Name::prepend(&chain::label(&hash), name("example.").view()).unwrap();
    let [high, low] = iterations.to_be_bytes();
    let rdata = [&[1, 0, high, low, 0, 20][..], &hash].concat();
    reply.raw_signed(Section::Authority, &owner, Rtype::NSEC3, &[rdata], |_| {})
}

#[test]
fn hashes_have_a_limit() {
    let deep = |labels: usize| format!("{}example.", "a.".repeat(labels));
    let with = |labels, iterations| {
        let params = Nsec3Params { salt: vec![], iterations };
        let apex = params.hash(name("example.").view(), &mut Vec::new());
        nsec3(Reply::to(&deep(labels), Rtype::A).rcode(Rcode::NXDOMAIN), apex, iterations).validate()
    };
    // The chain is a single record. The names have 119 labels; the hash of a name of more than 55
    // octets takes two blocks.
    let validation = with(119, 0);
    assert_eq!((&validation.status, validation.work.hashes), (&SecurityStatus::Secure, 121));
    let validation = with(119, 50);
    assert_eq!(validation.status, over(Limit::HashBlocks));
    assert!(validation.work.hash_blocks <= 600 && validation.work.hash_blocks > 540);
    assert_eq!(with(9, 50).status, SecurityStatus::Secure);
}

#[test]
fn nsec3_records_of_one_response_have_a_limit() {
    let with = |count: u8| {
        let apex = Nsec3Params::default().hash(name("example.").view(), &mut Vec::new());
        let base = nsec3(Reply::to("b.example.", Rtype::A).rcode(Rcode::NXDOMAIN), apex, 0);
        (1..count).fold(base, |reply, number| nsec3(reply, [number; 20], 0))
    };
    with(8).assert_secure(&ProvedAnswer::NxDomain);
    with(9).assert_bogus(BogusReason::TooManyNsec3(9));
}

#[test]
fn aliases_have_a_limit() {
    let with = |count: usize| {
        let reply = (0..count).fold(Reply::to("a0.example.", Rtype::A), |reply, step| {
            reply.answer(&format!("a{step}.example."), Rtype::CNAME, &format!("a{}.example.", step + 1))
        });
        reply.answer(&format!("a{count}.example."), Rtype::A, "192.0.2.1")
    };
    with(16).assert_secure(&ProvedAnswer::Answer);
    assert_eq!(with(17).validate().status, over(Limit::Aliases));
}

#[test]
fn limits_can_be_set() {
    let limits = ValidationLimits { signatures: 2, ..ValidationLimits::default() };
    let keys = trust(&many(0).signer);
    assert_eq!(many(2).validate_with(&keys, NOW, &mut Budget::new(limits)).status, SecurityStatus::Secure);
    assert_eq!(many(3).validate_with(&keys, NOW, &mut Budget::new(limits)).status, over(Limit::Signatures));
}
