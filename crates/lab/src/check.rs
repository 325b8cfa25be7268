//! Functional checks of resolvers, authoritative servers, DNS proxies and delegations.
//!
//! Each check is an item with a stable number. Items of the verification report of JPRS keep the numbers
//! of the report ("F-85"); the others have numbers of this project ("XF-001"). An item sends queries,
//! compares the responses with the rule of an RFC, and ends in bounded time whatever the server does. Its
//! result has every message that was sent and received.

pub mod authoritative;
mod authority;
mod chain;
mod client;
mod exchange;
mod item;
mod output;
pub mod proxy;
pub mod resolver;
mod result;
mod run;
mod signature;
mod signing;
mod texts;
pub mod zone;
mod zones;

pub use crate::query::QueryFault;
pub use authority::AuthorityError;
pub use chain::{ChainStep, Picture, PictureError, Verdict, chain_picture};
pub use client::{CheckClient, Query, Response};
pub use exchange::{Evidence, Exchange, Transport};
pub use item::{Item, Profile, Row};
pub use output::list_text;
pub use result::{CheckReport, ItemResult, Outcome, Summary};
pub use run::{Selection, UnknownItem, run_rows};
