//! The table of sound but unusual zones. No zone causes a false fault with any algorithm and
//! mechanism, and the expected warnings are exact. Each zone is written, read again, verified
//! again, and compiled as a server would do.

mod chains;
mod digests;
mod names;
mod records;
mod rollovers;
mod signatures;
mod structures;
mod types;

use super::faults::{Scope, cells, class_count};
use super::*;
use crate::verify::{Anchor, VerifyWarning};
use nonesuch_zone::Image;
use rayon::prelude::*;

/// The algorithm and mechanism with which a case is tested.
#[derive(Clone, Copy)]
struct Variant {
    algorithm: Algorithm,
    mechanism: Mechanism,
}

/// A sound case.
struct Row {
    case: &'static str,
    /// The rule that permits it.
    rule: &'static str,
    scope: Scope,
    make: Make,
}

/// How the zone of a case is generated.
enum Make {
    /// The records below the apex. The zone is signed with one key.
    Records(&'static str),
    /// A function generates the zone.
    Steps(fn(Variant) -> Sound),
}

fn plain((case, rule, records): &records::Plain) -> Row {
    Row { case, rule, scope: Scope::Every, make: Make::Records(records) }
}

const fn row(case: &'static str, rule: &'static str, scope: Scope, make: fn(Variant) -> Sound) -> Row {
    Row { case, rule, scope, make: Make::Steps(make) }
}

/// A sound zone and the parameters of its verification.
struct Sound {
    contents: Contents,
    now: u32,
    anchors: Vec<Anchor>,
    warnings: Vec<VerifyWarning>,
    /// The stored proofs, with NSEC5.
    proofs: Option<Arc<Proofs>>,
    /// Warnings about the stored proofs.
    of_proofs: Vec<VerifyWarning>,
}

impl Sound {
    const fn new(contents: Contents) -> Self {
        Self {
            contents,
            now: NOW,
            anchors: Vec::new(),
            warnings: Vec::new(),
            proofs: None,
            of_proofs: Vec::new(),
        }
    }

    fn warned(mut self, warning: VerifyWarning) -> Self {
        self.warnings.push(warning);
        self
    }

    /// Like [`Sound::warned`], for a warning about the stored proofs.
    fn only_by_proofs(mut self, warning: VerifyWarning) -> Self {
        self.of_proofs.push(warning);
        self
    }

    fn against(mut self, anchors: Vec<Anchor>) -> Self {
        self.anchors = anchors;
        self
    }

    const fn at(mut self, now: u32) -> Self {
        self.now = now;
        self
    }
}

impl From<Bench> for Sound {
    fn from(bench: Bench) -> Self {
        Self { proofs: bench.proofs.clone(), ..Self::new(bench.contents()) }
    }
}

impl Variant {
    fn key(self, flags: u16, seed: u8) -> KeyPair {
        key("example.", flags, self.algorithm, seed)
    }

    fn csk(self) -> Vec<KeyPair> {
        vec![self.key(257, 1)]
    }

    fn options(self) -> SignOptions<'static> {
        options(self.mechanism)
    }

    /// The zone of `contents`, signed with `keys`, without any assertion.
    fn bench(self, contents: &Contents, keys: Vec<KeyPair>, options: &SignOptions<'_>) -> Bench {
        Bench::of(contents, Arc::new(KeySet::new(contents.apex(), keys).unwrap()), options)
    }

    /// Like [`Variant::bench`], with these records and default options.
    fn signed(self, records: &str, keys: Vec<KeyPair>) -> Bench {
        self.bench(&zone(records), keys, &self.options())
    }
}

/// The records with which most functions begin.
const RECORDS: &str = "a A 192.0.2.1\nb TXT \"t\"\nd NS ns.d\nns.d A 192.0.2.9\n*.w A 192.0.2.1\nx.ent A 192.0.2.1\n\
    s NS ns.elsewhere.test.\ns DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000";

/// Tests each case with each algorithm and mechanism of its scope.
#[track_caller]
fn try_all(rows: &[Row]) {
    let mut all = Vec::new();
    for row in rows {
        all.extend(cells(row.scope).map(|(algorithm, mechanism)| (row, Variant { algorithm, mechanism })));
    }
    let alarms: Vec<String> = all.par_iter().filter_map(|(row, variant)| try_one(row, *variant)).collect();
    assert!(alarms.is_empty(), "{}", alarms.join("\n"));
}

fn try_one(row: &Row, variant: Variant) -> Option<String> {
    let sound = match row.make {
        Make::Records(records) => variant.signed(records, variant.csk()).into(),
        Make::Steps(make) => make(variant),
    };
    let options =
        VerifyOptions { now: Some(sound.now), anchors: sound.anchors.clone(), ..VerifyOptions::default() };
    let written = text(&sound.contents);
    let again = read_zone(&written, sound.contents.apex());
    let what = format!("{} ({}), {}, {}", row.case, row.rule, variant.algorithm, variant.mechanism);
    if text(&again) != written {
        return Some(format!("{what}: written and read it is another zone"));
    }
    let evidence = Nsec5Evidence { proofs: sound.proofs.as_deref(), key: None };
    let unmatched = [&sound.warnings[..], &[VerifyWarning::NamesNotMatched]].concat();
    let by_proofs = [&sound.warnings[..], &sound.of_proofs].concat();
    let mut ways =
        vec![(&sound.contents, evidence, &by_proofs, "made"), (&again, evidence, &by_proofs, "read again")];
    if evidence.proofs.is_some() {
        ways.push((&again, Nsec5Evidence::default(), &unmatched, "without proofs"));
    }
    for (contents, evidence, warnings, which) in ways {
        let report = verify_with(contents, &options, &evidence);
        if !report.faults.is_empty() || report.warnings != *warnings {
            return Some(format!("{what}, {which}:\n  {:?}\n  {:?}", report.faults, report.warnings));
        }
        if report.mechanism != Some(variant.mechanism) {
            return Some(format!("{what}, {which}: taken for {:?}", report.mechanism));
        }
    }
    Image::compile(&again).err().map(|error| format!("{what}: {error}"))
}

/// Case and rule of every zone.
fn cases() -> Vec<(&'static str, &'static str)> {
    let plain = [records::NAMES, records::TYPES, records::STRUCTURES].into_iter().flatten();
    let steps = [names::ROWS, types::ROWS, structures::ROWS, signatures::ROWS, rollovers::ROWS];
    let steps =
        steps.into_iter().chain([chains::ROWS, digests::ROWS]).flatten().map(|row| (row.case, row.rule));
    plain.map(|(case, rule, _)| (*case, *rule)).chain(steps).collect()
}

#[test]
fn there_are_as_many_sound_cases_as_classes_of_fault() {
    let mut cases = cases();
    println!("{} sound cases, {} classes of fault", cases.len(), class_count());
    assert!(cases.len() >= class_count(), "{} < {}", cases.len(), class_count());
    let is_rule = |rule: &str| ["RFC ", "draft-vcelak-nsec5-07"].iter().any(|start| rule.starts_with(start));
    assert!(cases.iter().all(|(_, rule)| is_rule(rule)));
    cases.sort_unstable();
    assert!(cases.windows(2).all(|pair| pair[0].0 != pair[1].0), "{cases:?}");
}

/// The text of a DNSKEY record's RDATA.
fn text_of_key(key: &KeyPair) -> String {
    text_of(Rtype::DNSKEY, &key.dnskey_rdata())
}

fn text_of(rtype: Rtype, octets: &[u8]) -> String {
    let mut out = Vec::new();
    rdata::push_text(rtype, octets, &mut out);
    String::from_utf8(out).unwrap()
}
