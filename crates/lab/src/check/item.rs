//! What an item is.

use super::{Evidence, Outcome};

/// A functional check.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The stable number, such as "F-85".
    pub id: &'static str,
    /// What the server must do, as a sentence without a full stop.
    pub subject: &'static str,
    /// The rules: sections of RFCs or drafts, such as "RFC 6891 §6.2.3".
    pub rules: &'static [&'static str],
    /// How the item is tested, in one or two sentences.
    pub method: &'static str,
    /// Whether the item is part of the report of JPRS.
    pub is_jprs: bool,
    /// Whether the item needs a few queries only, and nothing that the quick profile omits.
    pub is_quick: bool,
}

/// A set of items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The items of the report of JPRS.
    Jprs,
    /// All items.
    #[default]
    Full,
    /// The items that need a few queries.
    Quick,
}

impl Profile {
    /// All profiles, with their names.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Jprs, "jprs"), (Self::Full, "full"), (Self::Quick, "quick")];

    /// Whether the profile has the item.
    #[must_use]
    pub const fn contains(self, item: &Item) -> bool {
        match self {
            Self::Jprs => item.is_jprs,
            Self::Full => true,
            Self::Quick => item.is_quick,
        }
    }

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(profile, _)| *profile == self).map_or("", |(_, name)| name)
    }
}

/// An item, and the function that checks it with a context of type `C`: the server, the zone, the tree.
#[derive(Debug)]
pub struct Row<C: 'static> {
    /// The item.
    pub item: Item,
    /// Checks the item. Every exchange that it makes is part of `Evidence`.
    pub run: fn(&mut C, &mut Evidence) -> Outcome,
}
