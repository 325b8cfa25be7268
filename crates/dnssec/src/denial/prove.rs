//! Proof of denial: selects the records of an image that prove that a name or type does not exist.
//!
//! A [`DenialTarget`] is the same for all mechanisms. The directory of each mechanism has the code
//! that proves it.

use super::nsec::validate::{Nsec, NsecRecords};
use super::nsec3::validate::{Nsec3Record, Nsec3Records};
use super::proof_piece::{self, ProofPiece};
use super::{Mechanism, compact, minimal_nsec, nsec, nsec3, nsec5, white_lies};
use crate::validate::claim::{Claim, ProvedClaim};
use crate::validate::{Budget, InsecureReason, ValidationError, ValidationLimits};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::Image;
use nonesuch_zone::image::{ImageNode, Template};

/// Maximum number of RRsets in one proof: closest encloser, next closer name, wildcard
/// (RFC 5155 §7.2.2).
const MAX_RRSETS: usize = 3;

/// The RRsets that prove a denial, each once. A proof has either templates, which are RRsets of the
/// image, or pieces, some of which are generated online.
#[derive(Clone, Debug, Default)]
pub struct Proof<'i> {
    templates: [Option<Template<'i>>; MAX_RRSETS],
    pieces: Vec<ProofPiece<'i>>,
}

impl<'i> Proof<'i> {
    /// Adds an RRset, unless the proof has it already: one record may prove several facts. `None`
    /// adds nothing.
    pub(crate) fn add_template(&mut self, template: Option<Template<'i>>) {
        let Some(template) = template else { return };
        for slot in &mut self.templates {
            match slot {
                Some(present) if present.is_same(template) => return,
                Some(_) => {}
                None => {
                    *slot = Some(template);
                    return;
                }
            }
        }
    }

    /// Adds a piece, or merges it with a piece that is the same RRset
    /// ([`proof_piece::add_or_merge`]).
    pub(crate) fn add_piece(&mut self, piece: ProofPiece<'i>) {
        proof_piece::add_or_merge(&mut self.pieces, piece);
    }

    /// The RRsets of the image.
    pub fn templates(&self) -> impl Iterator<Item = Template<'i>> + '_ {
        self.templates.iter().filter_map(|template| *template)
    }

    /// The pieces; empty if the proof has templates.
    #[must_use]
    pub fn into_pieces(self) -> Vec<ProofPiece<'i>> {
        self.pieces
    }
}

/// The denial that a proof must show.
#[derive(Clone, Copy, Debug)]
pub enum DenialTarget<'i, 'q> {
    /// The name does not exist, and no wildcard matches it (NXDOMAIN).
    NxDomain {
        /// The query name.
        name: NameRef<'q>,
        /// Its closest encloser.
        encloser: ImageNode<'i>,
    },
    /// The name exists, possibly as an empty non-terminal, without the queried type (NODATA).
    NoData {
        /// The name's node.
        node: ImageNode<'i>,
    },
    /// No closer match than the wildcard exists: the records of the wildcard answer the query.
    WildcardExpansion {
        /// The query name.
        name: NameRef<'q>,
        /// Its closest encloser, the parent of the wildcard.
        encloser: ImageNode<'i>,
    },
    /// The name does not exist, and the wildcard that matches it lacks the queried type (wildcard
    /// NODATA).
    WildcardNoData {
        /// The query name.
        name: NameRef<'q>,
        /// Its closest encloser, the parent of the wildcard.
        encloser: ImageNode<'i>,
        /// The wildcard's node.
        wildcard: ImageNode<'i>,
    },
    /// The delegation has no DS records: an unsigned referral, or NODATA for DS.
    NoDs {
        /// The zone cut.
        cut: ImageNode<'i>,
    },
}

/// Proves a denial with records of the zone. The proof is empty if the zone is unsigned.
#[must_use]
pub fn prove<'i>(image: &'i Image, target: DenialTarget<'i, '_>) -> Proof<'i> {
    if !image.is_signed() {
        return Proof::default();
    }
    match image.nsec3_parameters() {
        Some((salt, iterations)) => {
            nsec3::prove::prove(image, nsec3::prove::HashParams { salt, iterations }, target)
        }
        None => nsec::prove::prove(image, target),
    }
}

/// Whether a validator would accept `proof` in a response to a query of type `qtype`: its records
/// are signed, and match or cover the required names (RFC 4035 §5.4, RFC 5155 §8). Does not verify
/// the signatures.
///
/// The server calls it for a zone whose chain is not verified: such a chain may have a gap or an
/// outdated record.
#[must_use]
pub fn is_accepted_by_validators(
    image: &Image,
    proof: &Proof<'_>,
    target: DenialTarget<'_, '_>,
    qtype: Rtype,
) -> bool {
    let is_signed = |template: Template<'_>| template.signature_count() > 0 && template.record_count() == 1;
    if proof.templates().next().is_none() || !proof.templates().all(is_signed) {
        return false;
    }
    let apex = image.apex();
    let records: Vec<_> = proof.templates().flat_map(Template::expand).collect();
    let denials = records.iter().filter(|record| record.rtype != Rtype::RRSIG);
    let claim = to_claim(target, qtype);
    if image.nsec3_parameters().is_some() {
        let list = denials.map(|record| Nsec3Record::read(record.owner.view(), &record.rdata, apex).ok());
        let list: Option<Vec<_>> = list.collect();
        let records = list.and_then(|list| Nsec3Records::new(apex, list).ok());
        records.is_some_and(|mut records| check_nsec3_claim(&mut records, target, claim))
    } else {
        let list = denials.map(|record| Nsec::read(record.owner.view(), &record.rdata, apex).ok());
        let list: Option<Vec<_>> = list.collect();
        list.is_some_and(|list| NsecRecords::new(list).check_claim(claim).is_ok())
    }
}

fn check_nsec3_claim(records: &mut Nsec3Records<'_>, target: DenialTarget<'_, '_>, claim: Claim<'_>) -> bool {
    // A chain whose iterations exceed the limit of validators is not broken.
    let limits = ValidationLimits { max_iterations_insecure: u16::MAX, ..ValidationLimits::default() };
    let mut check_claim = |claim| records.check_claim(claim, &mut Budget::new(limits));
    let is_opt_out = |proved: ProvedClaim| proved.insecure_reason == Some(InsecureReason::OptOut);
    match (check_claim(claim), target) {
        (Ok(_), _) => true,
        // An opt-out chain may omit an empty non-terminal (RFC 5155, erratum 3441). The denial of
        // names below it is Insecure, even if a wildcard exists below the closest provable
        // encloser.
        (Err(ValidationError::Bogus(_)), DenialTarget::NxDomain { encloser, .. }) => {
            check_claim(Claim::NoData(encloser.name(), Rtype(0))).is_ok_and(is_opt_out)
        }
        // The check stopped at a limit for the work of validators, so it found no fault.
        (Err(ValidationError::Indeterminate(_)), _) => true,
        (Err(ValidationError::Bogus(_) | ValidationError::Pending), _) => false,
    }
}

/// The claim that a validator derives from a response with the denial `target`.
fn to_claim<'q>(target: DenialTarget<'q, 'q>, qtype: Rtype) -> Claim<'q> {
    match target {
        DenialTarget::NxDomain { name, .. } => Claim::NxDomain(name),
        // The child side of a zone cut denies its own DS RRset. No validator requires a proof of
        // this, but the bit map must not contain DS.
        DenialTarget::NoData { node } if node.is_apex() && qtype == Rtype::DS => {
            Claim::NoData(node.name(), Rtype(0))
        }
        DenialTarget::NoData { node } => Claim::NoData(node.name(), qtype),
        DenialTarget::WildcardExpansion { name, encloser } => {
            Claim::WildcardExpansion(name, encloser.name().label_count())
        }
        DenialTarget::WildcardNoData { name, .. } => Claim::NoData(name, qtype),
        DenialTarget::NoDs { cut } => Claim::NoDs(cut.name()),
    }
}

/// Proves a denial with records generated online. The proof is empty for a mechanism with a chain
/// in the zone.
#[must_use]
pub fn prove_online<'i>(image: &'i Image, mechanism: Mechanism, target: DenialTarget<'i, '_>) -> Proof<'i> {
    match mechanism {
        Mechanism::MinimalNsec => minimal_nsec::prove::prove(image, target),
        Mechanism::Compact => compact::prove::prove(image, target),
        Mechanism::WhiteLies => white_lies::prove::prove(image, target),
        _ => Proof::default(),
    }
}

/// Proves a denial with the records of an NSEC5 chain. `hash_of` returns the VRF hash of a name, or
/// `None` after it has requested the hash.
#[must_use]
pub fn prove_nsec5<'i>(
    image: &'i Image,
    target: DenialTarget<'i, '_>,
    hash_of: &mut dyn FnMut(NameRef<'_>) -> Option<[u8; 32]>,
) -> Proof<'i> {
    nsec5::prove::prove(image, target, hash_of)
}
