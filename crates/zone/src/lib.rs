//! Zone files, immutable zone contents, and the zone image from which the server answers queries.
//!
//! [`read`] parses a zone file into [`Contents`]. Signing builds new [`Contents`] from existing
//! ones. The server answers queries from an [`Image`]. Contents and images are immutable.
//!
//! # Reading a zone
//!
//! ```
//! use nonesuch_zone::read::read_text;
//! use std::path::Path;
//!
//! let text = "$ORIGIN example.\n\
//!     @ 3600 SOA ns hostmaster 1 7200 3600 1209600 3600\n\
//!     @ 3600 NS ns\n\
//!     ns 3600 A 192.0.2.1\n";
//! let zone = read_text(text.as_bytes(), Path::new("example.zone"), None)?.contents;
//! assert_eq!(zone.apex().to_string(), "example.");
//! assert_eq!(zone.record_count(), 3);
//! # Ok::<(), nonesuch_zone::ReadError>(())
//! ```
#![forbid(unsafe_code)]

mod builder;
pub mod change;
pub mod compiled;
mod contents;
pub mod image;
pub mod journal;
mod lexer;
pub mod load;
pub mod name_status;
mod node_checks;
pub mod ordered;
pub mod read;
mod regular;
pub mod semantics;
mod size;
mod splice;
pub mod write;
mod zone_ref;
pub mod zonemd;

pub use builder::{Builder, ParsedZone, SourceLocation, Warning, ZoneError, ZoneFault};
pub use change::ChangeSet;
pub use compiled::{CompiledError, StoredZone, Verification};
pub use contents::{Contents, Node, NodesBuilder, Rrset, Soa};
pub use image::{Image, ImageFile, ImageFileError, MAX_NSEC3_ITERATIONS};
pub use journal::Journal;
pub use load::{LoadError, LoadedZone, compare_signed, load, load_octets, load_regular, open_compiled};
pub use name_status::{NameStatus, name_statuses};
pub use read::{ReadError, ReadFault};
pub use regular::open_regular;
pub use size::{MAX_MESSAGE, check_rrset};
pub use splice::Splice;
pub use zone_ref::{FoundNode, ZoneRef};

#[cfg(test)]
mod tests;
