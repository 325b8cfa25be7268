//! The exchanges with servers that have not ended, over both transports.

use super::context::Context;
use super::slots::Key;
use super::upstream_connections::{TcpExchange, UpstreamConnections};
use super::upstream_sockets::UpstreamSockets;
use crate::error::Transport;
use crate::machine::{Event, ExchangeId, Machine, Now, SendFailure, Upstream};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

/// Where an exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Socket(Key),
    Connection(TcpExchange),
    /// It has failed; the machine was not told yet.
    Failed,
}

/// The exchanges that have not ended. An exchange ends when the machine closes it, or when the
/// machine is told that it failed. The limits of sockets and connections bound their number.
pub(super) struct Exchanges {
    pub(super) sockets: UpstreamSockets,
    pub(super) connections: UpstreamConnections,
    places: HashMap<ExchangeId, Place>,
}

impl Exchanges {
    pub(super) fn new(sockets: UpstreamSockets, connections: UpstreamConnections) -> Self {
        Self { sockets, connections, places: HashMap::new() }
    }

    /// Begins an exchange. If this fails, the machine is told in the next turn.
    pub(super) fn send(&mut self, upstream: &Upstream, context: &mut Context, now: Instant) {
        let Upstream { exchange, server, transport, message } = upstream;
        // A machine does not use an identifier twice. If it does, the first exchange ends.
        self.close(*exchange, context, now);
        let place = match transport {
            // It would reach a host over IPv4, past what the machine decides about IPv4 addresses.
            _ if is_ipv4_mapped(*server) => Err(SendFailure::Unreachable),
            Transport::Udp => self.sockets.send(*exchange, *server, message, context, now).map(Place::Socket),
            Transport::Tcp => {
                self.connections.send(*exchange, *server, message, context, now).map(Place::Connection)
            }
            // TLS to servers is not implemented.
            Transport::Tls => Err(SendFailure::Local),
        };
        let place = place.unwrap_or_else(|failure| {
            context.fail(*exchange, failure);
            Place::Failed
        });
        self.places.insert(*exchange, place);
    }

    /// Ends an exchange.
    pub(super) fn close(&mut self, exchange: ExchangeId, context: &mut Context, now: Instant) {
        match self.places.remove(&exchange) {
            Some(Place::Socket(key)) => self.sockets.close(key, context, now),
            Some(Place::Connection(place)) => self.connections.end_exchange(place, context, now),
            Some(Place::Failed) | None => {}
        }
    }

    /// Tells the machine which exchanges have failed since the last call. An exchange that the
    /// machine has closed meanwhile is not reported.
    pub(super) fn report_failures<M: Machine>(&mut self, context: &mut Context, machine: &mut M, now: Now) {
        for (exchange, failure) in std::mem::take(&mut context.failures) {
            if self.places.remove(&exchange).is_some() {
                machine.handle_event(Event::Failed(exchange, failure), now);
            }
        }
    }
}

fn is_ipv4_mapped(server: SocketAddr) -> bool {
    matches!(server, SocketAddr::V6(address) if address.ip().to_ipv4_mapped().is_some())
}
