//! A table of domain names in which the closest entry at or above a name is found.

use crate::hasher::BuildFastHasher;
use nonesuch_proto::{MAX_NAME, NameRef};
use std::collections::{HashMap, HashSet};

/// A table with names as keys. Letter case does not matter. Lookups do not allocate, and their work
/// is bounded by the number of labels of the longest key, not by that of the query name.
#[derive(Clone, Debug)]
pub(crate) struct NameMap<T> {
    /// Keys are names in wire form, in lower case.
    entries: HashMap<Box<[u8]>, T, BuildFastHasher>,
    /// The top-level names of all keys, in the same form. Most query names have a different one, so
    /// that one lookup decides.
    tops: HashSet<Box<[u8]>, BuildFastHasher>,
    /// Maximum number of labels of the keys.
    deepest: usize,
}

impl<T> Default for NameMap<T> {
    fn default() -> Self {
        Self { entries: HashMap::default(), tops: HashSet::default(), deepest: 0 }
    }
}

impl<T> NameMap<T> {
    /// Adds an entry. Returns the previous entry of this name.
    pub(crate) fn insert(&mut self, name: NameRef<'_>, value: T) -> Option<T> {
        let name = name.to_canonical();
        self.tops.insert(name.view().suffix(1).wire().into());
        self.deepest = self.deepest.max(name.view().label_count());
        self.entries.insert(name.wire().into(), value)
    }

    /// Returns the entry of exactly this name.
    pub(crate) fn get(&self, name: NameRef<'_>) -> Option<&T> {
        self.find_map(name, |below, value| Some((below == 0).then_some(value))).flatten()
    }

    /// Calls `accept` with the entries at and above `name`, the closest first, until it returns
    /// `Some`. Its first argument is the number of labels that `name` has below the entry: 0 for the
    /// entry of `name` itself.
    pub(crate) fn find_map<'m, R>(
        &'m self,
        name: NameRef<'_>,
        mut accept: impl FnMut(usize, &'m T) -> Option<R>,
    ) -> Option<R> {
        let mut buffer = [0; MAX_NAME];
        let lower = buffer.get_mut(..name.len())?;
        lower.copy_from_slice(name.wire());
        lower.make_ascii_lowercase();
        let name = NameRef::from_wire_unchecked(lower);
        if !self.has_top_of(name) {
            return None;
        }
        let labels = name.label_count();
        let first = labels.saturating_sub(self.deepest);
        let mut candidate = name.suffix(self.deepest);
        for below in first..=labels {
            if let Some(result) = self.entries.get(candidate.wire()).and_then(|value| accept(below, value)) {
                return Some(result);
            }
            candidate = candidate.parent()?;
        }
        None
    }

    /// Returns the closest entry at or above `name`.
    pub(crate) fn closest(&self, name: NameRef<'_>) -> Option<&T> {
        self.find_map(name, |_, value| Some(value))
    }

    /// Whether a key at or above `name`, which is in lower case, is possible.
    fn has_top_of(&self, name: NameRef<'_>) -> bool {
        let has = |top: NameRef<'_>| self.tops.contains(top.wire());
        !self.tops.is_empty() && (has(name.suffix(1)) || has(NameRef::ROOT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;
    use proptest::prelude::*;

    fn map(names: &[&str]) -> NameMap<Name> {
        let mut map = NameMap::default();
        for name in names {
            let name: Name = name.parse().unwrap();
            map.insert(name.view(), name.clone());
        }
        map
    }

    fn closest(map: &NameMap<Name>, name: &str) -> Option<String> {
        map.closest(name.parse::<Name>().unwrap().view()).map(ToString::to_string)
    }

    #[test]
    fn the_closest_entry_is_found_in_any_letter_case() {
        let map = map(&["Example.", "b.example.", "deep.er.in.org."]);
        assert_eq!(closest(&map, "eXample."), Some("Example.".into()));
        assert_eq!(closest(&map, "x.a.B.EXAMPLE."), Some("b.example.".into()));
        assert_eq!(closest(&map, "a.example."), Some("Example.".into()));
        // No label of `ab.example.` is `b`.
        assert_eq!(closest(&map, "ab.example."), Some("Example.".into()));
        assert_eq!(closest(&map, "er.in.org."), None);
        assert_eq!(closest(&map, "x.deep.er.in.org."), Some("deep.er.in.org.".into()));
        assert_eq!(closest(&map, "."), None);
        assert!(map.get("x.example.".parse::<Name>().unwrap().view()).is_none());
        assert!(map.get("EXAMPLE.".parse::<Name>().unwrap().view()).is_some());
    }

    #[test]
    fn an_entry_of_the_root_is_above_all_names() {
        let only_root = map(&["."]);
        assert_eq!(closest(&only_root, "."), Some(".".into()));
        assert_eq!(closest(&only_root, "a.b.c."), Some(".".into()));
        let map = map(&[".", "c."]);
        assert_eq!(closest(&map, "a.b.c."), Some("c.".into()));
        assert_eq!(closest(&map, "a.b.d."), Some(".".into()));
        assert_eq!(closest(&NameMap::default(), "a."), None);
    }

    #[test]
    fn entries_are_offered_from_the_closest_upwards() {
        let map = map(&[".", "c.", "b.c."]);
        let mut offered = Vec::new();
        let name: Name = "x.y.b.c.".parse().unwrap();
        let none = map.find_map(name.view(), |below, entry| {
            offered.push((below, entry.to_string()));
            None::<()>
        });
        assert_eq!(none, None);
        assert_eq!(offered, [(2, "b.c.".to_owned()), (3, "c.".into()), (4, ".".into())]);
    }

    fn any_name() -> impl Strategy<Value = Name> {
        proptest::collection::vec("[abA]{1,2}", 0..6).prop_map(|labels| {
            let prepend = |name: Name, label: &String| Name::prepend(label.as_bytes(), name.view()).unwrap();
            labels.iter().fold(Name::root(), prepend)
        })
    }

    proptest! {
        #[test]
        fn lookups_are_those_of_a_list(keys in proptest::collection::vec(any_name(), 0..12), name in any_name()) {
            let mut map = NameMap::default();
            for key in &keys {
                map.insert(key.view(), key.clone());
            }
            let above = keys.iter().filter(|key| name.view().is_at_or_below(key.view()));
            let expected = above.max_by_key(|key| key.view().label_count());
            prop_assert_eq!(map.closest(name.view()), expected);
            prop_assert_eq!(map.get(name.view()).is_some(), keys.contains(&name));
        }
    }
}
