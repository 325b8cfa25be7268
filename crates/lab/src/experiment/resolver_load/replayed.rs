//! Recorded queries, asked for names of a tree.
//!
//! The tree does not have the recorded names. So each different name, in the order of first appearance, becomes
//! another name of the tree that exists: order, repetitions and types are those of the recording.

use super::traffic::QueriedTree;
use crate::load::{QueryList, QueryListError};
use nonesuch_proto::Rtype;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// The octets of type and class after the name of a question (RFC 1035 §4.1.2).
const TYPE_AND_CLASS: usize = 4;

/// Recorded queries.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// The number of the name and the type of each query.
    queries: Vec<(u64, Rtype)>,
    /// Number of different names.
    names: u64,
}

impl Recorded {
    /// Reads a query list.
    pub(super) fn read(path: &Path) -> Result<Self, QueryListError> {
        Ok(Self::of(&QueryList::from_file(path)?))
    }

    fn of(list: &QueryList) -> Self {
        let mut numbers: HashMap<Vec<u8>, u64> = HashMap::new();
        let questions = (0..list.len()).filter_map(|index| list.question(index));
        let queries = questions.filter_map(|question| {
            let (name, rest) = question.split_at_checked(question.len().checked_sub(TYPE_AND_CLASS)?)?;
            let rtype = Rtype(u16::from_be_bytes(*rest.first_chunk()?));
            let next = numbers.len() as u64;
            // RFC 4343: names are equal without regard to case. Length octets are not letters.
            Some((*numbers.entry(name.to_ascii_lowercase()).or_insert(next), rtype))
        });
        let queries = queries.collect();
        Self { queries, names: numbers.len() as u64 }
    }

    /// Number of different names.
    pub(super) const fn names(&self) -> u64 {
        self.names
    }

    /// The queries `first` to `first + count`. After the last recorded query, the first one follows.
    pub(super) fn queries(
        &self,
        tree: QueriedTree,
        (first, count): (u64, u64),
    ) -> Result<Arc<QueryList>, QueryListError> {
        let mut text = String::new();
        let start = (first % self.queries.len().max(1) as u64) as usize;
        for (number, rtype) in self.queries.iter().cycle().skip(start).take(count as usize) {
            let (host, zone) = tree.place(*number);
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "host{host}.z{zone}.example. {rtype}");
        }
        Ok(Arc::new(QueryList::parse(Path::new("replayed queries"), text.as_bytes())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: QueriedTree = QueriedTree { zones: 2, names: 3 };

    #[test]
    fn order_repetitions_and_types_are_those_of_the_recording() {
        let text = b"www.a.test A\nb.test AAAA\nWWW.A.test MX\nc.test A\nb.test TYPE65280\n";
        let recorded = Recorded::of(&QueryList::parse(Path::new("list"), text).expect("queries"));
        assert_eq!(recorded.names(), 3);
        let questions = |list: &QueryList| {
            (0..list.len()).filter_map(|index| list.question(index).map(<[u8]>::to_vec)).collect::<Vec<_>>()
        };
        let expected = b"host0.z1.example. AAAA\nhost0.z0.example. MX\nhost1.z0.example. A\n\
            host0.z1.example. TYPE65280\nhost0.z0.example. A\nhost0.z1.example. AAAA\n";
        let expected = QueryList::parse(Path::new("list"), expected).expect("queries");
        assert_eq!(questions(&recorded.queries(TREE, (1, 6)).expect("queries")), questions(&expected));
    }
}
