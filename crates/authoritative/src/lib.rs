//! The authoritative server: responses to queries, zone transfers, and the service that loads and
//! updates zones.
//!
//! [`Responder`] turns each received message into a response. It finds the zone and calls
//! [`answer()`], a pure function of a zone image and a query. [`server`] runs responders on sockets
//! and answers for all [`zones`]. The server serves only [`Published`] zones, which are built from
//! verified zones.
//!
//! # Answering a query
//!
//! ```
//! # let text = b"$ORIGIN example.\n@ 3600 SOA ns h 1 7200 3600 1209600 3600\n@ 3600 NS ns\nns 3600 A 192.0.2.1\n";
//! # let zone = nonesuch_zone::read::read_text(text, "example.zone".as_ref(), None)?.contents;
//! use nonesuch_authoritative::{Request, answer};
//! use nonesuch_proto::message::{Message, flags, push_query};
//! use nonesuch_proto::{MAX_NAME, Rtype};
//! use nonesuch_server::query::Query;
//! use nonesuch_net::Transport;
//! use nonesuch_server::trailer::Trailer;
//! use nonesuch_zone::Image;
//!
//! let image = Image::compile(&zone)?;
//! let (mut octets, mut response) = (Vec::new(), Vec::new());
//! push_query(&"ns.example.".parse()?, Rtype::A, 1, flags::RD, &mut octets);
//! let query = Query::parse(&octets).expect("a query");
//! let mut name_buffer = [0; MAX_NAME];
//! let request = Request::new(&query, &mut name_buffer, Transport::Udp, &Trailer::PLAIN);
//! answer(&image, &request, &mut response);
//! assert_eq!(Message::parse(&response)?.records[0].rdata, [192, 0, 2, 1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod answer;
pub mod catalog;
pub mod chaos;
mod image_file;
mod online;
mod published;
mod responder;
mod response;
pub mod server;
pub mod service;
mod settings;
pub mod transfer;
pub mod zones;

pub use answer::{AnswerInfo, Request, answer};
pub use image_file::{OpenImageError, open_image};
pub use published::{Published, UnusableImage};
pub use responder::{NotifySink, Responder, ServerContext};
pub use settings::AnswerSettings;

#[cfg(test)]
mod tests;
