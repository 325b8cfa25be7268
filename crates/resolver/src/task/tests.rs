use super::*;
use crate::testing::name;
use proptest::prelude::*;

/// Returns the numbers of labels that are asked before the whole name.
fn steps(asked: &str, zone: &str) -> Vec<usize> {
    let (asked, zone) = (name(asked), name(zone));
    let mut minimisation = Minimisation::begin(asked.view(), zone.view());
    let mut steps = Vec::new();
    while let Some(labels) = minimisation.labels {
        steps.push(labels);
        minimisation = minimisation.next(asked.view());
    }
    steps
}

#[test]
fn names_are_asked_label_by_label() {
    assert_eq!(steps("example.", "."), []);
    assert_eq!(steps("www.example.", "example."), []);
    assert_eq!(steps("www.example.com.", "."), [1, 2]);
    assert_eq!(steps("a.b.c.example.com.", "com."), [2, 3, 4]);
}

#[test]
fn the_remaining_labels_are_divided_after_four_steps() {
    let reverse = "1.2.3.4.5.6.7.8.9.a.b.c.d.e.f.0.1.2.3.4.5.6.7.8.9.a.b.c.d.e.f.0.ip6.arpa.";
    assert_eq!(steps(reverse, "ip6.arpa."), [3, 4, 5, 6, 11, 16, 21, 26, 30]);
}

proptest! {
    #[test]
    fn few_queries_have_a_part_of_the_name(labels in 1usize..120, zone in 0usize..120) {
        let zone = zone.min(labels);
        let text = "x.".repeat(labels);
        let steps = steps(&text, if zone == 0 { "." } else { &text[..2 * zone] });
        prop_assert!(steps.len() <= MINIMISED_QUERIES_MAX);
        prop_assert!(steps.is_sorted_by(|one, other| one < other));
        prop_assert!(steps.iter().all(|count| *count > zone && *count < labels));
    }
}
