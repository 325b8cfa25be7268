//! Prepares a combination: signs the zone, writes its files, and writes its figures to the row.

use super::figures::Row;
use super::{Combination, CombinationFault, CompareError, CompareOptions};
use crate::measure::ServedZone;
use crate::measure::zone_preparation::{PreparedZone, ZonePreparation, ZonePreparationError};
use nonesuch_crypto::vrf::VrfAlgorithm;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::verify::Anchor;
use std::path::Path;

/// Maximum number of runs of an operation on the zone.
const RUNS_MAX: u32 = 5;

/// Prepares the zone of `options` in the empty directory `directory`. Calls `progress` before each
/// step. Writes the figures of the zone to `row`.
pub(super) fn prepare(
    options: &CompareOptions<'_>,
    combination: Combination,
    directory: &Path,
    progress: &dyn Fn(&str),
    row: &mut Row,
) -> Result<(ServedZone, Vec<Anchor>), CompareError> {
    let (choice, mechanism) = match combination {
        Combination::Unsigned => (None, Mechanism::Nsec),
        Combination::Signed(choice, mechanism) => (Some(choice), mechanism),
    };
    let preparation = ZonePreparation {
        zone: &options.zone.contents,
        algorithms: choice.as_slice(),
        mechanism,
        iterations: 0,
        vrf: VrfAlgorithm::P256_SHA256_TAI,
        runs_max: RUNS_MAX,
        now: options.now,
        directory,
        progress,
    };
    let PreparedZone { served, anchors, records, octets, signing, verification, .. } =
        preparation.prepare().map_err(|fault| match fault {
            ZonePreparationError::Write(fault) => fault.into(),
            fault => CompareError::Combination(combination, CombinationFault::ZonePreparation(fault)),
        })?;
    (row.records, row.zone_octets, row.signing, row.verification) = (records, octets, signing, verification);
    Ok((served, anchors))
}
