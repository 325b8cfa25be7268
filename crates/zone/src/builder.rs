//! From records in any order to [`Contents`]: sorts, drops duplicates, and checks what a zone must hold.

use crate::contents::{Contents, Run};
use nonesuch_proto::{Name, NameRef, Rtype, rdata};
use rayon::prelude::*;

/// Where a record was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// Index of the file: 0 is the zone file, others are included files in order of inclusion.
    pub file: u16,
    /// Line, from 1; 0 where the record was not read from a file.
    pub line: u32,
}

/// What makes records no zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZoneFault {
    /// There is no SOA record at the apex.
    #[error("the zone has no SOA record at its apex {0}")]
    NoSoa(Name),
    /// The SOA record is not where the origin says.
    #[error("the SOA record is at {found}, but the origin is {origin}: give the right origin (-o)")]
    WrongOrigin {
        /// Owner of the SOA record.
        found: Name,
        /// Origin given.
        origin: Name,
    },
    /// There is a second SOA record.
    #[error("a second SOA record, at {0}: a zone has exactly one, at its apex")]
    SecondSoa(Name),
    /// A record's owner is not in the zone.
    #[error("{owner} is not in the zone {apex}: remove the record, or mend the origin")]
    OutOfZone {
        /// The owner.
        owner: Name,
        /// The zone's apex.
        apex: Name,
    },
    /// CNAME stands beside other data (RFC 1034 §3.6.2, RFC 2181 §10.1).
    #[error("{owner} has a CNAME record and {other} too: an alias has no other data")]
    CnameAndOther {
        /// The owner.
        owner: Name,
        /// The other type.
        other: Rtype,
    },
    /// More than one CNAME or DNAME (RFC 2181 §10.1, RFC 6672 §2.4).
    #[error("{owner} has more than one {rtype} record: at most one is allowed")]
    NotSingle {
        /// The owner.
        owner: Name,
        /// CNAME or DNAME.
        rtype: Rtype,
    },
    /// The zone holds more than can be addressed.
    #[error("the zone is too large: names take more than 4 GiB")]
    TooLarge,
}

/// A fault with the place of the record that has it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct ZoneError {
    /// What is wrong.
    pub fault: ZoneFault,
    /// Where.
    pub place: Place,
}

/// What is odd about a zone without making it unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// The records of an RRset have different TTLs; the least is used (RFC 2181 §5.2).
    #[error("the {rtype} records of {owner} have different TTLs; the least is used")]
    MixedTtl {
        /// The owner.
        owner: Name,
        /// The type.
        rtype: Rtype,
    },
    /// The same record was given more than once and kept once (RFC 2181 §5).
    #[error("{count} duplicate records were dropped")]
    Duplicates {
        /// How many.
        count: u64,
    },
    /// There is no NS record at the apex.
    #[error("the zone has no NS record at its apex")]
    NoNs,
}

struct Record {
    owner: u32,
    ttl: u32,
    rdata: u64,
    rtype: Rtype,
    covered: Rtype,
    place: Place,
}

struct Owner {
    name: u64,
    key: u64,
    key_end: u64,
}

/// Gathers records in any order.
#[derive(Default)]
pub struct Builder {
    names: Vec<u8>,
    keys: Vec<u8>,
    rdata: Vec<u8>,
    owners: Vec<Owner>,
    records: Vec<Record>,
    last_owner_wire: Vec<u8>,
}

impl Builder {
    /// An empty builder with room for a file of `octets`.
    #[must_use]
    pub fn with_capacity_for(octets: usize) -> Self {
        Self {
            names: Vec::with_capacity(octets / 4),
            keys: Vec::with_capacity(octets / 4),
            rdata: Vec::with_capacity(octets / 3),
            owners: Vec::with_capacity(octets / 64),
            records: Vec::with_capacity(octets / 40),
            last_owner_wire: Vec::new(),
        }
    }

    /// Adds one record; `write` appends its RDATA, names uncompressed. Nothing is added where it fails.
    pub fn push<E>(
        &mut self,
        owner: NameRef<'_>,
        rtype: Rtype,
        ttl: u32,
        place: Place,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.rdata.len();
        self.rdata.extend_from_slice(&[0, 0]);
        if let Err(error) = write(&mut self.rdata) {
            self.rdata.truncate(start);
            return Err(error);
        }
        let length = self.rdata.len() - start - 2;
        self.rdata[start..start + 2].copy_from_slice(&(length as u16).to_be_bytes());
        if self.owners.is_empty() || self.last_owner_wire != owner.wire() {
            self.push_owner(owner);
        }
        let covered = match (rtype, &self.rdata[start + 2..]) {
            (Rtype::RRSIG, [high, low, ..]) => Rtype(u16::from_be_bytes([*high, *low])),
            _ => rtype,
        };
        let owner = self.owners.len() as u32 - 1;
        self.records.push(Record { owner, ttl, rdata: start as u64, rtype, covered, place });
        Ok(())
    }

    fn push_owner(&mut self, owner: NameRef<'_>) {
        self.last_owner_wire.clear();
        self.last_owner_wire.extend_from_slice(owner.wire());
        let (name, key) = (self.names.len() as u64, self.keys.len() as u64);
        self.names.extend_from_slice(owner.wire());
        owner.push_sort_key(&mut self.keys);
        self.owners.push(Owner { name, key, key_end: self.keys.len() as u64 });
    }

    fn key(&self, owner: u32) -> &[u8] {
        let owner = &self.owners[owner as usize];
        &self.keys[owner.key as usize..owner.key_end as usize]
    }

    fn name(&self, owner: u32) -> NameRef<'_> {
        let rest = &self.names[self.owners[owner as usize].name as usize..];
        NameRef::split_from(rest).map_or(NameRef::ROOT, |(name, _)| name)
    }

    fn rdata(&self, record: &Record) -> &[u8] {
        let rest = &self.rdata[record.rdata as usize..];
        &rest[2..2 + usize::from(u16::from_be_bytes([rest[0], rest[1]]))]
    }

    /// The apex: the given origin, or else the owner of the first SOA record.
    fn find_apex(&self, origin: Option<&Name>) -> Result<Name, ZoneError> {
        let soa = self.records.iter().find(|record| record.rtype == Rtype::SOA);
        match (origin, soa) {
            (Some(origin), Some(record)) => {
                let found = self.name(record.owner);
                if found == origin.view() {
                    return Ok(found.to_name());
                }
                let fault = ZoneFault::WrongOrigin { found: found.to_name(), origin: origin.clone() };
                Err(ZoneError { fault, place: record.place })
            }
            (None, Some(record)) => Ok(self.name(record.owner).to_name()),
            (origin, None) => {
                let apex = origin.cloned().unwrap_or_else(Name::root);
                Err(ZoneError { fault: ZoneFault::NoSoa(apex), place: Place::default() })
            }
        }
    }

    /// Owner, type and RDATA of the records, in the order in which they were added.
    pub(crate) fn into_records(self) -> Vec<(Name, Rtype, Vec<u8>)> {
        let record =
            |record: &Record| (self.name(record.owner).to_name(), record.rtype, self.rdata(record).to_vec());
        self.records.iter().map(record).collect()
    }

    /// Sorts and checks the records. `origin` is the apex where it is known; otherwise the SOA record's owner is.
    pub fn finish(self, origin: Option<&Name>) -> Result<(Contents, Vec<Warning>), ZoneError> {
        let apex = self.find_apex(origin)?;
        if self.names.len() > u32::MAX as usize {
            return Err(ZoneError { fault: ZoneFault::TooLarge, place: Place::default() });
        }
        let ranks = self.rank_owners();
        self.check_owners(&apex)?;
        let order = self.order_records(&ranks);
        let mut warnings = Vec::new();
        let contents = self.assemble(&apex, &ranks, &order, &mut warnings)?;
        if contents.apex_rrset(Rtype::NS).is_none() {
            warnings.push(Warning::NoNs);
        }
        Ok((contents, warnings))
    }

    /// For each owner its place in canonical order; equal names share one.
    fn rank_owners(&self) -> Vec<u32> {
        let count = self.owners.len() as u32;
        let sorted = (1..count).all(|owner| self.key(owner - 1) < self.key(owner));
        if sorted {
            return (0..count).collect();
        }
        let mut order: Vec<u32> = (0..count).collect();
        order.par_sort_unstable_by(|a, b| self.key(*a).cmp(self.key(*b)).then(a.cmp(b)));
        let mut ranks = vec![0; self.owners.len()];
        let mut rank = 0;
        for (position, &owner) in order.iter().enumerate() {
            if position > 0 && self.key(order[position - 1]) != self.key(owner) {
                rank += 1;
            }
            ranks[owner as usize] = rank;
        }
        ranks
    }

    fn check_owners(&self, apex: &Name) -> Result<(), ZoneError> {
        let mut apex_key = Vec::new();
        apex.view().push_sort_key(&mut apex_key);
        let outside =
            self.records.par_iter().find_first(|record| !self.key(record.owner).starts_with(&apex_key));
        if let Some(record) = outside {
            let fault = ZoneFault::OutOfZone { owner: self.name(record.owner).to_name(), apex: apex.clone() };
            return Err(ZoneError { fault, place: record.place });
        }
        Ok(())
    }

    /// Record indices by owner, type and canonical RDATA.
    fn order_records(&self, ranks: &[u32]) -> Vec<u32> {
        let key = |index: u32| {
            let record = &self.records[index as usize];
            let signature = u64::from(record.rtype == Rtype::RRSIG);
            u64::from(ranks[record.owner as usize]) << 17 | u64::from(record.covered.0) << 1 | signature
        };
        let mut order: Vec<(u64, u32)> =
            (0..self.records.len() as u32).into_par_iter().map(|index| (key(index), index)).collect();
        order.par_sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| {
                let (x, y) = (&self.records[a.1 as usize], &self.records[b.1 as usize]);
                rdata::cmp_canonical(x.rtype, self.rdata(x), self.rdata(y)).then(a.1.cmp(&b.1))
            })
        });
        order.into_iter().map(|(_, index)| index).collect()
    }

    fn assemble(
        &self,
        apex: &Name,
        ranks: &[u32],
        order: &[u32],
        warnings: &mut Vec<Warning>,
    ) -> Result<Contents, ZoneError> {
        let mut run = Run::default();
        let mut duplicates = 0;
        let mut previous: Option<&Record> = None;
        let mut mixed: Option<(u32, Rtype)> = None;
        for &index in order {
            let record = &self.records[index as usize];
            let same_node = previous.is_some_and(|p| ranks[p.owner as usize] == ranks[record.owner as usize]);
            if !same_node {
                run.begin_node(self.name(record.owner));
            }
            let same_rrset =
                same_node && previous.is_some_and(|p| p.covered == record.covered && p.rtype == record.rtype);
            if !same_rrset {
                run.begin_rrset(record.rtype, record.covered, record.ttl);
                self.check_soa(record, apex)?;
            } else if let Some(previous) = previous {
                if rdata::cmp_canonical(record.rtype, self.rdata(previous), self.rdata(record)).is_eq() {
                    duplicates += 1;
                    continue;
                }
                self.check_multiple(record)?;
                if run.lower_ttl(record.ttl) && mixed != Some((record.owner, record.rtype)) {
                    mixed = Some((record.owner, record.rtype));
                    let owner = self.name(record.owner).to_name();
                    warnings.push(Warning::MixedTtl { owner, rtype: record.rtype });
                }
            }
            run.push_record(|out| out.extend_from_slice(self.rdata(record)));
            previous = Some(record);
        }
        if duplicates > 0 {
            warnings.push(Warning::Duplicates { count: duplicates });
        }
        let contents = Contents::from_runs(apex, vec![run]);
        self.check_aliases(&contents, ranks, order)?;
        Ok(contents)
    }

    /// An SOA record stands at the apex alone.
    fn check_soa(&self, record: &Record, apex: &Name) -> Result<(), ZoneError> {
        if record.rtype != Rtype::SOA || self.name(record.owner) == apex.view() {
            return Ok(());
        }
        let fault = ZoneFault::SecondSoa(self.name(record.owner).to_name());
        Err(ZoneError { fault, place: record.place })
    }

    /// Types of which a name has at most one record.
    fn check_multiple(&self, record: &Record) -> Result<(), ZoneError> {
        let owner = || self.name(record.owner).to_name();
        let fault = match record.rtype {
            Rtype::SOA => ZoneFault::SecondSoa(owner()),
            Rtype::CNAME | Rtype::DNAME => ZoneFault::NotSingle { owner: owner(), rtype: record.rtype },
            _ => return Ok(()),
        };
        Err(ZoneError { fault, place: record.place })
    }

    /// CNAME beside other data; the types of DNSSEC are allowed (RFC 4034 §3, §4, RFC 2535 §2.3.5).
    fn check_aliases(&self, contents: &Contents, ranks: &[u32], order: &[u32]) -> Result<(), ZoneError> {
        let allowed = [Rtype::CNAME, Rtype::RRSIG, Rtype::NSEC, Rtype::KEY, Rtype::SIG, Rtype::NXT];
        for node in contents.nodes().filter(|node| node.has(Rtype::CNAME)) {
            let other = node.rrsets().find(|rrset| !allowed.contains(&rrset.rtype()));
            let Some(other) = other.map(|rrset| rrset.rtype()) else { continue };
            let at_node =
                |index: &&u32| ranks[self.records[**index as usize].owner as usize] as usize == node.index();
            let place = order
                .iter()
                .filter(at_node)
                .map(|index| &self.records[*index as usize])
                .find(|record| record.rtype == other)
                .map_or_else(Place::default, |record| record.place);
            let fault = ZoneFault::CnameAndOther { owner: node.name().to_name(), other };
            return Err(ZoneError { fault, place });
        }
        Ok(())
    }
}

impl Run {
    /// Lowers the current RRset's TTL to `ttl`; tells whether the two differed.
    fn lower_ttl(&mut self, ttl: u32) -> bool {
        let Some(rrset) = self.current_rrset() else { return false };
        let differed = rrset.ttl != ttl;
        rrset.ttl = rrset.ttl.min(ttl);
        differed
    }
}
