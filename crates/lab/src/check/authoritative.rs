//! Checks of an authoritative name server, from outside, with queries for one of its zones.
//!
//! Most items need only the apex of the zone. Others need names whose answers are known: a test zone
//! ([`test_zone`]) has them, and the check recognises it by a marker record. Signatures and denials are
//! validated with the DNSKEY records of the server, or from trust anchors.

mod cases;
mod denial;
mod errors;
mod facts;
mod options;
mod protocol;
mod records;
mod responses;
mod signed;
mod sizes;
mod start;
pub mod test_zone;
mod transfer;
mod update;

pub use start::StartError;

use super::{CheckClient, Evidence, Item, Query, Response, Row};
use crate::enumerate::Recognised;
use crate::query::random_id;
use nonesuch_dnssec::validate::{
    Budget, InsecureReason, ProvedAnswer, Question, SecurityStatus, TrustedKeys, Validation,
    ValidationLimits, validate,
};
use nonesuch_dnssec::verify::Anchor;
use nonesuch_proto::{Name, Rtype};
use std::net::SocketAddr;
use std::time::Duration;

/// What the check needs to know.
pub struct AuthoritativeOptions {
    /// The server.
    pub server: SocketAddr,
    /// The apex of the zone.
    pub zone: Name,
    /// Time limit for each response.
    pub timeout: Duration,
    /// Time at which signatures must be valid, in seconds since 1970 modulo 2^32.
    pub now: u32,
    /// The trust anchors of the zone; empty: the DNSKEY records of the server are trusted.
    pub anchors: Vec<Anchor>,
    /// Signs transfers and updates.
    pub signer: Option<Signer>,
}

/// Signs a query with TSIG, and returns the verifier of its responses.
pub type Signer = Box<dyn Fn(&mut Vec<u8>) -> Verifier>;

/// Verifies the messages of a response in order. The flag is set for the last message.
///
/// The error is the reason as text, for the result of an item.
pub type Verifier = Box<dyn FnMut(&[u8], bool) -> Result<(), String>>;

/// The server and the zone that are checked.
pub struct Authoritative {
    client: CheckClient,
    zone: Name,
    now: u32,
    anchors: Vec<Anchor>,
    keys: ZoneKeys,
    /// The denial mechanism; `None`: it was not recognised.
    recognised: Option<Recognised>,
    is_test_zone: bool,
    /// RDATA of the SOA record.
    soa: Vec<u8>,
    signer: Option<Signer>,
    /// UDP payload size in the OPT record of the server.
    announced: Option<u16>,
}

/// The keys with which the check validates responses.
enum ZoneKeys {
    /// The zone has no DNSKEY record.
    Unsigned,
    /// The keys of the zone.
    Trusted(Box<TrustedKeys>),
    /// The zone has DNSKEY records, and they are not trusted for this reason.
    Untrusted(String),
}

/// Why a case of an item failed: what was expected, and what was observed.
type Fault = String;

/// The items, in the order of their numbers.
pub fn items() -> impl Iterator<Item = &'static Row<Authoritative>> {
    let tables = [
        sizes::JPRS,
        signed::ITEMS,
        denial::ITEMS,
        sizes::ITEMS,
        protocol::PIPELINING,
        transfer::ITEMS,
        protocol::ITEMS,
        errors::ITEMS,
        options::ITEMS,
        records::CDS,
        denial::COMPACT,
        records::CATALOG,
        update::ITEMS,
        records::DNAME,
    ];
    tables.into_iter().flatten()
}

impl Authoritative {
    /// A query with DO for a name and a type.
    fn query(&self, name: &Name, rtype: Rtype) -> Query {
        Query::new(name.clone(), rtype)
    }

    /// A name of the zone.
    fn name(&self, relative: &str) -> Result<Name, Fault> {
        Name::from_text(relative.as_bytes(), Some(self.zone.view()))
            .map_err(|error| format!("the name {relative} does not fit below {}: {error}", self.zone))
    }

    /// A random name below `parent` that the zone does not have.
    fn random_name(&self, parent: &Name) -> Result<Name, Fault> {
        let (first, second) = (random_id(), random_id());
        let (Ok(first), Ok(second)) = (first, second) else {
            return Err("the system has no random octets".to_owned());
        };
        let label = format!("nonesuch-{first:04x}{second:04x}");
        Name::prepend(label.as_bytes(), parent.view()).map_err(|error| error.to_string())
    }

    /// Sends a query over UDP, and over TCP if the response is truncated.
    fn ask(&self, evidence: &mut Evidence, query: &Query) -> Result<Response, Fault> {
        let response = self.client.ask(evidence, query);
        response.map_err(|fault| format!("{} {}: {fault}", query.name, query.rtype))
    }

    /// Whether the zone is signed.
    const fn is_signed(&self) -> bool {
        !matches!(self.keys, ZoneKeys::Unsigned)
    }

    /// Validates a response with the keys of the zone. `None`: the zone is unsigned.
    fn validate(&self, response: &Response, name: &Name, rtype: Rtype) -> Result<Option<Validation>, Fault> {
        let keys = match &self.keys {
            ZoneKeys::Unsigned => return Ok(None),
            ZoneKeys::Untrusted(reason) => {
                return Err(format!("the keys of the zone are not trusted: {reason}"));
            }
            ZoneKeys::Trusted(keys) => keys,
        };
        let mut budget = Budget::new(ValidationLimits::default());
        let question = Question { name: name.view(), rtype };
        Ok(Some(validate(question, &response.message, keys, self.now, &mut budget)))
    }

    /// Sends a query and validates the response. Returns what it proves; `None`: the zone is unsigned.
    fn prove(
        &self,
        evidence: &mut Evidence,
        name: &Name,
        rtype: Rtype,
    ) -> Result<(Response, Option<ProvedAnswer>), Fault> {
        let response = self.ask(evidence, &self.query(name, rtype))?;
        let Some(validation) = self.validate(&response, name, rtype)? else { return Ok((response, None)) };
        let reason = match validation.status {
            SecurityStatus::Secure => None,
            // An insecure proof is correct with opt-out, for unsigned delegations, and with iterations,
            // which XA-008 reports.
            SecurityStatus::Insecure(reason) => (validation.proved.is_none()
                || reason == InsecureReason::UnsupportedAlgorithms)
                .then(|| format!("insecure: {reason}")),
            SecurityStatus::Bogus(reason) => Some(format!("bogus: {reason} ({})", reason.rule())),
            SecurityStatus::Indeterminate(reason) => {
                Some(format!("not validated: {reason} ({})", reason.rule()))
            }
        };
        match reason {
            Some(reason) => Err(format!("{name} {rtype}: {reason}")),
            None => Ok((response, validation.proved)),
        }
    }

    /// Sends a query, and checks that the response proves the expected content. In an unsigned zone, the
    /// caller checks the response.
    fn expect(
        &self,
        evidence: &mut Evidence,
        name: &Name,
        rtype: Rtype,
        expected: &ProvedAnswer,
    ) -> Result<Response, Fault> {
        let (response, proved) = self.prove(evidence, name, rtype)?;
        match proved {
            Some(proved) if proved != *expected => Err(format!(
                "{name} {rtype}: expected {}, the response proves {}",
                responses::proved_text(expected),
                responses::proved_text(&proved)
            )),
            _ => Ok(response),
        }
    }
}

/// A row of a table of items.
const fn row(
    id: &'static str,
    subject: &'static str,
    rules: &'static [&'static str],
    method: &'static str,
    run: fn(&mut Authoritative, &mut Evidence) -> super::Outcome,
) -> Row<Authoritative> {
    Row { item: Item { id, subject, rules, method, is_jprs: false, is_quick: false }, run }
}

/// The row as part of the quick profile.
const fn quick(mut row: Row<Authoritative>) -> Row<Authoritative> {
    row.item.is_quick = true;
    row
}
