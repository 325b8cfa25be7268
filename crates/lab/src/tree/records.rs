//! The records of a zone in a form that faults can change.

use super::error::TreeError;
use super::fault::Fault;
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::{Name, Rtype, rdata};
use nonesuch_zone::{Contents, NodesBuilder};
use std::collections::BTreeMap;

/// TTL and RDATA of an RRset.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordSet {
    pub(super) ttl: u32,
    pub(super) rdatas: Vec<Vec<u8>>,
}

/// Identifies an RRset at a name: its type, and false. For the set of its RRSIG records: the
/// covered type, and true. The order is that of [`Contents`].
type RrsetKey = (Rtype, bool);

/// All records of a zone.
#[derive(Clone, Debug)]
pub(super) struct Records {
    pub(super) apex: Name,
    pub(super) names: BTreeMap<Name, BTreeMap<RrsetKey, RecordSet>>,
}

impl Records {
    pub(super) fn new(contents: &Contents) -> Self {
        let sets = |node: nonesuch_zone::Node<'_>| {
            let set = |rrset: nonesuch_zone::Rrset<'_>| {
                let key = (rrset.covered(), rrset.rtype() == Rtype::RRSIG);
                (key, RecordSet { ttl: rrset.ttl(), rdatas: rrset.rdatas().map(<[u8]>::to_vec).collect() })
            };
            (node.name().to_name(), node.rrsets().map(set).collect())
        };
        Self { apex: contents.apex().clone(), names: contents.nodes().map(sets).collect() }
    }

    /// The zone. RRsets without records disappear.
    pub(super) fn into_contents(self) -> Contents {
        let mut nodes = NodesBuilder::default();
        for (name, mut sets) in self.names {
            sets.retain(|_, set| !set.rdatas.is_empty());
            if sets.is_empty() {
                continue;
            }
            nodes.begin_node(name.view());
            for ((covered, is_signature), mut set) in sets {
                let rtype = if is_signature { Rtype::RRSIG } else { covered };
                nodes.begin_rrset(rtype, covered, set.ttl);
                set.rdatas.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
                set.rdatas.dedup();
                for octets in set.rdatas {
                    nodes.push_record(|out| out.extend_from_slice(&octets));
                }
            }
        }
        Contents::from_nodes(&self.apex, nodes)
    }

    /// Owner and type of the signed RRsets that `is_selected` selects.
    pub(super) fn signed_rrsets(&self, is_selected: impl Fn(&Name, Rtype) -> bool) -> Vec<(Name, Rtype)> {
        let mut found = Vec::new();
        for (name, sets) in &self.names {
            let signatures = sets.keys().filter(|(_, is_signature)| *is_signature);
            let selected = signatures.filter(|(rtype, _)| is_selected(name, *rtype));
            found.extend(selected.map(|(rtype, _)| (name.clone(), *rtype)));
        }
        found
    }

    /// The RRset of `rtype`; with `is_signature`, the set of its signatures.
    pub(super) fn rrset_mut(
        &mut self,
        owner: &Name,
        rtype: Rtype,
        is_signature: bool,
    ) -> Option<&mut RecordSet> {
        self.names.get_mut(owner)?.get_mut(&(rtype, is_signature))
    }

    /// Removes all RRsets of `rtype` with their signatures, of the owners that `is_selected`
    /// selects.
    pub(super) fn remove(&mut self, rtype: Rtype, is_selected: impl Fn(&Name) -> bool) {
        for (_, sets) in self.names.iter_mut().filter(|(name, _)| is_selected(name)) {
            sets.retain(|(covered, _), _| *covered != rtype);
        }
    }

    /// Changes the RDATA of all RRsets of `rtype`; returns the owners.
    pub(super) fn edit_rdata(&mut self, rtype: Rtype, change: impl Fn(&Name, &mut Vec<u8>)) -> Vec<Name> {
        let mut owners = Vec::new();
        for (name, sets) in &mut self.names {
            let Some(set) = sets.get_mut(&(rtype, false)) else { continue };
            set.rdatas.iter_mut().for_each(|octets| change(name, octets));
            owners.push(name.clone());
        }
        owners
    }

    /// Replaces each signature over an RRset by a signature of the same key over the RRset at
    /// `signed_owner`. `change` changes the fields before they are signed.
    pub(super) fn re_sign_as(
        &mut self,
        (owner, signed_owner): (&Name, &Name),
        rtype: Rtype,
        keys: &KeySet,
        change: &dyn Fn(&mut Rrsig<'_>),
    ) -> Result<(), nonesuch_crypto::SignError> {
        let Some(sets) = self.names.get_mut(owner) else { return Ok(()) };
        let Some(covered) = sets.get(&(rtype, false)).cloned() else { return Ok(()) };
        let Some(signatures) = sets.get_mut(&(rtype, true)) else { return Ok(()) };
        for octets in &mut signatures.rdatas {
            let Some(fields) = Rrsig::parse(octets) else { continue };
            let Some(key) = keys.keys().iter().find(|key| key.tag() == fields.tag) else { continue };
            *octets = sign_changed(signed_owner, &covered, fields, key, change)?;
        }
        Ok(())
    }

    /// Replaces the signatures over an RRset by one of `key`, with the fields of the first one.
    pub(super) fn sign_with(
        &mut self,
        owner: &Name,
        rtype: Rtype,
        key: &KeyPair,
    ) -> Result<(), nonesuch_crypto::SignError> {
        let Some(sets) = self.names.get_mut(owner) else { return Ok(()) };
        let Some(covered) = sets.get(&(rtype, false)).cloned() else { return Ok(()) };
        let Some(signatures) = sets.get_mut(&(rtype, true)) else { return Ok(()) };
        let Some(fields) = signatures.rdatas.first().and_then(|octets| Rrsig::parse(octets)) else {
            return Ok(());
        };
        let signature = sign_changed(owner, &covered, fields, key, &|fields| fields.tag = key.tag())?;
        signatures.rdatas = vec![signature];
        Ok(())
    }

    /// Replaces the signatures over an RRset by one of each of `keys`, with the other fields of the
    /// first signature.
    pub(super) fn sign_with_each(
        &mut self,
        owner: &Name,
        rtype: Rtype,
        keys: &[&KeyPair],
    ) -> Result<(), nonesuch_crypto::SignError> {
        let Some(sets) = self.names.get_mut(owner) else { return Ok(()) };
        let Some(covered) = sets.get(&(rtype, false)).cloned() else { return Ok(()) };
        let Some(signatures) = sets.get_mut(&(rtype, true)) else { return Ok(()) };
        let Some(template) = signatures.rdatas.first().cloned() else { return Ok(()) };
        let Some(fields) = Rrsig::parse(&template) else { return Ok(()) };
        let sign = |key: &&KeyPair| {
            sign_changed(owner, &covered, fields, key, &|fields| {
                (fields.algorithm, fields.tag) = (key.algorithm(), key.tag());
            })
        };
        signatures.rdatas = keys.iter().map(sign).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Replaces each signature by what `sign` returns for its owner, its fields, and the RDATA of its RRset in
    /// canonical order. A signature for which `sign` returns `None` is removed.
    pub(super) fn replace_signatures(
        &mut self,
        sign: impl Fn(&Name, Rrsig<'_>, &[Vec<u8>]) -> Option<Vec<u8>>,
    ) {
        for (owner, sets) in &mut self.names {
            let covered: Vec<Rtype> =
                sets.keys().filter(|(_, is_signature)| *is_signature).map(|(rtype, _)| *rtype).collect();
            for rtype in covered {
                let mut rdatas = sets.get(&(rtype, false)).cloned().unwrap_or_default().rdatas;
                rdatas.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
                let Some(signatures) = sets.get_mut(&(rtype, true)) else { continue };
                let signed = signatures.rdatas.iter().filter_map(|octets| Rrsig::parse(octets));
                signatures.rdatas = signed.filter_map(|fields| sign(owner, fields, &rdatas)).collect();
            }
        }
    }

    /// As [`Records::re_sign_as`], for each of `rrsets` at its owner, with an error that names the
    /// fault.
    pub(super) fn re_sign_all(
        &mut self,
        rrsets: &[(Name, Rtype)],
        keys: &KeySet,
        fault: Fault,
        change: &dyn Fn(&mut Rrsig<'_>),
    ) -> Result<(), TreeError> {
        let failed = |source| TreeError::FaultySignature { zone: keys.zone().clone(), fault, source };
        rrsets.iter().try_for_each(|(owner, rtype)| {
            self.re_sign_as((owner, owner), *rtype, keys, change).map_err(failed)
        })
    }
}

/// Returns the RDATA of a signature over `covered` with `fields`, after `change`.
fn sign_changed(
    owner: &Name,
    covered: &RecordSet,
    mut fields: Rrsig<'_>,
    key: &KeyPair,
    change: &dyn Fn(&mut Rrsig<'_>),
) -> Result<Vec<u8>, nonesuch_crypto::SignError> {
    change(&mut fields);
    fields.sign(owner.view(), covered.rdatas.iter().map(Vec::as_slice), key.private())
}
