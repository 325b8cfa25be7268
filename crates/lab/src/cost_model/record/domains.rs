//! The domains whose servers answer a resolver.

use super::bounded_map::BoundedMap;
use super::space_saving::{CountedDomain, SpaceSaving};
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_proto::message::{Message, Section, flags};
use nonesuch_proto::{Name, NameRef, Rtype};

/// Domains that are counted.
const DOMAINS_MAX: usize = 100_000;
/// Known zone cuts.
const CUTS_MAX: usize = 200_000;

/// Counts answered queries by the zone that answered, in bounded memory: exactly for at most 100,000
/// zones, and otherwise as [`SpaceSaving`] does. A query without a response belongs to no zone.
#[derive(Debug)]
pub struct DomainCounter {
    domains: SpaceSaving,
    /// Apexes of zones that responses have shown.
    cuts: BoundedMap<Name, ()>,
}

/// The zone of a response.
struct AnsweringZone {
    apex: Name,
    /// Whether an RRSIG record has this signer.
    signed: bool,
}

impl Default for DomainCounter {
    fn default() -> Self {
        Self { domains: SpaceSaving::new(DOMAINS_MAX), cuts: BoundedMap::new(CUTS_MAX) }
    }
}

impl DomainCounter {
    /// Creates a counter with the domains of an earlier recording.
    #[must_use]
    pub fn restored(domains: Vec<CountedDomain>) -> Self {
        let mut counter = Self::default();
        for domain in domains {
            counter.cuts.insert(domain.domain.view().to_canonical(), ());
            counter.domains.restore(domain);
        }
        counter
    }

    /// Counts a response.
    pub fn count(&mut self, response: &Message) {
        if let Some(zone) = self.zone_of(response) {
            self.domains.add(&zone.apex, 1, zone.signed);
        }
    }

    /// Returns the counted domains, in no order.
    #[must_use]
    pub fn counted(&self) -> &[CountedDomain] {
        self.domains.entries()
    }

    /// Whether no domain is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counted().is_empty()
    }

    /// Finds the zone that a response is from: the signer, or the zone of the SOA record or of
    /// authoritative NS records. Other responses do not name their zone; it is then the closest
    /// enclosing one that an earlier response has shown.
    fn zone_of(&mut self, response: &Message) -> Option<AnsweringZone> {
        let question = response.questions.first()?;
        let name = question.name.view();
        let encloses = |zone: NameRef<'_>| name.is_at_or_below(zone);
        let signer = deepest(signers(response).filter(|signer| encloses(*signer)));
        let owner_of = |rtype: Rtype| {
            let records = response.section(Section::Authority).filter(move |record| record.rtype == rtype);
            deepest(records.map(|record| record.owner.view()).filter(|owner| encloses(*owner)))
        };
        let (soa, ns) = (owner_of(Rtype::SOA), owner_of(Rtype::NS));
        let is_authoritative = response.header.flags & flags::AA != 0;
        let own = signer.or(soa).or_else(|| ns.filter(|_| is_authoritative));
        for apex in [signer, soa, ns].into_iter().flatten() {
            self.cuts.insert(apex.to_canonical(), ());
        }
        let apex = match (own, ns) {
            (Some(apex), _) => apex.to_canonical(),
            // A referral is from a zone above the delegation (RFC 1034 §4.3.2).
            (None, Some(child)) => self.closest(child.parent()?),
            // RFC 4035 §3.1.4.1: the DS RRset is in the zone above.
            (None, None) if question.rtype == Rtype::DS => self.closest(name.parent()?),
            (None, None) => self.closest(name),
        };
        Some(AnsweringZone { signed: signer.is_some_and(|signer| signer == apex.view()), apex })
    }

    /// Returns the closest known zone at or above a name; the root if none is known.
    fn closest(&mut self, name: NameRef<'_>) -> Name {
        let mut zones = std::iter::successors(Some(name), |name| name.parent());
        let known = zones.find_map(|zone| {
            let zone = zone.to_canonical();
            self.cuts.get(&zone).is_some().then_some(zone)
        });
        known.unwrap_or_else(Name::root)
    }
}

fn deepest<'n>(names: impl Iterator<Item = NameRef<'n>>) -> Option<NameRef<'n>> {
    names.max_by_key(|name| name.label_count())
}

/// The signers of the answer and authority sections.
fn signers(response: &Message) -> impl Iterator<Item = NameRef<'_>> {
    let signatures = response.records.iter().filter(|record| {
        record.rtype == Rtype::RRSIG && matches!(record.section, Section::Answer | Section::Authority)
    });
    signatures.filter_map(|record| Some(Rrsig::parse(&record.rdata)?.signer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Description, Tree, ZoneDescription};

    fn tree() -> Tree {
        let mut plain = ZoneDescription::new("plain.example.");
        plain.signed = false;
        let zones = vec![
            ZoneDescription::new("."),
            ZoneDescription::new("example."),
            ZoneDescription::new("signed.example."),
            plain,
        ];
        Tree::build(&Description { zones, ..Description::default() }, 1, 1_767_225_600).expect("a tree")
    }

    /// Sends a question to the server of each zone from the root on.
    fn resolve(tree: &Tree, counter: &mut DomainCounter, name: &str, rtype: Rtype) {
        let name: Name = name.parse().unwrap();
        for zone in tree.zones.iter().filter(|zone| name.view().is_at_or_below(zone.origin.view())) {
            counter.count(&tree.respond(zone.server, name.view(), rtype).expect("a response"));
        }
    }

    #[test]
    fn each_response_belongs_to_the_zone_that_answers() {
        let (tree, mut counter) = (tree(), DomainCounter::default());
        for (name, rtype) in [
            ("www.signed.example.", Rtype::A),
            ("none.signed.example.", Rtype::A),
            ("www.plain.example.", Rtype::A),
            ("www.plain.example.", Rtype::MX),
            ("none.plain.example.", Rtype::A),
        ] {
            resolve(&tree, &mut counter, name, rtype);
        }
        let mut found: Vec<_> = counter
            .counted()
            .iter()
            .map(|entry| (entry.domain.to_string(), entry.count, entry.signed, entry.uncertainty))
            .collect();
        found.sort();
        let row = |name: &str, count, signed| (name.to_owned(), count, signed, 0);
        let wanted = [
            row(".", 5, true),
            row("example.", 5, true),
            row("plain.example.", 3, false),
            row("signed.example.", 2, true),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_ds_rrset_belongs_to_the_zone_above() {
        let (tree, mut counter) = (tree(), DomainCounter::default());
        let zone = &tree.zones[1];
        let name: Name = "signed.example.".parse().unwrap();
        counter.count(&zone.respond(name.view(), Rtype::DS));
        assert_eq!(counter.counted()[0].domain, "example.".parse::<Name>().unwrap());
    }

    #[test]
    fn a_restored_counter_knows_its_zones() {
        let zone: Name = "plain.example.".parse().unwrap();
        let entry = CountedDomain { domain: zone.clone(), count: 7, uncertainty: 0, signed: false };
        let mut counter = DomainCounter::restored(vec![entry]);
        let mut response =
            tree().zones[3].respond("www.plain.example.".parse::<Name>().unwrap().view(), Rtype::A);
        response.records.retain(|record| record.section == Section::Answer);
        counter.count(&response);
        assert_eq!((counter.counted()[0].count, &counter.counted()[0].domain), (8, &zone));
    }
}
