//! Prepares a combination: publishes the zone in this way, and writes its figures to the row.

use super::figures::Row;
use super::{Combination, CombinationFault, CompareError, CompareOptions};
use crate::measure::ServedZone;
use crate::measure::publication::{Publication, PublicationError, Published};
use nonesuch_crypto::vrf::VrfAlgorithm;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::verify::Anchor;
use std::path::Path;

/// Maximum number of runs of an operation on the zone.
const RUNS_MAX: u32 = 5;

/// Publishes the zone of `options` in the empty directory `directory`. Calls `progress` before each
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
    let publication = Publication {
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
    let Published { served, anchors, records, octets, signing, verification, .. } =
        publication.publish().map_err(|fault| match fault {
            PublicationError::Write(fault) => fault.into(),
            fault => CompareError::Combination(combination, CombinationFault::Publication(fault)),
        })?;
    (row.records, row.zone_octets, row.signing, row.verification) = (records, octets, signing, verification);
    Ok((served, anchors))
}
