//! The records of a transfer, in their order, from wherever the message before has ended.

use super::compress::Compressor;
use nonesuch_proto::Rtype;
use nonesuch_zone::journal::{Changes, JournalError};
use nonesuch_zone::{ChangeSet, Contents, Node, Rrset};
use std::sync::Arc;

/// Octets of the longest message.
pub(super) const LONGEST: usize = 65_535;

/// Why the records cannot be continued.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordsError {
    #[error("a record of {owner} has no room in a message of 65,535 octets")]
    TooLong { owner: String },
    #[error("{0}")]
    Journal(#[from] JournalError),
}

/// A message that is filled with records.
pub(super) struct Page<'m> {
    pub(super) message: &'m mut Vec<u8>,
    pub(super) names: &'m mut Compressor,
    /// Octets that it is to have at most, and that it may have at most where one record needs more.
    pub(super) wanted: usize,
    pub(super) most: usize,
    /// Records so far.
    pub(super) count: u16,
}

/// What came of filling a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    /// There is no room for the next record.
    Full,
    /// There are no more records.
    Done,
}

impl Page<'_> {
    /// Adds a record; false where it has no room and others have some.
    fn push(&mut self, node: Node<'_>, rrset: Rrset<'_>, rdata: &[u8]) -> Result<bool, RecordsError> {
        let end = self.message.len();
        self.names.push_record((node.name(), rrset.rtype(), rrset.ttl()), rdata, self.message);
        let most = if self.count == 0 { self.most } else { self.wanted };
        if self.message.len() <= most && self.count < u16::MAX {
            self.count += 1;
            return Ok(true);
        }
        // What the compressor remembers of it does not matter: the message ends here.
        self.message.truncate(end);
        if self.count == 0 {
            return Err(RecordsError::TooLong { owner: node.name().to_string() });
        }
        Ok(false)
    }

    /// Adds the SOA record of `contents`.
    fn push_soa(&mut self, contents: &Contents) -> Result<bool, RecordsError> {
        self.names.end_owner();
        let apex = contents.nodes().next();
        let soa = apex.and_then(|node| Some((node, node.rrset(Rtype::SOA)?)));
        let Some((node, rrset)) = soa else { return Ok(true) };
        rrset.rdatas().next().map_or(Ok(true), |rdata| self.push(node, rrset, rdata))
    }
}

/// The records of a zone, or of one side of a change: the SOA record first.
#[derive(Debug)]
struct Walk {
    contents: Arc<Contents>,
    is_begun: bool,
    node: usize,
    rrset: usize,
    record: usize,
}

impl Walk {
    const fn new(contents: Arc<Contents>) -> Self {
        Self { contents, is_begun: false, node: 0, rrset: 0, record: 0 }
    }

    fn fill(&mut self, page: &mut Page<'_>) -> Result<Filled, RecordsError> {
        if !self.is_begun {
            if !page.push_soa(&self.contents)? {
                return Ok(Filled::Full);
            }
            self.is_begun = true;
        }
        while self.node < self.contents.node_count() {
            let node = self.contents.node(self.node);
            page.names.end_owner();
            for rrset in node.rrsets().skip(self.rrset) {
                if rrset.rtype() != Rtype::SOA {
                    for rdata in rrset.rdatas().skip(self.record) {
                        if !page.push(node, rrset, rdata)? {
                            return Ok(Filled::Full);
                        }
                        self.record += 1;
                    }
                }
                (self.rrset, self.record) = (self.rrset + 1, 0);
            }
            (self.node, self.rrset) = (self.node + 1, 0);
        }
        Ok(Filled::Done)
    }
}

/// All records of an answer to AXFR or IXFR, in order.
#[derive(Debug)]
pub(super) struct Records {
    zone: Arc<Contents>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The SOA record alone: the sender has the newest version, or is to ask again over TCP.
    Soa,
    /// All of the zone (RFC 5936 §2.2), to which the SOA record comes again.
    Zone(Walk),
    /// The SOA record in front of changes.
    Before(Changes),
    /// What is removed by a change, then what it adds (RFC 1995 §4).
    Changes {
        changes: Changes,
        next: usize,
        removed: Option<Walk>,
        added: Option<Walk>,
    },
    /// The SOA record at the end.
    After,
    Done,
}

impl Records {
    pub(super) const fn soa(zone: Arc<Contents>) -> Self {
        Self { zone, stage: Stage::Soa }
    }

    pub(super) fn zone(zone: Arc<Contents>) -> Self {
        let stage = Stage::Zone(Walk::new(Arc::clone(&zone)));
        Self { zone, stage }
    }

    pub(super) const fn changes(zone: Arc<Contents>, changes: Changes) -> Self {
        Self { zone, stage: Stage::Before(changes) }
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Fills a message.
    pub(super) fn fill(&mut self, page: &mut Page<'_>) -> Result<(), RecordsError> {
        while !self.is_done() {
            let filled = match &mut self.stage {
                Stage::Soa | Stage::After | Stage::Before(_) => {
                    if page.push_soa(&self.zone)? {
                        Filled::Done
                    } else {
                        Filled::Full
                    }
                }
                Stage::Zone(walk) => walk.fill(page)?,
                Stage::Changes { changes, next, removed, added } => {
                    fill_changes(changes, next, removed, added, page)?
                }
                Stage::Done => Filled::Done,
            };
            if filled == Filled::Full {
                return Ok(());
            }
            self.stage = match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::Before(changes) => Stage::Changes { changes, next: 0, removed: None, added: None },
                Stage::Zone(_) | Stage::Changes { .. } => Stage::After,
                Stage::Soa | Stage::After | Stage::Done => Stage::Done,
            };
        }
        Ok(())
    }
}

fn fill_changes(
    changes: &Changes,
    next: &mut usize,
    removed: &mut Option<Walk>,
    added: &mut Option<Walk>,
    page: &mut Page<'_>,
) -> Result<Filled, RecordsError> {
    loop {
        for side in [&mut *removed, &mut *added] {
            if let Some(walk) = side {
                if walk.fill(page)? == Filled::Full {
                    return Ok(Filled::Full);
                }
                *side = None;
            }
        }
        let Some(change) = changes.read(*next).transpose()? else { return Ok(Filled::Done) };
        *next += 1;
        let walk = |side| Some(Walk::new(Arc::new(side)));
        let (old, new) = ChangeSet::into_sides(change);
        (*removed, *added) = (walk(old), walk(new));
    }
}
