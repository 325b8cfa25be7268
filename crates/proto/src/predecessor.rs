//! Predecessors and successors of names in canonical order (RFC 4034 §6.1), for denial records that
//! are generated online.
//!
//! RFC 4471 §3.1 derives the immediate predecessor and successor of a name. A record that denies a
//! name also denies all names below it. Therefore such a record needs the neighbours of the whole
//! subtree: of the name *with all names below it*. The names that these functions return are in
//! canonical form, because upper-case letters have no position in the canonical order.
//!
//! A predecessor that is not the parent has 255 octets, or 254 if only one octet would remain,
//! because a label occupies at least two octets.

use crate::{MAX_LABEL, MAX_NAME, Name, NameRef};

impl NameRef<'_> {
    /// Returns the successor of this name (RFC 4471 §3.1.2) in the zone at `apex`. The successor of
    /// the last name of the zone is the apex. This name must be at or below the apex.
    #[must_use]
    pub fn successor(self, apex: NameRef<'_>) -> Name {
        match Name::prepend(&[0], self) {
            Ok(child) => child.view().to_canonical(),
            // No name fits below this one.
            Err(_) => self.successor_of_subtree(apex),
        }
    }

    /// Returns the first name after this name and all names below it, in the zone at `apex`. After
    /// the last name of the zone, it returns the apex. This name must be at or below the apex.
    ///
    /// The function appends a zero octet to the leftmost label, unless the label already has the
    /// maximum length. Otherwise it removes the trailing 255 octets of the label and increments the
    /// octet before them. If all octets are 255, no name below the parent follows, so it continues
    /// with the parent (RFC 4471 §3.1.2, steps 2 and 3).
    #[must_use]
    pub fn successor_of_subtree(self, apex: NameRef<'_>) -> Name {
        let mut name = self;
        while let Some((mut label, parent)) = split_first_label(name).filter(|_| name.len() > apex.len()) {
            if label.len() < max_label_length(parent) {
                label.push(0);
            } else {
                let kept_octets =
                    label.iter().rposition(|octet| *octet != u8::MAX).map_or(0, |last| last + 1);
                label.truncate(kept_octets);
                if let Some(last) = label.last_mut() {
                    *last = octet_after(*last);
                }
            }
            match prepend_canonical(&label, parent) {
                Some(next) => return next,
                None => name = parent,
            }
        }
        apex.to_canonical()
    }

    /// Returns the last name before this one that has the same parent, or the parent if no such
    /// name exists. Returns `None` for the root.
    ///
    /// If the result is not the parent, only names below the result lie between the result and this
    /// name. RFC 4470 §4 decrements a name in this way. The immediate predecessor
    /// ([`NameRef::predecessor`]) is the last name below the result.
    #[must_use]
    pub fn sibling_predecessor(self) -> Option<Name> {
        let (mut label, parent) = split_first_label(self)?;
        match label.pop() {
            // The predecessor among the siblings is the label without its final zero octet.
            Some(0) | None => {}
            Some(octet) => {
                label.push(octet_before(octet));
                label.resize(max_label_length(parent), u8::MAX);
            }
        }
        Some(prepend_canonical(&label, parent).unwrap_or_else(|| parent.to_canonical()))
    }

    /// Returns the predecessor (RFC 4471 §3.1.1): no name lies between it and this name. Unless the
    /// predecessor is the parent, no label can be prepended to it, because of its length. Returns
    /// `None` for the root.
    #[must_use]
    pub fn predecessor(self) -> Option<Name> {
        let before = self.sibling_predecessor()?;
        let is_parent = self.parent() == Some(before.view());
        Some(if is_parent { before } else { last_at_or_below(before.view()) })
    }
}

/// Returns the last name in canonical order at or below `name`. It prepends labels whose octets are
/// all 255 until no label fits. All labels have the maximum length, except the leftmost one, which
/// fills the rest (RFC 4471 §3.1.1, step 5).
fn last_at_or_below(name: NameRef<'_>) -> Name {
    const FULL_LABEL_OCTETS: usize = 1 + MAX_LABEL;
    let remaining = MAX_NAME.saturating_sub(name.len());
    let mut wire = Vec::with_capacity(MAX_NAME);
    let mut push_label = |octets: usize| {
        wire.push(octets as u8);
        wire.resize(wire.len() + octets, u8::MAX);
    };
    // A label occupies at least two octets.
    if remaining % FULL_LABEL_OCTETS > 1 {
        push_label(remaining % FULL_LABEL_OCTETS - 1);
    }
    (0..remaining / FULL_LABEL_OCTETS).for_each(|_| push_label(MAX_LABEL));
    name.push_canonical(&mut wire);
    NameRef::from_wire_unchecked(&wire).to_name()
}

/// Returns the leftmost label in lower case, and the parent; `None` for the root.
fn split_first_label(name: NameRef<'_>) -> Option<(Vec<u8>, NameRef<'_>)> {
    Some((name.labels().next()?.to_ascii_lowercase(), name.parent()?))
}

/// Returns the canonical form of `label` prepended to `parent`, or `None` if the label is empty or
/// the name is too long.
fn prepend_canonical(label: &[u8], parent: NameRef<'_>) -> Option<Name> {
    Name::prepend(label, parent).ok().map(|name| name.view().to_canonical())
}

/// Returns the maximum length of a label directly below `parent`, in octets. At least one label
/// must fit below `parent`.
fn max_label_length(parent: NameRef<'_>) -> usize {
    MAX_LABEL.min(MAX_NAME.saturating_sub(1 + parent.len()))
}

/// Returns the octet before a nonzero octet, in an order without upper-case letters.
const fn octet_before(octet: u8) -> u8 {
    match octet {
        b'[' => b'@',
        octet => octet.wrapping_sub(1),
    }
}

/// Returns the octet after an octet other than 255, in an order without upper-case letters.
const fn octet_after(octet: u8) -> u8 {
    match octet {
        b'@' => b'[',
        octet => octet.wrapping_add(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// Returns a name with `octets` octets in wire form.
    fn name_of_length(octets: usize) -> Name {
        let mut name = name("example.");
        while name.wire().len() < octets {
            let missing = octets - name.wire().len();
            // A label occupies at least two octets.
            let length = if missing == 65 { 62 } else { missing.min(64) - 1 };
            name = Name::prepend(&vec![b'x'; length], name.view()).unwrap();
        }
        assert_eq!(name.wire().len(), octets);
        name
    }

    /// Returns a name with `octets` octets in wire form whose first label is `label`.
    fn long_name(label: &[u8], octets: usize) -> Name {
        Name::prepend(label, name_of_length(octets - 1 - label.len()).view()).unwrap()
    }

    #[test]
    fn neighbours_of_short_names() {
        let apex = name("example.");
        let longest = |label: &str| {
            let filler = 63 - name(label).view().labels().next().unwrap().len();
            format!("{label}{}.example.", "\\255".repeat(filler))
        };
        for (original, before, after) in [
            ("foo.Example.", longest("fon"), "foo\\000.example."),
            ("a.b.example.", longest("\\096").replace(".example", ".b.example"), "a\\000.b.example."),
            ("FOO.example.", longest("fon"), "foo\\000.example."),
            // RFC 4471 §4.2: upper-case letters are skipped. `[` follows `@`, and `@` precedes `[`.
            ("fo[.example.", longest("fo\\@"), "fo[\\000.example."),
            ("fo\\@.example.", longest("fo?"), "fo\\@\\000.example."),
            ("a\\000.example.", "a.example.".to_owned(), "a\\000\\000.example."),
            ("\\000.example.", "example.".to_owned(), "\\000\\000.example."),
            ("\\000\\000.example.", "\\000.example.".to_owned(), "\\000\\000\\000.example."),
            ("*.example.", longest(")"), "*\\000.example."),
        ] {
            let original = name(original);
            assert_eq!(original.view().sibling_predecessor().unwrap(), name(&before), "before {original}");
            assert_eq!(original.view().successor_of_subtree(apex.view()), name(after), "after {original}");
            assert_eq!(original.view().successor(apex.view()), Name::prepend(&[0], original.view()).unwrap());
        }
        assert_eq!(NameRef::ROOT.sibling_predecessor(), None);
    }

    #[test]
    fn labels_of_63_octets_are_counted_up() {
        let apex = name("example.");
        let after = |label: &[u8]| {
            let original = Name::prepend(label, apex.view()).unwrap();
            original.view().successor_of_subtree(apex.view()).to_string()
        };
        assert_eq!(after(&[b'a'; 63]), format!("{}b.example.", "a".repeat(62)));
        assert_eq!(after(&[&[b'a', b'@'][..], &[255; 61]].concat()), "a[.example.");
        assert_eq!(after(&[&[b'a'][..], &[255; 62]].concat()), "b.example.");
        // The last name of the zone, and the last name below `b.example.`.
        assert_eq!(after(&[255; 63]), "example.");
        let below = Name::prepend(&[255; 63], name("b.example.").view()).unwrap();
        assert_eq!(below.view().successor_of_subtree(apex.view()), name("b\\000.example."));
        assert_eq!(apex.view().successor_of_subtree(apex.view()), apex);
    }

    #[test]
    fn predecessors() {
        let before = |original: &str| name(original).view().predecessor().unwrap();
        let fill = |octets: usize| "\\255".repeat(octets);
        // RFC 4471 §5.1.1.
        let expected = format!("{}.{1}.{1}.fon{2}.example.com.", fill(49), fill(63), fill(60));
        assert_eq!(before("foo.example.com."), name(&expected));
        // Step 2: the leftmost label is one zero octet. Step 3: the leftmost label ends in a zero
        // octet.
        assert_eq!(before("\\000.foo.example.com."), name("foo.example.com."));
        assert_eq!(before("foo\\000.example.com."), last_at_or_below(name("foo.example.com.").view()));
        assert_eq!(NameRef::ROOT.predecessor(), None);
        // No octet remains; one octet remains, too few for a label; two octets remain, enough for a
        // label of one octet.
        for (octets, length) in [(255, 255), (254, 254), (253, 255)] {
            let original = name_of_length(octets);
            let last = last_at_or_below(original.view());
            assert_eq!((last.wire().len(), last.view().is_at_or_below(original.view())), (length, true));
        }
    }

    #[test]
    fn names_of_the_greatest_length() {
        let apex = name("example.");
        // A label occupies at least two octets.
        let original = long_name(b"a", 253);
        assert_eq!(original.view().successor(apex.view()).wire().len(), 255);
        let original = long_name(b"a", 254);
        let next = original.view().successor(apex.view());
        assert_eq!(next.to_string(), original.to_string().replacen('a', "a\\000", 1));
        assert_eq!(next.view().sibling_predecessor().unwrap(), original);
        let original = long_name(b"a", 255);
        let next = original.view().successor(apex.view());
        assert_eq!(next.to_string(), original.to_string().replacen('a', "b", 1));
        assert_eq!(next.view().sibling_predecessor().unwrap(), original);
        let original = long_name(b"a\xff", 255);
        assert_eq!(
            original.view().successor(apex.view()).to_string(),
            original.to_string().replacen("a\\255", "b", 1)
        );
        // No name follows the last name below its parent.
        let original = long_name(b"\xff", 255);
        let parent = original.view().parent().unwrap();
        assert_eq!(original.view().successor(apex.view()), parent.successor_of_subtree(apex.view()));
    }

    /// Generates names below `example.` with a small set of octets, some with the maximum length.
    fn any_name() -> impl Strategy<Value = Name> {
        let octet = prop::sample::select(vec![0, 1, b'@', b'A', b'[', b'a', b'z', 254, 255]);
        let label = prop_oneof![
            4 => prop::collection::vec(octet.clone(), 1..4),
            1 => (octet.clone(), prop::sample::select(vec![61_usize, 62, 63]))
                .prop_map(|(octet, length)| vec![octet; length]),
            1 => (octet, Just(62)).prop_map(|(octet, more)| [&[octet][..], &vec![255; more]].concat()),
        ];
        prop::collection::vec(label, 1..6).prop_map(|labels| {
            let mut name = name("example.");
            for label in labels {
                // Labels are cut to the available length, so that some names have 255 octets.
                let remaining = max_label_length(name.view()).min(label.len());
                if 2 + name.wire().len() <= MAX_NAME {
                    name = Name::prepend(&label[..remaining], name.view()).unwrap();
                }
            }
            name
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, rng_seed: RngSeed::Fixed(4471), ..ProptestConfig::default() })]

        #[test]
        fn nothing_lies_between_neighbours(original in any_name(), other in any_name()) {
            let apex = name("example.");
            let (original, other) = (original.view(), other.view());
            let next = original.successor(apex.view());
            prop_assert!(next == apex || original < next.view());
            prop_assert!(!(original < other && (other < next.view() || next == apex)), "{} in {}..{}", other, original, next);
            let after = original.successor_of_subtree(apex.view());
            prop_assert!(after == apex || original < after.view() && !after.view().is_below(original));
            let is_between = original < other && (other < after.view() || after == apex);
            prop_assert_eq!(is_between, other.is_below(original), "{} in {}..{}", other, original, after);
            let before = original.sibling_predecessor().unwrap();
            prop_assert!(before.view() < original);
            prop_assert_eq!(
                before.view() < other && other < original,
                // The parent precedes all its children, and no other name lies between the parent
                // and its first child.
                if Some(before.view()) == original.parent() { false } else { other.is_below(before.view()) },
                "{} in {}..{}", other, before, original
            );
            let last = original.predecessor().unwrap();
            prop_assert!(last.view() < original && last.view().is_at_or_below(before.view()));
            prop_assert!(!(last.view() < other && other < original), "{} in {}..{}", other, last, original);
            prop_assert!(Some(last.view()) == original.parent() || last.wire().len() >= MAX_NAME - 1);
        }

        #[test]
        fn successor_and_predecessor_are_inverse(original in any_name()) {
            let apex = name("example.");
            let before = original.view().sibling_predecessor().unwrap();
            if Some(before.view()) != original.view().parent() {
                prop_assert_eq!(&before.view().successor_of_subtree(apex.view()), &original);
            }
            let after = original.view().successor_of_subtree(apex.view());
            if after.view().parent() == original.view().parent() {
                prop_assert_eq!(after.view().sibling_predecessor().unwrap(), original);
            }
        }

        #[test]
        fn neighbours_are_names_in_canonical_form(original in any_name()) {
            let apex = name("example.");
            let original = original.view();
            let after = [original.successor(apex.view()), original.successor_of_subtree(apex.view())];
            let before = [original.sibling_predecessor().unwrap(), original.predecessor().unwrap()];
            for neighbour in after.into_iter().chain(before) {
                prop_assert!(NameRef::from_wire(neighbour.wire()).is_ok());
                let lower = neighbour.view().to_canonical();
                prop_assert_eq!(neighbour.wire(), lower.wire());
                prop_assert!(neighbour.view().is_at_or_below(apex.view()));
            }
        }
    }
}
