//! Incoming transfers: parses the messages of a primary's response to AXFR (RFC 5936 §2.2) or IXFR
//! (RFC 1995 §4).
//!
//! [`InboundTransfer`] takes the messages one by one, without I/O. It returns the records of the
//! zone, or the steps from the local version to the new one. The caller verifies TSIG before. The
//! result of [`InboundTransfer::finish`] is not verified: [`apply_steps`] checks that steps fit the
//! zone, and the caller verifies the DNSSEC signatures before it publishes the zone.

mod apply;
mod error;
#[cfg(test)]
pub(crate) mod tests;

pub use apply::{IxfrApplyError, apply_steps};
pub use error::InboundError;

use nonesuch_net::memory_limit;
use nonesuch_proto::message::{FixedFields, HEADER, Header, Rcode, flags, push_query, read_record};
use nonesuch_proto::{Class, MAX_NAME, Name, NameRef, Rtype, serial};
use nonesuch_zone::{Builder, ChangeSet, Contents, NodesBuilder, ParsedZone, SourceLocation, Warning};
use std::convert::Infallible;

/// Bytes charged for a record in addition to its owner and its data. They pay for its entries
/// during sorting and in the arenas of nodes and RRsets.
const RECORD_CHARGE_BYTES: usize = 64;
/// Bytes charged for a step in addition to its records. They pay for two sides (removals and
/// additions) with a name and four arenas each, and for the entry in the list of steps.
const STEP_CHARGE_BYTES: u64 = 1024;
/// Default of [`TransferBounds::steps`].
const DEFAULT_STEPS_MAX: u64 = 1 << 16;
/// Octets of the five numbers after the names in the RDATA of an SOA record (RFC 1035 §3.3.13).
const SOA_NUMBERS_OCTETS: usize = 20;

/// The request to the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboundRequest {
    /// AXFR: the whole zone.
    Axfr,
    /// IXFR: the changes since this serial.
    Ixfr {
        /// The serial of the local version.
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

/// Limits of one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferBounds {
    /// Maximum number of records, over all steps.
    pub records: u64,
    /// Maximum octets of the messages, and maximum bytes of memory charged to the transfer
    /// ([`InboundTransfer::charged`]).
    pub octets: u64,
    /// Maximum number of steps of an incremental transfer. Above it, the whole zone is transferred
    /// instead.
    pub steps: u64,
}

/// Default of [`TransferBounds::octets`] if the system does not report the amount of memory.
const OCTETS_MAX_UNKNOWN_MEMORY: u64 = 1 << 32;
/// Upper bound of the default of [`TransferBounds::octets`].
const DEFAULT_OCTETS_CEILING: u64 = 16 << 30;

impl Default for TransferBounds {
    /// Any number of records, and a quarter of the memory available to the server, but at most 16
    /// GiB. A transfer uses at most four times the memory charged to it. So neither a primary nor
    /// an attacker on the path can exhaust the memory of the server.
    fn default() -> Self {
        let octets = memory_limit()
            .map_or(OCTETS_MAX_UNKNOWN_MEMORY, |octets| (octets / 4).min(DEFAULT_OCTETS_CEILING));
        Self { records: u64::MAX, octets, steps: DEFAULT_STEPS_MAX }
    }
}

/// The content of a primary's response.
#[derive(Debug)]
pub enum TransferContent {
    /// The primary has no newer version. Its serial may precede the local one.
    UpToDate {
        /// The serial of the primary.
        serial: u32,
    },
    /// The primary has a newer version that does not fit into the datagram: repeat the query over
    /// TCP (RFC 1995 §2).
    Newer,
    /// The whole zone.
    Axfr {
        /// The records of the zone.
        contents: Contents,
        /// Unusual properties of the records.
        warnings: Vec<Warning>,
    },
    /// The changes from the local version on, one set for each version. Each set includes both SOA
    /// records.
    Ixfr(Vec<ChangeSet>),
}

/// Appends the query for a transfer. For IXFR, `soa` is the RDATA of the local SOA record (RFC 1995
/// §3).
pub fn push_transfer_query(apex: &Name, request: InboundRequest, soa: &[u8], id: u16, out: &mut Vec<u8>) {
    let start = out.len();
    push_query(apex, request.rtype(), id, 0, out);
    if let InboundRequest::Ixfr { .. } = request {
        out[start + 8..start + 10].copy_from_slice(&1u16.to_be_bytes());
        out.extend_from_slice(&[0xc0, HEADER as u8]);
        out.extend_from_slice(&Rtype::SOA.0.to_be_bytes());
        out.extend_from_slice(&Class::IN.0.to_be_bytes());
        out.extend_from_slice(&0u32.to_be_bytes());
        out.extend_from_slice(&(soa.len() as u16).to_be_bytes());
        out.extend_from_slice(soa);
    }
}

/// The position in the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// No record has been read.
    Start,
    /// The first SOA record has been read. The next record decides between a whole zone and steps.
    AfterFirstSoa,
    /// Within the records of the whole zone.
    WholeZone,
    /// Within the records that the step from this serial removes.
    Removing { from: u32 },
    /// Within the records that the step to this serial adds.
    Adding { to: u32 },
    /// The last record has been read.
    Complete,
}

/// Parses the messages of one response.
pub struct InboundTransfer {
    apex: Name,
    id: u16,
    request: InboundRequest,
    bounds: TransferBounds,
    position: Position,
    /// Whether the first SOA record shows that the primary has no newer version. The other records
    /// are then ignored.
    is_up_to_date: bool,
    /// Serial and RDATA of the first SOA record.
    first_soa: (u32, Vec<u8>),
    /// Collects the records of the whole zone, or of the current side of a step.
    builder: Builder,
    /// The removals of the current step, while its additions are read.
    removed: Option<Contents>,
    steps: Vec<ChangeSet>,
    messages: u64,
    records: u64,
    octets: u64,
    charged: u64,
    out_of_zone: u64,
    /// Buffers for the owner and the RDATA of a record, reused for all messages.
    owner: Vec<u8>,
    rdata: Vec<u8>,
}

impl InboundTransfer {
    /// Returns a parser for the response to the query with `id` for the zone at `apex`.
    #[must_use]
    pub fn new(apex: Name, id: u16, request: InboundRequest, bounds: TransferBounds) -> Self {
        Self {
            apex,
            id,
            request,
            bounds,
            position: Position::Start,
            is_up_to_date: false,
            first_soa: (0, Vec::new()),
            builder: Builder::default(),
            removed: None,
            steps: Vec::new(),
            messages: 0,
            records: 0,
            octets: 0,
            charged: 0,
            out_of_zone: 0,
            owner: Vec::with_capacity(MAX_NAME),
            rdata: Vec::new(),
        }
    }

    /// Number of records read so far.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Octets of the messages read so far.
    #[must_use]
    pub const fn octets(&self) -> u64 {
        self.octets
    }

    /// Bytes of memory charged to the transfer so far: its records with uncompressed names, 64
    /// bytes for each record, and 1 KiB for each step. The parser uses at most four times this
    /// amount. Applying the steps also needs a copy of the names that they change.
    #[must_use]
    pub const fn charged(&self) -> u64 {
        self.charged
    }

    /// Number of messages read so far.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// Number of ignored records with an owner outside the zone.
    #[must_use]
    pub const fn out_of_zone(&self) -> u64 {
        self.out_of_zone
    }

    /// Whether the response so far consists of one SOA record of a newer version.
    #[must_use]
    pub fn is_single_newer_soa(&self) -> bool {
        self.position == Position::AfterFirstSoa && self.records == 1 && self.request != InboundRequest::Axfr
    }

    /// Parses the next message. Returns whether it is the last one.
    ///
    /// # Errors
    /// Returns the fault in the response. The caller must then discard the whole response.
    pub fn push(&mut self, message: &[u8]) -> Result<bool, InboundError> {
        self.messages += 1;
        self.octets += message.len() as u64;
        self.charge(0)?;
        let (answers, mut offset) = self.check_header(message)?;
        let mut owner = std::mem::take(&mut self.owner);
        let mut rdata = std::mem::take(&mut self.rdata);
        let mut read = || {
            for _ in 0..answers {
                let (fixed, end) = read_record(message, offset, &mut owner, &mut rdata)?;
                self.process_record(NameRef::from_wire_unchecked(&owner), fixed, &rdata)?;
                offset = end;
            }
            Ok(self.position == Position::Complete)
        };
        let outcome = read();
        (self.owner, self.rdata) = (owner, rdata);
        outcome
    }

    /// Checks the header and the question. Returns the number of answer records and the offset of
    /// the first one.
    fn check_header(&self, message: &[u8]) -> Result<(u16, usize), InboundError> {
        let header = Header::read(message).ok_or(InboundError::WrongResponse("the header is incomplete"))?;
        if header.id != self.id {
            return Err(InboundError::WrongResponse("the message ID differs"));
        }
        if header.flags & flags::QR == 0 || header.opcode() != 0 {
            return Err(InboundError::WrongResponse("it is not a response to a query"));
        }
        if header.rcode() != Rcode::NOERROR {
            return Err(InboundError::Rcode(header.rcode()));
        }
        if header.flags & flags::TC != 0 {
            return Err(InboundError::WrongResponse("it is truncated (TC bit)"));
        }
        let offset = match header.counts[0] {
            // RFC 5936 §2.2.1: messages after the first one may omit the question.
            0 if self.messages > 1 => HEADER,
            1 => {
                let (name, end) = Name::from_message(message, HEADER).map_err(InboundError::from_name)?;
                let [a, b] = self.request.rtype().0.to_be_bytes();
                let [c, d] = Class::IN.0.to_be_bytes();
                if name != self.apex || message.get(end..end + 4) != Some(&[a, b, c, d]) {
                    return Err(InboundError::WrongResponse("the question differs"));
                }
                end + 4
            }
            _ => return Err(InboundError::WrongResponse("it does not have exactly one question")),
        };
        Ok((header.counts[1], offset))
    }

    fn process_record(
        &mut self,
        owner: NameRef<'_>,
        fixed: FixedFields,
        rdata: &[u8],
    ) -> Result<(), InboundError> {
        if self.is_up_to_date {
            // The following records lead to a version that the server already has.
            return Ok(());
        }
        self.records += 1;
        if self.records > self.bounds.records {
            return Err(InboundError::TooManyRecords { records: self.bounds.records });
        }
        // Charge uncompressed sizes: compression can expand two octets to 255.
        self.charge((owner.len() + rdata.len() + RECORD_CHARGE_BYTES) as u64)?;
        if fixed.class != Class::IN || fixed.rtype.is_meta() {
            return Err(InboundError::NoZoneData { rtype: fixed.rtype, class: fixed.class });
        }
        if fixed.rtype == Rtype::SOA && owner == self.apex.view() {
            let serial = soa_serial(rdata).ok_or(InboundError::NoSoaFirst)?;
            return self.process_soa(serial, owner, fixed, rdata);
        }
        match self.position {
            Position::Start => Err(InboundError::NoSoaFirst),
            Position::Complete => Err(InboundError::RecordsAfterEnd),
            Position::AfterFirstSoa => {
                self.position = Position::WholeZone;
                self.add_record(owner, fixed, rdata);
                Ok(())
            }
            Position::WholeZone | Position::Removing { .. } | Position::Adding { .. } => {
                self.add_record(owner, fixed, rdata);
                Ok(())
            }
        }
    }

    /// Charges `bytes` of memory to the transfer.
    ///
    /// # Errors
    /// Fails if the limit of octets is exceeded.
    fn charge(&mut self, bytes: u64) -> Result<(), InboundError> {
        self.charged += bytes;
        let octets = self.bounds.octets;
        if self.charged.max(self.octets) <= octets {
            return Ok(());
        }
        Err(match self.position {
            Position::Removing { .. } | Position::Adding { .. } => InboundError::StepsTooLarge { octets },
            _ => InboundError::TooLarge { octets },
        })
    }

    /// Begins the removals of a step.
    fn begin_step(&mut self) -> Result<(), InboundError> {
        if self.steps.len() as u64 >= self.bounds.steps {
            return Err(InboundError::TooManySteps { steps: self.bounds.steps });
        }
        self.charge(STEP_CHARGE_BYTES)
    }

    fn process_soa(
        &mut self,
        serial: u32,
        owner: NameRef<'_>,
        fixed: FixedFields,
        rdata: &[u8],
    ) -> Result<(), InboundError> {
        self.position = match (self.position, self.request) {
            (Position::Start, request) => {
                self.first_soa = (serial, rdata.to_vec());
                match request {
                    InboundRequest::Ixfr { serial: local_serial }
                        if !serial::is_before(local_serial, serial) =>
                    {
                        self.is_up_to_date = true;
                        Position::Complete
                    }
                    _ => {
                        // If the whole zone follows, this record is part of it. Otherwise it is
                        // discarded.
                        self.add_record(owner, fixed, rdata);
                        Position::AfterFirstSoa
                    }
                }
            }
            (Position::AfterFirstSoa, InboundRequest::Ixfr { serial: local_serial })
                if serial == local_serial =>
            {
                self.begin_step()?;
                self.builder = Builder::default();
                self.add_record(owner, fixed, rdata);
                Position::Removing { from: serial }
            }
            // The SOA record may be the only record of the zone.
            (Position::AfterFirstSoa | Position::WholeZone, _) => {
                self.check_last(serial, rdata)?;
                Position::Complete
            }
            (Position::Removing { from }, _) => {
                if !serial::is_before(from, serial) {
                    return Err(InboundError::Order { from, to: serial });
                }
                self.removed = Some(self.finish_side()?);
                self.add_record(owner, fixed, rdata);
                Position::Adding { to: serial }
            }
            (Position::Adding { to }, _) => {
                self.finish_step()?;
                if to == self.first_soa.0 {
                    self.check_last(serial, rdata)?;
                    Position::Complete
                } else if serial == to && serial::is_before(to, self.first_soa.0) {
                    self.begin_step()?;
                    self.add_record(owner, fixed, rdata);
                    Position::Removing { from: serial }
                } else {
                    return Err(InboundError::Order { from: to, to: serial });
                }
            }
            (Position::Complete, _) => return Err(InboundError::RecordsAfterEnd),
        };
        Ok(())
    }

    /// Checks that the last record equals the first one (RFC 5936 §2.2). Otherwise the response is
    /// a mixture of two versions.
    fn check_last(&self, serial: u32, rdata: &[u8]) -> Result<(), InboundError> {
        // The comparison ignores letter case in the two names, but compares the five numbers
        // exactly.
        let (names, numbers) = rdata.split_at(rdata.len().saturating_sub(SOA_NUMBERS_OCTETS));
        let (first_names, first_numbers) =
            self.first_soa.1.split_at(self.first_soa.1.len().saturating_sub(SOA_NUMBERS_OCTETS));
        if first_names.eq_ignore_ascii_case(names) && first_numbers == numbers {
            return Ok(());
        }
        Err(InboundError::Changed { first: self.first_soa.0, last: serial })
    }

    /// Adds a record to the builder, or counts it if its owner is outside the zone.
    fn add_record(&mut self, owner: NameRef<'_>, fixed: FixedFields, rdata: &[u8]) {
        if !owner.is_at_or_below(self.apex.view()) {
            self.out_of_zone += 1;
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

    /// Returns the side of a step that was read, in canonical order.
    fn finish_side(&mut self) -> Result<Contents, InboundError> {
        let builder = std::mem::take(&mut self.builder);
        let reading = builder.finish(Some(&self.apex)).map_err(|error| InboundError::Zone(error.fault))?;
        Ok(reading.contents)
    }

    fn finish_step(&mut self) -> Result<(), InboundError> {
        let added = self.finish_side()?;
        let removed = self.removed.take().unwrap_or_else(|| Contents::empty(&self.apex));
        self.steps.push(ChangeSet::from_sides(
            &self.apex,
            to_nodes_builder(&removed),
            to_nodes_builder(&added),
        ));
        Ok(())
    }

    /// Returns the content of the response.
    ///
    /// # Errors
    /// Fails if the response is incomplete, or if its records do not form a zone.
    pub fn finish(self) -> Result<TransferContent, InboundError> {
        let serial = self.first_soa.0;
        match self.position {
            Position::Complete if self.is_up_to_date => Ok(TransferContent::UpToDate { serial }),
            Position::Complete if !self.steps.is_empty() => Ok(TransferContent::Ixfr(self.steps)),
            Position::Complete => {
                let finished = self.builder.finish(Some(&self.apex));
                let ParsedZone { contents, warnings } =
                    finished.map_err(|error| InboundError::Zone(error.fault))?;
                Ok(TransferContent::Axfr { contents, warnings })
            }
            Position::AfterFirstSoa if self.is_single_newer_soa() => Ok(TransferContent::Newer),
            _ => Err(InboundError::Truncated { records: self.records }),
        }
    }
}

/// Returns a builder with all nodes of `contents`.
fn to_nodes_builder(contents: &Contents) -> NodesBuilder {
    let mut run = NodesBuilder::default();
    run.push_nodes(contents, 0..contents.node_count());
    run
}

/// Returns the serial of an SOA record's RDATA with uncompressed names.
fn soa_serial(rdata: &[u8]) -> Option<u32> {
    let numbers = rdata.get(rdata.len().checked_sub(SOA_NUMBERS_OCTETS)?..)?;
    Some(u32::from_be_bytes(*numbers.first_chunk::<4>()?))
}
