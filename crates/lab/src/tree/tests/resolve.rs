//! Resolves names in a tree from its trust anchor, with `nonesuch_dnssec::validate` for each
//! response. Delegations and DS records are followed here, independently of the code that plants
//! faults.

use super::super::{Outcome, Tree, TreeZone};
use nonesuch_crypto::{Algorithm, DigestType};
use nonesuch_dnssec::keys::{PROTOCOL, REVOKE, ZONE_KEY, ds_rdata};
use nonesuch_dnssec::validate::{
    Budget, ProvedAnswer, Question, SecurityStatus, TrustedKeys, Validation, ValidationLimits, validate,
};
use nonesuch_proto::message::Section;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::net::Ipv4Addr;

/// Outcome and extended error.
type Found = (Outcome, Option<u16>);

const ALIASES: usize = 16;
const DS_RECORDS: usize = 8;

/// Resolves a question.
pub(super) fn resolve(tree: &Tree, name: &Name, rtype: Rtype) -> Found {
    let mut name = name.clone();
    for _ in 0..ALIASES {
        match resolve_one(tree, &name, rtype) {
            Err(found) => return found,
            Ok(Some(target)) => name = target,
            Ok(None) => return (Outcome::Secure, None),
        }
    }
    (Outcome::Failure, None)
}

/// Resolves without following aliases out of the response; returns their target. An error is any
/// result other than Secure.
fn resolve_one(tree: &Tree, name: &Name, rtype: Rtype) -> Result<Option<Name>, Found> {
    let mut path = vec![tree.zone_of(name.view()).unwrap()];
    while let Some(parent) = path[0].parent {
        path.insert(0, &tree.zones[parent]);
    }
    for (index, zone) in path.iter().enumerate() {
        let parent = index.checked_sub(1).map(|index| path[index]);
        if !is_reachable(tree, parent, zone) {
            return Err((Outcome::Failure, Some(22)));
        }
    }
    let mut ds = tree.anchor_ds();
    for (index, zone) in path.iter().enumerate() {
        let keys = trusted_keys(tree, zone, &ds)?;
        if let Some(child) = path.get(index + 1) {
            let validation = ask(tree, zone, &keys, &child.origin, Rtype::DS);
            secure(&validation)?;
            if validation.proved != Some(ProvedAnswer::Answer) {
                // RFC 6840 §4.4: the denial must be that of a delegation.
                secure(&ask(tree, zone, &keys, &child.origin, Rtype::NS))?;
                return Err((Outcome::Insecure, None));
            }
            ds = rdatas(zone, child.origin.view(), Rtype::DS);
        } else {
            let validation = ask(tree, zone, &keys, name, rtype);
            secure(&validation)?;
            if let Some(ProvedAnswer::Alias { target }) = validation.proved {
                return Ok(Some(target));
            }
        }
    }
    Ok(None)
}

/// Whether the NS and address records of the parent, or the root hints, lead to a server that has
/// the zone.
fn is_reachable(tree: &Tree, parent: Option<&TreeZone>, zone: &TreeZone) -> bool {
    let servers = tree.servers();
    let has_zone = |address: Ipv4Addr| {
        servers.get(&address).is_some_and(|zones| zones.iter().any(|served| served.origin == zone.origin))
    };
    let Some(parent) = parent else {
        return has_zone(zone.server) && tree.root_hints().ends_with(&format!(" A {}\n", zone.server));
    };
    let nameservers = rdatas(parent, zone.origin.view(), Rtype::NS);
    let glue = nameservers.iter().flat_map(|ns| rdatas(parent, NameRef::from_wire(ns).unwrap(), Rtype::A));
    glue.map(|a| Ipv4Addr::from(<[u8; 4]>::try_from(a).unwrap())).any(has_zone)
}

fn rdatas(zone: &TreeZone, owner: NameRef<'_>, rtype: Rtype) -> Vec<Vec<u8>> {
    let rrset = zone.contents.find(owner).ok().and_then(|node| node.rrset(rtype));
    rrset.into_iter().flat_map(|rrset| rrset.rdatas().map(<[u8]>::to_vec)).collect()
}

/// The keys of a zone that DS records lead to (RFC 4035 §5.2).
fn trusted_keys(tree: &Tree, zone: &TreeZone, ds: &[Vec<u8>]) -> Result<TrustedKeys, Found> {
    let known = |ds: &&Vec<u8>| Algorithm(ds[2]).entry().is_some();
    if !ds.iter().any(|ds| known(&ds)) {
        return Err((Outcome::Insecure, Some(1)));
    }
    if !ds.iter().filter(known).any(|ds| DigestType(ds[3]).octets().is_some()) {
        return Err((Outcome::Insecure, Some(2)));
    }
    let dnskeys = rdatas(zone, zone.origin.view(), Rtype::DNSKEY);
    // RFC 4509 §3: SHA-1 is ignored if there is another known digest.
    let is_sha1 = |ds: &&Vec<u8>| DigestType(ds[3]) == DigestType::SHA1;
    let has_other = ds.iter().filter(known).any(|ds| !is_sha1(&ds) && DigestType(ds[3]).octets().is_some());
    let usable_ds: Vec<&Vec<u8>> = ds.iter().filter(|ds| !(has_other && is_sha1(ds))).collect();
    let is_linked = |key: &&Vec<u8>| {
        usable_ds.iter().take(DS_RECORDS).any(|ds| {
            ds_rdata(zone.origin.view(), key, DigestType(ds[3])).is_some_and(|digest| digest == **ds)
        })
    };
    let linked: Vec<&Vec<u8>> = dnskeys.iter().filter(is_linked).collect();
    let flags = |key: &Vec<u8>| u16::from_be_bytes([key[0], key[1]]);
    if !linked.is_empty() && linked.iter().all(|key| flags(key) & ZONE_KEY == 0) {
        return Err((Outcome::Bogus, Some(11)));
    }
    let usable = linked.into_iter().filter(|key| flags(key) & REVOKE == 0 && key[2] == PROTOCOL);
    let limits = ValidationLimits::default();
    let usable: Vec<&[u8]> = usable.map(Vec::as_slice).collect();
    if usable.is_empty() {
        return Err((Outcome::Bogus, Some(9)));
    }
    let first = TrustedKeys::new(&zone.origin, usable, &limits);
    secure(&ask(tree, zone, &first, &zone.origin, Rtype::DNSKEY))?;
    let mut keys = TrustedKeys::new(&zone.origin, dnskeys.iter().map(Vec::as_slice), &limits);
    if zone.nsec5.is_some() {
        let response = zone.respond(zone.origin.view(), Rtype::NSEC5KEY);
        assert!(response.section(Section::Answer).next().is_some());
        secure(&keys.learn_nsec5_keys(&response, tree.now, &mut budget()))?;
    }
    Ok(keys)
}

fn budget() -> Budget {
    Budget::new(ValidationLimits::default())
}

fn ask(tree: &Tree, zone: &TreeZone, keys: &TrustedKeys, name: &Name, rtype: Rtype) -> Validation {
    let question = Question { name: name.view(), rtype };
    validate(question, &zone.respond(name.view(), rtype), keys, tree.now, &mut budget())
}

/// An error if the status is not Secure.
fn secure(validation: &Validation) -> Result<(), Found> {
    match &validation.status {
        SecurityStatus::Secure => Ok(()),
        SecurityStatus::Insecure(reason) => Err((Outcome::Insecure, reason.extended_error())),
        SecurityStatus::Bogus(reason) => Err((Outcome::Bogus, Some(reason.extended_error()))),
        SecurityStatus::Indeterminate(_) => Err((Outcome::Failure, None)),
    }
}
