//! The messages of a transfer. Each is generated when the client has read the previous ones (RFC
//! 5936 §2.2).

use super::records::{MAX_OCTETS, MessageBuilder, RecordsError, TransferRecords};
use super::status::TransferPermit;
use nonesuch_net::{ResponseStream, StreamError};
use nonesuch_proto::message::{Header, flags};
use nonesuch_server::compress::Compressor;
use nonesuch_server::tsig::ResponseSigner;

/// Size up to which a message is filled, in octets. It equals the range of compression pointers;
/// names beyond this offset cannot be used for compression.
pub(super) const TARGET_OCTETS: usize = 16_384;

/// Properties that all messages of a response have.
pub(super) struct MessageLayout {
    pub(super) id: u16,
    /// The RD flag of the request.
    pub(super) flags: u16,
    /// The question section, for the first message.
    pub(super) question: Vec<u8>,
    /// The OPT record of the first message.
    pub(super) opt: Vec<u8>,
    pub(super) signer: Option<ResponseSigner>,
    /// Returns the time, in seconds since 1970.
    pub(super) clock: fn() -> u64,
    /// Size up to which a message is filled, in octets.
    pub(super) target_octets: usize,
    /// Maximum size of a message with only one record, in octets.
    pub(super) max_octets: usize,
}

/// The response to AXFR or IXFR, as a stream of messages.
pub struct TransferStream {
    layout: MessageLayout,
    records: TransferRecords,
    compressor: Compressor,
    is_first: bool,
    permit: Option<TransferPermit>,
}

impl TransferStream {
    pub(super) fn new(
        layout: MessageLayout,
        records: TransferRecords,
        permit: Option<TransferPermit>,
    ) -> Self {
        Self { layout, records, compressor: Compressor::new(), is_first: true, permit }
    }

    /// Writes the complete response as a single message. Returns `false` if it does not fit or the
    /// journal cannot be read.
    pub(super) fn write_single(&mut self, message: &mut Vec<u8>) -> bool {
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
            if let Some(permit) = &mut self.permit {
                permit.fail(error);
            }
            StreamError
        })
    }

    /// Writes the next message as [`next`](Self::next) does, but returns the reason of an error.
    pub(super) fn write_next(&mut self, message: &mut Vec<u8>) -> Result<bool, RecordsError> {
        message.clear();
        if self.records.is_done() {
            if let Some(permit) = &mut self.permit {
                permit.complete();
            }
            return Ok(false);
        }
        self.write(message).map(|()| true)
    }

    /// Writes one message with the next records.
    fn write(&mut self, message: &mut Vec<u8>) -> Result<(), RecordsError> {
        let layout = &mut self.layout;
        // RFC 5936 §2.2.1: only the first message needs the question. §2.2.5: the same applies to
        // OPT.
        let (question, opt) =
            if self.is_first { (&layout.question[..], &layout.opt[..]) } else { (&[][..], &[][..]) };
        let overhead = opt.len() + layout.signer.as_ref().map_or(0, ResponseSigner::octets);
        let mut header =
            Header { id: layout.id, flags: flags::QR | flags::AA | layout.flags, counts: [0; 4] };
        message.extend_from_slice(&header.to_octets());
        message.extend_from_slice(question);
        self.compressor.clear();
        let mut builder = MessageBuilder {
            message,
            compressor: &mut self.compressor,
            target_octets: layout.target_octets.saturating_sub(overhead),
            max_octets: layout.max_octets.min(MAX_OCTETS).saturating_sub(overhead),
            record_count: 0,
        };
        self.records.fill(&mut builder)?;
        let count = builder.record_count;
        message.extend_from_slice(opt);
        header.counts = [u16::from(!question.is_empty()), count, 0, u16::from(!opt.is_empty())];
        let header_octets = header.to_octets();
        message[..header_octets.len()].copy_from_slice(&header_octets);
        if let Some(signer) = &mut layout.signer {
            signer.sign(message, (layout.clock)());
        }
        self.is_first = false;
        if let Some(permit) = &self.permit {
            permit.count_message(message.len(), count);
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
        f.debug_struct("TransferStream").field("permit", &self.permit).finish_non_exhaustive()
    }
}
