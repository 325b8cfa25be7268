//! RDATA by one table: each type is a list of fields, and reading, writing, checking wire form, canonical form
//! (RFC 4034 §6.2, RFC 6840 §5.1) and name compression (RFC 3597 §4) all follow that list.
//!
//! Types that the table does not hold are opaque octets in the generic form of RFC 3597 §5; types that it
//! holds are accepted in the generic form too.
//!
//! To add a type, add a row to [`TYPES`]; to add a kind of field, a variant of `Field`, and a file in `special/` where
//! a table row cannot describe its form.
//!
//! The library `domain` is not used. Signing and serving need the fields of each type for canonical form, for
//! compression and for checking; with one table for these, reading and writing cost little more, and two descriptions of a
//! type cannot contradict each other. RFC 4034 §6.2 also names types whose embedded names are lower-cased in canonical
//! form: `domain` 0.12.3 treats AFSDB, RT, PX, KX, NXT, A6 and SIG among them as opaque.

mod canonical;
mod field;
mod fields;
mod input;
mod output;
mod read;
mod special;
mod table;
mod write;

pub use canonical::{cmp_canonical, push_canonical};
pub use field::Field;
pub use fields::{NameField, is_well_formed, measure_field, names};
pub use input::{RdataError, RdataFault};
pub use read::push_from_tokens;
pub use table::{TYPES, TypeEntry, entry, entry_by_mnemonic};
pub use write::{push_comment, push_text};

#[cfg(test)]
mod tests;
