//! The table of planted faults: each class in each algorithm and mechanism, alone in a zone that is rightly signed
//! otherwise. What is found is that fault, at its owner and type, and nothing else; the zone without it is sound.

mod anchors;
mod chain;
mod child;
mod keys;
mod nsec3;
mod reports;
mod signatures;
mod zonemd;

use super::*;
use crate::verify::{Anchor, VerifyWarning};
use rayon::prelude::*;
use std::sync::OnceLock;

const A: Option<Rtype> = Some(Rtype::A);
const NSEC: Option<Rtype> = Some(Rtype::NSEC);
const NSEC3: Option<Rtype> = Some(Rtype::NSEC3);
const DNSKEY: Option<Rtype> = Some(Rtype::DNSKEY);

/// The algorithms of the table.
pub(super) const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::RSASHA256, Algorithm::ECDSAP256SHA256, Algorithm::ED25519, Algorithm::MLDSA44];

/// Every case of RFC 4035 §2: data, wildcard, empty non-terminals (`un` for an insecure delegation alone), glue below
/// and at a cut, a secure delegation, an alias, a DNAME with an occluded name.
const RECORDS: &str = "a A 192.0.2.1\nb A 192.0.2.1\nb TXT \"t\"\nc CNAME a\nd NS ns.d\nns.d A 192.0.2.9\n\
    g NS g\ng A 192.0.2.8\nn DNAME target.test.\no.n TXT \"occluded\"\ns NS ns.elsewhere.test.\n\
    s DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n\
    *.w A 192.0.2.1\nx.ent A 192.0.2.1\ni.un NS ns.elsewhere.test.";

/// Mechanisms that a class of fault is planted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All.
    Every,
    /// NSEC.
    Nsec,
    /// NSEC3, with opt-out and without.
    Nsec3,
    /// NSEC3 without opt-out.
    Nsec3Complete,
    /// NSEC3 with opt-out.
    Nsec3OptOut,
}

impl Scope {
    pub(super) fn covers(self, mechanism: Mechanism) -> bool {
        match self {
            Self::Every => true,
            Self::Nsec => mechanism == Mechanism::Nsec,
            Self::Nsec3 => matches!(mechanism, Mechanism::Nsec3 | Mechanism::Nsec3OptOut),
            Self::Nsec3Complete => mechanism == Mechanism::Nsec3,
            Self::Nsec3OptOut => mechanism == Mechanism::Nsec3OptOut,
        }
    }
}

/// A class of fault.
struct Row {
    class: &'static str,
    /// The rule that is broken.
    rule: &'static str,
    scope: Scope,
    plant: fn(&mut Bench) -> Found,
}

const fn row(class: &'static str, rule: &'static str, scope: Scope, plant: fn(&mut Bench) -> Found) -> Row {
    Row { class, rule, scope, plant }
}

/// What verifying should find.
#[derive(Default)]
struct Found {
    faults: Vec<Fault>,
    warnings: Vec<VerifyWarning>,
    /// What the zone is verified against.
    anchors: Vec<Anchor>,
    /// The damaged zone, where it cannot be written as text.
    contents: Option<Contents>,
}

fn found(owner: &str, rtype: Option<Rtype>, reason: Reason) -> Found {
    Found::default().and(owner, rtype, reason)
}

impl Found {
    fn and(mut self, owner: &str, rtype: Option<Rtype>, reason: Reason) -> Self {
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
}

/// The sound zone of each cell, signed once.
fn control(algorithm: Algorithm, mechanism: Mechanism) -> Bench {
    static CONTROLS: OnceLock<Vec<(Algorithm, Bench)>> = OnceLock::new();
    let controls = CONTROLS.get_or_init(|| {
        let contents = zone(RECORDS);
        let mut controls = Vec::new();
        for algorithm in ALGORITHMS {
            let keys = KeySet::new(&name("example."), vec![key("example.", 257, algorithm, 1)]).unwrap();
            let keys = Arc::new(keys);
            // `Bench::new` sees that the zone is sound, without a warning.
            controls.extend(ALL.map(|mechanism| (algorithm, Bench::new(&contents, keys.clone(), mechanism))));
        }
        controls
    });
    let is_ours = |(of, bench): &&(Algorithm, Bench)| *of == algorithm && bench.mechanism == mechanism;
    controls.iter().find(is_ours).unwrap().1.clone()
}

/// Plants each class in each cell of its scope.
#[track_caller]
fn plant_all(rows: &[Row]) {
    let mut cells = Vec::new();
    for row in rows {
        for algorithm in ALGORITHMS {
            let mechanisms = ALL.into_iter().filter(|mechanism| row.scope.covers(*mechanism));
            cells.extend(mechanisms.map(|mechanism| (row, algorithm, mechanism)));
        }
    }
    let differences: Vec<String> = cells
        .par_iter()
        .filter_map(|(row, algorithm, mechanism)| plant_one(row, *algorithm, *mechanism))
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn plant_one(row: &Row, algorithm: Algorithm, mechanism: Mechanism) -> Option<String> {
    let mut bench = control(algorithm, mechanism);
    let mut wanted = (row.plant)(&mut bench);
    let contents = wanted.contents.take().unwrap_or_else(|| bench.contents());
    let options = VerifyOptions { now: Some(NOW), anchors: wanted.anchors, ..VerifyOptions::default() };
    let report = verify(&contents, &options);
    wanted.faults.sort_by(|a, b| a.owner.cmp(&b.owner).then(a.rtype.cmp(&b.rtype)));
    assert!(!wanted.faults.is_empty(), "{} plants nothing", row.class);
    if (&report.faults, &report.warnings) == (&wanted.faults, &wanted.warnings) {
        return None;
    }
    let said = |faults: &[Fault]| faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; ");
    Some(format!(
        "{} ({}), {algorithm}, {mechanism}:\n  wanted {} {:?}\n  found  {} {:?}",
        row.class,
        row.rule,
        said(&wanted.faults),
        wanted.warnings,
        said(&report.faults),
        report.warnings,
    ))
}

/// All rows.
fn rows() -> impl Iterator<Item = &'static Row> {
    [signatures::ROWS, keys::ROWS, anchors::ROWS, child::ROWS, chain::ROWS, nsec3::ROWS].into_iter().flatten()
}

/// How many classes there are: there are at least as many unusual sound zones.
pub(super) fn class_count() -> usize {
    rows().count()
}

#[test]
fn classes_have_names_of_their_own() {
    let mut names: Vec<_> = rows().map(|row| row.class).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    assert!(rows().all(|row| row.rule.starts_with("RFC ")));
}

/// Tag and algorithm of the zone's first key.
fn key_of(bench: &Bench) -> (u16, Algorithm) {
    let key = &bench.keys.keys()[0];
    (key.tag(), key.algorithm())
}

fn untouched(_: &mut Rrsig<'_>) {}

/// The zone again with two keys of one algorithm, as KSK (or CSK) and ZSK by their flags.
fn with_keys(bench: &mut Bench, flags: [u16; 2]) {
    let algorithm = key_of(bench).1;
    let keys = vec![key("example.", flags[0], algorithm, 1), key("example.", flags[1], algorithm, 2)];
    *bench = Bench::new(&zone(RECORDS), KeySet::new(&name("example."), keys).unwrap(), bench.mechanism);
}

/// The zone with the octets of the records of one RRset changed, its signatures made anew.
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
