//! The table of planted faults. Each class is planted with each algorithm and mechanism in a zone
//! that is otherwise sound. Verification finds exactly this fault, at its owner and type. The zone
//! without the fault is sound.
//!
//! Zones with NSEC5 use the alias algorithm numbers. They are verified with and without their
//! stored proofs. Without the proofs, a fault that only a known hash shows is found by the number
//! of records.

mod anchors;
mod chain;
mod child;
mod keys;
mod nsec3;
mod nsec5;
mod proofs;
mod reports;
mod signatures;
mod zonemd;

use super::*;
use crate::verify::{
    Anchor, VerifiedPredecessor, VerifyInputs, VerifyWarning, verify_with, verify_with_inputs,
};
use rayon::prelude::*;
use std::sync::OnceLock;

const A: Option<Rtype> = Some(Rtype::A);
const NSEC: Option<Rtype> = Some(Rtype::NSEC);
const NSEC3: Option<Rtype> = Some(Rtype::NSEC3);
const DNSKEY: Option<Rtype> = Some(Rtype::DNSKEY);

/// The algorithms of the table. With NSEC5, their aliases are used.
pub(super) const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::RSASHA256, Algorithm::ECDSAP256SHA256, Algorithm::ED25519, Algorithm::MLDSA44];

/// Every case of RFC 4035 §2: data, wildcard, empty non-terminals (`un` exists only for an insecure
/// delegation), glue below and at a zone cut, a secure delegation, an alias, a DNAME with an
/// occluded name.
const RECORDS: &str = "a A 192.0.2.1\nb A 192.0.2.1\nb TXT \"t\"\nc CNAME a\nd NS ns.d\nns.d A 192.0.2.9\n\
    g NS g\ng A 192.0.2.8\nn DNAME target.test.\no.n TXT \"occluded\"\ns NS ns.elsewhere.test.\n\
    s DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n\
    *.w A 192.0.2.1\nx.ent A 192.0.2.1\ni.un NS ns.elsewhere.test.";

/// The mechanisms in which a class of faults is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All mechanisms.
    Every,
    /// NSEC.
    Nsec,
    /// NSEC3, with opt-out and without.
    Nsec3,
    /// NSEC3 without opt-out.
    Nsec3Complete,
    /// NSEC3 with opt-out.
    Nsec3OptOut,
    /// All mechanisms except NSEC5.
    NotNsec5,
    /// NSEC5, with opt-out and without.
    Nsec5,
    /// NSEC5 without opt-out.
    Nsec5Complete,
    /// NSEC5 with opt-out.
    Nsec5OptOut,
}

impl Scope {
    pub(super) fn covers(self, mechanism: Mechanism) -> bool {
        match self {
            Self::Every => true,
            Self::Nsec => mechanism == Mechanism::Nsec,
            Self::Nsec3 => matches!(mechanism, Mechanism::Nsec3 | Mechanism::Nsec3OptOut),
            Self::Nsec3Complete => mechanism == Mechanism::Nsec3,
            Self::Nsec3OptOut => mechanism == Mechanism::Nsec3OptOut,
            Self::NotNsec5 => !Self::Nsec5.covers(mechanism),
            Self::Nsec5 => mechanism.name_hash() == NameHash::Vrf,
            Self::Nsec5Complete => mechanism == Mechanism::Nsec5,
            Self::Nsec5OptOut => mechanism == Mechanism::Nsec5OptOut,
        }
    }
}

/// Algorithm and mechanism of each cell that `scope` covers. The algorithm has the number that the
/// mechanism requires.
pub(super) fn cells(scope: Scope) -> impl Iterator<Item = (Algorithm, Mechanism)> {
    let mechanisms = ALL_MECHANISMS.into_iter().filter(move |mechanism| scope.covers(*mechanism));
    mechanisms.flat_map(|mechanism| {
        ALGORITHMS.into_iter().map(move |algorithm| (number_for(algorithm, mechanism), mechanism))
    })
}

/// A class of faults.
struct Row {
    class: &'static str,
    /// The rule that the fault violates.
    rule: &'static str,
    scope: Scope,
    plant: fn(&mut Bench) -> Found,
}

const fn row(class: &'static str, rule: &'static str, scope: Scope, plant: fn(&mut Bench) -> Found) -> Row {
    Row { class, rule, scope, plant }
}

/// The expected result of a verification.
#[derive(Default)]
struct Found {
    faults: Vec<Fault>,
    warnings: Vec<VerifyWarning>,
    /// Trust anchors for the verification.
    anchors: Vec<Anchor>,
    /// The damaged zone, if it cannot be written as text.
    contents: Option<Contents>,
    /// The stored proofs, if the fault is in the proofs.
    proofs: Option<Proofs>,
}

fn found(owner: &str, rtype: Option<Rtype>, reason: FaultReason) -> Found {
    Found::default().and(owner, rtype, reason)
}

impl Found {
    fn and(mut self, owner: &str, rtype: Option<Rtype>, reason: FaultReason) -> Self {
        self.faults.push(Fault { owner: name(owner), rtype, reason });
        self
    }

    fn warned(mut self, warning: VerifyWarning) -> Self {
        self.warnings.push(warning);
        self
    }

    fn against(mut self, anchors: Vec<Anchor>) -> Self {
        self.anchors = anchors;
        self
    }

    fn within(mut self, contents: Contents) -> Self {
        self.contents = Some(contents);
        self
    }

    fn by(mut self, proofs: Proofs) -> Self {
        self.proofs = Some(proofs);
        self
    }
}

/// The sound zone of each cell, signed once.
fn controls() -> &'static [(Algorithm, Bench)] {
    static CONTROLS: OnceLock<Vec<(Algorithm, Bench)>> = OnceLock::new();
    CONTROLS.get_or_init(|| {
        let contents = zone(RECORDS);
        let make = |(algorithm, mechanism)| {
            let keys = KeySet::new(&name("example."), vec![key("example.", 257, algorithm, 1)]).unwrap();
            // `Bench::new` asserts that the zone is sound and without warnings.
            (algorithm, Bench::new(&contents, keys, mechanism))
        };
        cells(Scope::Every).map(make).collect()
    })
}

fn control(algorithm: Algorithm, mechanism: Mechanism) -> Bench {
    let is_ours = |(of, bench): &&(Algorithm, Bench)| *of == algorithm && bench.mechanism == mechanism;
    controls().iter().find(is_ours).unwrap().1.clone()
}

/// Plants each class in each cell of its scope.
#[track_caller]
fn plant_all(rows: &[Row]) {
    // Signing uses the threads of rayon. If all of them waited here until another test has signed,
    // that test would wait for them: a deadlock.
    controls();
    let cells: Vec<_> = rows.iter().flat_map(|row| cells(row.scope).map(move |cell| (row, cell))).collect();
    let differences: Vec<String> = cells
        .par_iter()
        .filter_map(|(row, (algorithm, mechanism))| plant_one(row, *algorithm, *mechanism))
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn plant_one(row: &Row, algorithm: Algorithm, mechanism: Mechanism) -> Option<String> {
    let mut bench = control(algorithm, mechanism);
    let before = bench.contents();
    let mut wanted = (row.plant)(&mut bench);
    let contents = wanted.contents.take().unwrap_or_else(|| bench.contents());
    let anchors = std::mem::take(&mut wanted.anchors);
    let options = VerifyOptions { now: Some(NOW), anchors, ..VerifyOptions::default() };
    wanted.faults.sort_by(|a, b| a.owner.cmp(&b.owner).then(a.rtype.cmp(&b.rtype)));
    assert!(!wanted.faults.is_empty(), "{} plants nothing", row.class);
    let proofs = wanted.proofs.as_ref().or(bench.proofs.as_deref());
    let as_wanted =
        |report: &Report| (&report.faults, &report.warnings) == (&wanted.faults, &wanted.warnings);
    let vrf = crate::tests::nsec5::vrf();
    let by = |proofs, key| verify_with(&contents, &options, &Nsec5Evidence { proofs, key });
    // The same fault as a change of the sound zone, with verified signatures.
    let earlier = Some(VerifiedPredecessor::assume_verified(&before, Some(NOW)));
    let evidence = Nsec5Evidence { proofs, key: None };
    let as_change = verify_with_inputs(
        &contents,
        &options,
        &VerifyInputs { predecessor: earlier, evidence, progress: None },
    );
    let mut ways = vec![("", by(proofs, None), true), (", as a change", as_change, true)];
    if bench.is_nsec5() {
        ways.push((", without proofs", by(None, None), false));
        if wanted.proofs.is_none() {
            ways.push((", by the VRF key", by(None, Some(&vrf)), true));
        }
    }
    let is_wrong = |(_, report, exactly): &(&str, Report, bool)| match exactly {
        true => !as_wanted(report),
        false => !is_seen_in_public(&wanted, report),
    };
    let (how, found, _) = ways.into_iter().find(is_wrong)?;
    let said = |faults: &[Fault]| faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; ");
    Some(format!(
        "{} ({}), {algorithm}, {mechanism}{how}:\n  wanted {} {:?}\n  found  {} {:?}",
        row.class,
        row.rule,
        said(&wanted.faults),
        wanted.warnings,
        said(&found.faults),
        found.warnings,
    ))
}

/// Whether a report without stored proofs has the expected faults. Faults of the number of records
/// replace the faults that a known hash shows. Faults of the proofs are not reported.
fn is_seen_in_public(wanted: &Found, report: &Report) -> bool {
    let of_hash = |fault: &&Fault| {
        let is_chain = fault.rtype == Some(Rtype::NSEC5);
        is_chain
            && matches!(
                fault.reason,
                FaultReason::BitmapExtra(_)
                    | FaultReason::BitmapMissing(_)
                    | FaultReason::WildcardFlagClear { .. }
                    | FaultReason::WildcardFlagSet { .. }
                    | FaultReason::Nsec5Missing { .. }
                    | FaultReason::OptOutOverSecure { .. }
            )
            || fault.reason == FaultReason::ChainExtra && is_hashed(fault)
    };
    let of_number = |fault: &&Fault| {
        matches!(fault.reason, FaultReason::ChainCount { .. } | FaultReason::ChainKindCount { .. })
    };
    let of_proof = |fault: &&Fault| {
        fault.rtype == Some(Rtype::NSEC5PROOF) && fault.reason != FaultReason::UnexpectedRecords
    };
    let others = |faults: &[Fault]| -> Vec<Fault> {
        let hidden = |fault: &&Fault| of_hash(fault) || of_number(fault) || of_proof(fault);
        faults.iter().filter(|fault| !hidden(fault)).cloned().collect()
    };
    let by_number = report.faults.iter().any(|fault| of_number(&fault));
    let wants_number = wanted.faults.iter().any(|fault| of_hash(&fault) || of_number(&fault));
    others(&report.faults) == others(&wanted.faults) && by_number == wants_number
}

/// Whether the owner of a fault is the owner of a chain record.
fn is_hashed(fault: &Fault) -> bool {
    crate::denial::nsec5::is_chain_owner(fault.owner.view(), name("example.").view())
}

/// All rows.
fn rows() -> impl Iterator<Item = &'static Row> {
    let general = [signatures::ROWS, keys::ROWS, anchors::ROWS, child::ROWS, chain::ROWS, zonemd::ROWS];
    general.into_iter().chain([nsec3::ROWS, nsec5::ROWS, proofs::ROWS]).flatten()
}

/// Number of classes. The table of unusual sound zones has at least as many rows.
pub(super) fn class_count() -> usize {
    rows().count()
}

#[test]
fn classes_have_names_of_their_own() {
    let mut names: Vec<_> = rows().map(|row| row.class).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    let is_rule = |rule: &str| ["RFC ", "draft-vcelak-nsec5-07"].iter().any(|start| rule.starts_with(start));
    assert!(rows().all(|row| is_rule(row.rule)));
}

/// Tag and algorithm of the first key of the zone.
fn key_of(bench: &Bench) -> (u16, Algorithm) {
    let key = &bench.keys.keys()[0];
    (key.tag(), key.algorithm())
}

fn untouched(_: &mut Rrsig<'_>) {}

/// Signs the zone again with two keys of one algorithm. Their flags make them a KSK (or CSK) and a
/// ZSK.
fn with_keys(bench: &mut Bench, flags: [u16; 2]) {
    let algorithm = key_of(bench).1;
    let keys = vec![key("example.", flags[0], algorithm, 1), key("example.", flags[1], algorithm, 2)];
    *bench = Bench::new(&zone(RECORDS), KeySet::new(&name("example."), keys).unwrap(), bench.mechanism);
}

/// The zone with changed octets in the records of one RRset, which is signed again.
fn damaged(bench: &Bench, owner: &str, rtype: Rtype, change: impl Fn(&mut Vec<u8>)) -> Contents {
    let at = name(owner);
    let changed = rewrite(&bench.contents(), |node, of, _, rdata| {
        if node.name() == at.view() && of == rtype {
            change(rdata);
        }
    });
    let key = &bench.keys.keys()[bench.keys.signers(rtype)[0]];
    let fresh = signature(&changed, owner, rtype, key, untouched);
    rewrite(&changed, |node, of, covered, rdata| {
        if node.name() == at.view() && (of, covered) == (Rtype::RRSIG, rtype) {
            rdata.clone_from(&fresh);
        }
    })
}
