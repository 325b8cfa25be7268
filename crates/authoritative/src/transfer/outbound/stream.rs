//! The messages of a transfer, made one by one as the peer takes them (RFC 5936 §2.2).

use super::compress::Compressor;
use super::records::{LONGEST, Page, RecordsError, TransferRecords};
use super::status::TransferPermit;
use nonesuch_net::{ResponseStream, StreamError};
use nonesuch_proto::message::{Header, flags};
use nonesuch_server::tsig::ResponseSigner;

/// Octets that messages are filled to: as far as pointers of compression reach. Longer messages have more names written out.
pub(super) const MESSAGE: usize = 16_384;

/// What all messages of an answer have in common, and how long they are to be.
pub(super) struct Frame {
    pub(super) id: u16,
    /// Opcode and RD of the request.
    pub(super) flags: u16,
    pub(super) question: Vec<u8>,
    /// The OPT record of the first message.
    pub(super) opt: Vec<u8>,
    pub(super) signer: Option<ResponseSigner>,
    /// The time, in seconds since 1970.
    pub(super) clock: fn() -> u64,
    /// Octets that messages are to have.
    pub(super) wanted: usize,
    /// Octets that they may have.
    pub(super) most: usize,
}

/// The answer to AXFR or IXFR as a stream of messages.
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

    /// Writes the whole answer as one message; false where it does not fit, or the journal cannot be read.
    pub(super) fn write_alone(&mut self, message: &mut Vec<u8>) -> bool {
        message.clear();
        self.write(message).is_ok() && self.records.is_done()
    }

    /// Octets of changes that are held to be sent. The zone itself is shared with those who answer from it.
    #[must_use]
    pub fn held(&self) -> usize {
        self.records.held()
    }

    /// Writes the next message into `message`; false where there are no more.
    ///
    /// # Errors
    /// Where the journal cannot be read further, or a record is too long for a message: what was sent is not the whole, and
    /// the connection is to be closed.
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
        // RFC 5936 §2.2.1: the question may stand in the first message alone; §2.2.5: so may OPT.
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
            wanted: frame.wanted.saturating_sub(overhead),
            most: frame.most.min(LONGEST).saturating_sub(overhead),
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
