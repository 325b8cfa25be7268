//! Checks of a validating resolver. The check serves the zones that the resolver queries
//! (`zones`), so it sees both sides of the resolver.

mod anchors;
mod chain;
mod configuration;
mod context;
mod denial;
mod edns;
mod failures;
mod faults;
mod flags;
mod program;
mod rollover;
mod signatures;
mod sizes;
mod transport;

#[cfg(test)]
mod tests;

pub use configuration::{ResolverKind, UnknownResolver, configuration, delegation};
#[cfg(test)]
pub(super) use context::zone_options;
pub use context::{Place, ResolverCheck, ResolverOptions, StartError, Target};
pub use program::ProgramOptions;

pub(super) use faults::Findings;

use super::{Item, Row};

/// The items of `check resolver`, by topic.
static ITEMS: &[&[Row<ResolverCheck>]] = &[
    sizes::ITEMS,
    transport::ITEMS,
    edns::ITEMS,
    flags::ITEMS,
    chain::ITEMS,
    signatures::ITEMS,
    denial::ITEMS,
    anchors::ITEMS,
    failures::ITEMS,
];

/// An item of the full profile.
pub(super) const fn item(
    id: &'static str,
    subject: &'static str,
    rules: &'static [&'static str],
    method: &'static str,
) -> Item {
    Item { id, subject, rules, method, is_jprs: false, is_quick: false }
}

/// The item in the quick profile too.
pub(super) const fn quick(item: Item) -> Item {
    Item { is_quick: true, ..item }
}

/// An item of the report of JPRS.
pub(super) const fn jprs(item: Item) -> Item {
    Item { is_jprs: true, ..item }
}

/// All items.
pub fn items() -> impl Iterator<Item = &'static Row<ResolverCheck>> {
    ITEMS.iter().copied().flatten()
}
