//! RDATA by one table: each type is a list of fields, and reading, writing, checking, canonical form and
//! name compression all follow that list.
//!
//! Types that the table does not hold are opaque octets in the generic form of RFC 3597 §5; types that it
//! holds are accepted in the generic form too.

mod canonical;
mod fields;
mod read;
mod special;
mod table;
mod write;

pub use canonical::{cmp_canonical, push_canonical};
pub use fields::{Field, NameField, fields_of, is_well_formed, measure_field, names};
pub use read::{RdataError, RdataFault, push_from_tokens};
pub use table::{TYPES, TypeEntry, entry, entry_by_mnemonic};
pub use write::{push_comment, push_text};

#[cfg(test)]
mod tests;
