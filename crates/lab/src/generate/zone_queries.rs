//! Queries for the names of an existing zone.

use nonesuch_zone::{Contents, name_statuses};

use super::{GenerateError, QuerySummary, queries_from_owners};
use crate::measure::examine::strip;

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
        let unsigned = strip(contents);
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
        out: &mut impl std::io::Write,
    ) -> Result<QuerySummary, GenerateError> {
        let owners = self.owners.iter().map(|(name, types)| (name.as_str(), types.as_slice()));
        queries_from_owners(&self.origin, owners, denied_percent, count, seed, out)
    }
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
