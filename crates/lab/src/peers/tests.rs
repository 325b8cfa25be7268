//! Tests with every installed peer.

mod authoritative;
mod faults;
mod fixture;
mod resolvers;
