//! The names next to a name in canonical order (RFC 4034 §6.1), for records of denial that are made when asked.
//!
//! RFC 4471 §3.1 derives the immediate predecessor and successor of a name. A record that denies a name denies all
//! names below it too, so what such a record needs is the neighbours of a name *with all names below it*. Names here
//! are in canonical form: the order has no place for upper-case letters.
//!
//! A predecessor has 255 octets, or 254 where one octet is left: no label fits into that.

use crate::{MAX_LABEL, MAX_NAME, Name, NameRef};

impl NameRef<'_> {
    /// The first name after this one (RFC 4471 §3.1.2) in the zone at `apex`; after its last name the apex again.
    /// This name must be at or below the apex.
    #[must_use]
    pub fn successor(self, apex: NameRef<'_>) -> Name {
        match Name::prepend(&[0], self) {
            Ok(child) => child.view().to_canonical(),
            // No name fits below this one.
            Err(_) => self.successor_of_subtree(apex),
        }
    }

    /// The first name after this one and all names below it, in the zone at `apex`; after its last name the apex again.
    /// This name must be at or below the apex.
    ///
    /// The leftmost label grows by a zero octet. Where it is as long as it may be, it is counted up instead; where it
    /// cannot be counted up either, nothing comes after it below its parent (RFC 4471 §3.1.2, steps 2 and 3).
    #[must_use]
    pub fn successor_of_subtree(self, apex: NameRef<'_>) -> Name {
        let mut name = self;
        while let Some((mut label, parent)) = split(name).filter(|_| name.len() > apex.len()) {
            if label.len() < longest_label(parent) {
                label.push(0);
            } else {
                let kept = label.iter().rposition(|octet| *octet != u8::MAX).map_or(0, |last| last + 1);
                label.truncate(kept);
                if let Some(last) = label.last_mut() {
                    *last = octet_after(*last);
                }
            }
            match joined(&label, parent) {
                Some(next) => return next,
                None => name = parent,
            }
        }
        apex.to_canonical()
    }

    /// The last name before this one that has the same parent; where there is none, the parent. `None` for the root.
    ///
    /// Between it and this name lie the names below it and no others. RFC 4470 §4 decrements a name this way; the
    /// immediate predecessor ([`NameRef::predecessor`]) is the last name below it.
    #[must_use]
    pub fn sibling_predecessor(self) -> Option<Name> {
        let (mut label, parent) = split(self)?;
        match label.pop() {
            // The label without its final zero octet comes directly before it.
            Some(0) | None => {}
            Some(octet) => {
                label.push(octet_before(octet));
                label.resize(longest_label(parent), u8::MAX);
            }
        }
        Some(joined(&label, parent).unwrap_or_else(|| parent.to_canonical()))
    }

    /// The last name before this one (RFC 4471 §3.1.1): no name lies between both. No label fits in front of it, unless it
    /// is the parent. `None` for the root.
    #[must_use]
    pub fn predecessor(self) -> Option<Name> {
        let before = self.sibling_predecessor()?;
        let is_parent = self.parent() == Some(before.view());
        Some(if is_parent { before } else { last_at_or_below(before.view()) })
    }
}

/// The last name in canonical order at or below `name`: labels of the greatest octet fill it up, the longest ones next to
/// `name` (RFC 4471 §3.1.1, step 5).
fn last_at_or_below(name: NameRef<'_>) -> Name {
    const FULL: usize = 1 + MAX_LABEL;
    let room = MAX_NAME.saturating_sub(name.len());
    let mut wire = Vec::with_capacity(MAX_NAME);
    let mut push_label = |octets: usize| {
        wire.push(octets as u8);
        wire.resize(wire.len() + octets, u8::MAX);
    };
    // A label takes two octets at least.
    if room % FULL > 1 {
        push_label(room % FULL - 1);
    }
    (0..room / FULL).for_each(|_| push_label(MAX_LABEL));
    name.push_canonical(&mut wire);
    NameRef::from_checked(&wire).to_name()
}

/// The leftmost label in lower case, and the parent; `None` for the root.
fn split(name: NameRef<'_>) -> Option<(Vec<u8>, NameRef<'_>)> {
    Some((name.labels().next()?.to_ascii_lowercase(), name.parent()?))
}

/// `None` where the label is empty.
fn joined(label: &[u8], parent: NameRef<'_>) -> Option<Name> {
    Name::prepend(label, parent).ok().map(|name| name.view().to_canonical())
}

/// Octets of the longest label below `parent`, which has a label below it.
fn longest_label(parent: NameRef<'_>) -> usize {
    MAX_LABEL.min(MAX_NAME.saturating_sub(1 + parent.len()))
}

/// The octet before one that is not 0, where upper-case letters are lower-case ones.
const fn octet_before(octet: u8) -> u8 {
    match octet {
        b'[' => b'@',
        octet => octet.wrapping_sub(1),
    }
}

/// The octet after one that is not 255, where upper-case letters are lower-case ones.
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

    /// A name of `octets` octets on the wire.
    fn of_length(octets: usize) -> Name {
        let mut name = name("example.");
        while name.wire().len() < octets {
            let missing = octets - name.wire().len();
            // A label takes two octets at least.
            let length = if missing == 65 { 62 } else { missing.min(64) - 1 };
            name = Name::prepend(&vec![b'x'; length], name.view()).unwrap();
        }
        assert_eq!(name.wire().len(), octets);
        name
    }

    /// `label` in front of as much as makes a name of `octets` octets.
    fn long(label: &[u8], octets: usize) -> Name {
        Name::prepend(label, of_length(octets - 1 - label.len()).view()).unwrap()
    }

    #[test]
    fn neighbours_of_short_names() {
        let apex = name("example.");
        let longest = |label: &str| {
            let filler = 63 - name(label).view().labels().next().unwrap().len();
            format!("{label}{}.example.", "\\255".repeat(filler))
        };
        for (of, before, after) in [
            ("foo.Example.", longest("fon"), "foo\\000.example."),
            ("a.b.example.", longest("\\096").replace(".example", ".b.example"), "a\\000.b.example."),
            ("FOO.example.", longest("fon"), "foo\\000.example."),
            // RFC 4471 §4.2: what stands for lower-case letters comes after them, and what is before `[` is `@`.
            ("fo[.example.", longest("fo\\@"), "fo[\\000.example."),
            ("fo\\@.example.", longest("fo?"), "fo\\@\\000.example."),
            ("a\\000.example.", "a.example.".to_owned(), "a\\000\\000.example."),
            ("\\000.example.", "example.".to_owned(), "\\000\\000.example."),
            ("\\000\\000.example.", "\\000.example.".to_owned(), "\\000\\000\\000.example."),
            ("*.example.", longest(")"), "*\\000.example."),
        ] {
            let of = name(of);
            assert_eq!(of.view().sibling_predecessor().unwrap(), name(&before), "before {of}");
            assert_eq!(of.view().successor_of_subtree(apex.view()), name(after), "after {of}");
            assert_eq!(of.view().successor(apex.view()), Name::prepend(&[0], of.view()).unwrap());
        }
        assert_eq!(NameRef::ROOT.sibling_predecessor(), None);
    }

    #[test]
    fn labels_of_63_octets_are_counted_up() {
        let apex = name("example.");
        let after = |label: &[u8]| {
            let of = Name::prepend(label, apex.view()).unwrap();
            of.view().successor_of_subtree(apex.view()).to_string()
        };
        assert_eq!(after(&[b'a'; 63]), format!("{}b.example.", "a".repeat(62)));
        assert_eq!(after(&[&[b'a', b'@'][..], &[255; 61]].concat()), "a[.example.");
        assert_eq!(after(&[&[b'a'][..], &[255; 62]].concat()), "b.example.");
        // The last name of the zone, and of a part of it.
        assert_eq!(after(&[255; 63]), "example.");
        let below = Name::prepend(&[255; 63], name("b.example.").view()).unwrap();
        assert_eq!(below.view().successor_of_subtree(apex.view()), name("b\\000.example."));
        assert_eq!(apex.view().successor_of_subtree(apex.view()), apex);
    }

    #[test]
    fn predecessors() {
        let before = |of: &str| name(of).view().predecessor().unwrap();
        let fill = |octets: usize| "\\255".repeat(octets);
        // RFC 4471 §5.1.1.
        let expected = format!("{}.{1}.{1}.fon{2}.example.com.", fill(49), fill(63), fill(60));
        assert_eq!(before("foo.example.com."), name(&expected));
        // Step 2: the leftmost label is one zero octet. Step 3: it ends in one.
        assert_eq!(before("\\000.foo.example.com."), name("foo.example.com."));
        assert_eq!(before("foo\\000.example.com."), last_at_or_below(name("foo.example.com.").view()));
        assert_eq!(NameRef::ROOT.predecessor(), None);
        // No room, room for no label, room for a label of one octet.
        for (octets, length) in [(255, 255), (254, 254), (253, 255)] {
            let of = of_length(octets);
            let last = last_at_or_below(of.view());
            assert_eq!((last.wire().len(), last.view().is_at_or_below(of.view())), (length, true));
        }
    }

    #[test]
    fn names_of_the_greatest_length() {
        let apex = name("example.");
        // Two octets are what a label takes.
        let of = long(b"a", 253);
        assert_eq!(of.view().successor(apex.view()).wire().len(), 255);
        let of = long(b"a", 254);
        let next = of.view().successor(apex.view());
        assert_eq!(next.to_string(), of.to_string().replacen('a', "a\\000", 1));
        assert_eq!(next.view().sibling_predecessor().unwrap(), of);
        let of = long(b"a", 255);
        let next = of.view().successor(apex.view());
        assert_eq!(next.to_string(), of.to_string().replacen('a', "b", 1));
        assert_eq!(next.view().sibling_predecessor().unwrap(), of);
        let of = long(b"a\xff", 255);
        assert_eq!(of.view().successor(apex.view()).to_string(), of.to_string().replacen("a\\255", "b", 1));
        // Nothing comes after the last name below its parent.
        let of = long(b"\xff", 255);
        let parent = of.view().parent().unwrap();
        assert_eq!(of.view().successor(apex.view()), parent.successor_of_subtree(apex.view()));
    }

    /// Names of a small alphabet below `example.`, some as long as names can be.
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
                // What does not fit is cut, so that names of 255 octets come about.
                let room = longest_label(name.view()).min(label.len());
                if 2 + name.wire().len() <= MAX_NAME {
                    name = Name::prepend(&label[..room], name.view()).unwrap();
                }
            }
            name
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, rng_seed: RngSeed::Fixed(4471), ..ProptestConfig::default() })]

        #[test]
        fn nothing_lies_between_neighbours(of in any_name(), other in any_name()) {
            let apex = name("example.");
            let (of, other) = (of.view(), other.view());
            let next = of.successor(apex.view());
            prop_assert!(next == apex || of < next.view());
            prop_assert!(!(of < other && (other < next.view() || next == apex)), "{} in {}..{}", other, of, next);
            let after = of.successor_of_subtree(apex.view());
            prop_assert!(after == apex || of < after.view() && !after.view().is_below(of));
            let is_between = of < other && (other < after.view() || after == apex);
            prop_assert_eq!(is_between, other.is_below(of), "{} in {}..{}", other, of, after);
            let before = of.sibling_predecessor().unwrap();
            prop_assert!(before.view() < of);
            prop_assert_eq!(
                before.view() < other && other < of,
                // The parent is before all its children, and before it is nothing of them.
                if Some(before.view()) == of.parent() { false } else { other.is_below(before.view()) },
                "{} in {}..{}", other, before, of
            );
            let last = of.predecessor().unwrap();
            prop_assert!(last.view() < of && last.view().is_at_or_below(before.view()));
            prop_assert!(!(last.view() < other && other < of), "{} in {}..{}", other, last, of);
            prop_assert!(Some(last.view()) == of.parent() || last.wire().len() >= MAX_NAME - 1);
        }

        #[test]
        fn each_undoes_the_other(of in any_name()) {
            let apex = name("example.");
            let before = of.view().sibling_predecessor().unwrap();
            if Some(before.view()) != of.view().parent() {
                prop_assert_eq!(&before.view().successor_of_subtree(apex.view()), &of);
            }
            let after = of.view().successor_of_subtree(apex.view());
            if after.view().parent() == of.view().parent() {
                prop_assert_eq!(after.view().sibling_predecessor().unwrap(), of);
            }
        }

        #[test]
        fn neighbours_are_names_in_canonical_form(of in any_name()) {
            let apex = name("example.");
            let of = of.view();
            let after = [of.successor(apex.view()), of.successor_of_subtree(apex.view())];
            let before = [of.sibling_predecessor().unwrap(), of.predecessor().unwrap()];
            for made in after.into_iter().chain(before) {
                prop_assert!(NameRef::from_wire(made.wire()).is_ok());
                let lower = made.view().to_canonical();
                prop_assert_eq!(made.wire(), lower.wire());
                prop_assert!(made.view().is_at_or_below(apex.view()));
            }
        }
    }
}
