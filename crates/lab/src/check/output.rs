//! The results of a check as text, JSON, JUnit XML and HTML.
//!
//! Names, records and texts of a server are hostile: each form escapes them.

mod explain;
mod html;
mod json;
mod junit;
mod text;

#[cfg(test)]
mod tests;

pub use text::list_text;
