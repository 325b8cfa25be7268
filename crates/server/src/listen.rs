//! Checks of the addresses that a server listens on.

use nonesuch_net::has_address;
use std::net::SocketAddr;

/// Logs the addresses that no interface has. They are bound nevertheless, because at the start of a
/// machine, an interface may get its address late.
pub fn warn_of_missing_addresses<'a>(addresses: impl IntoIterator<Item = &'a SocketAddr>) {
    for address in addresses.into_iter().filter(|address| !has_address(address.ip())) {
        tracing::warn!(name: "address-missing", %address, "{address}: no interface has this address: the server starts answering once an interface has it");
    }
}
