//! The UDP sockets for clients: queries are received in batches, and the replies of a turn are sent
//! in batches.

use super::context::Context;
use super::queries::{Origin, Queries};
use crate::error::Transport;
use crate::machine::{ClientQuery, Event, Machine, Now};
use crate::sys::{BATCH, ReceiveBatch, ReplyAddress, ReplySender, Wait};
use crate::udp::{ERROR_PAUSE, QUERY_MAX};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::thread;

/// Maximum number of datagrams of clients in a turn.
const DATAGRAMS_PER_TURN: usize = BATCH;

/// The UDP sockets for clients.
pub(super) struct ClientSockets {
    sockets: Vec<ClientSocket>,
    /// Index of the socket that is first in the next turn.
    first: usize,
    received: ReceiveBatch,
    sender: ReplySender,
}

struct ClientSocket {
    socket: UdpSocket,
    /// Whether it may have something to receive.
    is_ready: bool,
    /// The replies of this turn.
    replies: Vec<(ReplyAddress, Vec<u8>)>,
}

impl ClientSockets {
    /// Takes over non-blocking sockets.
    pub(super) fn new(sockets: Vec<UdpSocket>) -> Self {
        let sockets = sockets.into_iter();
        Self {
            sockets: sockets
                .map(|socket| ClientSocket { socket, is_ready: false, replies: Vec::new() })
                .collect(),
            first: 0,
            // Only sockets that are bound to all addresses report the local address.
            received: ReceiveBatch::with_peers(BATCH, QUERY_MAX, true),
            sender: ReplySender::new(),
        }
    }

    pub(super) fn mark_ready(&mut self, index: usize) {
        if let Some(socket) = self.sockets.get_mut(index) {
            socket.is_ready = true;
        }
    }

    /// Receives from all sockets in this turn, whether or not the system has reported them.
    pub(super) fn mark_all_ready(&mut self) {
        self.sockets.iter_mut().for_each(|socket| socket.is_ready = true);
    }

    /// Receives no further queries. Replies are still sent.
    pub(super) fn stop_receiving(&mut self, context: &Context) {
        for socket in &mut self.sockets {
            socket.is_ready = false;
            // If this fails, the socket was not watched.
            let _ = context.epoll.remove(&socket.socket);
        }
    }

    /// Passes the waiting datagrams of all sockets to the machine, up to the limit for a turn. The
    /// sockets take turns to be first, so that a flood at one does not silence the others.
    pub(super) fn receive<M: Machine>(
        &mut self,
        queries: &mut Queries,
        context: &mut Context,
        machine: &mut M,
        now: Now,
    ) {
        let (first, count) = (self.first, self.sockets.len());
        let mut left = DATAGRAMS_PER_TURN;
        for index in (0..count).map(|offset| (first + offset) % count) {
            let Some(socket) = self.sockets.get_mut(index).filter(|socket| socket.is_ready) else { continue };
            socket.is_ready = false;
            if left == 0 {
                // The next wait reports the socket again.
                continue;
            }
            let received = receive(&socket.socket, left, &mut self.received, context);
            left -= received;
            for datagram in 0..received {
                pass_query(index, datagram, &mut self.received, queries, context, machine, now);
            }
        }
        self.first = (first + 1) % count.max(1);
    }

    /// Adds a reply to those that [`send`](Self::send) sends.
    pub(super) fn push_reply(&mut self, socket: usize, address: ReplyAddress, reply: Vec<u8>) {
        if let Some(socket) = self.sockets.get_mut(socket) {
            socket.replies.push((address, reply));
        }
    }

    /// Sends the replies of this turn. A reply that the system does not take is lost, as datagrams
    /// can be.
    pub(super) fn send(&mut self, context: &mut Context) {
        for ClientSocket { socket, replies, .. } in &mut self.sockets {
            if !replies.is_empty() {
                context.counters.udp.count_send(self.sender.send(socket.as_fd(), replies));
                replies.clear();
                replies.shrink_to(2 * BATCH);
            }
        }
    }
}

/// Receives at most `limit` datagrams. Returns their number.
fn receive(socket: &UdpSocket, limit: usize, received: &mut ReceiveBatch, context: &mut Context) -> usize {
    let counters = &mut context.counters.udp;
    counters.system_calls += 1;
    match received.receive_at_most(limit, socket.as_fd(), Wait::No) {
        Ok(datagrams) => {
            counters.datagrams_in += datagrams as u64;
            datagrams
        }
        Err(error) => {
            if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                counters.receive_errors += 1;
                // Without the pause, a permanent error would use a whole CPU.
                thread::sleep(ERROR_PAUSE);
            }
            0
        }
    }
}

/// Passes a received datagram to the machine. A datagram that was too long, or for which there is
/// no room, is discarded.
fn pass_query<M: Machine>(
    socket: usize,
    index: usize,
    received: &mut ReceiveBatch,
    queries: &mut Queries,
    context: &mut Context,
    machine: &mut M,
    now: Now,
) {
    let address = received.reply_address(index);
    let (Some(address), Some((message, client))) = (address, received.datagram(index)) else {
        context.counters.udp.oversized += 1;
        return;
    };
    let Some(token) = queries.insert(Origin::Datagram { socket, address }) else {
        context.counters.discarded_queries += 1;
        return;
    };
    let query = ClientQuery { token, client, transport: Transport::Udp, message };
    machine.handle_event(Event::Query(query), now);
}
