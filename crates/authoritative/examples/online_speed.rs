//! Measures the CPU time of answers that are generated online, without sockets. Each query is for a
//! different name that does not exist; queries are sent in batches.
//!
//!     target/release/examples/online_speed white-lies ecdsap256sha256 20000 64
//!
//! Arguments: denial mechanism (for NSEC5 `nsec5/VRF`), algorithm, number of queries, queries in a
//! batch.

mod common;

use nonesuch_authoritative::zones::{ServedZone, ZoneState, Zones};
use nonesuch_authoritative::{Published, Responder, ServerContext};
use nonesuch_crypto::Algorithm;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_dnssec::denial::nsec5::{Nsec5Chain, ProveOptions, prove_chain};
use nonesuch_dnssec::keys::{CdsSchedule, KeyRecord};
use nonesuch_dnssec::online::{
    DEFAULT_VALIDITY, Nsec5Prover, OnlineOptions, OnlineSigner, SignerCounters, prepare,
};
use nonesuch_dnssec::{KeySet, Mechanism, SignOptions, VerifyOptions, into_verified, sign};
use nonesuch_net::Transport;
use nonesuch_net::{Answer, Handler as _};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

const NOW: u32 = 1_750_000_000;

fn publish(mechanism: &str, algorithm: Algorithm) -> Result<Published, Box<dyn Error>> {
    let contents = common::zone(false)?;
    let zone = contents.apex().clone();
    let Some(vrf) = mechanism.strip_prefix("nsec5/") else {
        let pair = common::key(&zone, algorithm)?;
        let record = KeyRecord::of(&pair);
        let mechanism: Mechanism = mechanism.parse()?;
        let options = OnlineOptions {
            mechanism,
            records: vec![record],
            pairs: vec![pair],
            validity: DEFAULT_VALIDITY,
            sync: CdsSchedule::default(),
        };
        return Ok(Published::online(prepare(contents, options, &VerifyOptions::default())?)?);
    };
    let vrf = VrfPrivateKey::generate(VrfAlgorithm::from_name(vrf).ok_or("unknown VRF")?)?;
    let proofs = prove_chain(&contents, &vrf, &ProveOptions::new(Mechanism::Nsec5))?.0;
    let alias = algorithm.nsec5_alias().ok_or("the algorithm has no alias for NSEC5")?;
    let keys = KeySet::new(&zone, vec![common::key(&zone, alias)?])?;
    let options = SignOptions {
        nsec5: Some(Nsec5Chain { proofs: &proofs, keep_other_keys: false }),
        ..SignOptions::new(Mechanism::Nsec5, NOW - 3600, NOW + 86_400)
    };
    let signed = sign(&contents, &keys, &options)?.into_contents();
    let prover = Nsec5Prover::new(&signed, vrf, Some(proofs))?;
    let verified =
        into_verified(signed, &VerifyOptions::default()).map_err(|_| "the zone does not verify")?;
    Ok(Published::nsec5(&verified, prover)?)
}

/// Returns the CPU time of this thread so far, in nanoseconds.
fn thread_cpu_nanoseconds() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().ok_or("no CPU time")?.parse()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default: &str| arguments.get(index).map_or(default, |text| text).to_owned();
    let published = publish(&argument(0, "white-lies"), argument(1, "ecdsap256sha256").parse()?)?;
    let (count, batch): (usize, usize) = (argument(2, "20000").parse()?, argument(3, "64").parse()?);
    let queries = (0..count).map(|number| common::query(&format!("absent{number}.example."), 1));
    let queries: Vec<Vec<u8>> = queries.collect::<Result<_, _>>()?;
    let counters = Arc::new(SignerCounters::default());
    let zones = Arc::new(Zones::new());
    let zone = ServedZone::new(published, Arc::default());
    zones.set(&"example.".parse()?, ZoneState::Serving(Arc::new(zone)));
    let address = SocketAddr::from(([127, 0, 0, 1], 53));
    let signer = OnlineSigner::new(64 << 20, Arc::clone(&counters));
    let mut responder = Responder::new(&ServerContext::new(zones), Transport::Udp, address, signer, 0);
    let (mut out, mut deferred, mut octets) = (Vec::with_capacity(4096), Vec::new(), 0);
    let started_at = thread_cpu_nanoseconds()?;
    for batch in queries.chunks(batch.max(1)) {
        responder.begin_batch();
        for query in batch {
            out.clear();
            if responder.answer(query, address, &mut out) == Answer::Deferred {
                deferred.push(query);
            }
        }
        responder.generate_deferred();
        for query in deferred.drain(..) {
            out.clear();
            responder.answer_again(query, address, &mut out);
            octets += out.len();
        }
        responder.end_batch();
    }
    let micros = (thread_cpu_nanoseconds()? - started_at) as f64 / 1000.0 / count.max(1) as f64;
    println!(
        "{micros:.2} µs of CPU an answer, {} octets each, {:?}",
        octets / count.max(1),
        counters.read().operations
    );
    Ok(())
}
