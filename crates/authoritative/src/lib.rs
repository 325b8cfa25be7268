//! The authoritative server: from query to response.
//!
//! [`answer()`] is a pure function of an image and a query; [`server`] puts it behind sockets. What is served is
//! a [`Published`] zone, and that is only made of a verified one.
#![forbid(unsafe_code)]

mod answer;
mod published;
mod query;
mod response;
pub mod server;

pub use answer::answer;
pub use published::{Published, Unverified};
pub use query::{Malformed, Query};
pub use response::Transport;

#[cfg(test)]
mod tests;
