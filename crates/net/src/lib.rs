//! Sockets: UDP in batches, TCP and TLS. All socket calls are in this crate, and the few other
//! system calls that the standard library lacks.
//!
//! This crate transports opaque octets and does not parse them. A handler gets one message and
//! writes its response to a buffer, or returns a stream of messages. [`bind()`] opens the sockets
//! of one address. [`udp::serve`] answers datagrams (RFC 1035 section 4.2.1). [`tcp::serve`] and
//! [`tcp::serve_tls`] answer length-prefixed messages (RFC 7766, RFC 7858). [`event_loop::serve`]
//! drives a [`Machine`](machine::Machine), which answers later, after queries to servers.
//! [`client`] sends queries: in batches of datagrams, in single datagrams, and over connections.
//! [`namespace`] opens network namespaces and TUN devices for experiments.
//!
//! To add a transport, add a module that passes messages to a [`Handler`], as [`tcp`] does.
//! `answer()` does not change. The server needs a variant of [`Transport`] and a listener, and
//! the load generator of `nonesuch-lab` needs a worker.
//!
//! The crate is written for Linux: it uses `recvmmsg`, `sendmmsg` and the load balancing of
//! `SO_REUSEPORT` directly.

mod bind;
pub mod client;
mod error;
pub mod event_loop;
mod framing;
mod handler;
mod heartbeat;
pub mod machine;
mod map;
mod memory;
pub mod namespace;
mod sys;
pub mod tcp;
#[cfg(test)]
mod testing;
pub mod tls;
pub mod udp;

pub use bind::{Listeners, bind, bind_tcp, forbid_fragments, has_address};
pub use error::{ClientError, ClientPhase, NetError, TlsError, Transport};
pub use handler::{Answer, Handler, ResponseStream, StreamError, TlsSession};
pub use heartbeat::{Heartbeat, Heartbeats};
pub use map::{Map, keep_little_free_memory, release_free_memory};
pub use memory::memory_limit;
pub use sys::{
    BATCH, ChildUsage, Poll, ProcessSignal, ReceiveBatch, SendBatch, pin_current_thread, send_inherited,
    signal_process, wait_with_usage,
};
