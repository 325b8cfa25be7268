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
    // The estimate limits the batch before it is verified.
    let mut valid = ValidSignatures::new(16, &[7; 16]);
    assert_eq!(denied.job_nanoseconds(&valid), 3 * answered.job_nanoseconds(&valid));
    assert!(answered.job_nanoseconds(&valid) > 0);
    // Without verdicts, another step changes nothing and costs nothing.
    assert_eq!(denied.step(&mut budgets[0]), None);
    assert_eq!((denied.job_count(), budgets[0].spent().signatures), (3, 3));
    verify_jobs([&mut denied, &mut answered], &mut valid, |_, _| {});
    assert_eq!((denied.job_count(), answered.job_count()), (0, 0));
    // The signatures are known now.
    let mut again = pending(&answer());
    assert_eq!(again.step(&mut Budget::default()), None);
    assert_eq!((again.job_count(), again.job_nanoseconds(&valid)), (1, 0));
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
    verify_jobs([&mut all], &mut ValidSignatures::new(16, &[7; 16]), |_, _| {});
    assert_eq!(all.step(&mut budget), None);
    assert_eq!(all.job_count(), 4);
    verify_jobs([&mut all], &mut ValidSignatures::new(16, &[7; 16]), |_, _| {});
    assert_eq!(all.step(&mut budget).map(|validation| validation.status), Some(SecurityStatus::Secure));
}

#[test]
fn a_bad_signature_is_counted_once() {
    let bad = answer().altered(is("host.example.", Rtype::A), |record| record.rdata[3] += 1);
    let (mut validation, mut budget) = (pending(&bad), Budget::default());
    assert_eq!(validation.step(&mut budget), None);
    verify_jobs([&mut validation], &mut ValidSignatures::new(16, &[7; 16]), |_, _| {});
    let ended = validation.step(&mut budget).expect("a result");
    assert!(matches!(ended.status, SecurityStatus::Bogus(BogusReason::BadSignature { .. })), "{ended:?}");
    assert_eq!((ended.work.signatures, ended.work.signature_failures), (1, 1));
    assert_eq!(budget.spent(), ended.work);
}

/// The tags of two keys are equal. Each signature is verified with both, and counted as bad only then.
#[test]
fn a_signature_is_bad_if_no_key_of_its_tag_verifies_it() {
    let (good, bad) =
        (denial(), denial().altered(|record| record.rtype == Rtype::RRSIG, |record| record.rdata[30] ^= 1));
    let real = good.signer.dnskey_rdata();
    let mut other = real.clone();
    other[4..8].rotate_left(2);
    let keys = TrustedKeys::new(&name("example."), [other.as_slice(), &real], &ValidationLimits::default());
    let keys = Arc::new(keys);
    for (reply, signatures, failures) in [(good, 6, 0), (bad, 6, 6)] {
        let question = Question { name: reply.name.view(), rtype: reply.rtype };
        let mut pending = PendingValidation::new(question, reply.message().into(), Arc::clone(&keys), NOW);
        let work = finish(&mut pending, &mut Budget::default()).work;
        assert_eq!((work.signatures, work.signature_failures), (signatures, failures));
        assert_eq!(pending.has_failures(), failures > 0);
    }
}

/// Each step groups the records of the response again.
#[test]
fn responses_with_many_records_end_after_few_steps() {
    let steps = |others: u16| {
        let mut reply = answer().altered(is("host.example.", Rtype::A), |record| record.rdata[3] += 1);
        let real = reply.signer.dnskey_rdata();
        let signature =
            reply.records.iter().find(|record| record.rtype == Rtype::RRSIG).expect("a signature");
        let mut rdata = signature.rdata.clone();
        let signatures: Vec<Vec<u8>> = (1..=7)
            .map(|number| {
                *rdata.last_mut().expect("an octet") ^= number;
                rdata.clone()
            })
            .collect();
        reply = reply.raw(Section::Answer, &name("host.example."), Rtype::RRSIG, &signatures);
        for number in 0..others {
            reply = reply.raw(Section::Authority, &name("host.example."), Rtype(1000 + number), &[vec![1]]);
        }
        let keys = TrustedKeys::new(&name("example."), [real.as_slice()], &ValidationLimits::default());
        let question = Question { name: reply.name.view(), rtype: reply.rtype };
        let mut pending = PendingValidation::new(question, reply.message().into(), keys.into(), NOW);
        let (mut budget, mut steps) = (Budget::default(), 1);
        while pending.step(&mut budget).is_none() {
            verify_jobs([&mut pending], &mut ValidSignatures::new(16, &[7; 16]), |_, _| {});
            steps += 1;
        }
        steps
    };
    assert_eq!([0, 200, 5000].map(steps), [9, 9, 4]);
}
