//! Insertion of templates into a response.

use super::node::{Parts, Role, Template};
use nonesuch_proto::message::{HEADER, Message, Record};
use nonesuch_proto::{Class, Rtype};

/// The two high bits of a compression pointer (RFC 1035 §4.1.4).
pub(super) const POINTER: u16 = 0xc000;
/// Maximum offset of a compression pointer.
pub(super) const MAX_POINTER_OFFSET: usize = 0x3fff;
/// Compression pointer to the question name.
pub const QUESTION_POINTER: u16 = POINTER | HEADER as u16;

/// Position of a compression pointer in a template modulo [`Patch::LIMIT`], and whether it points
/// into the question name or into the template. A patch has 2 octets in an image.
/// [`patch_positions`] computes the complete positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patch(u16);

impl Patch {
    /// Exclusive upper limit of the distance between a patch and the previous patch, or the start
    /// of the template, in octets.
    pub(super) const LIMIT: usize = 0x8000;
    /// Flag: the pointer points into the template.
    const IN_TEMPLATE_FLAG: u16 = 0x8000;

    /// Creates a patch for a pointer into the question name, which moves with the length of the
    /// question name.
    pub(super) const fn to_question(at: usize) -> Self {
        Self((at % Self::LIMIT) as u16)
    }

    /// Creates a patch for a pointer into the template, which moves with the template.
    pub(super) const fn to_template(at: usize) -> Self {
        Self((at % Self::LIMIT) as u16 | Self::IN_TEMPLATE_FLAG)
    }

    pub(super) const fn octets(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }

    pub(super) const fn of_octets(octets: [u8; 2]) -> Self {
        Self(u16::from_le_bytes(octets))
    }

    /// The position modulo [`Patch::LIMIT`], which is the position in a template of at most that
    /// many octets.
    const fn at(self) -> usize {
        (self.0 & !Self::IN_TEMPLATE_FLAG) as usize
    }

    /// Whether the pointer points into the template.
    const fn is_in_template(self) -> bool {
        self.0 & Self::IN_TEMPLATE_FLAG != 0
    }
}

/// Iterates over the patches of a template with their complete positions. Positions ascend, so a
/// lower number belongs to the next range of [`Patch::LIMIT`] octets.
pub(super) fn patch_positions(patches: &[[u8; 2]]) -> impl Iterator<Item = (usize, Patch)> {
    let mut previous = 0;
    patches.iter().map(move |octets| {
        let patch = Patch::of_octets(*octets);
        let at = previous - previous % Patch::LIMIT + patch.at();
        previous = if at < previous { at + Patch::LIMIT } else { at };
        (previous, patch)
    })
}

/// Position of a template in a response.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Octets of the question name.
    pub question_octets: usize,
    /// Form of the owner.
    pub owner: OwnerForm,
}

/// Form of the owner name in the records of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerForm {
    /// The rendered form: a pointer to the question name; for denial records and glue, the name
    /// itself.
    AsRendered,
    /// This pointer to a position in the response.
    At(u16),
    /// The name in full.
    WrittenOut,
}

impl Template<'_> {
    /// Appends the RRset to the response in `out`, with its signatures if `with_signatures` is set.
    /// Returns the number of records. Returns `None` and appends nothing if the rendered octets
    /// exceed `max_octets`. The rendered octets do not include the names of signers, nor owners in
    /// full, so `out` may grow by more than `max_octets`; the caller must check its length.
    #[inline]
    pub fn append(
        self,
        position: Position,
        with_signatures: bool,
        max_octets: usize,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        let parts = self.parts();
        // Denial records have no two-octet owner that a pointer could replace.
        let replaces_chain_owner = parts.role == Role::Chain && position.owner != OwnerForm::AsRendered;
        if parts.min_octets(with_signatures) > max_octets && !replaces_chain_owner {
            return None;
        }
        let end = out.len() + parts.records.len();
        if end > MAX_POINTER_OFFSET
            && self.exceeds_pointer_offset(&parts, position.question_octets, out.len())
            || replaces_chain_owner
            || position.owner == OwnerForm::WrittenOut
        {
            return self.append_uncompressed(position.owner, with_signatures, max_octets, out);
        }
        Some(self.append_rendered(&parts, position, with_signatures, out))
    }

    /// Whether a pointer of the template exceeds the maximum offset if the template begins at
    /// `start` and the question name has `question_octets` octets. The NS RRset into which glue
    /// points directly follows the question, where all offsets are in range.
    #[cold]
    fn exceeds_pointer_offset(self, parts: &Parts<'_>, question_octets: usize, start: usize) -> bool {
        let base_octets = self.base_octets(parts.role);
        let target = |(at, patch): (usize, Patch)| {
            let pointer = parts.records.get(at..).and_then(|rest| rest.first_chunk());
            let target = usize::from(pointer.map_or(0, |pointer| u16::from_be_bytes(*pointer)) & !POINTER);
            if patch.is_in_template() {
                (target + start).saturating_sub(HEADER + base_octets + 4)
            } else {
                (target + question_octets).saturating_sub(base_octets)
            }
        };
        // Denial records and glue begin with their owner, and their signatures point to it.
        start > MAX_POINTER_OFFSET
            || patch_positions(parts.patches).map(target).any(|target| target > MAX_POINTER_OFFSET)
    }

    /// Appends the template as rendered, with adjusted pointers.
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
        self.shift_pointers(parts, position, &mut out[start..], start);
        if let OwnerForm::At(pointer) = position.owner
            && pointer != QUESTION_POINTER
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

    /// Adjusts the pointers of `records`, which begin at `start` in the message.
    #[inline]
    fn shift_pointers(self, parts: &Parts<'_>, position: Position, records: &mut [u8], start: usize) {
        if parts.patches.is_empty() {
            return;
        }
        let base_octets = self.base_octets(parts.role);
        let question_shift = (position.question_octets as u16).wrapping_sub(base_octets as u16);
        let template_shift = (start as u16).wrapping_sub((HEADER + base_octets + 4) as u16);
        let mut shift_pointer = |at: usize, patch: Patch| {
            let shift = if patch.is_in_template() { template_shift } else { question_shift };
            // Patches were checked when the image was compiled or opened.
            if let Some(pointer) = records.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                *pointer = u16::from_be_bytes(*pointer).wrapping_add(shift).to_be_bytes();
            }
        };
        if parts.records.len() > Patch::LIMIT {
            patch_positions(parts.patches).for_each(|(at, patch)| shift_pointer(at, patch));
            return;
        }
        for octets in parts.patches {
            let patch = Patch::of_octets(*octets);
            shift_pointer(patch.at(), patch);
        }
    }

    /// Appends only the signatures, for an answer to a query for RRSIG. Returns the number of
    /// signatures. Returns `None` and leaves `out` unchanged if they take more than `max_octets`
    /// octets.
    pub fn append_signatures(self, position: Position, max_octets: usize, out: &mut Vec<u8>) -> Option<u16> {
        let parts = self.parts();
        if parts.signatures.len() > max_octets {
            return None;
        }
        let owner = match position.owner {
            OwnerForm::At(pointer) => pointer,
            OwnerForm::AsRendered if points_to_question(parts.role) => QUESTION_POINTER,
            // The signatures of denial records point to the owner in the record before them, which
            // is omitted here.
            owner => return self.append_parsed(owner, |rtype| rtype == Rtype::RRSIG, max_octets, out),
        };
        let start = out.len();
        self.image.append_signatures(parts.signature_count, parts.signatures, owner, out);
        fits_or_truncate(start, max_octets, out).then_some(parts.signature_count)
    }

    /// Octets of the question name in the base case.
    #[inline]
    fn base_octets(self, role: Role) -> usize {
        if role == Role::Chain { self.image.apex().len() } else { self.name_length() }
    }

    /// Appends the records with all names in full. This form is correct at any position in any
    /// response, also if the question name is not at or below the name of the template, or a
    /// pointer would exceed the maximum offset. Returns the number of records. Returns `None` and
    /// leaves `out` unchanged if they take more than `max_octets` octets.
    #[cold]
    #[inline(never)]
    pub fn append_uncompressed(
        self,
        owner: OwnerForm,
        with_signatures: bool,
        max_octets: usize,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        self.append_parsed(owner, |rtype| with_signatures || rtype != Rtype::RRSIG, max_octets, out)
    }

    /// Appends the records of the selected types with all names in their RDATA in full.
    fn append_parsed(
        self,
        owner: OwnerForm,
        is_selected: impl Fn(Rtype) -> bool,
        max_octets: usize,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        let parts = self.parts();
        if parts.min_octets(false) > max_octets && parts.role != Role::Chain && is_selected(self.rtype()) {
            return None;
        }
        let pointer = match owner {
            OwnerForm::At(pointer) => Some(pointer),
            OwnerForm::AsRendered if points_to_question(parts.role) => Some(QUESTION_POINTER),
            OwnerForm::AsRendered | OwnerForm::WrittenOut => None,
        };
        let (start, mut count) = (out.len(), 0);
        for record in self.expand().into_iter().filter(|record| is_selected(record.rtype)) {
            match pointer {
                Some(pointer) => out.extend_from_slice(&pointer.to_be_bytes()),
                None => out.extend_from_slice(record.owner.wire()),
            }
            push_record_fields(record.rtype, record.ttl, record.rdata.len() as u16, out);
            out.extend_from_slice(&record.rdata);
            if !fits_or_truncate(start, max_octets, out) {
                return None;
            }
            count += 1;
        }
        Some(count)
    }

    /// Returns the records with all names in full. In the base case, a question with the base name
    /// followed by the template is a well-formed message; this function builds and parses that
    /// message.
    #[must_use]
    pub fn expand(self) -> Vec<Record> {
        let parts = self.parts();
        // Glue points into the NS RRset, which precedes it in a referral.
        let ns_template = if is_glue(parts.role) { self.node().template(Rtype::NS) } else { None };
        let base_name = if parts.role == Role::Chain { self.image.apex() } else { self.node().name() };
        let position = Position { question_octets: base_name.len(), owner: OwnerForm::AsRendered };
        let mut message = vec![0; HEADER];
        message.extend_from_slice(base_name.wire());
        message.extend_from_slice(&[0; 4]);
        let skipped = ns_template
            .map_or(0, |template| template.append_rendered(&template.parts(), position, false, &mut message));
        let count = skipped.saturating_add(self.append_rendered(&parts, position, true, &mut message));
        message[5] = 1;
        message[6..8].copy_from_slice(&count.to_be_bytes());
        let parsed = Message::parse(&message).map(|message| message.records).unwrap_or_default();
        parsed.into_iter().skip(usize::from(skipped)).collect()
    }
}

/// Returns whether `out` has at most `max_octets` octets from `start` on. If not, truncates `out`
/// to `start`.
#[inline]
fn fits_or_truncate(start: usize, max_octets: usize, out: &mut Vec<u8>) -> bool {
    let fits = out.len() - start <= max_octets;
    if !fits {
        out.truncate(start);
    }
    fits
}

/// Whether the owner of the records is a pointer to the question name.
const fn points_to_question(role: Role) -> bool {
    matches!(role, Role::Data | Role::NegativeSoa)
}

/// Whether the records are addresses in a referral.
pub(super) const fn is_glue(role: Role) -> bool {
    matches!(role, Role::Glue | Role::RequiredGlue)
}

/// Returns a pointer to the owner of the record at `start`. The owner is a pointer, or a name
/// within the maximum offset.
#[inline]
fn first_owner(out: &[u8], start: usize) -> u16 {
    match out.get(start..) {
        Some([a, b, ..]) if *a >= 0xc0 => u16::from_be_bytes([*a, *b]),
        _ => POINTER | start as u16,
    }
}

/// Overwrites the two-octet owner of each record in `records`.
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

/// Appends the fields between owner and RDATA of a record: type, class IN, TTL and RDATA length.
pub fn push_record_fields(rtype: Rtype, ttl: u32, rdata_length: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&rtype.0.to_be_bytes());
    out.extend_from_slice(&Class::IN.0.to_be_bytes());
    out.extend_from_slice(&ttl.to_be_bytes());
    out.extend_from_slice(&rdata_length.to_be_bytes());
}
