//! The queries of clients that have no reply yet.

use super::slots::{Key, Slots};
use crate::machine::ClientToken;
use crate::sys::ReplyAddress;

/// Where a query came from.
pub(super) enum Origin {
    /// A datagram, received on the socket with this index.
    Datagram { socket: usize, address: ReplyAddress },
    /// The connection with this key. It may have ended since.
    Connection(Key),
}

/// The queries of clients that have no reply yet, by token. Their number is bounded.
pub(super) struct Queries(Slots<Origin>);

impl Queries {
    pub(super) fn new(max: usize) -> Self {
        Self(Slots::new(max))
    }

    /// Adds a query. Returns its token, or `None` if there is no room.
    pub(super) fn insert(&mut self, origin: Origin) -> Option<ClientToken> {
        self.0.insert(origin).map(|key| ClientToken(key.to_bits()))
    }

    /// Removes a query, which has a reply now; `None` if the token is unknown.
    pub(super) fn remove(&mut self, token: ClientToken) -> Option<Origin> {
        self.0.remove(Key::from_bits(token.0))
    }

    pub(super) fn has_room(&self) -> bool {
        self.0.has_room()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
