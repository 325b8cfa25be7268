//! Zone files, immutable zone contents, and the image that answers are made from.
//!
//! [`read`] turns a zone file into [`Contents`]; signing makes new contents from them; [`Image`] is what the
//! server answers from. Contents and images never change once built.
#![forbid(unsafe_code)]

mod base;
mod builder;
pub mod change;
pub mod compiled;
mod contents;
pub mod image;
pub mod journal;
mod lexer;
pub mod load;
pub mod ordered;
pub mod read;
mod regular;
mod rules;
mod size;
mod splice;
pub mod standing;
pub mod write;
pub mod zonemd;

pub use base::{Base, Found};
pub use builder::{Builder, Place, Warning, ZoneError, ZoneFault};
pub use change::ChangeSet;
pub use compiled::{CompiledError, StoredZone, Verification};
pub use contents::{Contents, Node, Rrset, Run, Soa};
pub use image::{Image, ImageFile, ImageFileError};
pub use journal::Journal;
pub use load::{LoadError, Loaded, compare_signed, load, load_octets, load_regular, open_compiled};
pub use read::{ReadError, ReadFault, Reading};
pub use regular::open_regular;
pub use size::{MAX_MESSAGE, check_rrset};
pub use splice::Splice;
pub use standing::{Standing, standings};

#[cfg(test)]
mod tests;
