//! Assigns the keys of a zone to its RRsets.
//!
//! All published DNSKEY records determine the roles, also those whose private keys the signer does
//! not have. So a ZSK never replaces a KSK whose private key is elsewhere. Such a KSK is an absent
//! key: its signatures over the key set (DNSKEY, CDS and CDNSKEY at the apex) are copied from the
//! input if they verify. If a signature is required and cannot be copied, the zone is not signed.
//!
//! A key that signed the DNSKEY RRset of the previous version continues to sign the key set in any
//! role, because DS records in the parent may refer to it.

use super::{AbsentSignature, SignError, SignWarning};
use crate::inspect::KEY_SET;
use crate::keys::{KeySet, PROTOCOL, REVOKE, Role, SEP, published_keys};
use crate::rrsig::{Rrsig, push_signed_data};
use nonesuch_crypto::{Algorithm, PublicKey, VerifyItem, key_tag, verify_batch};
use nonesuch_proto::{NameRef, Rtype, serial};
use nonesuch_zone::{Contents, Rrset};

/// A published KSK or CSK whose private key was not given.
struct AbsentKey {
    /// RDATA of the DNSKEY record.
    rdata: Vec<u8>,
    tag: u16,
    algorithm: Algorithm,
}

/// A signature of an absent key that is copied to the signed zone.
struct CopiedSignature {
    covered: Rtype,
    /// The index of the key in `KeyAssignment::absent`.
    key: usize,
    /// RDATA of the RRSIG record.
    rdata: Vec<u8>,
}

/// The keys that sign each RRset of one zone.
pub(crate) struct KeyAssignment<'k> {
    key_set: &'k KeySet,
    /// Indexes of the keys that sign DNSKEY, CDS and CDNSKEY at the apex.
    key_set_signers: Vec<usize>,
    /// Indexes of the keys that sign all other RRsets.
    data_signers: Vec<usize>,
    absent: Vec<AbsentKey>,
    /// The signatures of absent keys that the signed zone contains.
    copied: Vec<CopiedSignature>,
}

impl<'k> KeyAssignment<'k> {
    /// Assigns roles to `keys`. `dnskeys` is the RDATA of all published keys. `previous` is the
    /// RDATA of the keys that signed the DNSKEY RRset of the previous version.
    pub(super) fn new(keys: &'k KeySet, dnskeys: &[Vec<u8>], previous: &[Vec<u8>]) -> Self {
        let published = published_keys(dnskeys);
        let given: Vec<Vec<u8>> = keys.keys().iter().map(crate::keys::KeyPair::dnskey_rdata).collect();
        let role = |index: usize| published.iter().find(|key| key.rdata == given[index]).map(|key| key.role);
        let signs_keys = |index: &usize| role(*index) != Some(Role::Zsk) || previous.contains(&given[*index]);
        let key_set_signers: Vec<usize> = (0..given.len()).filter(signs_keys).collect();
        let signs_data = |index: &usize| role(*index) != Some(Role::Ksk);
        let mut data_signers: Vec<usize> = (0..given.len()).filter(signs_data).collect();
        // RFC 4035 §2.2: each algorithm must sign the data. If the ZSKs of an algorithm are
        // published but not given, another key of the algorithm signs.
        let algorithm = |index: &usize| keys.keys()[*index].algorithm();
        let covered: Vec<Algorithm> = data_signers.iter().map(algorithm).collect();
        data_signers
            .extend(keys.signers(Rtype::A).iter().filter(|index| !covered.contains(&algorithm(index))));
        data_signers.sort_unstable();
        // A key that is not active must not sign, so its signatures in the input are not copied.
        let is_passive = |rdata: &[u8]| keys.timing().passive.iter().any(|key| key.record.rdata() == rdata);
        let is_absent = |rdata: &[u8], role| {
            role != Role::Zsk && !given.iter().any(|given| given == rdata) && !is_passive(rdata)
        };
        let absent = published.iter().filter(|key| is_absent(key.rdata, key.role));
        let absent = absent.map(|key| AbsentKey {
            rdata: key.rdata.to_vec(),
            tag: key_tag(key.rdata),
            algorithm: key.algorithm,
        });
        Self { key_set: keys, key_set_signers, data_signers, absent: absent.collect(), copied: Vec::new() }
    }

    /// Copies the signatures of absent keys over the RRset of `rtype` in `apex`, the apex of the
    /// signed zone, if they verify and are valid at `now`. Of each key, copies the signature in
    /// `sources` that expires last. The first source is the zone to be signed. Returns a warning
    /// for each signature that is not copied.
    ///
    /// # Errors
    /// [`SignError::AbsentKey`] if the RRset would have no signature of some algorithm, if a KSK of
    /// [`KeySet::offline`] has no signature over the DNSKEY RRset, or if no key that signs the DNSKEY
    /// RRset of the zone to be signed would sign the new one.
    pub(super) fn copy_signatures(
        &mut self,
        apex: &Contents,
        rtype: Rtype,
        sources: &[&Contents],
        now: u32,
    ) -> Result<Vec<SignWarning>, SignError> {
        let Some(rrset) = apex.apex_rrset(rtype) else { return Ok(Vec::new()) };
        let mut unusable = Vec::new();
        for (key, absent) in self.absent.iter().enumerate() {
            match absent.find_signature(apex.apex().view(), rrset, sources, now) {
                Ok(rdata) => self.copied.push(CopiedSignature { covered: rtype, key, rdata }),
                Err(reason) => unusable.push((absent, reason)),
            }
        }
        // An offline KSK was given by its `.key` file, so its signature is required.
        let is_offline = |absent: &AbsentKey| {
            rtype == Rtype::DNSKEY
                && self.key_set.offline().iter().any(|record| record.rdata() == absent.rdata)
        };
        let is_missing = |absent: &AbsentKey| {
            !is_revoked(&absent.rdata) && (!self.signs(rtype, absent.algorithm) || is_offline(absent))
        };
        let missing: Vec<_> = unusable.iter().filter(|(absent, _)| is_missing(absent)).collect();
        if let Some((_, reason)) = missing.first() {
            let tags = missing.iter().map(|(absent, _)| absent.tag).collect();
            return Err(SignError::AbsentKey { rtype, tags, reason: *reason });
        }
        let dropped: Vec<_> =
            unusable.iter().filter(|(_, reason)| *reason != AbsentSignature::Missing).collect();
        let signers_before = sources.first().map_or_else(Vec::new, |zone| signers_of(zone, rtype));
        let signed_before = |index: &usize| {
            let key = &self.key_set.keys()[*index];
            signers_before.contains(&(key.tag(), key.algorithm()))
        };
        // DS records in the parent may refer only to keys that signed the input.
        let has_only_new_signers = rtype == Rtype::DNSKEY
            && !self.key_set_signers.iter().any(signed_before)
            && !self.copied.iter().any(|copied| copied.covered == rtype);
        match dropped.first() {
            Some((_, reason)) if has_only_new_signers => {
                let tags = dropped.iter().map(|(absent, _)| absent.tag).collect();
                Err(SignError::AbsentKey { rtype, tags, reason: *reason })
            }
            _ => Ok(dropped
                .iter()
                .map(|(absent, reason)| SignWarning::SignatureDropped {
                    rtype,
                    tag: absent.tag,
                    reason: *reason,
                })
                .collect()),
        }
    }

    /// Whether a key of `algorithm` that is not revoked signs the RRset of `rtype` at the apex.
    fn signs(&self, rtype: Rtype, algorithm: Algorithm) -> bool {
        let mut given = self.key_set_signers.iter().map(|index| &self.key_set.keys()[*index]);
        let copied = self.copied.iter().filter(|copied| copied.covered == rtype);
        let mut copied = copied.map(|copied| &self.absent[copied.key]);
        given.any(|key| key.algorithm() == algorithm && !key.is_revoked())
            || copied.any(|key| key.algorithm == algorithm && !is_revoked(&key.rdata))
    }

    /// The given keys, to which the indexes of signers refer.
    pub(super) const fn key_set(&self) -> &'k KeySet {
        self.key_set
    }

    /// Indexes in the key set of the given keys that sign an RRset of `rtype` at the apex.
    pub(super) fn signers_at_apex(&self, rtype: Rtype) -> &[usize] {
        if KEY_SET.contains(&rtype) { &self.key_set_signers } else { &self.data_signers }
    }

    /// Indexes in the key set of the given keys that sign an RRset of `rtype` at `owner`. At names
    /// other than the apex, DNSKEY, CDS and CDNSKEY are data (RFC 9615 §2).
    pub(super) fn signers_at(&self, owner: NameRef<'_>, rtype: Rtype) -> &[usize] {
        if KEY_SET.contains(&rtype) && owner == self.key_set.zone().view() {
            &self.key_set_signers
        } else {
            &self.data_signers
        }
    }

    /// RDATA of the copied RRSIG records of absent keys over an RRset of `rtype` at `owner`.
    pub(super) fn copied_signatures<'s>(
        &'s self,
        owner: NameRef<'_>,
        rtype: Rtype,
    ) -> impl Iterator<Item = &'s [u8]> + use<'s, 'k> {
        let is_in_key_set = KEY_SET.contains(&rtype) && owner == self.key_set.zone().view();
        let copied = self.copied.iter().filter(move |copied| is_in_key_set && copied.covered == rtype);
        copied.map(|copied| &*copied.rdata)
    }

    /// RDATA of the keys, given or absent, that sign the DNSKEY RRset.
    pub(super) fn dnskey_signer_rdatas(&self) -> Vec<Vec<u8>> {
        let given = self.key_set_signers.iter().map(|index| self.key_set.keys()[*index].dnskey_rdata());
        let copied = self.copied.iter().filter(|copied| copied.covered == Rtype::DNSKEY);
        given.chain(copied.map(|copied| self.absent[copied.key].rdata.clone())).collect()
    }

    /// RDATA of the keys for the DS RRset in the parent: the signers of the DNSKEY RRset that are
    /// not revoked.
    pub(super) fn entry_points(&self) -> Vec<Vec<u8>> {
        let mut keys = self.dnskey_signer_rdatas();
        keys.retain(|rdata| !is_revoked(rdata));
        keys
    }

    /// RDATA of the keys that sign the data.
    pub(super) fn data_signer_rdatas(&self) -> Vec<Vec<u8>> {
        self.data_signers.iter().map(|index| self.key_set.keys()[*index].dnskey_rdata()).collect()
    }
}

/// Whether any of these DNSKEY records has the SEP flag.
pub(super) fn has_entry_point(dnskeys: Option<Rrset<'_>>) -> bool {
    dnskeys.into_iter().flat_map(Rrset::rdatas).any(|rdata| flags(rdata) & SEP != 0)
}

fn is_revoked(dnskey: &[u8]) -> bool {
    flags(dnskey) & REVOKE != 0
}

fn flags(dnskey: &[u8]) -> u16 {
    dnskey.first_chunk().map_or(0, |flags| u16::from_be_bytes(*flags))
}

/// Key tags and algorithms of the signatures over the RRset of `rtype` at the apex.
fn signers_of(zone: &Contents, rtype: Rtype) -> Vec<(u16, Algorithm)> {
    signatures(zone, rtype).filter_map(Rrsig::parse).map(|fields| (fields.tag, fields.algorithm)).collect()
}

fn signatures(zone: &Contents, rtype: Rtype) -> impl Iterator<Item = &[u8]> {
    let apex = zone.nodes().next().filter(|apex| apex.name() == zone.apex().view());
    apex.and_then(|apex| apex.signatures(rtype)).into_iter().flat_map(Rrset::rdatas)
}

impl AbsentKey {
    /// RDATA of the usable signature by this key over `rrset` at `apex` in `sources` that expires
    /// last. If there is none, returns the reason for the last unusable one.
    fn find_signature(
        &self,
        apex: NameRef<'_>,
        rrset: Rrset<'_>,
        sources: &[&Contents],
        now: u32,
    ) -> Result<Vec<u8>, AbsentSignature> {
        let mut best: Option<(u32, &[u8])> = None;
        let mut reason = AbsentSignature::Missing;
        for rdata in sources.iter().flat_map(|zone| signatures(zone, rrset.rtype())) {
            let Some(fields) = Rrsig::parse(rdata) else { continue };
            if (fields.tag, fields.algorithm) != (self.tag, self.algorithm) {
                continue;
            }
            match self.check_signature(apex, rrset, &fields, now) {
                Err(error) => reason = error,
                Ok(()) => {
                    // RFC 4034 §3.1.5: times are compared in serial number arithmetic.
                    if best.is_none_or(|(until, _)| serial::is_before(until, fields.expiration)) {
                        best = Some((fields.expiration, rdata));
                    }
                }
            }
        }
        best.map(|(_, rdata)| rdata.to_vec()).ok_or(reason)
    }

    /// Checks a signature with the key tag and algorithm of this key (RFC 4035 §5.3).
    fn check_signature(
        &self,
        apex: NameRef<'_>,
        rrset: Rrset<'_>,
        fields: &Rrsig<'_>,
        now: u32,
    ) -> Result<(), AbsentSignature> {
        if serial::is_before(now, fields.inception) || serial::is_before(fields.expiration, now) {
            return Err(AbsentSignature::NotValid);
        }
        let fits = fields.signer == apex
            && fields.labels == apex.rrsig_labels()
            && fields.original_ttl == rrset.ttl()
            && self.rdata.get(2) == Some(&PROTOCOL);
        let public = self.rdata.get(4..).filter(|_| fits);
        let public = public.and_then(|public| PublicKey::parse(self.algorithm, public).ok());
        let key = public.as_ref().ok_or(AbsentSignature::DoesNotVerify)?;
        let mut message = Vec::new();
        push_signed_data(fields, apex, rrset.rdatas(), &mut message);
        let mut outcome = Vec::new();
        verify_batch(&[VerifyItem { key, message: &message, signature: fields.signature }], &mut outcome);
        match outcome.first() {
            Some(Ok(())) => Ok(()),
            _ => Err(AbsentSignature::DoesNotVerify),
        }
    }
}
