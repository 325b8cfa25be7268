//! The time of lookups in the cache of denials, in nanoseconds:
//!
//!     cargo run --release -p nonesuch-resolver --example denials_speed
//!
//! The cache has the root zone, an NSEC zone with 4,000 records and NSEC3 zones with one record or
//! 4,000, all without signatures.

use nonesuch_crypto::nsec3_hash;
use nonesuch_dnssec::validate::{Budget, TrustedKeys, ValidationLimits};
use nonesuch_net::machine::Now;
use nonesuch_proto::{Class, Name, NameRef, Rtype, bitmap};
use nonesuch_resolver::{DenialCache, DenialCacheOptions, RecordData, Rrset, Security};
use std::hint::black_box;
use std::time::Instant;

const RECORDS: u32 = 4000;
const LOOKUPS: u32 = 200_000;
/// SHA-1 blocks for each lookup.
const HASH_LIMIT: u32 = 64;

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn rrset(owner: Name, rtype: Rtype, rdata: &[u8]) -> Rrset {
    let records: RecordData = [rdata].into_iter().collect();
    let (signatures, security) = (RecordData::default(), Security::Secure);
    Rrset { owner, rtype, class: Class::IN, ttl: 3600, records, signatures, security, insecure: None }
}

fn soa(apex: &Name) -> Rrset {
    let mut rdata = [NameRef::ROOT.wire(), NameRef::ROOT.wire()].concat();
    rdata.extend([0, 0, 14, 16].repeat(5));
    rrset(apex.clone(), Rtype::SOA, &rdata)
}

fn map(types: &[Rtype]) -> Vec<u8> {
    let mut map = Vec::new();
    bitmap::push(types, &mut map);
    map
}

fn nsec(owner: &Name, next: &Name, types: &[Rtype]) -> Rrset {
    rrset(owner.clone(), Rtype::NSEC, &[next.wire(), &map(types)].concat())
}

/// The owner of an NSEC3 record.
fn hashed_owner(hash: &[u8; 20], apex: &Name) -> Name {
    let label: Vec<u8> = (0..32)
        .map(|at| {
            let bit = |bit: usize| hash[(5 * at + bit) / 8] >> (7 - (5 * at + bit) % 8) & 1;
            let digit = (0..5).fold(0, |digit, at| digit << 1 | bit(at));
            b"0123456789abcdefghijklmnopqrstuv"[usize::from(digit)]
        })
        .collect();
    Name::prepend(&label, apex.view()).expect("a name")
}

fn nsec3(hash: &[u8; 20], next: &[u8; 20], apex: &Name, types: &[Rtype], is_opt_out: bool) -> Rrset {
    let rdata = [&[1, is_opt_out.into(), 0, 0, 0, 20], &next[..], &map(types)].concat();
    rrset(hashed_owner(hash, apex), Rtype::NSEC3, &rdata)
}

fn insert(cache: &DenialCache, apex: &Name, mut records: Vec<Rrset>, now: Now) {
    let keys = TrustedKeys::new(apex, [], &ValidationLimits::default());
    records.push(soa(apex));
    assert_eq!(cache.insert(&keys, &records, &mut Budget::default(), now), records.len() - 1);
}

/// A chain without gaps over the apex and the names `n<number>`, or the apex and every second name.
fn insert_zone(cache: &DenialCache, zone: &str, has_gaps: bool, now: Now) {
    let apex = name(zone);
    let mut names = vec![apex.clone()];
    names.extend((0..2 * RECORDS - 2).map(|number| name(&format!("n{number:05}.{zone}"))));
    let records = names.iter().zip(names.iter().cycle().skip(1)).enumerate();
    let records = records.filter(|(at, _)| !has_gaps || at % 2 == 0);
    let record = |(_, (owner, next))| nsec(owner, next, &[Rtype::A, Rtype::RRSIG, Rtype::NSEC]);
    insert(cache, &apex, records.map(record).take(RECORDS as usize).collect(), now);
}

fn insert_nsec3_zone(cache: &DenialCache, zone: &str, is_opt_out: bool, now: Now) {
    let apex = name(zone);
    let mut hashes: Vec<[u8; 20]> = (0..RECORDS - 1)
        .map(|number| nsec3_hash(name(&format!("n{number:05}.{zone}")).wire(), &[], 0))
        .chain([nsec3_hash(apex.wire(), &[], 0)])
        .collect();
    hashes.sort_unstable();
    let pairs = hashes.iter().zip(hashes.iter().cycle().skip(1));
    let record = |(hash, next)| nsec3(hash, next, &apex, &[Rtype::A, Rtype::RRSIG], is_opt_out);
    insert(cache, &apex, pairs.map(record).collect(), now);
}

/// Prints the mean time of a lookup of one of 1,000 names, in nanoseconds.
fn measure(cache: &DenialCache, title: &str, name_of: impl Fn(u32) -> String, now: Now) {
    let names: Vec<Name> = (0..1000).map(|number| name(&name_of(number * 7919 % 10_000))).collect();
    let is_found = |owner: &Name| cache.prove(owner.view(), Rtype::MX, HASH_LIMIT, now).found.is_some();
    let found = names.iter().filter(|owner| is_found(owner)).count();
    let start = Instant::now();
    for number in 0..LOOKUPS {
        let owner = &names[number as usize % names.len()];
        black_box(cache.prove(black_box(owner.view()), Rtype::MX, HASH_LIMIT, now));
    }
    let nanoseconds = start.elapsed().as_nanos() / u128::from(LOOKUPS);
    println!("{nanoseconds:6} ns  {found:4} of 1000 found  {title}");
}

fn main() {
    let now = Now { instant: Instant::now(), unix: 0 };
    let cache = DenialCache::new(DenialCacheOptions::new(64 << 20, [1; 16]), now);
    let ask = |title, name_of: fn(u32) -> String| measure(&cache, title, name_of, now);
    ask("no zones", |number| format!("www.n{number}.test."));
    insert_zone(&cache, "nsec.", false, now);
    insert_zone(&cache, "gaps.", true, now);
    insert_nsec3_zone(&cache, "hashed.", false, now);
    insert_nsec3_zone(&cache, "opt-out.", true, now);
    ask("no zone of the name", |number| format!("www.n{number}.test."));
    let cut = [Rtype::NS, Rtype::DS, Rtype::RRSIG, Rtype::NSEC];
    let (root, top, after) = (Name::root(), name("test."), name("testing."));
    let apex = nsec(&root, &top, &[Rtype::NS, Rtype::SOA, Rtype::RRSIG, Rtype::NSEC]);
    insert(&cache, &root, vec![apex, nsec(&top, &after, &cut)], now);
    ask("root: below a zone cut", |number| format!("www.n{number}.test."));
    ask("root: not covered", |number| format!("www.n{number}.zz."));
    ask("root: NXDOMAIN", |number| format!("www.n{number}.aa."));
    ask("NSEC: not covered", |number| format!("n{:05}x.gaps.", 2 * (number % RECORDS)));
    ask("NSEC: NXDOMAIN", |number| format!("n{:05}x.nsec.", number % (RECORDS - 2)));
    ask("NSEC: NODATA", |number| format!("n{:05}.nsec.", number % (RECORDS - 2)));
    ask("NSEC3: NXDOMAIN", |number| format!("x{number:05}.hashed."));
    ask("NSEC3: NODATA", |number| format!("n{:05}.hashed.", number % (RECORDS - 2)));
    ask("NSEC3 with opt-out: not matched", |number| format!("x{number:05}.opt-out."));
    println!("{:?}", cache.statistics());
}
