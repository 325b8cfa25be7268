//! Rendering templates, and putting them into a response.

use super::{ImageNode, Role, Template};
use nonesuch_proto::message::{HEADER, Message};
use nonesuch_proto::{Class, Name, NameRef, Rtype, rdata};

/// Bits of a compression pointer (RFC 1035 §4.1.4).
const POINTER: u16 = 0xc000;
/// Greatest offset that a pointer can lead to.
const REACH: usize = 0x3fff;
/// Pointer to the question name.
pub const TO_QUESTION: u16 = POINTER | HEADER as u16;
/// Suffixes remembered in one template; more would make large RRsets quadratic.
const MAX_SUFFIXES: usize = 64;

/// Place of a compression pointer in a template, and what moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch(u16);

impl Patch {
    const OWN: u16 = 0x8000;

    /// A pointer into the question name: it moves with the length of the question name.
    const fn to_question(at: usize) -> Self {
        Self(at as u16)
    }

    /// A pointer into the template: it moves with the template.
    const fn to_template(at: usize) -> Self {
        Self(at as u16 | Self::OWN)
    }

    const fn at(self) -> usize {
        (self.0 & !Self::OWN) as usize
    }

    const fn is_own(self) -> bool {
        self.0 & Self::OWN != 0
    }
}

/// Where a template goes in a response.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Octets of the question name.
    pub question: usize,
    /// How the owner is written.
    pub owner: Owner,
}

/// How a template's records name their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// As rendered: a pointer to the question name, or for NSEC, NSEC3 and glue the name itself.
    AsRendered,
    /// A pointer to a place in the response.
    At(u16),
    /// In full.
    WrittenOut,
}

impl<'i> Template<'i> {
    /// Appends the RRset, with its signatures where asked for, to the response in `out`; returns the number
    /// of records.
    pub fn append(self, position: Position, with_signatures: bool, out: &mut Vec<u8>) -> u16 {
        let start = out.len();
        let (records, signatures) = self.octets();
        let (patches, signature_patches) = self.patches();
        let base = usize::from(self.entry.base);
        let is_beyond_reach = start + records.len() + signatures.len() > REACH && start != HEADER + base + 4;
        // NSEC and NSEC3 records have no owner of two octets that a pointer could take the place of.
        let is_renamed = self.is_floating() && position.owner != Owner::AsRendered;
        if is_beyond_reach || is_renamed || position.owner == Owner::WrittenOut {
            return self.append_written_out(position.owner, with_signatures, out);
        }
        out.extend_from_slice(records);
        let mut count = self.entry.records;
        if with_signatures {
            out.extend_from_slice(signatures);
            count += self.entry.signatures;
        }
        let by_question = (position.question as u16).wrapping_sub(base as u16);
        let by_place = (start as u16).wrapping_sub((HEADER + base + 4) as u16);
        if by_question | by_place != 0 {
            let more = if with_signatures { signature_patches } else { &[] };
            for patch in patches.iter().chain(more) {
                let by = if patch.is_own() { by_place } else { by_question };
                let at = start + patch.at();
                let pointer = u16::from_be_bytes([out[at], out[at + 1]]).wrapping_add(by);
                out[at..at + 2].copy_from_slice(&pointer.to_be_bytes());
            }
        }
        if let Owner::At(pointer) = position.owner
            && pointer != TO_QUESTION
        {
            replace_owners(&mut out[start..], pointer);
        }
        count
    }

    /// Appends the signatures alone, as an answer to a query for RRSIG.
    pub fn append_signatures(self, position: Position, out: &mut Vec<u8>) -> u16 {
        let whole = out.len();
        self.append(position, true, out);
        let (records, signatures) = self.octets();
        // The signatures of NSEC and NSEC3 point to the owner in the record before them, which is left out.
        if self.is_floating() || out.len() - whole != records.len() + signatures.len() {
            out.truncate(whole);
            return self.append_parsed(position.owner, |rtype| rtype == Rtype::RRSIG, out);
        }
        out.drain(whole..whole + records.len());
        self.entry.signatures
    }

    /// NSEC and NSEC3 templates write their owner out.
    const fn is_floating(self) -> bool {
        matches!(self.entry.rtype, Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5)
    }

    /// Appends the records with every name written out, which is right anywhere in any response: where the
    /// question name is not below the name that the template was made for, and beyond the reach of pointers.
    pub fn append_written_out(self, owner: Owner, with_signatures: bool, out: &mut Vec<u8>) -> u16 {
        self.append_parsed(owner, |rtype| with_signatures || rtype != Rtype::RRSIG, out)
    }

    fn append_parsed(self, owner: Owner, keep: impl Fn(Rtype) -> bool, out: &mut Vec<u8>) -> u16 {
        let points_to_question = self.entry.role == Role::Data && !self.is_floating();
        let pointer = match owner {
            Owner::At(pointer) => Some(pointer),
            Owner::AsRendered if points_to_question => Some(TO_QUESTION),
            Owner::AsRendered | Owner::WrittenOut => None,
        };
        let mut count = 0;
        for (name, rtype, ttl, octets) in self.expand().into_iter().filter(|record| keep(record.1)) {
            match pointer {
                Some(pointer) => out.extend_from_slice(&pointer.to_be_bytes()),
                None => out.extend_from_slice(name.wire()),
            }
            push_fixed(rtype, ttl, octets.len() as u16, out);
            out.extend_from_slice(&octets);
            count += 1;
        }
        count
    }

    /// The records with names written out: owner, type, TTL, RDATA. In the base case the template behind a
    /// question for its base name is a well-formed message; that message is read.
    #[must_use]
    pub fn expand(self) -> Vec<(Name, Rtype, u32, Vec<u8>)> {
        // Glue points into the NS RRset, which stands before it in a referral.
        let before = match self.entry.role {
            Role::Data => None,
            Role::Glue | Role::RequiredGlue => self.node().template(Rtype::NS),
        };
        let skipped = before.map_or(0, |template| template.entry.records);
        let (records, signatures) = self.octets();
        let mut message = Vec::with_capacity(HEADER + 260 + records.len() + signatures.len());
        let count = skipped + self.entry.records + self.entry.signatures;
        message.extend_from_slice(&[0, 0, 0, 0, 0, 1]);
        message.extend_from_slice(&count.to_be_bytes());
        message.extend_from_slice(&[0; 4]);
        let base = if self.is_floating() { self.image.apex() } else { self.node().name() };
        message.extend_from_slice(base.wire());
        message.extend_from_slice(&[0; 4]);
        message.extend_from_slice(before.map_or(&[], |template| template.octets().0));
        message.extend_from_slice(records);
        message.extend_from_slice(signatures);
        let parsed = Message::parse(&message).map(|message| message.records).unwrap_or_default();
        let records = parsed.into_iter().skip(usize::from(skipped));
        records.map(|record| (record.owner, record.rtype, record.ttl, record.rdata)).collect()
    }

    /// The TTL of the RRset in seconds.
    #[must_use]
    pub fn ttl(self) -> u32 {
        let (mut octets, _) = self.octets();
        // Behind the owner, which ends in a pointer or in the root, stand type and class.
        while let [length @ 1..=63, rest @ ..] = octets {
            octets = rest.get(usize::from(*length)..).unwrap_or_default();
        }
        let owner_end = if octets.first() == Some(&0) { 1 } else { 2 };
        match octets.get(owner_end + 4..) {
            Some([a, b, c, d, ..]) => u32::from_be_bytes([*a, *b, *c, *d]),
            _ => 0,
        }
    }

    /// The node whose RRset this is.
    fn node(self) -> ImageNode<'i> {
        let image = self.image;
        let after = image.nodes.partition_point(|node| node.first_rrset <= self.index);
        // The RRset behind all nodes' is the apex's SOA with another TTL.
        let is_negative_soa = self.index == image.negative_soa;
        image.node(if is_negative_soa { 0 } else { after.saturating_sub(1) as u32 })
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

/// A name that later names can end in a pointer to.
struct Suffix {
    /// Lower case.
    wire: Vec<u8>,
    pointer: u16,
    /// Whether it lies in the template being rendered.
    is_own: bool,
}

/// Renders the templates of one node, one after the other.
pub(super) struct Renderer {
    /// Octets of the question name in the base case.
    base: usize,
    suffixes: Vec<Suffix>,
    /// Where the template began in the output.
    start: usize,
}

impl Renderer {
    /// For templates whose base question is `question` in the zone `apex`. With `all_suffixes`, names may
    /// point to every suffix of the question name, not to the apex alone: right where the template is only
    /// used with question names below `question`.
    pub(super) fn new(question: NameRef<'_>, apex: NameRef<'_>, all_suffixes: bool) -> Self {
        let mut renderer = Self { base: question.len(), suffixes: Vec::new(), start: 0 };
        let mut name = question;
        while name.len() >= apex.len() && !name.is_root() {
            if all_suffixes || name.len() == apex.len() {
                let pointer = TO_QUESTION + (question.len() - name.len()) as u16;
                let wire = name.wire().to_ascii_lowercase();
                renderer.suffixes.push(Suffix { wire, pointer, is_own: false });
            }
            let Some(parent) = name.parent() else { break };
            name = parent;
        }
        renderer
    }

    /// Begins a template at the end of `out`. What the last template wrote can be pointed to only where it
    /// always stands directly behind the question, as the NS RRset of a referral does before its glue.
    pub(super) fn begin(&mut self, keep_suffixes: bool, out: &[u8]) {
        self.start = out.len();
        if keep_suffixes {
            self.suffixes.iter_mut().for_each(|suffix| suffix.is_own = false);
        } else {
            self.suffixes.retain(|suffix| !suffix.is_own);
        }
    }

    /// Appends one record of the question name.
    pub(super) fn push_record(
        &mut self,
        fixed: (Rtype, u32),
        rdata: &[u8],
        out: &mut Vec<u8>,
        patches: &mut Vec<Patch>,
    ) {
        out.extend_from_slice(&TO_QUESTION.to_be_bytes());
        self.push_body(fixed, rdata, out, patches);
    }

    /// Appends one record whose owner is written out or pointed to.
    pub(super) fn push_record_of(
        &mut self,
        owner: NameRef<'_>,
        fixed: (Rtype, u32),
        rdata: &[u8],
        out: &mut Vec<u8>,
        patches: &mut Vec<Patch>,
    ) {
        self.push_name(owner, out, patches);
        self.push_body(fixed, rdata, out, patches);
    }

    fn push_body(
        &mut self,
        (rtype, ttl): (Rtype, u32),
        octets: &[u8],
        out: &mut Vec<u8>,
        patches: &mut Vec<Patch>,
    ) {
        push_fixed(rtype, ttl, 0, out);
        let start = out.len();
        let mut done = 0;
        // Only the types of RFC 1035 have names that may be compressed (RFC 3597 §4).
        for name in rdata::names(rtype, octets).filter(|name| name.compress) {
            out.extend_from_slice(&octets[done..name.range.start]);
            done = name.range.end;
            self.push_name(NameRef::from_checked(&octets[name.range]), out, patches);
        }
        out.extend_from_slice(&octets[done..]);
        let length = (out.len() - start) as u16;
        out[start - 2..start].copy_from_slice(&length.to_be_bytes());
    }

    fn push_name(&mut self, name: NameRef<'_>, out: &mut Vec<u8>, patches: &mut Vec<Patch>) {
        let known = self.suffixes.len();
        let mut rest = name;
        while !rest.is_root() {
            if let Some(suffix) = self.find(rest, known) {
                let (pointer, is_own) = (suffix.pointer, suffix.is_own);
                let at = out.len() - self.start;
                if at < usize::from(Patch::OWN) {
                    patches.push(if is_own { Patch::to_template(at) } else { Patch::to_question(at) });
                    out.extend_from_slice(&pointer.to_be_bytes());
                    return;
                }
            }
            self.remember(rest, out.len());
            let label = 1 + usize::from(rest.wire()[0]);
            out.extend_from_slice(&rest.wire()[..label]);
            rest = rest.parent().unwrap_or(NameRef::ROOT);
        }
        out.push(0);
    }

    fn find(&self, name: NameRef<'_>, known: usize) -> Option<&Suffix> {
        self.suffixes[..known].iter().find(|suffix| suffix.wire.eq_ignore_ascii_case(name.wire()))
    }

    fn remember(&mut self, name: NameRef<'_>, at: usize) {
        // A template is only moved while it ends within reach, so a pointer that fits here fits everywhere.
        let place = HEADER + self.base + 4 + at - self.start;
        if place <= REACH && self.suffixes.len() < MAX_SUFFIXES {
            let wire = name.wire().to_ascii_lowercase();
            self.suffixes.push(Suffix { wire, pointer: POINTER | place as u16, is_own: true });
        }
    }
}
