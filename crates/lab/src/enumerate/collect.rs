//! Collects the NSEC3 records of a zone: chooses names whose hashes no known record covers, as long as
//! such names exist.

use super::StopReason;
use super::client::{Client, RECORDS_MAX, records_of, types_of};
use super::crack::names_per_step;
use super::crack::pattern::{Pattern, PatternRange};
use super::crack::search::{Searcher, Sieve};
use super::hash_chain::{ChainRecord, HashChain, Inserted, is_between};
use super::labels::{ALPHABET, RandomLabels};
use super::mechanism::denial;
use nonesuch_dnssec::Nsec3Params;
use nonesuch_dnssec::denial::nsec3::{Nsec3, OPT_OUT_FLAG, SHA1, decode_owner};
use nonesuch_proto::message::Message;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::time::Instant;

/// The hash of a name.
pub(super) type Hash = [u8; 20];

/// Random octets at the start of a candidate label.
const RANDOM_OCTETS: usize = 10;
/// Counted octets at its end: 36^7 candidates.
const COUNTED_OCTETS: usize = 7;
/// Maximum number of candidates between two checks for a result.
const STEP: u64 = 4096;
/// Maximum number of hashes for one query.
const HASHES_MAX: u64 = 1 << 28;

/// The collected records.
#[derive(Clone, Debug, Default)]
pub struct Nsec3Chain {
    /// Salt and iterations; those of the first record.
    pub params: Option<Nsec3Params>,
    /// The records.
    pub chain: HashChain<20>,
}

/// Accepts the hashes that no known record covers.
struct Gaps<'a>(&'a HashChain<20>);

impl Sieve for Gaps<'_> {
    #[inline]
    fn may_match(&self, first_word: u32) -> bool {
        self.0.may_be_unknown(first_word)
    }

    fn matches(&self, hash: &Hash) -> bool {
        !self.0.is_known(hash)
    }
}

/// Collects records until the chain is complete. `on_step` is called after each query.
///
/// # Errors
/// A limit is reached, the server does not answer or contradicts itself, or the gaps are too small.
pub(super) fn collect(
    client: &mut Client,
    zone: &Name,
    labels: &mut RandomLabels,
    found: &mut Nsec3Chain,
    mut on_step: impl FnMut(&Nsec3Chain, u64),
) -> Result<(), StopReason> {
    let apex = zone.view().to_canonical();
    if found.params.is_none() {
        let name = super::mechanism::below(&labels.next(), &apex)?;
        add(&denial(client, &name)?, apex.view(), &name, found)?;
    }
    let Some(params) = found.params.clone() else { return Err(StopReason::NotCovered(apex)) };
    let mut searcher = Searcher::new(&params, apex.view());
    while !found.chain.is_complete() {
        let name = find_uncovered(&mut searcher, params.iterations, &found.chain, labels, client.end())?;
        let before = found.chain.len();
        add(&denial(client, &name)?, apex.view(), &name, found)?;
        if found.chain.len() == before && !is_covered(&name, &params, &found.chain) {
            return Err(StopReason::NotCovered(name));
        }
        on_step(found, client.queries());
    }
    Ok(())
}

fn is_covered(name: &Name, params: &Nsec3Params, chain: &HashChain<20>) -> bool {
    chain.is_known(&nonesuch_crypto::nsec3_hash(name.wire(), &params.salt, params.iterations))
}

/// Searches for a name whose hash no known record covers.
fn find_uncovered(
    searcher: &mut Searcher,
    iterations: u16,
    chain: &HashChain<20>,
    labels: &mut RandomLabels,
    end: Instant,
) -> Result<Name, StopReason> {
    let sieve = Gaps(chain);
    let pattern = Pattern::counted(&labels.octets(RANDOM_OCTETS), ALPHABET, COUNTED_OCTETS);
    let step = names_per_step(STEP, iterations);
    let mut at = 0;
    while at < HASHES_MAX && Instant::now() < end {
        searcher.search(&pattern, PatternRange { start: at, count: step }, &sieve);
        searcher.flush(&sieve);
        at += step;
        if let Some((_, name)) = searcher.take_hits().into_iter().next() {
            return Ok(name);
        }
    }
    Err(StopReason::GapsTooSmall { hashes: at, share: 1.0 - chain.coverage() })
}

/// Adds the NSEC3 records of a denial of `name`.
fn add(response: &Message, apex: NameRef<'_>, name: &Name, found: &mut Nsec3Chain) -> Result<(), StopReason> {
    for (owner, rdata) in records_of(response, apex, Rtype::NSEC3).take(RECORDS_MAX) {
        let (Some(fields), Some(owner)) = (Nsec3::parse(rdata), decode_owner(owner, apex)) else { continue };
        let Ok(next) = fields.next.try_into() else { continue };
        if fields.algorithm != SHA1 {
            continue;
        }
        let params = Nsec3Params { salt: fields.salt.to_vec(), iterations: fields.iterations };
        if *found.params.get_or_insert_with(|| params.clone()) != params {
            return Err(StopReason::ParametersChanged);
        }
        let hash = nonesuch_crypto::nsec3_hash(name.wire(), &params.salt, params.iterations);
        let record =
            ChainRecord { next, opt_out: fields.flags & OPT_OUT_FLAG != 0, types: types_of(fields.bitmap) };
        // The record that covers the random name is a random sample. The others, at the closest
        // encloser and over the wildcard, are the same in every response.
        let _: Inserted = if is_between(&hash, &owner, &record.next) {
            found.chain.insert_sample(owner, record)
        } else {
            found.chain.insert(owner, record)
        };
    }
    Ok(())
}
