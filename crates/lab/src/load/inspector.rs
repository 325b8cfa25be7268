//! Reads the options of responses: name server identifiers (RFC 5001) and cookies (RFC 7873).
//! Samples responses for validation.

use std::collections::BTreeMap;

use nonesuch_proto::Rtype;
use nonesuch_proto::edns::{self, Opt};
use nonesuch_proto::message::{Header, MessageError, read_record};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::LoadOptions;
use super::encoder::QueryEncoder;
use super::pacer::equal_share;

/// Length of the header of a message in octets.
const HEADER_SIZE: usize = 12;
/// Maximum number of name server identifiers that are counted separately.
const NSIDS_MAX: usize = 64;
/// Response code for a bad or missing server cookie (RFC 7873 §5.2.2).
const BADCOOKIE: u16 = 23;

/// Counts of the options in the responses, and sampled responses.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct InspectionResults {
    /// Number of responses for each identifier.
    pub(super) nsids: BTreeMap<Vec<u8>, u64>,
    /// Number of responses with further identifiers.
    pub(super) other_nsids: u64,
    /// Number of responses with a server cookie.
    pub(super) server_cookies: u64,
    /// Number of responses with the code BADCOOKIE.
    pub(super) bad_cookies: u64,
    /// Sampled responses.
    pub(super) samples: Vec<Vec<u8>>,
}

impl InspectionResults {
    pub(super) fn add(&mut self, other: &Self) {
        other.nsids.iter().for_each(|(nsid, count)| self.count_nsid(nsid, *count));
        self.other_nsids += other.other_nsids;
        self.server_cookies += other.server_cookies;
        self.bad_cookies += other.bad_cookies;
        self.samples.extend_from_slice(&other.samples);
    }

    fn count_nsid(&mut self, nsid: &[u8], count: u64) {
        if let Some(counted) = self.nsids.get_mut(nsid) {
            *counted += count;
        } else if self.nsids.len() < NSIDS_MAX {
            self.nsids.insert(nsid.to_vec(), count);
        } else {
            self.other_nsids += count;
        }
    }
}

/// Reads the OPT records of responses.
#[derive(Debug)]
pub(super) struct Inspector {
    /// Buffers for the owner and the RDATA of a record.
    owner: Vec<u8>,
    rdata: Vec<u8>,
    /// Whether to read the options.
    reads_options: bool,
    /// Number of responses to sample.
    sample_count: usize,
    /// Number of responses so far, from which the samples are selected.
    responses: u64,
    random: ChaCha8Rng,
    pub(super) results: InspectionResults,
}

impl Inspector {
    /// Returns the inspector of thread `thread`; `None` if the options require only the headers.
    pub(super) fn new(options: &LoadOptions, thread: usize) -> Option<Box<Self>> {
        let reads_options = options.nsid || options.cookies;
        let mut random = ChaCha8Rng::seed_from_u64(options.seed);
        // Schedules, random labels and Zipf's law use other streams.
        random.set_stream(u64::MAX / 4 + thread as u64);
        (reads_options || options.samples > 0).then(|| {
            Box::new(Self {
                owner: Vec::new(),
                rdata: Vec::new(),
                reads_options,
                sample_count: equal_share(options.samples as u64, thread, options.threads) as usize,
                responses: 0,
                random,
                results: InspectionResults::default(),
            })
        })
    }

    /// Adds a response to the samples, or not, so that each response of the thread is finally a
    /// sample with the same probability (reservoir sampling).
    fn sample(&mut self, message: &[u8]) {
        self.responses += 1;
        let samples = &mut self.results.samples;
        if samples.len() < self.sample_count {
            samples.push(message.to_vec());
        } else if self.sample_count > 0 {
            let drawn = self.random.random_range(0..self.responses);
            if let Some(sample) = usize::try_from(drawn).ok().and_then(|drawn| samples.get_mut(drawn)) {
                *sample = message.to_vec();
            }
        }
    }

    /// Reads a response to a query of `socket`. `is_measured` is false during the warm-up; the
    /// response is then not counted.
    pub(super) fn inspect(
        &mut self,
        socket: usize,
        message: &[u8],
        is_measured: bool,
        encoder: &mut QueryEncoder,
    ) {
        if is_measured {
            self.sample(message);
        }
        if !self.reads_options {
            return;
        }
        // A malformed response has no options that could be counted.
        let Ok(Some((class, ttl))) = self.find_opt(message) else { return };
        let Some(opt) = Opt::from_parts(class, ttl, &self.rdata) else { return };
        let cookie = opt.option(edns::COOKIE);
        if let Some(option) = cookie {
            encoder.store_server_cookie(socket, option);
        }
        if !is_measured {
            return;
        }
        if let Some(nsid) = opt.option(edns::NSID) {
            self.results.count_nsid(nsid, 1);
        }
        let low_rcode = message.get(3).map_or(0, |octet| octet & 0x0f);
        let rcode = u16::from(opt.extended_rcode) << 4 | u16::from(low_rcode);
        self.results.bad_cookies += u64::from(rcode == BADCOOKIE);
        let cookie = cookie.and_then(edns::CookieOption::read);
        self.results.server_cookies += u64::from(cookie.is_some_and(|found| !found.server.is_empty()));
    }

    /// Reads the RDATA of the OPT record into `self.rdata`. Returns its class and TTL; `None` if
    /// there is no OPT record.
    fn find_opt(&mut self, message: &[u8]) -> Result<Option<(u16, u32)>, MessageError> {
        let Some(header) = Header::read(message) else { return Ok(None) };
        let [questions, records @ ..] = header.counts;
        let mut at = HEADER_SIZE;
        for _ in 0..questions {
            match message.get(at..).and_then(leading_question) {
                Some(question) => at += question.len(),
                None => return Ok(None),
            }
        }
        let count: u32 = records.iter().map(|count| u32::from(*count)).sum();
        for _ in 0..count {
            let (fixed, end) = read_record(message, at, &mut self.owner, &mut self.rdata)?;
            if fixed.rtype == Rtype::OPT {
                return Ok(Some((fixed.class.0, fixed.ttl)));
            }
            at = end;
        }
        Ok(None)
    }
}

/// Returns the question at the start of `octets`: an uncompressed name, type and class. Returns
/// `None` if there is none.
pub(super) fn leading_question(octets: &[u8]) -> Option<&[u8]> {
    let mut end = 0;
    loop {
        let length = usize::from(*octets.get(end)?);
        if length > 63 {
            return None;
        }
        end += 1 + length;
        if length == 0 {
            break;
        }
    }
    if end > 255 { None } else { octets.get(..end + 4) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::QueryList;
    use crate::load::length_prefix::MessageSplitter;
    use proptest::prelude::*;
    use std::path::Path;
    use std::sync::Arc;

    fn options() -> LoadOptions {
        let queries = QueryList::parse(Path::new("list"), b"a A").expect("a query");
        LoadOptions { nsid: true, ..LoadOptions::new(([127, 0, 0, 1], 53).into(), Arc::new(queries)) }
    }

    /// Returns a response with one question, an A record and an OPT record with these options.
    fn response(rcode: u16, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut message = b"\x12\x34\x80\0\0\x01\0\x01\0\0\0\x01\x01a\0\0\x01\0\x01".to_vec();
        message[3] = (rcode & 15) as u8;
        message.extend_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0\x05\0\x04\x7f\0\0\x01");
        let start = message.len();
        edns::push_opt(1232, (rcode >> 4) as u8, 0, &mut message);
        options.iter().for_each(|(code, value)| edns::push_option(*code, &[value], &mut message));
        edns::set_options_length(start, &mut message);
        message
    }

    #[test]
    fn identifiers_are_counted_up_to_a_limit() {
        let mut encoder = QueryEncoder::new(&options(), 0);
        let mut inspector = Inspector::new(&options(), 0).expect("NSID is requested");
        for number in 0..70u8 {
            let message = response(0, &[(edns::NSID, &[number])]);
            inspector.inspect(0, &message, true, &mut encoder);
            inspector.inspect(0, &message, false, &mut encoder);
        }
        inspector.inspect(0, &response(0, &[(edns::NSID, &[0])]), true, &mut encoder);
        inspector.inspect(0, &response(BADCOOKIE, &[]), true, &mut encoder);
        let mut results = inspector.results.clone();
        assert_eq!((results.nsids.len(), results.nsids[&vec![0]], results.nsids[&vec![1]]), (64, 2, 1));
        assert_eq!((results.other_nsids, results.bad_cookies), (6, 1));
        results.add(&inspector.results);
        assert_eq!((results.nsids[&vec![0]], results.other_nsids, results.bad_cookies), (4, 12, 2));
    }

    #[test]
    fn samples_are_spread_over_the_responses() {
        let options = LoadOptions { nsid: false, samples: 100, ..options() };
        let mut encoder = QueryEncoder::new(&options, 0);
        let mut inspector = Inspector::new(&options, 0).expect("samples are wanted");
        for number in 0..10_000u16 {
            inspector.inspect(0, &number.to_be_bytes(), true, &mut encoder);
        }
        let samples = inspector.results.samples;
        let early = samples.iter().filter(|sample| sample[0] < 20).count();
        assert_eq!(samples.len(), 100);
        // Half of the samples, with a standard deviation of 5.
        assert!((25..75).contains(&early), "{early}");
    }

    #[test]
    fn a_question_ends_with_its_class() {
        assert_eq!(leading_question(b"\x01a\0\0\x01\0\x01rest"), Some(&b"\x01a\0\0\x01\0\x01"[..]));
        assert_eq!(leading_question(b"\0\0\x01\0\x01"), Some(&b"\0\0\x01\0\x01"[..]));
        for wrong in [&b""[..], b"\x01a", b"\x01a\0\0\x01\0", b"\xc0\x0c\0\x01\0\x01"] {
            assert_eq!(leading_question(wrong), None);
        }
        let long = [[&[63][..], &[b'x'; 63]].concat().repeat(4), vec![0, 0, 1, 0, 1]].concat();
        assert_eq!(leading_question(&long), None);
    }

    /// A response in a stream.
    #[derive(Debug, Clone)]
    struct Piece {
        rcode: u16,
        nsid: Vec<u8>,
        /// The server cookie; without the client cookie if it is empty.
        server_cookie: Vec<u8>,
        /// Octets that replace others, and their positions.
        damage: Vec<(prop::sample::Index, u8)>,
        /// Octets between this response and the next one.
        behind: Vec<u8>,
    }

    impl Piece {
        fn octets(&self, client: &[u8]) -> Vec<u8> {
            let cookie = if self.server_cookie.is_empty() { &[] } else { client };
            let cookie = [cookie, &self.server_cookie].concat();
            let message = response(self.rcode, &[(edns::NSID, &self.nsid), (edns::COOKIE, &cookie)]);
            let mut octets = [&(message.len() as u16).to_be_bytes()[..], &message].concat();
            for (index, value) in &self.damage {
                let position = index.index(octets.len());
                octets[position] = *value;
            }
            [octets, self.behind.clone()].concat()
        }
    }

    prop_compose! {
        fn piece()(
            rcode in 0u16..4096,
            nsid in proptest::collection::vec(any::<u8>(), 0..4),
            server_cookie in proptest::collection::vec(any::<u8>(), 0..40),
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
            behind in prop_oneof![4 => Just(Vec::new()), 1 => proptest::collection::vec(0u8..3, 1..5)],
        ) -> Piece {
            Piece { rcode, nsid, server_cookie, damage, behind }
        }
    }

    proptest! {
        #[test]
        fn arbitrary_responses_do_no_harm(
            mut message in proptest::collection::vec(any::<u8>(), 0..80),
            cut in 0usize..60,
        ) {
            let mut encoder = QueryEncoder::new(&options(), 0);
            let mut inspector = Inspector::new(&options(), 0).expect("NSID is requested");
            inspector.inspect(0, &message, true, &mut encoder);
            message.splice(0..0, response(0, &[(edns::NSID, b"x")]).into_iter().take(cut));
            inspector.inspect(0, &message, true, &mut encoder);
            prop_assert!(inspector.results.nsids.values().sum::<u64>() <= 2);
        }

        /// A server sends damaged responses, with wrong length prefixes, in any chunks.
        #[test]
        fn chunks_do_not_change_the_results(
            pieces in proptest::collection::vec(piece(), 0..8),
            size in 1usize..100,
        ) {
            let options = LoadOptions { cookies: true, samples: 3, ..options() };
            let mut encoder = QueryEncoder::new(&options, 0);
            let query = |encoder: &mut QueryEncoder| {
                let mut slot = vec![0; encoder.max_query_size()];
                let length = encoder.encode(1, b"\0\0\x01\0\x01", 0, &mut slot);
                slot[..length].to_vec()
            };
            // The query ends with the client cookie.
            let client = query(&mut encoder).split_off(query(&mut encoder).len() - 8);
            let stream: Vec<u8> = pieces.iter().flat_map(|piece| piece.octets(&client)).collect();
            let mut inspect = |size| {
                let mut inspector = Inspector::new(&options, 0).expect("NSID is requested");
                let mut splitter = MessageSplitter::default();
                for octets in stream.chunks(size).chain([&[][..]]) {
                    splitter.split(octets, |message| inspector.inspect(0, message, true, &mut encoder));
                }
                (inspector.results, query(&mut encoder))
            };
            let whole = inspect(stream.len().max(1));
            prop_assert!(whole.0.samples.len() <= 3 && whole.0.server_cookies <= pieces.len() as u64);
            prop_assert_eq!(inspect(size), whole);
        }
    }
}
