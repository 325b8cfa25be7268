//! The slowest tests: load for a minute, kills, large zones.

#[path = "../common/mod.rs"]
mod common;
mod crash;
mod large_zone;
#[path = "../../../authoritative/tests/secondaries/peers.rs"]
mod peers;
mod soak;
