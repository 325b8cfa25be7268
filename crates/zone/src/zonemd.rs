//! Message digests for zones (RFC 8976): ZONEMD RDATA, and the digest with scheme SIMPLE.
//!
//! The digest covers all records of the zone in canonical form and order, without duplicates, and
//! without the ZONEMD RRset at the apex and its signatures (§3.3.1, §3.4). It includes glue and
//! occluded names.

use crate::contents::{Contents, Node, Rrset};
use crate::ordered::for_each_ordered;
use nonesuch_crypto::{HashFunction, Hasher};
use nonesuch_proto::{Class, Rtype, rdata};
use std::cmp::Ordering;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// Scheme SIMPLE (RFC 8976 §2.2.2): one digest over the whole zone.
pub const SCHEME_SIMPLE: u8 = 1;
/// Minimum length of a digest in octets, for any hash algorithm (RFC 8976 §2.2.4).
pub const MIN_DIGEST_OCTETS: usize = 12;
/// Octets of the RDATA before the digest: serial, scheme, hash algorithm.
const FIXED_OCTETS: usize = 6;
/// Number of nodes that a thread converts to canonical form at once.
const NODES_PER_TASK: usize = 2048;

/// A hash algorithm for ZONEMD (RFC 8976 §2.2.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ZonemdHash {
    /// SHA-384, mandatory for verifiers.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl ZonemdHash {
    /// All supported hash algorithms, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Sha384, Self::Sha512];

    /// Number of the algorithm in the record.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Sha384 => 1,
            Self::Sha512 => 2,
        }
    }

    /// Returns the algorithm with this number; `None` if it is not supported.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|hash| hash.number() == number)
    }

    const fn function(self) -> HashFunction {
        match self {
            Self::Sha384 => HashFunction::Sha384,
            Self::Sha512 => HashFunction::Sha512,
        }
    }

    /// Length of a digest in octets.
    #[must_use]
    pub fn octets(self) -> usize {
        self.function().octets()
    }
}

impl fmt::Display for ZonemdHash {
    /// Writes the name that the command line uses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        })
    }
}

/// Error: the text is not the name of a supported ZONEMD hash algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown ZONEMD hash algorithm (supported: sha384, sha512)")]
pub struct UnknownHash;

impl FromStr for ZonemdHash {
    type Err = UnknownHash;

    fn from_str(text: &str) -> Result<Self, UnknownHash> {
        Self::ALL.into_iter().find(|hash| hash.to_string().eq_ignore_ascii_case(text)).ok_or(UnknownHash)
    }
}

/// The fields of a ZONEMD record (RFC 8976 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zonemd<'a> {
    /// Serial of the zone to which the digest applies.
    pub serial: u32,
    /// The scheme, which determines how the records are collated; 1 is SIMPLE.
    pub scheme: u8,
    /// Number of the hash algorithm.
    pub hash: u8,
    /// The digest.
    pub digest: &'a [u8],
}

impl<'a> Zonemd<'a> {
    /// Parses ZONEMD RDATA; `None` if it ends before the digest.
    #[must_use]
    pub fn parse(rdata: &'a [u8]) -> Option<Self> {
        let ([a, b, c, d, scheme, hash], digest) = rdata.split_first_chunk::<FIXED_OCTETS>()?;
        Some(Self { serial: u32::from_be_bytes([*a, *b, *c, *d]), scheme: *scheme, hash: *hash, digest })
    }

    /// Returns the hash algorithm if both it and the scheme are supported.
    #[must_use]
    pub fn supported_hash(&self) -> Option<ZonemdHash> {
        ZonemdHash::from_number(self.hash).filter(|_| self.scheme == SCHEME_SIMPLE)
    }

    /// Appends the RDATA to `out`.
    pub fn push_rdata(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.serial.to_be_bytes());
        out.extend_from_slice(&[self.scheme, self.hash]);
        out.extend_from_slice(self.digest);
    }
}

/// Iterates over the ZONEMD records at the apex. Records that end before the digest are omitted.
pub fn records(contents: &Contents) -> impl Iterator<Item = Zonemd<'_>> {
    let rdatas = contents.apex_rrset(Rtype::ZONEMD).into_iter().flat_map(|rrset| rrset.rdatas());
    rdatas.filter_map(Zonemd::parse)
}

/// Returns the supported hash algorithms of the ZONEMD records at the apex, in the order of the
/// records.
#[must_use]
pub fn hashes(contents: &Contents) -> Vec<ZonemdHash> {
    records(contents).filter_map(|record| record.supported_hash()).collect()
}

/// Computes digests of one zone with several hash algorithms. The caller passes the octets of
/// [`push_canonical`] for the nodes in canonical order.
#[derive(Clone, Debug)]
pub struct Digester(Vec<(ZonemdHash, Hasher)>);

impl Digester {
    /// Begins one digest for each algorithm in `hashes`.
    #[must_use]
    pub fn new(hashes: &[ZonemdHash]) -> Self {
        Self(hashes.iter().map(|hash| (*hash, hash.function().begin())).collect())
    }

    /// Adds the octets of the next part of the zone, as appended by [`push_canonical`].
    pub fn update(&mut self, octets: &[u8]) {
        self.0.iter_mut().for_each(|(_, hasher)| hasher.update(octets));
    }

    /// Returns the digests in the order of the algorithms.
    #[must_use]
    pub fn finish(self) -> Vec<(ZonemdHash, Vec<u8>)> {
        self.0.into_iter().map(|(hash, hasher)| (hash, hasher.finish())).collect()
    }
}

/// Computes the digests of a zone with the algorithms in `hashes`, in this order.
#[must_use]
pub fn digest(contents: &Contents, hashes: &[ZonemdHash]) -> Vec<(ZonemdHash, Vec<u8>)> {
    let mut digester = Digester::new(hashes);
    let count = contents.node_count();
    let outcome: Result<(), Infallible> = for_each_ordered(
        count.div_ceil(NODES_PER_TASK),
        |chunk, (): &mut (), octets: &mut Vec<u8>| {
            octets.clear();
            let end = ((chunk + 1) * NODES_PER_TASK).min(count);
            (chunk * NODES_PER_TASK..end).for_each(|index| push_node(contents, contents.node(index), octets));
            Ok(())
        },
        |octets| {
            digester.update(octets);
            Ok(())
        },
    );
    match outcome {
        Ok(()) => digester.finish(),
    }
}

/// Appends the canonical octets of `part`, which is a zone or consecutive nodes of one.
pub fn push_canonical(part: &Contents, out: &mut Vec<u8>) {
    part.nodes().for_each(|node| push_node(part, node, out));
}

/// Appends the records of a node in the order of their types (RFC 8976 §3.3.1). All RRSIG records
/// are together, as type 46.
fn push_node(contents: &Contents, node: Node<'_>, out: &mut Vec<u8>) {
    let is_apex = node.name() == contents.apex().view();
    let digested = node.rrsets().filter(|rrset| !(is_apex && rrset.covered() == Rtype::ZONEMD));
    let mut head = Vec::with_capacity(node.name().len() + 10);
    node.name().push_canonical(&mut head);
    let is_data = |rrset: &Rrset<'_>| rrset.rtype() != Rtype::RRSIG;
    for rrset in digested.clone().filter(|rrset| is_data(rrset) && rrset.rtype() < Rtype::RRSIG) {
        push_rrset(&mut head, rrset, out);
    }
    push_signatures(&mut head, digested.clone().filter(|rrset| !is_data(rrset)), out);
    for rrset in digested.filter(|rrset| is_data(rrset) && rrset.rtype() > Rtype::RRSIG) {
        push_rrset(&mut head, rrset, out);
    }
}

fn push_rrset(head: &mut Vec<u8>, rrset: Rrset<'_>, out: &mut Vec<u8>) {
    for octets in rrset.rdatas() {
        push_record(head, rrset.rtype(), rrset.ttl(), octets, out);
    }
}

/// Appends the RRSIG records. The sets are ordered by the covered type, which is the first field of
/// the RDATA, so sorting within each set is sufficient. The sort is necessary because contents
/// from a signer can have the records of a set in any order.
fn push_signatures<'z>(head: &mut Vec<u8>, sets: impl Iterator<Item = Rrset<'z>>, out: &mut Vec<u8>) {
    let mut sorted: Vec<&[u8]> = Vec::new();
    for set in sets {
        sorted.clear();
        sorted.extend(set.rdatas());
        if !sorted.is_sorted_by(|a, b| cmp_signatures(a, b).is_le()) {
            sorted.sort_by(|a, b| cmp_signatures(a, b));
        }
        for octets in &sorted {
            push_record(head, Rtype::RRSIG, set.ttl(), octets, out);
        }
    }
}

/// Compares RRSIG RDATA in canonical order. Usually the 18 octets before the signer's name decide.
fn cmp_signatures(a: &[u8], b: &[u8]) -> Ordering {
    match (a.first_chunk::<18>(), b.first_chunk::<18>()) {
        (Some(x), Some(y)) if x != y => x.cmp(y),
        _ => rdata::cmp_canonical(Rtype::RRSIG, a, b),
    }
}

/// Appends a record in canonical form (RFC 4034 §6.2): owner in lower case, type, class, TTL,
/// length and RDATA. `head` contains the owner.
fn push_record(head: &mut Vec<u8>, rtype: Rtype, ttl: u32, octets: &[u8], out: &mut Vec<u8>) {
    let owner = head.len();
    head.extend_from_slice(&rtype.0.to_be_bytes());
    head.extend_from_slice(&Class::IN.0.to_be_bytes());
    head.extend_from_slice(&ttl.to_be_bytes());
    head.extend_from_slice(&(octets.len() as u16).to_be_bytes());
    out.extend_from_slice(head);
    head.truncate(owner);
    rdata::push_canonical(rtype, octets, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{read_file, read_text};
    use data_encoding::HEXLOWER;
    use nonesuch_proto::Name;
    use std::path::Path;

    /// The example of RFC 8976 appendix A.1.
    const SIMPLE_ZONE: &str = "example. 86400 IN SOA ns1 admin 2018031900 1800 900 604800 86400
        86400 IN NS ns1
        86400 IN NS ns2
        86400 IN ZONEMD 2018031900 1 1 (c68090d90a7aed716bc459f9340e3d7c1370d4d24b7e2fc3a1ddc0b9a87153b9
            a9713b3c9ae5cc27777f98b8e730044c)
ns1 3600 IN A 203.0.113.63
ns2 3600 IN AAAA 2001:db8::63
";

    fn zone(text: &str) -> Contents {
        let apex: Name = "example.".parse().unwrap();
        read_text(text.as_bytes(), Path::new("test"), Some(&apex)).unwrap().contents
    }

    /// Asserts that each digest in the zone is correct. Returns their hash algorithms.
    #[track_caller]
    fn assert_digests(contents: &Contents) -> Vec<ZonemdHash> {
        let checked = records(contents).filter_map(|record| {
            let hash = record.supported_hash()?;
            let computed = digest(contents, &[hash]).remove(0).1;
            assert_eq!(HEXLOWER.encode(&computed), HEXLOWER.encode(record.digest), "{hash}");
            assert_eq!(Some(record.serial), contents.soa().map(|soa| soa.serial));
            Some(hash)
        });
        checked.collect()
    }

    #[test]
    fn the_simple_example_of_rfc_8976() {
        assert_eq!(assert_digests(&zone(SIMPLE_ZONE)), [ZonemdHash::Sha384]);
    }

    /// The digest does not depend on the letter case of owners and of names in RDATA, the order of
    /// records, duplicates, or the digest in the ZONEMD record.
    #[test]
    fn the_digest_depends_on_the_records_and_not_on_their_form() {
        let all = ZonemdHash::ALL;
        let expected = digest(&zone(SIMPLE_ZONE), &all);
        let other_form = SIMPLE_ZONE
            .replace("NS ns1", "NS NS1.Example.")
            .replace("ns2 3600", "NS2.EXAMPLE. 3600")
            .replace("c68090", "000000");
        assert_eq!(digest(&zone(&format!("{other_form}ns2 3600 AAAA 2001:DB8:0:0::63\n")), &all), expected);
        let signed = "example. 86400 RRSIG ZONEMD 13 1 86400 20300101000000 20200101000000 1 example. AAAA\n";
        assert_eq!(digest(&zone(&format!("{other_form}{signed}")), &all), expected);
        for change in [
            "x TXT \"\"",
            "ns2 3600 AAAA 2001:db8::64",
            "ns1 ZONEMD 1 1 1 00",
            "@ RRSIG NS 13 1 1 1 1 1 . AAAA",
        ] {
            let changed = zone(&format!("$TTL 3600\n$ORIGIN example.\n{SIMPLE_ZONE}{change}\n"));
            for (one, other) in digest(&changed, &all).iter().zip(&expected) {
                assert_ne!(one.1, other.1, "{change}");
            }
        }
        let ttl = zone(&SIMPLE_ZONE.replace("ns1 3600", "ns1 3601"));
        assert_ne!(digest(&ttl, &all), expected);
    }

    /// RRSIG records of all covered types are together and sorted.
    #[test]
    fn signatures_sort_as_one_type_between_ds_and_nsec() {
        let signature = |covered: &str, tag: u16| {
            format!("a 60 RRSIG {covered} 13 2 60 20300101000000 20200101000000 {tag} Example. AAAA\n")
        };
        let text = [
            "example. 60 SOA a b 1 2 3 4 5\n$ORIGIN example.\na 60 NSEC b A\na 60 A 192.0.2.1\na 60 DS 1 13 2 00\n",
            &signature("NSEC", 9),
            &signature("A", 300),
            &signature("A", 7),
            &signature("DS", 1),
        ];
        let contents = zone(&text.concat());
        let mut octets = Vec::new();
        push_node(&contents, contents.node(1), &mut octets);
        // Covers owner, type, covered type and key tag of each record.
        let owner = b"\x01a\x07example\0";
        let mut found = Vec::new();
        let mut rest = &octets[..];
        while !rest.is_empty() {
            let (head, tail) = rest.strip_prefix(owner).unwrap().split_at(10);
            let (rdata, next) = tail.split_at(usize::from(u16::from_be_bytes([head[8], head[9]])));
            let covered = if head[1] == 46 { u16::from(rdata[1]) } else { 0 };
            let tag = if covered > 0 { u16::from_be_bytes([rdata[16], rdata[17]]) } else { 0 };
            found.push((head[1], covered, tag));
            rest = next;
        }
        assert_eq!(
            found,
            [(1, 0, 0), (43, 0, 0), (46, 1, 7), (46, 1, 300), (46, 43, 1), (46, 47, 9), (47, 0, 0)]
        );
        assert!(!octets.windows(8).any(|window| window == b"\x07Example"));
    }

    #[test]
    fn signatures_are_sorted_for_the_digest() {
        let rrsig =
            |tag: u8| [&[0, 1, 13, 1, 0, 0, 0, 60, 9, 9, 9, 9, 1, 1, 1, 1, 0, tag, 0][..], &[7]].concat();
        let build = |tags: [u8; 2]| {
            let apex = Name::root();
            let mut run = crate::NodesBuilder::default();
            run.begin_node(apex.view());
            run.begin_rrset(Rtype::RRSIG, Rtype::A, 60);
            for tag in tags {
                run.push_record(|out| out.extend_from_slice(&rrsig(tag)));
            }
            run.into_contents(&apex)
        };
        let digests = |tags| digest(&build(tags), &ZonemdHash::ALL);
        assert_eq!(digests([1, 2]), digests([2, 1]));
        assert_ne!(digests([1, 2]), digests([1, 3]));
    }

    #[test]
    fn rdata_and_hash_names_are_parsed_back() {
        let mut rdata = Vec::new();
        let record = Zonemd { serial: 0x0102_0304, scheme: 1, hash: 2, digest: &[5; 12] };
        record.push_rdata(&mut rdata);
        assert_eq!(rdata[..6], [1, 2, 3, 4, 1, 2]);
        assert_eq!(Zonemd::parse(&rdata), Some(record));
        assert_eq!(Zonemd::parse(&rdata[..5]), None);
        for hash in ZonemdHash::ALL {
            assert_eq!(ZonemdHash::from_number(hash.number()), Some(hash));
            assert_eq!(hash.to_string().to_uppercase().parse(), Ok(hash));
        }
        assert_eq!(ZonemdHash::from_number(3), None);
        assert_eq!("sha256".parse::<ZonemdHash>(), Err(UnknownHash));
    }

    #[test]
    fn the_example_zones_of_rfc_8976() {
        let Some(folder) = nonesuch_testing::public_data("rfc-zones/test-data") else { return };
        let sha384 = vec![ZonemdHash::Sha384];
        for (file, origin, expected) in [
            ("example.rfc8976-multiple-digests", "example.", ZonemdHash::ALL.to_vec()),
            ("root-servers.net.rfc8976", "root-servers.net.", sha384.clone()),
        ] {
            let reading = read_file(&folder.join(file), Some(&origin.parse().unwrap())).unwrap();
            assert_eq!(assert_digests(&reading.contents), expected, "{file}");
        }
        // A digest must ignore records outside the zone (§3.3.1); the reader of zone files rejects
        // them.
        let text = std::fs::read_to_string(folder.join("example.rfc8976-complex")).unwrap();
        let text: String = text
            .lines()
            .filter(|line| !line.starts_with("foo.test."))
            .flat_map(|line| [line, "\n"])
            .collect();
        assert_eq!(assert_digests(&zone(&text)), sha384);
    }
}
