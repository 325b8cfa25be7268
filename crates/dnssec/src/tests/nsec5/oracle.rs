//! Random zones: the chain equals the chain that follows from the definitions, name by name, and
//! verification detects every removed record.

use super::*;
use crate::tests::random::{any_zone, config};
use data_encoding::BASE32HEX_NOPAD;
use nonesuch_proto::NameRef;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::{BTreeMap, BTreeSet};

/// A name of the zone according to the definitions.
#[derive(Default)]
struct Known {
    types: BTreeSet<Rtype>,
    has_wildcard: bool,
}

fn ancestors<'n>(owner: NameRef<'n>, apex: &Name) -> Vec<NameRef<'n>> {
    let mut list = Vec::new();
    let mut above = owner.parent();
    while let Some(found) = above.filter(|found| found.is_at_or_below(apex.view())) {
        list.push(found);
        above = found.parent();
    }
    list
}

/// The names of the unsigned zone `contents`, including empty non-terminals, without glue and
/// occluded names.
fn names(contents: &Contents) -> BTreeMap<Name, Known> {
    let apex = contents.apex();
    let has = |owner: NameRef<'_>, rtype| contents.find(owner).is_ok_and(|node| node.has(rtype));
    let mut all: BTreeMap<Name, Known> = BTreeMap::new();
    for node in contents.nodes() {
        let above = ancestors(node.name(), apex);
        let hidden = |owner: &NameRef<'_>| {
            has(*owner, Rtype::DNAME) || has(*owner, Rtype::NS) && *owner != apex.view()
        };
        if above.iter().any(hidden) {
            continue;
        }
        let types = node.rrsets().map(|rrset| rrset.rtype());
        all.entry(node.name().to_canonical()).or_default().types.extend(types);
        for owner in above {
            all.entry(owner.to_canonical()).or_default();
        }
    }
    for wildcard in all.keys().filter(|owner| owner.view().is_wildcard()).cloned().collect::<Vec<_>>() {
        let parent = wildcard.view().parent().unwrap().to_name();
        all.get_mut(&parent).unwrap().has_wildcard = true;
    }
    all
}

/// Owner and RDATA of every record of the chain, by owner.
fn expected_chain(contents: &Contents, vrf: &VrfPrivateKey, opt_out: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let apex = contents.apex();
    let mut hashed = Vec::new();
    for (owner, mut known) in names(contents) {
        let is_apex = owner == *apex;
        let is_cut = known.types.contains(&Rtype::NS) && !is_apex;
        let is_signed = if is_cut { known.types.contains(&Rtype::DS) } else { !known.types.is_empty() };
        if is_cut && !is_signed && opt_out {
            continue;
        }
        if is_cut {
            known.types.retain(|rtype| [Rtype::NS, Rtype::DS].contains(rtype));
        }
        if is_apex {
            known.types.extend([Rtype::DNSKEY, Rtype::NSEC5KEY]);
        }
        if is_signed {
            known.types.insert(Rtype::RRSIG);
        }
        let mut canonical = Vec::new();
        owner.view().push_canonical(&mut canonical);
        hashed.push((vrf.prove(&canonical, &mut Vec::new()).unwrap(), known));
    }
    hashed.sort_by_key(|(hash, _)| *hash);
    let nexts: Vec<_> = hashed.iter().map(|(hash, _)| *hash).cycle().skip(1).take(hashed.len()).collect();
    let tag = Nsec5Key::of(vrf).tag();
    let record = |((hash, known), next): (&([u8; 32], Known), [u8; 32])| {
        let label = BASE32HEX_NOPAD.encode(hash).to_ascii_lowercase();
        let owner = Name::prepend(label.as_bytes(), apex.view()).unwrap();
        let mut rdata = tag.to_be_bytes().to_vec();
        rdata.extend([u8::from(opt_out) + 2 * u8::from(known.has_wildcard), 32]);
        rdata.extend(next);
        nonesuch_proto::bitmap::push(&known.types.iter().copied().collect::<Vec<_>>(), &mut rdata);
        (owner.view().wire().to_vec(), rdata)
    };
    hashed.iter().zip(nexts).map(record).collect()
}

fn found_chain(contents: &Contents) -> Vec<(Vec<u8>, Vec<u8>)> {
    let with_record = contents.nodes().filter_map(|node| Some((node, node.rrset(Rtype::NSEC5)?)));
    let records = with_record.flat_map(|(node, rrset)| {
        rrset.rdatas().map(move |rdata| (node.name().wire().to_vec(), rdata.to_vec()))
    });
    records.collect()
}

proptest! {
    #![proptest_config(config(150, 51))]

    #[test]
    fn the_chain_is_that_of_the_definitions(records in any_zone(), opt_out: bool) {
        let contents = zone(&records);
        let mechanism = BOTH[usize::from(opt_out)];
        let vrf = vrf();
        let proofs = prove(&contents, &vrf, mechanism);
        let signed = sign_nsec5(&contents, mechanism, &proofs);
        prop_assert_eq!(found_chain(&signed), expected_chain(&contents, &vrf, opt_out));
        for evidence in [by_proofs(&proofs), by_key(&vrf), Nsec5Evidence::default()] {
            let report = report_with(&signed, &evidence);
            prop_assert_eq!(&report.faults, &vec![]);
        }
    }

    #[test]
    fn a_dropped_record_is_missed(records in any_zone(), opt_out: bool, which: Index) {
        let contents = zone(&records);
        let mechanism = BOTH[usize::from(opt_out)];
        let proofs = prove(&contents, &vrf(), mechanism);
        let signed = sign_nsec5(&contents, mechanism, &proofs);
        let text = text(&signed);
        let lines: Vec<&str> = text.lines().collect();
        let protected: Vec<usize> = (0..lines.len()).filter(|place| {
            let fields = Bench::fields(lines[*place]);
            let rtype: Rtype = fields[3].parse().unwrap();
            // A zone without its SOA record is rejected when it is read.
            rtype != Rtype::SOA && (rtype == Rtype::RRSIG || node(&signed, fields[0]).signatures(rtype).is_some())
        }).collect();
        let dropped = protected[which.index(protected.len())];
        let rest: Vec<&str> = (0..lines.len()).filter(|place| *place != dropped).map(|place| lines[place]).collect();
        let damaged = read_zone(&rest.join("\n"), contents.apex());
        for evidence in [by_proofs(&proofs), Nsec5Evidence::default()] {
            prop_assert!(!report_with(&damaged, &evidence).has_no_faults(), "{}", lines[dropped]);
        }
    }

    #[test]
    fn octets_of_proofs_never_panic(at: Index, octet: u8, cut in 0usize..40) {
        let mut octets = octets(&prove(&zone("a A 192.0.2.1"), &vrf(), Mechanism::Nsec5));
        let place = at.index(octets.len());
        octets[place] = octet;
        octets.truncate(octets.len() - cut);
        if let Ok(read) = Proofs::read(&digested(octets)) {
            prop_assert_eq!(read.entries().count(), read.len());
        }
    }
}
