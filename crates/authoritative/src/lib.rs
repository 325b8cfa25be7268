//! The authoritative server: from query to response.
//!
//! [`answer()`] is a pure function of an image and a query; where answers are signed or proven when asked,
//! [`answer_published()`] takes a workshop and the time too. [`server`] puts them behind sockets. What is served is a
//! [`Published`] zone, and that is only made of a verified one.
#![forbid(unsafe_code)]

mod answer;
mod online;
mod published;
mod query;
mod response;
pub mod server;

pub use answer::{Outcome, answer, answer_published, fail};
pub use published::{Published, Unverified};
pub use query::{Malformed, Query};
pub use response::Transport;

#[cfg(test)]
mod tests;
