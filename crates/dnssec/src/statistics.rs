//! Counts the names, records, delegations, octets, keys and signatures of a zone without
//! verification.

use crate::denial::names::common_label_count;
use crate::denial::nsec5;
use crate::inspect::{self, DenialInfo, KeyInfo};
use crate::rrsig::Rrsig;
use nonesuch_crypto::{Algorithm, DigestType};
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::zonemd::{self, Zonemd};
use nonesuch_zone::{Contents, NameStatus, Node, Rrset, name_statuses};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Octets of type, class, TTL and RDATA length of a record in wire format (RFC 1035 §3.2.1).
const RECORD_FIXED_OCTETS: u64 = 10;

/// The statistics of a zone.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// The apex.
    pub apex: Name,
    /// The serial; `None` without an SOA record.
    pub serial: Option<u32>,
    /// Numbers of names.
    pub names: NameCounts,
    /// Numbers of delegations.
    pub delegations: DelegationCounts,
    /// The numbers of RRsets and records of each type.
    pub types: BTreeMap<Rtype, TypeCounts>,
    /// The RRset with the most octets, including its signatures.
    pub largest: Option<LargestRrset>,
    /// DNSKEY records at the apex, each with the number of RRSIG records with its tag and
    /// algorithm. If two keys have the same tag and algorithm, such a record counts for both,
    /// because only verification shows which key generated it.
    pub keys: Vec<(KeyInfo, u64)>,
    /// Number of RRSIG records without a matching DNSKEY record at the apex, by key tag and
    /// algorithm.
    pub foreign_signatures: BTreeMap<(u16, Algorithm), u64>,
    /// The denial mechanism of the zone; `None` if it has no denial records.
    pub denial: Option<DenialInfo>,
    /// Times of the RRSIG records; `None` if the zone has none.
    pub validity: Option<Validity>,
    /// ZONEMD records at the apex (RFC 8976 §2.2).
    pub zonemd: Vec<ZonemdInfo>,
    /// Octets of the denial chain in wire format, including NSEC3PARAM, without its signatures.
    pub chain_octets: u64,
}

/// Numbers of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameCounts {
    /// Names that own records.
    pub owners: u64,
    /// Owner names with authoritative data, without zone cuts and hashed owner names.
    pub authoritative: u64,
    /// Names that own only NSEC3 or NSEC5 records of the chain, and their signatures.
    pub hashed: u64,
    /// Names below zone cuts with address records: glue, including orphan glue.
    pub glue: u64,
    /// Other names below zone cuts, and names below DNAME records: no response contains their
    /// records.
    pub occluded: u64,
    /// Names without records between the apex and an authoritative owner name or a zone cut (RFC
    /// 9499 §7).
    pub empty_non_terminals: u64,
    /// Authoritative owner names and zone cuts whose first label is `*` (RFC 4592 §2.1.1).
    pub wildcards: u64,
}

/// Numbers of delegations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelegationCounts {
    /// Zone cuts.
    pub all: u64,
    /// Delegations with a DS RRset.
    pub signed: u64,
    /// Delegations with at least one address record at or below the zone cut. Orphan glue counts
    /// too.
    pub with_glue: u64,
    /// Address records at or below zone cuts, including orphan glue.
    pub glue_records: u64,
    /// Distinct NS RRsets of delegations, compared without TTL and letter case.
    pub ns_sets: u64,
    /// Delegations with the most frequent NS RRset.
    pub most_shared_ns_set: u64,
    /// NS records of all delegations.
    pub ns_records: u64,
    /// DS records by key algorithm and digest type.
    pub ds: BTreeMap<(Algorithm, DigestType), u64>,
}

/// The numbers and TTLs of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeCounts {
    /// RRsets; the RRSIG records of a name form one RRset for each type covered.
    pub rrsets: u64,
    /// Records.
    pub records: u64,
    /// Octets of the records in wire format, with uncompressed names.
    pub octets: u64,
    /// Minimum TTL in seconds.
    pub min_ttl: u32,
    /// Maximum TTL in seconds.
    pub max_ttl: u32,
}

/// An RRset and its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargestRrset {
    /// The owner.
    pub owner: Name,
    /// The type.
    pub rtype: Rtype,
    /// Number of records, without signatures.
    pub records: u64,
    /// Octets in wire format including signatures, with uncompressed names.
    pub octets: u64,
}

/// Times of signatures, in seconds since 1970 modulo 2^32 (RFC 4034 §3.1.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// First and last inception.
    pub inception: [u32; 2],
    /// First and last expiration.
    pub expiration: [u32; 2],
    /// Number of expired signatures.
    pub expired: u64,
    /// Number of signatures that are not valid yet.
    pub not_yet_valid: u64,
    /// Numbers of signatures by days until expiration, rounded down: 0 stands for less than one
    /// day, and -1 for signatures that expired within the last 24 hours.
    pub days_left: BTreeMap<i64, u64>,
}

/// The fields of a ZONEMD record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonemdInfo {
    /// The serial of the version that the digest is for.
    pub serial: u32,
    /// The scheme: 1 is SIMPLE.
    pub scheme: u8,
    /// The hash algorithm: 1 is SHA-384, 2 is SHA-512.
    pub hash: u8,
}

impl Statistics {
    /// Counts the records of `contents`. `now` is in seconds since 1970 modulo 2^32 and determines
    /// which signatures are expired.
    #[must_use]
    pub fn count(contents: &Contents, now: u32) -> Self {
        let mut counter = Counter::new(contents, now);
        for (node, status) in contents.nodes().zip(name_statuses(contents)) {
            counter.add_node(node, status);
        }
        counter.finish(contents)
    }

    /// Octets of all records in wire format.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.types.values().map(|counts| counts.octets).sum()
    }

    /// Number of records of all types.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.types.values().map(|counts| counts.records).sum()
    }

    /// Number of RRsets of all types, without signatures.
    #[must_use]
    pub fn rrsets(&self) -> u64 {
        let others = self.types.iter().filter(|(rtype, _)| **rtype != Rtype::RRSIG);
        others.map(|(_, counts)| counts.rrsets).sum()
    }

    /// Octets of the types for which `wanted` returns `true`.
    #[must_use]
    pub fn octets_of(&self, wanted: impl Fn(Rtype) -> bool) -> u64 {
        self.types.iter().filter(|(rtype, _)| wanted(**rtype)).map(|(_, counts)| counts.octets).sum()
    }
}

/// The counts so far, while the nodes of the zone are read in order.
struct Counter<'z> {
    statistics: Statistics,
    apex: NameRef<'z>,
    /// The previous authoritative owner name or zone cut. The empty non-terminals above it are
    /// already counted.
    previous_name: Option<NameRef<'z>>,
    /// Whether the current zone cut is already counted as one with glue.
    cut_has_glue: bool,
    /// Number of delegations with each NS RRset, by the hash of its RDATA.
    delegations_by_ns: HashMap<u64, u64>,
    /// Number of RRSIG records by key tag and algorithm.
    signatures: BTreeMap<(u16, Algorithm), u64>,
    /// In seconds since 1970 modulo 2^32.
    now: u32,
    times: Option<Times>,
}

/// [`Validity`] with times in seconds relative to `Counter::now`; they are negative before it.
struct Times {
    /// First and last.
    inception: [i32; 2],
    /// First and last.
    expiration: [i32; 2],
    not_yet_valid: u64,
    expired: u64,
    days_left: BTreeMap<i64, u64>,
}

impl<'z> Counter<'z> {
    fn new(contents: &'z Contents, now: u32) -> Self {
        let statistics = Statistics {
            apex: contents.apex().clone(),
            serial: contents.soa().map(|soa| soa.serial),
            names: NameCounts::default(),
            delegations: DelegationCounts::default(),
            types: BTreeMap::new(),
            largest: None,
            keys: Vec::new(),
            foreign_signatures: BTreeMap::new(),
            denial: inspect::denial(contents),
            validity: None,
            zonemd: Vec::new(),
            chain_octets: 0,
        };
        Self {
            statistics,
            apex: contents.apex().view(),
            previous_name: None,
            cut_has_glue: false,
            delegations_by_ns: HashMap::new(),
            signatures: BTreeMap::new(),
            now,
            times: None,
        }
    }

    /// Counts a node and its records.
    fn add_node(&mut self, node: Node<'z>, status: NameStatus) {
        self.add_name(node, status);
        if status == NameStatus::Delegation {
            self.add_delegation(node);
        }
        let name_octets = node.name().len() as u64;
        let mut sizes: Vec<(Rtype, u64, u64)> = Vec::new();
        for rrset in node.rrsets() {
            let octets = self.add_rrset(rrset, name_octets);
            if inspect::is_chain(rrset.rtype(), node.name(), self.apex) {
                self.statistics.chain_octets += octets;
            }
            match sizes.iter_mut().find(|(rtype, _, _)| *rtype == rrset.covered()) {
                Some((_, _, all)) => *all += octets,
                None => sizes.push((rrset.covered(), rrset.count() as u64, octets)),
            }
        }
        for (rtype, records, octets) in sizes {
            if self.statistics.largest.as_ref().is_none_or(|largest| octets > largest.octets) {
                self.statistics.largest =
                    Some(LargestRrset { owner: node.name().to_name(), rtype, records, octets });
            }
        }
    }

    /// Counts the name of a node and its glue.
    fn add_name(&mut self, node: Node<'z>, status: NameStatus) {
        let is_address = |rrset: &Rrset<'_>| matches!(rrset.rtype(), Rtype::A | Rtype::AAAA);
        let is_nsec5_owner = nsec5::is_chain_owner(node.name(), self.apex);
        let is_hash = |rrset: Rrset<'_>| {
            rrset.covered() == Rtype::NSEC3 || rrset.covered() == Rtype::NSEC5 && is_nsec5_owner
        };
        let names = &mut self.statistics.names;
        names.owners += 1;
        match status {
            // A DNAME record at the apex does not occlude hashed owner names.
            NameStatus::Authoritative | NameStatus::BelowDname if node.rrsets().all(is_hash) => {
                names.hashed += 1;
                return;
            }
            NameStatus::Authoritative => names.authoritative += 1,
            NameStatus::Delegation => {}
            NameStatus::BelowCut if node.rrsets().any(|rrset| is_address(&rrset)) => {
                names.glue += 1;
                let addresses = node.rrsets().filter(is_address).map(|rrset| rrset.count() as u64);
                self.statistics.delegations.glue_records += addresses.sum::<u64>();
                self.mark_cut_with_glue();
                return;
            }
            NameStatus::BelowCut | NameStatus::BelowDname => {
                names.occluded += 1;
                return;
            }
        }
        names.wildcards += u64::from(node.name().is_wildcard());
        // The names between the closest common ancestor of both names and this name have no
        // records. Otherwise the previous name would be one of them, or below it.
        if let Some(previous) = self.previous_name {
            let new_labels = node.name().label_count() - common_label_count(previous, node.name());
            names.empty_non_terminals += new_labels.saturating_sub(1) as u64;
        }
        self.previous_name = Some(node.name());
    }

    /// Counts a zone cut and its glue.
    fn add_delegation(&mut self, node: Node<'_>) {
        let delegations = &mut self.statistics.delegations;
        delegations.all += 1;
        self.cut_has_glue = false;
        // A name server can have the name of the zone cut. Its addresses are then at the zone cut.
        let addresses = node.rrsets().filter(|rrset| matches!(rrset.rtype(), Rtype::A | Rtype::AAAA));
        let addresses: u64 = addresses.map(|rrset| rrset.count() as u64).sum();
        delegations.glue_records += addresses;
        if let Some(ns) = node.rrset(Rtype::NS) {
            delegations.ns_records += ns.count() as u64;
            let mut hasher = DefaultHasher::new();
            for rdata in ns.rdatas() {
                rdata.to_ascii_lowercase().hash(&mut hasher);
            }
            *self.delegations_by_ns.entry(hasher.finish()).or_default() += 1;
        }
        if let Some(ds) = node.rrset(Rtype::DS) {
            delegations.signed += 1;
            for rdata in ds.rdatas() {
                if let [_, _, algorithm, digest, ..] = rdata {
                    *delegations.ds.entry((Algorithm(*algorithm), DigestType(*digest))).or_default() += 1;
                }
            }
        }
        if addresses > 0 {
            self.mark_cut_with_glue();
        }
    }

    /// Counts the current zone cut as one with glue, unless it is already counted.
    fn mark_cut_with_glue(&mut self) {
        if !self.cut_has_glue {
            self.cut_has_glue = true;
            self.statistics.delegations.with_glue += 1;
        }
    }

    /// Counts the RRset; returns the octets of its records.
    fn add_rrset(&mut self, rrset: Rrset<'_>, name_octets: u64) -> u64 {
        let records = rrset.count() as u64;
        let rdata: u64 = rrset.rdatas().map(|rdata| rdata.len() as u64).sum();
        let octets = rdata + records * (name_octets + RECORD_FIXED_OCTETS);
        let ttl = rrset.ttl();
        let empty = TypeCounts { rrsets: 0, records: 0, octets: 0, min_ttl: ttl, max_ttl: ttl };
        let counts = self.statistics.types.entry(rrset.rtype()).or_insert(empty);
        counts.rrsets += 1;
        counts.records += records;
        counts.octets += octets;
        counts.min_ttl = counts.min_ttl.min(ttl);
        counts.max_ttl = counts.max_ttl.max(ttl);
        if rrset.rtype() == Rtype::RRSIG {
            rrset.rdatas().filter_map(Rrsig::parse).for_each(|rrsig| self.add_signature(&rrsig));
        }
        octets
    }

    /// Counts an RRSIG record by key and times.
    fn add_signature(&mut self, rrsig: &Rrsig<'_>) {
        *self.signatures.entry((rrsig.tag, rrsig.algorithm)).or_default() += 1;
        // RFC 4034 §3.1.5: serial number arithmetic, with 2^31 seconds before and after now.
        let inception = rrsig.inception.wrapping_sub(self.now).cast_signed();
        let expiration = rrsig.expiration.wrapping_sub(self.now).cast_signed();
        let times = self.times.get_or_insert_with(|| Times {
            inception: [inception; 2],
            expiration: [expiration; 2],
            not_yet_valid: 0,
            expired: 0,
            days_left: BTreeMap::new(),
        });
        times.inception = [times.inception[0].min(inception), times.inception[1].max(inception)];
        times.expiration = [times.expiration[0].min(expiration), times.expiration[1].max(expiration)];
        times.not_yet_valid += u64::from(inception > 0);
        times.expired += u64::from(expiration < 0);
        *times.days_left.entry(i64::from(expiration).div_euclid(86_400)).or_default() += 1;
    }

    fn finish(self, contents: &Contents) -> Statistics {
        let Self { mut statistics, delegations_by_ns, mut signatures, now, times, .. } = self;
        statistics.delegations.ns_sets = delegations_by_ns.len() as u64;
        statistics.delegations.most_shared_ns_set = delegations_by_ns.into_values().max().unwrap_or(0);
        let keys = inspect::keys(contents).into_iter().map(|key| {
            let count = signatures.get(&(key.tag, key.algorithm)).copied().unwrap_or(0);
            (key, count)
        });
        statistics.keys = keys.collect();
        for (key, _) in &statistics.keys {
            signatures.remove(&(key.tag, key.algorithm));
        }
        statistics.foreign_signatures = signatures;
        let absolute = |range: [i32; 2]| range.map(|time| now.wrapping_add(time.cast_unsigned()));
        statistics.validity = times.map(|times| Validity {
            inception: absolute(times.inception),
            expiration: absolute(times.expiration),
            expired: times.expired,
            not_yet_valid: times.not_yet_valid,
            days_left: times.days_left,
        });
        statistics.zonemd = zonemd::records(contents).map(ZonemdInfo::of).collect();
        statistics
    }
}

impl ZonemdInfo {
    const fn of(record: Zonemd<'_>) -> Self {
        Self { serial: record.serial, scheme: record.scheme, hash: record.hash }
    }
}

#[cfg(test)]
mod tests;
