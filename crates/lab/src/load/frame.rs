//! Encodes queries. A frame contains the encoded parts that are the same in all queries (RFC 1035
//! §4.1, RFC 6891 §6.1).

use std::hash::{BuildHasher as _, RandomState};

use nonesuch_proto::edns;
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::LoadOptions;

/// Length of the header of a message in octets.
const HEADER: usize = 12;
/// Maximum octets of a question: name, type and class.
const QUESTION: usize = 255 + 4;
/// Letters of a random label: 60 random bits. Ten million random labels are very probably all
/// different.
const LABEL: usize = 12;
/// Octets that a random label adds to a name.
pub(super) const PREFIX: usize = LABEL + 1;
/// Letters of random labels, 5 bits each. All are lower-case letters or digits, whose case no
/// server can change.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Encodes the queries of one thread.
pub(super) struct Frame {
    /// Octets 2 to 11 of the header.
    header: [u8; HEADER - 2],
    /// The OPT record in wire form; empty without EDNS.
    opt: Vec<u8>,
    /// Generator of the random labels; `None` without random labels.
    random: Option<ChaCha8Rng>,
}

impl Frame {
    /// Creates the frame for thread `index`. Each thread has different random labels.
    pub(super) fn new(options: &LoadOptions, index: usize) -> Self {
        let opt = opt_record(options);
        // RD is set, as dnsperf does; one question; the OPT record as the only additional record.
        let header = [0x01, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(!opt.is_empty())];
        let random = options.random_prefix.then(|| {
            // Each `RandomState` has other keys from the system.
            let seed = if options.repeatable { options.seed } else { RandomState::new().hash_one(index) };
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            // The schedules use the streams from 0 upwards.
            random.set_stream(u64::MAX - index as u64);
            random
        });
        Self { header, opt, random }
    }

    /// Returns the maximum length of a query, in octets.
    pub(super) fn size(&self) -> usize {
        HEADER + QUESTION + self.opt.len()
    }

    /// Writes a complete query to `slot`, which must have [`Self::size`] octets. Returns the length
    /// of the query.
    pub(super) fn write(&mut self, id: u16, question: &[u8], slot: &mut [u8]) -> usize {
        let mut prefix = [0; PREFIX];
        let prefix = match &mut self.random {
            Some(random) => {
                write_label(random.next_u64(), &mut prefix);
                &prefix[..]
            }
            None => &[],
        };
        let parts = [&id.to_be_bytes()[..], &self.header, prefix, question, &self.opt];
        let mut length = 0;
        for part in parts {
            slot[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        length
    }
}

/// Writes the length octet and the letters of a random label.
fn write_label(mut bits: u64, label: &mut [u8; PREFIX]) {
    label[0] = LABEL as u8;
    for letter in &mut label[1..] {
        *letter = LETTERS[(bits & 31) as usize];
        bits >>= 5;
    }
}

/// Encodes the OPT record with its options. The result is empty without EDNS.
fn opt_record(options: &LoadOptions) -> Vec<u8> {
    let mut opt = Vec::new();
    if options.edns_size == 0 {
        return opt;
    }
    let dnssec_ok = if options.dnssec_ok { edns::DO } else { 0 };
    let compact_ok = if options.compact_ok { edns::CO } else { 0 };
    edns::push_opt(options.edns_size, 0, dnssec_ok | compact_ok, &mut opt);
    let fixed = opt.len();
    for (code, value) in &options.edns_options {
        opt.extend_from_slice(&code.to_be_bytes());
        opt.extend_from_slice(&(value.len() as u16).to_be_bytes());
        opt.extend_from_slice(value);
    }
    // RDLENGTH is the end of the record's fixed part. The length fits, because `LoadOptions` has
    // been checked.
    let length = (opt.len() - fixed) as u16;
    opt[fixed - 2..fixed].copy_from_slice(&length.to_be_bytes());
    opt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::QueryList;
    use std::collections::HashSet;
    use std::path::Path;
    use std::sync::Arc;

    fn options() -> LoadOptions {
        let queries = QueryList::parse(Path::new("list"), b"a A").expect("a query");
        LoadOptions::new(([127, 0, 0, 1], 53).into(), Arc::new(queries))
    }

    fn written(frame: &mut Frame, question: &[u8]) -> Vec<u8> {
        let mut slot = vec![0xff; frame.size()];
        let length = frame.write(0x1234, question, &mut slot);
        slot[..length].to_vec()
    }

    #[test]
    fn options_of_edns_are_written_behind_each_other() {
        let edns_options = vec![(10, vec![1, 2, 3, 4, 5, 6, 7, 8]), (65_001, Vec::new())];
        let mut frame = Frame::new(&LoadOptions { edns_options, ..options() }, 0);
        let query = written(&mut frame, b"\x01a\0\0\x01\0\x01");
        let opt = b"\0\0\x29\x04\xd0\0\0\x80\0\0\x10\0\x0a\0\x08\x01\x02\x03\x04\x05\x06\x07\x08\xfd\xe9\0\0";
        assert_eq!(query[12 + 7..], *opt);
        let plain = LoadOptions { edns_size: 0, dnssec_ok: false, ..options() };
        assert_eq!(written(&mut Frame::new(&plain, 0), b"\0\0\x01\0\x01").len(), 12 + 5);
    }

    #[test]
    fn random_labels_are_new_each_time_and_the_same_for_a_seed() {
        let labels = |index, seed| -> Vec<Vec<u8>> {
            let mut frame =
                Frame::new(&LoadOptions { random_prefix: true, repeatable: true, seed, ..options() }, index);
            let query = |_| written(&mut frame, b"\x01a\0\0\x01\0\x01")[12..].to_vec();
            (0..10_000).map(query).collect()
        };
        let first = labels(0, 1);
        for question in &first {
            assert_eq!((question[0], &question[13..20]), (12, &b"\x01a\0\0\x01\0\x01"[..]));
            assert!(question[1..13].iter().all(|letter| LETTERS.contains(letter)));
        }
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), first.len());
        assert_eq!(labels(0, 1), first);
        assert_ne!(labels(1, 1), first);
        assert_ne!(labels(0, 2), first);
    }

    #[test]
    fn random_labels_of_two_loads_differ_even_with_one_seed() {
        let label = |_| {
            let mut frame = Frame::new(&LoadOptions { random_prefix: true, ..options() }, 0);
            written(&mut frame, b"\x01a\0\0\x01\0\x01")[12..].to_vec()
        };
        let labels: HashSet<Vec<u8>> = (0..100).map(label).collect();
        assert_eq!(labels.len(), 100);
    }
}
