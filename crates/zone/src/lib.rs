//! Zone files, immutable zone contents, and the image that answers are made from.
//!
//! [`read`] turns a zone file into [`Contents`]; signing makes new contents from them; [`Image`] is what the
//! server answers from. Contents and images never change once built.
#![forbid(unsafe_code)]

mod builder;
mod contents;
pub mod image;
mod lexer;
pub mod ordered;
pub mod read;
pub mod standing;
pub mod write;
pub mod zonemd;

pub use builder::{Builder, Place, Warning, ZoneError, ZoneFault};
pub use contents::{Contents, Node, Rrset, Run, Soa};
pub use image::Image;
pub use read::{ReadError, ReadFault, Reading};
pub use standing::{Standing, standings};

#[cfg(test)]
mod tests;
