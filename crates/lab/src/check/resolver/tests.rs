//! Tests of the table of items and of the zones.

use super::items;
use std::collections::BTreeSet;

#[test]
fn each_item_has_a_number_of_its_own_a_rule_and_a_method() {
    let items: Vec<_> = items().map(|row| row.item).collect();
    let ids: BTreeSet<&str> = items.iter().map(|item| item.id).collect();
    assert_eq!(ids.len(), items.len());
    for item in items {
        assert!(!item.rules.is_empty() && !item.method.is_empty(), "{}", item.id);
        assert!(item.rules.iter().all(|rule| rule.contains('§') || *rule == "RFC 9904"), "{:?}", item.rules);
        assert!(!item.subject.ends_with('.'), "{}", item.id);
    }
}

#[test]
fn the_document_lists_every_item() {
    let document = include_str!("../../../../../docs/check-resolver.md");
    for item in items().map(|row| row.item).chain(crate::check::proxy::items().map(|row| row.item)) {
        let row = format!("| {} | {} | {} |", item.id, item.subject, item.rules.join(", "));
        assert!(document.contains(&row), "docs/check-resolver.md: {row}");
    }
}
