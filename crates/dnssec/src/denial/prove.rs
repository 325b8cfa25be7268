//! Proving denial: which records of an image show that something does not exist.
//!
//! The questions are the same for every mechanism; the folder of each mechanism answers them.

use super::piece::{self, Piece};
use super::{Mechanism, compact, minimal_nsec, nsec, nsec3, nsec5, white_lies};
use nonesuch_proto::NameRef;
use nonesuch_zone::Image;
use nonesuch_zone::image::{ImageNode, Template};

/// Most RRsets that one proof takes: closest encloser, next closer name, wildcard (RFC 5155 §7.2.2).
const MOST: usize = 3;

/// The RRsets that prove a denial, each once: those of the image alone, or pieces of which some are made when asked.
#[derive(Clone, Debug, Default)]
pub struct Proof<'i> {
    templates: [Option<Template<'i>>; MOST],
    pieces: Vec<Piece<'i>>,
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
    pub(crate) fn push(&mut self, piece: Piece<'i>) {
        piece::push(&mut self.pieces, piece);
    }

    /// The RRsets.
    pub fn templates(&self) -> impl Iterator<Item = Template<'i>> + '_ {
        self.templates.iter().filter_map(|template| *template)
    }

    /// The pieces, given away.
    #[must_use]
    pub fn into_pieces(self) -> Vec<Piece<'i>> {
        self.pieces
    }

    /// The pieces, where some are made when asked.
    #[must_use]
    pub fn pieces(&self) -> &[Piece<'i>] {
        &self.pieces
    }
}

/// What is denied.
#[derive(Clone, Copy, Debug)]
pub enum Denied<'i, 'q> {
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
pub fn prove<'i>(image: &'i Image, denied: Denied<'i, '_>) -> Proof<'i> {
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

/// Proves a denial with records made when asked; empty for mechanisms whose records the zone holds.
#[must_use]
pub fn prove_made<'i>(image: &'i Image, mechanism: Mechanism, denied: Denied<'i, '_>) -> Proof<'i> {
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
    denied: Denied<'i, '_>,
    hash_of: &mut dyn FnMut(NameRef<'_>) -> Option<[u8; 32]>,
) -> Proof<'i> {
    nsec5::prove::prove(image, denied, hash_of)
}

/// The name one label below `encloser` that `name` is or is below (RFC 5155 §1.3).
#[must_use]
pub fn next_closer<'q>(name: NameRef<'q>, encloser: NameRef<'_>) -> NameRef<'q> {
    let mut next = name;
    while let Some(parent) = next.parent() {
        if parent.len() <= encloser.len() {
            break;
        }
        next = parent;
    }
    next
}
