//! `nonesuch zone diff`: shows the differences between two versions of a zone.

use crate::arguments::{DiffArguments, DiffScope};
use crate::files::{FileError, check_inputs};
use crate::outcome::CommandOutcome;
use crate::zones::{self, ReadZoneError};
use nonesuch_dnssec::difference::{Difference, data_changes, difference};
use nonesuch_dnssec::inspect::{KeyInfo, belongs_to_signer, is_signed};
use nonesuch_proto::{Name, rdata};
use nonesuch_zone::{ChangeSet, Contents, Node, Rrset};
use serde_json::{Value, json};
use std::io::{self, BufWriter, Write};

/// Why two versions are not compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Load(#[from] ReadZoneError),
    #[error("the old file has the zone {old} and the new file {new}: name two versions of one zone")]
    DifferentZones { old: Name, new: Name },
}

pub(crate) fn run(arguments: &DiffArguments) -> Result<CommandOutcome, Failure> {
    let origin = arguments.origin.as_ref();
    check_inputs([&arguments.old, &arguments.new])?;
    let old = zones::read_zone(&arguments.old, origin)?;
    let new = zones::read_zone(&arguments.new, origin)?;
    if old.apex() != new.apex() {
        return Err(Failure::DifferentZones { old: old.apex().clone(), new: new.apex().clone() });
    }
    let comparison = compare(arguments, &old, &new);
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if arguments.json {
        comparison.write_json(&mut out)
    } else if arguments.changes {
        comparison.listed.write(&mut out)
    } else {
        comparison.listed.write(&mut out).and_then(|()| comparison.write_summary(&mut out))
    };
    written.and_then(|()| out.flush()).map_err(FileError::output)?;
    Ok(if comparison.is_same() { CommandOutcome::Done } else { CommandOutcome::Negative })
}

/// The scope and the results of a comparison.
struct Comparison {
    /// The records that are listed.
    listed: ChangeSet,
    /// `None` if data are not compared.
    data: Option<DataCounts>,
    /// The differences of the DNSSEC records; `None` if they are not compared.
    dnssec: Option<Difference>,
}

/// Counts of changed data.
#[derive(Clone, Copy, Default)]
struct DataCounts {
    removed: u64,
    added: u64,
    /// Number of names with changes.
    names: usize,
    /// Records that differ only in letter case; each counts as removed and added.
    case_only: u64,
}

fn compare(arguments: &DiffArguments, old: &Contents, new: &Contents) -> Comparison {
    let scope = if arguments.all { DiffScope::All } else { arguments.dnssec };
    let data = (scope != DiffScope::Only).then(|| data_changes(old, new));
    let figures = data.as_ref().map(DataCounts::of);
    // For a change set of data only, DNSSEC need not be compared.
    let needs_dnssec = scope != DiffScope::Data && !(arguments.changes && scope == DiffScope::Summary);
    let dnssec = needs_dnssec.then(|| difference(old, new));
    let listed = match scope {
        DiffScope::All => ChangeSet::between(old, new, |_| true),
        DiffScope::Only => dnssec_changes(old, new),
        DiffScope::Summary | DiffScope::Data => data.unwrap_or_else(|| data_changes(old, new)),
    };
    Comparison { listed, data: figures, dnssec }
}

/// The changes that [`data_changes`] excludes.
fn dnssec_changes(old: &Contents, new: &Contents) -> ChangeSet {
    let is_any_signed = is_signed(old) || is_signed(new);
    let apex = old.apex().view();
    ChangeSet::between_nodes(old, new, |node, rrset| belongs_to_signer(node, rrset, apex, is_any_signed))
}

impl DataCounts {
    fn of(changes: &ChangeSet) -> Self {
        Self {
            removed: changes.removed().record_count(),
            added: changes.added().record_count(),
            names: changes.touched().count(),
            case_only: changes
                .touched()
                .filter_map(|touched| Some((touched.removed()?, touched.added()?)))
                .map(|(removed, added)| count_case_only(removed, added))
                .sum(),
        }
    }
}

/// Number of records that both nodes have and that differ only in letter case.
fn count_case_only(removed: Node<'_>, added: Node<'_>) -> u64 {
    let in_added = |rrset: Rrset<'_>, record: &[u8]| {
        let same_set = added.rrset(rrset.rtype()).filter(|other| other.ttl() == rrset.ttl());
        let is_same = |other: &[u8]| rdata::cmp_canonical(rrset.rtype(), other, record).is_eq();
        same_set.is_some_and(|other| other.rdatas().any(is_same))
    };
    let records = removed.rrsets().flat_map(|rrset| rrset.rdatas().map(move |record| (rrset, record)));
    records.filter(|(rrset, record)| in_added(*rrset, record)).count() as u64
}

impl Comparison {
    /// Whether the comparison found no difference.
    fn is_same(&self) -> bool {
        self.listed.is_empty()
            && self.data.is_none_or(|data| data.names == 0)
            && self.dnssec.as_ref().is_none_or(Difference::is_empty)
    }

    /// Writes lines that begin like comments of a change set, so that the complete output is a
    /// change set.
    fn write_summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let apex = self.listed.apex();
        // Without data, nothing was compared.
        let unsigned = self.dnssec.as_ref().is_some_and(|dnssec| dnssec.signed == [false, false]);
        if self.is_same() && self.data.is_none() && unsigned {
            return writeln!(out, "; {apex} is unsigned in both versions: no DNSSEC records to compare");
        }
        if self.is_same() {
            return writeln!(out, "; {apex} is the same");
        }
        if let Some([Some(old), Some(new)]) = self.dnssec.as_ref().map(|dnssec| dnssec.serials) {
            writeln!(out, "; {apex} serial {old} -> {new}")?;
        }
        if let Some(DataCounts { removed, added, names, case_only }) = self.data {
            write!(out, "; data: {removed} records removed, {added} added, at {names} names")?;
            if case_only > 0 {
                write!(out, "; {case_only} of them differ only in letter case")?;
            }
            writeln!(out)?;
        }
        self.dnssec.as_ref().map_or(Ok(()), |dnssec| write_dnssec(dnssec, out))
    }

    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::new();
        self.listed.write(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let changes: Vec<Value> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(sign, record)| json!({ "change": sign, "record": record }))
            .collect();
        let data = self.data.map(|data| {
            json!({
                "removed": data.removed, "added": data.added, "names": data.names,
                "letter_case_alone": data.case_only,
            })
        });
        let value = json!({
            "zone": self.listed.apex().to_string(), "same": self.is_same(), "data": data,
            "dnssec": self.dnssec.as_ref().map(dnssec_json), "changes": changes,
        });
        writeln!(out, "{value}")
    }
}

fn write_dnssec(dnssec: &Difference, out: &mut dyn Write) -> io::Result<()> {
    match dnssec.signed {
        [false, false] => return Ok(()),
        [false, true] => writeln!(out, "; the new version is signed, the old one is not")?,
        [true, false] => writeln!(out, "; the old version is signed, the new one is not")?,
        [true, true] => {}
    }
    for (change, keys) in [("removed", &dnssec.keys_removed), ("added", &dnssec.keys_added)] {
        for key in keys {
            writeln!(out, "; key {change}: {key}")?;
        }
    }
    let [old, new] = dnssec
        .denial
        .each_ref()
        .map(|denial| denial.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string));
    if old != new {
        writeln!(out, "; denial: {old} -> {new}")?;
    }
    let chain = &dnssec.chain;
    if dnssec.chain != Default::default() {
        let (removed, added, changed) = (chain.removed, chain.added, chain.changed);
        writeln!(out, "; chain: {removed} RRsets removed, {added} added, {changed} changed")?;
    }
    let counts = &dnssec.signatures;
    if counts.renewed + counts.changed + counts.removed + counts.added > 0 {
        writeln!(
            out,
            "; signatures: {} kept, {} renewed, {} over changed records, {} removed, {} added",
            counts.kept, counts.renewed, counts.changed, counts.removed, counts.added
        )?;
        if counts.renewed + counts.changed > 0 {
            writeln!(
                out,
                "; expirations: {} later, {} earlier",
                counts.expires_later, counts.expires_earlier
            )?;
        }
    }
    for rtype in &dnssec.apex_types {
        writeln!(out, "; {rtype} at the apex differs")?;
    }
    for fault in &dnssec.unsafe_transition {
        writeln!(out, "; unsafe transition: {fault}")?;
    }
    Ok(())
}

fn dnssec_json(dnssec: &Difference) -> Value {
    let keys = |keys: &[KeyInfo]| -> Vec<Value> { keys.iter().map(zones::key_json).collect() };
    let denial = dnssec.denial.each_ref().map(|denial| denial.as_ref().map(zones::denial_json));
    let (chain, counts) = (&dnssec.chain, &dnssec.signatures);
    json!({
        "serials": dnssec.serials, "signed": dnssec.signed,
        "keys_removed": keys(&dnssec.keys_removed), "keys_added": keys(&dnssec.keys_added), "denial": denial,
        "chain": { "removed": chain.removed, "added": chain.added, "changed": chain.changed },
        "signatures": {
            "kept": counts.kept, "renewed": counts.renewed, "over_changed_records": counts.changed,
            "removed": counts.removed, "added": counts.added, "later": counts.expires_later, "earlier": counts.expires_earlier,
        },
        "unsafe_transition": dnssec.unsafe_transition.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "apex_types": dnssec.apex_types.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
