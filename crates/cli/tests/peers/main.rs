//! Tests with other signers, servers and validators.

#[path = "../common/mod.rs"]
mod common;
mod differential;
mod grid;
mod interop_signing;
mod interop_validation;
mod judges;
mod judges_online;
mod nsec5_checker;
mod paper;
mod peers_online;
mod query_peers;
mod resolvers;
mod root_zones;
mod trees;
mod validators;
