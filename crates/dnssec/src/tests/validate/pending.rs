//! Validations whose signatures are verified in batches.

use super::*;

fn pending(reply: &Reply) -> PendingValidation {
    let question = Question { name: reply.name.view(), rtype: reply.rtype };
    PendingValidation::new(question, reply.message().into(), trust(&reply.signer).into(), NOW)
}

fn denial() -> Reply {
    let reply = Reply::to("b.example.", Rtype::A).rcode(Rcode::NXDOMAIN).soa();
    let apex = reply.nsec("example.", "a.example.", "NS SOA RRSIG NSEC DNSKEY");
    apex.nsec("a.example.", "c.example.", "A RRSIG NSEC")
}

fn answer() -> Reply {
    Reply::to("host.example.", Rtype::A).answer("host.example.", Rtype::A, "192.0.2.1")
}

#[test]
fn one_batch_has_the_signatures_of_several_responses() {
    let (mut denied, mut answered) = (pending(&denial()), pending(&answer()));
    let mut budgets = [Budget::default(); 2];
    assert_eq!(denied.step(&mut budgets[0]), None);
    assert_eq!(answered.step(&mut budgets[1]), None);
    assert_eq!((denied.job_count(), answered.job_count()), (3, 1));
    // Without verdicts, another step changes nothing and costs nothing.
    assert_eq!(denied.step(&mut budgets[0]), None);
    assert_eq!((denied.job_count(), budgets[0].spent().signatures), (3, 3));
    verify_jobs([&mut denied, &mut answered], &mut ValidSignatures::new(16, &[7; 16]), |_| {});
    assert_eq!((denied.job_count(), answered.job_count()), (0, 0));
    let ended = [denied.step(&mut budgets[0]), answered.step(&mut budgets[1])];
    let proved = ended.map(|validation| validation.and_then(|validation| validation.proved));
    assert_eq!(proved, [Some(ProvedAnswer::NxDomain), Some(ProvedAnswer::Answer)]);
    assert_eq!(budgets.map(|budget| budget.spent().signatures), [3, 1]);
}

#[test]
fn all_records_of_a_name_are_verified_together() {
    let mut reply = Reply::to("a.example.", Rtype::ANY);
    for number in 0..20 {
        let rtype = Rtype(1000 + number);
        reply = reply.raw_signed(Section::Answer, &name("a.example."), rtype, &[vec![1]], |_| {});
    }
    let (mut all, mut budget) = (pending(&reply), Budget::default());
    assert_eq!(all.step(&mut budget), None);
    // Not more than the limit of failures, in case that all of them are bad.
    assert_eq!(all.job_count(), 16);
    verify_jobs([&mut all], &mut ValidSignatures::new(16, &[7; 16]), |_| {});
    assert_eq!(all.step(&mut budget), None);
    assert_eq!(all.job_count(), 4);
    verify_jobs([&mut all], &mut ValidSignatures::new(16, &[7; 16]), |_| {});
    assert_eq!(all.step(&mut budget).map(|validation| validation.status), Some(SecurityStatus::Secure));
}

#[test]
fn a_bad_signature_is_counted_once() {
    let bad = answer().altered(is("host.example.", Rtype::A), |record| record.rdata[3] += 1);
    let (mut validation, mut budget) = (pending(&bad), Budget::default());
    assert_eq!(validation.step(&mut budget), None);
    verify_jobs([&mut validation], &mut ValidSignatures::new(16, &[7; 16]), |_| {});
    let ended = validation.step(&mut budget).expect("a result");
    assert!(matches!(ended.status, SecurityStatus::Bogus(BogusReason::BadSignature { .. })), "{ended:?}");
    assert_eq!((ended.work.signatures, ended.work.signature_failures), (1, 1));
    assert_eq!(budget.spent(), ended.work);
}
