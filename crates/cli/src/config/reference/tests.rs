//! Tests of the reference.

use super::*;

/// The annotated examples.
const EXAMPLE: &str = include_str!("../../../../../etc/nonesuch.toml");
const RESOLVER_EXAMPLE: &str = include_str!("../../../../../etc/resolver.toml");

#[test]
fn the_annotated_examples_are_the_references() {
    for (name, reference, example) in
        [("nonesuch.toml", reference(), EXAMPLE), ("resolver.toml", resolver::reference(), RESOLVER_EXAMPLE)]
    {
        if reference != example {
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, reference).unwrap();
            panic!("etc/{name} differs from the declarations of the keys: cp {} etc/", path.display());
        }
    }
}

#[test]
fn the_manual_page_has_every_line_and_no_accidental_macro() {
    let page = page();
    for words in ["control\\-socket = ", "[zone.\"example.\"]", "member\\-template = "] {
        assert!(page.contains(words), "{words}");
    }
    let keys = page.split(".nf\n").nth(1).and_then(|rest| rest.split(".fi\n").next()).unwrap_or_default();
    assert_eq!(keys.lines().count(), EXAMPLE.lines().count());
    assert!(keys.lines().all(|line| !line.starts_with(['.', '\''])));
}
