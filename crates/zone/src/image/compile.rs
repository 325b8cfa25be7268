//! Compiler from contents to an image.

use super::node::{BLOCK_UNIT, u32_le};
use super::part::{Buffers, ImageName, ImagePart, Index, SourceZone, is_nsec5};
use super::signature::ValidityPeriod;
use super::{Image, Nsec3Parameters, Nsec5Key, Sections, ZoneSummary, index};
use crate::Contents;
use crate::builder::ZoneFault;
use crate::name_status::{NameStatus, name_statuses};
use crate::ordered::for_each_ordered;
use bytes::Bytes;
use nonesuch_crypto::key_tag;
use nonesuch_proto::{NameRef, Rtype};
use std::collections::HashMap;

/// Number of names in an [`ImagePart`], which one task of the thread pool renders.
const NAMES_PER_PART: usize = 4096;

/// Reason why contents cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// There is no SOA record.
    #[error("the zone has no SOA record at its apex")]
    NoSoa,
    /// An RRset does not fit in a message.
    #[error(transparent)]
    Zone(#[from] ZoneFault),
    /// Templates or names exceed the address range of an image.
    #[error("the zone is too large for one image")]
    TooLarge,
}

impl Image {
    /// Compiles the records of a zone to an image, from which a server answers.
    ///
    /// # Errors
    /// The zone has no SOA record, an RRset does not fit in a message, or the zone is too large for
    /// an image.
    pub fn compile(contents: &Contents) -> Result<Self, CompileError> {
        contents.check_sizes()?;
        Self::compile_any(contents)
    }

    /// Same as [`compile`](Self::compile), but without the check of the sizes of RRsets.
    pub(super) fn compile_any(contents: &Contents) -> Result<Self, CompileError> {
        let soa = contents.soa().ok_or(CompileError::NoSoa)?;
        let (nsec3, nsec5) = (nsec3_parameters(contents), nsec5_key(contents));
        let has_nsec = contents.apex_rrset(Rtype::NSEC).is_some();
        let has_no_chain = !has_nsec && nsec3.is_none() && nsec5.is_none();
        let negative_ttl = soa.negative_ttl();
        let zone = SourceZone { contents, negative_ttl, nsec3, nsec5, has_nsec, has_no_chain };
        let names = image_names(&zone);
        let mut builder = ImageBuilder::default();
        for_each_ordered(
            names.len().div_ceil(NAMES_PER_PART),
            |number, buffers: &mut Buffers, part: &mut ImagePart| {
                let end = names.len().min((number + 1) * NAMES_PER_PART);
                part.render(&zone, &names[number * NAMES_PER_PART..end], buffers);
                Ok(())
            },
            |part| builder.append_part(part),
        )?;
        drop(names);
        builder.into_image(&zone, soa.serial)
    }
}

/// The image under construction.
#[derive(Default)]
struct ImageBuilder {
    blocks: Vec<u8>,
    names: Vec<u32>,
    order: Index,
    nsec3: Index,
    nsec5: Index,
    forms: Vec<u8>,
    /// Offset of each form in `forms`.
    form_offsets: HashMap<Vec<u8>, u32>,
    period: Option<ValidityPeriod>,
    signatures: u64,
    /// [`ImagePart::negative_soa`] of the first part, which contains the apex.
    negative_soa: Option<u16>,
}

impl ImageBuilder {
    /// Appends a part, whose names must follow the names of the image.
    fn append_part(&mut self, part: &mut ImagePart) -> Result<(), CompileError> {
        let base = u32::try_from(self.blocks.len() / BLOCK_UNIT).map_err(|_| CompileError::TooLarge)?;
        let end = (self.blocks.len() + part.blocks.len()) / BLOCK_UNIT;
        // The highest number marks an empty slot of the hash table (`index`).
        if end >= u32::MAX as usize {
            return Err(CompileError::TooLarge);
        }
        let offsets: Vec<u32> = part.forms.drain(..).map(|form| self.form_offset(form)).collect();
        for &at in &part.form_references {
            let offset = offsets[u32_le(&part.blocks, at) as usize];
            part.blocks[at..at + 4].copy_from_slice(&offset.to_le_bytes());
        }
        self.blocks.extend_from_slice(&part.blocks);
        self.names.extend(part.names.iter().map(|at| base + at));
        let lists =
            [(&mut self.order, &part.order), (&mut self.nsec3, &part.nsec3), (&mut self.nsec5, &part.nsec5)];
        for (whole, part) in lists {
            whole.keys.extend_from_slice(&part.keys);
            whole.nodes.extend(part.nodes.iter().map(|at| base + at));
        }
        self.period = match (self.period, part.period) {
            (Some(whole), Some(part)) => Some(whole.intersect(part)),
            (whole, part) => whole.or(part),
        };
        self.signatures += part.signatures;
        self.negative_soa.get_or_insert(part.negative_soa);
        Ok(())
    }

    /// Returns the offset of the form and adds it if it is new. If the offsets exceed 32 bits,
    /// `into_image` fails.
    fn form_offset(&mut self, form: Vec<u8>) -> u32 {
        if let Some(offset) = self.form_offsets.get(&form) {
            return *offset;
        }
        let offset = self.forms.len() as u32;
        self.forms.extend_from_slice(&form);
        self.form_offsets.insert(form, offset);
        offset
    }

    fn into_image(self, zone: &SourceZone<'_>, serial: u32) -> Result<Image, CompileError> {
        // Base32hex preserves the order of octets (RFC 4648 §7), so the canonical order of the
        // owners is the order of the hashes.
        debug_assert!(self.nsec3.keys.as_chunks::<20>().0.is_sorted());
        debug_assert!(self.nsec5.keys.as_chunks::<32>().0.is_sorted());
        let mut summary = ZoneSummary {
            apex: zone.contents.apex().view().to_canonical(),
            serial,
            is_signed: false,
            negative_soa: self.negative_soa.unwrap_or(0),
            nsec3: zone.nsec3.clone().filter(|_| !self.nsec3.nodes.is_empty()),
            nsec5: zone.nsec5.filter(|_| !self.nsec5.nodes.is_empty()),
            period: self.period,
            signatures: self.signatures,
        };
        let has = |rtype| zone.contents.apex_rrset(rtype).is_some();
        let has_denial_chain = has(Rtype::NSEC) || summary.nsec3.is_some() || summary.nsec5.is_some();
        summary.is_signed = has(Rtype::DNSKEY) && has_denial_chain;
        let mut image = Image { summary, sections: Sections::default(), is_chain_verified: false };
        let sections = &mut image.sections;
        sections.blocks = into_bytes(self.blocks);
        (sections.order_keys, sections.order_nodes) = split_index(self.order);
        (sections.nsec3_hashes, sections.nsec3_nodes) = split_index(self.nsec3);
        (sections.nsec5_hashes, sections.nsec5_nodes) = split_index(self.nsec5);
        sections.forms = into_bytes(self.forms);
        if u32::try_from(image.sections.forms.len()).is_err() {
            return Err(CompileError::TooLarge);
        }
        let names = self.names.iter().map(|at| (*at, image.node(*at).name().wire()));
        image.sections.name_table = into_bytes(index::build_table(table_key(&image.sections.blocks), names));
        Ok(image)
    }
}

/// Returns the key of the hash table. It is a digest, so the same zone gives the same image, and a
/// change of any name changes the key.
fn table_key(blocks: &[u8]) -> [u8; index::SLOT_OCTETS] {
    let digest = blake3::Hasher::new().update_rayon(blocks).finalize();
    digest.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// Converts the octets without their spare capacity.
fn into_bytes(mut octets: Vec<u8>) -> Bytes {
    octets.shrink_to_fit();
    octets.into()
}

fn split_index(index: Index) -> (Bytes, Bytes) {
    let nodes: Vec<u8> = index.nodes.iter().flat_map(|at| at.to_le_bytes()).collect();
    (into_bytes(index.keys), into_bytes(nodes))
}

/// Returns the parameters of the NSEC3 chain that the server uses; `None` if there is no usable
/// NSEC3PARAM record. The chain is complete while this record exists (RFC 5155 §7.3, §10.4, §10.5).
/// If there are several, the first one with NSEC3 records is used.
fn nsec3_parameters(contents: &Contents) -> Option<Nsec3Parameters> {
    // RFC 5155 §4.1.2: records with flags other than zero are ignored. §11: SHA-1 is the only hash
    // algorithm.
    let parameters = contents.apex_rrset(Rtype::NSEC3PARAM)?.rdatas().filter_map(|rdata| match rdata {
        [1, 0, high, low, _, salt @ ..] => {
            Some(Nsec3Parameters { salt: salt.to_vec(), iterations: u16::from_be_bytes([*high, *low]) })
        }
        _ => None,
    });
    let mut usable: Vec<Nsec3Parameters> = parameters.collect();
    let found = if usable.len() > 1 {
        usable.iter().position(|parameters| has_nsec3(contents, parameters))
    } else {
        None
    };
    (!usable.is_empty()).then(|| usable.swap_remove(found.unwrap_or(0)))
}

/// Whether a zone has NSEC3 records with these parameters.
fn has_nsec3(contents: &Contents, parameters: &Nsec3Parameters) -> bool {
    let mut records =
        contents.nodes().filter_map(|node| node.rrset(Rtype::NSEC3)).flat_map(|rrset| rrset.rdatas());
    records.any(|rdata| {
        matches!(rdata, [1, _, high, low, length, rest @ ..]
            if u16::from_be_bytes([*high, *low]) == parameters.iterations
                && usize::from(*length) == parameters.salt.len()
                && rest.starts_with(&parameters.salt))
    })
}

/// Returns the NSEC5KEY record to which the NSEC5 chain refers, if there is one. A key change
/// replaces the whole chain, so the first record of the chain is sufficient.
fn nsec5_key(contents: &Contents) -> Option<Nsec5Key> {
    let keys = contents.apex_rrset(Rtype::NSEC5KEY)?;
    let keys: Vec<Nsec5Key> = keys
        .rdatas()
        .filter_map(|rdata| Some(Nsec5Key { tag: key_tag(rdata), algorithm: *rdata.first()? }))
        .collect();
    let mut records =
        contents.nodes().filter_map(|node| node.rrset(Rtype::NSEC5)).flat_map(|rrset| rrset.rdatas());
    records.find_map(|rdata| keys.iter().find(|key| is_nsec5(key.tag, rdata)).copied())
}

/// Returns the names that have a block in the image, in canonical order: authoritative names, zone
/// cuts, and the empty non-terminals between them.
fn image_names<'z>(zone: &SourceZone<'z>) -> Vec<ImageName<'z>> {
    let contents = zone.contents;
    let mut names: Vec<ImageName<'z>> = Vec::with_capacity(contents.node_count());
    let mut previous = contents.apex().view();
    for (node, &status) in contents.nodes().zip(&name_statuses(contents)) {
        let name = node.name();
        // A DNAME record at the apex occludes all names except the owners in a hash chain, which
        // are not query names.
        let is_chain = status == NameStatus::BelowDname
            && name.parent().is_some_and(|parent| parent == contents.apex().view())
            && zone.owns_only_chain_records(node);
        if !status.is_in_chain() && !is_chain {
            continue;
        }
        push_empty_non_terminals(previous, name, &mut names);
        let status = if is_chain { NameStatus::Authoritative } else { status };
        names.push(ImageName { name, node: Some(node), status });
        previous = name;
    }
    names
}

/// Adds the ancestors of `name` that own no records (empty non-terminals) and are not in `names`
/// yet: those that are not at or above the previous name.
fn push_empty_non_terminals<'z>(previous: NameRef<'z>, name: NameRef<'z>, names: &mut Vec<ImageName<'z>>) {
    let first = names.len();
    let mut ancestor = name.parent();
    while let Some(above) = ancestor.filter(|above| !previous.is_at_or_below(*above)) {
        names.push(ImageName { name: above, node: None, status: NameStatus::Authoritative });
        ancestor = above.parent();
    }
    names[first..].reverse();
}
