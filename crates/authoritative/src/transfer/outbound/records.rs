//! The records of a transfer in their order. Each call continues after the last record of the
//! previous message.

use nonesuch_proto::{NameRef, Rtype};
use nonesuch_server::compress::Compressor;
use nonesuch_zone::Contents;
use nonesuch_zone::journal::{ChangeReader, Changes, JournalError};
use std::sync::Arc;

/// Maximum size of a message, in octets.
pub(super) const MAX_OCTETS: usize = 65_535;

/// Errors that prevent sending further records.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordsError {
    #[error("a record of {owner} does not fit into a message of 65,535 octets")]
    TooLong { owner: String },
    #[error("{0}")]
    Journal(#[from] JournalError),
}

/// Fills a message with records.
pub(super) struct MessageBuilder<'m> {
    pub(super) message: &'m mut Vec<u8>,
    pub(super) compressor: &'m mut Compressor,
    /// Size up to which the message is filled, in octets.
    pub(super) target_octets: usize,
    /// Maximum size of the message if its first record needs more than the target size, in octets.
    pub(super) max_octets: usize,
    /// Number of records so far.
    pub(super) record_count: u16,
}

/// Result of filling a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FillOutcome {
    /// The next record does not fit.
    MessageFull,
    /// All records are written.
    NoMoreRecords,
}

impl MessageBuilder<'_> {
    /// Adds a record. Returns `false` if it does not fit and the message already has records.
    ///
    /// # Errors
    /// Returns [`RecordsError::TooLong`] if the record does not fit into an empty message.
    fn push(
        &mut self,
        owner: NameRef<'_>,
        rtype: Rtype,
        ttl: u32,
        rdata: &[u8],
    ) -> Result<bool, RecordsError> {
        let end = self.message.len();
        self.compressor.push_record(owner, rtype, ttl, rdata, self.message);
        let limit = if self.record_count == 0 { self.max_octets } else { self.target_octets };
        if self.message.len() <= limit && self.record_count < u16::MAX {
            self.record_count += 1;
            return Ok(true);
        }
        // The compressor may retain names of the removed record. This is harmless, because no
        // records follow in this message.
        self.message.truncate(end);
        if self.record_count == 0 {
            return Err(RecordsError::TooLong { owner: owner.to_string() });
        }
        Ok(false)
    }

    /// Adds the SOA record of `contents`. Returns `false` if it does not fit. Does nothing if
    /// `contents` has no SOA record.
    fn push_soa(&mut self, contents: &Contents) -> Result<bool, RecordsError> {
        self.compressor.end_owner();
        let apex = contents.nodes().next();
        let soa = apex.and_then(|node| Some((node, node.rrset(Rtype::SOA)?)));
        let Some((node, rrset)) = soa else { return Ok(true) };
        let (rtype, ttl) = (rrset.rtype(), rrset.ttl());
        rrset.rdatas().next().map_or(Ok(true), |rdata| self.push(node.name(), rtype, ttl, rdata))
    }
}

/// The records of a zone, with the SOA record first.
#[derive(Debug)]
struct ZoneRecords {
    contents: Arc<Contents>,
    /// Whether the SOA record is written.
    is_soa_written: bool,
    /// Indices of the next record: node, RRset of the node, record of the RRset.
    node: usize,
    rrset: usize,
    record: usize,
}

impl ZoneRecords {
    const fn new(contents: Arc<Contents>) -> Self {
        Self { contents, is_soa_written: false, node: 0, rrset: 0, record: 0 }
    }

    fn fill(&mut self, builder: &mut MessageBuilder<'_>) -> Result<FillOutcome, RecordsError> {
        if !self.is_soa_written {
            if !builder.push_soa(&self.contents)? {
                return Ok(FillOutcome::MessageFull);
            }
            self.is_soa_written = true;
        }
        while self.node < self.contents.node_count() {
            let node = self.contents.node(self.node);
            builder.compressor.end_owner();
            for rrset in node.rrsets().skip(self.rrset) {
                if rrset.rtype() != Rtype::SOA {
                    for rdata in rrset.rdatas().skip(self.record) {
                        if !builder.push(node.name(), rrset.rtype(), rrset.ttl(), rdata)? {
                            return Ok(FillOutcome::MessageFull);
                        }
                        self.record += 1;
                    }
                }
                (self.rrset, self.record) = (self.rrset + 1, 0);
            }
            (self.node, self.rrset) = (self.node + 1, 0);
        }
        Ok(FillOutcome::NoMoreRecords)
    }
}

/// The records of changes. They are read from the journal while they are sent, because changes can
/// be as large as the zone and the sending thread also serves other clients.
#[derive(Debug)]
struct ChangeRecords {
    changes: Changes,
    /// Index of the next change.
    next: usize,
    /// Reader of the current change.
    reader: Option<Box<ChangeReader>>,
    /// Whether the current record of the reader did not fit into the previous message.
    is_pending: bool,
}

impl ChangeRecords {
    fn fill(&mut self, builder: &mut MessageBuilder<'_>) -> Result<FillOutcome, RecordsError> {
        loop {
            if let Some(reader) = &mut self.reader {
                while std::mem::take(&mut self.is_pending) || reader.advance()? {
                    let record = reader.record();
                    if record.begins_owner {
                        builder.compressor.end_owner();
                    }
                    if !builder.push(record.owner, record.rtype, record.ttl, record.rdata)? {
                        self.is_pending = true;
                        return Ok(FillOutcome::MessageFull);
                    }
                }
            }
            let Some(reader) = self.changes.open(self.next).transpose()? else {
                return Ok(FillOutcome::NoMoreRecords);
            };
            self.next += 1;
            self.reader = Some(Box::new(reader));
        }
    }

    fn journal_bytes(&self) -> usize {
        self.reader.as_ref().map_or(0, |reader| reader.buffer_octets())
    }
}

/// All records of a response to AXFR or IXFR, in their order.
#[derive(Debug)]
pub(super) struct TransferRecords {
    zone: Arc<Contents>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Only the SOA record: the client has the newest version, or must repeat the request over TCP.
    Soa,
    /// The complete zone (RFC 5936 §2.2). The SOA record follows again at the end.
    Zone(ZoneRecords),
    /// The SOA record before the changes.
    SoaBeforeChanges(Changes),
    /// For each change, the removed and then the added records (RFC 1995 §4).
    Changes(ChangeRecords),
    /// The SOA record at the end.
    FinalSoa,
    Done,
}

impl TransferRecords {
    pub(super) const fn soa(zone: Arc<Contents>) -> Self {
        Self { zone, stage: Stage::Soa }
    }

    pub(super) fn zone(zone: Arc<Contents>) -> Self {
        let stage = Stage::Zone(ZoneRecords::new(Arc::clone(&zone)));
        Self { zone, stage }
    }

    pub(super) const fn changes(zone: Arc<Contents>, changes: Changes) -> Self {
        Self { zone, stage: Stage::SoaBeforeChanges(changes) }
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Returns the bytes of journal data in memory for this transfer.
    pub(super) fn journal_bytes(&self) -> usize {
        if let Stage::Changes(records) = &self.stage { records.journal_bytes() } else { 0 }
    }

    /// Fills a message with the next records.
    pub(super) fn fill(&mut self, builder: &mut MessageBuilder<'_>) -> Result<(), RecordsError> {
        while !self.is_done() {
            let outcome = match &mut self.stage {
                Stage::Soa | Stage::FinalSoa | Stage::SoaBeforeChanges(_) => {
                    if builder.push_soa(&self.zone)? {
                        FillOutcome::NoMoreRecords
                    } else {
                        FillOutcome::MessageFull
                    }
                }
                Stage::Zone(records) => records.fill(builder)?,
                Stage::Changes(records) => records.fill(builder)?,
                Stage::Done => FillOutcome::NoMoreRecords,
            };
            if outcome == FillOutcome::MessageFull {
                return Ok(());
            }
            self.stage = match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::SoaBeforeChanges(changes) => {
                    Stage::Changes(ChangeRecords { changes, next: 0, reader: None, is_pending: false })
                }
                Stage::Zone(_) | Stage::Changes(_) => Stage::FinalSoa,
                Stage::Soa | Stage::FinalSoa | Stage::Done => Stage::Done,
            };
        }
        Ok(())
    }
}
