//! A primary in this process, which serves the versions of a zone over UDP and TCP, with faults on
//! demand; and a [`ZoneStore`] for tests.

use crate::{
    PublishError, ReceivedVersion, RejectedVersions, RejectionPeriod, StoredState, Timers, ZoneStore,
};
use nonesuch_proto::edns;
use nonesuch_proto::message::{HEADER, Header, Message, Section, flags};
use nonesuch_proto::{Class, Name, NameRef, Rtype};
use nonesuch_server::tsig::TsigKeys;
use nonesuch_zone::read::read_text;
use nonesuch_zone::{ChangeSet, Contents};
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

pub(super) fn apex() -> Name {
    "example.".parse().unwrap()
}

/// Returns a version of the zone; its timers are in seconds.
pub(super) fn version(serial: u32, timers: [u32; 3], rest: &str) -> Contents {
    let [refresh, retry, expire] = timers;
    let text = format!(
        "$TTL 60\n@ SOA ns host {serial} {refresh} {retry} {expire} 300\n@ NS ns\nns A 192.0.2.1\nv TXT \"{serial}\"\n{rest}"
    );
    read_text(text.as_bytes(), Path::new("zone"), Some(&apex())).unwrap().contents
}

/// The behaviour of the primary.
#[derive(Default)]
pub(super) struct Behaviour {
    pub(super) versions: Vec<Contents>,
    /// Response code for IXFR.
    pub(super) ixfr_rcode: Option<u8>,
    /// Whether the primary answers nothing.
    pub(super) is_silent: bool,
    /// Whether the response to IXFR is only the newest SOA record.
    pub(super) gives_only_soa: bool,
    /// Whether the response to AXFR is the oldest version.
    pub(super) serves_oldest: bool,
    /// Value of the EXPIRE option in responses, in seconds.
    pub(super) expire: Option<u32>,
    /// Whether queries with EDNS get FORMERR.
    pub(super) rejects_edns: bool,
    /// Octets after which the primary closes the connection of a transfer.
    pub(super) closes_after_octets: Option<usize>,
    /// The types of the received queries, in order.
    pub(super) asked: Vec<Rtype>,
}

pub(super) struct Primary {
    pub(super) address: SocketAddr,
    behaviour: Arc<Mutex<Behaviour>>,
    is_stopped: Arc<AtomicBool>,
}

impl Primary {
    pub(super) fn start(versions: Vec<Contents>) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let udp = UdpSocket::bind(address).unwrap();
        udp.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let behaviour = Arc::new(Mutex::new(Behaviour { versions, ..Behaviour::default() }));
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (for_udp, stop_udp) = (Arc::clone(&behaviour), Arc::clone(&is_stopped));
        std::thread::spawn(move || serve_udp(&udp, &for_udp, &stop_udp));
        let (for_tcp, stop_tcp) = (Arc::clone(&behaviour), Arc::clone(&is_stopped));
        std::thread::spawn(move || {
            for stream in tcp.incoming().take_while(|_| !stop_tcp.load(SeqCst)).flatten() {
                serve_tcp(stream, &for_tcp);
            }
        });
        Self { address, behaviour, is_stopped }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.lock().unwrap());
    }

    pub(super) fn asked(&self) -> Vec<Rtype> {
        self.behaviour.lock().unwrap().asked.clone()
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        self.is_stopped.store(true, SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve_udp(socket: &UdpSocket, behaviour: &Mutex<Behaviour>, is_stopped: &AtomicBool) {
    let mut buffer = [0; 4096];
    while !is_stopped.load(SeqCst) {
        let Ok((length, client)) = socket.recv_from(&mut buffer) else { continue };
        for answer in answer(&buffer[..length], &mut behaviour.lock().unwrap()) {
            socket.send_to(&answer, client).unwrap();
        }
    }
}

fn serve_tcp(mut stream: TcpStream, behaviour: &Mutex<Behaviour>) {
    let mut length = [0; 2];
    if stream.read_exact(&mut length).is_err() {
        return;
    }
    let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut question).unwrap();
    let mut behaviour = behaviour.lock().unwrap();
    let mut octets = Vec::new();
    for answer in answer(&question, &mut behaviour) {
        octets.extend_from_slice(&(answer.len() as u16).to_be_bytes());
        octets.extend_from_slice(&answer);
    }
    octets.truncate(behaviour.closes_after_octets.unwrap_or(usize::MAX));
    let _ = stream.write_all(&octets);
}

type Row = (Name, Rtype, Vec<u8>);

fn soa_of(contents: &Contents) -> Row {
    let rdata = contents.apex_rrset(Rtype::SOA).unwrap().rdatas().next().unwrap();
    (contents.apex().clone(), Rtype::SOA, rdata.to_vec())
}

fn rows(contents: &Contents) -> impl Iterator<Item = Row> {
    let rrsets = contents.nodes().flat_map(|node| node.rrsets().map(move |rrset| (node, rrset)));
    let rrsets = rrsets.filter(|(_, rrset)| rrset.rtype() != Rtype::SOA);
    rrsets.flat_map(|(node, rrset)| {
        rrset.rdatas().map(move |rdata| (node.name().to_name(), rrset.rtype(), rdata.to_vec()))
    })
}

/// Returns the messages of a response, with a few records in each.
fn answer(question: &[u8], behaviour: &mut Behaviour) -> Vec<Vec<u8>> {
    let (_, kind) = NameRef::split_from(&question[HEADER..]).unwrap();
    let qtype = Rtype(u16::from_be_bytes([kind[0], kind[1]]));
    behaviour.asked.push(qtype);
    if behaviour.is_silent {
        return Vec::new();
    }
    if behaviour.rejects_edns && question[11] > 0 {
        return vec![message(question, &[], 1)];
    }
    let whole = if behaviour.serves_oldest { behaviour.versions.first() } else { behaviour.versions.last() };
    let newest = if qtype == Rtype::AXFR { whole } else { behaviour.versions.last() };
    let Some(newest) = newest else { return vec![message(question, &[], 2)] };
    let mut all = vec![soa_of(newest)];
    match qtype {
        Rtype::AXFR => all.extend(rows(newest)),
        Rtype::IXFR if behaviour.gives_only_soa => {}
        Rtype::IXFR => {
            if let Some(rcode) = behaviour.ixfr_rcode {
                return vec![message(question, &[], rcode)];
            }
            let asked = Message::parse(question).unwrap();
            let soa = asked.section(Section::Authority).next().unwrap();
            let serial =
                soa.rdata[soa.rdata.len() - 20..].first_chunk().map(|octets| u32::from_be_bytes(*octets));
            let from = behaviour.versions.iter().position(|old| old.soa().map(|soa| soa.serial) == serial);
            for pair in behaviour.versions[from.unwrap_or_default()..].windows(2) {
                let change = ChangeSet::between(&pair[0], &pair[1], |_| true);
                all.push(soa_of(&pair[0]));
                all.extend(rows(change.removed()));
                all.push(soa_of(&pair[1]));
                all.extend(rows(change.added()));
            }
        }
        _ => {}
    }
    if all.len() > 1 {
        all.push(soa_of(newest));
    }
    let mut messages: Vec<Vec<u8>> = all.chunks(3).map(|rows| message(question, rows, 0)).collect();
    if behaviour.expire.is_some() && asks_for_expiry(question) {
        let start = messages[0].len();
        edns::push_opt(1232, 0, 0, &mut messages[0]);
        edns::push_expire(behaviour.expire, &mut messages[0]);
        edns::set_options_length(start, &mut messages[0]);
        messages[0][11] = 1;
    }
    messages
}

fn asks_for_expiry(question: &[u8]) -> bool {
    let asked = Message::parse(question).unwrap();
    asked.opt().is_some_and(|opt| edns::Options::new(&opt.rdata).any(|option| option == (edns::EXPIRE, &[])))
}

fn message(question: &[u8], rows: &[Row], rcode: u8) -> Vec<u8> {
    let header = Header::read(question).unwrap();
    let (name, _) = NameRef::split_from(&question[HEADER..]).unwrap();
    let answer_flags = flags::QR | flags::AA | u16::from(rcode);
    let header = Header { id: header.id, flags: answer_flags, counts: [1, rows.len() as u16, 0, 0] };
    let mut out = header.to_octets().to_vec();
    out.extend_from_slice(&question[HEADER..HEADER + name.len() + 4]);
    for (owner, rtype, rdata) in rows {
        out.extend_from_slice(owner.wire());
        out.extend_from_slice(&rtype.0.to_be_bytes());
        out.extend_from_slice(&Class::IN.0.to_be_bytes());
        out.extend_from_slice(&60u32.to_be_bytes());
        out.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
        out.extend_from_slice(rdata);
    }
    out
}

/// A zone in the store.
#[derive(Default)]
struct Zone {
    contents: Option<Arc<Contents>>,
    is_expired: bool,
    /// The number of steps of each published version.
    published: Vec<usize>,
}

/// A store that publishes all versions except those with a serial in `refused`.
#[derive(Default)]
pub(super) struct TestStore {
    zones: Mutex<HashMap<Name, Zone>>,
    changed: Condvar,
    pub(super) refused: Mutex<Vec<u32>>,
    pub(super) keys: TsigKeys,
    /// The stored state of the zones; `None`: nothing is stored.
    pub(super) stored: Mutex<Option<HashMap<Name, StoredState>>>,
    /// All expiry times that were set.
    pub(super) expiries: Mutex<Vec<Option<Instant>>>,
    /// Number of calls of `keys` that panic, which aborts their transfers.
    pub(super) panics: AtomicUsize,
}

impl TestStore {
    pub(super) fn with_keys(keys: TsigKeys) -> Self {
        Self { keys, ..Self::default() }
    }

    pub(super) fn put(&self, contents: Contents) {
        let apex = contents.apex().clone();
        self.zones.lock().unwrap().entry(apex).or_default().contents = Some(Arc::new(contents));
    }

    /// Waits until the zone has this serial, and is served or expired as requested.
    #[track_caller]
    pub(super) fn wait_for(&self, apex: &Name, serial: u32, is_expired: bool) -> Arc<Contents> {
        let is_there = |zone: &Zone| {
            let found = zone.contents.as_ref().and_then(|contents| contents.soa()).map(|soa| soa.serial);
            found == Some(serial) && zone.is_expired == is_expired
        };
        let zones = self.zones.lock().unwrap();
        let patience = Duration::from_secs(30);
        let waits = |zones: &mut HashMap<Name, Zone>| !zones.get(apex).is_some_and(is_there);
        let (zones, timeout) = self.changed.wait_timeout_while(zones, patience, waits).unwrap();
        assert!(!timeout.timed_out(), "{apex} {serial} expired {is_expired}");
        zones[apex].contents.clone().unwrap()
    }

    pub(super) fn published(&self, apex: &Name) -> Vec<usize> {
        self.zones.lock().unwrap().get(apex).map(|zone| zone.published.clone()).unwrap_or_default()
    }

    /// Returns a store that keeps the state that zones need after a restart.
    pub(super) fn storing() -> Self {
        Self { stored: Mutex::new(Some(HashMap::new())), ..Self::default() }
    }

    pub(super) fn note(&self, apex: &Name, change: impl FnOnce(&mut StoredState)) {
        if let Some(stored) = &mut *self.stored.lock().unwrap() {
            change(stored.entry(apex.clone()).or_default());
        }
    }

    fn change(&self, apex: &Name, change: impl FnOnce(&mut Zone)) {
        change(self.zones.lock().unwrap().entry(apex.clone()).or_default());
        self.changed.notify_all();
    }
}

impl ZoneStore for TestStore {
    fn contents(&self, apex: &Name) -> Option<Arc<Contents>> {
        self.zones.lock().unwrap().get(apex).and_then(|zone| zone.contents.clone())
    }

    fn publish(&self, apex: &Name, received: ReceivedVersion) -> Result<(), PublishError> {
        let serial = received.contents.soa().unwrap().serial;
        if self.refused.lock().unwrap().contains(&serial) {
            return Err(PublishError::Rejected {
                reason: "a signature is missing".to_owned(),
                verdict: RejectionPeriod::Final,
            });
        }
        self.change(apex, |zone| {
            zone.contents = Some(Arc::new(received.contents));
            zone.published.push(received.steps.len());
        });
        Ok(())
    }

    fn expire(&self, apex: &Name) {
        self.change(apex, |zone| zone.is_expired = true);
    }

    fn restore(&self, apex: &Name) {
        self.change(apex, |zone| zone.is_expired = false);
    }

    fn load_state(&self, apex: &Name) -> StoredState {
        self.stored.lock().unwrap().as_ref().and_then(|all| all.get(apex).cloned()).unwrap_or_default()
    }

    fn store_timers(&self, apex: &Name, timers: Timers) {
        self.note(apex, |stored| stored.timers = Some(timers));
    }

    fn store_rejected(&self, apex: &Name, rejected: RejectedVersions) {
        let rejected = Some(rejected).filter(|rejected| !rejected.serials.is_empty());
        self.note(apex, |stored| stored.rejected = rejected);
    }

    fn forget(&self, apex: &Name) {
        self.note(apex, |stored| *stored = StoredState::default());
    }

    fn set_expiry(&self, _apex: &Name, expires: Option<Instant>) {
        self.expiries.lock().unwrap().push(expires);
    }

    fn keys(&self) -> TsigKeys {
        let left = self.panics.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        assert!(left.is_err(), "a transfer breaks off, as it is to");
        self.keys.clone()
    }
}
