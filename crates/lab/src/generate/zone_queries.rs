//! Queries for the names of an existing zone.

use nonesuch_proto::Rtype;
use nonesuch_zone::{Contents, name_statuses};
use std::collections::HashSet;
use std::io::Write;

use super::{GenerateError, QuerySummary, queries_from_owners};
use crate::measure::examine::strip_dnssec;

/// Number of the type HINFO (RFC 1035 §3.3.2), which few names have.
const HINFO: u16 = 13;
/// Maximum number of queries of lists without repetition.
const LINES_MAX: usize = 50_000;

/// The names of an existing zone for which queries are generated.
#[derive(Clone, Debug)]
pub struct QueriedZone {
    origin: String,
    /// The authoritative names and the delegations with their types.
    owners: Vec<(String, Vec<u16>)>,
}

impl QueriedZone {
    /// Collects the names of a signed or unsigned zone.
    #[must_use]
    pub fn of(contents: &Contents) -> Self {
        // The owner names of NSEC3 records do not exist for queries (RFC 5155 §7.2.8).
        let unsigned = strip_dnssec(contents);
        let names = unsigned.nodes().zip(name_statuses(&unsigned));
        let owners = names
            .filter(|(_, status)| status.is_in_chain())
            .map(|(node, _)| (node.name().to_string(), node.rrsets().map(|rrset| rrset.rtype().0).collect()));
        Self { origin: unsigned.apex().to_string(), owners: owners.collect() }
    }

    /// Writes `count` queries as [`queries_from_owners`] does.
    ///
    /// # Errors
    /// The errors of `queries_from_owners`.
    pub fn write_queries(
        &self,
        denied_percent: u8,
        count: u64,
        seed: u64,
        out: &mut impl Write,
    ) -> Result<QuerySummary, GenerateError> {
        let owners = self.owners.iter().map(|(name, types)| (name.as_str(), types.as_slice()));
        queries_from_owners(&self.origin, owners, denied_percent, count, seed, out)
    }

    /// Writes a query for each existing name below which a random label does not exist: names
    /// without a wildcard below them (RFC 4592 §3.3.1), delegation or DNAME record.
    ///
    /// # Errors
    /// [`GenerateError::NothingToDeny`] if there is no such name, [`GenerateError::Write`] if writing
    /// to `out` fails.
    pub fn write_parents(&self, out: &mut impl Write) -> Result<(), GenerateError> {
        self.write_addresses(|_| true, out)
    }

    /// Writes a query for the IPv4 address of each name that has one, and below which a random label
    /// does not exist.
    ///
    /// # Errors
    /// As [`Self::write_parents`].
    pub fn write_hosts(&self, out: &mut impl Write) -> Result<(), GenerateError> {
        self.write_addresses(|types| types.contains(&Rtype::A.0), out)
    }

    fn write_addresses(
        &self,
        is_wanted: impl Fn(&[u16]) -> bool,
        out: &mut impl Write,
    ) -> Result<(), GenerateError> {
        let wildcards: HashSet<&str> =
            self.owners.iter().filter_map(|(name, _)| name.strip_prefix("*.")).collect();
        let parents = self.owners.iter().filter(|(name, types)| {
            let is_delegation = self.is_delegation(name, types);
            !is_delegation
                && is_wanted(types)
                && !types.contains(&Rtype::DNAME.0)
                && !name.starts_with("*.")
                && !wildcards.contains(name.as_str())
        });
        let fault = GenerateError::NothingToDeny { origin: self.origin.clone() };
        write_lines(parents.map(|(name, _)| format!("{name} A")), fault, out)
    }

    /// Writes a query for a name below each delegation.
    ///
    /// # Errors
    /// [`GenerateError::NothingToAsk`] if there is no delegation, [`GenerateError::Write`] if writing
    /// to `out` fails.
    pub fn write_referrals(&self, out: &mut impl Write) -> Result<(), GenerateError> {
        let delegations = self.owners.iter().filter(|(name, types)| self.is_delegation(name, types));
        self.write_existing(delegations.map(|(name, _)| format!("www.{name} A")), out)
    }

    /// Writes a query for each existing name with a type that it does not have.
    ///
    /// # Errors
    /// As [`Self::write_referrals`], without a name that is neither a delegation nor an alias.
    pub fn write_missing_types(&self, out: &mut impl Write) -> Result<(), GenerateError> {
        let names = self.owners.iter().filter(|(name, types)| {
            let is_alias = types.contains(&Rtype::CNAME.0) || types.contains(&HINFO);
            !is_alias && !self.is_delegation(name, types) && !name.starts_with("*.")
        });
        self.write_existing(names.map(|(name, _)| format!("{name} HINFO")), out)
    }

    /// Writes a query for each wildcard. The name is that of its parent: a label in front of it
    /// results in a name that matches the wildcard.
    ///
    /// # Errors
    /// As [`Self::write_referrals`], without a wildcard.
    pub fn write_wildcards(&self, out: &mut impl Write) -> Result<(), GenerateError> {
        let wildcards = self.owners.iter().filter_map(|(name, types)| {
            let rtype =
                types.iter().map(|number| Rtype(*number)).find(|rtype| !rtype.is_signature_or_chain())?;
            Some(format!("{} {}", name.strip_prefix("*.")?, rtype.in_zone_text()))
        });
        self.write_existing(wildcards, out)
    }

    /// Writes one query for the apex.
    ///
    /// # Errors
    /// [`GenerateError::Write`] if writing to `out` fails.
    pub fn write_apex(&self, rtype: Rtype, out: &mut impl Write) -> Result<(), GenerateError> {
        self.write_existing([format!("{} {}", self.origin, rtype.in_zone_text())].into_iter(), out)
    }

    fn write_existing(
        &self,
        lines: impl Iterator<Item = String>,
        out: &mut impl Write,
    ) -> Result<(), GenerateError> {
        write_lines(lines, GenerateError::NothingToAsk { origin: self.origin.clone() }, out)
    }

    fn is_delegation(&self, name: &str, types: &[u16]) -> bool {
        types.contains(&Rtype::NS.0) && name != self.origin
    }
}

/// Writes the first [`LINES_MAX`] lines. Fails with `without` if `lines` is empty.
fn write_lines(
    lines: impl Iterator<Item = String>,
    without: GenerateError,
    out: &mut impl Write,
) -> Result<(), GenerateError> {
    let mut written = false;
    for line in lines.take(LINES_MAX) {
        writeln!(out, "{line}").map_err(GenerateError::Write)?;
        written = true;
    }
    if written { Ok(()) } else { Err(without) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::examine::tests::signed_zone;
    use nonesuch_proto::Name;

    #[test]
    fn the_share_of_denied_names_is_kept() {
        let contents = signed_zone();
        for (denied_percent, range) in [(0, 0..=0), (30, 250..=350), (100, 1000..=1000)] {
            let mut text = Vec::new();
            let zone = QueriedZone::of(&contents);
            let summary = zone.write_queries(denied_percent, 1000, 1, &mut text).expect("queries");
            assert_eq!(summary.existing + summary.denied, 1000);
            assert!(range.contains(&summary.denied), "{summary:?}");
            let text = String::from_utf8(text).expect("text");
            for line in text.lines() {
                let name: Name = line.split(' ').next().expect("a name").parse().expect("a name");
                assert!(name.view().is_at_or_below(contents.apex().view()), "{line}");
            }
        }
    }
}
