//! The DNSKEY RRset of the zone that is being verified, and its trust anchors (RFC 4035 §5.2).

use super::{Anchor, FaultReason, Findings, VerifyWarning};
use crate::keys::{PROTOCOL, REVOKE, SEP, ZONE_KEY, ds_rdata};
use nonesuch_crypto::{Algorithm, DigestType, PublicKey, key_tag};
use nonesuch_proto::Rtype;
use nonesuch_zone::Contents;

/// A parsed zone key.
pub(super) struct ZoneKey<'z> {
    pub(super) tag: u16,
    pub(super) algorithm: Algorithm,
    pub(super) revoked: bool,
    /// `None` if the key is unusable or malformed.
    pub(super) public: Option<PublicKey>,
    pub(super) rdata: &'z [u8],
}

/// The zone keys at the apex.
pub(super) struct ZoneKeys<'z> {
    pub(super) keys: Vec<ZoneKey<'z>>,
    /// The algorithms of the keys that are supported and not revoked, in ascending order. Every
    /// RRset needs a signature of each of them (RFC 4035 §2.2).
    pub(super) required_algorithms: Vec<Algorithm>,
}

impl<'z> ZoneKeys<'z> {
    pub(super) fn read(contents: &'z Contents, findings: &mut Findings) -> Self {
        let rrset = contents.apex_rrset(Rtype::DNSKEY);
        let rdatas = rrset.into_iter().flat_map(|rrset| rrset.rdatas());
        let keys: Vec<_> = rdatas.filter_map(|rdata| read_key(contents, rdata, findings)).collect();
        let usable = keys.iter().filter(|key| key.public.is_some() && !key.revoked);
        let mut required_algorithms: Vec<_> = usable.map(|key| key.algorithm).collect();
        required_algorithms.sort_unstable();
        required_algorithms.dedup();
        if required_algorithms.is_empty() {
            findings.fault(contents.apex().view(), Some(Rtype::DNSKEY), FaultReason::NoUsableKey);
        }
        Self { keys, required_algorithms }
    }

    /// Warns if keys have the SEP flag and none of them signs the DNSKEY RRset: the DS records of
    /// the parent refer to keys with that flag (RFC 4034 §2.1.1, RFC 6781 §3.1). `signing` contains
    /// the indices of the keys that sign the DNSKEY RRset.
    pub(super) fn check_sep_keys(&self, signing: &[usize], findings: &mut Findings) {
        let has_flag = |key: &ZoneKey<'_>| {
            !key.revoked && key.rdata.first_chunk().is_some_and(|flags| u16::from_be_bytes(*flags) & SEP != 0)
        };
        let sep_keys = (0..self.keys.len()).filter(|index| has_flag(&self.keys[*index]));
        let sep_keys: Vec<usize> = sep_keys.collect();
        // The signatures of an unusable key cannot be verified, so it may sign. If no key signs,
        // another check reports that fault.
        let may_sign = |index: &usize| signing.contains(index) || self.keys[*index].public.is_none();
        let is_signed = signing.iter().any(|index| !self.keys[*index].revoked);
        if is_signed && !sep_keys.is_empty() && !sep_keys.iter().any(may_sign) {
            let tags = sep_keys.iter().map(|index| self.keys[*index].tag).collect();
            findings.warn(VerifyWarning::SepKeysNotSigning { tags });
        }
    }

    /// The indices of the keys with this tag and algorithm. Two keys may have the same tag.
    pub(super) fn candidates(&self, tag: u16, algorithm: Algorithm) -> impl Iterator<Item = usize> {
        let keys = self.keys.iter().enumerate();
        keys.filter(move |(_, key)| key.tag == tag && key.algorithm == algorithm).map(|(index, _)| index)
    }

    /// Checks that at least one anchor matches a key that signs the DNSKEY RRset (RFC 4035 §5.2),
    /// and warns of each anchor that matches none. Also warns of revoked keys that do not sign the
    /// DNSKEY RRset. `signing` contains the indices of the keys that sign it.
    pub(super) fn check_anchors(
        &self,
        contents: &Contents,
        signing: &[usize],
        anchors: &[Anchor],
        findings: &mut Findings,
    ) {
        for (index, key) in self.keys.iter().enumerate() {
            if key.revoked && key.public.is_some() && !signing.contains(&index) {
                findings.warn(VerifyWarning::RevokedNotSigning { tag: key.tag });
            }
        }
        let apex = contents.apex().view();
        let signing_keys = || signing.iter().map(|index| &self.keys[*index]).filter(|key| !key.revoked);
        let mut has_match = anchors.is_empty();
        for anchor in anchors {
            let matches = signing_keys().any(|key| match anchor {
                Anchor::Dnskey(rdata) => rdata == key.rdata,
                Anchor::Ds(ds) => ds
                    .get(3)
                    .and_then(|digest_type| ds_rdata(apex, key.rdata, DigestType(*digest_type)))
                    .is_some_and(|computed| computed == *ds),
            });
            has_match |= matches;
            if !matches {
                let (tag, algorithm) = tag_and_algorithm(anchor);
                findings.warn(VerifyWarning::AnchorUnused { tag, algorithm });
            }
        }
        if !has_match {
            findings.fault(apex, Some(Rtype::DNSKEY), FaultReason::AnchorMismatch);
        }
    }
}

/// Returns the key tag and algorithm of the key to which the anchor refers; 0 if the anchor is too
/// short.
fn tag_and_algorithm(anchor: &Anchor) -> (u16, Algorithm) {
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
    // RFC 4034 §2.1.1, §2.1.2: no other key may verify signatures over zone data.
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
