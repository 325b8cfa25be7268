//! Proving denial: which records of an image show that something does not exist.
//!
//! The questions are the same for every mechanism; the folder of each mechanism answers them.

use super::nsec::validate::{Nsec, NsecRecords};
use super::nsec3::validate::{Nsec3Record, Nsec3Records};
use super::proof_piece::{self, ProofPiece};
use super::{Mechanism, compact, minimal_nsec, nsec, nsec3, nsec5, white_lies};
use crate::validate::claim::{Claim, Denial};
use crate::validate::{Budget, InsecureReason, Refusal, ValidationLimits};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::Image;
use nonesuch_zone::image::{ImageNode, Template};

/// Most RRsets that one proof takes: closest encloser, next closer name, wildcard (RFC 5155 §7.2.2).
const MOST: usize = 3;

/// The RRsets that prove a denial, each once: those of the image alone, or pieces of which some are made when asked.
#[derive(Clone, Debug, Default)]
pub struct Proof<'i> {
    templates: [Option<Template<'i>>; MOST],
    pieces: Vec<ProofPiece<'i>>,
}

impl<'i> Proof<'i> {
    /// Adds an RRset unless the proof has it already: one record may prove several things.
    pub(crate) fn add(&mut self, template: Option<Template<'i>>) {
        let Some(template) = template else { return };
        for slot in &mut self.templates {
            match slot {
                Some(present) if present.is(template) => return,
                Some(_) => {}
                None => {
                    *slot = Some(template);
                    return;
                }
            }
        }
    }

    /// Adds a piece unless the proof has it already.
    pub(crate) fn push(&mut self, piece: ProofPiece<'i>) {
        proof_piece::push(&mut self.pieces, piece);
    }

    /// The RRsets.
    pub fn templates(&self) -> impl Iterator<Item = Template<'i>> + '_ {
        self.templates.iter().filter_map(|template| *template)
    }

    /// The pieces, where some are generated online.
    #[must_use]
    pub fn into_pieces(self) -> Vec<ProofPiece<'i>> {
        self.pieces
    }
}

/// What is denied.
#[derive(Clone, Copy, Debug)]
pub enum DenialTarget<'i, 'q> {
    /// The name does not exist, nor a wildcard that would match it (NXDOMAIN).
    Name {
        /// The question name.
        name: NameRef<'q>,
        /// Its closest encloser.
        encloser: ImageNode<'i>,
    },
    /// The name exists, or is an empty non-terminal, without the type asked for (NODATA).
    Type {
        /// The name's node.
        node: ImageNode<'i>,
    },
    /// The name does not exist, so that a wildcard's records answer.
    CloserMatch {
        /// The question name.
        name: NameRef<'q>,
        /// Its closest encloser, the parent of the wildcard.
        encloser: ImageNode<'i>,
    },
    /// The name does not exist, and the wildcard that matches lacks the type asked for (wildcard NODATA).
    WildcardType {
        /// The question name.
        name: NameRef<'q>,
        /// Its closest encloser, the parent of the wildcard.
        encloser: ImageNode<'i>,
        /// The wildcard's node.
        wildcard: ImageNode<'i>,
    },
    /// The delegation has no DS records: an unsigned referral, or NODATA for DS.
    Ds {
        /// The zone cut.
        cut: ImageNode<'i>,
    },
}

/// Proves a denial with the records that the zone holds; empty where the zone has none.
#[must_use]
pub fn prove<'i>(image: &'i Image, denied: DenialTarget<'i, '_>) -> Proof<'i> {
    if !image.is_signed() {
        return Proof::default();
    }
    match image.nsec3_parameters() {
        Some((salt, iterations)) => {
            nsec3::prove::prove(image, nsec3::prove::Hash { salt, iterations }, denied)
        }
        None => nsec::prove::prove(image, denied),
    }
}

/// Whether a validator accepts `proof` as the denial in a response to a query of type `qtype`: its records are signed, and match
/// or cover what they must (RFC 4035 §5.4, RFC 5155 §8). Signatures are not verified.
///
/// For zones whose chain was not verified: a record may be stale, or the chain may have a gap.
#[must_use]
pub fn is_accepted(image: &Image, proof: &Proof<'_>, denied: DenialTarget<'_, '_>, qtype: Rtype) -> bool {
    let is_signed = |template: Template<'_>| template.signature_count() > 0 && template.record_count() == 1;
    if proof.templates().next().is_none() || !proof.templates().all(is_signed) {
        return false;
    }
    let apex = image.apex();
    let records: Vec<_> = proof.templates().flat_map(Template::expand).collect();
    let denials = records.iter().filter(|record| record.rtype != Rtype::RRSIG);
    let claim = claim_of(denied, qtype);
    if image.nsec3_parameters().is_some() {
        let list = denials.map(|record| Nsec3Record::read(record.owner.view(), &record.rdata, apex).ok());
        let list: Option<Vec<_>> = list.collect();
        let records = list.and_then(|list| Nsec3Records::new(apex, list).ok());
        records.is_some_and(|mut records| denies_by_hashes(&mut records, denied, claim))
    } else {
        let list = denials.map(|record| Nsec::read(record.owner.view(), &record.rdata, apex).ok());
        let list: Option<Vec<_>> = list.collect();
        list.is_some_and(|list| NsecRecords::new(list).deny(claim).is_ok())
    }
}

fn denies_by_hashes(records: &mut Nsec3Records<'_>, denied: DenialTarget<'_, '_>, claim: Claim<'_>) -> bool {
    // Iterations that validators do not compute are no fault of the chain.
    let limits = ValidationLimits { tolerated_iterations: u16::MAX, ..ValidationLimits::default() };
    let mut deny = |claim| records.deny(claim, &mut Budget::new(limits));
    let is_left_out = |denial: Denial| denial.weakness == Some(InsecureReason::OptOut);
    match (deny(claim), denied) {
        (Ok(_), _) => true,
        // An opt-out chain may leave out an empty non-terminal (RFC 5155, erratum 3441). Its names are denied insecurely, even where
        // a wildcard exists at the closest provable encloser.
        (Err(Refusal::Bogus(_)), DenialTarget::Name { encloser, .. }) => {
            deny(Claim::Type(encloser.name(), Rtype(0))).is_ok_and(is_left_out)
        }
        // A bound on the work of validators was reached.
        (Err(Refusal::Undecided(_)), _) => true,
        (Err(Refusal::Bogus(_)), _) => false,
    }
}

/// What a validator takes a denial for.
fn claim_of<'q>(denied: DenialTarget<'q, 'q>, qtype: Rtype) -> Claim<'q> {
    match denied {
        DenialTarget::Name { name, .. } => Claim::Name(name),
        // The child side of a cut denies its own DS RRset: no validator asks it for a proof, and the types must not have DS.
        DenialTarget::Type { node } if node.is_apex() && qtype == Rtype::DS => {
            Claim::Type(node.name(), Rtype(0))
        }
        DenialTarget::Type { node } => Claim::Type(node.name(), qtype),
        DenialTarget::CloserMatch { name, encloser } => Claim::Closer(name, encloser.name().label_count()),
        DenialTarget::WildcardType { name, .. } => Claim::Type(name, qtype),
        DenialTarget::Ds { cut } => Claim::Cut(cut.name()),
    }
}

/// Proves a denial with records made when asked; empty for mechanisms whose records the zone holds.
#[must_use]
pub fn prove_online<'i>(image: &'i Image, mechanism: Mechanism, denied: DenialTarget<'i, '_>) -> Proof<'i> {
    match mechanism {
        Mechanism::MinimalNsec => minimal_nsec::prove::prove(image, denied),
        Mechanism::Compact => compact::prove::prove(image, denied),
        Mechanism::WhiteLies => white_lies::prove::prove(image, denied),
        _ => Proof::default(),
    }
}

/// Proves a denial with the records of an NSEC5 chain; `hash_of` tells the VRF hash of a name, or asks for it.
#[must_use]
pub fn prove_nsec5<'i>(
    image: &'i Image,
    denied: DenialTarget<'i, '_>,
    hash_of: &mut dyn FnMut(NameRef<'_>) -> Option<[u8; 32]>,
) -> Proof<'i> {
    nsec5::prove::prove(image, denied, hash_of)
}
