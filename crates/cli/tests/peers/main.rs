//! Tests with other signers, servers and validators.

mod check_resolvers;
#[path = "../common/mod.rs"]
mod common;
mod differential;
mod grid;
mod interop_signing;
mod interop_validation;
mod judges;
mod judges_online;
mod nsec5_checker;
mod paper;
mod peers_online;
mod plan_record;
mod query_peers;
mod resolvers;
mod root_zones;
mod trees;
mod validators;

/// Fails if a class of differences is not in docs/differences.md.
fn assert_documented<'c>(names: impl IntoIterator<Item = &'c str>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/differences.md");
    let documented = std::fs::read_to_string(path).expect("docs/differences.md");
    let missing: Vec<&str> =
        names.into_iter().filter(|name| !documented.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/differences.md lacks {missing:?}");
}
