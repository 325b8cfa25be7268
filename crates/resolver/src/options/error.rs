//! Errors of options. The messages contain the keys of the configuration.

use super::AddressFamilies;
use nonesuch_proto::Name;
use std::ops::RangeInclusive;
use std::time::Duration;

/// An invalid option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A value is out of its range.
    #[error("{key} is {found} {unit}: must be {min} to {max}")]
    Range {
        /// The configuration key.
        key: &'static str,
        /// The value.
        found: u64,
        /// The lowest valid value.
        min: u64,
        /// The highest valid value.
        max: u64,
        /// The unit of the three values.
        unit: &'static str,
    },
    /// A value is above another one that bounds it.
    #[error("{key} is {found} {unit}: must be at most {bound_key}, which is {bound}")]
    Order {
        /// The configuration key of the value.
        key: &'static str,
        /// The value.
        found: u64,
        /// The configuration key of the bound.
        bound_key: &'static str,
        /// The bound.
        bound: u64,
        /// The unit of both values.
        unit: &'static str,
    },
    /// The access list names a TSIG key.
    #[error("allow-query: key:{name}: a resolver does not verify TSIG: permit the clients by their prefixes")]
    AccessKey {
        /// The name of the key.
        name: Name,
    },
    /// The hints have no address of a permitted family.
    #[error(
        "address-families = \"{families}\", but the hints have no such address: add one, or permit both families"
    )]
    NoHint {
        /// The permitted families.
        families: AddressFamilies,
    },
    /// A forward or stub zone has no server of a permitted family.
    #[error(
        "address-families = \"{families}\", but zone {apex} has no such server: add one, or permit both families"
    )]
    NoServer {
        /// The apex of the zone.
        apex: Name,
        /// The permitted families.
        families: AddressFamilies,
    },
}

/// Checks that a value is in its range.
pub(super) fn check<T: Into<u64> + Copy>(
    key: &'static str,
    found: T,
    range: RangeInclusive<T>,
    unit: &'static str,
) -> Result<(), OptionsError> {
    let (found, min, max) = (found.into(), (*range.start()).into(), (*range.end()).into());
    if (min..=max).contains(&found) {
        Ok(())
    } else {
        Err(OptionsError::Range { key, found, min, max, unit })
    }
}

/// Checks that a time is in its range. The error has milliseconds.
pub(super) fn check_duration(
    key: &'static str,
    found: Duration,
    range: RangeInclusive<Duration>,
) -> Result<(), OptionsError> {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    check(key, milliseconds(found), milliseconds(*range.start())..=milliseconds(*range.end()), "ms")
}

/// Checks that a value is at most another one. Each is given with its key.
pub(super) fn check_order(
    (key, found): (&'static str, u64),
    (bound_key, bound): (&'static str, u64),
    unit: &'static str,
) -> Result<(), OptionsError> {
    if found <= bound { Ok(()) } else { Err(OptionsError::Order { key, found, bound_key, bound, unit }) }
}
