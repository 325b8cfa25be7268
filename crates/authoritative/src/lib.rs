//! The authoritative server: from query to response, transfers, and the zones that it serves.
//!
//! [`answer()`] is a pure function of an image and a query; where answers are signed or proven when asked,
//! [`answer_published()`] takes a workshop and the time too. [`server`] puts them behind sockets, for all [`zones`]; what
//! happens to a message on its way is in `responder`. What is served is a [`Published`] zone, and that is only made of a
//! verified one.
#![forbid(unsafe_code)]

pub mod acl;
mod answer;
pub mod catalog;
pub mod chaos;
mod clock;
pub mod cookies;
pub mod extended_errors;
mod image_file;
pub mod limits;
pub mod notify;
mod online;
mod published;
mod query;
pub mod reply_options;
mod responder;
mod response;
pub mod secondary;
pub mod server;
pub mod service;
mod settings;
pub mod statistics;
pub mod tap;
pub mod transfer;
pub mod tsig;
pub mod zones;

pub use answer::{Outcome, answer, answer_published};
pub use clock::seconds_now;
pub use image_file::{OpenImageError, open_image};
pub use published::{Published, Unverified};
pub use query::{Malformed, Query};
pub use responder::{Responder, Shared, TakeNotify};
pub use response::Transport;
pub use settings::Settings;

#[cfg(test)]
mod tests;
