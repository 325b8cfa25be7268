use super::log::SEGMENT_OCTETS;
use super::shard::RENEWALS_MAX;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;

/// No limit on the entries of a name.
const ANY_NUMBER: usize = usize::MAX;

fn name(number: u32) -> Vec<u8> {
    format!("\x05n{number:04}\x07Example\0").into_bytes()
}

fn lower(number: u32) -> Vec<u8> {
    name(number).to_ascii_lowercase()
}

fn label(number: u64) -> Label {
    Label(1 << 32 | 1 << 16 | number)
}

/// A ring with one shard of this number of segments and buckets.
fn ring(segments: usize, buckets: usize) -> Ring {
    let shard = Mutex::new(Shard::new(buckets, segments));
    Ring {
        shards: Box::new([Locked { shard, counters: Counters::default() }]),
        hasher: SipHasher13::new_with_key(&[7; 16]),
    }
}

fn insert(ring: &Ring, number: u32, kind: u64, expiry: u32, now: u32, value: &[u8]) -> Stored {
    let lower = lower(number);
    ring.edit(&ring.key(&lower), now, |entries| {
        entries.insert(&name(number), label(kind), expiry, value, ANY_NUMBER)
    })
}

fn read(ring: &Ring, number: u32, kind: u64, now: u32) -> Option<(Vec<u8>, u32)> {
    let lower = lower(number);
    ring.read(&ring.key(&lower), &[label(kind)], now, |entry| {
        assert_eq!(entry.name, name(number));
        Some((entry.value.to_vec(), entry.expiry))
    })
}

fn assert_consistent(ring: &Ring) {
    ring.shards.iter().for_each(|locked| locked.lock().assert_consistent());
}

#[derive(Clone, Debug)]
enum Step {
    Insert { name: u32, kind: u64, ttl: u32, octets: usize },
    Read { name: u32, kind: u64 },
    Remove { name: u32, kind: u64 },
    RemoveName { name: u32 },
    RemoveAll { odd: bool },
    Wait { seconds: u32 },
}

fn step(names: u32, octets_max: usize) -> impl Strategy<Value = Step> {
    let name = move || 0..names;
    let octets = prop_oneof![8 => 0..300.min(octets_max), 1 => 0..octets_max];
    prop_oneof![
        40 => (name(), 0u64..4, 1u32..50, octets)
            .prop_map(|(name, kind, ttl, octets)| Step::Insert { name, kind, ttl, octets }),
        30 => (name(), 0u64..4).prop_map(|(name, kind)| Step::Read { name, kind }),
        5 => (name(), 0u64..4).prop_map(|(name, kind)| Step::Remove { name, kind }),
        2 => name().prop_map(|name| Step::RemoveName { name }),
        1 => any::<bool>().prop_map(|odd| Step::RemoveAll { odd }),
        5 => (0u32..5).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

type Model = HashMap<(u32, u64), (Vec<u8>, u32)>;

/// Runs the steps on a ring and on a map without limits. The ring may have lost entries to eviction,
/// but what it has is equal. Returns whether it has lost none.
fn run(ring: &Ring, steps: &[Step]) -> Result<bool, TestCaseError> {
    let (mut model, mut now, mut serial, mut is_complete) = (Model::new(), 0, 0u64, true);
    for step in steps {
        match *step {
            Step::Insert { name, kind, ttl, octets } => {
                serial += 1;
                let value: Vec<u8> = serial.to_be_bytes().into_iter().cycle().take(octets).collect();
                prop_assert_eq!(insert(ring, name, kind, now + ttl, now, &value), Stored::Yes);
                prop_assert_eq!(read(ring, name, kind, now), Some((value.clone(), now + ttl)));
                model.insert((name, kind), (value, now + ttl));
            }
            Step::Read { name, kind } => {
                let found = read(ring, name, kind, now);
                let expected = model.get(&(name, kind)).filter(|(_, expiry)| *expiry > now);
                is_complete &= found.is_some() == expected.is_some();
                prop_assert!(found.is_none() || found.as_ref() == expected);
            }
            Step::Remove { name, kind } => {
                let lower = lower(name);
                ring.edit(&ring.key(&lower), now, |entries| entries.remove(label(kind)));
                model.remove(&(name, kind));
            }
            Step::RemoveName { name } => {
                let lower = lower(name);
                ring.edit(&ring.key(&lower), now, |entries| entries.retain(|_| false));
                model.retain(|(other, _), _| *other != name);
            }
            Step::RemoveAll { odd } => {
                let is_removed = |octets: &[u8]| (octets[5] % 2 == 1) == odd;
                ring.remove_if(is_removed);
                model.retain(|(number, _), _| !is_removed(&name(*number)));
            }
            Step::Wait { seconds } => now += seconds,
        }
    }
    assert_consistent(ring);
    Ok(is_complete)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_behaves_as_a_map_while_there_is_room(steps in vec(step(40, 300), 1..400)) {
        // At most 400 entries of 344 octets each: less than four segments.
        prop_assert!(run(&ring(4, 400), &steps)?);
    }

    #[test]
    fn it_behaves_as_a_map_while_the_index_grows(steps in vec(step(2000, 20), 1..3000)) {
        // At most 3000 entries of 64 octets; the first region of the index is split after 277 entries.
        prop_assert!(run(&ring(4, 700), &steps)?);
    }

    #[test]
    fn it_behaves_as_a_map_that_loses_entries(steps in vec(step(300, VALUE_MAX), 1..2000)) {
        run(&ring(3, 400), &steps)?;
    }

    #[test]
    fn it_behaves_as_a_map_that_loses_entries_to_a_small_index(steps in vec(step(300, 100), 1..2000)) {
        let ring = ring(2, 8);
        run(&ring, &steps)?;
        prop_assert!(ring.statistics().entries <= 7 * 7);
    }
}

#[test]
fn a_new_value_replaces_the_old_one_and_keeps_the_new_case() {
    let ring = ring(2, 100);
    let key = ring.key(b"\x01a\0");
    for owner in [b"\x01a\0", b"\x01A\0"] {
        ring.edit(&key, 0, |entries| entries.insert(owner, label(1), 10, owner, ANY_NUMBER));
        assert_eq!(ring.read(&key, &[label(1)], 9, |entry| Some(entry.name == owner)), Some(true));
    }
    assert_eq!(ring.statistics().entries, 1);
    assert_eq!(ring.statistics().insertions, 2);
}

#[test]
fn an_entry_is_not_read_in_the_second_of_its_expiry() {
    let ring = ring(2, 100);
    insert(&ring, 1, 1, 10, 0, b"v");
    assert!(read(&ring, 1, 1, 9).is_some());
    assert!(read(&ring, 1, 1, 10).is_none());
    // An editor sees it, to know what it was.
    let key = lower(1);
    assert!(ring.edit(&ring.key(&key), 10, |entries| entries.entry(label(1)).is_some()));
}

#[test]
fn labels_are_read_in_the_order_of_the_caller() {
    let ring = ring(2, 100);
    (1..4).for_each(|kind| assert_eq!(insert(&ring, 1, kind, 10, 0, &[kind as u8]), Stored::Yes));
    let key = lower(1);
    let first = |labels: &[Label]| ring.read(&ring.key(&key), labels, 0, |entry| Some(entry.value[0]));
    assert_eq!(first(&[label(9), label(3), label(1)]), Some(3));
    assert_eq!(first(&[label(9)]), None);
    let second = ring.read(&ring.key(&key), &[label(2), label(1)], 0, |entry| {
        (entry.value[0] == 1).then_some(entry.label)
    });
    assert_eq!(second, Some(label(1)));
}

#[test]
fn types_whose_numbers_differ_as_letters_of_two_cases_do_are_different_keys() {
    let ring = ring(2, 100);
    insert(&ring, 1, 0x41, 10, 0, b"upper");
    assert_eq!(read(&ring, 1, 0x61, 0), None);
}

#[test]
fn entries_that_are_read_stay_while_others_are_replaced() {
    let ring = ring(4, 2000);
    let value = [0; 400];
    insert(&ring, 0, 1, u32::MAX, 0, &value);
    // Many times the size of the log.
    for number in 1..5000 {
        insert(&ring, number, 1, u32::MAX, 0, &value);
        if number % 300 == 0 {
            assert!(read(&ring, 0, 1, 0).is_some(), "lost after {number} insertions");
        }
    }
    assert!(read(&ring, 1, 1, 0).is_none());
    assert!(read(&ring, 4999, 1, 0).is_some());
    let statistics = ring.statistics();
    assert_eq!(statistics.entries + statistics.evictions, 5000);
    assert!(statistics.entries as usize * 448 > 3 * SEGMENT_OCTETS, "{statistics:?}");
    assert_consistent(&ring);
}

#[test]
fn an_insertion_does_bounded_work_if_all_entries_are_in_use() {
    let ring = ring(2, 2000);
    let value = [0; 100];
    let mut number = 0;
    while ring.statistics().evictions == 0 {
        insert(&ring, number, 1, u32::MAX, 0, &value);
        assert!(read(&ring, number, 1, 0).is_some());
        number += 1;
    }
    // All entries were read. The insertion that found no room has renewed the oldest ones.
    let present = |number| {
        let key = lower(number);
        ring.edit(&ring.key(&key), 0, |entries| entries.entry(label(1)).is_some())
    };
    let renewed = (0..number).take_while(|number| present(*number)).count();
    assert_eq!(renewed, RENEWALS_MAX);
}

#[test]
fn expired_entries_are_replaced_and_do_not_count_as_evictions() {
    let ring = ring(2, 2000);
    for number in 0..2000 {
        insert(&ring, number, 1, number + 10, number, &[0; 300]);
        assert!(read(&ring, number, 1, number).is_some());
    }
    assert_eq!(ring.statistics().evictions, 0);
    assert_consistent(&ring);
}

#[test]
fn values_up_to_the_maximum_are_stored_and_larger_ones_are_not() {
    let ring = ring(1, 100);
    for number in 0..20 {
        assert_eq!(insert(&ring, number, 1, 10, 0, &vec![1; VALUE_MAX]), Stored::Yes);
        assert_eq!(read(&ring, number, 1, 0).unwrap().0.len(), VALUE_MAX);
    }
    assert_eq!(insert(&ring, 19, 1, 10, 0, &vec![1; VALUE_MAX + 1]), Stored::TooLarge);
    // The old value stays.
    assert!(read(&ring, 19, 1, 0).is_some());
    assert_consistent(&ring);
}

#[test]
fn a_name_has_a_maximum_of_unexpired_entries() {
    let ring = ring(2, 2000);
    let (owner, lower) = (name(1), lower(1));
    let key = ring.key(&lower);
    let insert = |kind, expiry, now| {
        ring.edit(&key, now, |entries| entries.insert(&owner, label(kind), expiry, b"v", 100))
    };
    for kind in 0..100 {
        assert_eq!(insert(kind, 10, 0), Stored::Yes);
    }
    assert_eq!(insert(100, 20, 9), Stored::TooMany);
    assert_eq!(insert(99, 20, 9), Stored::Yes);
    assert_eq!(insert(100, 20, 10), Stored::Yes);
    assert_eq!(ring.statistics().entries, 2);
    assert_consistent(&ring);
}

#[test]
fn one_name_cannot_fill_the_path_of_the_index() {
    let ring = ring(4, 4000);
    let stored = (0..1000).filter(|kind| insert(&ring, 1, *kind, 10, 0, b"v") == Stored::Yes).count();
    assert_eq!(stored, 64 * 7);
    assert_consistent(&ring);
}

#[test]
fn memory_stays_within_the_bound() {
    for (octets, shards) in [(512 << 10, 8), (4 << 20, 4), (10_000_000, 7)] {
        let ring = Ring::new(octets, shards, &[1; 16]);
        assert!(ring.shards.len() <= shards && ring.shards.len() * SHARD_OCTETS_MIN <= octets);
        // Entries of 32 octets fill the index first, and larger ones the log.
        for size in [0, 1000] {
            for number in 0..(3 * octets / (size + 100)) as u32 {
                let key = number.to_be_bytes();
                ring.edit(&ring.key(&key), 0, |entries| {
                    entries.insert(&key, label(1), 10, &vec![0; size], ANY_NUMBER)
                });
            }
        }
        let statistics = ring.statistics();
        assert!(statistics.evictions > 0);
        assert!(statistics.octets as usize <= octets, "{statistics:?}");
        assert!(statistics.octets as usize * 100 >= octets * 80, "{statistics:?}");
        assert_consistent(&ring);
    }
}

#[test]
fn the_index_takes_at_most_23_octets_for_each_entry_and_a_region() {
    let ring = Ring::new(64 << 20, 1, &[1; 16]);
    let log_octets = |entries: usize| entries.div_ceil(SEGMENT_OCTETS / 40) * SEGMENT_OCTETS;
    for number in 0..100_000u32 {
        let key = number.to_be_bytes();
        ring.edit(&ring.key(&key), 0, |entries| entries.insert(&key, label(1), 10, &[7; 12], ANY_NUMBER));
        let entries = number as usize + 1;
        if number % 5000 == 4999 {
            let index_octets = ring.statistics().octets as usize - log_octets(entries);
            assert!(index_octets < entries * 23 + (8 << 10), "{index_octets} for {entries} entries");
        }
    }
    assert_consistent(&ring);
    for number in 0..100_000u32 {
        let key = number.to_be_bytes();
        assert!(ring.read(&ring.key(&key), &[label(1)], 0, |_| Some(())).is_some(), "{number}");
    }
    assert_eq!(ring.remove_if(|name| name[3] % 2 == 0), 50_000);
    assert_consistent(&ring);
}

#[test]
fn threads_that_share_a_ring_read_what_was_written() {
    let ring = Ring::new(1 << 20, 2, &[1; 16]);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let ring = &ring;
            scope.spawn(move || {
                for number in 0..4000u32 {
                    let value = (number % 500).to_be_bytes().repeat(50);
                    insert(ring, number % 500, 1, 10, 0, &value);
                    let other = (number * 7 + thread) % 500;
                    let found = read(ring, other, 1, 0);
                    assert!(found.is_none_or(|(value, _)| value == other.to_be_bytes().repeat(50)));
                }
            });
        }
    });
    assert_consistent(&ring);
}
