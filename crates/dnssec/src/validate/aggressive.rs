//! Aggressive use of denial records (RFC 8198): what records of several earlier responses deny
//! together. The caller searches its cache for records, and [`find_denial`] evaluates them with the
//! rules for the records of one response.

use super::budget::{Budget, ValidationLimits};
use super::claim::{Claim, DenialKind, check_can_be_encloser};
use super::evidence::Candidate;
use super::proofs::ProofVerifier;
use super::{BogusReason, ValidationError};
use crate::denial::nsec::validate::NsecRecords;
use crate::denial::nsec3::validate::Nsec3Records;
use crate::denial::nsec5::validate::Nsec5Records;
use crate::denial::{nsec3, nsec5};
use nonesuch_crypto::vrf::VRF_HASH_OCTETS;
use nonesuch_proto::{NameRef, Rtype, bitmap};

/// An NSEC3 hash.
pub type Sha1Hash = [u8; 20];
/// The hash in an NSEC5 proof.
pub type VrfHash = [u8; VRF_HASH_OCTETS];

/// A record of type NSEC, NSEC3 or NSEC5 that was Secure in an earlier response.
#[derive(Clone, Copy, Debug)]
pub struct DenialRecord<'m> {
    candidate: Candidate<'m>,
    apex: NameRef<'m>,
}

/// The part of the chain that a record covers: from its owner to the next name or hash. The next
/// name or hash of the last record of a chain is the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span<'m> {
    /// NSEC.
    Names {
        /// The owner.
        owner: NameRef<'m>,
        /// The next name. It follows the owner, or is the apex.
        next: NameRef<'m>,
    },
    /// NSEC3.
    Sha1 {
        /// The hash in the owner name.
        hash: Sha1Hash,
        /// The next hash.
        next: Sha1Hash,
        /// The salt, 0 to 255 octets.
        salt: &'m [u8],
        /// Additional iterations.
        iterations: u16,
    },
    /// NSEC5.
    Vrf {
        /// The key tag.
        tag: u16,
        /// The hash in the owner name.
        hash: VrfHash,
        /// The next hash.
        next: VrfHash,
    },
}

/// The hashes of names that the caller knows.
#[derive(Clone, Copy, Debug)]
pub enum KnownHashes<'h> {
    /// None: the records are NSEC records.
    None,
    /// NSEC3: names and their hashes.
    Sha1(&'h [(NameRef<'h>, Sha1Hash)]),
    /// NSEC5: names, with the key tags and the hashes of their proofs. An earlier validation has
    /// verified the proofs.
    Vrf(&'h [(NameRef<'h>, u16, VrfHash)]),
}

impl<'m> DenialRecord<'m> {
    /// Reads a record of the zone at `apex`. `rtype` is NSEC, NSEC3 or NSEC5.
    ///
    /// # Errors
    /// If the record is malformed or unsuitable for a denial.
    pub fn read(
        rtype: Rtype,
        owner: NameRef<'m>,
        rdata: &'m [u8],
        apex: NameRef<'m>,
    ) -> Result<Self, BogusReason> {
        Ok(Self { candidate: Candidate::read_record(rtype, owner, rdata, apex)?, apex })
    }

    /// Returns the span.
    #[must_use]
    pub const fn span(&self) -> Span<'m> {
        match &self.candidate {
            Candidate::Nsec(record) => {
                let (owner, next) = record.span();
                Span::Names { owner, next }
            }
            Candidate::Nsec3(record) => {
                let ((hash, next), fields) = (record.span(), record.fields());
                Span::Sha1 { hash, next, salt: fields.salt, iterations: fields.iterations }
            }
            Candidate::Nsec5(record) => {
                let (hash, next) = record.span();
                Span::Vrf { tag: record.fields().tag, hash, next }
            }
        }
    }

    /// Whether the record has the opt-out flag: unsigned delegations may exist in its span.
    #[must_use]
    pub const fn is_opt_out(&self) -> bool {
        match &self.candidate {
            Candidate::Nsec(_) => false,
            Candidate::Nsec3(record) => record.is_opt_out(),
            Candidate::Nsec5(record) => record.fields().flags & nsec5::OPT_OUT_FLAG != 0,
        }
    }

    /// Whether the name that the record matches may be the closest encloser of a name: it is neither
    /// a zone cut nor the owner of a DNAME record.
    #[must_use]
    pub fn can_be_encloser(&self) -> bool {
        let map = match &self.candidate {
            Candidate::Nsec(record) => record.map(),
            Candidate::Nsec3(record) => record.fields().bitmap,
            Candidate::Nsec5(record) => record.fields().bitmap,
        };
        check_can_be_encloser(self.apex, map).is_ok()
    }

    /// Whether the record was generated online for one name, and therefore denies no other names:
    ///
    /// - compact denial (RFC 9824): the next name is the successor of the owner, or of the owner
    ///   and all names below it, or the type bit map has NXNAME;
    /// - minimally covering NSEC (RFC 4470): the first label of the next name ends with a zero
    ///   octet, or at most one possible name with the parent of the owner is in the span;
    /// - white lies (RFC 7129, appendix B): the span has less than 2^97 hashes. In a chain of
    ///   2^30 names, the expected number of such spans is below 2^-3.
    #[must_use]
    pub fn is_minimal(&self) -> bool {
        match &self.candidate {
            Candidate::Nsec(record) => {
                let (owner, next) = record.span();
                bitmap::contains(record.map(), Rtype::NXNAME) || self.is_minimal_span(owner, next)
            }
            Candidate::Nsec3(record) => {
                let (hash, next) = record.span();
                // A chain of one record covers all other hashes.
                hash != next && high_half(&next).wrapping_sub(high_half(&hash)) <= 1
            }
            Candidate::Nsec5(_) => false,
        }
    }

    fn is_minimal_span(&self, owner: NameRef<'_>, next: NameRef<'_>) -> bool {
        // The only record of a zone with one name.
        if owner == self.apex && next == self.apex {
            return false;
        }
        if next.labels().next().is_some_and(|label| label.last() == Some(&0)) {
            return true;
        }
        let after = owner.successor_of_subtree(self.apex);
        next == owner.successor(self.apex).view()
            || next == after.view()
            || next == after.view().successor_of_subtree(self.apex).view()
    }
}

/// The first eight octets, as a number.
fn high_half(hash: &Sha1Hash) -> u64 {
    hash.first_chunk().map_or(0, |octets| u64::from_be_bytes(*octets))
}

/// Returns what the records of the zone at `apex` prove of the claim; `None` if they do not prove
/// it as Secure. They prove nothing if a covering record has the opt-out flag, or if their NSEC3
/// parameters differ or exceed the default of [`ValidationLimits::max_iterations_secure`].
///
/// It computes no NSEC3 hashes, because they would be outside of the budget of the client query: a
/// claim that needs a hash that `hashes` does not have is not proved. It verifies no NSEC5 proofs.
#[must_use]
pub fn find_denial(
    apex: NameRef<'_>,
    records: &[DenialRecord<'_>],
    hashes: KnownHashes<'_>,
    claim: Claim<'_>,
) -> Option<DenialKind> {
    let mut budget = Budget::new(ValidationLimits { hash_blocks: 0, ..ValidationLimits::default() });
    let (mut names, mut sha1, mut vrf) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        match record.candidate {
            Candidate::Nsec(record) => names.push(record),
            Candidate::Nsec3(record) => sha1.push(record),
            Candidate::Nsec5(record) => vrf.push(record),
        }
    }
    let proved = match hashes {
        KnownHashes::None => NsecRecords::new(names).check_claim(claim).map_err(ValidationError::from),
        KnownHashes::Sha1(hashes) => {
            let mut records = Nsec3Records::new(apex, sha1).ok()?;
            hashes.iter().for_each(|(name, hash)| records.add_hash(*name, *hash));
            records.check_claim(claim, &mut budget)
        }
        KnownHashes::Vrf(hashes) => {
            let mut records = Nsec5Records::new(apex, vrf, Vec::new(), 0);
            hashes.iter().for_each(|(name, tag, hash)| records.add_proved(*name, *tag, hash));
            let mut verifier = ProofVerifier { keys: &[], verdicts: None, budget: &mut budget };
            records.check_claim(claim, &mut verifier)
        }
    };
    proved.ok().filter(|proved| proved.insecure_reason.is_none()).map(|proved| proved.kind)
}

// The lengths of hashes are part of the public interface.
const _: () = assert!(size_of::<nsec3::Hash>() == size_of::<Sha1Hash>());
const _: () = assert!(size_of::<nsec5::Hash>() == size_of::<VrfHash>());

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;

    const APEX: &str = "example.";
    const MAP: [u8; 3] = [0, 1, 0x40];

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// RDATA of a record that covers all hashes but one.
    fn nsec3(flags: u8, iterations: u8) -> (Name, Vec<u8>) {
        let rdata = [&[1, flags, 0, iterations, 0, 20][..], &[0; 20], &MAP].concat();
        (name("00000000000000000000000000000000.example."), rdata)
    }

    #[test]
    fn records_of_several_responses_deny_a_name_together() {
        let (apex, next) = (name(APEX), name("b.example."));
        let rdatas = [[next.wire(), &MAP].concat(), [apex.wire(), &MAP].concat()];
        let read = |owner, rdata| DenialRecord::read(Rtype::NSEC, owner, rdata, apex.view()).unwrap();
        let records = [read(apex.view(), &rdatas[0]), read(next.view(), &rdatas[1])];
        let denied = name("c.example.");
        let find = |records: &[_], claim| find_denial(apex.view(), records, KnownHashes::None, claim);
        assert_eq!(find(&records, Claim::NxDomain(denied.view())), Some(DenialKind::NxDomain));
        assert_eq!(find(&records[1..], Claim::NxDomain(denied.view())), None);
        assert_eq!(find(&records, Claim::NoData(next.view(), Rtype::MX)), Some(DenialKind::NoData));
        assert_eq!(find(&records, Claim::NoData(next.view(), Rtype::A)), None);
        assert_eq!(records[0].span(), Span::Names { owner: apex.view(), next: next.view() });
    }

    #[test]
    fn opt_out_records_and_many_iterations_prove_nothing() {
        let (apex, denied) = (name(APEX), name("a.example."));
        let claim = Claim::WildcardExpansion(denied.view(), 1);
        for (flags, iterations, expected) in [
            (0, 0, Some(DenialKind::WildcardExpansion)),
            (1, 0, None),
            (0, 50, Some(DenialKind::WildcardExpansion)),
            (0, 51, None),
        ] {
            let (owner, rdata) = nsec3(flags, iterations);
            let record = DenialRecord::read(Rtype::NSEC3, owner.view(), &rdata, apex.view()).unwrap();
            assert_eq!(record.is_opt_out(), flags == 1);
            let hashes = [(denied.view(), [7; 20])];
            assert_eq!(find_denial(apex.view(), &[record], KnownHashes::Sha1(&hashes), claim), expected);
        }
    }

    #[test]
    fn hashes_outside_of_the_budget_are_not_computed() {
        let (apex, denied) = (name(APEX), name("a.example."));
        let (_, rdata) = nsec3(0, 0);
        // The record matches the apex, and covers the hashes of all other names.
        let hash = nonesuch_crypto::nsec3_hash(apex.wire(), &[], 0);
        let label = data_encoding::BASE32HEX_NOPAD.encode(&hash);
        let (owner, mut rdata) = (name(&format!("{label}.example.")), rdata);
        rdata[6..26].copy_from_slice(&hash);
        let record = DenialRecord::read(Rtype::NSEC3, owner.view(), &rdata, apex.view()).unwrap();
        let wildcard = name("*.example.");
        let hashes = [(apex.view(), hash), (denied.view(), [7; 20]), (wildcard.view(), [8; 20])];
        let find = |known| {
            let known = KnownHashes::Sha1(&hashes[..known]);
            find_denial(apex.view(), &[record], known, Claim::NxDomain(denied.view()))
        };
        assert_eq!((find(2), find(3)), (None, Some(DenialKind::NxDomain)));
    }

    #[test]
    fn proofs_lead_only_to_records_of_the_same_key() {
        let (apex, denied) = (name(APEX), name("a.example."));
        let owner = name(&format!("{}.example.", "0".repeat(52)));
        let rdata = [&[0, 5, 0, 32][..], &[0; 32], &MAP].concat();
        let record = DenialRecord::read(Rtype::NSEC5, owner.view(), &rdata, apex.view()).unwrap();
        let claim = Claim::WildcardExpansion(denied.view(), 1);
        for (tag, expected) in [(5, Some(DenialKind::WildcardExpansion)), (6, None)] {
            let hashes = [(denied.view(), tag, [7; 32])];
            assert_eq!(find_denial(apex.view(), &[record], KnownHashes::Vrf(&hashes), claim), expected);
        }
    }
}
