//! The faults of a proxy: violations of RFC 5625 that devices have.

use std::fmt;
use std::str::FromStr;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Responses over UDP are cut to 512 octets without the flag TC.
    CutAt512,
    /// Responses over UDP of more than 512 octets are dropped.
    DropOver512,
    /// Responses over UDP of more than 1,220 octets are dropped.
    DropOver1220,
    /// Responses over UDP that need several IP packets are dropped.
    DropFragments,
    /// The OPT record of queries is removed.
    DropOpt,
    /// The EDNS payload size of queries is set to 512.
    LimitPayload,
    /// The flags AD, CD and Z are cleared.
    ClearFlags,
    /// The flag DO of queries is cleared.
    ClearDo,
    /// TCP connections are refused.
    NoTcp,
    /// TCP queries are forwarded over UDP.
    TcpToUdp,
    /// Answers of some types are cached without RRSIG records.
    CacheWithoutRrsig,
    /// Responses are cached whatever DO and CD are.
    CacheRegardless,
    /// Queries for unknown types are dropped.
    DropUnknownTypes,
    /// Messages with opcodes other than QUERY are dropped.
    DropUnknownOpcodes,
    /// TSIG records are removed.
    DropTsig,
    /// All queries have the same ID.
    FixedId,
    /// All queries have the same source port.
    FixedPort,
    /// Queries from the side of the provider are answered.
    OpenWan,
    /// Responses over UDP are not fragmented.
    ForbidFragments,
    /// The EDNS payload size of queries is set to 4,096.
    RaisePayload,
    /// Connections of clients stay open without a response if the server refuses TCP.
    HoldTcp,
}

/// One row of [`FAULTS`].
#[derive(Clone, Copy, Debug)]
pub struct FaultEntry {
    /// The fault.
    pub fault: Fault,
    /// The name on the command line.
    pub name: &'static str,
    /// The items of the functional checks that find it. `P` is case 7 of the published procedure, with
    /// the number of its finding.
    pub items: &'static str,
    /// What the proxy does.
    pub effect: &'static str,
}

const fn row(fault: Fault, name: &'static str, items: &'static str, effect: &'static str) -> FaultEntry {
    FaultEntry { fault, name, items, effect }
}

/// All faults, in the order of the variants of [`Fault`].
pub static FAULTS: &[FaultEntry] = &[
    row(Fault::CutAt512, "cut-at-512", "P (2) (3), XP-003", "cuts UDP responses to 512 octets, with TC=0"),
    row(Fault::DropOver512, "drop-over-512", "P (2) (3)", "drops UDP responses of more than 512 octets"),
    row(Fault::DropOver1220, "drop-over-1220", "P (3)", "drops UDP responses of more than 1,220 octets"),
    row(
        Fault::DropFragments,
        "drop-fragments",
        "P (3), XP-009, XP-011",
        "drops UDP responses of more than 1,472 octets",
    ),
    row(Fault::DropOpt, "drop-opt", "P (1), XP-016", "removes the OPT record of queries"),
    row(Fault::LimitPayload, "limit-payload", "XP-002", "sets the EDNS payload size of queries to 512"),
    row(
        Fault::ClearFlags,
        "clear-flags",
        "P (1), XP-006, XP-016",
        "clears AD, CD and Z in queries and responses",
    ),
    row(Fault::ClearDo, "clear-do", "P (1)", "clears DO in queries"),
    row(Fault::NoTcp, "no-tcp", "P (4), XP-004", "refuses TCP connections"),
    row(Fault::TcpToUdp, "tcp-to-udp", "XP-004, XP-015", "forwards TCP queries over UDP"),
    row(
        Fault::CacheWithoutRrsig,
        "cache-without-rrsig",
        "P (5), XP-010",
        "caches answers of common types without their RRSIG records",
    ),
    row(
        Fault::CacheRegardless,
        "cache-regardless",
        "XP-010, XP-016",
        "caches responses whatever DO and CD are",
    ),
    row(Fault::DropUnknownTypes, "drop-unknown-types", "XP-001", "drops queries for types above 255"),
    row(
        Fault::DropUnknownOpcodes,
        "drop-unknown-opcodes",
        "XP-001",
        "drops messages with an opcode other than QUERY",
    ),
    row(Fault::DropTsig, "drop-tsig", "XP-005", "removes TSIG records"),
    row(Fault::FixedId, "fixed-id", "XP-007", "forwards all queries with the ID 1"),
    row(Fault::FixedPort, "fixed-port", "XP-007", "forwards all queries from one port"),
    row(Fault::OpenWan, "open-wan", "XP-008", "also answers on the address of --wan"),
    row(
        Fault::ForbidFragments,
        "forbid-fragments",
        "XP-009, XP-011",
        "sends UDP responses that must not be fragmented, so that larger ones than the path MTU are lost",
    ),
    row(
        Fault::RaisePayload,
        "raise-payload",
        "P (4), XP-002, XP-012, XP-013",
        "sets the EDNS payload size of queries to 4,096",
    ),
    row(
        Fault::HoldTcp,
        "hold-tcp",
        "XP-014",
        "leaves TCP queries without a response if the server refuses TCP",
    ),
];

impl Fault {
    /// The row of [`FAULTS`].
    #[must_use]
    pub fn entry(self) -> &'static FaultEntry {
        // A test checks that the rows have the order of the variants.
        &FAULTS[self as usize]
    }
}

impl fmt::Display for Fault {
    /// Writes the name on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.entry().name)
    }
}

/// The text is not the name of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault (known: {})", names())]
pub struct UnknownFault;

fn names() -> String {
    FAULTS.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        FAULTS.iter().find(|entry| entry.name == text).map(|entry| entry.fault).ok_or(UnknownFault)
    }
}

/// The faults of a proxy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults(u32);

impl Faults {
    pub(super) fn new(faults: &[Fault]) -> Self {
        Self(faults.iter().fold(0, |bits, fault| bits | 1 << *fault as u32))
    }

    pub(super) const fn has(self, fault: Fault) -> bool {
        self.0 >> fault as u32 & 1 == 1
    }

    /// Whether it has one of these faults.
    pub(super) fn has_any(self, faults: &[Fault]) -> bool {
        faults.iter().any(|fault| self.has(*fault))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_variants_and_names_are_parsed() {
        for entry in FAULTS {
            assert_eq!(entry.fault.entry().name, entry.name);
            assert_eq!(entry.name.parse(), Ok(entry.fault));
        }
        assert_eq!("none".parse::<Fault>(), Err(UnknownFault));
    }

    #[test]
    fn a_set_has_its_faults_only() {
        let faults = Faults::new(&[Fault::CutAt512, Fault::OpenWan]);
        for entry in FAULTS {
            let expected = matches!(entry.fault, Fault::CutAt512 | Fault::OpenWan);
            assert_eq!(faults.has(entry.fault), expected, "{}", entry.name);
        }
    }
}
