//! Sockets: UDP in batches, TCP, TLS. The one home of socket calls, and of the few other system calls that the standard
//! library lacks.
//!
//! This crate moves opaque octets and knows nothing of their meaning: a handler is given one
//! message and leaves its answer in a buffer, or gives a stream of messages. [`bind()`] opens the sockets of one
//! address, [`udp::serve`] answers datagrams (RFC 1035 section 4.2.1), [`tcp::serve`] and
//! [`tcp::serve_tls`] answer length-prefixed messages (RFC 7766, RFC 7858), and [`client`] asks: in batches of
//! datagrams, by single ones, and over connections.
//!
//! To add a transport, add a module that hands messages to a [`Handler`], as [`tcp`] does. `answer()` does not change: the
//! server needs a variant of its `Transport` and a listener, the load generator of `nonesuch-lab` a worker.
//!
//! It is written for Linux: `recvmmsg`, `sendmmsg` and `SO_REUSEPORT` with spreading are used directly.

mod bind;
pub mod client;
mod error;
mod handler;
mod heartbeat;
mod map;
mod memory;
mod sys;
pub mod tcp;
#[cfg(test)]
mod testing;
pub mod tls;
pub mod udp;

pub use bind::{Listeners, bind, bind_tcp, has_address};
pub use error::{ClientError, ClientPhase, NetError, TlsError, Transport};
pub use handler::{Answer, Handler, ResponseStream, StreamError, TlsSession};
pub use heartbeat::{Heartbeat, Heartbeats};
pub use map::{Map, keep_little_free_memory, release_free_memory};
pub use memory::memory_limit;
pub use sys::{
    BATCH, ChildUsage, ReceiveBatch, SendBatch, pin_current_thread, send_inherited, wait_with_usage,
};
