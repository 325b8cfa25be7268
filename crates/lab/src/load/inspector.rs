//! Reads the options of responses: name server identifiers (RFC 5001) and cookies (RFC 7873).
//! Samples responses for validation.

use std::collections::BTreeMap;

use nonesuch_proto::Rtype;
use nonesuch_proto::edns::{self, Opt};
use nonesuch_proto::message::{Header, MessageError, read_record};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::LoadOptions;
use super::frame::Frame;
use super::pacer::share;

/// Length of the header of a message in octets.
const HEADER: usize = 12;
/// Maximum number of name server identifiers that are counted separately.
const NSIDS_MAX: usize = 64;
/// Response code for a bad or missing server cookie (RFC 7873 §5.2.2).
const BADCOOKIE: u16 = 23;

/// What the responses of a load contain, apart from their headers.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
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

impl Findings {
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
    owner: Vec<u8>,
    rdata: Vec<u8>,
    /// Whether to read the options.
    reads_options: bool,
    /// Number of responses to sample.
    samples: usize,
    /// Number of responses from which the samples are selected.
    responses: u64,
    random: ChaCha8Rng,
    pub(super) findings: Findings,
}

impl Inspector {
    /// Returns the inspector of thread `index`, if the options require one.
    pub(super) fn new(options: &LoadOptions, index: usize) -> Option<Box<Self>> {
        let reads_options = options.nsid || options.cookies;
        let mut random = ChaCha8Rng::seed_from_u64(options.seed);
        // Other streams than those of schedules, random labels and Zipf's law.
        random.set_stream(u64::MAX / 4 + index as u64);
        (reads_options || options.samples > 0).then(|| {
            Box::new(Self {
                owner: Vec::new(),
                rdata: Vec::new(),
                reads_options,
                samples: share(options.samples as u64, index, options.threads) as usize,
                responses: 0,
                random,
                findings: Findings::default(),
            })
        })
    }

    /// Selects each response of the thread with the same probability (reservoir sampling).
    fn sample(&mut self, message: &[u8]) {
        self.responses += 1;
        let samples = &mut self.findings.samples;
        if samples.len() < self.samples {
            samples.push(message.to_vec());
        } else if self.samples > 0 {
            let place = self.random.random_range(0..self.responses);
            if let Some(sample) = usize::try_from(place).ok().and_then(|place| samples.get_mut(place)) {
                *sample = message.to_vec();
            }
        }
    }

    /// Reads a response to a query of the socket `place`. `counts` is false during the warm-up.
    pub(super) fn inspect(&mut self, place: usize, message: &[u8], counts: bool, frame: &mut Frame) {
        if counts {
            self.sample(message);
        }
        if !self.reads_options {
            return;
        }
        // A malformed response has no options that could be counted.
        let Ok(Some(fixed)) = self.find_opt(message) else { return };
        let Some(opt) = Opt::from_parts(fixed.0, fixed.1, &self.rdata) else { return };
        let cookie = opt.option(edns::COOKIE);
        if let Some(option) = cookie {
            frame.learn_cookie(place, option);
        }
        if !counts {
            return;
        }
        if let Some(nsid) = opt.option(edns::NSID) {
            self.findings.count_nsid(nsid, 1);
        }
        let low = message.get(3).map_or(0, |octet| octet & 0x0f);
        let rcode = u16::from(opt.extended_rcode) << 4 | u16::from(low);
        self.findings.bad_cookies += u64::from(rcode == BADCOOKIE);
        let has_server_cookie = cookie.and_then(edns::CookieOption::read);
        self.findings.server_cookies +=
            u64::from(has_server_cookie.is_some_and(|found| !found.server.is_empty()));
    }

    /// Reads the OPT record into `rdata`. Returns its class and TTL.
    fn find_opt(&mut self, message: &[u8]) -> Result<Option<(u16, u32)>, MessageError> {
        let Some(header) = Header::read(message) else { return Ok(None) };
        let [questions, records @ ..] = header.counts;
        let mut at = HEADER;
        for _ in 0..questions {
            match message.get(at..).and_then(question) {
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
pub(super) fn question(octets: &[u8]) -> Option<&[u8]> {
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
        let mut frame = Frame::new(&options(), 0);
        let mut inspector = Inspector::new(&options(), 0).expect("NSID is requested");
        for number in 0..70u8 {
            let message = response(0, &[(edns::NSID, &[number])]);
            inspector.inspect(0, &message, true, &mut frame);
            inspector.inspect(0, &message, false, &mut frame);
        }
        inspector.inspect(0, &response(0, &[(edns::NSID, &[0])]), true, &mut frame);
        inspector.inspect(0, &response(BADCOOKIE, &[]), true, &mut frame);
        let mut findings = inspector.findings.clone();
        assert_eq!((findings.nsids.len(), findings.nsids[&vec![0]], findings.nsids[&vec![1]]), (64, 2, 1));
        assert_eq!((findings.other_nsids, findings.bad_cookies), (6, 1));
        findings.add(&inspector.findings);
        assert_eq!((findings.nsids[&vec![0]], findings.other_nsids, findings.bad_cookies), (4, 12, 2));
    }

    #[test]
    fn samples_are_spread_over_the_responses() {
        let options = LoadOptions { nsid: false, samples: 100, ..options() };
        let mut frame = Frame::new(&options, 0);
        let mut inspector = Inspector::new(&options, 0).expect("samples are wanted");
        for number in 0..10_000u16 {
            inspector.inspect(0, &number.to_be_bytes(), true, &mut frame);
        }
        let samples = inspector.findings.samples;
        let early = samples.iter().filter(|sample| sample[0] < 20).count();
        assert_eq!(samples.len(), 100);
        // Half of the samples, with a standard deviation of 5.
        assert!((25..75).contains(&early), "{early}");
    }

    #[test]
    fn a_question_ends_with_its_class() {
        assert_eq!(question(b"\x01a\0\0\x01\0\x01rest"), Some(&b"\x01a\0\0\x01\0\x01"[..]));
        assert_eq!(question(b"\0\0\x01\0\x01"), Some(&b"\0\0\x01\0\x01"[..]));
        for wrong in [&b""[..], b"\x01a", b"\x01a\0\0\x01\0", b"\xc0\x0c\0\x01\0\x01"] {
            assert_eq!(question(wrong), None);
        }
        let long = [[&[63][..], &[b'x'; 63]].concat().repeat(4), vec![0, 0, 1, 0, 1]].concat();
        assert_eq!(question(&long), None);
    }

    proptest! {
        #[test]
        fn arbitrary_responses_do_no_harm(
            mut message in proptest::collection::vec(any::<u8>(), 0..80),
            cut in 0usize..60,
        ) {
            let mut frame = Frame::new(&options(), 0);
            let mut inspector = Inspector::new(&options(), 0).expect("NSID is requested");
            inspector.inspect(0, &message, true, &mut frame);
            message.splice(0..0, response(0, &[(edns::NSID, b"x")]).into_iter().take(cut));
            inspector.inspect(0, &message, true, &mut frame);
            prop_assert!(inspector.findings.nsids.values().sum::<u64>() <= 2);
        }
    }
}
