//! Responses to AXFR and IXFR, read record by record.

mod places;
mod release;

use super::records::RecordsError;
use super::*;
use nonesuch_proto::edns;
use nonesuch_proto::message::{Message, Section};
use nonesuch_server::compress::Compressor;
use nonesuch_server::tsig::{ResponseVerifier, TsigKey, TsigKeys, sign_request};
use nonesuch_zone::journal::JournalError;
use nonesuch_zone::read::read_text;
use nonesuch_zone::{ChangeSet, Node, Rrset};
use proptest::prelude::*;
use std::path::Path;
use tempfile::TempDir;

const NOON: u64 = 1_750_000_000;
const CLIENT: &str = "192.0.2.7:5353";

/// Owner, type, TTL and RDATA of a record. Names retain their letter case.
type Plain = (Vec<u8>, u16, u32, Vec<u8>);

fn zone(serial: u32, rest: &str) -> Arc<Contents> {
    let text = format!("$TTL 60\n@ SOA Ns h {serial} 2 3 4 5\n@ NS Ns\nNs A 192.0.2.1\n{rest}");
    Arc::new(
        read_text(text.as_bytes(), Path::new("zone"), Some(&"Example.".parse().unwrap())).unwrap().contents,
    )
}

fn plain(node: Node<'_>, rrset: Rrset<'_>, rdata: &[u8]) -> Plain {
    (node.name().wire().to_vec(), rrset.rtype().0, rrset.ttl(), rdata.to_vec())
}

/// Returns the records of a zone, or of one side of a change: the SOA record first, then all
/// others.
fn records_of(contents: &Contents) -> Vec<Plain> {
    let all = contents.nodes().flat_map(|node| {
        node.rrsets().flat_map(move |rrset| rrset.rdatas().map(move |rdata| plain(node, rrset, rdata)))
    });
    let (soa, others): (Vec<Plain>, Vec<Plain>) = all.partition(|record| record.1 == Rtype::SOA.0);
    soa.into_iter().chain(others).collect()
}

fn soa_of(contents: &Contents) -> Plain {
    records_of(contents).remove(0)
}

/// Returns a request for the zone "example."; with a serial, an IXFR request.
fn request(serial: Option<u32>) -> Vec<u8> {
    let name: Name = "eXample.".parse().unwrap();
    let qtype = if serial.is_some() { Rtype::IXFR } else { Rtype::AXFR };
    let mut out = Vec::new();
    nonesuch_proto::message::push_query(&name, qtype, 0x1234, flags::RD, &mut out);
    if let Some(serial) = serial {
        out[9] = 1;
        out.extend_from_slice(&[0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 22, 0, 0]);
        out.extend_from_slice(&serial.to_be_bytes());
        out.extend_from_slice(&[0; 16]);
    }
    out
}

/// Parameters of the answers to requests.
struct Server {
    contents: Arc<Contents>,
    journal: Option<Journal>,
    transfer_access: AccessList,
    is_signed_online: bool,
    outgoing: Arc<OutgoingTransfers>,
    tls: Option<TlsSession>,
    max_datagram_octets: usize,
    opt: Vec<u8>,
}

impl Server {
    fn new(contents: &Arc<Contents>) -> Self {
        Self {
            contents: Arc::clone(contents),
            journal: None,
            transfer_access: AccessList::allow_all(),
            is_signed_online: false,
            outgoing: Arc::new(OutgoingTransfers::new(2, || NOON)),
            tls: None,
            max_datagram_octets: 1232,
            opt: Vec::new(),
        }
    }

    fn begin(
        &self,
        message: &[u8],
        tsig: Option<&tsig::VerifiedRequest>,
        is_datagram: bool,
        out: &mut Vec<u8>,
    ) -> TransferAnswer {
        self.begin_for(CLIENT.parse().unwrap(), message, tsig, is_datagram, out)
    }

    fn begin_for(
        &self,
        client: SocketAddr,
        message: &[u8],
        tsig: Option<&tsig::VerifiedRequest>,
        is_datagram: bool,
        out: &mut Vec<u8>,
    ) -> TransferAnswer {
        let query = Query::parse(message).unwrap();
        let opt = &self.opt[..];
        let outbound_request = OutboundRequest {
            message,
            query: &query,
            is_datagram,
            tls: self.tls,
            client,
            tsig,
            opt,
            max_datagram_octets: self.max_datagram_octets,
        };
        let zone = ZoneToSend {
            contents: Some(&self.contents),
            journal: self.journal.as_ref(),
            transfer_access: &self.transfer_access,
            is_signed_online: self.is_signed_online,
        };
        begin(&outbound_request, Some(&zone), &self.outgoing, out)
    }

    fn refusal(&self, message: &[u8], is_datagram: bool) -> TransferRefusal {
        match self.begin(message, None, is_datagram, &mut Vec::new()) {
            TransferAnswer::Refuse(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    }

    /// Returns all messages of a response.
    fn messages(&self, message: &[u8], is_datagram: bool) -> Vec<Vec<u8>> {
        self.signed_messages(message, None, is_datagram)
    }

    fn signed_messages(
        &self,
        message: &[u8],
        tsig: Option<&tsig::VerifiedRequest>,
        is_datagram: bool,
    ) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        match self.begin(message, tsig, is_datagram, &mut out) {
            TransferAnswer::Single => vec![out],
            TransferAnswer::Stream(mut sending) => {
                let mut messages = Vec::new();
                while sending.next(&mut out).unwrap() {
                    messages.push(out.clone());
                }
                messages
            }
            TransferAnswer::Refuse(refusal) => panic!("{refusal}"),
            TransferAnswer::Truncate => panic!("truncated"),
        }
    }
}

/// Returns the records of all messages, and checks the properties of each message.
fn records(messages: &[Vec<u8>]) -> Vec<Plain> {
    let mut all = Vec::new();
    for (index, octets) in messages.iter().enumerate() {
        let message = Message::parse(octets).unwrap();
        assert_eq!(message.header.id, 0x1234);
        assert_eq!(message.header.flags, flags::QR | flags::AA | flags::RD);
        assert_eq!(message.questions.len(), usize::from(index == 0));
        assert!(message.section(Section::Answer).count() > 0 && octets.len() <= 16_384);
        all.extend(message.section(Section::Answer).map(|record| {
            assert_eq!(record.class, Class::IN);
            (record.owner.wire().to_vec(), record.rtype.0, record.ttl, record.rdata.clone())
        }));
    }
    all
}

fn large(serial: u32) -> Arc<Contents> {
    let mut rest = String::new();
    for index in 0..2000 {
        rest.push_str(&format!("Sub{index} 3600 NS ns1.Sub{index}\nSub{index} NS ns.Other{}.\n", index % 7));
        rest.push_str(
            &format!("ns1.Sub{index} A 192.0.2.9\n ns1 30 AAAA 2001:db8::{index:x}\n",)
                .replace("\n ns1", &format!("\nns1.sub{index}")),
        );
        rest.push_str(&format!("host{index} MX 10 Mail.Sub{index}\nhost{index} TXT \"x\" \"y\"\n"));
    }
    zone(serial, &rest)
}

#[test]
fn a_zone_is_sent_completely_between_two_soa_records() {
    for contents in [zone(7, ""), large(7)] {
        let messages = Server::new(&contents).messages(&request(None), false);
        let mut expected = records_of(&contents);
        expected.push(soa_of(&contents));
        assert_eq!(records(&messages), expected);
        assert!(messages.iter().rev().skip(1).all(|message| message.len() > 16_000), "messages are filled");
    }
    assert!(Server::new(&large(7)).messages(&request(None), false).len() > 10);
}

#[test]
fn names_are_compressed_and_retain_their_letter_case() {
    let contents = zone(7, "a NS nS.example.\nA.b NS Ns.Example.\n");
    let messages = Server::new(&contents).messages(&request(None), false);
    let octets: Vec<u8> = messages.concat();
    let occurrences = |text: &[u8]| octets.windows(text.len()).filter(|window| *window == text).count();
    // The name occurs once in the question as sent, once as in the zone, and once in the other case
    // in a target.
    assert_eq!(
        (occurrences(b"\x07eXample"), occurrences(b"\x07Example"), occurrences(b"\x07example")),
        (1, 1, 1)
    );
    assert_eq!((occurrences(b"\x02Ns"), occurrences(b"\x02nS")), (1, 1));
}

#[test]
fn only_the_first_message_has_opt() {
    let mut server = Server::new(&large(7));
    edns::push_opt(1232, 0, edns::DO, &mut server.opt);
    let messages = server.messages(&request(None), false);
    for (index, octets) in messages.iter().enumerate() {
        assert_eq!(Message::parse(octets).unwrap().opt().is_some(), index == 0);
    }
    assert_eq!(records(&messages).len() as u64, server.contents.record_count() + 1);
}

fn signed(message: &mut Vec<u8>) -> (tsig::VerifiedRequest, ResponseVerifier) {
    let key = || TsigKey::from_argument("hmac-sha256:Transfer:c2VjcmV0").unwrap();
    let keys = TsigKeys::new([key()]).unwrap();
    let verifier = sign_request(&Arc::new(key()), message, NOON);
    (keys.verify(message, NOON).unwrap().unwrap(), verifier)
}

#[test]
fn every_message_is_signed_if_the_request_is() {
    let mut server = Server::new(&large(7));
    server.transfer_access = AccessList::new(vec!["192.0.2.0/24 key:transfer".parse().unwrap()]);
    assert_eq!(server.refusal(&request(None), false), TransferRefusal::NotAllowed);
    let mut message = request(None);
    let (verified, mut verifier) = signed(&mut message);
    let messages = server.signed_messages(&message, Some(&verified), false);
    let mut without = Vec::new();
    for octets in &messages {
        let checked = verifier.verify(octets, NOON).unwrap();
        assert!(checked.is_signed && octets.len() <= 16_384);
        let mut octets = octets[..checked.end].to_vec();
        octets[11] -= 1;
        without.push(octets);
    }
    assert_eq!(verifier.finish(), Ok(()));
    assert_eq!(records(&without).len() as u64, server.contents.record_count() + 1);
}

/// Returns a server of the last of several versions, with a journal of the changes between them.
fn incremental(directory: &TempDir, versions: &[Arc<Contents>]) -> Server {
    let mut server = Server::new(versions.last().unwrap());
    let (journal, _) = Journal::open(&directory.path().join("j"), versions[0].apex(), 1 << 20).unwrap();
    for pair in versions.windows(2) {
        journal.append(&ChangeSet::between(&pair[0], &pair[1], |_| true)).unwrap();
    }
    server.journal = Some(journal);
    server
}

/// Returns the content of an incremental response according to RFC 1995 §4.
fn expected_changes(versions: &[Arc<Contents>]) -> Vec<Plain> {
    let newest = soa_of(versions.last().unwrap());
    let mut all = vec![newest.clone()];
    for pair in versions.windows(2) {
        let change = ChangeSet::between(&pair[0], &pair[1], |_| true);
        all.extend(records_of(change.removed()));
        all.extend(records_of(change.added()));
    }
    all.push(newest);
    all
}

fn versions() -> Vec<Arc<Contents>> {
    let filler: String = (0..200).map(|index| format!("filler{index} TXT \"some octets\"\n")).collect();
    (1..=4)
        .map(|serial| zone(serial, &format!("{filler}a{serial} A 192.0.2.{serial}\nb {serial} TXT x\n")))
        .collect()
}

#[test]
fn changes_are_sent_in_order_from_every_version_in_the_journal() {
    let directory = TempDir::new().unwrap();
    let versions = versions();
    let server = incremental(&directory, &versions);
    for from in 1..=3_u32 {
        let expected = expected_changes(&versions[from as usize - 1..]);
        for is_datagram in [false, true] {
            assert_eq!(records(&server.messages(&request(Some(from)), is_datagram)), expected);
        }
    }
}

#[test]
fn a_client_with_the_newest_version_gets_the_soa_record() {
    let directory = TempDir::new().unwrap();
    let server = incremental(&directory, &versions());
    for serial in [4, 5, 0x7fff_ffff] {
        for is_datagram in [false, true] {
            let messages = server.messages(&request(Some(serial)), is_datagram);
            assert_eq!(records(&messages), [soa_of(&server.contents)]);
        }
    }
}

#[test]
fn the_complete_zone_is_sent_if_the_journal_lacks_the_version() {
    let directory = TempDir::new().unwrap();
    let versions = versions();
    let mut server = incremental(&directory, &versions);
    let mut whole = records_of(&server.contents);
    whole.push(soa_of(&server.contents));
    // A serial before the first version, and a serial that is neither earlier nor later (RFC 1982
    // §3.2).
    for serial in [0, 0x8000_0004] {
        assert_eq!(records(&server.messages(&request(Some(serial)), false)), whole);
        assert_eq!(records(&server.messages(&request(Some(serial)), true)), [soa_of(&server.contents)]);
    }
    server.journal = None;
    assert_eq!(records(&server.messages(&request(Some(3)), false)), whole);
    // The changes are larger than the zone.
    let filler: String = (0..20).map(|index| format!("filler{index} TXT x\n")).collect();
    let directory = TempDir::new().unwrap();
    let versions: Vec<_> =
        (1..=9).map(|serial| zone(serial, &format!("{filler}a{serial} TXT x\nb{serial} TXT y\n"))).collect();
    let server = incremental(&directory, &versions);
    let first = Message::parse(&server.messages(&request(Some(1)), false)[0]).unwrap();
    assert_eq!(first.section(Section::Answer).count() as u64, server.contents.record_count() + 1);
    assert_eq!(records(&server.messages(&request(Some(8)), false)), expected_changes(&versions[7..]));
}

#[test]
fn changes_that_do_not_fit_into_a_datagram_are_requested_again_over_tcp() {
    let directory = TempDir::new().unwrap();
    let mut server = incremental(&directory, &versions());
    edns::push_opt(1232, 0, 0, &mut server.opt);
    let mut message = request(Some(1));
    let (verified, _) = signed(&mut message);
    let whole = server.signed_messages(&message, Some(&verified), true).remove(0);
    // The size limit is exactly sufficient, with OPT and TSIG; then one octet less.
    server.max_datagram_octets = whole.len();
    assert_eq!(server.signed_messages(&message, Some(&verified), true), [whole.as_slice()]);
    server.max_datagram_octets -= 1;
    let alone = server.signed_messages(&message, Some(&verified), true).remove(0);
    let records: Vec<_> =
        Message::parse(&alone).unwrap().section(Section::Answer).map(|record| record.rtype).collect();
    assert_eq!(records, [Rtype::SOA]);
}

/// RFC 1995 §2: if a response does not fit into a datagram, it is only the current SOA record. RFC
/// 1035 §4.2.1 limits that response too.
#[test]
fn no_answer_over_udp_is_longer_than_the_datagram() {
    let (long, host, mailbox) = ("m".repeat(63), "n".repeat(59), "o".repeat(59));
    for labels in 0..=3 {
        let names = format!("{long}.").repeat(labels);
        let version = |serial: u32| {
            let text = format!(
                "$TTL 60\n@ SOA {names}{host}. {names}{mailbox}. {serial} 2 3 4 5\n@ NS Ns\na{serial} A 192.0.2.1\n"
            );
            let apex = "Example.".parse().unwrap();
            Arc::new(read_text(text.as_bytes(), Path::new("zone"), Some(&apex)).unwrap().contents)
        };
        let directory = TempDir::new().unwrap();
        let mut server = incremental(&directory, &[version(1), version(2), version(3)]);
        let soa = soa_of(&server.contents);
        for (limit, has_opt) in [(512, false), (512, true), (1232, true)] {
            server.max_datagram_octets = limit;
            server.opt.clear();
            if has_opt {
                edns::push_opt(1232, 0, 0, &mut server.opt);
            }
            for (serial, is_signed) in [(0, false), (1, false), (2, true), (3, false), (3, true)] {
                let mut message = request(Some(serial));
                let verified = is_signed.then(|| signed(&mut message).0);
                let mut out = Vec::new();
                let what = format!("{labels} {limit} {has_opt} {serial} {is_signed}");
                match server.begin(&message, verified.as_ref(), true, &mut out) {
                    TransferAnswer::Single => {
                        assert!(out.len() <= limit, "{what}: {}", out.len());
                        let message = Message::parse(&out).unwrap();
                        let rdata =
                            message.section(Section::Answer).next().map(|record| record.rdata.clone());
                        assert_eq!(rdata.as_ref(), Some(&soa.3), "{what}");
                    }
                    // Header 12, question 13, owner and fields 19; TSIG 81.
                    TransferAnswer::Truncate => {
                        let tail = server.opt.len() + if is_signed { 81 } else { 0 };
                        assert!(out.is_empty() && 44 + soa.3.len() + tail > limit, "{what}");
                    }
                    other => panic!("{what}: {other:?}"),
                }
            }
        }
        // Over TCP, the response fits.
        assert_eq!(records(&server.messages(&request(Some(3)), false)), [soa]);
    }
}

#[test]
fn refusals_say_why() {
    let mut server = Server::new(&zone(7, ""));
    assert_eq!(server.refusal(&request(None), true), TransferRefusal::Datagram);
    let mut without_soa = request(Some(3));
    without_soa[9] = 0;
    assert_eq!(server.refusal(&without_soa[..HEADER + 13], false), TransferRefusal::NoSerial);
    let mut of_another = request(Some(3));
    of_another[HEADER + 13 + 1] = 0;
    assert_eq!(server.refusal(&of_another, false), TransferRefusal::NoSerial);
    server.is_signed_online = true;
    assert_eq!(server.refusal(&request(None), false), TransferRefusal::SignedOnline);
    // No access list could permit the transfer.
    server.transfer_access = AccessList::default();
    assert_eq!(server.refusal(&request(None), false), TransferRefusal::SignedOnline);
    server.is_signed_online = false;
    assert_eq!(server.refusal(&request(Some(7)), true), TransferRefusal::NotAllowed);
    let message = request(None);
    let query = Query::parse(&message).unwrap();
    let client = CLIENT.parse().unwrap();
    let outbound_request = OutboundRequest {
        message: &message,
        query: &query,
        is_datagram: false,
        tls: None,
        client,
        tsig: None,
        opt: &[],
        max_datagram_octets: 0,
    };
    let outcome = begin(&outbound_request, None, &server.outgoing, &mut Vec::new());
    assert!(matches!(outcome, TransferAnswer::Refuse(TransferRefusal::NotAuthoritative)));
    assert_eq!(
        (
            TransferRefusal::NotAllowed.rcode(),
            TransferRefusal::NotAllowed.extended_error().map(|error| error.code)
        ),
        (Rcode::REFUSED, Some(18))
    );
    assert_eq!(
        (TransferRefusal::NotAuthoritative.rcode().0, TransferRefusal::Datagram.rcode()),
        (9, Rcode::FORMERR)
    );
}

/// Transfers over TLS need TLS 1.3 and ALPN `dot` (RFC 9103 §7.1, §7.2).
#[test]
fn transfers_over_tls_require_its_version_and_alpn_protocol() {
    let mut server = Server::new(&large(7));
    server.transfer_access = AccessList::new(vec!["tls".parse().unwrap()]);
    assert_eq!(server.refusal(&request(None), false), TransferRefusal::NeedsTls);
    for (is_tls13, is_dot) in [(false, true), (true, false), (false, false)] {
        server.tls = Some(TlsSession { is_tls13, is_dot });
        let refusal = server.refusal(&request(None), false);
        assert_eq!((refusal, refusal.rcode()), (TransferRefusal::WeakTls, Rcode::REFUSED));
        assert_eq!(refusal.extended_error().map(|error| error.code), Some(18));
    }
    server.tls = Some(TlsSession { is_tls13: true, is_dot: true });
    assert!(server.messages(&request(None), false).len() > 1);
}

#[test]
fn transfers_are_limited_in_number_and_reported() {
    let reports: Arc<std::sync::Mutex<Vec<(TransferOutcome, u64)>>> = Arc::default();
    let mut server = Server::new(&large(7));
    let list = Arc::clone(&reports);
    let observe = move |status: &TransferStatus| list.lock().unwrap().push((status.outcome, status.records));
    server.outgoing = Arc::new(OutgoingTransfers::new(2, || NOON).with_observer(observe));
    let start = || match server.begin(&request(None), None, false, &mut Vec::new()) {
        TransferAnswer::Stream(sending) => sending,
        other => panic!("{other:?}"),
    };
    let (mut first, second) = (start(), start());
    assert_eq!(server.refusal(&request(None), false), TransferRefusal::TooMany);
    let mut message = Vec::new();
    assert!(first.next(&mut message).unwrap());
    let status = server.outgoing.status();
    assert_eq!((status.len(), status[0].messages, status[0].octets), (2, 1, message.len() as u64));
    assert_eq!((status[0].kind, status[0].serial), (TransferKind::Axfr, 7));
    drop(second);
    while first.next(&mut message).unwrap() {}
    drop(first);
    assert!(server.outgoing.status().is_empty());
    let all = server.contents.record_count() + 1;
    let refused = (TransferOutcome::Refused(TransferRefusal::TooMany), 0);
    let expected = [refused, (TransferOutcome::Aborted, 0), (TransferOutcome::Sent, all)];
    assert_eq!(*reports.lock().unwrap(), expected);
    server.messages(&request(Some(7)), true);
    assert_eq!(reports.lock().unwrap()[3], (TransferOutcome::SoaOnly, 0));
    start();
}

#[test]
fn records_of_any_length_are_sent_or_the_transfer_is_aborted() {
    // A record with RDATA of 65,000 octets is alone in its message. With 490 octets more, no room
    // for a TSIG record remains.
    for (octets, is_signed, is_sent) in [(65_000, true, true), (65_490, false, true), (65_490, true, false)] {
        let rdata = "00".repeat(octets);
        let contents = zone(7, &format!("long TYPE65000 \\# {octets} {rdata}\nz A 192.0.2.1\n"));
        let server = Server::new(&contents);
        let mut request = request(None);
        let verified = is_signed.then(|| signed(&mut request).0);
        let TransferAnswer::Stream(mut sending) =
            server.begin(&request, verified.as_ref(), false, &mut Vec::new())
        else {
            panic!("no stream");
        };
        let (mut message, mut count) = (Vec::new(), 0);
        let ended = loop {
            match sending.next(&mut message) {
                Ok(true) => count += Message::parse(&message).unwrap().section(Section::Answer).count(),
                other => break other,
            }
        };
        assert_eq!(ended.is_ok(), is_sent);
        assert!(!is_sent || count as u64 == contents.record_count() + 1);
    }
}

/// A change of several megabytes: the cost of each message does not depend on the size of the
/// change, and only a bounded part of the change is in memory.
#[test]
fn a_large_change_is_sent_in_bounded_memory() {
    let directory = TempDir::new().unwrap();
    let version = |serial: u32| {
        let mut rest = String::new();
        for name in 0..30_000 {
            rest.push_str(&format!("n{name} TXT \"{serial} {}\"\n", "x".repeat(name % 200)));
        }
        zone(serial, &rest)
    };
    let versions = [version(1), version(2)];
    let mut server = Server::new(&versions[1]);
    let (journal, _) = Journal::open(&directory.path().join("j"), versions[0].apex(), 64 << 20).unwrap();
    // Four of ten names change, because changes that are larger than the zone would be sent as the
    // complete zone.
    let is_taken = |node: Node<'_>| {
        node.name().labels().next().is_some_and(|label| label.last().is_some_and(|last| last % 3 == 0))
    };
    let takes = |node: Node<'_>, rrset: Rrset<'_>| rrset.rtype() == Rtype::SOA || is_taken(node);
    let change = ChangeSet::between_nodes(&versions[0], &versions[1], takes);
    journal.append(&change).unwrap();
    let octets = std::fs::metadata(directory.path().join("j")).unwrap().len();
    assert!(octets > 3 << 20, "{octets}");
    server.journal = Some(journal);
    let TransferAnswer::Stream(mut sending) = server.begin(&request(Some(1)), None, false, &mut Vec::new())
    else {
        panic!("no stream");
    };
    let (mut messages, mut message, mut most) = (Vec::new(), Vec::new(), 0);
    while sending.next(&mut message).unwrap() {
        most = most.max(sending.journal_bytes());
        messages.push(message.clone());
    }
    assert!(most > 0 && most <= 1 << 20, "{most}");
    assert!(messages.len() > 100 && messages.iter().all(|message| message.len() <= TARGET_OCTETS));
    let newest = soa_of(&versions[1]);
    let sides = [records_of(change.removed()), records_of(change.added())].concat();
    assert!(records(&messages) == [vec![newest.clone()], sides, vec![newest]].concat());
}

#[test]
fn a_journal_that_is_damaged_during_a_transfer_aborts_it() {
    let directory = TempDir::new().unwrap();
    let server = incremental(&directory, &versions());
    let TransferAnswer::Stream(mut sending) = server.begin(&request(Some(1)), None, false, &mut Vec::new())
    else {
        panic!("no stream");
    };
    let path = directory.path().join("j");
    let mut octets = std::fs::read(&path).unwrap();
    *octets.last_mut().unwrap() ^= 1;
    std::fs::write(&path, octets).unwrap();
    let error = sending.write_next(&mut Vec::new()).unwrap_err();
    let RecordsError::Journal(JournalError::Altered { from: 3, path: at }) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*at, path);
}

proptest! {
    #[test]
    fn names_come_back_octet_for_octet(
        names in proptest::collection::vec(proptest::collection::vec("[aAb\\\\]{1,3}", 0..6), 1..60),
        padding in 0usize..20_000,
    ) {
        let mut message = vec![0; HEADER];
        let mut compressor = Compressor::new();
        let mut expected = Vec::new();
        for (index, labels) in names.iter().enumerate() {
            let name = labels.iter().fold(Name::root(), |name, label| Name::prepend(label.as_bytes(), name.view()).unwrap());
            let at = message.len();
            if index % 3 == 0 {
                compressor.end_owner();
                compressor.push_record(name.view(), Rtype::A, 60, &[0; 4], &mut message);
            } else {
                compressor.push_name(name.view(), &mut message);
            }
            expected.push((at, name));
            if index == names.len() / 2 {
                message.resize(message.len() + padding, 0);
            }
        }
        for (at, name) in expected {
            let (found, _) = Name::from_message(&message, at).unwrap();
            prop_assert_eq!(found.wire(), name.wire());
        }
    }
}
