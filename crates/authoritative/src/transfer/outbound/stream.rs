//! The messages of a transfer. Each is generated when the client has read the previous ones (RFC
//! 5936 §2.2).

use super::compress::Compressor;
use super::records::{MAX_OCTETS, Page, RecordsError, TransferRecords};
use super::status::TransferPermit;
use nonesuch_net::{ResponseStream, StreamError};
use nonesuch_proto::message::{Header, flags};
use nonesuch_server::tsig::ResponseSigner;

/// Target size of messages, in octets. It equals the range of compression pointers; names beyond
/// this offset cannot be used for compression.
pub(super) const TARGET_OCTETS: usize = 16_384;

/// Properties of all messages of a response, and their sizes.
pub(super) struct Frame {
    pub(super) id: u16,
    /// Flag RD of the request.
    pub(super) flags: u16,
    pub(super) question: Vec<u8>,
    /// The OPT record of the first message.
    pub(super) opt: Vec<u8>,
    pub(super) signer: Option<ResponseSigner>,
    /// Returns the time, in seconds since 1970.
    pub(super) clock: fn() -> u64,
    /// Target size of a message, in octets.
    pub(super) target_octets: usize,
    /// Maximum size of a message, in octets.
    pub(super) max_octets: usize,
}

/// The response to AXFR or IXFR, as a stream of messages.
pub struct TransferStream {
    frame: Frame,
    records: TransferRecords,
    names: Compressor,
    is_first: bool,
    active: Option<TransferPermit>,
}

impl TransferStream {
    pub(super) fn new(frame: Frame, records: TransferRecords, active: Option<TransferPermit>) -> Self {
        Self { frame, records, names: Compressor::new(), is_first: true, active }
    }

    /// Writes the complete response as one message. Returns `false` if it does not fit or the
    /// journal cannot be read.
    pub(super) fn write_alone(&mut self, message: &mut Vec<u8>) -> bool {
        message.clear();
        self.write(message).is_ok() && self.records.is_done()
    }

    /// Returns the bytes of journal data in memory for this transfer. Does not include the zone,
    /// which is shared with the threads that answer queries.
    #[must_use]
    pub fn journal_bytes(&self) -> usize {
        self.records.journal_bytes()
    }

    /// Writes the next message to `message`. Returns `false` if there are no more messages.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read further, or if a record is too long for a
    /// message. The transfer is then incomplete, and the caller must close the connection.
    pub fn next(&mut self, message: &mut Vec<u8>) -> Result<bool, StreamError> {
        self.write_next(message).map_err(|error| {
            if let Some(active) = &mut self.active {
                active.fail(error);
            }
            StreamError
        })
    }

    pub(super) fn write_next(&mut self, message: &mut Vec<u8>) -> Result<bool, RecordsError> {
        message.clear();
        if self.records.is_done() {
            if let Some(active) = &mut self.active {
                active.complete();
            }
            return Ok(false);
        }
        self.write(message).map(|()| true)
    }

    fn write(&mut self, message: &mut Vec<u8>) -> Result<(), RecordsError> {
        let frame = &mut self.frame;
        // RFC 5936 §2.2.1: only the first message needs the question. §2.2.5: the same applies to
        // OPT.
        let (question, opt) =
            if self.is_first { (&frame.question[..], &frame.opt[..]) } else { (&[][..], &[][..]) };
        let overhead = opt.len() + frame.signer.as_ref().map_or(0, ResponseSigner::octets);
        let mut header = Header { id: frame.id, flags: flags::QR | flags::AA | frame.flags, counts: [0; 4] };
        message.extend_from_slice(&header.to_octets());
        message.extend_from_slice(question);
        self.names.clear();
        let mut page = Page {
            message,
            names: &mut self.names,
            target_octets: frame.target_octets.saturating_sub(overhead),
            max_octets: frame.max_octets.min(MAX_OCTETS).saturating_sub(overhead),
            count: 0,
        };
        self.records.fill(&mut page)?;
        let count = page.count;
        message.extend_from_slice(opt);
        header.counts = [u16::from(!question.is_empty()), count, 0, u16::from(!opt.is_empty())];
        let head = header.to_octets();
        message[..head.len()].copy_from_slice(&head);
        if let Some(signer) = &mut frame.signer {
            signer.sign(message, (frame.clock)());
        }
        self.is_first = false;
        if let Some(active) = &self.active {
            active.count(message.len(), count);
        }
        Ok(())
    }
}

impl ResponseStream for TransferStream {
    fn next(&mut self, message: &mut Vec<u8>) -> Result<bool, StreamError> {
        Self::next(self, message)
    }
}

impl std::fmt::Debug for TransferStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransferStream").field("active", &self.active).finish_non_exhaustive()
    }
}
