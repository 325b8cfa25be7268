//! Tests and fuzz targets that the threat model (docs/security.md) names exist, and so do files and
//! directories that ARCHITECTURE.md names.

use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(path: &str) -> String {
    fs::read_to_string(repository().join(path)).expect(path)
}

fn threat_model() -> String {
    page("docs/security.md")
}

/// The texts between backticks.
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

/// Whether a text between backticks is a path: it contains a slash, or has a suffix of a file in
/// the repository.
fn is_path(quoted: &str) -> bool {
    let has_extension = [".rs", ".md", ".toml"].iter().any(|extension| quoted.ends_with(extension));
    !quoted.contains(char::is_whitespace) && (quoted.contains('/') || has_extension)
}

#[test]
fn every_path_of_the_architecture_exists() {
    let page = page("ARCHITECTURE.md");
    let paths: Vec<&str> = quoted(&page).filter(|quoted| is_path(quoted)).collect();
    for path in &paths {
        assert!(repository().join(path).exists(), "ARCHITECTURE.md names {path}, which does not exist");
    }
    assert!(paths.len() > 20, "ARCHITECTURE.md names {} paths", paths.len());
}

#[test]
fn the_architecture_stays_short() {
    let octets = page("ARCHITECTURE.md").len();
    assert!(
        octets <= 14_000,
        "ARCHITECTURE.md has {octets} octets: move details to the documentation of modules"
    );
}
