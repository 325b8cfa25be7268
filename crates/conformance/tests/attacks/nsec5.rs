//! Hostile NSEC5 proofs. The tests count operations.

use super::network::*;
use super::signed::*;
use nonesuch_conformance::simulator::Simulator;
use nonesuch_crypto::Algorithm;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_proto::message::{Message, Rcode, Section};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_resolver::Shared;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The algorithm number of zones with NSEC5.
const NSEC5_ALGORITHM: Algorithm = Algorithm(229);

/// The proofs of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proofs {
    /// So many for each name at and above the query name. None verifies.
    Forged(u8),
    /// Valid ones, and two forged ones before that of the query name. A denial needs those of the query name, and of the
    /// name two labels above and its parent, because the parent of the query name has none.
    Mixed,
}

/// NSEC5 keys, records and proofs of a hostile zone.
struct Nsec5Attack {
    keys: usize,
    records: u8,
    proofs: Proofs,
}

impl Nsec5Attack {
    fn private(seed: u8) -> VrfPrivateKey {
        VrfPrivateKey::from_secret(VrfAlgorithm::EDWARDS25519_SHA512_ELL2, &[seed; 32]).expect("a key")
    }

    fn key(seed: u8) -> Vec<u8> {
        Nsec5Key::of(&Self::private(seed)).rdata().to_vec()
    }

    fn tag() -> u16 {
        nonesuch_crypto::key_tag(&Self::key(0))
    }

    fn prove(name: NameRef<'_>) -> Vec<u8> {
        let (mut canonical, mut proof) = (Vec::new(), Vec::new());
        name.push_canonical(&mut canonical);
        Self::private(0).prove(&canonical, &mut proof).expect("a proof");
        proof
    }

    fn denial(&self, zone: &Zone, asked: &Message) -> Message {
        let tag = Self::tag().to_be_bytes();
        let nsec5 = |number: u8| {
            let label = data_encoding::BASE32HEX_NOPAD.encode(&[number; 32]).to_lowercase();
            let rdata = [&tag[..], &[0, 32], &[number; 32], &[0, 1, 0x40]].concat();
            within(Section::Authority, record(&format!("{label}.evil."), Rtype::NSEC5, rdata))
        };
        let mut response = zone.deny(asked, (0..self.records).map(nsec5).collect());
        let asked_name = asked.questions[0].name.clone();
        let names = std::iter::successors(Some(asked_name.view()), |name| name.parent());
        for (above, name) in names.filter(|name| !name.is_root()).enumerate() {
            let proof = |proof: &[u8]| {
                let rdata = [&tag[..], proof].concat();
                within(Section::Authority, record(&name.to_name().to_string(), Rtype::NSEC5PROOF, rdata))
            };
            let (forged, is_valid) = match self.proofs {
                Proofs::Forged(count) => (count, false),
                Proofs::Mixed => (if above == 0 { 2 } else { 0 }, above != 1),
            };
            response.records.extend((0..forged).map(|number| proof(&[number; 80])));
            response.records.extend(is_valid.then(|| proof(&Self::prove(name))));
        }
        response
    }

    fn simulate(self) -> (Simulator<'static, Servers>, Arc<Shared>) {
        let zone = Zone::at("evil.", NSEC5_ALGORITHM);
        let anchors = [zone.ds()];
        let (mut simulator, shared) = simulate_signed(&anchors, move |asked: &Message, _: Ipv4Addr| {
            let keys = (0..self.keys).map(|seed| record("evil.", Rtype::NSEC5KEY, Self::key(seed as u8)));
            let is_apex = asked.questions[0].name == name("evil.");
            Some(match asked.questions[0].rtype {
                Rtype::DNSKEY if is_apex => answer(asked, zone.sign(zone.keys())),
                Rtype::NSEC5KEY if is_apex => answer(asked, zone.sign(keys.collect())),
                _ => self.denial(&zone, asked),
            })
        });
        attack(&mut simulator, "first.evil.");
        (simulator, shared)
    }
}

/// Proofs that do not verify, with many records: at most four for each response, and three responses.
#[test]
fn forged_nsec5_proofs_end_at_the_limits() {
    for (keys, records, proofs) in [(1, 1, 1), (1, 8, 2), (4, 1, 10), (4, 30, 10), (5, 3, 10), (100, 30, 10)]
    {
        let proofs = Proofs::Forged(proofs);
        let (mut simulator, shared) = Nsec5Attack { keys, records, proofs }.simulate();
        let mut before = shared.model.totals();
        for number in 0..5 {
            let (rcode, error) = attack(&mut simulator, &format!("a.b.c.d.n{number}.evil."));
            assert_eq!(rcode, Rcode::SERVFAIL);
            assert!(error.is_some());
            let after = shared.model.totals();
            let (verified, proved) = (after.verified() - before.verified(), after.proofs - before.proofs);
            assert!(verified <= limits().signatures.into(), "{keys} {records}: {verified}");
            // The default limit of unusable proofs is less than that of proofs.
            assert!(proved <= limits().proofs.into(), "{keys} {records}: {proved}");
            before = after;
        }
        assert_eq!(shared.model.totals().proofs > 0, keys <= 4, "{keys} {records} {proofs:?}");
    }
}

/// Valid proofs that prove nothing cost as much as forged ones. The denial needs five verifications, and the response
/// ends at the fourth.
#[test]
fn the_proofs_of_one_response_end_at_their_own_limit() {
    let attacker = Nsec5Attack { keys: 1, records: 1, proofs: Proofs::Mixed };
    let (mut simulator, shared) = attacker.simulate();
    for number in 0..5 {
        let before = shared.model.totals();
        let result = attack(&mut simulator, &format!("a.b.c.d.n{number}.evil."));
        assert_eq!(result, (Rcode::SERVFAIL, Some(0)));
        let proved = shared.model.totals().proofs - before.proofs;
        assert_eq!(proved, u64::from(limits().proofs_per_response));
        assert!(proved < limits().proofs.into());
    }
}
