//! Tests of key declarations.

use super::*;

#[test]
fn typing_errors_are_recognised_and_other_words_are_not() {
    let names = BTreeSet::from(["listen", "listen-tls", "workers", "nsid", "file"]);
    for (slip, meant) in [
        ("listne", "listen"),
        ("worker", "workers"),
        ("listen_tls", "listen-tls"),
        ("fil", "file"),
        ("ndis", "nsid"),
    ] {
        assert_eq!(nearest(slip, &names), Some(meant), "{slip}");
    }
    for other in ["colour", "x", "", "a-very-long-key-of-nobody"] {
        assert_eq!(nearest(other, &names), None, "{other}");
    }
    assert_eq!(nearest(&"x".repeat(1 << 20), &names), None);
}
