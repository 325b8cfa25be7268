//! The warm-up of a server. For a signed zone, it decides whether the server gets figures: a sample
//! of the responses must validate.

use super::{Measurement, check_load, combine_rounds};
use crate::experiment::compare::figures::DnskeyResponse;
use crate::experiment::compare::{Combination, CombinationFault, CompareError};
use crate::experiment::parameters::QueriedNames;
use crate::load::{LoadOptions, ValidationCounts, ValidationOptions, validate_samples};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::DenialGeneration;
use nonesuch_dnssec::verify::Anchor;
use nonesuch_proto::message::{Header, Rcode};
use std::slice;
use std::time::{SystemTime, UNIX_EPOCH};

/// Duration of the load with each kind of query, in seconds.
const SECONDS: f64 = 0.15;
/// Number of responses to each kind of query that are validated.
const SAMPLES: usize = 64;

impl Measurement<'_> {
    /// Sends the queries of the warm-up. For a signed zone, also measures the response with the
    /// keys of the zone, and validates this response and a sample of the others.
    pub(super) fn warm_up(&mut self, anchors: Vec<Anchor>) -> Result<(), CompareError> {
        let Combination::Signed(_, mechanism) = self.combination else {
            return self.collect_samples(0).map(drop);
        };
        let mut samples = self.collect_samples(SAMPLES)?;
        samples.push(self.measure_dnskey_response()?);
        let counts = self.validate(anchors, mechanism, &samples)?;
        check_validation(self.combination, &counts)?;
        self.row.validation = Some(counts);
        Ok(())
    }

    /// Sends queries for existing names, then for denied names. Returns `count` responses to each
    /// kind of query, without those with an error code: [`check_load`] limits their share.
    fn collect_samples(&self, count: usize) -> Result<Vec<Vec<u8>>, CompareError> {
        let mut samples = Vec::new();
        for names in [QueriedNames::Existing, QueriedNames::Denied] {
            let queries = self.options.zone.queries(names, 0);
            let report = self.load(&LoadOptions { samples: count, ..self.load_options(queries, SECONDS) })?;
            check_load(self.combination, names, &combine_rounds(slice::from_ref(&report)))?;
            samples.extend(report.samples.into_iter().filter(|sample| has_answer(sample)));
        }
        Ok(samples)
    }

    /// Measures the response to a query for the DNSKEY RRset, and returns the complete response.
    fn measure_dnskey_response(&mut self) -> Result<Vec<u8>, CompareError> {
        let options = self.load_options(self.options.zone.dnskey_query(), SECONDS);
        let mut report = self.load(&LoadOptions { limit: Some(1), samples: 1, ..options })?;
        let Some(response) = report.samples.pop() else {
            return Err(CompareError::Combination(self.combination, CombinationFault::NoKeyResponse));
        };
        let (octets, truncated) = (response.len() as u64, report.truncated > 0);
        self.row.dnskey = Some(DnskeyResponse { octets, truncated });
        Ok(response)
    }

    fn validate(
        &self,
        anchors: Vec<Anchor>,
        mechanism: Mechanism,
        samples: &[Vec<u8>],
    ) -> Result<ValidationCounts, CompareError> {
        let fault = |fault| CompareError::Combination(self.combination, fault);
        // A server that signs online takes the time from its clock.
        let now = match mechanism.generation() {
            DenialGeneration::Online => current_time(),
            _ => self.options.now,
        };
        let zone = self.options.zone.contents.apex().clone();
        let validation = ValidationOptions { zone, anchors, now };
        let options = self.load_options(self.options.zone.dnskey_query(), SECONDS);
        validate_samples(&options, &validation, samples.iter().map(Vec::as_slice))
            .map_err(|source| fault(source.into()))
    }
}

/// Returns the current time in seconds since 1970; 0 if the clock is before 1970, with which no
/// response is valid.
fn current_time() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs() as u32)
}

fn has_answer(response: &[u8]) -> bool {
    Header::read(response).is_some_and(|header| matches!(header.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN))
}

/// Fails if a response is bogus or indeterminate. Referrals to unsigned zones, and denials with
/// opt-out, are insecure.
fn check_validation(combination: Combination, counts: &ValidationCounts) -> Result<(), CompareError> {
    let Some((invalid, reason)) = counts.invalid() else { return Ok(()) };
    let (all, reason) = (counts.total(), reason.to_owned());
    Err(CompareError::NotValidated { combination, invalid, all, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bogus_and_indeterminate_responses_are_errors() {
        let counts = |bogus, indeterminate| ValidationCounts {
            secure: 60,
            insecure: 60,
            bogus,
            indeterminate,
            first_reason: (bogus + indeterminate > 0).then(|| "a. A: no signature".to_owned()),
        };
        let check = |counts| check_validation(Combination::Unsigned, &counts);
        assert!(check(counts(0, 0)).is_ok());
        for (bogus, indeterminate) in [(1, 0), (0, 1)] {
            let error = check(counts(bogus, indeterminate)).expect_err("not valid");
            let CompareError::NotValidated { invalid, all, reason, .. } = error else { panic!("{error}") };
            assert_eq!((invalid, all, reason.as_str()), (1, 121, "a. A: no signature"));
        }
    }

    #[test]
    fn responses_with_an_error_code_are_not_sampled() {
        let response = |rcode| [0, 0, 0x84, rcode, 0, 0, 0, 0, 0, 0, 0, 0];
        let kept: Vec<u8> = (0..=5).filter(|rcode| has_answer(&response(*rcode))).collect();
        assert_eq!(kept, [0, 3]);
        assert!(!has_answer(&[0; 11]));
    }
}
