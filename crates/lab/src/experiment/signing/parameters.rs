//! Parameters of the zone signing experiment.

use super::plan;
use crate::experiment::parameters::{Count, Cpu, Minutes, PresignedMechanism, Share};
use crate::generate::ZoneModel;
use crate::measure::level::Level;
use crate::measure::zone_choice::ZoneChoice;
use crate::measure::{AlgorithmChoice, Selection};
use nonesuch_dnssec::Mechanism;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// Number of runs, or their maximum if there is a time limit.
    pub runs: Count,
    /// Time limit for the experiment; 0: no limit. An algorithm is measured only if this is
    /// expected to end within the limit.
    pub minutes: Minutes,
    /// Algorithms of the published study.
    pub algorithms: Vec<Selection>,
    /// Additional algorithms. With a time limit, they are measured in the remaining time.
    pub additions: Vec<Selection>,
    /// Denial mechanisms.
    pub denial: Vec<PresignedMechanism>,
    /// Instruction levels. Only the first is also used for serving, transfer and re-signing.
    pub levels: Vec<Level>,
    /// Zones in ascending order of size.
    pub zones: Vec<ZoneChoice>,
    /// Share of the records that change before the zone is re-signed, from 0 to 0.5; 0: no
    /// re-signing.
    pub change_share: Share,
    /// Zones that are also served, transferred and re-signed.
    pub served: Sizes,
    /// CPU to which all programs are bound.
    pub cpu: Cpu,
}

impl Default for Parameters {
    fn default() -> Self {
        let zone = |like, names| ZoneChoice::Like { like, names };
        Self {
            runs: Count::of(1),
            minutes: Minutes::of(0.0),
            algorithms: Vec::new(),
            additions: Vec::new(),
            denial: [Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut]
                .map(PresignedMechanism)
                .to_vec(),
            levels: vec![Level::Native],
            zones: vec![zone(ZoneModel::Tld, 10_000)],
            change_share: Share::of(0.01),
            served: Sizes::Middle,
            cpu: Cpu::None,
        }
    }
}

impl Parameters {
    /// Returns the algorithms without duplicates, followed by the additions.
    pub(super) fn choices(&self) -> Vec<ChosenAlgorithm> {
        let mut choices: Vec<ChosenAlgorithm> = Vec::new();
        for (selections, addition) in [(&self.algorithms, false), (&self.additions, true)] {
            for choice in selections.iter().flat_map(|selection| selection.choices()) {
                if choices.iter().all(|chosen| chosen.choice != choice) {
                    choices.push(ChosenAlgorithm { choice, addition });
                }
            }
        }
        choices
    }

    /// Returns the time limit, if there is one.
    pub(super) fn limit(&self) -> Option<Duration> {
        let minutes = self.minutes.value();
        (minutes > 0.0).then(|| Duration::from_secs_f64(minutes * 60.0))
    }

    /// Returns the approximate duration, if the programs of all levels exist.
    pub fn duration(&self) -> Duration {
        let all = plan::estimate_duration(self);
        self.limit().map_or(all, |limit| all.min(limit))
    }
}

/// An algorithm that is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChosenAlgorithm {
    pub(super) choice: AlgorithmChoice,
    /// Whether the algorithm is an addition to those of the published study.
    pub(super) addition: bool,
}

impl ChosenAlgorithm {
    /// Returns the properties of the algorithm for the record.
    pub(super) fn info(&self) -> serde_json::Value {
        let choice = self.choice;
        let scheme = choice.algorithm.entry().map(|entry| entry.scheme);
        let modulus = choice.bits.map(|bits| usize::from(bits).div_ceil(8));
        let octets = scheme.and_then(|scheme| scheme.signature_octets).or(modulus);
        json!({
            "algorithm": choice.to_string(),
            "scheme": choice.scheme(),
            "experimental": scheme.and_then(|scheme| scheme.experimental),
            "post_quantum": choice.is_post_quantum(),
            "addition": self.addition,
            "signature_octets": octets.unwrap_or_default(),
        })
    }
}

/// Selection of zones by their position in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    None,
    /// The zone in the middle; with an even number of zones, the smaller of the two in the middle.
    Middle,
    All,
}

impl Sizes {
    /// Whether the selection contains the zone with this index (starting at 0) in a list of `count`
    /// zones.
    pub const fn holds(self, place: usize, count: usize) -> bool {
        match self {
            Self::None => false,
            Self::Middle => place == count.saturating_sub(1) / 2,
            Self::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_come_before_additions_and_each_once() {
        let selections = |names: &[&str]| names.iter().map(|name| name.parse().expect("a choice")).collect();
        let parameters = Parameters {
            algorithms: selections(&["ECDSAP256SHA256", "RSASHA256/1280", "vrf-p256"]),
            additions: selections(&["ED25519", "ECDSAP256SHA256"]),
            ..Parameters::default()
        };
        let names: Vec<(String, bool)> =
            parameters.choices().iter().map(|chosen| (chosen.choice.to_string(), chosen.addition)).collect();
        let expected = [("ECDSAP256SHA256", false), ("RSASHA256/1280", false), ("ED25519", true)];
        assert_eq!(names, expected.map(|(name, addition)| (name.to_owned(), addition)));
        assert!(Parameters::default().choices().is_empty());
    }

    #[test]
    fn the_middle_of_the_zones() {
        let middle =
            |count| (0..count).filter(|place| Sizes::Middle.holds(*place, count)).collect::<Vec<_>>();
        assert_eq!((middle(1), middle(2), middle(3), middle(4)), (vec![0], vec![0], vec![1], vec![1]));
        assert!(Sizes::All.holds(2, 3) && !Sizes::None.holds(0, 1));
    }
}
