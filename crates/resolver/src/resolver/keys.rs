//! The keys that validate a response: those of the zone of its records, as far as the chain of trust is
//! known.

use super::Resolver;
use super::chain::{DsStatus, Trust, chain_question};
use super::validate::{NO_CHAIN, bogus_detail};
use crate::cache::Question;
use crate::record::{RecordData, Rrset};
use crate::response::{Content, Reading};
use crate::task::{ErrorDetail, Outcome};
use crate::trust::ZoneTrust;
use crate::trust_anchors::{AnchorRecord, ZoneAnchor};
use crate::validation::{Checking, KeySet, ServerResponse};
use nonesuch_dnssec::validate::{EntryPoints, InsecureReason, NoEntryPoint, TrustedKeys};
use nonesuch_net::machine::Now;
use nonesuch_proto::message::Section;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::sync::Arc;

/// Maximum time for which the keys of a trust anchor are used without another check of the DNSKEY RRset,
/// in seconds.
const ANCHOR_TTL: u32 = 86_400;

/// What the keys for a response are.
pub(super) enum Keys {
    Trusted(Arc<TrustedKeys>, Option<KeySet>),
    Insecure(InsecureReason, Name),
    Needs(Question),
    Failed(ErrorDetail),
}

/// The keys of a DNSKEY RRset that entry points name.
pub(super) struct EntryKeys {
    pub(super) keys: TrustedKeys,
    /// Whether only signatures of post-quantum algorithms count.
    pub(super) requires_post_quantum: bool,
}

impl Resolver {
    /// Returns the keys that validate a response.
    pub(super) fn keys_of(&self, checking: &Checking, now: Now) -> Keys {
        let ServerResponse { zone, name, rtype, reading, message, .. } = &checking.received;
        let fetched = checking.fetched.as_slice();
        let anchors = &self.settings.options.validation.anchors;
        // A zone above the closest trust anchor cannot sign for the zones below it.
        let signer = reading.signer(name.view(), *rtype).filter(|signer| {
            let lowest = match (&reading.content, *rtype) {
                (Content::Referral(ns), _) => ns.owner.view(),
                (_, Rtype::DS) => name.view().parent().unwrap_or(NameRef::ROOT),
                _ => name.view(),
            };
            anchors.closest(lowest).is_none_or(|anchor| signer.is_at_or_below(anchor.apex.view()))
        });
        if *rtype == Rtype::DNSKEY
            && matches!(reading.content, Content::Answer(_))
            && reading.aliases.is_empty()
            && let Some(keys) = self.entry_keys(name, reading, fetched, now)
        {
            return keys;
        }
        let is_in_zone = name.view().is_at_or_below(zone.view()) && (*rtype != Rtype::DS || name != zone);
        let target = match (&reading.content, signer) {
            // RFC 4035 §5.3.1: the signer is the zone of the records, not one above it, unless the delegation
            // of `zone` is forged.
            (_, Some(signer)) if !is_in_zone || !zone.view().is_below(signer) => signer,
            // Nothing in the response shows whether the zone is signed. If it has a DS RRset, this is
            // fetched when it is needed.
            (Content::Referral(_), _) => return Keys::Failed(NO_CHAIN.into()),
            _ if *rtype == Rtype::DS => name.view().parent().unwrap_or(NameRef::ROOT),
            _ => name.view(),
        };
        let keys = match self.trust_of(target, fetched, now) {
            Trust::Secure(keys) | Trust::Enclosed(keys) => keys,
            Trust::Insecure(reason, cut) => return Keys::Insecure(reason, cut),
            Trust::Needs(question) => return Keys::Needs(question),
            Trust::NoKeys(error, _) | Trust::Failed(error) => return Keys::Failed(error),
        };
        let question = chain_question(keys.apex().to_name(), Rtype::NSEC5KEY);
        let has_nsec5 = || message.section(Section::Authority).any(|record| record.rtype == Rtype::NSEC5);
        let is_missing = *rtype != Rtype::NSEC5KEY
            && keys.may_use_nsec5()
            && !keys.knows_nsec5_keys()
            && !fetched.iter().any(|(known, _)| *known == question)
            && has_nsec5();
        if is_missing { Keys::Needs(question) } else { Keys::Trusted(keys, None) }
    }

    /// Returns the keys that validate the DNSKEY RRset of a zone: the keys that its DS RRset or trust anchor
    /// names. `None` if the name is no zone cut.
    fn entry_keys(
        &self,
        zone: &Name,
        reading: &Reading,
        fetched: &[(Question, Outcome)],
        now: Now,
    ) -> Option<Keys> {
        let validation = &self.settings.options.validation;
        let anchor = validation.anchors.closest(zone.view()).filter(|anchor| anchor.apex == *zone);
        let own_question = chain_question(zone.clone(), Rtype::DNSKEY);
        let trust = self.trust_of(zone.view(), fetched, now);
        let (ds, ttl) = match (anchor, trust) {
            (_, Trust::Insecure(reason, cut)) => return Some(Keys::Insecure(reason, cut)),
            (Some(_), _) => (None, ANCHOR_TTL),
            (None, Trust::Enclosed(_)) => return None,
            (None, Trust::NoKeys(error, _) | Trust::Failed(error)) => return Some(Keys::Failed(error)),
            (None, Trust::Needs(question)) if question != own_question => return Some(Keys::Needs(question)),
            (None, Trust::Needs(_) | Trust::Secure(_)) => match self.ds_status(zone.view(), fetched, now) {
                DsStatus::Secure(ds) => (Some(ds.records), ds.ttl),
                DsStatus::Failed(error) => return Some(Keys::Failed(error)),
                DsStatus::Unknown => return Some(Keys::Needs(chain_question(zone.clone(), Rtype::DS))),
                DsStatus::Insecure => {
                    return Some(Keys::Insecure(InsecureReason::UnsignedDelegation, zone.clone()));
                }
                DsStatus::NoCut | DsStatus::NoName => return None,
            },
        };
        let dnskeys: Vec<&[u8]> =
            dnskey_rrset(reading).into_iter().flat_map(|rrset| rrset.records.iter()).collect();
        Some(match self.select_entry_keys(zone, anchor, ds.as_ref(), &dnskeys) {
            Ok(EntryKeys { keys, requires_post_quantum }) => {
                Keys::Trusted(Arc::new(keys), Some(KeySet { requires_post_quantum, ttl }))
            }
            Err(NoEntryPoint::Insecure(reason)) => {
                self.shared.trust.insert(zone.view(), ZoneTrust::Insecure(reason), ttl.min(ANCHOR_TTL), now);
                Keys::Insecure(reason, zone.clone())
            }
            Err(NoEntryPoint::Bogus(reason)) => Keys::Failed(bogus_detail(zone, Rtype::DNSKEY, &reason)),
        })
    }

    /// Returns the keys of a zone from its validated DNSKEY RRset.
    pub(super) fn zone_keys<'k>(
        &self,
        zone: &Name,
        dnskeys: impl IntoIterator<Item = &'k [u8]>,
        requires_post_quantum: bool,
    ) -> Arc<TrustedKeys> {
        let options = &self.settings.options;
        let mut keys =
            TrustedKeys::with_policy(zone, dnskeys, options.validation.policy, &options.limits.validation);
        if requires_post_quantum {
            keys.keep_post_quantum();
        }
        Arc::new(keys)
    }

    /// Returns the keys among `dnskeys` that the trust anchor or the DS records of the zone name.
    pub(super) fn select_entry_keys(
        &self,
        zone: &Name,
        anchor: Option<&ZoneAnchor>,
        ds: Option<&RecordData>,
        dnskeys: &[&[u8]],
    ) -> Result<EntryKeys, NoEntryPoint> {
        let policy = self.settings.options.validation.policy;
        let mut records: Vec<&[u8]> = ds.into_iter().flat_map(|ds| ds.iter()).collect();
        let mut keys: Vec<&[u8]> = Vec::new();
        for record in anchor.iter().flat_map(|anchor| &anchor.records) {
            match record {
                AnchorRecord::Ds(rdata) => records.push(rdata),
                AnchorRecord::Dnskey(rdata) => keys.push(rdata),
            }
        }
        let entry_points = EntryPoints { ds: &records, dnskeys: &keys };
        let limits = &self.settings.options.limits.validation;
        let mut keys = entry_points.select(zone, dnskeys, policy, limits)?;
        let requires_post_quantum = entry_points.require_post_quantum(policy);
        if requires_post_quantum {
            keys.keep_post_quantum();
        }
        Ok(EntryKeys { keys, requires_post_quantum })
    }
}

pub(super) fn answer_rrset(reading: &Reading, rtype: Rtype) -> Option<&Rrset> {
    let Content::Answer(found) = &reading.content else { return None };
    found.iter().find(|rrset| rrset.rtype == rtype)
}

pub(super) fn dnskey_rrset(reading: &Reading) -> Option<&Rrset> {
    answer_rrset(reading, Rtype::DNSKEY)
}
