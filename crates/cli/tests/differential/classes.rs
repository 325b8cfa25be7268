//! The kinds of difference that are known.

use super::exchange::{Question, Reply};
use super::zone::Zone;

/// The server that ours is compared with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Peer {
    Nsd,
    Knot,
}

/// One question, both replies, and the zone.
pub struct Case<'a> {
    pub zone: &'a Zone,
    pub question: &'a Question,
    pub peer: Peer,
}

/// A kind of difference.
pub struct Class {
    pub name: &'static str,
    pub peers: &'static [Peer],
    /// Takes away what the cause makes differ; tells whether there was any.
    pub explain: fn(&Case<'_>, &mut Reply, &mut Reply) -> bool,
}

pub const CLASSES: &[Class] = &[];
