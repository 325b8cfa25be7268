//! Tests of compiled zones: a written zone is read back, and any other input is rejected.

use super::directory::Directory;
use super::directory::{ChunkProperties, Size};
use super::gather::ChunkPropertiesBuilder;
use super::header::{HeaderFields, digest, header, trailer};
use super::source::{try_resize, u16_le, u32_le, u64_le};
use super::*;
use crate::change::tests::{written, zone, zones};
use crate::contents::Contents;
use crate::{Image, LoadError, ReadError, ReadFault, Splice, ZoneRef, load, open_compiled};
use nonesuch_proto::Rtype;
use proptest::prelude::*;
use std::path::Path;

fn compiled(contents: &Contents) -> Vec<u8> {
    let mut octets = Vec::new();
    write(contents, Verification::Full { at: 7 }, &mut octets).unwrap();
    octets
}

fn compiled_in_chunks(contents: &Contents, chunk: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    write_in_chunks(contents, Verification::Full { at: 7 }, chunk, &mut octets).unwrap();
    octets
}

/// The parts of a chunk.
struct Raw {
    /// Length of the name and number of RRsets.
    nodes: Vec<(u8, u32)>,
    rrsets: Vec<RawRrset>,
    names: Vec<u8>,
    rdata: Vec<u8>,
}

#[derive(Clone, Copy)]
struct RawRrset {
    rtype: Rtype,
    covered: Rtype,
    ttl: u32,
    count: u32,
    octets: u32,
}

impl Raw {
    fn of(contents: &Contents) -> Self {
        let node = |node: crate::Node<'_>| (node.name().len() as u8, node.rrsets().len() as u32);
        let rrset = |rrset: crate::Rrset<'_>| RawRrset {
            rtype: rrset.rtype(),
            covered: rrset.covered(),
            ttl: rrset.ttl(),
            count: rrset.count() as u32,
            octets: rrset.stored_records().len() as u32,
        };
        Self {
            nodes: contents.nodes().map(node).collect(),
            rrsets: contents.nodes().flat_map(|node| node.rrsets()).map(rrset).collect(),
            names: contents.names.clone(),
            rdata: contents.rdata.clone(),
        }
    }

    fn size(&self) -> Size {
        Size {
            nodes: self.nodes.len() as u32,
            rrsets: self.rrsets.len() as u32,
            names: self.names.len() as u32,
            rdata: self.rdata.len() as u32,
        }
    }

    fn octets(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, rrsets) in &self.nodes {
            out.extend_from_slice(&(u32::from(*name) | rrsets << 8).to_le_bytes());
        }
        for rrset in &self.rrsets {
            out.extend_from_slice(&rrset.rtype.0.to_le_bytes());
            out.extend_from_slice(&rrset.covered.0.to_le_bytes());
            for word in [rrset.ttl, rrset.count, rrset.octets] {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }
        [out, self.names.clone(), self.rdata.clone()].concat()
    }
}

/// Returns a file with the sample as altered by `change`, in one chunk, with the header and the
/// directory of the unaltered sample.
fn with_flaw(change: impl FnOnce(&mut Raw)) -> Vec<u8> {
    zone_with_flaw(&sample(), change)
}

fn zone_with_flaw(contents: &Contents, change: impl FnOnce(&mut Raw)) -> Vec<u8> {
    let mut raw = Raw::of(contents);
    change(&mut raw);
    let mut builder = ChunkPropertiesBuilder::default();
    contents.nodes().for_each(|node| builder.add(node));
    let mut directory = Directory::default();
    let properties = builder.build(&mut directory.patterns);
    let chunk = raw.octets();
    directory
        .push(contents.node(0).name().wire(), raw.size(), properties, *blake3::hash(&chunk).as_bytes())
        .unwrap();
    assemble(contents, &chunk, &directory)
}

/// Returns a file with these chunks.
fn assemble(contents: &Contents, chunks: &[u8], directory: &Directory) -> Vec<u8> {
    let header = header(
        contents.apex(),
        &HeaderFields::of_apex(contents, Verification::Nothing, DEFAULT_CHUNK_OCTETS),
    );
    let (entries, patterns) = (directory.entries.len() as u32, directory.patterns.count() as u32);
    let octets = directory.encode();
    let trailer = trailer(&header, &octets, (HEADER_OCTETS + chunks.len()) as u64, entries, patterns);
    [&header[..], chunks, &octets, &trailer].concat()
}

/// Recomputes the digests, as far as the directory can be read.
fn recompute_digests(octets: &mut [u8]) {
    let end = octets.len() - TRAILER_OCTETS;
    let (offset, chunks, patterns) =
        (u64_le(octets, end), u32_le(octets, end + 16), u32_le(octets, end + 20));
    let offset = usize::try_from(offset).unwrap_or(usize::MAX).clamp(HEADER_OCTETS, end);
    let (mut at, mut chunk) = (offset, HEADER_OCTETS);
    for _ in 0..patterns.min(9) {
        at += if at + 2 <= end { 2 + usize::from(u16_le(octets, at)) } else { 0 };
    }
    for _ in 0..chunks.min(999) {
        if at + 85 > end {
            break;
        }
        let [nodes, rrsets, names, rdata] = [0, 4, 8, 12].map(|offset| u32_le(octets, at + offset));
        let length = Size { nodes, rrsets, names, rdata }.octets() as usize;
        if length > offset - chunk {
            break;
        }
        let digest = blake3::hash(&octets[chunk..chunk + length]);
        octets[at + 52..at + 84].copy_from_slice(digest.as_bytes());
        chunk += length;
        at += 85 + usize::from(octets[at + 84]);
    }
    let digest =
        digest(&octets[..HEADER_OCTETS], &octets[offset..end], &octets[end..end + TRAILER_DIGESTED_OCTETS]);
    octets[end + TRAILER_DIGESTED_OCTETS..end + TRAILER_DIGESTED_OCTETS + DIGEST_OCTETS]
        .copy_from_slice(&digest);
}

fn sample() -> Contents {
    zone(
        "Www A 192.0.2.7\nwww A 192.0.2.8\nwww RRSIG A 13 2 60 2 1 7 @ AAAA\nm MX 1 www\nm MX 2 b.M\ncut NS ns.cut\n\
         cut DS 1 13 2 00\nns.cut AAAA 2001:db8::1\n@ NSEC cut SOA NS\nt TXT \"a b\" c\n*.w CNAME www\n",
    )
}

fn error_of(octets: &[u8]) -> CompiledError {
    read(octets).expect_err("not a compiled zone")
}

/// Checks that the error is about this part of the file.
#[track_caller]
fn assert_malformed(error: &CompiledError, part: &str) {
    assert!(matches!(error, CompiledError::Layout(found) if *found == part), "{part}: {error:?}");
}

/// Checks that the error is about the directory or its offset.
#[track_caller]
fn assert_malformed_directory(error: &CompiledError) {
    assert!(matches!(error, CompiledError::Layout("directory" | "directory offset")), "{error:?}");
}

#[test]
fn the_verification_is_read_back() {
    for verification in
        [Verification::Nothing, Verification::Structural { at: 3 }, Verification::Full { at: u32::MAX }]
    {
        let mut octets = Vec::new();
        write(&sample(), verification, &mut octets).unwrap();
        let (contents, found) = read(&octets).unwrap();
        assert_eq!(found, verification);
        assert_eq!(written(&contents), written(&sample()));
        assert_eq!(contents.apex().wire(), sample().apex().wire());
    }
}

/// The mark for different TTLs must survive a restart: it determines whether a change may modify
/// part of an RRset, and whether a ZONEMD digest can be computed.
#[test]
fn the_mark_for_different_ttls_is_read_back() {
    let text =
        "$ORIGIN example.\n@ 60 SOA . . 1 1 1 1 1\nm 60 A 192.0.2.1\nm 30 A 192.0.2.2\nu 60 A 192.0.2.1\n";
    let zone = crate::read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
    let mixed = |contents: &Contents| -> Vec<(bool, u32, usize)> {
        let rrsets = contents.nodes().flat_map(|node| node.rrsets());
        rrsets.map(|rrset| (rrset.has_mixed_ttls(), rrset.ttl(), rrset.count())).collect()
    };
    assert_eq!(mixed(&zone), [(false, 60, 1), (true, 30, 2), (false, 60, 1)]);
    let octets = compiled(&zone);
    let (again, _) = read(&octets).unwrap();
    assert_eq!(mixed(&again), mixed(&zone));
    assert_eq!(compiled(&again), octets);
    let mut unmarked = octets.clone();
    unmarked[16] = 0;
    recompute_digests(&mut unmarked);
    assert_malformed(&error_of(&unmarked), "flags");
    // A splice has one TTL in each RRset.
    let stored = StoredZone::of_octets(octets).unwrap();
    for splice in [Splice::of(&zone), Splice::of(&stored)] {
        let mut octets = Vec::new();
        write_splice(&splice, Verification::Nothing, &mut octets).unwrap();
        assert!(!read(&octets).unwrap().0.has_mixed_ttls());
        assert!(!splice.to_contents().unwrap().has_mixed_ttls());
    }
}

/// Older files have zeros as the digest of the algorithm tables. They can be read, and are verified
/// again.
#[test]
fn a_verification_with_other_algorithm_tables_is_not_trusted() {
    let tables = HEADER_OCTETS - TABLES_DIGEST_OCTETS..HEADER_OCTETS;
    let found = |verification, digest: [u8; TABLES_DIGEST_OCTETS]| {
        let mut octets = Vec::new();
        write(&sample(), verification, &mut octets).unwrap();
        assert_eq!(octets[tables.clone()], tables_digest());
        octets[tables.clone()].copy_from_slice(&digest);
        recompute_digests(&mut octets);
        read(&octets).unwrap().1
    };
    for digest in [[0; TABLES_DIGEST_OCTETS], [7; TABLES_DIGEST_OCTETS]] {
        assert_eq!(found(Verification::Full { at: 7 }, digest), Verification::OtherTables { at: 7 });
        assert_eq!(found(Verification::Structural { at: 8 }, digest), Verification::OtherTables { at: 8 });
        assert_eq!(found(Verification::Nothing, digest), Verification::Nothing);
    }
    assert_eq!(found(Verification::Full { at: 7 }, tables_digest()), Verification::Full { at: 7 });
    let again = found(Verification::OtherTables { at: 7 }, tables_digest());
    assert_eq!(again, Verification::Nothing, "a verification with other tables is written as none");
}

#[test]
fn a_truncated_file_is_rejected() {
    let octets = compiled(&sample());
    for length in 0..octets.len() {
        let error = error_of(&octets[..length]);
        let is_expected = match error {
            CompiledError::NotCompiled => length < MAGIC_OCTETS,
            CompiledError::Truncated { .. } => length >= MAGIC_OCTETS,
            _ => false,
        };
        assert!(is_expected, "{length}: {error:?}");
    }
    let longer = [&octets[..], b"x"].concat();
    let error = error_of(&longer);
    let length = longer.len() as u64;
    assert!(matches!(error, CompiledError::Truncated { found } if found == length), "{error:?}");
}

#[test]
fn a_flipped_bit_is_rejected() {
    let octets = compiled(&sample());
    for bit in 0..octets.len() * 8 {
        let mut altered = octets.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        let error = error_of(&altered);
        let is_header_or_trailer = bit < HEADER_OCTETS * 8 || bit >= (octets.len() - TRAILER_OCTETS) * 8;
        assert!(is_header_or_trailer || matches!(error, CompiledError::Altered), "{bit}: {error:?}");
        assert!(StoredZone::of_octets(altered).is_err(), "{bit}");
    }
}

#[test]
fn too_little_memory_is_an_error() {
    let mut octets = vec![1; 3];
    let error = try_resize(&mut octets, u64::MAX).expect_err("no machine has so much memory");
    assert_eq!((error.kind(), octets.len()), (io::ErrorKind::OutOfMemory, 3));
    try_resize(&mut octets, 5).expect("enough memory");
    assert_eq!(octets, [1, 1, 1, 0, 0]);
}

#[test]
fn each_fault_of_the_header_has_its_error() {
    let correct = compiled(&sample());
    let with = |at: usize, octets: &[u8]| {
        let mut altered = correct.clone();
        altered[at..at + octets.len()].copy_from_slice(octets);
        recompute_digests(&mut altered);
        error_of(&altered)
    };
    let end = correct.len() - TRAILER_OCTETS;
    let directory = u64_le(&correct, end) as usize;
    assert!(matches!(with(0, b"; "), CompiledError::NotCompiled));
    assert_eq!(VERSION, 2);
    assert!(matches!(with(8, &[1]), CompiledError::Version(1)));
    assert!(matches!(with(12, &[1, 2, 3, 4]), CompiledError::ByteOrder));
    assert_malformed(&with(12, &[9]), "header");
    assert_malformed(&with(16, &[1]), "flags");
    assert_malformed(&with(20, &[3]), "verification");
    assert_malformed(&with(28, &[9]), "serial");
    assert_malformed(&with(48, &[64]), "apex");
    assert_malformed_directory(&with(48, b"\x07exemple"));
    assert_malformed(&with(end, &[0; 8]), "directory offset");
    assert_malformed(&with(end, &[255; 8]), "directory offset");
    assert_malformed_directory(&with(end, &[1]));
    assert!(matches!(with(end + 8, &[1]), CompiledError::Truncated { .. }));
    // Wrong numbers of chunks, then wrong numbers of patterns.
    assert_malformed_directory(&with(end + 16, &[0]));
    assert_malformed_directory(&with(end + 16, &[255; 4]));
    assert_malformed_directory(&with(end + 20, &[9]));
    assert_malformed_directory(&with(end + 20, &[255; 4]));
    // Wrong length of a pattern.
    assert_malformed_directory(&with(directory, &[255; 2]));
}

#[test]
fn wrong_properties_in_the_directory_are_rejected() {
    let contents = sample();
    let error_with = |change: fn(&mut ChunkProperties)| {
        let mut builder = ChunkPropertiesBuilder::default();
        contents.nodes().for_each(|node| builder.add(node));
        let mut directory = Directory::default();
        let mut properties = builder.build(&mut directory.patterns);
        change(&mut properties);
        let (chunk, raw) = (Raw::of(&contents).octets(), Raw::of(&contents));
        let digest = *blake3::hash(&chunk).as_bytes();
        directory.push(contents.node(0).name().wire(), raw.size(), properties, digest).unwrap();
        let octets = assemble(&contents, &chunk, &directory);
        let outcome = (read(&octets).err(), StoredZone::of_octets(octets).err());
        let (Some(a), Some(b)) = outcome else { return None };
        assert_eq!(a.to_string(), b.to_string());
        Some(a)
    };
    assert!(error_with(|_| ()).is_none());
    // A uniform pattern that is declared as mixed only causes more chunks to be read.
    assert!(error_with(|properties| properties.chain = directory::MIXED_PATTERNS).is_none());
    let changes: [fn(&mut ChunkProperties); 9] = [
        |properties| properties.counts.records += 1,
        |properties| properties.counts.signatures = 0,
        |properties| properties.counts.signed_rrsets = 0,
        |properties| properties.counts.chain_records = 0,
        |properties| properties.expirations.first += 1,
        |properties| properties.inceptions.last += 1,
        |properties| properties.signers = directory::NO_PATTERN,
        |properties| properties.chain = directory::NO_PATTERN,
        |properties| properties.signers = 9,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let error = error_with(change).unwrap_or_else(|| panic!("{number}: no error"));
        assert_malformed_directory(&error);
    }
}

#[test]
fn each_flaw_of_the_contents_is_reported() {
    type Change = fn(&mut Raw);
    let cases: [(Flaw, Change); 21] = [
        (Flaw::Length, |raw| raw.nodes[0].0 += 1),
        (Flaw::Name, |raw| (raw.nodes[1].0, raw.nodes[2].0) = (raw.nodes[1].0 + 1, raw.nodes[2].0 - 1)),
        (Flaw::Length, |raw| raw.names.push(0)),
        (Flaw::Name, |raw| {
            raw.names.push(0);
            raw.nodes.last_mut().unwrap().0 += 1;
        }),
        (Flaw::NameOrder, |raw| raw.names[1] = b'x'),
        (Flaw::NameOrder, |raw| raw.names[usize::from(raw.nodes[0].0) + 1] = b'z'),
        (Flaw::NameOrder, |raw| *raw.names.iter_mut().rev().nth(1).unwrap() = b'f'),
        (Flaw::Length, |raw| (raw.nodes[1].1, raw.nodes[2].1) = (0, raw.nodes[1].1 + raw.nodes[2].1)),
        (Flaw::Length, |raw| raw.nodes[1].1 = 0x00ff_ffff),
        (Flaw::RrsetOrder, |raw| (raw.rrsets[0].rtype, raw.rrsets[0].covered) = (Rtype::PTR, Rtype::PTR)),
        (Flaw::RrsetOrder, |raw| raw.rrsets[1].covered = Rtype::A),
        (Flaw::Rrset, |raw| raw.rrsets[0].rtype = Rtype::A),
        (Flaw::Rrset, |raw| raw.rrsets[0].ttl = 1 << 31),
        (Flaw::Rrset, |raw| raw.rrsets[0].count = 0),
        (Flaw::Length, |raw| raw.rrsets[0].count = 2),
        (Flaw::Length, |raw| {
            raw.rrsets[0].octets += 1;
            raw.rrsets[1].octets -= 1;
        }),
        (Flaw::Length, |raw| raw.rrsets.last_mut().unwrap().octets = u32::MAX),
        (Flaw::Length, |raw| raw.rrsets[0].octets -= 1),
        (Flaw::Length, |raw| raw.rdata.push(0)),
        (Flaw::Rdata, |raw| raw.rdata[2] = 64),
        (Flaw::Rrset, |raw| {
            let signature = raw.rrsets.iter_mut().find(|rrset| rrset.rtype == Rtype::RRSIG).unwrap();
            signature.covered = Rtype::NS;
        }),
    ];
    for (number, (flaw, change)) in cases.into_iter().enumerate() {
        let octets = with_flaw(change);
        let error = error_of(&octets);
        let is_expected = matches!(error, CompiledError::Malformed { flaw: found, .. } if found == flaw);
        assert!(is_expected, "{number}: {error:?}");
        assert_eq!(format!("{:?}", StoredZone::of_octets(octets).err().unwrap()), format!("{error:?}"));
    }
}

#[test]
fn records_out_of_order_and_invalid_zones_are_rejected() {
    let unsorted = with_flaw(|raw| {
        let www = raw.rrsets.iter().position(|rrset| rrset.count == 2 && rrset.rtype == Rtype::A).unwrap();
        let previous_octets: u32 = raw.rrsets[..www].iter().map(|rrset| rrset.octets).sum();
        raw.rdata[previous_octets as usize + 11] = 7;
    });
    let error = error_of(&unsorted);
    assert!(matches!(error, CompiledError::Malformed { flaw: Flaw::RecordOrder, .. }), "{error:?}");
    let cname = with_flaw(|raw| {
        let soa = raw.rrsets.iter_mut().find(|rrset| rrset.rtype == Rtype::SOA).unwrap();
        (soa.rtype, soa.covered) = (Rtype(7), Rtype(7));
    });
    let error = error_of(&cname);
    assert!(matches!(error, CompiledError::Malformed { node: 0, .. }), "{error:?}");
    let sibling = zone_with_flaw(&zone("a CNAME b\na NSEC b CNAME NSEC\n"), |raw| {
        let nsec = raw.rrsets.iter_mut().find(|rrset| rrset.rtype == Rtype::NSEC).unwrap();
        (nsec.rtype, nsec.covered) = (Rtype(65283), Rtype(65283));
    });
    let error = error_of(&sibling);
    let CompiledError::Zone(ZoneFault::CnameAndOther { owner, other }) = &error else { panic!("{error:?}") };
    assert_eq!((owner.to_string().as_str(), *other), ("a.example.", Rtype(65283)));
    let empty = Contents { apex: Name::root(), names: vec![], rdata: vec![], nodes: vec![], rrsets: vec![] };
    let error = error_of(&compiled(&empty));
    assert!(matches!(error, CompiledError::Zone(ZoneFault::NoSoa(_))), "{error:?}");
}

#[test]
fn load_recognises_text_and_compiled_zones() {
    let temporary = tempfile::tempdir().unwrap();
    let (text, image) = (temporary.path().join("text"), temporary.path().join("image"));
    std::fs::write(&text, written(&sample())).unwrap();
    std::fs::write(&image, compiled(&sample())).unwrap();
    let (from_text, from_image) = (load(&text, None).unwrap(), load(&image, None).unwrap());
    assert_eq!(from_text.verification, None);
    assert_eq!(from_image.verification, Some(Verification::Full { at: 7 }));
    assert_eq!(written(&from_text.contents), written(&from_image.contents));
    let other: Name = "other.".parse().unwrap();
    let error = load(&image, Some(&other)).unwrap_err();
    let LoadError::Compiled { path, source: CompiledError::WrongOrigin { found, origin } } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((path, found, origin), (&image, sample().apex(), &other));
    assert!(open_compiled(&text, None).unwrap().is_none());
    assert!(open_compiled(temporary.path(), None).unwrap().is_none());
    assert_eq!(open_compiled(&image, None).unwrap().unwrap().node_count(), sample().node_count());
    assert!(matches!(
        open_compiled(&image, Some(&other)),
        Err(LoadError::Compiled { source: CompiledError::WrongOrigin { .. }, .. })
    ));
    std::fs::write(&image, &compiled(&sample())[..500]).unwrap();
    assert!(matches!(
        load(&image, None),
        Err(LoadError::Compiled { source: CompiledError::Truncated { .. }, .. })
    ));
    std::fs::write(&image, b"").unwrap();
    assert!(matches!(load(&image, None), Err(LoadError::Text(_))));
    for path in [Path::new("/nonexistent/zone"), temporary.path()] {
        let error = load(path, None).unwrap_err();
        let LoadError::Text(ReadError { file, fault: ReadFault::Io(_), .. }) = &error else {
            panic!("{error:?}")
        };
        assert_eq!(file, path);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, rng_seed: proptest::test_runner::RngSeed::Fixed(11), ..ProptestConfig::default() })]

    #[test]
    fn a_compiled_zone_is_read_back_unchanged(zone in zones()) {
        let octets = compiled(&zone);
        let (again, _) = read(&octets).unwrap();
        prop_assert_eq!(written(&again), written(&zone));
        prop_assert_eq!(compiled(&again), octets);
    }

    /// A zone whose chunks are loaded on demand equals the zone that is read as a whole. Written
    /// again, it gives the same file.
    #[test]
    fn a_stored_zone_equals_the_zone_in_memory(zone in zones(), octets in 1_u32..300) {
        let file = compiled_in_chunks(&zone, octets);
        prop_assert_eq!(written(&read(&file).unwrap().0), written(&zone));
        let open = StoredZone::of_octets(file).unwrap();
        prop_assert_eq!((open.node_count(), open.record_count()), (zone.node_count(), zone.record_count()));
        let (all, parts) = (ZoneRef::from(&zone), ZoneRef::from(&open));
        for node in zone.nodes().collect::<Vec<_>>().into_iter().rev() {
            let found = parts.find(node.name()).unwrap();
            prop_assert_eq!((found.index, found.node.name().wire()), (node.index(), node.name().wire()));
            prop_assert_eq!(found.node.rrsets().len(), node.rrsets().len());
            let sibling = Name::prepend(b"\0", node.name()).unwrap();
            prop_assert_eq!(all.find(sibling.view()).err(), parts.find(sibling.view()).err());
            let range = node.index()..zone.node_count();
            prop_assert_eq!(
                all.first_chain_node(range.clone(), Rtype::NSEC),
                parts.first_chain_node(range.clone(), Rtype::NSEC)
            );
            prop_assert_eq!(all.last_chain_node(range.clone(), Rtype::NSEC), parts.last_chain_node(range, Rtype::NSEC));
        }
        parts.check_loaded().unwrap();
        let again = |zone: &StoredZone| {
            let mut again = Vec::new();
            write_splice(&Splice::of(zone), Verification::Full { at: 7 }, &mut again).unwrap();
            again
        };
        let (uniform, _) = read(&again(&open)).unwrap();
        prop_assert!(written(&uniform) == written(&zone) && !uniform.has_mixed_ttls());
        let file = compiled_in_chunks(&uniform, octets);
        prop_assert_eq!(again(&StoredZone::of_octets(file.clone()).unwrap()), file);
    }

    /// Replacing nodes with equal nodes of other contents does not change the zone.
    #[test]
    fn a_splice_with_equal_nodes_is_the_same_zone(
        zone in zones(),
        octets in 1_u32..300,
        replaced in proptest::collection::vec(any::<bool>(), 64),
    ) {
        let open = StoredZone::of_octets(compiled_in_chunks(&zone, octets)).unwrap();
        let mut splice = Splice::new(zone.apex());
        for index in 0..zone.node_count() {
            if replaced[index % 64] {
                splice.push_nodes(&zone, index..index + 1);
            } else {
                splice.push_nodes(&open, index..index + 1);
            }
        }
        let mut out = Vec::new();
        write_splice(&splice, Verification::Full { at: 7 }, &mut out).unwrap();
        prop_assert_eq!(written(&read(&out).unwrap().0), written(&zone));
        prop_assert_eq!(written(&splice.to_contents().unwrap()), written(&zone));
        let open = StoredZone::of_octets(out).unwrap();
        // Repeated changes do not make the chunks ever shorter.
        let (_, all_but_last) = open.directory.entries.split_last().unwrap();
        prop_assert!(all_but_last.iter().all(|entry| entry.octets >= u64::from(octets) / 2));
    }

    /// Altered octets with matching digests are rejected, or give another usable zone.
    #[test]
    fn altered_octets_with_correct_digests_give_a_usable_zone_or_an_error(
        zone in zones(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut octets = compiled(&zone);
        let end = octets.len() - END_MAGIC.len();
        for (position, value) in changes {
            octets[MAGIC_OCTETS + position.index(end - MAGIC_OCTETS)] = value;
        }
        recompute_digests(&mut octets);
        let open = StoredZone::of_octets(octets.clone());
        prop_assert!(open.is_ok() || read(&octets).is_err());
        if let Ok((accepted, _)) = read(&octets) {
            let text = written(&accepted);
            let again = crate::read::read_text(text.as_bytes(), Path::new("again"), Some(accepted.apex())).unwrap();
            prop_assert!(again.warnings.iter().all(|warning| *warning == crate::Warning::NoNs));
            prop_assert_eq!(written(&again.contents), text);
            let _ = Image::compile(&accepted);
        }
    }
}
