//! Transfers in: reading the messages of a primary's answer to AXFR (RFC 5936 §2.2) or IXFR (RFC 1995 §4).
//!
//! [`InboundTransfer`] takes the messages one by one, without I/O, and gives the zone's records or the steps that lead to them. TSIG is
//! checked before. What [`InboundTransfer::finish`] gives is no more than what the primary says: steps have to fit the zone
//! ([`apply_steps`]), and signatures have to be verified by whoever publishes.

mod apply;
mod error;
#[cfg(test)]
pub(crate) mod tests;

pub use apply::{IxfrApplyError, apply_steps};
pub use error::InboundError;

use nonesuch_net::memory_limit;
use nonesuch_proto::message::{Fixed, HEADER, Header, Rcode, flags, push_query, read_record};
use nonesuch_proto::{Class, MAX_NAME, Name, NameRef, Rtype, serial};
use nonesuch_zone::{Builder, ChangeSet, Contents, NodesBuilder, ParsedZone, SourceLocation, Warning};
use std::convert::Infallible;

/// Bytes that a record is charged with in addition to its owner and its data: its entries while records are sorted, and in the
/// arenas of nodes and RRsets.
const RECORD_CHARGE: usize = 64;
/// Bytes that a step is charged with in addition to its records: two sides with a name and four arenas each, and its place in the
/// list.
const STEP_CHARGE: u64 = 1024;
/// Steps of a transfer by default.
const STEPS: u64 = 1 << 16;
/// Octets of the five numbers behind the names of an SOA record (RFC 1035 §3.3.13).
const SOA_NUMBERS: usize = 20;

/// What the primary was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboundRequest {
    /// The whole zone.
    Axfr,
    /// What leads to its version from the one with this serial.
    Ixfr {
        /// The serial of the version that is here.
        serial: u32,
    },
}

impl InboundRequest {
    /// The query type.
    #[must_use]
    pub const fn rtype(self) -> Rtype {
        match self {
            Self::Axfr => Rtype::AXFR,
            Self::Ixfr { .. } => Rtype::IXFR,
        }
    }
}

/// What one transfer may take at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferBounds {
    /// Records, those of all steps together.
    pub records: u64,
    /// Octets of the messages; bytes of memory that the transfer is charged with ([`InboundTransfer::charged`]).
    pub octets: u64,
    /// Steps of an incremental transfer. One with more is not wanted: the whole zone is transferred instead.
    pub steps: u64,
}

/// Octets of a transfer by default where the system does not tell how much memory there is.
const OCTETS: u64 = 1 << 32;
/// Most octets of a transfer by default.
const MOST_OCTETS: u64 = 16 << 30;

impl Default for TransferBounds {
    /// Any number of records, and a quarter of the memory that the server may have, 16 GiB at most: a transfer holds at most four
    /// times the bytes that it is charged with, and neither a primary nor who is between is to end the server with all its zones.
    fn default() -> Self {
        let octets = memory_limit().map_or(OCTETS, |octets| (octets / 4).min(MOST_OCTETS));
        Self { records: u64::MAX, octets, steps: STEPS }
    }
}

/// What a primary's answer holds.
#[derive(Debug)]
pub enum TransferContent {
    /// It has no newer version; this is its serial, which may be an older one.
    UpToDate {
        /// The primary's serial.
        serial: u32,
    },
    /// It has a newer version that does not fit the datagram: ask over TCP (RFC 1995 §2).
    Newer,
    /// The whole zone.
    Axfr {
        /// Its records.
        contents: Contents,
        /// What is odd about them.
        warnings: Vec<Warning>,
    },
    /// The versions from the one that is here on, each as what it changes. Both SOA records are among that.
    Ixfr(Vec<ChangeSet>),
}

/// Appends the question for a transfer; for IXFR with `soa`, the RDATA of the SOA record that is here (RFC 1995 §3).
pub fn push_question(apex: &Name, asked: InboundRequest, soa: &[u8], id: u16, out: &mut Vec<u8>) {
    let start = out.len();
    push_query(apex, asked.rtype(), id, 0, out);
    if let InboundRequest::Ixfr { .. } = asked {
        out[start + 8..start + 10].copy_from_slice(&1u16.to_be_bytes());
        out.extend_from_slice(&[0xc0, HEADER as u8]);
        out.extend_from_slice(&Rtype::SOA.0.to_be_bytes());
        out.extend_from_slice(&Class::IN.0.to_be_bytes());
        out.extend_from_slice(&0u32.to_be_bytes());
        out.extend_from_slice(&(soa.len() as u16).to_be_bytes());
        out.extend_from_slice(soa);
    }
}

/// How far an answer was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was read.
    Begin,
    /// The first SOA record was read; the next record tells what follows.
    Opened,
    /// The records of the whole zone.
    Whole,
    /// Records that the step from this serial on removes.
    Removing { from: u32 },
    /// Records that the step to this serial adds.
    Adding { to: u32 },
    /// The last record was read.
    Complete,
}

/// Reads the messages of one answer.
pub struct InboundTransfer {
    apex: Name,
    id: u16,
    asked: InboundRequest,
    bounds: TransferBounds,
    phase: Phase,
    is_up_to_date: bool,
    /// Serial and RDATA of the first SOA record.
    newest: (u32, Vec<u8>),
    /// The whole zone, or the side of a step that is being read.
    builder: Builder,
    removed: Option<Contents>,
    steps: Vec<ChangeSet>,
    messages: u64,
    records: u64,
    octets: u64,
    charged: u64,
    outside: u64,
    owner: Vec<u8>,
    rdata: Vec<u8>,
}

impl InboundTransfer {
    /// Waits for the answer to the question with `id` for the zone at `apex`.
    #[must_use]
    pub fn new(apex: Name, id: u16, asked: InboundRequest, bounds: TransferBounds) -> Self {
        Self {
            apex,
            id,
            asked,
            bounds,
            phase: Phase::Begin,
            is_up_to_date: false,
            newest: (0, Vec::new()),
            builder: Builder::default(),
            removed: None,
            steps: Vec::new(),
            messages: 0,
            records: 0,
            octets: 0,
            charged: 0,
            outside: 0,
            owner: Vec::with_capacity(MAX_NAME),
            rdata: Vec::new(),
        }
    }

    /// Records read so far.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Octets of the messages read so far.
    #[must_use]
    pub const fn octets(&self) -> u64 {
        self.octets
    }

    /// Bytes of memory that the transfer is charged with so far: its records with their names in full, 64 bytes for each record
    /// and 1 KiB for each step. Reading it holds at most four
    /// times as many bytes. Applying its steps also holds a copy of the names of the zone that they change.
    #[must_use]
    pub const fn charged(&self) -> u64 {
        self.charged
    }

    /// Messages read so far.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// Records that were passed over, since their owner is not in the zone.
    #[must_use]
    pub const fn out_of_zone(&self) -> u64 {
        self.outside
    }

    /// Whether all that came so far is one SOA record, of a newer version.
    #[must_use]
    pub fn is_only_newer(&self) -> bool {
        self.phase == Phase::Opened && self.records == 1 && self.asked != InboundRequest::Axfr
    }

    /// Reads the next message; tells whether it was the last one.
    ///
    /// # Errors
    /// What is wrong with the answer; nothing of it is to be used then.
    pub fn push(&mut self, message: &[u8]) -> Result<bool, InboundError> {
        self.messages += 1;
        self.octets += message.len() as u64;
        self.charge(0)?;
        let (answers, mut at) = self.check_head(message)?;
        let mut owner = std::mem::take(&mut self.owner);
        let mut rdata = std::mem::take(&mut self.rdata);
        let mut read = || {
            for _ in 0..answers {
                let (fixed, end) = read_record(message, at, &mut owner, &mut rdata)?;
                self.take_record(NameRef::from_checked(&owner), fixed, &rdata)?;
                at = end;
            }
            Ok(self.phase == Phase::Complete)
        };
        let outcome = read();
        (self.owner, self.rdata) = (owner, rdata);
        outcome
    }

    /// Checks header and question; returns the number of answer records and where the first begins.
    fn check_head(&self, message: &[u8]) -> Result<(u16, usize), InboundError> {
        let header = Header::read(message).ok_or(InboundError::WrongResponse("it has no whole header"))?;
        if header.id != self.id {
            return Err(InboundError::WrongResponse("its identifier is another one"));
        }
        if header.flags & flags::QR == 0 || header.opcode() != 0 {
            return Err(InboundError::WrongResponse("it is no response to a query"));
        }
        if header.rcode() != Rcode::NOERROR {
            return Err(InboundError::Rcode(header.rcode()));
        }
        if header.flags & flags::TC != 0 {
            return Err(InboundError::WrongResponse("it is marked as truncated"));
        }
        let at = match header.counts[0] {
            // RFC 5936 §2.2.1: messages behind the first one need not repeat the question.
            0 if self.messages > 1 => HEADER,
            1 => {
                let (name, end) = Name::from_message(message, HEADER).map_err(InboundError::from_name)?;
                let [a, b] = self.asked.rtype().0.to_be_bytes();
                let [c, d] = Class::IN.0.to_be_bytes();
                if name != self.apex || message.get(end..end + 4) != Some(&[a, b, c, d]) {
                    return Err(InboundError::WrongResponse("its question is another one"));
                }
                end + 4
            }
            _ => return Err(InboundError::WrongResponse("it has not the one question")),
        };
        Ok((header.counts[1], at))
    }

    fn take_record(&mut self, owner: NameRef<'_>, fixed: Fixed, rdata: &[u8]) -> Result<(), InboundError> {
        if self.is_up_to_date {
            // What follows leads to a version that is here already.
            return Ok(());
        }
        self.records += 1;
        if self.records > self.bounds.records {
            return Err(InboundError::TooManyRecords { records: self.bounds.records });
        }
        // Compression makes 255 octets of two.
        self.charge((owner.len() + rdata.len() + RECORD_CHARGE) as u64)?;
        if fixed.class != Class::IN || fixed.rtype.is_meta() {
            return Err(InboundError::NoZoneData { rtype: fixed.rtype, class: fixed.class });
        }
        if fixed.rtype == Rtype::SOA && owner == self.apex.view() {
            let serial = soa_serial(rdata).ok_or(InboundError::NoSoaFirst)?;
            return self.take_soa(serial, owner, fixed, rdata);
        }
        match self.phase {
            Phase::Begin => Err(InboundError::NoSoaFirst),
            Phase::Complete => Err(InboundError::RecordsAfterEnd),
            Phase::Opened => {
                self.phase = Phase::Whole;
                self.keep(owner, fixed, rdata);
                Ok(())
            }
            Phase::Whole | Phase::Removing { .. } | Phase::Adding { .. } => {
                self.keep(owner, fixed, rdata);
                Ok(())
            }
        }
    }

    /// Charges the transfer with `bytes` of memory.
    fn charge(&mut self, bytes: u64) -> Result<(), InboundError> {
        self.charged += bytes;
        let octets = self.bounds.octets;
        if self.charged.max(self.octets) <= octets {
            return Ok(());
        }
        Err(match self.phase {
            Phase::Removing { .. } | Phase::Adding { .. } => InboundError::StepsTooLarge { octets },
            _ => InboundError::TooLarge { octets },
        })
    }

    /// Begins the side of a step that removes records.
    fn begin_step(&mut self) -> Result<(), InboundError> {
        if self.steps.len() as u64 >= self.bounds.steps {
            return Err(InboundError::TooManySteps { steps: self.bounds.steps });
        }
        self.charge(STEP_CHARGE)
    }

    fn take_soa(
        &mut self,
        serial: u32,
        owner: NameRef<'_>,
        fixed: Fixed,
        rdata: &[u8],
    ) -> Result<(), InboundError> {
        self.phase = match (self.phase, self.asked) {
            (Phase::Begin, asked) => {
                self.newest = (serial, rdata.to_vec());
                match asked {
                    InboundRequest::Ixfr { serial: here } if !serial::is_before(here, serial) => {
                        self.is_up_to_date = true;
                        Phase::Complete
                    }
                    _ => {
                        // Where the whole zone follows, this is one of its records; else it is forgotten.
                        self.keep(owner, fixed, rdata);
                        Phase::Opened
                    }
                }
            }
            (Phase::Opened, InboundRequest::Ixfr { serial: here }) if serial == here => {
                self.begin_step()?;
                self.builder = Builder::default();
                self.keep(owner, fixed, rdata);
                Phase::Removing { from: serial }
            }
            // The zone may have no record but its SOA.
            (Phase::Opened | Phase::Whole, _) => {
                self.check_last(serial, rdata)?;
                Phase::Complete
            }
            (Phase::Removing { from }, _) => {
                if !serial::is_before(from, serial) {
                    return Err(InboundError::Order { from, to: serial });
                }
                self.removed = Some(self.close_side()?);
                self.keep(owner, fixed, rdata);
                Phase::Adding { to: serial }
            }
            (Phase::Adding { to }, _) => {
                self.close_step()?;
                if to == self.newest.0 {
                    self.check_last(serial, rdata)?;
                    Phase::Complete
                } else if serial == to && serial::is_before(to, self.newest.0) {
                    self.begin_step()?;
                    self.keep(owner, fixed, rdata);
                    Phase::Removing { from: serial }
                } else {
                    return Err(InboundError::Order { from: to, to: serial });
                }
            }
            (Phase::Complete, _) => return Err(InboundError::RecordsAfterEnd),
        };
        Ok(())
    }

    /// The last record is the first one again (RFC 5936 §2.2): another version would be a mixture of two.
    fn check_last(&self, serial: u32, rdata: &[u8]) -> Result<(), InboundError> {
        // Letter case does not matter in the two names; in the five numbers each bit does.
        let (names, numbers) = rdata.split_at(rdata.len().saturating_sub(SOA_NUMBERS));
        let (first_names, first_numbers) =
            self.newest.1.split_at(self.newest.1.len().saturating_sub(SOA_NUMBERS));
        if first_names.eq_ignore_ascii_case(names) && first_numbers == numbers {
            return Ok(());
        }
        Err(InboundError::Changed { first: self.newest.0, last: serial })
    }

    fn keep(&mut self, owner: NameRef<'_>, fixed: Fixed, rdata: &[u8]) {
        if !owner.is_at_or_below(self.apex.view()) {
            self.outside += 1;
            return;
        }
        // RFC 2181 §8: a TTL with the highest bit set counts as zero.
        let ttl = if fixed.ttl > i32::MAX as u32 { 0 } else { fixed.ttl };
        let write = |out: &mut Vec<u8>| -> Result<(), Infallible> {
            out.extend_from_slice(rdata);
            Ok(())
        };
        let Ok(()) = self.builder.push(owner, fixed.rtype, ttl, SourceLocation::default(), write);
    }

    /// The side of a step that was read, in canonical order.
    fn close_side(&mut self) -> Result<Contents, InboundError> {
        let builder = std::mem::take(&mut self.builder);
        let reading = builder.finish(Some(&self.apex)).map_err(|error| InboundError::Zone(error.fault))?;
        Ok(reading.contents)
    }

    fn close_step(&mut self) -> Result<(), InboundError> {
        let added = self.close_side()?;
        let removed = self.removed.take().unwrap_or_else(|| Contents::empty(&self.apex));
        self.steps.push(ChangeSet::from_sides(&self.apex, to_run(&removed), to_run(&added)));
        Ok(())
    }

    /// What was read.
    ///
    /// # Errors
    /// The answer has not ended, or its records are no zone.
    pub fn finish(self) -> Result<TransferContent, InboundError> {
        let serial = self.newest.0;
        match self.phase {
            Phase::Complete if self.is_up_to_date => Ok(TransferContent::UpToDate { serial }),
            Phase::Complete if !self.steps.is_empty() => Ok(TransferContent::Ixfr(self.steps)),
            Phase::Complete => {
                let finished = self.builder.finish(Some(&self.apex));
                let ParsedZone { contents, warnings } =
                    finished.map_err(|error| InboundError::Zone(error.fault))?;
                Ok(TransferContent::Axfr { contents, warnings })
            }
            Phase::Opened if self.is_only_newer() => Ok(TransferContent::Newer),
            _ => Err(InboundError::Truncated { records: self.records }),
        }
    }
}

fn to_run(contents: &Contents) -> NodesBuilder {
    let mut run = NodesBuilder::default();
    run.push_nodes(contents, 0..contents.node_count());
    run
}

/// The serial in the RDATA of an SOA record, names uncompressed.
fn soa_serial(rdata: &[u8]) -> Option<u32> {
    let numbers = rdata.get(rdata.len().checked_sub(SOA_NUMBERS)?..)?;
    Some(u32::from_be_bytes(*numbers.first_chunk::<4>()?))
}
