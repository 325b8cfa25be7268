//! How the server of a zone behaves.

use nonesuch_proto::{Name, Rtype};
use std::time::Duration;

/// Maximum size of a response over UDP without another setting, in octets.
const UDP_OCTETS: usize = 1232;

/// What the server of a zone does differently from a correct one. The default is a correct server that
/// limits its responses over UDP to 1,232 octets.
#[derive(Clone, Debug)]
pub(in crate::check) struct Behaviour {
    /// Maximum size of a response over UDP, in octets, if the resolver accepts it.
    pub(in crate::check) udp_octets: usize,
    /// Queries with an OPT record get FORMERR without an OPT record (RFC 6891 §7).
    pub(in crate::check) rejects_edns: bool,
    /// All responses over UDP have TC set and no records.
    pub(in crate::check) truncates: bool,
    /// Responses over UDP of more octets do not arrive, as if fragments were dropped.
    pub(in crate::check) drops_over: Option<usize>,
    /// Time before a response.
    pub(in crate::check) delay: Duration,
    /// Responses have the AD flag set.
    pub(in crate::check) sets_ad: bool,
    /// The OPT record of responses has an unknown option.
    pub(in crate::check) adds_option: bool,
    /// Answers have their records in reverse order, and the first one, a signature, twice.
    pub(in crate::check) reorders: bool,
    /// Answers have each record of data twice.
    pub(in crate::check) repeats: bool,
    /// Signatures over records of this type are wrong.
    pub(in crate::check) forges: Option<Rtype>,
    /// Owners and names in RDATA are in upper case.
    pub(in crate::check) upper_case: bool,
    /// The domain of the agent in the EDNS option Report-Channel (RFC 9567).
    pub(in crate::check) report_to: Option<Name>,
    /// Signatures over A records are wrong while the check demands it.
    pub(in crate::check) bogus_on_demand: bool,
    /// Responses have an EDNS cookie (RFC 7873).
    pub(in crate::check) has_cookies: bool,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            udp_octets: UDP_OCTETS,
            rejects_edns: false,
            truncates: false,
            drops_over: None,
            delay: Duration::ZERO,
            sets_ad: false,
            adds_option: false,
            reorders: false,
            repeats: false,
            forges: None,
            upper_case: false,
            report_to: None,
            bogus_on_demand: false,
            has_cookies: false,
        }
    }
}
