//! The DNSKEY RRset of the zone that is verified, and its trust anchors.

use super::{Anchor, FaultReason, Findings, VerifyWarning};
use crate::keys::{PROTOCOL, REVOKE, SEP, ZONE_KEY, ds_rdata};
use nonesuch_crypto::{Algorithm, DigestType, PublicKey, key_tag};
use nonesuch_proto::Rtype;
use nonesuch_zone::Contents;

/// A zone key, parsed once.
pub(super) struct ZoneKey<'z> {
    pub(super) tag: u16,
    pub(super) algorithm: Algorithm,
    pub(super) revoked: bool,
    /// `None` where the key cannot be used or is malformed.
    pub(super) public: Option<PublicKey>,
    pub(super) rdata: &'z [u8],
}

/// The zone keys of the apex.
pub(super) struct ZoneKeys<'z> {
    pub(super) keys: Vec<ZoneKey<'z>>,
    /// Algorithms of which every RRset needs a signature (RFC 4035 §2.2), ascending: those of keys that are
    /// supported and not revoked.
    pub(super) required: Vec<Algorithm>,
}

impl<'z> ZoneKeys<'z> {
    pub(super) fn read(contents: &'z Contents, findings: &mut Findings) -> Self {
        let rrset = contents.apex_rrset(Rtype::DNSKEY);
        let rdatas = rrset.into_iter().flat_map(|rrset| rrset.rdatas());
        let keys: Vec<_> = rdatas.filter_map(|rdata| read_key(contents, rdata, findings)).collect();
        let usable = keys.iter().filter(|key| key.public.is_some() && !key.revoked);
        let mut required: Vec<_> = usable.map(|key| key.algorithm).collect();
        required.sort_unstable();
        required.dedup();
        if required.is_empty() {
            findings.fault(contents.apex().view(), Some(Rtype::DNSKEY), FaultReason::NoUsableKey);
        }
        Self { keys, required }
    }

    /// Warns where keys have the SEP flag and none of them is among those at `signing`, which sign the DNSKEY RRset: the parent's
    /// DS records name keys with that flag (RFC 4034 §2.1.1, RFC 6781 §3.1).
    pub(super) fn check_entry_points(&self, signing: &[usize], findings: &mut Findings) {
        let has_flag = |key: &ZoneKey<'_>| {
            !key.revoked && key.rdata.first_chunk().is_some_and(|flags| u16::from_be_bytes(*flags) & SEP != 0)
        };
        let places = (0..self.keys.len()).filter(|place| has_flag(&self.keys[*place]));
        let places: Vec<usize> = places.collect();
        // Whether a key signs that cannot be used here is not known. Where no key signs, that is the fault.
        let signs = |place: &usize| signing.contains(place) || self.keys[*place].public.is_none();
        let is_signed = signing.iter().any(|place| !self.keys[*place].revoked);
        if is_signed && !places.is_empty() && !places.iter().any(signs) {
            let tags = places.iter().map(|place| self.keys[*place].tag).collect();
            findings.warn(VerifyWarning::SepKeysNotSigning { tags });
        }
    }

    /// Places of the keys that a signature may be by: two keys may have one tag.
    pub(super) fn candidates(&self, tag: u16, algorithm: Algorithm) -> impl Iterator<Item = usize> {
        let keys = self.keys.iter().enumerate();
        keys.filter(move |(_, key)| key.tag == tag && key.algorithm == algorithm).map(|(place, _)| place)
    }

    /// Checks that one anchor at least matches one of the keys at `signing`, which sign the DNSKEY RRset
    /// (RFC 4035 §5.2).
    pub(super) fn check_anchors(
        &self,
        contents: &Contents,
        signing: &[usize],
        anchors: &[Anchor],
        findings: &mut Findings,
    ) {
        for (place, key) in self.keys.iter().enumerate() {
            if key.revoked && key.public.is_some() && !signing.contains(&place) {
                findings.warn(VerifyWarning::RevokedNotSigning { tag: key.tag });
            }
        }
        let apex = contents.apex().view();
        let usable = || signing.iter().map(|place| &self.keys[*place]).filter(|key| !key.revoked);
        let mut matched = anchors.is_empty();
        for anchor in anchors {
            let matches = usable().any(|key| match anchor {
                Anchor::Dnskey(rdata) => rdata == key.rdata,
                Anchor::Ds(ds) => ds
                    .get(3)
                    .and_then(|digest_type| ds_rdata(apex, key.rdata, DigestType(*digest_type)))
                    .is_some_and(|made| made == *ds),
            });
            matched |= matches;
            if !matches {
                let (tag, algorithm) = describe(anchor);
                findings.warn(VerifyWarning::AnchorUnused { tag, algorithm });
            }
        }
        if !matched {
            findings.fault(apex, Some(Rtype::DNSKEY), FaultReason::AnchorMismatch);
        }
    }
}

fn describe(anchor: &Anchor) -> (u16, Algorithm) {
    match anchor {
        Anchor::Dnskey(rdata) => (key_tag(rdata), Algorithm(rdata.get(3).copied().unwrap_or(0))),
        Anchor::Ds(rdata) => match rdata.as_slice() {
            [high, low, algorithm, ..] => (u16::from_be_bytes([*high, *low]), Algorithm(*algorithm)),
            _ => (0, Algorithm(0)),
        },
    }
}

fn read_key<'z>(contents: &Contents, rdata: &'z [u8], findings: &mut Findings) -> Option<ZoneKey<'z>> {
    let apex = contents.apex().view();
    let [high, low, protocol, algorithm, public @ ..] = rdata else {
        findings.fault(apex, Some(Rtype::DNSKEY), FaultReason::MalformedRecord);
        return None;
    };
    let flags = u16::from_be_bytes([*high, *low]);
    let (tag, algorithm) = (key_tag(rdata), Algorithm(*algorithm));
    // RFC 4034 §2.1.1, §2.1.2: any other key must not verify signatures over zone data.
    if flags & ZONE_KEY == 0 || *protocol != PROTOCOL {
        findings.warn(VerifyWarning::NotAZoneKey { tag, flags });
        return None;
    }
    let public = match PublicKey::parse(algorithm, public) {
        Ok(key) => Some(key),
        Err(error) if error.is_unusable() => {
            findings.warn(VerifyWarning::UnusableKey { tag, error });
            None
        }
        Err(error) => {
            findings.fault(apex, Some(Rtype::DNSKEY), FaultReason::MalformedKey { tag, algorithm, error });
            None
        }
    };
    let revoked = flags & REVOKE != 0;
    Some(ZoneKey { tag, algorithm, revoked, public, rdata })
}
