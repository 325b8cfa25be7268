//! Memory of inbound transfers: a transfer never holds more than a fixed multiple of the bytes
//! charged for it.
//!
//! The input is the plan of a response to AXFR or IXFR: some records, and how often they are
//! repeated with other owners and in other steps. Therefore a few octets lead to transfers that are
//! large enough to measure. The target counts the allocations of the process.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_proto::message::{flags, push_query};
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_secondary::inbound::{
    InboundRequest, InboundTransfer, TransferBounds, TransferContent, apply_steps,
};
use nonesuch_zone::{Contents, read::read_text};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Maximum number of bytes that a transfer may hold for each byte charged.
const FACTOR: usize = 4;
/// Number of bytes that any transfer may hold in addition: tables of the threads that sort records,
/// and buffers with their first allocation.
const ALLOWANCE: usize = 64 << 10;
/// Maximum number of records of a response.
const RECORDS: usize = 4096;

const ID: u16 = 0x4e53;
const FIRST_SERIAL: u32 = 1;

/// Allocator that counts the allocated bytes, and their maximum since the start of [`measure`].
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

// SAFETY: every call is forwarded unchanged to the system's allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks exist while the contents are copied.
        grow(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `work`. Returns its result and the maximum number of bytes that it holds at once.
fn measure<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let outcome = work();
    (outcome, PEAK.load(Relaxed).saturating_sub(before))
}

static APEX: LazyLock<Name> = LazyLock::new(|| label(b"e", NameRef::ROOT));

/// The local version of the zone.
static ZONE: LazyLock<Contents> = LazyLock::new(|| {
    let text = format!("$ORIGIN e.\n@ 60 SOA . . {FIRST_SERIAL} 0 0 0 0\n");
    let reading = read_text(text.as_bytes(), Path::new("zone"), Some(&APEX));
    reading.unwrap_or_else(|error| panic!("{error}")).contents
});

fn label(label: &[u8], parent: NameRef<'_>) -> Name {
    Name::prepend(label, parent).unwrap_or_else(|error| panic!("{error}"))
}

/// A record of the plan.
struct Row<'d> {
    owner: Owner,
    rtype: Rtype,
    rdata: &'d [u8],
}

/// The owner of a record.
#[derive(Clone, Copy)]
enum Owner {
    Apex,
    /// The same name in each repetition, with a label of this length.
    Fixed(usize),
    /// A different name in each repetition, longer by this number of octets.
    Counted(usize),
}

/// A plan: the type of the response, the number of repetitions of its records, and the records.
struct Plan<'d> {
    is_incremental: bool,
    repeats: usize,
    rows: Vec<Row<'d>>,
}

impl<'d> Plan<'d> {
    fn read(data: &'d [u8]) -> Option<Self> {
        let (&[choice, high, low], mut rest) = data.split_first_chunk::<3>()?;
        let mut rows = Vec::new();
        while let Some((&[owner, rtype, length], tail)) = rest.split_first_chunk::<3>() {
            let (rdata, behind) = tail.split_at(usize::from(length).min(tail.len()));
            rest = behind;
            let octets = usize::from(owner >> 2);
            let owner = match owner & 3 {
                0 => Owner::Apex,
                1 => Owner::Fixed(octets.clamp(1, 63)),
                _ => Owner::Counted(octets.min(55)),
            };
            // Types of private use (RFC 6895 §3.1), for which all RDATA are valid.
            rows.push(Row { owner, rtype: Rtype(0xff00 | u16::from(rtype)), rdata });
        }
        let repeats = usize::from(u16::from_be_bytes([high, low]) % 2048).max(1);
        let repeats = repeats.min(RECORDS / (rows.len() + 2));
        (repeats > 0).then_some(Self { is_incremental: choice & 1 == 1, repeats, rows })
    }

    /// Returns the messages of the response.
    fn messages(&self) -> Vec<Vec<u8>> {
        let mut answer = Answer { messages: Vec::new(), is_incremental: self.is_incremental };
        let last = FIRST_SERIAL + if self.is_incremental { self.repeats as u32 } else { 1 };
        answer.push_soa(last);
        for repeat in 0..self.repeats {
            let serial = FIRST_SERIAL + repeat as u32;
            if self.is_incremental {
                answer.push_soa(serial);
                // The records that the previous step added.
                if repeat > 0 {
                    self.rows.iter().for_each(|row| answer.push(row, repeat - 1));
                }
                answer.push_soa(serial + 1);
            }
            self.rows.iter().for_each(|row| answer.push(row, repeat));
        }
        answer.push_soa(last);
        answer.messages
    }
}

/// Messages under construction.
struct Answer {
    messages: Vec<Vec<u8>>,
    is_incremental: bool,
}

impl Answer {
    fn push_soa(&mut self, serial: u32) {
        let mut rdata = vec![0; 22];
        rdata[2..6].copy_from_slice(&serial.to_be_bytes());
        self.push_record(APEX.view(), Rtype::SOA, &rdata);
    }

    fn push(&mut self, row: &Row<'_>, repeat: usize) {
        let owner = match row.owner {
            Owner::Apex => APEX.clone(),
            Owner::Fixed(octets) => label(&vec![b'f'; octets], APEX.view()),
            Owner::Counted(octets) => {
                label(format!("{repeat:x}{}", "x".repeat(octets)).as_bytes(), APEX.view())
            }
        };
        self.push_record(owner.view(), row.rtype, row.rdata);
    }

    fn push_record(&mut self, owner: NameRef<'_>, rtype: Rtype, rdata: &[u8]) {
        if self.messages.last().is_none_or(|message| message.len() > 16_000) {
            let qtype = if self.is_incremental { Rtype::IXFR } else { Rtype::AXFR };
            let mut message = Vec::new();
            push_query(&APEX, qtype, ID, flags::QR | flags::AA, &mut message);
            self.messages.push(message);
        }
        let Some(message) = self.messages.last_mut() else { return };
        let count = u16::from_be_bytes([message[6], message[7]]) + 1;
        message[6..8].copy_from_slice(&count.to_be_bytes());
        message.extend_from_slice(owner.wire());
        message.extend_from_slice(&rtype.0.to_be_bytes());
        message.extend_from_slice(&[0, 1, 0, 0, 0, 60]);
        message.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
        message.extend_from_slice(rdata);
    }
}

/// Reads the response and applies its steps. Returns the number of bytes charged.
fn transfer(asked: InboundRequest, messages: &[Vec<u8>]) -> u64 {
    let bounds = TransferBounds { records: u64::MAX, octets: u64::MAX, steps: u64::MAX };
    let mut inbound = InboundTransfer::new(APEX.clone(), ID, asked, bounds);
    for message in messages {
        if inbound.push(message).is_err() {
            return inbound.charged();
        }
    }
    let charged = inbound.charged();
    if let Ok(TransferContent::Ixfr(steps)) = inbound.finish() {
        let _ = apply_steps(&ZONE, &steps);
    }
    charged
}

fuzz_target!(|data: &[u8]| {
    let Some(plan) = Plan::read(data) else { return };
    let asked = if plan.is_incremental {
        InboundRequest::Ixfr { serial: FIRST_SERIAL }
    } else {
        InboundRequest::Axfr
    };
    let messages = plan.messages();
    LazyLock::force(&ZONE);
    let (charged, held) = measure(|| transfer(asked, &messages));
    let most = FACTOR * charged as usize + ALLOWANCE;
    assert!(
        held <= most,
        "a transfer holds {held} bytes and is charged with {charged}: {} rows, {} times",
        plan.rows.len(),
        plan.repeats
    );
});
