//! Servers that misbehave: every enumeration ends in bounded time, with the reason.

use super::*;
use nonesuch_proto::message::{Message, Question, Record, flags};
use nonesuch_proto::{Class, bitmap};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

const ZONE: &str = "example.";

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// A server over UDP that answers with a function; `None` is no answer.
struct Server {
    address: std::net::SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(answer: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
        let (address, stop) = (socket.local_addr().expect("bound"), Arc::new(AtomicBool::new(false)));
        let stopping = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while !stopping.load(Relaxed) {
                let Ok((length, peer)) = socket.recv_from(&mut buffer) else { continue };
                if let Some(response) = answer(&buffer[..length]) {
                    socket.send_to(&response, peer).expect("sent");
                }
            }
        });
        Self { address, stop, thread: Some(thread) }
    }

    /// A server whose answers are records, by the name and type of the question.
    fn of_records(records: impl Fn(&Name, Rtype) -> Vec<Record> + Send + 'static) -> Self {
        Self::start(move |query| {
            let mut message = Message::parse(query).ok()?;
            let Question { name, rtype, .. } = message.questions.first()?.clone();
            message.header.flags = flags::QR | flags::AA;
            message.records = records(&name, rtype);
            Some(message.to_octets())
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn record(section: Section, owner: &Name, rtype: Rtype, rdata: Vec<u8>) -> Record {
    Record { section, owner: owner.clone(), rtype, class: Class::IN, ttl: 60, rdata }
}

fn soa(zone: &Name) -> Record {
    record(Section::Answer, zone, Rtype::SOA, [&[0, 0][..], &[0; 20]].concat())
}

fn nsec(section: Section, owner: &Name, next: &Name) -> Record {
    let mut rdata = next.wire().to_vec();
    bitmap::push(&[Rtype::A, Rtype::RRSIG, Rtype::NSEC], &mut rdata);
    record(section, owner, Rtype::NSEC, rdata)
}

fn options(server: std::net::SocketAddr) -> EnumerateOptions {
    let client = ClientOptions {
        server,
        rate: 100_000.0,
        timeout: Duration::from_millis(50),
        attempts: 2,
        max_queries: 60,
        time_limit: Duration::from_secs(20),
        tcp: false,
    };
    EnumerateOptions {
        zone: name(ZONE),
        client: Some(client),
        seed: 1,
        plan: Plan::new(&[Words::new(b"www\nmail".to_vec())], &[], &[], &[]).expect("a plan"),
        crack: true,
        depth: 1,
        threads: 1,
        crack_time_limit: Duration::from_secs(20),
        guesses: 10,
        stolen: None,
        now: 0,
    }
}

fn run(options: &EnumerateOptions) -> Result<EnumerationReport, EnumerateError> {
    enumerate(options, &mut State::new(&name(ZONE)), &mut |_| {})
}

/// Runs against a server with records; returns the reason why the enumeration ended early.
fn stopped(records: impl Fn(&Name, Rtype) -> Vec<Record> + Send + 'static) -> (String, EnumerationReport) {
    let server = Server::of_records(records);
    let report = run(&options(server.address)).expect("a report");
    assert!(!report.complete);
    (report.stopped.clone().unwrap_or_default(), report)
}

#[test]
fn a_silent_server_is_an_error() {
    let server = Server::start(|_| None);
    let error = run(&options(server.address)).expect_err("no answer");
    let EnumerateError::Unreachable(StopReason::NoResponse { attempts, fault, .. }) = error else {
        panic!("{error}");
    };
    assert!(matches!(fault, QueryFault::TimedOut(_)) && attempts == 2, "{fault}");
}

#[test]
fn garbage_and_answers_to_other_queries_are_an_error() {
    type Change = fn(&mut Vec<u8>);
    let changes: [Change; 4] = [
        |octets| octets.truncate(7),
        |octets| octets[1] ^= 1,
        |octets| octets[14] ^= 1,
        // The header announces a record, which is missing.
        |octets| octets[7] = 1,
    ];
    for change in changes {
        let server = Server::start(move |query| {
            let mut octets = query.to_vec();
            octets[2] |= 0x80;
            change(&mut octets);
            Some(octets)
        });
        let error = run(&options(server.address)).expect_err("no answer");
        assert!(matches!(error, EnumerateError::Unreachable(StopReason::NoResponse { .. })), "{error}");
    }
}

#[test]
fn a_server_of_another_zone_is_an_error() {
    let server = Server::of_records(|_, _| Vec::new());
    let error = run(&options(server.address)).expect_err("not authoritative");
    assert!(matches!(error, EnumerateError::NotServed { .. }), "{error}");
}

#[test]
fn a_truncated_response_without_tcp_is_an_error() {
    let server = Server::start(|query| {
        let mut octets = query.to_vec();
        octets[2] |= 0x82;
        Some(octets)
    });
    let error = run(&options(server.address)).expect_err("no answer");
    let EnumerateError::Unreachable(StopReason::NoResponse { fault, .. }) = error else { panic!("{error}") };
    assert!(matches!(fault, QueryFault::Io(_)), "{fault}");
}

/// The answers of a server with a chain: a function from an owner to its next name.
fn chain(
    next: impl Fn(&Name) -> Option<Name> + Send + 'static,
) -> impl Fn(&Name, Rtype) -> Vec<Record> + Send {
    move |asked, rtype| {
        let zone = name(ZONE);
        match rtype {
            Rtype::SOA => vec![soa(&zone)],
            Rtype::NSEC => next(asked).map(|next| nsec(Section::Answer, asked, &next)).into_iter().collect(),
            // Every denial has the same record, as in a chain.
            _ => vec![nsec(Section::Authority, &zone, &zone)],
        }
    }
}

/// `nN.example.` to the name with the next number.
fn numbered(owner: &Name, limit: u32) -> Option<u32> {
    let label = owner.view().labels().next()?.to_vec();
    let text = String::from_utf8(label).ok()?;
    let number = if *owner == name(ZONE) { Some(100) } else { text.strip_prefix('n')?.parse().ok() };
    number.filter(|number| *number < limit)
}

#[test]
fn a_chain_without_end_ends_at_the_limit() {
    let next = |owner: &Name| Some(name(&format!("n{}.example.", numbered(owner, 900)? + 1)));
    let (reason, report) = stopped(chain(next));
    assert_eq!(reason, StopReason::Queries(60).to_string());
    assert!(report.names.len() > 40, "{}", report.names.len());
    assert_eq!((report.queries, report.mechanism.as_deref()), (60, Some("NSEC")));
}

#[test]
fn a_chain_that_loops_ends_with_the_loop() {
    let next = |owner: &Name| match numbered(owner, 105) {
        Some(number) => Some(name(&format!("n{}.example.", number + 1))),
        None => Some(name("n102.example.")),
    };
    let (reason, report) = stopped(chain(next));
    let expected = StopReason::Backwards { owner: name("n105.example."), next: name("n102.example.") };
    assert_eq!(reason, expected.to_string());
    assert_eq!(report.names.len(), 6);
    // A name outside the zone, which follows in canonical order.
    let (reason, _) = stopped(chain(|_| Some(name("zzz."))));
    assert!(reason.contains("zzz."), "{reason}");
}

#[test]
fn an_interrupted_chain_names_the_place() {
    let next = |owner: &Name| numbered(owner, 103).map(|number| name(&format!("n{}.example.", number + 1)));
    let (reason, report) = stopped(chain(next));
    assert_eq!(reason, StopReason::NoRecord(name("n103.example.")).to_string());
    assert_eq!(report.names.len(), 3 + 1);
}

#[test]
fn a_server_that_falls_silent_leaves_what_was_found() {
    let server = Server::start({
        let answers = std::sync::atomic::AtomicU32::new(0);
        let records = chain(|owner| Some(name(&format!("n{}.example.", numbered(owner, 900)? + 1))));
        move |query| {
            let mut message = Message::parse(query).ok()?;
            let Question { name, rtype, .. } = message.questions.first()?.clone();
            message.header.flags = flags::QR | flags::AA;
            message.records = records(&name, rtype);
            (answers.fetch_add(1, Relaxed) < 20).then(|| message.to_octets())
        }
    });
    let report = run(&options(server.address)).expect("a report");
    assert!(report.stopped.is_some_and(|reason| reason.contains("no response")), "{:?}", report.queries);
    assert_eq!(report.names.len(), 17 + 1);
}

/// NSEC3 records that never close the chain: each covers a tenth of a millionth of all hashes.
#[test]
fn hashes_without_end_end_at_the_limit() {
    let records = |asked: &Name, rtype| {
        let zone = name(ZONE);
        if rtype == Rtype::SOA {
            return vec![soa(&zone)];
        }
        let mut owner = nonesuch_crypto::nsec3_hash(asked.view().to_canonical().wire(), &[], 0);
        let mut next = owner;
        (owner[3], next[3]) = (owner[3].saturating_sub(2), next[3].saturating_add(2));
        let mut rdata = vec![1, 0, 0, 0, 0, 20];
        rdata.extend_from_slice(&next);
        bitmap::push(&[Rtype::A], &mut rdata);
        let owner =
            Name::prepend(&nonesuch_dnssec::denial::nsec3::label(&owner), zone.view()).expect("a name");
        vec![record(Section::Authority, &owner, Rtype::NSEC3, rdata)]
    };
    let (reason, report) = stopped(records);
    assert_eq!(reason, StopReason::Queries(60).to_string());
    let hashes = report.hashes.expect("hashes");
    assert!(hashes.records > 50 && hashes.coverage < 1e-3, "{hashes:?}");
    // The number of names follows from the spans: about a hundred million.
    let estimate = report.estimated_names.expect("an estimate").names;
    assert!((1e6..1e10).contains(&estimate), "{estimate}");
    assert!(report.crack.is_some());
}

/// A server that always denies with the same record, which does not cover the name.
#[test]
fn a_denial_without_a_covering_record_is_named() {
    let records = |_: &Name, rtype| {
        let zone = name(ZONE);
        let mut rdata = vec![1, 0, 0, 0, 0, 20];
        rdata.extend_from_slice(&[2; 20]);
        bitmap::push(&[Rtype::A], &mut rdata);
        let owner =
            Name::prepend(&nonesuch_dnssec::denial::nsec3::label(&[1; 20]), zone.view()).expect("a name");
        let denial = record(Section::Authority, &owner, Rtype::NSEC3, rdata);
        if rtype == Rtype::SOA { vec![soa(&zone)] } else { vec![denial] }
    };
    let (reason, report) = stopped(records);
    assert!(reason.ends_with("without a record that covers it"), "{reason}");
    assert!(report.queries < 10);
}

#[test]
fn a_state_continues_where_it_ended() {
    let next = |owner: &Name| match numbered(owner, 180) {
        Some(number) => Some(name(&format!("n{}.example.", number + 1))),
        None => Some(name(ZONE)),
    };
    let server = Server::of_records(chain(next));
    let mut state = State::new(&name(ZONE));
    let first = enumerate(&options(server.address), &mut state, &mut |_| {}).expect("a report");
    assert!(!first.complete && first.queries == 60);
    let mut state = State::parse(&state.to_text()).expect("a state");
    let mut saved = 0;
    let second = enumerate(&options(server.address), &mut state, &mut |event| {
        saved += u32::from(matches!(event, Event::Save(_)));
    });
    let second = second.expect("a report");
    assert!(second.complete && second.queries < 60 && saved > 0, "{:?}", second.stopped);
    assert_eq!(second.names.len(), 81);
    let other = EnumerateOptions { zone: name("other."), ..options(server.address) };
    let error = enumerate(&other, &mut state, &mut |_| {}).expect_err("another zone");
    assert!(matches!(error, EnumerateError::OtherZone { .. }), "{error}");
}

#[test]
fn an_unsigned_zone_is_guessed_and_a_wildcard_ends_the_guesses() {
    let address = |asked: &Name| record(Section::Answer, asked, Rtype::A, vec![192, 0, 2, 1]);
    let server = Server::of_records(move |asked, rtype| match rtype {
        Rtype::SOA => vec![soa(&name(ZONE))],
        _ if *asked == name("www.example.") => vec![address(asked)],
        _ => Vec::new(),
    });
    // Without NXDOMAIN, a name without records looks the same as a name that does not exist.
    let report = run(&options(server.address)).expect("a report");
    assert!(report.stopped.is_some_and(|reason| reason.contains("wildcard")));
    assert_eq!(report.mechanism, None);
}
