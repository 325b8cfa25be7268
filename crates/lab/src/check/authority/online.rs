//! Zones with online signing: the server generates the signatures and the denials (RFC 4470, RFC 7129
//! appendix B, RFC 9824).

use crate::check::signing::Unsigned;
use crate::tree::TreeZone;
use data_encoding::HEXUPPER;
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::denial::Mechanism;
use nonesuch_dnssec::denial::proof_piece::ProofPiece;
use nonesuch_dnssec::denial::prove::{DenialTarget, prove_online};
use nonesuch_proto::message::{Header, Message, Rcode, Record, Section};
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::image::{ImageNode, Lookup};
use nonesuch_zone::{Contents, Image, read};
use std::fmt::Write as _;
use std::path::Path;

/// Validity of generated signatures, in seconds.
const LIFETIME: u32 = 86_400;
/// TTL of the DNSKEY RRset, in seconds.
const DNSKEY_TTL: u32 = 3600;

/// A zone that its server signs.
#[derive(Debug)]
pub(super) struct OnlineZone {
    image: Image,
}

impl OnlineZone {
    /// Prepares a zone. `None` if it has no keys or cannot be compiled.
    pub(super) fn new(zone: &TreeZone) -> Option<Self> {
        let mut text = format!("$ORIGIN {}\n{}", zone.origin, zone.text());
        for key in zone.keys.as_ref()?.keys() {
            let rdata = key.dnskey_rdata();
            // RFC 3597 §5. Writing to a `String` cannot fail.
            let _ = writeln!(
                text,
                "{} {DNSKEY_TTL} IN DNSKEY \\# {} {}",
                zone.origin,
                rdata.len(),
                HEXUPPER.encode(&rdata)
            );
        }
        let contents: Contents =
            read::read_text(text.as_bytes(), Path::new("zone"), Some(&zone.origin)).ok()?.contents;
        Some(Self { image: Image::compile(&contents).ok()? })
    }

    /// The response of the server to a question, with ID 0. `accepts_nxdomain`: the RCODE of a compact denial
    /// is NXDOMAIN (RFC 9824 §5.1).
    pub(super) fn respond(
        &self,
        zone: &TreeZone,
        name: &Name,
        rtype: Rtype,
        now: u32,
        accepts_nxdomain: bool,
    ) -> Message {
        let mut message = zone.respond(name.view(), rtype);
        let Some(keys) = &zone.keys else { return message };
        if rtype == Rtype::DNSKEY && *name == zone.origin {
            let rdatas = keys.keys().iter().map(KeyPair::dnskey_rdata).collect();
            let rrset = Unsigned { owner: name.clone(), rtype, ttl: DNSKEY_TTL, rdatas };
            message.records = rrset.sign(Section::Answer, keys, now, LIFETIME);
            return message;
        }
        let canonical = name.view().to_canonical();
        let denial = self.denial(zone.description.denial, &canonical, rtype);
        let mechanism = zone.description.denial;
        if mechanism == Mechanism::Compact && message.rcode() == Rcode::NXDOMAIN && !accepts_nxdomain {
            message.header = Header { flags: message.header.flags & !Rcode::NXDOMAIN.0, ..message.header };
        }
        let records = std::mem::take(&mut message.records);
        message.records = self.sign_all(zone, &records, now);
        for rrset in denial {
            message.records.extend(rrset.sign(Section::Authority, keys, now, LIFETIME));
        }
        message
    }

    /// Signs the RRsets of a response, except referrals and glue. Answers of a wildcard are signed as exact
    /// matches with compact denial (RFC 9824 §3.3), else as the wildcard.
    fn sign_all(&self, zone: &TreeZone, records: &[Record], now: u32) -> Vec<Record> {
        let Some(keys) = &zone.keys else { return records.to_vec() };
        let is_signed = |record: &Record| {
            record.section != Section::Additional
                && (record.rtype != Rtype::NS || record.owner == zone.origin)
        };
        let mut signed = Vec::new();
        let groups =
            records.chunk_by(|a, b| (&a.owner, a.rtype, a.section) == (&b.owner, b.rtype, b.section));
        for group in groups {
            let Some(first) = group.first() else { continue };
            let rdatas = group.iter().map(|record| record.rdata.clone()).collect();
            let rrset = Unsigned { owner: first.owner.clone(), rtype: first.rtype, ttl: first.ttl, rdatas };
            if is_signed(first) {
                let owner = self.signed_owner(zone, &first.owner).unwrap_or_else(|| first.owner.clone());
                let wildcard = Unsigned { owner, ..rrset };
                let restore = |record: Record| Record { owner: first.owner.clone(), ..record };
                signed.extend(wildcard.sign(first.section, keys, now, LIFETIME).into_iter().map(restore));
            } else {
                signed.extend(group.iter().cloned());
            }
        }
        signed
    }

    /// The wildcard from which a name comes, for mechanisms that deny the next closer name.
    fn signed_owner(&self, zone: &TreeZone, owner: &Name) -> Option<Name> {
        if zone.description.denial == Mechanism::Compact {
            return None;
        }
        match self.image.find(owner.view().to_canonical().view()) {
            Lookup::Encloser(encloser) => Name::wildcard_below(encloser.name()).ok(),
            Lookup::Exact(_) => None,
        }
    }

    /// The denial records that a response needs.
    fn denial(&self, mechanism: Mechanism, name: &Name, rtype: Rtype) -> Vec<Unsigned> {
        let Some(target) = self.target(name, rtype) else { return Vec::new() };
        let pieces = prove_online(&self.image, mechanism, target).into_pieces();
        let generated = pieces.into_iter().filter_map(|piece| match piece {
            ProofPiece::Generated(record) => Some(Unsigned {
                owner: record.owner,
                rtype: record.rtype,
                ttl: record.ttl,
                rdatas: vec![record.rdata],
            }),
            _ => None,
        });
        generated.collect()
    }

    /// What a response denies; `None` if it denies nothing.
    fn target<'q>(&self, name: &'q Name, rtype: Rtype) -> Option<DenialTarget<'_, 'q>> {
        let has = |node: ImageNode<'_>, rtype: Rtype| node.template(rtype).is_some();
        match self.image.find(name.view()) {
            Lookup::Exact(node) if has(node, Rtype::NS) && !node.is_apex() => {
                Some(DenialTarget::NoDs { cut: node })
            }
            Lookup::Exact(node) if has(node, rtype) || has(node, Rtype::CNAME) => None,
            Lookup::Exact(node) => Some(DenialTarget::NoData { node }),
            Lookup::Encloser(cut) if has(cut, Rtype::NS) && !cut.is_apex() => {
                Some(DenialTarget::NoDs { cut })
            }
            Lookup::Encloser(encloser) => {
                let wildcard = Name::wildcard_below(encloser.name()).ok()?;
                let (name, wildcard) = (name.view(), self.image.find_exact(wildcard.view()));
                Some(match wildcard {
                    None => DenialTarget::NxDomain { name, encloser },
                    Some(node) if has(node, rtype) => DenialTarget::WildcardExpansion { name, encloser },
                    Some(wildcard) => DenialTarget::WildcardNoData { name, encloser, wildcard },
                })
            }
        }
    }
}
