//! The zones of a check of a resolver: every fault, every algorithm and every denial mechanism, below a
//! domain whose name is new in each run, so that no cache has answers from an earlier run.

mod addresses;
mod answers;

pub(super) use addresses::{Addresses, Role};
#[cfg(test)]
pub(super) use answers::SIZES;
pub(super) use answers::{SHORT_LIFETIME, SizedZone, sized_name};

use super::authority::{Behaviour, Content};
use crate::tree::{
    Description, FAULTS, Fault, FaultEntry, FaultScope, PlantedFault, Tree, TreeError, ZoneDescription,
};
use answers::{SPECIAL_LABELS, existing_name, sized_names};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;
use nonesuch_proto::{Name, Rtype};
use std::collections::HashMap;
use std::time::Duration;

/// Time that the slow server takes for a response.
pub(super) const SLOW: Duration = Duration::from_millis(300);
/// Size above which the server of `drop-large` drops responses over UDP, in octets: what fits into one
/// packet of 1,280 octets, the minimum MTU of IPv6.
pub(super) const DROPPED_OVER: usize = 1232;
/// Algorithms that every validator must or should implement (RFC 9904).
pub(super) const KNOWN_ALGORITHMS: [u8; 6] = [8, 10, 13, 14, 15, 16];
/// RSA with SHA-1: validators must implement it, and operators must treat it as insecure (RFC 9905 §2). The zones
/// have valid signatures.
pub(super) const SHA1_ALGORITHMS: [u8; 2] = [5, 7];
/// Algorithms that no validator may use: RSAMD5, DSA, DSA-NSEC3-SHA1 (RFC 9904), ECC-GOST (RFC 9906 §2), and an
/// unassigned number. The zones have arbitrary signatures.
pub(super) const UNUSABLE_ALGORITHMS: [u8; 5] = [1, 3, 6, 12, 200];
/// Numbers for zones that may have NSEC3 records (RFC 5155 §2).
const NSEC3_ALGORITHMS: [u8; 2] = [6, 7];
/// Lengths of RSA keys that are tested, in bits.
pub(super) const RSA_BITS: [u16; 3] = [1024, 1280, 3072];
/// The denial mechanisms, with the label of the zone of each.
pub(super) const MECHANISMS: [(Mechanism, &str); 8] = [
    (Mechanism::Nsec, "nsec"),
    (Mechanism::Nsec3, "nsec3"),
    (Mechanism::Nsec3OptOut, "opt-out"),
    (Mechanism::Nsec5, "nsec5"),
    (Mechanism::Nsec5OptOut, "nsec5-opt-out"),
    (Mechanism::MinimalNsec, "minimal-nsec"),
    (Mechanism::Compact, "compact"),
    (Mechanism::WhiteLies, "white-lies"),
];
/// The faults of denials that zones with NSEC5 have too.
pub(super) const NSEC5_FAULTS: [Fault; 5] = [
    Fault::MissingDenial,
    Fault::UnsignedDenial,
    Fault::ExpiredDenial,
    Fault::WrongNextName,
    Fault::RemovedData,
];
/// NSEC3 iterations of the zone `forged-iterations`: above the limits of usual validators, which are 50 to 150.
const FORGED_ITERATIONS: u16 = 200;
/// Length of RSA keys of the zones that do not test lengths, in bits.
const RSA_DEFAULT_BITS: u16 = 2048;
/// Length of RSA keys of the zones with SHA-1, in bits. The tree signs with them slowly.
const RSA_SHA1_BITS: u16 = 1280;

/// What determines the zones of a run.
#[derive(Clone, Debug)]
pub(super) struct ZoneOptions {
    /// The domain of the check, at which its root hints, trust anchors or delegation lead; for a local tree
    /// `check.`.
    pub(super) suffix: Name,
    /// The label below `suffix` that is new in each run.
    pub(super) run: String,
    /// The addresses of the servers.
    pub(super) addresses: Addresses,
    /// The port of the servers.
    pub(super) port: u16,
    /// The seed of the keys.
    pub(super) seed: u64,
    /// The time, in seconds since 1970 modulo 2^32.
    pub(super) now: u32,
}

impl ZoneOptions {
    /// The root and the domain of the check, which are the same in each run.
    pub(super) fn constant_tree(&self) -> Result<Tree, TreeError> {
        let mut zones = self.upper_zones();
        zones.truncate(2);
        let description = Description { zones, port: self.port, any_address: true, ..Description::default() };
        Tree::build(&description, self.seed, self.now)
    }

    /// The domain of this run.
    pub(super) fn domain(&self) -> String {
        format!("{}.{}", self.run, self.suffix)
    }

    /// A zone below the domain of the run.
    fn zone(&self, label: &str, role: Role) -> ZoneDescription {
        ZoneDescription {
            server: Some(self.addresses.of(role)),
            ..ZoneDescription::new(&format!("{label}.{}", self.domain()))
        }
    }

    /// Builds the zones, and states how their servers behave.
    pub(super) fn build(&self) -> Result<Content, TreeError> {
        let mut zones = self.upper_zones();
        zones.extend(FAULTS.iter().flat_map(|row| self.faulty_zones(row)));
        zones.extend(self.algorithm_zones());
        zones.extend(self.mechanism_zones());
        zones.extend(self.special_zones());
        let description = Description { zones, port: self.port, any_address: true, ..Description::default() };
        let tree = Tree::build(&description, self.seed, self.now)?;
        let answers = answers::answers(self, &tree);
        let silent = self.addresses.silent();
        Ok(Content { behaviours: self.behaviours(), answers, silent, tree })
    }

    /// The root, the domain of the check, and that of the run. In the domain of the check, the names of runs
    /// come and go: with opt-out, resolvers must not conclude from cached records that a name does not exist
    /// (RFC 8198 §5.2).
    fn upper_zones(&self) -> Vec<ZoneDescription> {
        let at = |origin: &str, role| ZoneDescription {
            server: Some(self.addresses.of(role)),
            samples: Some(false),
            ..ZoneDescription::new(origin)
        };
        let suffix = self.suffix.to_string();
        let run = at(&self.domain(), Role::Run);
        vec![
            at(".", Role::Root),
            ZoneDescription { denial: Mechanism::Nsec3OptOut, ..at(&suffix, Role::Suffix) },
            // The negative trust anchor is part of the configuration of the resolver, so the name is constant.
            ZoneDescription {
                records: "*.any A 192.0.2.13\n".to_owned(),
                faults: vec![PlantedFault::new(Fault::WrongDsDigest)],
                ..at(&format!("nta.{suffix}"), Role::Suffix)
            },
            run,
        ]
    }

    /// The zones with a fault: with NSEC, with NSEC3, or both for faults of denials.
    fn faulty_zones(&self, row: &FaultEntry) -> Vec<ZoneDescription> {
        let needs_nsec3 = row.name.contains("nsec3")
            || matches!(row.fault, Fault::MissingClosestEncloser | Fault::MixedDenial);
        let is_nsec_only = row.fault == Fault::NextNameOutsideZone;
        let is_denial = row.scope == FaultScope::Denial && !needs_nsec3 && !is_nsec_only;
        let of_signatures = row.scope == FaultScope::Signatures;
        let role = if row.fault == Fault::UnreachableServer { Role::Unreachable } else { Role::Leaf };
        let zone = |denial: Mechanism, prefix: &str| ZoneDescription {
            denial,
            signed: row.fault != Fault::DsForUnsignedZone,
            faults: vec![PlantedFault {
                at: of_signatures.then(|| "www".to_owned()),
                rtype: of_signatures.then_some(Rtype::TXT),
                ..PlantedFault::new(row.fault)
            }],
            ..self.zone(&format!("{prefix}{}", row.name), role)
        };
        let first = zone(if needs_nsec3 { Mechanism::Nsec3 } else { Mechanism::Nsec }, "");
        let second = is_denial.then(|| zone(Mechanism::Nsec3, "hashed-"));
        let third = NSEC5_FAULTS.contains(&row.fault).then(|| zone(Mechanism::Nsec5, "proved-"));
        [Some(first), second, third].into_iter().flatten().collect()
    }

    /// A zone for each algorithm, and for each length of RSA keys.
    fn algorithm_zones(&self) -> Vec<ZoneDescription> {
        let of = |number: u8| {
            let algorithm = Algorithm(number);
            let has_nsec3 = NSEC3_ALGORITHMS.contains(&number);
            ZoneDescription {
                algorithm,
                csk: true,
                bits: match algorithm {
                    Algorithm::RSASHA256 | Algorithm::RSASHA512 => Some(RSA_DEFAULT_BITS),
                    sha1 if sha1.is_sha1() => Some(RSA_SHA1_BITS),
                    _ => None,
                },
                denial: if has_nsec3 { Mechanism::Nsec3 } else { Mechanism::Nsec },
                ..self.zone(&format!("algorithm-{number}"), Role::Leaf)
            }
        };
        let rsa = |bits: &u16| ZoneDescription {
            algorithm: Algorithm::RSASHA256,
            bits: Some(*bits),
            csk: true,
            ..self.zone(&format!("rsa-{bits}"), Role::Leaf)
        };
        KNOWN_ALGORITHMS
            .into_iter()
            .chain([Algorithm::MLDSA44.0])
            .chain(SHA1_ALGORITHMS)
            .chain(UNUSABLE_ALGORITHMS)
            .map(of)
            .chain(RSA_BITS.iter().map(rsa))
            .collect()
    }

    /// A zone for each denial mechanism, each with an unsigned child on another server.
    fn mechanism_zones(&self) -> Vec<ZoneDescription> {
        let both = |(denial, label): &(Mechanism, &str)| {
            let parent = ZoneDescription {
                denial: *denial,
                csk: true,
                ..self.zone(&format!("with-{label}"), Role::Leaf)
            };
            let child = ZoneDescription {
                signed: false,
                ..self.zone(&format!("unsigned.with-{label}"), Role::Child)
            };
            [parent, child]
        };
        MECHANISMS.iter().flat_map(both).collect()
    }

    /// Zones whose servers behave in a special way, and zones for special questions.
    fn special_zones(&self) -> Vec<ZoneDescription> {
        let at = |label: &str, role| self.zone(label, role);
        let unsigned = |label: &str, role| ZoneDescription { signed: false, ..at(label, role) };
        let domain = self.domain();
        let aliases = format!(
            "{}to-insecure CNAME www.plain.{domain}\nto-secure CNAME www.special.{domain}\n\
             to-bogus CNAME www.wrong-signature.{domain}\n",
            SPECIAL_LABELS.map(existing_name).concat()
        );
        vec![
            ZoneDescription { csk: true, records: aliases, ..at("special", Role::Leaf) },
            ZoneDescription {
                csk: true,
                records: sized_names(),
                ..at(SizedZone::Signed.label(), Role::Leaf)
            },
            ZoneDescription { records: sized_names(), ..unsigned(SizedZone::Unsigned.label(), Role::Leaf) },
            unsigned("plain", Role::Leaf),
            ZoneDescription { ds: false, ..at("island", Role::Leaf) },
            at("minimised", Role::Leaf),
            at("truncates", Role::Leaf),
            unsigned("sets-ad", Role::Leaf),
            at("adds-option", Role::Leaf),
            at("reorders", Role::Leaf),
            at("repeats", Role::Leaf),
            ZoneDescription {
                denial: Mechanism::Nsec3,
                iterations: FORGED_ITERATIONS,
                ..at("forged-iterations", Role::Leaf)
            },
            at("upper-case", Role::Leaf),
            at("rejects-edns", Role::RejectsEdns),
            unsigned("plain-rejects-edns", Role::RejectsEdns),
            unsigned("slow", Role::Slow),
            ZoneDescription { csk: true, records: sized_names(), ..at("drop-large", Role::DropsLarge) },
            ZoneDescription { records: "short 1 A 192.0.2.14\n".to_owned(), ..at("stale", Role::Leaf) },
            ZoneDescription {
                faults: vec![PlantedFault::new(Fault::WrongDsDigest)],
                ..at("reported", Role::Leaf)
            },
            ZoneDescription {
                records: "*._er TXT \"thanks\"\n".to_owned(),
                ..unsigned("agent", Role::Child)
            },
            unsigned("cookies", Role::Child),
        ]
    }

    fn behaviours(&self) -> HashMap<Name, Behaviour> {
        let default = Behaviour::default;
        let large = || Behaviour { udp_octets: 4096, ..default() };
        let agent = format!("agent.{}", self.domain()).parse().ok();
        let rows = [
            (SizedZone::Signed.label(), large()),
            (SizedZone::Unsigned.label(), large()),
            ("truncates", Behaviour { truncates: true, ..default() }),
            ("sets-ad", Behaviour { sets_ad: true, ..default() }),
            ("adds-option", Behaviour { adds_option: true, ..default() }),
            ("reorders", Behaviour { reorders: true, ..default() }),
            ("repeats", Behaviour { repeats: true, ..default() }),
            ("forged-iterations", Behaviour { forges: Some(Rtype::NSEC3), ..default() }),
            ("upper-case", Behaviour { upper_case: true, ..default() }),
            ("rejects-edns", Behaviour { rejects_edns: true, ..default() }),
            ("plain-rejects-edns", Behaviour { rejects_edns: true, ..default() }),
            ("slow", Behaviour { delay: SLOW, ..default() }),
            ("drop-large", Behaviour { drops_over: Some(DROPPED_OVER), ..large() }),
            ("stale", Behaviour { bogus_on_demand: true, ..default() }),
            ("reported", Behaviour { report_to: agent, ..default() }),
            ("cookies", Behaviour { has_cookies: true, ..default() }),
        ];
        let domain = self.domain();
        let named = |(label, behaviour): (&str, Behaviour)| {
            Some((format!("{label}.{domain}").parse().ok()?, behaviour))
        };
        rows.into_iter().filter_map(named).collect()
    }
}
