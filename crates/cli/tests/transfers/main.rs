//! Transfers between servers, catalogs and secondary zones.

mod catalogs;
#[path = "../common/mod.rs"]
mod common;
mod expire;
mod notified;
mod secondary_zones;
mod transfer_places;
mod transfers_in;
mod transfers_out;
mod unreachable;
mod xot;
