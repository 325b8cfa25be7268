//! Replies to datagrams at any time after they were received.

use std::os::fd::BorrowedFd;
use std::ptr;

use libc::{iovec, mmsghdr, socklen_t};

use super::{BATCH, Control, EMPTY_VECTOR, PeerAddress, ReceiveBatch, SendOutcome, empty_header, send_each};

/// The sender of a datagram, and the local address to which it was sent, in the kernel's format.
#[derive(Clone, Copy)]
pub(crate) struct ReplyAddress {
    peer: PeerAddress,
    peer_length: socklen_t,
    control: Control,
    /// Octets of `control`; 0 if the socket is bound to one address.
    control_length: usize,
}

impl ReceiveBatch {
    /// Returns the address for a reply to datagram `index` of the last call.
    pub(crate) fn reply_address(&mut self, index: usize) -> Option<ReplyAddress> {
        let control_length = self.prepare_reply_control(index);
        Some(ReplyAddress {
            peer: *self.peers.get(index)?,
            peer_length: self.headers.get(index)?.msg_hdr.msg_namelen,
            control: self.controls.get(index).copied().unwrap_or(Control::EMPTY),
            control_length,
        })
    }
}

/// Sends replies in batches, with headers that are allocated once.
pub(crate) struct ReplySender {
    vectors: Box<[iovec]>,
    headers: Box<[mmsghdr]>,
}

// SAFETY: the pointers in the headers and vectors are written before each call, and are not
// dereferenced between calls.
unsafe impl Send for ReplySender {}

impl ReplySender {
    pub(crate) fn new() -> Self {
        Self { vectors: vec![EMPTY_VECTOR; BATCH].into(), headers: vec![empty_header(); BATCH].into() }
    }

    /// Sends `replies`, in as few calls as possible. A reply that the system does not send is
    /// skipped.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        replies: &mut [(ReplyAddress, Vec<u8>)],
    ) -> SendOutcome {
        let mut outcome = SendOutcome::default();
        for batch in replies.chunks_mut(BATCH) {
            self.prepare(batch);
            let headers = &mut self.headers[..batch.len()];
            // SAFETY: `prepare` has pointed each header of the slice to an element of `batch`,
            // which owns the memory with its true lengths, and is borrowed during the whole call.
            outcome += unsafe { send_each(socket, headers) };
        }
        outcome
    }

    /// Points a header to each reply, its receiver and its control message.
    fn prepare(&mut self, batch: &mut [(ReplyAddress, Vec<u8>)]) {
        for ((address, reply), (vector, header)) in
            batch.iter_mut().zip(self.vectors.iter_mut().zip(&mut self.headers))
        {
            // The kernel only reads the data to send; the interface requires a mutable pointer.
            *vector = iovec { iov_base: reply.as_ptr().cast_mut().cast(), iov_len: reply.len() };
            let message = &mut header.msg_hdr;
            message.msg_name = (&raw mut address.peer).cast();
            message.msg_namelen = address.peer_length;
            message.msg_iov = vector;
            message.msg_iovlen = 1;
            message.msg_controllen = address.control_length as _;
            message.msg_control = match address.control_length {
                0 => ptr::null_mut(),
                _ => (&raw mut address.control).cast(),
            };
        }
    }
}
