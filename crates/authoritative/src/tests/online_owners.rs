//! Owners and next names of denial records that are generated online, in complete responses: each
//! owner has one record of a type, and no record contains an existing name that the query does not
//! contain.

use super::*;
use crate::tests::oracle::Need;
use nonesuch_proto::{NameRef, bitmap};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Returns all mechanisms that sign online, for an unsigned zone and for a zone signed with NSEC;
/// and NSEC5.
fn setups() -> Vec<SigningSetup> {
    let mechanisms = [Mechanism::MinimalNsec, Mechanism::Compact, Mechanism::WhiteLies];
    let over = |mechanism| {
        [None, Some(Mechanism::Nsec)]
            .map(|presigned_with| SigningSetup { presigned_with, ..SigningSetup::new(Some(mechanism)) })
    };
    mechanisms.into_iter().flat_map(over).chain([SigningSetup::new(Some(Mechanism::Nsec5))]).collect()
}

/// Returns `name` and its ancestors up to the apex.
fn up_to_apex(name: &Name, apex: &Name) -> impl Iterator<Item = Name> {
    let labels = apex.view().label_count()..=name.view().label_count();
    labels.map(|count| name.view().suffix(count).to_canonical())
}

/// Returns the names that a denial may contain (RFC 4470 §3): those in the name, and the wildcard
/// of the closest encloser.
fn known_names(need: &Need, apex: &Name) -> Vec<Name> {
    let (name, encloser) = match need {
        Need::Type { name, .. } | Need::Ds { cut: name } => (name, None),
        Need::Name { name, encloser }
        | Need::CloserMatch { name, encloser }
        | Need::WildcardType { name, encloser, .. } => (name, Some(encloser)),
    };
    let wildcard = encloser.and_then(|encloser| Name::wildcard_below(encloser.view()).ok());
    up_to_apex(name, apex).chain(wildcard).collect()
}

/// Returns an existing name that an NSEC or NSEC5PROOF record discloses: it is neither one of
/// `known`, nor the zone cut or DNAME owner directly before one of them (RFC 6840 §4.1). A next
/// name must follow only from a known name.
fn disclosed(zone: &Zone, known: &[Name], record: &Record) -> Option<Name> {
    let (image, apex) = (zone.image(), zone.plain.apex().view());
    if record.rtype == Rtype::NSEC5PROOF {
        let is_disclosed = image.find_exact(record.owner.view()).is_some() && !known.contains(&record.owner);
        return is_disclosed.then(|| record.owner.clone());
    }
    let (next, types) = NameRef::split_from(&record.rdata).unwrap();
    let is_next = |known: &Name| {
        next == known.view().successor(apex).view() || next == known.view().successor_of_subtree(apex).view()
    };
    if !known.iter().any(is_next) {
        return Some(next.to_name());
    }
    let owner = &record.owner;
    let hides = bitmap::contains(types, Rtype::NS) || bitmap::contains(types, Rtype::DNAME);
    let is_before = |known: &Name| hides && known.view().sibling_predecessor().as_ref() == Some(owner);
    let is_known = known.contains(owner) || known.iter().any(is_before);
    (image.find_exact(owner.view()).is_some() && !is_known).then(|| owner.clone())
}

/// Checks that no response discloses a name, whether NSEC records are its answer or its proof.
fn check_disclosure(zone: &Zone, qname: &Name, qtype: Rtype) -> Result<(), Mismatch> {
    let message = zone.query_over_tcp(qname, qtype, true);
    let (apex, expected) = (zone.plain.apex(), Oracle::new(&zone.plain).resolve(qname, qtype));
    let mut known: Vec<Name> = expected.needs.iter().flat_map(|need| known_names(need, apex)).collect();
    // The query name, and the targets of aliases in the response.
    let aliases = message.section(Section::Answer).filter(|record| record.rtype == Rtype::CNAME);
    let targets = aliases.map(|record| NameRef::from_wire(&record.rdata).unwrap().to_name());
    for name in targets.chain([qname.clone()]).filter(|name| name.view().is_at_or_below(apex.view())) {
        known.extend(up_to_apex(&name, apex));
    }
    let has_names = |record: &&Record| matches!(record.rtype, Rtype::NSEC | Rtype::NSEC5PROOF);
    let mut records = message.records.iter().filter(has_names);
    match records.find_map(|record| disclosed(zone, &known, record)) {
        Some(name) => Err(format!("{qname} {qtype} discloses {name}\n{}", display_message(&message)).into()),
        None if has_one_denial_for_each_owner(&message) => Ok(()),
        None => {
            Err(format!("{qname} {qtype}: two records at one owner\n{}", display_message(&message)).into())
        }
    }
}

/// RFC 2181 §5: if the record that covers the name of an alias and the record that matches its
/// target have the same owner, they are one record.
#[test]
fn a_covering_and_a_matching_record_of_one_owner_are_one() {
    // The last name before `a\000.p` that fits into 255 octets; the wildcard leads to it.
    let longest = name("a\\000.p.example.").view().predecessor().unwrap();
    let text = format!(
        "$ORIGIN example.\n$TTL 3600\n@ SOA ns hostmaster 7 3600 300 3600000 900\n@ NS ns.test.\n\
         *.i CNAME b.b.b.c.a.i\nb.b.b.c.a.i TXT \"t\"\n\
         *.e CNAME e\ne TXT \"t\"\n\
         *.d CNAME x.cut.d\ncut.d NS ns.test.\n\
         *.n CNAME n.n\nn.n DNAME target.test.\n\
         *.p CNAME {longest}\na.p TXT \"t\"\n"
    );
    for setup in setups() {
        let zone = Zone::read(&text, "example.", &setup);
        let judged = |qname: &str| {
            zone.checked_response(qname, Rtype::MX, true);
            for qtype in [Rtype::MX, Rtype::NSEC] {
                check_disclosure(&zone, &name(qname), qtype)
                    .unwrap_or_else(|what| panic!("{setup:?}: {what}"));
            }
        };
        for qname in ["a\\000.i.example.", "\\000.e.example.", "n\\000.n.example.", "cut\\000.d.example."] {
            judged(qname);
        }
        // Other mechanisms deny the longest name; compact denial claims that it exists.
        if zone.is_compact() {
            judged("a\\000.p.example.");
        }
    }
}

/// The NSEC record of a wildcard as answer, and the one that covers the name below it, have the
/// same owner. They are one record.
#[test]
fn a_wildcard_that_answers_and_covers_has_one_record() {
    for setup in setups() {
        let zone = Zone::read(
            "$ORIGIN example.\n$TTL 3600\n@ SOA ns hostmaster 7 3600 300 3600000 900\n@ NS ns.test.\n\
             *.w DNAME target.test.\n",
            "example.",
            &setup,
        );
        let (qname, wildcard) = (name("*\\000.w.example."), name("*.w.example."));
        let message = zone.query_over_tcp(&qname, Rtype::NSEC, true);
        zone.verify(&message).unwrap();
        let is_wildcard = |record: &&Record| [&qname, &wildcard].contains(&&record.owner);
        let records = message.records.iter().filter(|record| record.rtype == Rtype::NSEC).filter(is_wildcard);
        let rdatas: BTreeSet<&[u8]> = records.map(|record| record.rdata.as_slice()).collect();
        assert!(rdatas.len() < 2 || zone.is_compact(), "{setup:?}\n{}", display_message(&message));
    }
}

/// A query that contains a neighbour of an existing name does not disclose this name. Only the
/// answer for a name itself shows that it exists.
#[test]
fn names_below_a_neighbour_are_not_disclosed() {
    for setup in setups() {
        let zone = Zone::read(
            "$ORIGIN example.\n$TTL 3600\n@ SOA ns hostmaster 7 3600 300 3600000 900\n@ NS ns.test.\n\
             corp A 192.0.2.1\nvpn.secret.corp A 192.0.2.2\n*.w A 192.0.2.3\nhidden.victim.w A 192.0.2.4\n",
            "example.",
            &setup,
        );
        for qname in ["corp\\000.example.", "victim\\000.w.example.", "\\000.corp.example."] {
            zone.checked_response(qname, Rtype::A, true);
            check_disclosure(&zone, &name(qname), Rtype::A)
                .unwrap_or_else(|what| panic!("{setup:?}: {what}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(4470),
        ..ProptestConfig::default()
    })]

    #[test]
    fn on_random_zones_of_neighbours(
        records in random::records(),
        queries in proptest::collection::vec((random::labels(0, 5), 0..random::TYPES.len()), 12),
        setup in 0..setups().len(),
    ) {
        let names = &random::NEIGHBOURS;
        let text = random::zone_text(names, &records);
        let zone = Zone::read(&text, names.apex, &setups()[setup]);
        for (labels, qtype) in queries {
            let (qname, qtype) = (name(&names.text_of(&labels)), random::TYPES[qtype]);
            let outcome = zone.check_response(&qname, qtype, true).map(drop)
                .and_then(|()| check_disclosure(&zone, &qname, qtype))
                .and_then(|()| check_disclosure(&zone, &qname, Rtype::NSEC));
            prop_assert!(outcome.is_ok(), "{:?}\n{}\n{text}", setups()[setup], outcome.unwrap_err());
        }
    }
    /// Here, the alias of a wildcard and its target are often neighbours.
    #[test]
    fn on_random_zones_of_aliases(
        records in random::records(),
        aliases in proptest::collection::vec((random::labels(0, 1), random::labels(0, 2)), 1..4),
        setup in 0..setups().len(),
    ) {
        let names = &random::NEIGHBOURS;
        let wildcard = |(parent, target): (Vec<usize>, _)| ([vec![3], parent].concat(), random::Data::Cname(target));
        let records: Vec<_> = aliases.into_iter().map(wildcard).chain(records).collect();
        let text = random::zone_text(names, &records);
        let zone = Zone::read(&text, names.apex, &setups()[setup]);
        for labels in (0..3).flat_map(|first| [vec![first], vec![first, 0], vec![first, 1], vec![first, 2]]) {
            let qname = name(&names.text_of(&labels));
            for qtype in [Rtype::AAAA, Rtype::NSEC] {
                let outcome = check_disclosure(&zone, &qname, qtype);
                prop_assert!(outcome.is_ok(), "{:?}\n{}\n{text}", setups()[setup], outcome.unwrap_err());
            }
        }
    }
}
