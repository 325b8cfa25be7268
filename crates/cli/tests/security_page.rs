//! The threat model (docs/security.md) names tests and fuzz targets that exist.

use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn threat_model() -> String {
    fs::read_to_string(repository().join("docs/security.md")).expect("docs/security.md")
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_test_of_the_threat_model_exists() {
    let page = threat_model();
    let mut count = 0;
    for (file, test) in quoted(&page).filter_map(|named| named.split_once(": ")) {
        let path = repository().join("crates").join(file);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(text.contains(&format!("fn {test}(")), "{file} has no test {test}");
        count += 1;
    }
    assert!(count > 0, "docs/security.md names no test");
}

#[test]
fn every_fuzz_target_of_the_threat_model_exists() {
    let page = threat_model();
    let mut count = 0;
    for (_, targets) in page.lines().filter_map(|line| line.split_once("fuzz target")) {
        for target in quoted(targets) {
            let path = repository().join(format!("fuzz/targets/{target}.rs"));
            assert!(path.is_file(), "{}: no such fuzz target", path.display());
            count += 1;
        }
    }
    assert!(count > 0, "docs/security.md names no fuzz target");
}
