//! Checks of DNS proxies, as in routers (RFC 5625). The check is the client of the proxy and the resolver
//! behind it, so it compares each message before and after the proxy.

mod cache;
mod context;
mod opaque;
mod path;
mod sizes;
mod start;
mod upstream;

#[cfg(test)]
mod tests;

pub use context::ProxyCheck;
pub use start::{ProxyCheckError, ProxyCheckOptions, ProxyProgram, ProxyTarget};

use super::Row;

/// The items of `check proxy`, by topic.
static ITEMS: &[&[Row<ProxyCheck>]] =
    &[opaque::CASES, sizes::CASES, cache::CASES, opaque::ITEMS, sizes::ITEMS, cache::ITEMS, path::ITEMS];

/// All items.
pub fn items() -> impl Iterator<Item = &'static Row<ProxyCheck>> {
    ITEMS.iter().copied().flatten()
}
