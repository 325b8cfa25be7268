//! Validation by the whole state machine in virtual time: negative trust anchors, extended errors.

mod error_reports;
mod extended_errors;
mod negative_anchors;
mod tree;
