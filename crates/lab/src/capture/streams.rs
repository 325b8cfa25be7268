//! Reassembly of DNS messages from TCP segments (RFC 1035 §4.2.2, RFC 9293).
//!
//! A stream is one direction of a connection. It begins with the segment that has SYN. Segments out
//! of order wait in a window of bounded size. If a gap remains, the rest of the stream is skipped,
//! because the start of the next message is then unknown.

use super::link::Segment;
use super::skip::{SkipCounts, SkipReason};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Maximum number of streams. If there are more, the half that has been idle longest is dropped.
const STREAMS_MAX: usize = 4096;
/// Maximum number of octets of a stream that wait for an earlier segment, and maximum distance of a
/// segment from the next expected octet.
const WINDOW_OCTETS: usize = 16 << 10;
/// Maximum number of segments that wait for an earlier segment.
const WAITING_MAX: usize = 32;
/// Size of the length prefix of a message in octets.
const PREFIX_SIZE: usize = 2;

/// The sender and receiver of a stream.
pub(super) type Ends = (SocketAddr, SocketAddr);

#[derive(Debug, Default)]
struct Stream {
    /// Sequence number of the first octet.
    first: u32,
    /// Sequence number of the next octet.
    next: u32,
    /// Octets of an incomplete message, with its prefix.
    octets: Vec<u8>,
    /// Segments after a gap, with their sequence numbers.
    waiting: Vec<(u32, Vec<u8>)>,
    waiting_octets: usize,
    /// Number of the last segment, counted over all streams.
    last_segment: u64,
}

/// The streams of a capture.
#[derive(Debug, Default)]
pub(super) struct Streams {
    streams: HashMap<Ends, Stream>,
    /// Number of segments so far.
    segments: u64,
}

impl Streams {
    /// Handles a segment. Calls `on_message` for each message that it completes.
    pub(super) fn add_segment(
        &mut self,
        ends: Ends,
        segment: Segment<'_>,
        skipped: &mut SkipCounts,
        on_message: impl FnMut(&[u8]),
    ) {
        self.segments += 1;
        if segment.rst {
            self.streams.remove(&ends);
            return;
        }
        if segment.syn {
            self.begin(ends, segment.sequence.wrapping_add(1), skipped);
        }
        let Some(stream) = self.streams.get_mut(&ends) else {
            if !segment.octets.is_empty() {
                skipped.count(SkipReason::NoConnection);
            }
            return;
        };
        stream.last_segment = self.segments;
        let sequence = segment.sequence.wrapping_add(u32::from(segment.syn));
        let is_contiguous = stream.push(sequence, segment.octets);
        if !is_contiguous {
            skipped.count(SkipReason::Gap);
        }
        stream.take_messages(on_message);
        let end = sequence.wrapping_add(segment.octets.len() as u32);
        if !is_contiguous || (segment.fin && end == stream.next) {
            self.streams.remove(&ends);
        }
    }

    /// Begins a stream, unless the segment with SYN is a repetition.
    fn begin(&mut self, ends: Ends, first: u32, skipped: &mut SkipCounts) {
        if self.streams.get(&ends).is_some_and(|stream| stream.first == first) {
            return;
        }
        if self.streams.len() >= STREAMS_MAX {
            let mut last_segments: Vec<u64> =
                self.streams.values().map(|stream| stream.last_segment).collect();
            let (_, &mut median, _) = last_segments.select_nth_unstable(STREAMS_MAX / 2);
            self.streams.retain(|_, stream| stream.last_segment >= median);
            skipped.add(SkipReason::TooManyConnections, (last_segments.len() - self.streams.len()) as u64);
        }
        self.streams
            .insert(ends, Stream { first, next: first, last_segment: self.segments, ..Stream::default() });
    }
}

impl Stream {
    /// Adds a segment, and the waiting segments that follow it. A segment after a gap waits.
    /// Returns false if the window has no space for it.
    fn push(&mut self, sequence: u32, octets: &[u8]) -> bool {
        if !self.append(sequence, octets) {
            // The distance from the next octet is less than half of the sequence space.
            let distance = sequence.wrapping_sub(self.next) as usize;
            self.waiting_octets += octets.len();
            if distance > WINDOW_OCTETS
                || self.waiting_octets > WINDOW_OCTETS
                || self.waiting.len() >= WAITING_MAX
            {
                return false;
            }
            self.waiting.push((sequence, octets.to_vec()));
            return true;
        }
        while let Some(index) = self.waiting.iter().position(|(sequence, _)| !self.is_after(*sequence)) {
            let (sequence, octets) = self.waiting.swap_remove(index);
            self.waiting_octets -= octets.len();
            self.append(sequence, &octets);
        }
        true
    }

    /// Whether a segment is after the next octet, so that there is a gap (RFC 9293 §3.4).
    const fn is_after(&self, sequence: u32) -> bool {
        sequence.wrapping_sub(self.next) as i32 > 0
    }

    /// Appends the new octets of a segment. Returns false if there is a gap before it.
    fn append(&mut self, sequence: u32, octets: &[u8]) -> bool {
        if self.is_after(sequence) {
            return false;
        }
        let repeated = self.next.wrapping_sub(sequence) as usize;
        if let Some(new) = octets.get(repeated..) {
            self.octets.extend_from_slice(new);
            self.next = self.next.wrapping_add(new.len() as u32);
        }
        true
    }

    /// Removes the complete messages and passes them to `on_message`.
    fn take_messages(&mut self, mut on_message: impl FnMut(&[u8])) {
        let mut rest = &self.octets[..];
        while let Some((prefix, tail)) = rest.split_first_chunk::<PREFIX_SIZE>() {
            let Some((message, tail)) = tail.split_at_checked(u16::from_be_bytes(*prefix).into()) else {
                break;
            };
            on_message(message);
            rest = tail;
        }
        let taken = self.octets.len() - rest.len();
        self.octets.drain(..taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(port: u16) -> Ends {
        (SocketAddr::from(([192, 0, 2, 1], port)), SocketAddr::from(([192, 0, 2, 2], 53)))
    }

    fn stream_of(messages: &[Vec<u8>]) -> Vec<u8> {
        let prefixed =
            messages.iter().flat_map(|message| [&(message.len() as u16).to_be_bytes()[..], message].concat());
        prefixed.collect()
    }

    /// Passes segments to a new stream table. The first sequence number is `isn`.
    fn run(isn: u32, pieces: &[(usize, &[u8])]) -> (Vec<Vec<u8>>, SkipCounts) {
        let (mut streams, mut skipped, mut messages) =
            (Streams::default(), SkipCounts::default(), Vec::new());
        let syn = Segment { sequence: isn, syn: true, ..Segment::default() };
        let data = pieces.iter().map(|(at, octets)| Segment {
            sequence: isn.wrapping_add(1).wrapping_add(*at as u32),
            octets,
            ..Segment::default()
        });
        for segment in [syn].into_iter().chain(data) {
            streams.add_segment(ends(1), segment, &mut skipped, |message| messages.push(message.to_vec()));
        }
        (messages, skipped)
    }

    proptest! {
        #[test]
        fn messages_survive_cutting_repetition_and_reordering(
            isn in prop_oneof![any::<u32>(), Just(u32::MAX - 20)],
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..6),
            size in 1usize..300,
            repeat in any::<bool>(),
            swaps in proptest::collection::vec(any::<bool>(), 40),
        ) {
            let octets = stream_of(&messages);
            let mut pieces: Vec<(usize, &[u8])> = octets.chunks(size).enumerate()
                .map(|(number, piece)| (number * size, piece)).collect();
            if repeat {
                pieces = pieces.iter().flat_map(|piece| [*piece, (piece.0, piece.1)]).collect();
            }
            for (place, swap) in swaps.iter().enumerate() {
                if *swap && place + 1 < pieces.len() {
                    pieces.swap(place, place + 1);
                }
            }
            // At most 32 segments wait, because a segment moves back by at most the number of
            // swaps.
            let (found, skipped) = run(isn, &pieces);
            if skipped.total() == 0 {
                prop_assert_eq!(found, messages);
            } else {
                prop_assert!(pieces.len() > WAITING_MAX);
            }
        }
    }

    #[test]
    fn a_stream_with_a_gap_is_given_up() {
        let octets = stream_of(&vec![vec![7; 1000]; 100]);
        let pieces: Vec<(usize, &[u8])> =
            octets.chunks(1002).enumerate().map(|(number, piece)| (number * 1002, piece)).collect();
        let (found, skipped) = run(1, &[&pieces[..3], &pieces[4..]].concat());
        assert_eq!(found.len(), 3);
        assert_eq!(skipped.get(SkipReason::Gap), 1);
        // All segments after those that waited.
        assert_eq!(skipped.get(SkipReason::NoConnection), (100 - 4) - 16 - 1);
    }

    #[test]
    fn a_segment_without_the_begin_of_its_connection_is_counted() {
        let (mut streams, mut skipped) = (Streams::default(), SkipCounts::default());
        let segment = Segment { sequence: 5, octets: b"\0\x01a", ..Segment::default() };
        streams.add_segment(ends(1), segment, &mut skipped, |_| panic!("no message"));
        assert_eq!(skipped.get(SkipReason::NoConnection), 1);
        // Acknowledgements without data do not count.
        streams
            .add_segment(ends(1), Segment { octets: b"", ..segment }, &mut skipped, |_| panic!("no message"));
        assert_eq!(skipped.total(), 1);
    }

    #[test]
    fn the_end_of_a_connection_frees_its_stream() {
        for last in [
            Segment { sequence: 6, fin: true, octets: b"\0\x01b", ..Segment::default() },
            Segment { rst: true, ..Segment::default() },
        ] {
            let (mut streams, mut skipped, mut found) = (Streams::default(), SkipCounts::default(), 0);
            let first = Segment { sequence: 2, syn: true, octets: b"\0\x01a", ..Segment::default() };
            streams.add_segment(ends(1), first, &mut skipped, |_| found += 1);
            assert_eq!((streams.streams.len(), found), (1, 1));
            streams.add_segment(ends(1), last, &mut skipped, |_| found += 1);
            assert_eq!((streams.streams.len(), found), (0, if last.rst { 1 } else { 2 }));
            assert_eq!(skipped.total(), 0);
        }
    }

    #[test]
    fn the_number_of_streams_is_bounded() {
        let (mut streams, mut skipped) = (Streams::default(), SkipCounts::default());
        for port in 0..10_000 {
            let syn = Segment { sequence: 1, syn: true, ..Segment::default() };
            streams.add_segment(ends(port), syn, &mut skipped, |_| panic!("no message"));
            assert!(streams.streams.len() <= STREAMS_MAX);
        }
        assert!(streams.streams.contains_key(&ends(9_999)));
        let kept = streams.streams.len() as u64;
        assert_eq!(skipped.get(SkipReason::TooManyConnections), 10_000 - kept);
    }
}
