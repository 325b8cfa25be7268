//! Application of a change set to a zone: a removed record must exist, an added record must not
//! exist.

use super::{ChangeSet, sort_key};
use crate::builder::ZoneFault;
use crate::contents::{Contents, Node, NodesBuilder, Rrset};
use crate::node_checks;
use nonesuch_proto::{NameRef, Rtype, rdata, text};

/// Whether the serial of a removed SOA record must be the serial of the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SerialRule {
    /// The serials must be equal: the change set applies to exactly this version.
    #[default]
    Exact,
    /// The serials may differ, because signing changed the serial of the zone.
    Any,
}

/// Reason why a change cannot be applied to a zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeFault {
    /// A removed record does not exist.
    #[error(
        "cannot remove the record '{0}': it is not in the zone: create the change set again from this version of the zone"
    )]
    Missing(String),
    /// A removed record exists with another TTL.
    #[error("cannot remove the record '{record}': its TTL in the zone is {found}: write that TTL")]
    OtherTtl {
        /// The record in the change set.
        record: String,
        /// The TTL in the zone.
        found: u32,
    },
    /// An added record already exists.
    #[error(
        "cannot add the record '{0}': it is already in the zone: create the change set again from this version of the zone"
    )]
    AlreadyExists(String),
    /// Records of one RRset would have different TTLs (RFC 2181 §5.2).
    #[error(
        "cannot add the record '{record}': its RRset has the TTL {found}: write that TTL, or remove and add the whole RRset"
    )]
    MixedTtl {
        /// The record in the change set.
        record: String,
        /// The TTL of the RRset.
        found: u32,
    },
    /// The result would not be a valid zone.
    #[error("zone after the changes: {0}")]
    Zone(ZoneFault),
}

/// Error when a change set is applied, with the line of the change if the change set was read from
/// text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct ChangeError {
    /// Line in the text of the change set, from 1; 0 if the change set was not read from text.
    pub line: u32,
    /// The fault.
    pub fault: ChangeFault,
}

/// The changes at one name.
#[derive(Clone, Copy, Debug)]
pub struct TouchedName<'c> {
    pub(super) set: &'c ChangeSet,
    pub(super) removed: Option<Node<'c>>,
    pub(super) added: Option<Node<'c>>,
}

impl ChangeSet {
    /// Applies the changes to `old` and returns the new zone.
    ///
    /// # Errors
    /// The first change, in canonical order, that cannot be applied; or a fault in the new zone.
    pub fn apply(&self, old: &Contents, serial_rule: SerialRule) -> Result<Contents, ChangeError> {
        let mut new_nodes = NodesBuilder::default();
        // Nodes of `old` before this index are processed.
        let mut copied_end = 0;
        let mut apex = old.apex().clone();
        for touched in self.touched() {
            touched.check_in_zone(old.apex().view())?;
            let (found, index) = match old.find_from(copied_end, touched.name()) {
                Ok(node) => (Some(node), node.index()),
                Err(index) => (None, index),
            };
            new_nodes.push_nodes(old, copied_end..index);
            let has_records = touched.apply_to(found, serial_rule, &mut new_nodes)?;
            if has_records && index == 0 && found.is_some() {
                apex = touched.resulting_name(found).to_name();
            }
            copied_end = index + usize::from(found.is_some());
        }
        new_nodes.push_nodes(old, copied_end..old.node_count());
        let new = Contents::from_parts(&apex, vec![new_nodes]);
        self.check_zone(&new)?;
        Ok(new)
    }

    /// Checks the new zone: the rules of [`node_checks::check_node`] at the changed names, and the
    /// existence of an SOA record.
    fn check_zone(&self, new: &Contents) -> Result<(), ChangeError> {
        let error = |line, fault| Err(ChangeError { line, fault: ChangeFault::Zone(fault) });
        let mut next = 0;
        for touched in self.touched() {
            next = match new.find_from(next, touched.name()) {
                Ok(node) => {
                    if let Some(fault) = node_checks::check_node(node, new.apex().view()) {
                        return error(touched.first_line(), fault);
                    }
                    node.index()
                }
                Err(index) => index,
            };
        }
        if new.soa().is_none() {
            let apex = self.touched().next().filter(|touched| touched.name() == new.apex().view());
            let line = apex.map_or(0, |touched| touched.first_line());
            return error(line, ZoneFault::NoSoa(new.apex().clone()));
        }
        Ok(())
    }

    /// Returns the line of a record of one side. `record` is the number of records before it in the
    /// node.
    fn line(&self, is_added: bool, node: Node<'_>, record: usize) -> u32 {
        let (side, lines) =
            if is_added { (&self.added, &self.added_lines) } else { (&self.removed, &self.removed_lines) };
        if lines.is_empty() {
            return 0;
        }
        let before = side.nodes().take(node.index()).flat_map(|node| node.rrsets());
        let before: usize = before.map(|rrset| rrset.count()).sum();
        lines.get(before + record).copied().unwrap_or(0)
    }
}

impl<'c> TouchedName<'c> {
    /// The name. If records are added, it has the letter case of the added records.
    #[must_use]
    pub fn name(&self) -> NameRef<'c> {
        self.added.or(self.removed).map_or(NameRef::ROOT, Node::name)
    }

    /// The records removed at this name.
    #[must_use]
    pub const fn removed(&self) -> Option<Node<'c>> {
        self.removed
    }

    /// The records added at this name.
    #[must_use]
    pub const fn added(&self) -> Option<Node<'c>> {
        self.added
    }

    /// Line of the first change at the name; 0 if the change set was not read from text.
    #[must_use]
    pub fn first_line(&self) -> u32 {
        let lines = [
            self.added.map(|node| self.set.line(true, node, 0)),
            self.removed.map(|node| self.set.line(false, node, 0)),
        ];
        lines.into_iter().flatten().min().unwrap_or(0)
    }

    /// Checks that the name is at or below the apex.
    ///
    /// # Errors
    /// [`ZoneFault::OutOfZone`] if it is not.
    pub fn check_in_zone(&self, apex: NameRef<'_>) -> Result<(), ChangeError> {
        if self.name().is_at_or_below(apex) {
            return Ok(());
        }
        let fault = ZoneFault::OutOfZone { owner: self.name().to_name(), apex: apex.to_name() };
        Err(ChangeError { line: self.first_line(), fault: ChangeFault::Zone(fault) })
    }

    /// Applies the changes at this name and appends the resulting node, if it has records, to
    /// `new_nodes`. `old` is the node of this name in the zone, if it exists. Returns whether a
    /// node was appended. Does not check the rules for the whole zone, such as no other data at a
    /// CNAME record.
    ///
    /// # Errors
    /// The first change that cannot be applied.
    pub fn apply_to(
        &self,
        old: Option<Node<'_>>,
        serial_rule: SerialRule,
        new_nodes: &mut NodesBuilder,
    ) -> Result<bool, ChangeError> {
        let sides = [old, self.removed, self.added];
        let mut sort_keys: Vec<_> =
            sides.iter().flatten().flat_map(|node| node.rrsets().map(sort_key)).collect();
        sort_keys.sort_unstable();
        sort_keys.dedup();
        let mut has_begun = false;
        for (covered, is_signature) in sort_keys {
            let rtype = if is_signature { Rtype::RRSIG } else { covered };
            let old_rrset = old.and_then(|node| find(node, rtype, covered));
            let removed = self.removed.and_then(|node| find(node, rtype, covered));
            let added = self.added.and_then(|node| find(node, rtype, covered));
            let mut rdatas = self.remove(old_rrset, removed, serial_rule)?;
            self.check_added(&rdatas, old_rrset, added)?;
            let remaining = old_rrset.filter(|_| !rdatas.is_empty());
            let mixed_ttls = [remaining, added].into_iter().flatten().any(Rrset::has_mixed_ttls);
            rdatas.extend(added.iter().flat_map(|rrset| rrset.rdatas()));
            let Some(ttl) = added.or(old_rrset).map(Rrset::ttl).filter(|_| !rdatas.is_empty()) else {
                continue;
            };
            if !has_begun {
                new_nodes.begin_node(self.resulting_name(old));
                has_begun = true;
            }
            rdatas.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
            new_nodes.begin_rrset(rtype, covered, ttl);
            new_nodes.mark_mixed_ttls(mixed_ttls);
            for record in rdatas {
                new_nodes.push_record(|out| out.extend_from_slice(record));
            }
        }
        Ok(has_begun)
    }

    /// Returns the owner name of the resulting node: the name in `old` if at least one of its
    /// records remains, otherwise the name of the added records.
    fn resulting_name<'n>(&self, old: Option<Node<'n>>) -> NameRef<'n>
    where
        'c: 'n,
    {
        let has_remaining_records = |old: &Node<'_>| {
            old.rrsets().any(|rrset| {
                let removed_rrset = self.removed.and_then(|node| find(node, rrset.rtype(), rrset.covered()));
                removed_rrset.is_none_or(|removed_rrset| removed_rrset.count() < rrset.count())
            })
        };
        old.filter(has_remaining_records).or(self.added).or(old).map_or(NameRef::ROOT, Node::name)
    }

    /// Removes the records of `removed` from `old` and returns the remaining ones.
    ///
    /// # Errors
    /// [`ChangeFault::Missing`], [`ChangeFault::OtherTtl`].
    fn remove<'z>(
        &self,
        old: Option<Rrset<'z>>,
        removed: Option<Rrset<'_>>,
        serial_rule: SerialRule,
    ) -> Result<Vec<&'z [u8]>, ChangeError> {
        let mut remaining: Vec<Option<&[u8]>> =
            old.iter().flat_map(|rrset| rrset.rdatas()).map(Some).collect();
        let records: Vec<&[u8]> = remaining.iter().flatten().copied().collect();
        let Some(removed) = removed else { return Ok(records) };
        let ignores_serial = serial_rule == SerialRule::Any && removed.rtype() == Rtype::SOA;
        for record in removed.rdatas() {
            // Records are in canonical order.
            let found = if ignores_serial {
                records.iter().position(|other| without_serial(other) == without_serial(record))
            } else {
                records.binary_search_by(|other| rdata::cmp_canonical(removed.rtype(), other, record)).ok()
            };
            if found.and_then(|at| remaining[at].take()).is_none() {
                return Err(self.error(false, removed, record, ChangeFault::Missing));
            }
            if let Some(found) = old.map(Rrset::ttl).filter(|ttl| *ttl != removed.ttl()) {
                return Err(
                    self.error(false, removed, record, |record| ChangeFault::OtherTtl { record, found })
                );
            }
        }
        Ok(remaining.into_iter().flatten().collect())
    }

    /// Checks that no added record is among the remaining ones, and that both have the same TTL.
    ///
    /// # Errors
    /// [`ChangeFault::AlreadyExists`], [`ChangeFault::MixedTtl`].
    fn check_added(
        &self,
        remaining: &[&[u8]],
        old: Option<Rrset<'_>>,
        added: Option<Rrset<'_>>,
    ) -> Result<(), ChangeError> {
        let (Some(added), Some(old)) = (added, old.filter(|_| !remaining.is_empty())) else { return Ok(()) };
        for record in added.rdatas() {
            if remaining.binary_search_by(|other| rdata::cmp_canonical(added.rtype(), other, record)).is_ok()
            {
                return Err(self.error(true, added, record, ChangeFault::AlreadyExists));
            }
            if old.ttl() != added.ttl() {
                let found = old.ttl();
                return Err(self.error(true, added, record, |record| ChangeFault::MixedTtl { record, found }));
            }
        }
        Ok(())
    }

    /// Returns the error for `record`, with its line in the text of the change set.
    fn error(
        &self,
        is_added: bool,
        rrset: Rrset<'_>,
        record: &[u8],
        fault: impl FnOnce(String) -> ChangeFault,
    ) -> ChangeError {
        let node = if is_added { self.added } else { self.removed };
        let line = node.map_or(0, |node| {
            let records =
                node.rrsets().flat_map(|rrset| rrset.rdatas().map(move |rdata| (sort_key(rrset), rdata)));
            let before = records.take_while(|other| *other != (sort_key(rrset), record)).count();
            self.set.line(is_added, node, before)
        });
        let mut out = Vec::new();
        text::push_name(self.name(), &mut out);
        out.extend_from_slice(format!(" {} IN {} ", rrset.ttl(), rrset.rtype()).as_bytes());
        rdata::push_text(rrset.rtype(), record, &mut out);
        ChangeError { line, fault: fault(String::from_utf8_lossy(&out).into_owned()) }
    }
}

/// Returns the RRset of these types at a node.
fn find(node: Node<'_>, rtype: Rtype, covered: Rtype) -> Option<Rrset<'_>> {
    node.rrsets().find(|rrset| rrset.rtype() == rtype && rrset.covered() == covered)
}

/// Returns the RDATA of an SOA record in lower case and without its serial (RFC 1035 §3.3.13: two
/// names and five numbers).
fn without_serial(rdata: &[u8]) -> (Vec<u8>, &[u8]) {
    let (names, numbers) = rdata.split_at(rdata.len().saturating_sub(20));
    (names.to_ascii_lowercase(), numbers.get(4..).unwrap_or_default())
}
