//! Batches have one result for each item, which is that of the single check: for every mixture of
//! good and bad items and every algorithm.

use nonesuch_crypto::{
    ALGORITHMS, Algorithm, BadSignature, PrivateKey, PublicKey, SignItem, VerifyItem, sign_batch, sign_each,
    verify_batch,
};
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Number of items of the largest batch for which every mixture is tested.
const EXHAUSTIVE_ITEMS: usize = 8;

/// Number of items of a batch that is large for every algorithm.
const LARGE_BATCH: usize = 100;

/// A key with messages, good signatures and one bad item for each of them.
struct Subject {
    key: PublicKey,
    messages: Vec<Vec<u8>>,
    good: Vec<Vec<u8>>,
    bad: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Subject {
    fn new(algorithm: Algorithm, count: usize) -> Self {
        let private = PrivateKey::generate(algorithm, None).unwrap();
        let other = PrivateKey::generate(algorithm, None).unwrap();
        let messages: Vec<Vec<u8>> = (0..count).map(|index| vec![index as u8; index * 7]).collect();
        let borrowed: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let signatures = |key: &PrivateKey| {
            let mut out = vec![0xaa];
            sign_batch(key, &borrowed, &mut out).unwrap();
            assert_eq!((out[0], out.len()), (0xaa, 1 + count * key.signature_octets()));
            out[1..].chunks(key.signature_octets()).map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let (good, other_signatures) = (signatures(&private), signatures(&other));
        let bad =
            (0..count).map(|index| damage(index, &messages[index], &good[index], &other_signatures[index]));
        let bad = bad.collect();
        Self { key: PublicKey::parse(algorithm, private.public_key()).unwrap(), messages, good, bad }
    }

    fn item(&self, index: usize, is_good: bool) -> VerifyItem<'_> {
        let (message, signature) = match is_good {
            true => (&self.messages[index], &self.good[index]),
            false => (&self.bad[index].0, &self.bad[index].1),
        };
        VerifyItem { key: &self.key, message, signature }
    }

    /// Verifies a batch. `are_good` states which items are good.
    fn check(&self, are_good: &[bool]) {
        let items: Vec<_> =
            are_good.iter().enumerate().map(|(index, is_good)| self.item(index, *is_good)).collect();
        let mut outcome = vec![Ok(()); 3];
        verify_batch(&items, &mut outcome);
        assert_eq!(outcome, expected(are_good), "{:?}", self.key);
    }
}

/// Returns a bad item, damaged in one of six ways.
fn damage(index: usize, message: &[u8], good: &[u8], other: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut message, mut signature) = (message.to_vec(), good.to_vec());
    match index % 6 {
        0 => message.push(0),
        1 => signature[index % good.len()] ^= 0x10,
        2 => signature = other.to_vec(),
        3 => signature.truncate(good.len() - 1),
        4 => signature.push(0),
        _ => signature.clear(),
    }
    (message, signature)
}

fn expected(are_good: &[bool]) -> Vec<Result<(), BadSignature>> {
    are_good.iter().map(|is_good| is_good.then_some(()).ok_or(BadSignature)).collect()
}

/// The algorithms whose signatures do not take long. The others have no form for batches.
fn algorithms() -> impl Iterator<Item = Algorithm> {
    let rows = ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none() && !entry.scheme.signs_slowly);
    rows.map(|entry| entry.algorithm)
}

#[test]
fn every_mixture_of_a_small_batch() {
    for algorithm in algorithms() {
        // First without the table that a large batch leaves in a key, then with it.
        for count in [EXHAUSTIVE_ITEMS, LARGE_BATCH] {
            let subject = Subject::new(algorithm, count);
            if count == LARGE_BATCH {
                subject.check(&[true; LARGE_BATCH]);
            }
            for count in 0..=EXHAUSTIVE_ITEMS {
                for mixture in 0_u32..1 << count {
                    let are_good: Vec<_> = (0..count).map(|index| mixture >> index & 1 == 1).collect();
                    subject.check(&are_good);
                }
            }
        }
    }
}

#[test]
fn one_bad_item_at_every_position_of_a_large_batch() {
    for algorithm in algorithms() {
        let subject = Subject::new(algorithm, LARGE_BATCH);
        // If a batch is a loop, larger steps are sufficient.
        let step = if algorithm == Algorithm::ED25519 { 1 } else { 9 };
        for index in (0..LARGE_BATCH).step_by(step) {
            let are_good: Vec<_> = (0..LARGE_BATCH).map(|other| other != index).collect();
            subject.check(&are_good);
        }
        let are_good: Vec<_> = (0..LARGE_BATCH).map(|index| index % 30 == 7).collect();
        subject.check(&are_good);
        subject.check(&[false; LARGE_BATCH]);
    }
}

#[test]
fn random_mixtures_of_large_batches() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    for algorithm in algorithms() {
        let subject = Subject::new(algorithm, LARGE_BATCH);
        for _ in 0..8 {
            let count = random.random_range(EXHAUSTIVE_ITEMS..=LARGE_BATCH);
            let share = random.random_range(0.0..=1.0);
            let are_good: Vec<_> = (0..count).map(|_| random.random_bool(share)).collect();
            subject.check(&are_good);
        }
    }
}

/// Items of all algorithms, with two keys of each, in any order.
#[test]
fn keys_and_algorithms_mix() {
    let mut random = ChaCha8Rng::seed_from_u64(12);
    // One key with enough items for a large batch, and one with a few.
    let subjects: Vec<_> = algorithms()
        .flat_map(|algorithm| [Subject::new(algorithm, 40), Subject::new(algorithm, 3)])
        .collect();
    let mut choices: Vec<(usize, usize, bool)> = Vec::new();
    for (subject_index, subject) in subjects.iter().enumerate() {
        choices.extend((0..subject.good.len()).map(|index| (subject_index, index, random.random_bool(0.7))));
    }
    choices.shuffle(&mut random);
    let items: Vec<_> = choices
        .iter()
        .map(|(subject_index, index, is_good)| subjects[*subject_index].item(*index, *is_good))
        .collect();
    let mut outcome = Vec::new();
    verify_batch(&items, &mut outcome);
    let are_good: Vec<_> = choices.iter().map(|choice| choice.2).collect();
    assert_eq!(outcome, expected(&are_good));
}

/// Items of a key, of its clone and of an unrelated key in one batch. Signatures by the first key
/// are valid for its clone, and invalid for the unrelated key.
#[test]
fn copies_of_a_key_mix() {
    for algorithm in algorithms() {
        let subject = Subject::new(algorithm, LARGE_BATCH);
        let clone = subject.key.clone();
        let private = PrivateKey::generate(algorithm, None).unwrap();
        let stranger = PublicKey::parse(algorithm, private.public_key()).unwrap();
        let keys = [&subject.key, &clone, &stranger];
        let item = |index: usize| VerifyItem { key: keys[index % 3], ..subject.item(index, true) };
        let items: Vec<_> = (0..LARGE_BATCH).map(item).collect();
        let mut outcome = Vec::new();
        verify_batch(&items, &mut outcome);
        let are_good: Vec<_> = (0..LARGE_BATCH).map(|index| index % 3 < 2).collect();
        assert_eq!(outcome, expected(&are_good), "{algorithm}");
    }
}

/// Each item has its own key. A bad signature is found at each position.
#[test]
fn different_keys_are_verified_together() {
    for algorithm in algorithms() {
        let subjects: Vec<_> = (0..EXHAUSTIVE_ITEMS).map(|_| Subject::new(algorithm, 1)).collect();
        for bad in 0..=subjects.len() {
            let items = subjects.iter().enumerate().map(|(index, subject)| subject.item(0, index != bad));
            let mut outcome = Vec::new();
            verify_batch(&items.collect::<Vec<_>>(), &mut outcome);
            let are_good: Vec<_> = (0..subjects.len()).map(|index| index != bad).collect();
            assert_eq!(outcome, expected(&are_good), "{algorithm}");
        }
    }
}

/// Items of two keys of each algorithm, in mixed order: each has a signature of its own key.
#[test]
fn items_of_many_keys_are_signed_with_their_keys() {
    let generate = |algorithm| PrivateKey::generate(algorithm, None).unwrap();
    let keys: Vec<PrivateKey> =
        algorithms().flat_map(|algorithm| [generate(algorithm), generate(algorithm)]).collect();
    let messages: Vec<Vec<u8>> = (0..keys.len() * 5).map(|number| vec![number as u8; number]).collect();
    let items: Vec<SignItem<'_>> = (0..messages.len())
        .map(|number| SignItem { key: &keys[number * 3 % keys.len()], message: &messages[number] })
        .collect();
    let signatures = sign_each(&items);
    assert_eq!(signatures.len(), items.len());
    for (SignItem { key, message }, signature) in items.iter().zip(signatures) {
        let public = PublicKey::parse(key.algorithm(), key.public_key()).unwrap();
        assert_eq!(public.verify(message, &signature.unwrap()), Ok(()), "{key:?}");
    }
    assert!(sign_each(&[]).is_empty());
}

#[test]
fn an_empty_batch_has_no_results() {
    let mut outcome = vec![Ok(())];
    verify_batch(&[], &mut outcome);
    assert!(outcome.is_empty());
    for algorithm in algorithms() {
        let mut out = vec![1];
        sign_batch(&PrivateKey::generate(algorithm, None).unwrap(), &[], &mut out).unwrap();
        assert_eq!(out, [1]);
    }
}
