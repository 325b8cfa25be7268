//! Putting templates into a response.

use super::node::{Parts, Role, Template};
use nonesuch_proto::message::{HEADER, Message, Record};
use nonesuch_proto::{Class, Rtype};

/// Bits of a compression pointer (RFC 1035 §4.1.4).
pub(super) const POINTER: u16 = 0xc000;
/// Greatest offset that a pointer can lead to.
pub(super) const REACH: usize = 0x3fff;
/// Pointer to the question name.
pub const TO_QUESTION: u16 = POINTER | HEADER as u16;

/// Place of a compression pointer in a template modulo [`Patch::LIMIT`], and what moves it; 2 octets in an image. [`places`] has
/// the places themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patch(u16);

impl Patch {
    /// A patch is fewer octets than these behind the previous patch, or behind the beginning of the template.
    pub(super) const LIMIT: usize = 0x8000;
    const OWN: u16 = 0x8000;

    /// A pointer into the question name: it moves with the length of the question name.
    pub(super) const fn to_question(at: usize) -> Self {
        Self((at % Self::LIMIT) as u16)
    }

    /// A pointer into the template: it moves with the template.
    pub(super) const fn to_template(at: usize) -> Self {
        Self((at % Self::LIMIT) as u16 | Self::OWN)
    }

    pub(super) const fn octets(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }

    pub(super) const fn of_octets(octets: [u8; 2]) -> Self {
        Self(u16::from_le_bytes(octets))
    }

    /// The place, in templates of at most [`Patch::LIMIT`] octets.
    const fn at(self) -> usize {
        (self.0 & !Self::OWN) as usize
    }

    const fn is_own(self) -> bool {
        self.0 & Self::OWN != 0
    }
}

/// The places of all patches of a template, with the patches. Places ascend, so a lower number is one of the next
/// [`Patch::LIMIT`] octets.
pub(super) fn places(patches: &[[u8; 2]]) -> impl Iterator<Item = (usize, Patch)> {
    let mut before = 0;
    patches.iter().map(move |octets| {
        let patch = Patch::of_octets(*octets);
        let at = before - before % Patch::LIMIT + patch.at();
        before = if at < before { at + Patch::LIMIT } else { at };
        (before, patch)
    })
}

/// Where a template goes in a response.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Octets of the question name.
    pub question: usize,
    /// How the owner is written.
    pub owner: OwnerForm,
}

/// How a template's records name their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerForm {
    /// As rendered: a pointer to the question name, or for records of a chain and glue the name itself.
    AsRendered,
    /// A pointer to a place in the response.
    At(u16),
    /// In full.
    WrittenOut,
}

impl Template<'_> {
    /// Appends the RRset to the response in `out`, and its signatures with `with_signatures`; returns the number of records.
    /// Returns `None`, and copies nothing, where its rendered octets alone are more than `room`. The signer's names and owners
    /// that are written out come to them, so that `out` may grow by more than `room`: the caller checks its length.
    #[inline]
    pub fn append(
        self,
        position: Position,
        with_signatures: bool,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        let parts = self.parts();
        // Records of a chain have no owner of two octets that a pointer could take the place of.
        let is_renamed = parts.role == Role::Chain && position.owner != OwnerForm::AsRendered;
        if parts.least_octets(with_signatures) > room && !is_renamed {
            return None;
        }
        let end = out.len() + parts.records.len();
        if end > REACH && self.is_beyond_reach(&parts, position.question, out.len())
            || is_renamed
            || position.owner == OwnerForm::WrittenOut
        {
            return self.append_uncompressed(position.owner, with_signatures, room, out);
        }
        Some(self.append_rendered(&parts, position, with_signatures, out))
    }

    /// Whether a pointer of the template leads beyond the reach of pointers when the template begins at `start` and the question
    /// name has `question` octets. The NS RRset that glue points into begins directly behind the question, where all pointers reach.
    #[cold]
    fn is_beyond_reach(self, parts: &Parts<'_>, question: usize, start: usize) -> bool {
        let base = self.base(parts.role);
        let target = |(at, patch): (usize, Patch)| {
            let pointer = parts.records.get(at..).and_then(|rest| rest.first_chunk());
            let target = usize::from(pointer.map_or(0, |pointer| u16::from_be_bytes(*pointer)) & !POINTER);
            if patch.is_own() {
                (target + start).saturating_sub(HEADER + base + 4)
            } else {
                (target + question).saturating_sub(base)
            }
        };
        // The records of a chain and of glue begin with their owner, which their signatures point to.
        start > REACH || places(parts.patches).map(target).any(|target| target > REACH)
    }

    /// Appends the template as it was rendered, with its pointers moved.
    #[inline(always)]
    fn append_rendered(
        self,
        parts: &Parts<'_>,
        position: Position,
        with_signatures: bool,
        out: &mut Vec<u8>,
    ) -> u16 {
        let start = out.len();
        out.extend_from_slice(parts.records);
        self.move_pointers(parts, position, &mut out[start..], start);
        if let OwnerForm::At(pointer) = position.owner
            && pointer != TO_QUESTION
        {
            replace_owners(&mut out[start..], pointer);
        }
        if !with_signatures || parts.signature_count == 0 {
            return parts.record_count;
        }
        let owner = match position.owner {
            OwnerForm::At(pointer) => pointer,
            _ => first_owner(out, start),
        };
        self.image.append_signatures(parts.signature_count, parts.signatures, owner, out);
        parts.record_count + parts.signature_count
    }

    /// Moves the pointers of `records`, which stand at `start`.
    #[inline]
    fn move_pointers(self, parts: &Parts<'_>, position: Position, records: &mut [u8], start: usize) {
        if parts.patches.is_empty() {
            return;
        }
        let base = self.base(parts.role);
        let by_question = (position.question as u16).wrapping_sub(base as u16);
        let by_place = (start as u16).wrapping_sub((HEADER + base + 4) as u16);
        let mut add = |at: usize, patch: Patch| {
            let by = if patch.is_own() { by_place } else { by_question };
            // Patches were checked when the image was made or opened.
            if let Some(pointer) = records.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                *pointer = u16::from_be_bytes(*pointer).wrapping_add(by).to_be_bytes();
            }
        };
        if parts.records.len() > Patch::LIMIT {
            places(parts.patches).for_each(|(at, patch)| add(at, patch));
            return;
        }
        for octets in parts.patches {
            let patch = Patch::of_octets(*octets);
            add(patch.at(), patch);
        }
    }

    /// Appends the signatures alone, as an answer to a query for RRSIG. Returns `None` and leaves `out` as it was where they
    /// take more than `room` octets.
    pub fn append_signatures(self, position: Position, room: usize, out: &mut Vec<u8>) -> Option<u16> {
        let parts = self.parts();
        if parts.signatures.len() > room {
            return None;
        }
        let owner = match position.owner {
            OwnerForm::At(pointer) => pointer,
            OwnerForm::AsRendered if points_to_question(parts.role) => TO_QUESTION,
            // The signatures of records of a chain point to the owner in the record before them, which is left out.
            owner => return self.append_parsed(owner, |rtype| rtype == Rtype::RRSIG, room, out),
        };
        let start = out.len();
        self.image.append_signatures(parts.signature_count, parts.signatures, owner, out);
        fits(start, room, out).then_some(parts.signature_count)
    }

    /// Octets of the question name in the base case.
    #[inline]
    fn base(self, role: Role) -> usize {
        if role == Role::Chain { self.image.apex().len() } else { self.name_length() }
    }

    /// Appends the records with every name written out, which is right anywhere in any response: where the
    /// question name is not below the name that the template was made for, and beyond the reach of pointers.
    /// Returns `None` and leaves `out` as it was where they take more than `room` octets.
    #[cold]
    #[inline(never)]
    pub fn append_uncompressed(
        self,
        owner: OwnerForm,
        with_signatures: bool,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        self.append_parsed(owner, |rtype| with_signatures || rtype != Rtype::RRSIG, room, out)
    }

    fn append_parsed(
        self,
        owner: OwnerForm,
        keep: impl Fn(Rtype) -> bool,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        let parts = self.parts();
        if parts.least_octets(false) > room && parts.role != Role::Chain && keep(self.rtype()) {
            return None;
        }
        let pointer = match owner {
            OwnerForm::At(pointer) => Some(pointer),
            OwnerForm::AsRendered if points_to_question(parts.role) => Some(TO_QUESTION),
            OwnerForm::AsRendered | OwnerForm::WrittenOut => None,
        };
        let (start, mut count) = (out.len(), 0);
        for record in self.expand().into_iter().filter(|record| keep(record.rtype)) {
            match pointer {
                Some(pointer) => out.extend_from_slice(&pointer.to_be_bytes()),
                None => out.extend_from_slice(record.owner.wire()),
            }
            push_fixed(record.rtype, record.ttl, record.rdata.len() as u16, out);
            out.extend_from_slice(&record.rdata);
            if !fits(start, room, out) {
                return None;
            }
            count += 1;
        }
        Some(count)
    }

    /// The records with names written out. In the base case the template behind a
    /// question for its base name is a well-formed message; that message is read.
    #[must_use]
    pub fn expand(self) -> Vec<Record> {
        let parts = self.parts();
        // Glue points into the NS RRset, which stands before it in a referral.
        let before = if is_glue(parts.role) { self.node().template(Rtype::NS) } else { None };
        let base = if parts.role == Role::Chain { self.image.apex() } else { self.node().name() };
        let position = Position { question: base.len(), owner: OwnerForm::AsRendered };
        let mut message = vec![0; HEADER];
        message.extend_from_slice(base.wire());
        message.extend_from_slice(&[0; 4]);
        let skipped = before
            .map_or(0, |template| template.append_rendered(&template.parts(), position, false, &mut message));
        let count = skipped.saturating_add(self.append_rendered(&parts, position, true, &mut message));
        message[5] = 1;
        message[6..8].copy_from_slice(&count.to_be_bytes());
        let parsed = Message::parse(&message).map(|message| message.records).unwrap_or_default();
        parsed.into_iter().skip(usize::from(skipped)).collect()
    }
}

/// Whether the octets from `start` on are at most `room`; truncates `out` to `start` where they are more.
#[inline]
fn fits(start: usize, room: usize, out: &mut Vec<u8>) -> bool {
    let fits = out.len() - start <= room;
    if !fits {
        out.truncate(start);
    }
    fits
}

/// Whether the records point to the question name as their owner.
const fn points_to_question(role: Role) -> bool {
    matches!(role, Role::Data | Role::NegativeSoa)
}

/// Whether the records are addresses in a referral.
pub(super) const fn is_glue(role: Role) -> bool {
    matches!(role, Role::Glue | Role::RequiredGlue)
}

/// A pointer to the owner of the record at `start`, which is itself a pointer or a name in reach.
#[inline]
fn first_owner(out: &[u8], start: usize) -> u16 {
    match out.get(start..) {
        Some([a, b, ..]) if *a >= 0xc0 => u16::from_be_bytes([*a, *b]),
        _ => POINTER | start as u16,
    }
}

/// Overwrites the two-octet owner of every record in `records`.
fn replace_owners(records: &mut [u8], owner: u16) {
    let mut rest = records;
    while let [a, b, _, _, _, _, _, _, _, _, high, low, ..] = rest {
        [*a, *b] = owner.to_be_bytes();
        let length = 12 + usize::from(u16::from_be_bytes([*high, *low]));
        match rest.get_mut(length..) {
            Some(next) => rest = next,
            None => return,
        }
    }
}

/// Appends type, class IN, TTL and RDATA length.
pub fn push_fixed(rtype: Rtype, ttl: u32, rdata_length: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&rtype.0.to_be_bytes());
    out.extend_from_slice(&Class::IN.0.to_be_bytes());
    out.extend_from_slice(&ttl.to_be_bytes());
    out.extend_from_slice(&rdata_length.to_be_bytes());
}
