//! The decision of a comparison: the combination with the lowest cost of those that have the
//! properties that the zone owner needs, the runner-up, and why the others are excluded.

use super::Combination;
use super::figures::{LoadFigures, Row};
use crate::statistics::ValueRange;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::Enumeration;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// UDP payload size that avoids fragmentation (DNS flag day 2020), in octets.
const UDP_OCTETS: u64 = 1232;

/// A property that a zone owner can need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Need {
    /// Clients cannot enumerate the names of the zone.
    NoEnumeration,
    /// An attacker with all data of a server cannot forge data of the zone.
    StolenServer,
    /// Quantum computers cannot forge the signatures.
    PostQuantum,
    /// All responses, including the response with the keys of the zone, fit into a UDP payload of
    /// 1232 octets.
    #[serde(rename = "udp-1232")]
    Udp1232,
}

/// The text is not the name of a need.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a property: known are no-enumeration, stolen-server, post-quantum and udp-1232")]
pub struct NeedError(String);

impl Need {
    /// All needs.
    pub const ALL: [Self; 4] = [Self::NoEnumeration, Self::StolenServer, Self::PostQuantum, Self::Udp1232];

    /// Returns the name on the command line and in `compare.json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoEnumeration => "no-enumeration",
            Self::StolenServer => "stolen-server",
            Self::PostQuantum => "post-quantum",
            Self::Udp1232 => "udp-1232",
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Need {
    type Err = NeedError;

    fn from_str(text: &str) -> Result<Self, NeedError> {
        let found = Self::ALL.into_iter().find(|need| need.name() == text);
        found.ok_or_else(|| NeedError(text.to_owned()))
    }
}

/// The decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Decision {
    /// The properties that the zone owner needs.
    pub(super) needs: Vec<Need>,
    /// The combinations that are not excluded: the recommended one, the runner-up, then the others
    /// by cost.
    pub(super) candidates: Vec<Candidate>,
    /// Number of candidates, from the first, whose costs do not differ measurably from the lowest.
    pub(super) equal: usize,
    /// The excluded combinations by reason. A combination has the first reason that applies.
    pub(super) excluded: Vec<Exclusion>,
    /// The measures of the recommended combination next to those of the runner-up.
    pub(super) differences: Vec<Difference>,
}

/// A combination that is not excluded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Candidate {
    /// Index of the row.
    pub(super) row: usize,
    /// Cost of serving, relative to the unsigned zone: the geometric mean of the ratios of response
    /// size, CPU time of the server for each query, and memory of the server.
    pub(super) cost: ValueRange,
}

/// Combinations that are excluded for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Exclusion {
    pub(super) reason: Reason,
    /// Indices of the rows.
    pub(super) rows: Vec<usize>,
}

/// Why a combination is not recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reason {
    /// Clients can enumerate the names of the zone.
    Enumeration,
    /// An attacker with all data of a server can forge data of the zone.
    StolenServer,
    /// Quantum computers could forge the signatures.
    Quantum,
    /// Some responses to queries for names exceed 1232 octets, or are truncated.
    LargeResponses,
    /// The response with the keys of the zone exceeds 1232 octets, or is truncated.
    LargeKeys,
    /// Resolvers do not validate the algorithm or the mechanism, or its specification is not final.
    Experimental,
    /// Unsigned delegations are not protected (RFC 5155 §12.2).
    OptOut,
    /// The system does not provide the CPU time or the memory of the server.
    NotMeasured,
}

/// A measure of the recommended combination and of the runner-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Difference {
    pub(super) measure: Measure,
    pub(super) recommended: ValueRange,
    pub(super) runner_up: ValueRange,
    /// Whether the ranges do not overlap.
    pub(super) differs: bool,
}

/// A measure of cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// Octets that the server sends for a query: the mean for existing and denied names.
    ResponseOctets,
    /// CPU time of the server for each query, in µs: the mean for existing and denied names.
    ServerCpuUs,
    /// Resident memory of the server, in KiB.
    ServerKib,
    /// Wall time of signing the zone, in seconds; 0 if the server signs online.
    SigningSeconds,
}

/// Measures that the cost of serving consists of.
const COST_MEASURES: [Measure; 3] = [Measure::ResponseOctets, Measure::ServerCpuUs, Measure::ServerKib];

impl Measure {
    /// Returns the value in `row`, or `None` if it was not measured.
    fn of(self, row: &Row) -> Option<ValueRange> {
        let both = |part: fn(&LoadFigures) -> Option<ValueRange>| {
            let (existing, denied) = (part(&row.existing)?, part(&row.denied)?);
            let mean = |of: fn(&ValueRange) -> f64| of(&existing).midpoint(of(&denied));
            Some(ValueRange {
                value: mean(|range| range.value),
                least: mean(|range| range.least),
                most: mean(|range| range.most),
            })
        };
        match self {
            Self::ResponseOctets => both(|load| Some(ValueRange::exact(load.sent_octets_mean()))),
            Self::ServerCpuUs => both(|load| load.server_cpu_us_per_query),
            Self::ServerKib => row.server_resident_kib.map(|kib| ValueRange::exact(kib as f64)),
            Self::SigningSeconds => Some(row.signing.map(|work| work.wall_s).unwrap_or_default()),
        }
    }
}

/// The recommendation if the zone owner needs one more property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Alternative {
    need: Need,
    /// Index of the recommended row, or `None` if no combination has the properties.
    row: Option<usize>,
}

/// Returns the recommendation for each property that is not in `needs`, in addition to `needs`.
pub(super) fn alternatives(needs: &[Need], combinations: &[Combination], rows: &[Row]) -> Vec<Alternative> {
    let others = Need::ALL.into_iter().filter(|need| !needs.contains(need));
    let decided = others.map(|need| {
        let decision = decide(&[needs, &[need]].concat(), combinations, rows);
        Alternative { need, row: decision.candidates.first().map(|candidate| candidate.row) }
    });
    decided.collect()
}

/// Decides for the zone owner who needs `needs`. `rows` has one row for each combination.
pub(super) fn decide(needs: &[Need], combinations: &[Combination], rows: &[Row]) -> Decision {
    let mut decision = Decision { needs: needs.to_vec(), ..Decision::default() };
    let Some(unsigned) = rows.first() else { return decision };
    let mut possible = Vec::new();
    for (index, (combination, row)) in combinations.iter().zip(rows).enumerate() {
        let Combination::Signed(choice, mechanism) = combination else { continue };
        let lacks = |need: &Need| need.reason_against(choice.is_post_quantum(), *mechanism, row);
        match (needs.iter().find_map(lacks), cost(row, unsigned)) {
            (Some(reason), _) => decision.exclude(reason, index),
            (None, None) => decision.exclude(Reason::NotMeasured, index),
            (None, Some(cost)) => possible.push((Candidate { row: index, cost }, *combination)),
        }
    }
    // These are recommended only if nothing else has the needed properties.
    for (reason, applies) in [
        (Reason::OptOut, Combination::is_opt_out as fn(&Combination) -> bool),
        (Reason::Experimental, Combination::is_experimental),
    ] {
        if possible.iter().all(|(_, combination)| applies(combination)) {
            continue;
        }
        possible.retain(|(candidate, combination)| {
            let keep = !applies(combination);
            if !keep {
                decision.exclude(reason, candidate.row);
            }
            keep
        });
    }
    decision.rank(possible.into_iter().map(|(candidate, _)| candidate).collect(), rows);
    decision
}

impl Decision {
    fn exclude(&mut self, reason: Reason, row: usize) {
        match self.excluded.iter_mut().find(|exclusion| exclusion.reason == reason) {
            Some(exclusion) => exclusion.rows.push(row),
            None => self.excluded.push(Exclusion { reason, rows: vec![row] }),
        }
    }

    /// Sorts the candidates by cost. Candidates whose cost does not differ measurably from the
    /// lowest are sorted by the time of signing.
    fn rank(&mut self, mut candidates: Vec<Candidate>, rows: &[Row]) {
        candidates.sort_by(|a, b| a.cost.value.total_cmp(&b.cost.value));
        let Some(lowest) = candidates.first().map(|candidate| candidate.cost) else { return };
        let (mut ranked, others): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|candidate| candidate.cost.overlaps(&lowest));
        let signing = |candidate: &Candidate| {
            Measure::SigningSeconds.of(&rows[candidate.row]).unwrap_or_default().value
        };
        ranked.sort_by(|a, b| signing(a).total_cmp(&signing(b)));
        self.equal = ranked.len();
        ranked.extend(others);
        self.candidates = ranked;
        let [first, second, ..] = self.candidates[..] else { return };
        let compared = COST_MEASURES.into_iter().chain([Measure::SigningSeconds]);
        self.differences = compared
            .filter_map(|measure| {
                let (recommended, runner_up) =
                    (measure.of(&rows[first.row])?, measure.of(&rows[second.row])?);
                let differs = !recommended.overlaps(&runner_up);
                Some(Difference { measure, recommended, runner_up, differs })
            })
            .collect();
    }
}

/// Returns the cost of serving relative to the unsigned zone, or `None` if a measure is missing.
fn cost(row: &Row, unsigned: &Row) -> Option<ValueRange> {
    let mean = |end: fn(&ValueRange) -> f64| {
        let ratios = COST_MEASURES.into_iter().map(|measure| {
            let base = measure.of(unsigned)?.value;
            Some(end(&measure.of(row)?) / base).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        });
        let product: f64 = ratios.collect::<Option<Vec<_>>>()?.into_iter().product();
        Some(product.powf(1.0 / COST_MEASURES.len() as f64))
    };
    Some(ValueRange {
        value: mean(|range| range.value)?,
        least: mean(|range| range.least)?,
        most: mean(|range| range.most)?,
    })
}

impl Need {
    /// Returns the reason why a combination lacks the property, or `None` if it has it.
    fn reason_against(self, is_post_quantum: bool, mechanism: Mechanism, row: &Row) -> Option<Reason> {
        let entry = mechanism.entry();
        let fits = |octets, is_truncated: bool| !is_truncated && octets <= UDP_OCTETS;
        let load_fits = |load: &LoadFigures| fits(load.response_octets_max, load.truncated > 0);
        let keys_fit = row.dnskey.is_some_and(|response| fits(response.octets, response.truncated));
        let (holds, reason) = match self {
            Self::NoEnumeration => (entry.enumeration() == Enumeration::Impossible, Reason::Enumeration),
            Self::StolenServer => (!entry.stolen_server_can_forge(), Reason::StolenServer),
            Self::PostQuantum => (is_post_quantum, Reason::Quantum),
            Self::Udp1232 if load_fits(&row.existing) && load_fits(&row.denied) => {
                (keys_fit, Reason::LargeKeys)
            }
            Self::Udp1232 => (false, Reason::LargeResponses),
        };
        (!holds).then_some(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::DnskeyResponse;
    use super::super::figures::tests::sample_row;
    use super::*;
    use crate::measure::AlgorithmChoice;
    use Mechanism::{Compact, Nsec, Nsec3, Nsec3OptOut, Nsec5, WhiteLies};
    use nonesuch_crypto::Algorithm;

    /// Returns combinations of P-256 and ML-DSA-44 with all default mechanisms, and their rows. The
    /// cost of a combination grows with its index.
    fn measured() -> (Vec<Combination>, Vec<Row>) {
        let mut combinations = vec![Combination::Unsigned];
        for algorithm in [Algorithm::ECDSAP256SHA256, Algorithm::MLDSA44] {
            let choice = AlgorithmChoice { algorithm, bits: None };
            let signed = |mechanism| Combination::Signed(choice, mechanism);
            combinations.extend([Nsec, Nsec3OptOut, Nsec3, Compact, WhiteLies, Nsec5].map(signed));
        }
        let rows = combinations.iter().enumerate();
        let rows =
            rows.map(|(index, combination)| sample_row(*combination, 1.0 + 0.1 * index as f64)).collect();
        (combinations, rows)
    }

    fn names(combinations: &[Combination], rows: impl IntoIterator<Item = usize>) -> Vec<String> {
        rows.into_iter().map(|row| combinations[row].to_string()).collect()
    }

    fn candidates(needs: &[Need]) -> Vec<String> {
        let (combinations, rows) = measured();
        let decision = decide(needs, &combinations, &rows);
        names(&combinations, decision.candidates.iter().map(|candidate| candidate.row))
    }

    #[test]
    fn the_cheapest_is_recommended_and_opt_out_and_experiments_are_not() {
        let first = candidates(&[]);
        assert_eq!(first[..2], ["ECDSAP256SHA256 NSEC", "ECDSAP256SHA256 NSEC3"]);
        assert_eq!(first.len(), 8);
    }

    #[test]
    fn needs_exclude_with_their_reasons() {
        assert_eq!(candidates(&[Need::NoEnumeration])[0], "ECDSAP256SHA256 Compact denial");
        assert_eq!(candidates(&[Need::PostQuantum])[0], "MLDSA44 NSEC");
        let both = [Need::NoEnumeration, Need::StolenServer];
        // Only NSEC5 has both properties, therefore it is not excluded as experimental.
        assert_eq!(candidates(&both), ["ECDSAP256SHA256 NSEC5", "MLDSA44 NSEC5"]);
        let (combinations, rows) = measured();
        let decision = decide(&both, &combinations, &rows);
        let reasons: Vec<(Reason, usize)> =
            decision.excluded.iter().map(|exclusion| (exclusion.reason, exclusion.rows.len())).collect();
        assert_eq!(reasons, [(Reason::Enumeration, 6), (Reason::StolenServer, 4)]);
    }

    #[test]
    fn each_further_need_has_its_recommendation() {
        let (combinations, rows) = measured();
        let of = |needs: &[Need]| {
            let found = alternatives(needs, &combinations, &rows).into_iter();
            found.map(|alternative| (alternative.need, alternative.row)).collect::<Vec<_>>()
        };
        let single = [
            (Need::NoEnumeration, Some(4)),
            (Need::StolenServer, Some(1)),
            (Need::PostQuantum, Some(7)),
            (Need::Udp1232, Some(1)),
        ];
        assert_eq!(of(&[]), single);
        let (combinations, mut rows) = measured();
        rows[12].denied.response_octets_max = UDP_OCTETS + 1;
        let none = alternatives(&Need::ALL[..3], &combinations, &rows);
        assert_eq!(none, [Alternative { need: Need::Udp1232, row: None }]);
    }

    #[test]
    fn large_or_truncated_responses_do_not_fit() {
        let (combinations, mut rows) = measured();
        rows[1].denied.response_octets_max = UDP_OCTETS + 1;
        rows[3].existing.truncated = 1;
        let decision = decide(&[Need::Udp1232], &combinations, &rows);
        let excluded = decision.excluded.iter().find(|exclusion| exclusion.reason == Reason::LargeResponses);
        let excluded = excluded.map(|exclusion| exclusion.rows.clone()).unwrap_or_default();
        assert!(excluded.contains(&1) && excluded.contains(&3) && !excluded.contains(&4), "{excluded:?}");
    }

    #[test]
    fn large_or_truncated_keys_do_not_fit() {
        let (combinations, mut rows) = measured();
        let keys = |octets, truncated| Some(DnskeyResponse { octets, truncated });
        (rows[1].dnskey, rows[3].dnskey) = (keys(UDP_OCTETS + 1, false), keys(300, true));
        (rows[4].dnskey, rows[5].dnskey) = (keys(UDP_OCTETS, false), None);
        let decision = decide(&[Need::Udp1232], &combinations, &rows);
        let excluded = decision.excluded.iter().find(|exclusion| exclusion.reason == Reason::LargeKeys);
        assert_eq!(excluded.map(|exclusion| exclusion.rows.as_slice()), Some([1, 3, 5].as_slice()));
        rows[1].existing.truncated = 1;
        let decision = decide(&[Need::Udp1232], &combinations, &rows);
        assert_eq!(decision.excluded[0], Exclusion { reason: Reason::LargeResponses, rows: vec![1] });
    }

    #[test]
    fn equal_costs_are_decided_by_signing() {
        let (combinations, mut rows) = measured();
        rows[3] = sample_row(combinations[3], 1.1);
        if let Some(work) = &mut rows[3].signing {
            work.wall_s = ValueRange::exact(0.001);
        }
        let decision = decide(&[], &combinations, &rows);
        assert_eq!((decision.equal, decision.candidates[0].row, decision.candidates[1].row), (2, 3, 1));
        let signing = decision.differences.last().expect("a difference");
        assert!(signing.measure == Measure::SigningSeconds && signing.differs);
        assert!(decision.differences.iter().filter(|difference| difference.differs).count() == 1);
    }

    #[test]
    fn combinations_without_figures_are_not_recommended() {
        let (combinations, mut rows) = measured();
        rows[1].server_resident_kib = None;
        let decision = decide(&[], &combinations, &rows);
        let excluded = decision.excluded.iter().find(|exclusion| exclusion.reason == Reason::NotMeasured);
        assert_eq!(excluded.map(|exclusion| exclusion.rows.as_slice()), Some([1].as_slice()));
        assert_eq!(decide(&[], &[], &[]).candidates, []);
    }
}
