use super::*;
use crate::nsec3_hash;

/// Names of all lengths that fit, with a length octet.
fn name(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

#[test]
fn every_kernel_equals_the_single_hash() {
    for kernel in Kernel::all() {
        for (salt, iterations) in [(0, 0), (0, 1), (8, 3), (35, 2), (36, 3), (40, 1)] {
            let salt = name(salt, 200);
            let hasher = Nsec3Hasher::with_kernel(kernel, &salt, iterations);
            let (mut blocks, mut hashes) = (Nsec3Blocks::default(), Nsec3Hashes::default());
            for first in 0..8_usize {
                let names: Vec<Vec<u8>> = (0..NSEC3_LANES)
                    .map(|lane| name((first * NSEC3_LANES + lane) % (56 - salt.len()), lane as u8))
                    .collect();
                for (lane, name) in names.iter().enumerate() {
                    blocks.set(lane, &Nsec3Blocks::message(name, &salt).expect("one block"));
                }
                hasher.hash(&blocks, &mut hashes);
                for (lane, name) in names.iter().enumerate() {
                    let expected = nsec3_hash(name, &salt, iterations);
                    assert_eq!(hashes.hash(lane), expected, "{kernel:?} {lane} {name:?} {iterations}");
                    assert_eq!(hashes.first_words()[lane].to_be_bytes(), expected[..4]);
                }
            }
        }
    }
}

#[test]
fn a_changed_word_changes_one_name() {
    let hasher = Nsec3Hasher::new(&[], 0);
    let (mut blocks, mut hashes) = (Nsec3Blocks::default(), Nsec3Hashes::default());
    let message = Nsec3Blocks::message(b"\x03abc\x02nl\x00", &[]).expect("one block");
    (0..NSEC3_LANES).for_each(|lane| blocks.set(lane, &message));
    blocks.set_word(5, 0, u32::from_be_bytes(*b"\x03abd"));
    hasher.hash(&blocks, &mut hashes);
    assert_eq!(hashes.hash(4), nsec3_hash(b"\x03abc\x02nl\x00", &[], 0));
    assert_eq!(hashes.hash(5), nsec3_hash(b"\x03abd\x02nl\x00", &[], 0));
    assert_eq!(&blocks.octets(5)[..9], b"\x03abd\x02nl\x00\x80");
}

#[test]
fn a_message_of_two_blocks_is_refused() {
    assert!(Nsec3Blocks::message(&name(55, 1), &[]).is_some());
    assert!(Nsec3Blocks::message(&name(56, 1), &[]).is_none());
    assert!(Nsec3Blocks::message(&name(50, 1), &[0; 6]).is_none());
}
