//! Builds nodes with their RRsets from sorted groups. Pieces of the zone are built in parallel and
//! joined in order.

use super::ParsedZone;
use super::fault::{SourceLocation, Warning, ZoneError, ZoneFault};
use super::gathered::GatheredParts;
use super::order;
use super::part::{GroupRecords, Part, Record};
use crate::contents::{Capacity, Contents, NodesBuilder};
use crate::node_checks::ALLOWED_WITH_CNAME;
use crate::size::{MAX_MESSAGE, check_rrset};
use nonesuch_proto::{Name, NameRef, Rtype, rdata};
use rayon::prelude::*;
use std::cmp::Ordering;
use std::ops::Range;

/// Number of octets of a record without its RDATA, if the owner is a compression pointer.
const RECORD_OCTETS: usize = 12;
/// Number of groups in a piece.
const GROUPS_PER_PIECE: usize = 1024;
/// Number of groups whose cache lines are requested from memory at the same time.
const GROUPS_PER_FETCH: usize = 64;
/// Number of pieces per thread that are in memory at once.
const PIECES_PER_THREAD: usize = 4;

/// Builds contents from the groups in `order`, with warnings.
pub(super) fn assemble(
    gathered: GatheredParts,
    apex: &Name,
    order: &[u128],
) -> Result<ParsedZone, ZoneError> {
    let counts = gathered.counts();
    // Each record may be a separate RRset. The system assigns memory only to capacity that is used,
    // and `Joined::finish` releases the rest.
    let capacity = Capacity {
        names: counts.names,
        rdata: counts.rdata,
        nodes: gathered.group_count(),
        rrsets: counts.records,
    };
    let mut joined =
        Joined { contents: Contents::with_capacity(apex, capacity), report: PieceReport::default() };
    let assembler = Assembler { gathered: &gathered, apex };
    let pieces = assembler.split_into_pieces(order);
    let mut ready: Vec<Result<Piece, ZoneError>> = Vec::new();
    for batch in pieces.chunks(PIECES_PER_THREAD * rayon::current_num_threads()) {
        let build_batch = || {
            let pieces = batch.par_iter().map(|range| assembler.build_piece(&order[range.clone()]));
            pieces.collect()
        };
        let (built, appended) = rayon::join(build_batch, || joined.append(std::mem::take(&mut ready)));
        appended?;
        ready = built;
    }
    joined.append(ready)?;
    drop(gathered);
    joined.finish()
}

/// The joined pieces.
struct Joined {
    contents: Contents,
    report: PieceReport,
}

/// Warnings and deferred errors of pieces.
#[derive(Default)]
struct PieceReport {
    duplicates: u64,
    warnings: Vec<Warning>,
    /// The first CNAME record with other data at its owner. It is deferred because any other error
    /// has precedence.
    cname_conflict: Option<ZoneError>,
}

impl Joined {
    fn append(&mut self, pieces: Vec<Result<Piece, ZoneError>>) -> Result<(), ZoneError> {
        for piece in pieces {
            let Piece { nodes, report } = piece?;
            self.contents.append_nodes(&nodes);
            self.report.duplicates += report.duplicates;
            self.report.warnings.extend(report.warnings);
            self.report.cname_conflict = self.report.cname_conflict.take().or(report.cname_conflict);
        }
        Ok(())
    }

    fn finish(self) -> Result<ParsedZone, ZoneError> {
        let Self { mut contents, report: PieceReport { duplicates, mut warnings, cname_conflict } } = self;
        if let Some(error) = cname_conflict {
            return Err(error);
        }
        if duplicates > 0 {
            warnings.push(Warning::Duplicates { count: duplicates });
        }
        contents.shrink_to_fit();
        Ok(ParsedZone { contents, warnings })
    }
}

/// Consecutive nodes with their warnings.
struct Piece {
    nodes: NodesBuilder,
    report: PieceReport,
}

/// Consecutive records of one owner.
struct Group<'g> {
    part: &'g Part,
    name: NameRef<'g>,
    records: GroupRecords<'g>,
}

/// A record of a node, with its sort key and its group.
struct NodeRecord<'g> {
    /// The covered type, then one bit for a signature: signatures follow the RRset that they cover.
    key: u32,
    /// Index into the groups of the node.
    group: u32,
    record: Record<'g>,
}

impl NodeRecord<'_> {
    const fn is_signature(&self) -> bool {
        self.key & 1 == 1
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let rdata = || rdata::cmp_canonical(self.record.rtype, self.record.rdata, other.record.rdata);
        self.key.cmp(&other.key).then_with(rdata)
    }
}

struct Assembler<'g> {
    gathered: &'g GatheredParts,
    apex: &'g Name,
}

impl<'g> Assembler<'g> {
    /// Splits the sorted groups into pieces of about [`GROUPS_PER_PIECE`] groups. All groups of a
    /// node are in one piece.
    fn split_into_pieces(&self, order: &[u128]) -> Vec<Range<usize>> {
        let mut pieces = Vec::with_capacity(order.len() / GROUPS_PER_PIECE + 1);
        let mut start = 0;
        while start < order.len() {
            let end = self.find_node_start(order, start + GROUPS_PER_PIECE);
            pieces.push(start..end);
            start = end;
        }
        pieces
    }

    /// Returns the first index at or after `at` in `order` at which the groups of another node
    /// begin.
    fn find_node_start(&self, order: &[u128], at: usize) -> usize {
        let name = |at: usize| self.gathered.name(order::group_number(order[at]));
        let mut at = at.min(order.len());
        while at < order.len() && name(at - 1) == name(at) {
            at += 1;
        }
        at
    }

    fn build_piece(&self, order: &[u128]) -> Result<Piece, ZoneError> {
        let mut piece = Piece {
            nodes: NodesBuilder::with_capacity(self.estimate_capacity(order.len())),
            report: PieceReport::default(),
        };
        let (mut groups, mut records) = (Vec::with_capacity(GROUPS_PER_FETCH), Vec::new());
        let mut start = 0;
        while start < order.len() {
            let end = self.find_node_start(order, start + GROUPS_PER_FETCH);
            self.fetch_groups(&order[start..end], &mut groups);
            start = end;
            for node in groups.chunk_by(|a: &Group<'g>, b| a.name == b.name) {
                collect_records(node, &mut records);
                self.push_node(node, &records, &mut piece)?;
            }
        }
        Ok(piece)
    }

    /// Returns the average capacity that `groups` groups need, plus one eighth.
    fn estimate_capacity(&self, groups: usize) -> Capacity {
        let counts = self.gathered.counts();
        let scale = |all: usize| {
            let average = all as u64 * groups as u64 / (self.gathered.group_count() as u64).max(1);
            (average + average / 8) as usize
        };
        Capacity {
            names: scale(counts.names),
            rdata: scale(counts.rdata),
            nodes: groups,
            rrsets: scale(counts.records),
        }
    }

    /// Stores the groups of the entries in `order` in `groups`. The groups are far apart in memory.
    /// So the function first reads one octet of each of the first cache lines of each group: the
    /// processor executes these independent reads at the same time.
    fn fetch_groups(&self, order: &[u128], groups: &mut Vec<Group<'g>>) {
        let locate = |entry: &u128| self.gathered.locate(order::group_number(*entry));
        let octets = order.iter().map(locate).map(|(part, group)| part.prefetch(group));
        std::hint::black_box(octets.fold(0, |all, octet| all ^ octet));
        groups.clear();
        groups.extend(order.iter().map(locate).map(|(part, group)| {
            let (name, records) = part.group(group);
            Group { part, name, records }
        }));
    }

    fn push_node(
        &self,
        groups: &[Group<'g>],
        records: &[NodeRecord<'g>],
        piece: &mut Piece,
    ) -> Result<(), ZoneError> {
        let Some(first) = records.first() else { return Ok(()) };
        let owner = groups[first.group as usize].name;
        piece.nodes.begin_node(owner);
        let mut previous: Option<&NodeRecord<'g>> = None;
        let mut warned: Option<Rtype> = None;
        for found in records {
            let NodeRecord { key, record, .. } = found;
            match previous.filter(|previous| previous.key == *key) {
                None => {
                    piece.nodes.begin_rrset(record.rtype, record.covered(), record.ttl);
                    self.check_soa(groups, found)?;
                }
                Some(previous) if previous.cmp(found).is_eq() => {
                    piece.report.duplicates += 1;
                    continue;
                }
                Some(_) => {
                    check_singleton(groups, found)?;
                    if piece.nodes.lower_ttl(record.ttl) && warned != Some(record.rtype) {
                        warned = Some(record.rtype);
                        let warning = Warning::MixedTtl { owner: owner.to_name(), rtype: record.rtype };
                        piece.report.warnings.push(warning);
                    }
                }
            }
            piece.nodes.push_record(|out| out.extend_from_slice(record.rdata));
            previous = Some(found);
        }
        self.check_sizes(owner, groups, records)?;
        if piece.report.cname_conflict.is_none() {
            piece.report.cname_conflict = find_cname_conflict(groups, records);
        }
        Ok(())
    }

    /// Checks that each RRset with its signatures fits in a message. An error has the source
    /// location of the first record of the RRset.
    fn check_sizes(
        &self,
        owner: NameRef<'_>,
        groups: &[Group<'_>],
        records: &[NodeRecord<'_>],
    ) -> Result<(), ZoneError> {
        // Fast path: most names have fewer records than fit in a message.
        if records.iter().map(|found| found.record.rdata.len() + RECORD_OCTETS).sum::<usize>()
            <= MAX_MESSAGE / 2
        {
            return Ok(());
        }
        for set in records.chunk_by(|a, b| a.record.covered() == b.record.covered()) {
            let mut unique: Vec<&NodeRecord<'_>> = set.iter().collect();
            unique.dedup_by(|a, b| a.cmp(b).is_eq());
            let split = unique.partition_point(|found| !found.is_signature());
            let (plain, signatures) = unique.split_at(split);
            // Signatures without their RRset form an RRset.
            let (plain, signatures) =
                if plain.is_empty() { (signatures, plain) } else { (plain, signatures) };
            let Some(first) = plain.iter().min_by_key(|found| location_of(groups, found)) else { continue };
            let checked = check_rrset(
                owner,
                self.apex.view(),
                first.record.rtype,
                plain.iter().map(|found| found.record.rdata),
                signatures.iter().map(|found| found.record.rdata.len()),
            );
            checked.map_err(|fault| ZoneError { fault, location: location_of(groups, first) })?;
        }
        Ok(())
    }

    /// Checks that an SOA record is at the apex.
    fn check_soa(&self, groups: &[Group<'_>], found: &NodeRecord<'_>) -> Result<(), ZoneError> {
        if found.record.rtype != Rtype::SOA {
            return Ok(());
        }
        let owner = groups[found.group as usize].name;
        if owner == self.apex.view() {
            return Ok(());
        }
        Err(ZoneError { fault: ZoneFault::SecondSoa(owner.to_name()), location: location_of(groups, found) })
    }
}

/// Collects the records of a node in sorted order. Equal records stay in the order in which they
/// were added.
fn collect_records<'g>(groups: &[Group<'g>], records: &mut Vec<NodeRecord<'g>>) {
    records.clear();
    for (index, group) in groups.iter().enumerate() {
        records.extend(group.records.clone().map(|record| NodeRecord {
            key: u32::from(record.covered().0) << 1 | u32::from(record.rtype == Rtype::RRSIG),
            group: index as u32,
            record,
        }));
    }
    if !records.is_sorted_by(|a, b| a.cmp(b).is_le()) {
        records.sort_by(NodeRecord::cmp);
    }
}

/// Returns the source location of a record in `groups`.
fn location_of(groups: &[Group<'_>], found: &NodeRecord<'_>) -> SourceLocation {
    groups[found.group as usize].part.location_of(&found.record)
}

/// Checks types of which a name has at most one record. The caller has found a second record of
/// this type.
fn check_singleton(groups: &[Group<'_>], found: &NodeRecord<'_>) -> Result<(), ZoneError> {
    let owner = || groups[found.group as usize].name.to_name();
    let fault = match found.record.rtype {
        Rtype::SOA => ZoneFault::SecondSoa(owner()),
        Rtype::CNAME | Rtype::DNAME => ZoneFault::NotSingleton { owner: owner(), rtype: found.record.rtype },
        _ => return Ok(()),
    };
    Err(ZoneError { fault, location: location_of(groups, found) })
}

/// Finds a CNAME record with other data that may not exist at its owner.
fn find_cname_conflict(groups: &[Group<'_>], records: &[NodeRecord<'_>]) -> Option<ZoneError> {
    let first = records.iter().find(|found| found.record.rtype == Rtype::CNAME)?;
    let other = records.iter().find(|found| !ALLOWED_WITH_CNAME.contains(&found.record.rtype))?;
    let owner = groups[first.group as usize].name.to_name();
    let fault = ZoneFault::CnameAndOther { owner, other: other.record.rtype };
    Some(ZoneError { fault, location: location_of(groups, other) })
}

impl NodesBuilder {
    /// Lowers the TTL of the current RRset to `ttl`. Returns whether the two TTLs differed.
    fn lower_ttl(&mut self, ttl: u32) -> bool {
        let Some(rrset) = self.current_rrset() else { return false };
        let differed = rrset.ttl != ttl;
        rrset.ttl = rrset.ttl.min(ttl);
        rrset.mixed_ttls |= differed;
        differed
    }
}
