//! Sockets: UDP in batches, TCP. The one home of socket calls, and of the few other system calls that the standard
//! library lacks.
//!
//! This crate moves opaque octets and knows nothing of their meaning: a handler is given one
//! message and leaves its answer in a buffer. [`bind`] opens the sockets of one address,
//! [`udp::serve`] answers datagrams (RFC 1035 section 4.2.1), [`tcp::serve`] answers
//! length-prefixed messages (RFC 7766), and [`client`] sends and receives datagrams in batches.
//!
//! It is written for Linux: `recvmmsg`, `sendmmsg` and `SO_REUSEPORT` with spreading are used directly.

mod bind;
pub mod client;
mod error;
mod handler;
mod map;
mod sys;
pub mod tcp;
pub mod udp;

pub use bind::{Listeners, bind};
pub use error::{NetError, Transport};
pub use handler::{Answer, Handler};
pub use map::{Map, release_free_memory};
pub use sys::{BATCH, ChildUsage, ReceiveBatch, SendBatch, pin_current_thread, wait_with_usage};
