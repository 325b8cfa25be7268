//! Encodes queries (RFC 1035 §4.1, RFC 6891 §6.1). The parts that are the same in all queries are
//! encoded once.

use std::hash::{BuildHasher as _, RandomState};

use nonesuch_proto::edns::{self, CookieOption};
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::LoadOptions;

/// Length of the header of a message in octets.
const HEADER_SIZE: usize = 12;
/// Maximum octets of a question: name, type and class.
const QUESTION_MAX: usize = 255 + 4;
/// CD in octet 3 of the header (RFC 4035 §3.2.2).
const CD: u8 = 0x10;
/// AD in octet 3 of the header.
const AD: u8 = 0x20;
/// Octets of a client cookie (RFC 7873 §4).
const CLIENT_COOKIE_SIZE: usize = 8;
/// Maximum octets of a server cookie (RFC 7873 §4).
const SERVER_COOKIE_SIZE_MAX: usize = 32;
/// Number of letters in a random label: 60 random bits. Ten million random labels are very probably
/// all different.
const LABEL_LETTERS: usize = 12;
/// Number of letters in a short random label: 30 random bits.
const SHORT_LABEL_LETTERS: usize = 6;
/// Octets that a random label adds to a name, with its length octet.
pub(crate) const LABEL_OCTETS: usize = LABEL_LETTERS + 1;
/// Octets that a short random label adds to a name, with its length octet.
pub(crate) const SHORT_LABEL_OCTETS: usize = SHORT_LABEL_LETTERS + 1;
/// Maximum octets that a random label adds to a name.
pub(super) const RANDOM_LABEL_MAX: usize = LABEL_OCTETS;
/// Letters of random labels, 5 bits each. All are lower-case letters or digits, whose case no
/// server can change.
const LABEL_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Encodes the queries of one thread.
pub(super) struct QueryEncoder {
    /// Octets 2 to 11 of the header.
    header: [u8; HEADER_SIZE - 2],
    /// The OPT record in wire form, for each socket if it contains the cookies of the socket,
    /// otherwise for all; empty without EDNS.
    opt_records: Vec<Vec<u8>>,
    /// The client cookie of each socket (RFC 7873 §4.1); empty without cookies.
    cookies: Vec<[u8; CLIENT_COOKIE_SIZE]>,
    /// Length of the OPT record without the cookie option.
    fixed_opt_size: usize,
    /// Generator of the random labels; `None` without random labels.
    random: Option<ChaCha8Rng>,
    /// Number of letters in a random label.
    label_letters: usize,
    /// Share of the queries that get a random label, in percent.
    label_percent: u8,
}

impl QueryEncoder {
    /// Creates the encoder for thread `thread`. Each thread has different random labels.
    pub(super) fn new(options: &LoadOptions, thread: usize) -> Self {
        let opt = opt_record(options);
        // RD is set, as dnsperf does; one question; the OPT record as the only additional record.
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let second_flags = flag(options.checking_disabled, CD) | flag(options.authentic_data, AD);
        let header = [0x01, second_flags, 0, 1, 0, 0, 0, 0, 0, u8::from(!opt.is_empty())];
        let sockets = if options.cookies { options.sockets_per_thread() } else { 0 };
        let cookie = |socket: usize| RandomState::new().hash_one((thread, socket)).to_be_bytes();
        let cookies: Vec<_> = (0..sockets).map(cookie).collect();
        let random = (options.random_prefix || options.random_label).then(|| {
            // The system gives each `RandomState` other keys, so the seed differs in each run.
            let seed = if options.repeatable { options.seed } else { RandomState::new().hash_one(thread) };
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            // The schedules use the streams from 0 upwards.
            random.set_stream(u64::MAX - thread as u64);
            random
        });
        let label_letters = if options.random_label { SHORT_LABEL_LETTERS } else { LABEL_LETTERS };
        let (fixed_opt_size, opt_records) = (opt.len(), vec![opt; sockets.max(1)]);
        let label_percent = options.label_percent;
        let mut encoder =
            Self { header, opt_records, cookies, fixed_opt_size, random, label_letters, label_percent };
        (0..sockets).for_each(|socket| encoder.set_server_cookie(socket, &[]));
        encoder
    }

    /// Sets the cookie option in the queries of a socket: its client cookie, and `server`, the
    /// server cookie, which may be empty (RFC 7873 §5.1).
    fn set_server_cookie(&mut self, socket: usize, server: &[u8]) {
        if let (Some(client), Some(opt)) = (self.cookies.get(socket), self.opt_records.get_mut(socket)) {
            opt.truncate(self.fixed_opt_size);
            edns::push_option(edns::COOKIE, &[client, server], opt);
            edns::set_options_length(0, opt);
        }
    }

    /// Uses the server cookie of a response for the next queries of a socket, if the response
    /// contains the client cookie of this socket (RFC 7873 §5.3).
    pub(super) fn store_server_cookie(&mut self, socket: usize, option: &[u8]) {
        let Some(cookie) = CookieOption::read(option) else { return };
        if self.cookies.get(socket) != Some(cookie.client) || cookie.server.is_empty() {
            return;
        }
        if self.opt_records.get(socket).is_none_or(|opt| !opt.ends_with(cookie.server)) {
            self.set_server_cookie(socket, cookie.server);
        }
    }

    /// Returns the maximum length of a query, in octets.
    pub(super) fn max_query_size(&self) -> usize {
        let cookie =
            if self.cookies.is_empty() { 0 } else { 4 + CLIENT_COOKIE_SIZE + SERVER_COOKIE_SIZE_MAX };
        HEADER_SIZE + QUESTION_MAX + self.fixed_opt_size + cookie
    }

    /// Writes a complete query of the socket `socket` to `slot`, which must have
    /// [`Self::max_query_size`] octets. Returns the length of the query.
    pub(super) fn encode(&mut self, id: u16, question: &[u8], socket: usize, slot: &mut [u8]) -> usize {
        let mut prefix = [0; RANDOM_LABEL_MAX];
        let prefix = match &mut self.random {
            Some(random) => {
                let is_labelled =
                    self.label_percent >= 100 || random.next_u64() % 100 < self.label_percent.into();
                let prefix = &mut prefix[..if is_labelled { self.label_letters + 1 } else { 0 }];
                write_label(random.next_u64(), prefix);
                &*prefix
            }
            None => &[],
        };
        self.encode_parts(id, prefix, question, socket, slot)
    }

    /// Writes a query that is repeated over TCP: with the question of the truncated response, which
    /// already contains the random label. `slot` must have [`Self::max_query_size`] octets. Returns
    /// the length of the query.
    pub(super) fn encode_without_label(&self, id: u16, question: &[u8], slot: &mut [u8]) -> usize {
        self.encode_parts(id, &[], question, 0, slot)
    }

    fn encode_parts(&self, id: u16, prefix: &[u8], question: &[u8], socket: usize, slot: &mut [u8]) -> usize {
        let opt = &self.opt_records[socket.min(self.opt_records.len() - 1)];
        let parts = [&id.to_be_bytes()[..], &self.header, prefix, question, opt];
        let mut length = 0;
        for part in parts {
            slot[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        length
    }
}

/// Writes the length octet and the letters of a random label.
fn write_label(mut bits: u64, label: &mut [u8]) {
    let [length, letters @ ..] = label else { return };
    *length = letters.len() as u8;
    for letter in letters {
        *letter = LABEL_ALPHABET[(bits & 31) as usize];
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
    if options.nsid {
        edns::push_option(edns::NSID, &[], &mut opt);
    }
    for (code, value) in &options.edns_options {
        edns::push_option(*code, &[value], &mut opt);
    }
    edns::set_options_length(0, &mut opt);
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

    fn encoded(encoder: &mut QueryEncoder, question: &[u8]) -> Vec<u8> {
        let mut slot = vec![0xff; encoder.max_query_size()];
        let length = encoder.encode(0x1234, question, 0, &mut slot);
        slot[..length].to_vec()
    }

    #[test]
    fn options_of_edns_are_written_behind_each_other() {
        let edns_options = vec![(10, vec![1, 2, 3, 4, 5, 6, 7, 8]), (65_001, Vec::new())];
        let mut encoder = QueryEncoder::new(&LoadOptions { edns_options, ..options() }, 0);
        let query = encoded(&mut encoder, b"\x01a\0\0\x01\0\x01");
        let opt = b"\0\0\x29\x04\xd0\0\0\x80\0\0\x10\0\x0a\0\x08\x01\x02\x03\x04\x05\x06\x07\x08\xfd\xe9\0\0";
        assert_eq!(query[12 + 7..], *opt);
        let plain = LoadOptions { edns_size: 0, dnssec_ok: false, ..options() };
        assert_eq!(encoded(&mut QueryEncoder::new(&plain, 0), b"\0\0\x01\0\x01").len(), 12 + 5);
    }

    #[test]
    fn cookies_belong_to_a_socket_and_its_client_cookie() {
        let options = LoadOptions { cookies: true, sockets: 2, ..options() };
        let mut encoder = QueryEncoder::new(&options, 0);
        let mut slot = vec![0; encoder.max_query_size()];
        let mut cookie = |encoder: &mut QueryEncoder, socket| {
            let length = encoder.encode(1, b"\0\0\x01\0\x01", socket, &mut slot);
            // Header, question, and the OPT record up to the option.
            slot[12 + 5 + 11..length].to_vec()
        };
        let (first, second) = (cookie(&mut encoder, 0), cookie(&mut encoder, 1));
        assert_eq!((&first[..4], first.len()), (&[0, 10, 0, 8][..], 12));
        assert_ne!(first, second);
        // A response with the client cookie of another socket changes nothing.
        encoder.store_server_cookie(0, &[&second[4..], &[7; 16]].concat());
        assert_eq!(cookie(&mut encoder, 0), first);
        for server in [&[7; 16][..], &[8; 32], &[9; 8]] {
            encoder.store_server_cookie(0, &[&first[4..], server].concat());
            let expected = [&[0, 10, 0, 8 + server.len() as u8], &first[4..], server].concat();
            assert_eq!(cookie(&mut encoder, 0), expected);
            assert_eq!(cookie(&mut encoder, 1), second);
        }
    }

    #[test]
    fn cd_ad_and_nsid_are_written() {
        let mut encoder =
            QueryEncoder::new(&LoadOptions { checking_disabled: true, nsid: true, ..options() }, 0);
        let query = encoded(&mut encoder, b"\0\0\x01\0\x01");
        assert_eq!(query[2..4], [0x01, 0x10]);
        let mut with_ad = QueryEncoder::new(&LoadOptions { authentic_data: true, ..options() }, 0);
        assert_eq!(encoded(&mut with_ad, b"\0\0\x01\0\x01")[2..4], [0x01, 0x20]);
        assert_eq!(query[12 + 5..], *b"\0\0\x29\x04\xd0\0\0\x80\0\0\x04\0\x03\0\0");
    }

    #[test]
    fn random_labels_are_new_each_time_and_the_same_for_a_seed() {
        let labels = |index, seed| -> Vec<Vec<u8>> {
            let mut encoder = QueryEncoder::new(
                &LoadOptions { random_prefix: true, repeatable: true, seed, ..options() },
                index,
            );
            let query = |_| encoded(&mut encoder, b"\x01a\0\0\x01\0\x01")[12..].to_vec();
            (0..10_000).map(query).collect()
        };
        let first = labels(0, 1);
        for question in &first {
            assert_eq!((question[0], &question[13..20]), (12, &b"\x01a\0\0\x01\0\x01"[..]));
            assert!(question[1..13].iter().all(|letter| LABEL_ALPHABET.contains(letter)));
        }
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), first.len());
        assert_eq!(labels(0, 1), first);
        assert_ne!(labels(1, 1), first);
        assert_ne!(labels(0, 2), first);
    }

    #[test]
    fn a_short_label_has_six_letters() {
        let mut encoder = QueryEncoder::new(&LoadOptions { random_label: true, ..options() }, 0);
        let labels: HashSet<Vec<u8>> = (0..1000)
            .map(|_| {
                let query = encoded(&mut encoder, b"\x01a\0\0\x01\0\x01");
                assert_eq!((query[12], &query[19..26]), (6, &b"\x01a\0\0\x01\0\x01"[..]));
                query[13..19].to_vec()
            })
            .collect();
        assert!(labels.len() > 990 && labels.iter().flatten().all(|letter| LABEL_ALPHABET.contains(letter)));
    }

    #[test]
    fn the_share_of_queries_with_a_label_is_kept() {
        for (label_percent, range) in [(0, 0..=0), (30, 250..=350), (100, 1000..=1000)] {
            let options = LoadOptions { random_label: true, repeatable: true, label_percent, ..options() };
            let mut encoder = QueryEncoder::new(&options, 0);
            let is_labelled = |_: &u32| encoded(&mut encoder, b"\x01a\0\0\x01\0\x01")[12] == 6;
            assert!(range.contains(&(0..1000).filter(is_labelled).count()), "{label_percent} %");
        }
    }

    #[test]
    fn random_labels_of_two_loads_differ_even_with_one_seed() {
        let label = |_| {
            let mut encoder = QueryEncoder::new(&LoadOptions { random_prefix: true, ..options() }, 0);
            encoded(&mut encoder, b"\x01a\0\0\x01\0\x01")[12..].to_vec()
        };
        let labels: HashSet<Vec<u8>> = (0..100).map(label).collect();
        assert_eq!(labels.len(), 100);
    }
}
