//! The tree of the comparison, and the questions about it.

use super::exchange::Reply;
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;
use nonesuch_lab::tree::{
    Description, Expectation, FAULTS, Fault, FaultEntry, FaultScope, Outcome, PlantedFault, Tree,
    ZoneDescription,
};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, Rtype};
use std::net::Ipv4Addr;

/// The address of the root server.
const ROOT_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 53, 0, 1);
/// The address of the first of the other servers.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Seed of the keys.
const SEED: u64 = 1;
/// Algorithms that all validators know.
const KNOWN_ALGORITHMS: [u8; 6] = [8, 10, 13, 14, 15, 16];
/// Algorithms that only Nonesuch knows: ML-DSA-44, MAYO-2 and Falcon-512.
const EXPERIMENTAL_ALGORITHMS: [u8; 3] = [18, 249, 251];
/// Length of RSA keys, in bits. Longer keys take long to derive.
const RSA_BITS: u16 = 1024;
/// Aliases in the zone `aliases.example.`: label, target and outcome.
const ALIASES: [(&str, &str, Outcome); 6] = [
    ("secure", "www.algorithm-15.example.", Outcome::Secure),
    ("bogus", "www.wrong-signature-all.nsec.example.", Outcome::Bogus),
    ("insecure", "www.unsigned.example.", Outcome::Insecure),
    ("island", "www.island.example.", Outcome::Insecure),
    ("missing", "does-not-exist.algorithm-13.example.", Outcome::Secure),
    ("unproved", "does-not-exist.missing-denial.nsec3.example.", Outcome::Bogus),
];

/// The size of a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Generated names in each zone, and questions for each kind of denial.
    pub(crate) names: u32,
    /// Maximum number of questions about each zone.
    pub(crate) questions: usize,
}

/// The security status of a reply (RFC 4035 §4.3), as a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The AD flag is set.
    Secure,
    /// The AD flag is clear.
    Insecure,
    /// The RCODE is SERVFAIL.
    Fails,
    /// The RCODE is neither SERVFAIL nor that of the servers of the zone.
    OtherRcode,
    /// There was no reply in time.
    Silent,
}

/// A question with the expected reply.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The fault of the zone, or what the zone has instead of a fault.
    pub(crate) kind: String,
    pub(crate) name: Name,
    pub(crate) rtype: Rtype,
    /// The RCODE of the servers of the zone.
    pub(crate) rcode: Rcode,
    pub(crate) expected: Status,
    /// The code of the extended error that Nonesuch gives if the expected status is `Fails`; `None` for
    /// any code.
    pub(crate) extended_error: Option<u16>,
}

/// The tree at the time `now`, in seconds since 1970.
pub(crate) fn tree(size: Size, now: u32) -> Tree {
    let description =
        Description { zones: zones(size), first_address: FIRST_ADDRESS, ..Description::default() };
    Tree::build(&description, SEED, now).unwrap_or_else(|error| panic!("{error}"))
}

/// The root, a parent for each mechanism, a zone for each fault in each parent, and zones without
/// faults.
fn zones(size: Size) -> Vec<ZoneDescription> {
    let named = |origin: &str, denial| ZoneDescription {
        denial,
        names: size.names,
        bits: None,
        ..ZoneDescription::new(origin)
    };
    let parent = |origin: &str, denial| ZoneDescription { names: 0, ..named(origin, denial) };
    let mut zones = vec![
        ZoneDescription { server: Some(ROOT_ADDRESS), ..parent(".", Mechanism::Nsec) },
        parent("example.", Mechanism::Nsec),
        parent("nsec.example.", Mechanism::Nsec),
        parent("nsec3.example.", Mechanism::Nsec3),
        named("opt-out.example.", Mechanism::Nsec3OptOut),
        named("signed.opt-out.example.", Mechanism::Nsec3),
    ];
    for row in FAULTS.iter().filter(|row| row.scope != FaultScope::Servers) {
        for (denial, label) in [(Mechanism::Nsec, "nsec"), (Mechanism::Nsec3, "nsec3")] {
            if is_suitable(row, denial) {
                zones.extend(faulty_zones(row, label).into_iter().map(|zone| ZoneDescription {
                    denial,
                    names: size.names,
                    signed: row.fault != Fault::DsForUnsignedZone,
                    records: texts(size),
                    ..zone
                }));
            }
        }
    }
    for number in KNOWN_ALGORITHMS.into_iter().chain(EXPERIMENTAL_ALGORITHMS) {
        let algorithm = Algorithm(number);
        let zone = named(&format!("algorithm-{number}.example."), Mechanism::Nsec);
        let is_rsa = matches!(algorithm, Algorithm::RSASHA256 | Algorithm::RSASHA512);
        zones.push(ZoneDescription { algorithm, bits: is_rsa.then_some(RSA_BITS), ..zone });
    }
    for origin in ["unsigned.example.", "unsigned.nsec3.example.", "unsigned.opt-out.example."] {
        zones.push(ZoneDescription { signed: false, ..named(origin, Mechanism::Nsec) });
    }
    zones.push(ZoneDescription { ds: false, ..named("island.example.", Mechanism::Nsec) });
    let alias = |(label, target, _): &(&str, &str, Outcome)| format!("{label} CNAME {target}\n");
    let records: String = ALIASES.iter().map(alias).collect();
    zones.push(ZoneDescription { records, ..parent("aliases.example.", Mechanism::Nsec) });
    zones
}

fn is_suitable(row: &FaultEntry, denial: Mechanism) -> bool {
    let needs_nsec3 =
        row.name.contains("nsec3") || matches!(row.fault, Fault::MissingClosestEncloser | Fault::MixedDenial);
    match denial {
        Mechanism::Nsec => !needs_nsec3,
        _ => row.fault != Fault::NextNameOutsideZone,
    }
}

/// TXT records at names of their own.
fn texts(size: Size) -> String {
    (0..size.names).map(|number| format!("text{number} TXT \"sample\"\n")).collect()
}

/// A zone with the fault; for faults of signatures also one in which only the signatures over TXT are
/// faulty, so that the keys of the zone and the address of its nameserver are trusted.
fn faulty_zones(row: &FaultEntry, parent: &str) -> Vec<ZoneDescription> {
    let zone = |suffix: &str, rtype| ZoneDescription {
        faults: vec![PlantedFault { rtype, ..PlantedFault::new(row.fault) }],
        ..ZoneDescription::new(&format!("{}{suffix}.{parent}.example.", row.name))
    };
    match row.scope {
        FaultScope::Signatures => vec![zone("-all", None), zone("", Some(Rtype::TXT))],
        _ => vec![zone("", None)],
    }
}

/// The questions: at most `size.questions` about each zone, first those about its fault.
pub(crate) fn cases(tree: &Tree, size: Size) -> Vec<Case> {
    let mut cases = Vec::new();
    let all = tree.expectations_with(size.names);
    let origin_of =
        |expected: &Expectation| tree.zone_of(expected.name.view()).map(|zone| zone.origin.clone());
    for questions in all.chunk_by(|a, b| origin_of(a) == origin_of(b)) {
        let kind = origin_of(&questions[0]).map_or_else(String::new, |origin| kind_of(tree, &origin));
        let (faulty, sound): (Vec<&Expectation>, Vec<&Expectation>) =
            questions.iter().partition(|expected| expected.fault.is_some());
        // A fifth of the questions is about the sound part of the zone.
        let faulty = spread(&faulty, size.questions * 4 / 5);
        // Validators search for zone cuts at the empty non-terminals above these names.
        let (below_empty, sound): (Vec<&Expectation>, Vec<&Expectation>) =
            sound.into_iter().partition(|expected| is_below_empty(&expected.name));
        let sound = spread(&sound, (size.questions - faulty.len()).saturating_sub(below_empty.len()));
        cases.extend(
            faulty.into_iter().chain(below_empty).chain(sound).map(|expected| Case::new(&kind, expected)),
        );
    }
    let alias = |(label, _, outcome): &(&str, &str, Outcome)| Case {
        kind: format!("alias-to-{label}"),
        name: format!("{label}.aliases.example.").parse().expect("a name"),
        rtype: Rtype::A,
        rcode: if *label == "missing" { Rcode::NXDOMAIN } else { Rcode::NOERROR },
        expected: Status::of(*outcome),
        extended_error: None,
    };
    cases.extend(ALIASES.iter().map(alias));
    cases
}

/// The fault of a zone, or the first label of its name.
fn kind_of(tree: &Tree, origin: &Name) -> String {
    let zone = tree.zones.iter().find(|zone| zone.origin == *origin);
    let planted = zone.and_then(|zone| zone.description.faults.first());
    let label = || match origin.view().is_root() {
        true => "root".to_owned(),
        false => origin.to_string().split('.').next().unwrap_or_default().to_owned(),
    };
    planted.map_or_else(label, |planted| planted.fault.to_string())
}

/// Whether it is a sample name below an empty non-terminal: `*.wild` or `deep.ent`.
fn is_below_empty(name: &Name) -> bool {
    let mut labels = name.view().labels();
    matches!((labels.next(), labels.next()), (Some(b"*"), Some(b"wild")) | (Some(b"deep"), Some(b"ent")))
}

/// At most `count` elements, from the first to the last one at equal distances.
fn spread<T: Copy>(list: &[T], count: usize) -> Vec<T> {
    if list.len() <= count {
        return list.to_vec();
    }
    (0..count).map(|index| list[index * (list.len() - 1) / (count - 1).max(1)]).collect()
}

impl Case {
    fn new(kind: &str, expected: &Expectation) -> Self {
        // Validation ends at a limit, for which the registry has no code.
        let is_limited = expected.fault == Some(Fault::CollidingKeyTags);
        Self {
            kind: kind.to_owned(),
            name: expected.name.clone(),
            rtype: expected.rtype,
            rcode: expected.rcode,
            expected: Status::of(expected.outcome),
            extended_error: expected.extended_error.filter(|_| !is_limited),
        }
    }

    /// Whether the zone has an algorithm that only Nonesuch knows.
    pub(crate) fn has_experimental_algorithm(&self) -> bool {
        EXPERIMENTAL_ALGORITHMS.iter().any(|number| self.kind == format!("algorithm-{number}"))
    }

    /// The status of a reply.
    pub(crate) fn status(&self, reply: Option<Reply>) -> Status {
        match reply {
            None => Status::Silent,
            Some(Reply { rcode: Rcode::SERVFAIL, .. }) => Status::Fails,
            Some(Reply { rcode, .. }) if rcode != self.rcode => Status::OtherRcode,
            Some(Reply { is_authenticated: true, .. }) => Status::Secure,
            Some(_) => Status::Insecure,
        }
    }
}

impl Status {
    const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Secure => Self::Secure,
            Outcome::Insecure => Self::Insecure,
            Outcome::Bogus | Outcome::Failure => Self::Fails,
        }
    }
}
