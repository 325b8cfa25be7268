//! Generation of query files in the format of dnsperf: one `name type` on each line.
//!
//! The popularity of names follows Zipf's law. The query types have the proportions that servers of
//! such zones receive. A denied name is a name that does not exist, so that the response is
//! NXDOMAIN with a proof, not NODATA.

use super::profile::NameKind;
use super::random::{Permutation, Purpose, RandomStream, Streams, mix};
use super::sink::{Sink, Text};
use super::sld::{Sld, write_owner};
use super::tld::Tld;
use super::{GenerateError, GenerateOptions, Zone};
use nonesuch_proto::Rtype;
use std::collections::HashSet;
use std::io::Write;

/// Share of queries for the apex among queries for existing names, per mille.
const APEX_SHARE: u32 = 20;
/// Share of denied names that are existing names with a typing error, per mille. The others consist
/// of random letters.
const TYPO_SHARE: u32 = 500;
/// Query types at and below delegations, with their weights.
const DELEGATION_TYPES: &[(&str, u32)] =
    &[("A", 500), ("AAAA", 220), ("DS", 120), ("NS", 50), ("MX", 50), ("HTTPS", 40), ("TXT", 20)];
/// Query types at the apex, with their weights.
const APEX_TYPES: &[(&str, u32)] = &[("SOA", 400), ("NS", 400), ("DNSKEY", 200)];
/// Query types for names that do not exist, with their weights.
const DENIED_TYPES: &[(&str, u32)] = &[("A", 700), ("AAAA", 250), ("MX", 30), ("TXT", 20)];
/// Maximum number of owners of the given zone that are used as parents of denied names.
const PARENTS_MAX: usize = 64;

/// Counts of a query file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct QuerySummary {
    /// Number of queries for names that exist.
    pub existing: u64,
    /// Number of queries for names that do not exist.
    pub denied: u64,
}

/// Writes `count` queries for the zone that [`generate`](super::generate) writes with the same
/// options.
///
/// About `denied_percent` % of the queries, selected at random, are for names that do not exist.
/// The others are for names that exist, mostly with types that these names have; for a registry's
/// zone, most responses are referrals. `seed` determines the queries; the seed in `options`
/// determines the zone.
///
/// # Errors
///
/// Fails for the same reasons as `generate`, and if `denied_percent` is above 100.
pub fn queries(
    options: &GenerateOptions<'_>,
    denied_percent: u8,
    count: u64,
    seed: u64,
    out: &mut impl Write,
) -> Result<QuerySummary, GenerateError> {
    let zone = Zone::new(options)?;
    write_queries(denied_percent, count, seed, out, |is_denied, random, line| {
        match (&zone, is_denied) {
            (_, true) => write_nonexistent_label(&zone, random, line),
            (Zone::Tld(tld), false) => write_tld_query(tld, options.origin, random, line),
            (Zone::Sld(sld), false) => write_sld_query(sld, options.origin, random, line),
        }
        if is_denied {
            line.push(b'.');
            line.text(options.origin).text(" ").text(random.weighted(DENIED_TYPES));
        }
    })
}

/// Writes `count` queries for any zone, from the owner names of the zone.
///
/// `owners` are the owner names of the zone with the numbers of their types. The names are absolute
/// and in presentation format. They are the authoritative names and the delegations, without glue
/// and occluded names. `origin` is the apex. Queries at a delegation (NS records below the apex)
/// result in referrals or ask for DS records. Denied names are below the apex. If the apex has a
/// wildcard, they are below names without a wildcard.
///
/// # Errors
///
/// [`GenerateError::NothingToAsk`] if existing names are requested and the zone has none,
/// [`GenerateError::NothingToDeny`] if denied names are requested and no name can be denied,
/// [`GenerateError::DeniedPercent`] if `denied_percent` is above 100, [`GenerateError::Write`] if
/// writing to `out` fails.
pub fn queries_from_owners<'a>(
    origin: &str,
    owners: impl Iterator<Item = (&'a str, &'a [u16])>,
    denied_percent: u8,
    count: u64,
    seed: u64,
    out: &mut impl Write,
) -> Result<QuerySummary, GenerateError> {
    let owners = Owners::new(origin, owners, seed);
    if denied_percent < 100 && owners.queried.is_empty() {
        return Err(GenerateError::NothingToAsk { origin: origin.to_owned() });
    }
    if denied_percent > 0 && owners.parents.is_empty() {
        return Err(GenerateError::NothingToDeny { origin: origin.to_owned() });
    }
    write_queries(denied_percent, count, seed, out, |is_denied, random, line| {
        if is_denied {
            owners.write_denied_query(random, line)
        } else {
            owners.write_existing_query(random, line)
        }
    })
}

fn write_queries(
    denied_percent: u8,
    count: u64,
    seed: u64,
    out: &mut impl Write,
    write: impl Fn(bool, &mut RandomStream, &mut Vec<u8>),
) -> Result<QuerySummary, GenerateError> {
    if denied_percent > 100 {
        return Err(GenerateError::DeniedPercent { percent: denied_percent });
    }
    let mut summary = QuerySummary::default();
    let mut sink = Sink::new(out);
    let mut random = Streams::new(seed, Purpose::Query).stream(0);
    for _ in 0..count {
        let is_denied = random.below(100) < denied_percent.into();
        write(is_denied, &mut random, sink.line());
        sink.end_entry()?;
        if is_denied {
            summary.denied += 1;
        } else {
            summary.existing += 1;
        }
    }
    sink.finish()?;
    Ok(summary)
}

fn write_apex_query(origin: &str, random: &mut RandomStream, line: &mut Vec<u8>) {
    line.text(origin).text(" ").text(random.weighted(APEX_TYPES));
}

fn write_tld_query(tld: &Tld<'_>, origin: &str, random: &mut RandomStream, line: &mut Vec<u8>) {
    if random.per_mille(APEX_SHARE) {
        return write_apex_query(origin, random, line);
    }
    let index = random.zipf(tld.count());
    let rtype = random.weighted(DELEGATION_TYPES);
    if matches!(rtype, "A" | "AAAA") && random.per_mille(500) {
        line.text("www.");
    }
    tld.write_label(index, line);
    line.text(".").text(origin).text(" ").text(rtype);
}

fn write_sld_query(sld: &Sld<'_>, origin: &str, random: &mut RandomStream, line: &mut Vec<u8>) {
    if random.per_mille(APEX_SHARE) {
        return write_apex_query(origin, random, line);
    }
    let (kind, number) = sld.kind(random.zipf(sld.count()));
    let address = || [("A", 700), ("AAAA", 300)];
    let rtype = match kind {
        NameKind::Host | NameKind::SiteHost | NameKind::Alias | NameKind::Wildcard => {
            random.weighted(&address())
        }
        NameKind::MailDomain => random.weighted(&[("MX", 700), ("TXT", 300)]),
        NameKind::Dkim | NameKind::Dmarc | NameKind::Challenge => "TXT",
        NameKind::Service => "SRV",
        NameKind::UnsignedDelegation | NameKind::GluedDelegation | NameKind::SignedDelegation => {
            random.weighted(&[("A", 600), ("AAAA", 300), ("DS", 100)])
        }
        NameKind::Issuers => random.weighted(&[("A", 500), ("CAA", 500)]),
        NameKind::Tlsa => "TLSA",
        NameKind::Login => random.weighted(&[("A", 700), ("SSHFP", 300)]),
        NameKind::Naptr => "NAPTR",
        NameKind::Https => random.weighted(&[("A", 400), ("AAAA", 200), ("HTTPS", 400)]),
        NameKind::Svcb => "SVCB",
    };
    let mut owner = Vec::with_capacity(64);
    write_owner(kind, number, &mut owner);
    match owner.strip_prefix(b"*.") {
        // A name that the wildcard matches (RFC 4592).
        Some(rest) => {
            write_random_letters(random, line);
            line.push(b'.');
            line.extend_from_slice(rest);
        }
        None => line.extend_from_slice(&owner),
    }
    line.text(".").text(origin).text(" ").text(rtype);
}

/// Appends a label that is not the first label of a name in the zone. It has more than six octets
/// and contains a double letter, which no generated label does.
fn write_nonexistent_label(zone: &Zone<'_>, random: &mut RandomStream, line: &mut Vec<u8>) {
    if random.per_mille(TYPO_SHARE) {
        let mut label = Vec::with_capacity(64);
        match zone {
            Zone::Tld(tld) => tld.write_label(random.zipf(tld.count()), &mut label),
            Zone::Sld(sld) => write_owner(NameKind::Host, random.zipf(sld.count()), &mut label),
        }
        // A host name with a doubled letter does not exist in the zone, because no word in host
        // names has a double letter.
        let position = random.below(label.len() as u32) as usize;
        let is_long_enough = matches!(zone, Zone::Sld(_)) || (7..=62).contains(&label.len());
        if is_long_enough && label[position].is_ascii_alphabetic() && !label.starts_with(b"xn--") {
            label.insert(position, label[position]);
            line.extend_from_slice(&label);
            return;
        }
    }
    write_random_letters(random, line);
}

/// Appends 8 to 15 random letters, and doubles one of them.
fn write_random_letters(random: &mut RandomStream, line: &mut Vec<u8>) {
    let length = 8 + random.below(8);
    let doubled = random.below(length);
    for position in 0..length {
        let letter = b'a' + random.below(26) as u8;
        line.push(letter);
        if position == doubled {
            line.push(letter);
        }
    }
}

/// Owner names of a given zone, prepared for queries.
struct Owners<'a> {
    /// The owners with types for which queries are generated.
    queried: Vec<Owner<'a>>,
    /// Ranks of the owners by popularity, independent of their order in the zone.
    order: Permutation,
    /// All names in lower case, to check that a random name does not exist.
    names: HashSet<String>,
    /// Existing names below which a random name does not exist.
    parents: Vec<String>,
}

struct Owner<'a> {
    name: &'a str,
    types: Vec<u16>,
    is_delegation: bool,
}

impl<'a> Owners<'a> {
    fn new(origin: &str, owners: impl Iterator<Item = (&'a str, &'a [u16])>, seed: u64) -> Self {
        let mut names = HashSet::new();
        let mut queried = Vec::new();
        for (name, types) in owners {
            names.insert(name.to_ascii_lowercase());
            let queried_types: Vec<u16> =
                types.iter().copied().filter(|&number| !Rtype(number).is_signature_or_chain()).collect();
            if !queried_types.is_empty() {
                let is_delegation = !is_apex(name, origin) && queried_types.contains(&Rtype::NS.0);
                queried.push(Owner { name, types: queried_types, is_delegation });
            }
        }
        let parents = parents_of_denied_names(origin, &queried, &names);
        let order = Permutation::new(queried.len() as u64, mix(seed));
        Self { queried, order, names, parents }
    }

    /// Writes a query for an existing name. `queried` must not be empty.
    fn write_existing_query(&self, random: &mut RandomStream, line: &mut Vec<u8>) {
        let owner = &self.queried[self.order.apply(random.zipf(self.queried.len() as u64)) as usize];
        let wildcard = owner.name.strip_prefix("*.");
        if owner.is_delegation {
            let rtype = random.weighted(DELEGATION_TYPES);
            let www = wildcard.is_none() && matches!(rtype, "A" | "AAAA") && random.per_mille(500);
            line.text(if www { "www." } else { "" }).text(owner.name).text(" ").text(rtype);
            return;
        }
        let mut rtype = Rtype(owner.types[random.below(owner.types.len() as u32) as usize]);
        match wildcard {
            Some(rest) => {
                write_random_letters(random, line);
                line.text(".").text(rest);
            }
            None if rtype == Rtype::DNAME => {
                write_random_letters(random, line);
                line.text(".").text(owner.name);
            }
            None => _ = line.text(owner.name),
        }
        // At an alias, resolvers query for the type of the target.
        if rtype == Rtype::CNAME || rtype == Rtype::DNAME {
            rtype = Rtype::A;
        }
        line.text(" ").text(&rtype.in_zone_text().to_string());
    }

    /// Writes a query for a name that does not exist. `parents` must not be empty.
    fn write_denied_query(&self, random: &mut RandomStream, line: &mut Vec<u8>) {
        let parent = &self.parents[random.below(self.parents.len() as u32) as usize];
        let mut label = Vec::with_capacity(24);
        loop {
            label.clear();
            write_random_letters(random, &mut label);
            label.text(".").text(suffix_below(parent));
            // Random letters are very rarely a name of the zone. An empty non-terminal with such a
            // name is possible, but no more likely.
            if !std::str::from_utf8(&label).is_ok_and(|name| self.names.contains(name)) {
                break;
            }
        }
        line.extend_from_slice(&label);
        line.text(" ").text(random.weighted(DENIED_TYPES));
    }
}

fn is_apex(name: &str, origin: &str) -> bool {
    name.eq_ignore_ascii_case(origin)
}

/// Returns the part of a name below `parent` that follows the dot after the first label; empty for
/// the root.
fn suffix_below(parent: &str) -> &str {
    if parent == "." { "" } else { parent }
}

/// Returns names below which a random name does not exist: the closest encloser has no wildcard
/// (RFC 4592 §3.3.1), is not a delegation and has no DNAME record.
fn parents_of_denied_names(origin: &str, queried: &[Owner<'_>], names: &HashSet<String>) -> Vec<String> {
    let has_no_wildcard = |name: &str| !names.contains(&format!("*.{}", suffix_below(name)));
    let has_dname = |owner: &&Owner<'_>| owner.types.contains(&Rtype::DNAME.0);
    let apex = origin.to_ascii_lowercase();
    if has_no_wildcard(&apex) && !queried.iter().any(|owner| has_dname(&owner) && is_apex(owner.name, &apex))
    {
        return vec![apex];
    }
    queried
        .iter()
        .filter(|owner| {
            // A denied name is at most 17 octets longer than its parent.
            let is_short_enough = owner.name.len() + 24 <= 250;
            is_short_enough && !owner.is_delegation && !has_dname(owner) && !owner.name.starts_with("*.")
        })
        .map(|owner| owner.name.to_ascii_lowercase())
        .filter(|name| *name != apex && has_no_wildcard(name))
        .take(PARENTS_MAX)
        .collect()
}
