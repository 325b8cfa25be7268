//! Generation of zones, and of queries for these zones.
//!
//! Some zones cannot be shared, for example those of a registry or a customer. [`generate`] writes
//! a zone file (RFC 1035 §5) with the proportions of such a zone. [`queries`] writes a query file
//! for a generated zone, in the format of dnsperf (`name type`). [`queries_from_owners`] writes a
//! query file for any other zone. The same options result in the same octets on every machine. The
//! generator does not store names in memory: each name is a function of its index and the seed.
//!
//! The zones contain no names or addresses of others: name servers outside the zone have names
//! below the reserved top-level domains of RFC 2606; addresses are in 198.18.0.0/15 (RFC 2544) and
//! 2001:db8::/32 (RFC 3849).
//!
//! `docs/generated-zones.md` contains the proportions and their sources.

mod label;
mod profile;
mod query;
mod random;
mod sink;
mod sld;
#[cfg(test)]
mod tests;
mod tld;
mod zone_queries;

pub use profile::ZoneModel;
pub use query::{QuerySummary, queries, queries_from_owners};
pub use zone_queries::QueriedZone;

use profile::{Proportions, SoaTimes};
use sink::{Sink, Text};
use sld::Sld;
use std::io::{self, Write};
use tld::Tld;

/// Maximum number of names in a generated zone.
pub const MAX_NAMES: u64 = 1 << 32;

/// Maximum length of the origin, in octets of text. Every generated name below such an origin has
/// at most 255 octets (RFC 1035 §3.1).
pub const MAX_ORIGIN: usize = 120;

/// Options of a generated zone.
#[derive(Clone, Copy, Debug)]
pub struct GenerateOptions<'a> {
    /// Model whose proportions the zone has.
    pub like: ZoneModel,
    /// Number of names: delegations of a TLD, or owner names of an SLD. The apex, the few names
    /// that belong to it, and glue are not included.
    pub names: u64,
    /// Seed of the random values.
    pub seed: u64,
    /// Apex of the zone: an absolute domain name in presentation format. The caller must check that
    /// the name is valid: only the final dot and the length are checked here.
    pub origin: &'a str,
}

/// Counts of a generated zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Number of names, as requested.
    pub names: u64,
    /// Number of records, including those of the apex and glue.
    pub records: u64,
    /// Number of delegations.
    pub delegations: u64,
    /// Number of delegations with DS records.
    pub signed_delegations: u64,
    /// Number of delegations with glue for name servers below the delegation itself.
    pub glued_delegations: u64,
    /// Octets of text.
    pub octets: u64,
}

/// The text is not the name of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of zone \"{given}\": choose one of {}", model_names())]
pub struct UnknownZoneModel {
    /// The text.
    pub given: String,
}

fn model_names() -> String {
    ZoneModel::all().map(|model| model.to_string()).collect::<Vec<_>>().join(", ")
}

/// Reasons why the generation of a zone or query file fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum GenerateError {
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
    #[error("origin \"{origin}\" is not absolute: add a final dot")]
    RelativeOrigin { origin: String },
    #[error("cannot generate a root zone: set an origin below the root, such as \"test.\"")]
    RootOrigin,
    #[error(
        "the origin has {octets} octets, which is too long for names below it: the maximum is {MAX_ORIGIN} octets"
    )]
    OriginTooLong { octets: usize },
    #[error("a zone like {like} needs at least {minimum} names: set {minimum} or more")]
    TooFewNames { like: ZoneModel, minimum: u64 },
    #[error("{names} names are too many: the maximum is {MAX_NAMES}")]
    TooManyNames { names: u64 },
    #[error("{percent} % of denied queries is too high: set 0 to 100")]
    DeniedPercent { percent: u8 },
    #[error("the zone {origin} has no names for queries: use a zone with at least one authoritative RRset")]
    NothingToAsk { origin: String },
    #[error(
        "no name in the zone {origin} can be denied, because wildcards or zone cuts cover all names: generate only queries for existing names"
    )]
    NothingToDeny { origin: String },
}

/// A generated zone. It computes each name from its index.
enum Zone<'a> {
    Tld(Tld<'a>),
    Sld(Sld<'a>),
}

impl<'a> Zone<'a> {
    fn new(options: &GenerateOptions<'a>) -> Result<Self, GenerateError> {
        check_origin(options.origin)?;
        let profile = options.like.profile();
        let minimum = match &profile.proportions {
            Proportions::Tld(_) => 1,
            Proportions::Sld(proportions) => Sld::minimum_names(proportions),
        };
        if options.names < minimum {
            return Err(GenerateError::TooFewNames { like: options.like, minimum });
        }
        if options.names > MAX_NAMES {
            return Err(GenerateError::TooManyNames { names: options.names });
        }
        Ok(match &profile.proportions {
            Proportions::Tld(proportions) => Self::Tld(Tld::new(options, proportions)),
            Proportions::Sld(proportions) => Self::Sld(Sld::new(options, proportions)),
        })
    }
}

/// Writes a zone file (RFC 1035 §5). The records are not sorted. The serial is 1.
///
/// The function writes pieces of about 64 KiB, so `out` needs no buffer. Memory use does not depend
/// on the number of names.
///
/// # Errors
///
/// Fails before it writes anything if the origin is the root, has no final dot or is too long, or
/// if the model does not permit this number of names. Any other fault of the origin is not
/// detected; the zone file is then invalid. [`GenerateError::Write`] if writing to `out` fails.
pub fn generate(options: &GenerateOptions<'_>, out: &mut impl Write) -> Result<Summary, GenerateError> {
    let zone = Zone::new(options)?;
    let mut sink = Sink::new(out);
    let GenerateOptions { like, names, seed, origin } = options;
    sink.line().text(&format!("; {origin} like {like}, {names} names, seed {seed}"));
    sink.end_directive()?;
    let mut summary = match &zone {
        Zone::Tld(tld) => tld.write(&mut sink)?,
        Zone::Sld(sld) => sld.write(&mut sink)?,
    };
    (summary.records, summary.octets) = sink.finish()?;
    Ok(summary)
}

fn check_origin(origin: &str) -> Result<(), GenerateError> {
    if origin == "." {
        return Err(GenerateError::RootOrigin);
    }
    if !origin.ends_with('.') {
        return Err(GenerateError::RelativeOrigin { origin: origin.to_owned() });
    }
    if origin.len() > MAX_ORIGIN {
        return Err(GenerateError::OriginTooLong { octets: origin.len() });
    }
    Ok(())
}

/// Returns two reserved top-level domains (RFC 2606 §2) that do not contain the origin, for name
/// servers outside the zone.
fn outside_suffixes(origin: &str) -> [&'static str; 2] {
    let contains_origin = |suffix: &str| {
        let origin = origin.to_ascii_lowercase();
        origin.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    match ["example.", "test.", "invalid."] {
        [first, second, third] if contains_origin(first) => [second, third],
        [first, second, third] if contains_origin(second) => [first, third],
        [first, second, _] => [first, second],
    }
}

/// Writes the SOA record (RFC 1035 §3.3.13) with the serial 1. The names are relative to the
/// origin.
fn write_soa<W: Write>(
    times: &SoaTimes,
    server: &str,
    mailbox: &str,
    sink: &mut Sink<'_, W>,
) -> Result<(), GenerateError> {
    let line = tld::begin_apex_record(times.ttl, "SOA", sink).text(server).text(" ").text(mailbox).text(" 1");
    for timer in [times.refresh, times.retry, times.expire, times.minimum] {
        line.text(" ").decimal(timer.into());
    }
    sink.end_entry()?;
    Ok(())
}
