//! RDATA of all record types, from one table. Each type is a list of fields. Reading, writing,
//! checks of the wire form, canonical form (RFC 4034 §6.2, RFC 6840 §5.1) and name compression (RFC
//! 3597 §4) all follow that list.
//!
//! The RDATA of types that are not in the table are opaque octets in the generic form of RFC 3597
//! §5. The generic form is also accepted for types in the table.
//!
//! To add a type, add a row to [`TYPES`]. To add a kind of field, add a variant of `Field`, and a
//! file in `special/` if a table row cannot describe the format of the field.
//!
//! This crate does not use the library `domain`, for two reasons:
//!
//! - Signing and serving need the fields of each type for canonical form, compression and checks.
//!   With one table for these, reading and writing need little more code, and two descriptions of a
//!   type cannot contradict each other.
//! - RFC 4034 §6.2 lists types whose embedded names are lower-cased in canonical form. Of these,
//!   `domain` 0.12.3 treats AFSDB, RT, PX, KX, NXT, A6 and SIG as opaque.

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
pub use fields::{NameField, has_compressed_names, is_well_formed, measure_field, names};
pub use input::{RdataError, RdataFault};
pub use read::push_from_tokens;
pub use table::{TYPES, TypeEntry, entry, entry_by_mnemonic};
pub use write::{push_comment, push_text};

#[cfg(test)]
mod tests;
