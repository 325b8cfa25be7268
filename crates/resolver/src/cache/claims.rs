//! Claims: which worker resolves a question, and which workers wait for it.
//!
//! The first worker that claims a question resolves it. Others are registered, and are woken when
//! the first one releases the claim. Then they find the answer in the cache, or claim the question
//! in turn.

use super::Question;
use super::label::LowerName;
use siphasher::sip::SipHasher13;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of parts with separate locks.
const PARTS: usize = 16;

/// The result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The worker resolves the question, then calls [`Cache::release`](super::Cache::release).
    Owner,
    /// Another worker resolves the question. This worker will be woken.
    Waiting,
}

/// The claims of all workers.
#[derive(Debug)]
pub(super) struct Claims {
    parts: [Mutex<Part>; PARTS],
    /// Maximum number of claims of a part.
    part_max: usize,
    hasher: SipHasher13,
}

type Part = HashMap<Box<[u8]>, Claimants, Keyed>;

#[derive(Debug)]
struct Claimants {
    owner: usize,
    waiting: Vec<usize>,
}

impl Claims {
    /// Returns no claims, and permits about `claims_max` of them. `key`: the key of the hash.
    pub(super) fn new(claims_max: usize, key: &[u8; 16]) -> Self {
        let hasher = SipHasher13::new_with_key(key);
        Self {
            parts: std::array::from_fn(|_| Mutex::new(HashMap::with_hasher(Keyed(hasher)))),
            part_max: claims_max.div_ceil(PARTS),
            hasher,
        }
    }

    fn part(&self, key: &[u8]) -> MutexGuard<'_, Part> {
        let at = self.hasher.hash(key) as usize % PARTS;
        self.parts[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Cache::claim`](super::Cache::claim).
    pub(super) fn claim(&self, question: &Question, worker: usize) -> Claim {
        let Some(key) = key(question) else { return Claim::Owner };
        let mut part = self.part(&key);
        let Some(claimants) = part.get_mut(key.as_slice()) else {
            if part.len() < self.part_max {
                part.insert(key.into(), Claimants { owner: worker, waiting: Vec::new() });
            }
            return Claim::Owner;
        };
        if claimants.owner == worker {
            return Claim::Owner;
        }
        if !claimants.waiting.contains(&worker) {
            claimants.waiting.push(worker);
        }
        Claim::Waiting
    }

    /// As [`Cache::release`](super::Cache::release).
    pub(super) fn release(&self, question: &Question, worker: usize) -> Vec<usize> {
        let Some(key) = key(question) else { return Vec::new() };
        let mut part = self.part(&key);
        match part.get(key.as_slice()) {
            Some(claimants) if claimants.owner == worker => {
                part.remove(key.as_slice()).map_or_else(Vec::new, |claimants| claimants.waiting)
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the octets of a question: type, class, the CD bit, and the name in lower case.
fn key(question: &Question) -> Option<Vec<u8>> {
    let name = LowerName::of(question.name.view())?;
    let mut key = Vec::with_capacity(5 + name.octets().len());
    key.extend_from_slice(&question.rtype.0.to_be_bytes());
    key.extend_from_slice(&question.class.0.to_be_bytes());
    key.push(u8::from(question.checking_disabled));
    key.extend_from_slice(name.octets());
    Some(key)
}

/// A hash with a secret key, so that a client cannot choose names that share a place in the table.
#[derive(Clone, Copy, Debug)]
struct Keyed(SipHasher13);

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::{Class, Rtype};

    fn question(name: &str) -> Question {
        Question { name: name.parse().unwrap(), rtype: Rtype::A, class: Class::IN, checking_disabled: false }
    }

    #[test]
    fn the_first_worker_owns_a_claim_and_its_release_returns_the_others() {
        let claims = Claims::new(100, &[1; 16]);
        let asked = question("a.example");
        assert_eq!(claims.claim(&asked, 1), Claim::Owner);
        assert_eq!(claims.claim(&asked, 1), Claim::Owner);
        for worker in [2, 3, 2] {
            assert_eq!(claims.claim(&question("A.Example"), worker), Claim::Waiting);
        }
        assert!(claims.release(&asked, 2).is_empty());
        assert_eq!(claims.release(&asked, 1), [2, 3]);
        assert!(claims.release(&asked, 1).is_empty());
        assert_eq!(claims.claim(&asked, 3), Claim::Owner);
    }

    #[test]
    fn questions_differ_by_name_type_class_and_the_cd_bit() {
        let claims = Claims::new(100, &[1; 16]);
        let asked = question("a.example");
        let others = [
            asked.clone(),
            question("b.example"),
            Question { rtype: Rtype::AAAA, ..asked.clone() },
            Question { class: Class::CH, ..asked.clone() },
            Question { checking_disabled: true, ..asked },
        ];
        assert!(others.iter().enumerate().all(|(at, other)| claims.claim(other, at) == Claim::Owner));
    }

    #[test]
    fn above_the_maximum_a_claim_is_not_registered() {
        let claims = Claims::new(PARTS, &[1; 16]);
        let names: Vec<Question> = (0..200).map(|number| question(&format!("n{number}.example"))).collect();
        assert!(names.iter().all(|name| claims.claim(name, 1) == Claim::Owner));
        let waiting = names.iter().filter(|name| claims.claim(name, 2) == Claim::Waiting).count();
        assert!((1..=PARTS).contains(&waiting), "{waiting}");
        let registered =
            |claims: &Claims| -> usize { claims.parts.iter().map(|part| part.lock().unwrap().len()).sum() };
        assert_eq!(registered(&claims), PARTS);
        // A worker whose claim is not registered cannot release that of another worker.
        for name in &names {
            claims.release(name, 1);
            claims.release(name, 2);
        }
        assert_eq!(registered(&claims), 0);
    }
}
