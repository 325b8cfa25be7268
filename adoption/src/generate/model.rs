//! The model of generated snapshots: sources, and operators that sign more of their domains over time.
//!
//! The names and figures are made up. The shapes are those of document 000: an operator that signs with
//! ECDSA at scale from late in the first year, early adopters with RSA/SHA-1 that migrate late, and
//! operators that follow.

use serde::Serialize;

/// A list of domains.
pub(super) struct Source {
    pub(super) name: &'static str,
    /// End of the names of its domains.
    pub(super) suffix: &'static str,
    /// Part of all domains.
    pub(super) share: f64,
    /// Whether its domains have popularity ranks.
    pub(super) is_ranked: bool,
}

/// The sources, in the order of their names.
pub(super) const SOURCES: [Source; 6] = [
    Source { name: "com", suffix: "com", share: 0.50, is_ranked: false },
    Source { name: "net", suffix: "net", share: 0.12, is_ranked: false },
    Source { name: "nl", suffix: "nl", share: 0.18, is_ranked: false },
    Source { name: "org", suffix: "org", share: 0.08, is_ranked: false },
    Source { name: "se", suffix: "se", share: 0.07, is_ranked: false },
    Source { name: "toplist", suffix: "com", share: 0.05, is_ranked: true },
];

/// An operator and its policy. Times are parts of the period: 0 is its start, 1 its end.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Operator {
    pub(super) name: &'static str,
    /// Its part of the domains of each source.
    pub(super) shares: [f64; SOURCES.len()],
    /// Part of its domains that it signs at the end of the ramp.
    pub(super) signed: f64,
    pub(super) signing: Ramp,
    /// Part of its signed domains that have DS records.
    pub(super) ds: f64,
    pub(super) algorithm: Algorithm,
    /// Later algorithm, and when its domains change.
    pub(super) rollover: Option<(Ramp, Algorithm)>,
    pub(super) denial: &'static str,
    pub(super) nsec3: Option<Nsec3Policy>,
}

/// A linear increase from 0 to 1.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Ramp {
    pub(super) start: f64,
    pub(super) end: f64,
}

impl Ramp {
    pub(super) fn at(self, progress: f64) -> f64 {
        if progress >= self.end { 1.0 } else { ((progress - self.start) / (self.end - self.start)).max(0.0) }
    }
}

/// An algorithm, as the columns have it, and the digest types of its DS records.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Algorithm {
    pub(super) number: u8,
    pub(super) text: &'static str,
    pub(super) digests: &'static str,
}

/// Parameters of NSEC3, and when the domains change to those of RFC 9276: no iterations, no salt.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Nsec3Policy {
    pub(super) iterations: u16,
    pub(super) salt: &'static str,
    pub(super) opt_out: bool,
    pub(super) rfc9276: Ramp,
}

/// State of a domain's keys during an algorithm rollover (RFC 6781 §4.1.4): the zone has keys of both
/// algorithms while the DS records change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rollover {
    Before,
    During,
    After,
}

impl Operator {
    fn algorithm(&self, rollover: Rollover) -> &Algorithm {
        match (&self.rollover, rollover) {
            (Some((_, new)), Rollover::After) => new,
            _ => &self.algorithm,
        }
    }

    /// Returns the numbers of the algorithms of the keys.
    pub(super) fn key_numbers(&self, rollover: Rollover) -> Vec<u8> {
        match (&self.rollover, rollover) {
            (Some((_, new)), Rollover::During) => vec![self.algorithm.number, new.number],
            _ => vec![self.algorithm(rollover).number],
        }
    }

    /// Returns the column of the keys.
    pub(super) fn keys(&self, rollover: Rollover) -> &'static str {
        match (&self.rollover, rollover) {
            (Some(_), Rollover::During) => match self.algorithm.number {
                5 => "5,13",
                7 => "7,8",
                _ => "8,13",
            },
            _ => self.algorithm(rollover).text,
        }
    }

    /// Returns the column of the algorithms of DS records.
    pub(super) fn ds(&self, rollover: Rollover) -> &'static str {
        self.algorithm(rollover).text
    }

    /// Returns the column of the digest types of DS records.
    pub(super) fn digests(&self, rollover: Rollover) -> &'static str {
        self.algorithm(rollover).digests
    }
}

const RSASHA1: Algorithm = Algorithm { number: 5, text: "5", digests: "1,2" };
const RSASHA1_NSEC3: Algorithm = Algorithm { number: 7, text: "7", digests: "1" };
const RSASHA256: Algorithm = Algorithm { number: 8, text: "8", digests: "2" };
const P256: Algorithm = Algorithm { number: 13, text: "13", digests: "2" };
const ED25519: Algorithm = Algorithm { number: 15, text: "15", digests: "2,4" };

const FROM_START: Ramp = Ramp { start: -1.0, end: 0.0 };
const NEVER: Ramp = Ramp { start: 2.0, end: 3.0 };

/// The operators. The first has the domains that the shares of the others leave.
pub(super) const OPERATORS: [Operator; 8] = [
    Operator {
        name: "unsigned.example",
        shares: [0.0; SOURCES.len()],
        signed: 0.0,
        signing: NEVER,
        ds: 0.0,
        algorithm: RSASHA256,
        rollover: None,
        denial: "nsec",
        nsec3: None,
    },
    Operator {
        name: "cdn.example",
        shares: [0.12, 0.12, 0.03, 0.12, 0.03, 0.35],
        signed: 0.35,
        signing: Ramp { start: 0.09, end: 0.8 },
        ds: 0.6,
        algorithm: P256,
        rollover: None,
        denial: "compact",
        nsec3: None,
    },
    Operator {
        name: "hoster-nl.example",
        shares: [0.01, 0.01, 0.5, 0.01, 0.0, 0.02],
        signed: 0.9,
        signing: FROM_START,
        ds: 0.98,
        algorithm: RSASHA256,
        rollover: Some((Ramp { start: 0.7, end: 0.75 }, P256)),
        denial: "nsec3",
        nsec3: Some(Nsec3Policy {
            iterations: 1,
            salt: "3a9f5c01",
            opt_out: false,
            rfc9276: Ramp { start: 0.72, end: 0.8 },
        }),
    },
    Operator {
        name: "hoster-se.example",
        shares: [0.01, 0.01, 0.0, 0.01, 0.6, 0.02],
        signed: 0.8,
        signing: Ramp { start: -0.5, end: 0.1 },
        ds: 0.99,
        algorithm: RSASHA1,
        rollover: Some((Ramp { start: 0.55, end: 0.7 }, P256)),
        denial: "nsec",
        nsec3: None,
    },
    Operator {
        name: "panel.example",
        shares: [0.15, 0.15, 0.1, 0.15, 0.1, 0.1],
        signed: 0.02,
        signing: Ramp { start: -1.0, end: 1.0 },
        ds: 0.4,
        algorithm: RSASHA1_NSEC3,
        rollover: Some((Ramp { start: 0.4, end: 0.9 }, RSASHA256)),
        denial: "nsec3",
        nsec3: Some(Nsec3Policy { iterations: 10, salt: "d399eaab", opt_out: true, rfc9276: NEVER }),
    },
    Operator {
        name: "registrar.example",
        shares: [0.2, 0.2, 0.1, 0.2, 0.1, 0.1],
        signed: 0.08,
        signing: Ramp { start: 0.45, end: 1.0 },
        ds: 0.95,
        algorithm: RSASHA256,
        rollover: Some((Ramp { start: 0.6, end: 0.9 }, P256)),
        denial: "nsec3",
        nsec3: Some(Nsec3Policy {
            iterations: 100,
            salt: "",
            opt_out: false,
            rfc9276: Ramp { start: 0.72, end: 0.95 },
        }),
    },
    Operator {
        name: "edwards.example",
        shares: [0.02, 0.02, 0.02, 0.04, 0.03, 0.04],
        signed: 0.7,
        signing: Ramp { start: 0.6, end: 1.0 },
        ds: 0.9,
        algorithm: ED25519,
        rollover: None,
        denial: "minimal-nsec",
        nsec3: None,
    },
    Operator {
        name: "enterprise.example",
        shares: [0.03, 0.03, 0.03, 0.05, 0.03, 0.12],
        signed: 0.1,
        signing: FROM_START,
        ds: 0.7,
        algorithm: RSASHA256,
        rollover: None,
        denial: "nsec",
        nsec3: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parts_of_one() {
        assert!((SOURCES.iter().map(|source| source.share).sum::<f64>() - 1.0).abs() < 1e-9);
        for place in 0..SOURCES.len() {
            assert!(OPERATORS.iter().map(|operator| operator.shares[place]).sum::<f64>() <= 1.0);
        }
        assert!(SOURCES.is_sorted_by_key(|source| source.name));
    }

    #[test]
    fn columns_have_the_numbers_of_the_keys() {
        for operator in OPERATORS {
            for rollover in [Rollover::Before, Rollover::During, Rollover::After] {
                let numbers: Vec<String> = operator.key_numbers(rollover).iter().map(u8::to_string).collect();
                assert_eq!(operator.keys(rollover), numbers.join(","), "{}", operator.name);
            }
            assert_eq!(operator.nsec3.is_some(), operator.denial == "nsec3");
        }
    }

    #[test]
    fn a_ramp_increases_from_zero_to_one() {
        let ramp = Ramp { start: 0.25, end: 0.75 };
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(|at| ramp.at(at)), [0.0, 0.0, 0.5, 1.0, 1.0]);
        assert_eq!(FROM_START.at(0.0), 1.0);
        assert_eq!(NEVER.at(1.0), 0.0);
    }
}
