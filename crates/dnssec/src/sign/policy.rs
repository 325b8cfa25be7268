//! Policies for the SOA serial number.

use std::fmt;
use std::str::FromStr;

/// The policy for the SOA serial. If its serial does not follow that of the previous zone, the
/// signer increments the previous serial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SerialPolicy {
    /// The serial of the unsigned zone.
    #[default]
    Keep,
    /// The previous serial plus one, in serial number arithmetic (RFC 1982), never 0.
    Increment,
    /// The time in seconds since 1970.
    Unixtime,
    /// The date in UTC as `YYYYMMDDnn`; `nn` counts the versions of the day from 0.
    Date,
}

const POLICIES: [(SerialPolicy, &str); 4] = [
    (SerialPolicy::Keep, "keep"),
    (SerialPolicy::Increment, "increment"),
    (SerialPolicy::Unixtime, "unixtime"),
    (SerialPolicy::Date, "date"),
];

impl fmt::Display for SerialPolicy {
    /// Writes the name on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = POLICIES.iter().find(|(policy, _)| policy == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

/// The text is not the name of a serial policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown serial policy (known: keep, increment, unixtime, date)")]
pub struct UnknownPolicy;

impl FromStr for SerialPolicy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let found = POLICIES.iter().find(|(_, name)| name.eq_ignore_ascii_case(text));
        found.map(|(policy, _)| *policy).ok_or(UnknownPolicy)
    }
}
