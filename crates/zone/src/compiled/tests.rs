//! Compiled zones: what is written is read back, and nothing else is.

use super::*;
use crate::change::tests::{written, zone, zones};
use crate::contents::Contents;
use crate::{Image, LoadError, load};
use nonesuch_proto::Rtype;
use proptest::prelude::*;
use std::path::Path;

fn compiled(contents: &Contents) -> Vec<u8> {
    let mut octets = Vec::new();
    write(contents, Verification::Full { at: 7 }, &mut octets).unwrap();
    octets
}

/// What `change` makes of the sample, below the sample's own header.
fn flawed(change: impl FnOnce(&mut Contents)) -> Vec<u8> {
    let mut contents = sample();
    let facts = write::Facts::of(&contents, Verification::Nothing);
    change(&mut contents);
    let mut octets = Vec::new();
    write::write_as(&contents, &facts, &mut octets).unwrap();
    octets
}

/// Makes the digest fit again.
fn seal(octets: &mut [u8]) {
    let (rest, digest) = octets.split_last_chunk_mut::<DIGEST>().unwrap();
    *digest = *blake3::hash(rest).as_bytes();
}

fn sample() -> Contents {
    zone(
        "Www A 192.0.2.7\nwww A 192.0.2.8\nwww RRSIG A 13 2 60 2 1 7 @ AAAA\nm MX 1 www\nm MX 2 b.M\ncut NS ns.cut\n\
         cut DS 1 13 2 00\nns.cut AAAA 2001:db8::1\n@ NSEC cut SOA NS\nt TXT \"a b\" c\n*.w CNAME www\n",
    )
}

fn error_of(octets: &[u8]) -> String {
    read(octets).expect_err("not a compiled zone").to_string()
}

#[test]
fn what_was_verified_is_kept() {
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

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let octets = compiled(&sample());
    for length in 0..octets.len() {
        let error = error_of(&octets[..length]);
        let expected = if length < MAGIC_OCTETS { "not a compiled zone" } else { "cut off: " };
        assert!(error.starts_with(expected), "{length}: {error}");
    }
    let longer = [&octets[..], b"x"].concat();
    assert!(error_of(&longer).contains(&format!("{} octets instead of {}", longer.len(), octets.len())));
}

#[test]
fn a_file_in_which_any_bit_is_flipped_is_refused() {
    let octets = compiled(&sample());
    for bit in 0..octets.len() * 8 {
        let mut altered = octets.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        let error = error_of(&altered);
        assert!(bit < (HEADER + 4 * TABLE_ENTRY) * 8 || error.starts_with("altered"), "{bit}: {error}");
    }
}

#[test]
fn faults_of_the_header_are_told_apart() {
    let sound = compiled(&sample());
    let with = |at: usize, octets: &[u8]| {
        let mut altered = sound.clone();
        altered[at..at + octets.len()].copy_from_slice(octets);
        seal(&mut altered);
        error_of(&altered)
    };
    assert_eq!(with(0, b"; "), "not a compiled zone");
    assert!(
        with(8, &[2]).starts_with("compiled in version 2 of the format, and this program knows version 1")
    );
    assert!(with(12, &[1, 2, 3, 4]).starts_with("compiled in another byte order"));
    assert!(with(12, &[9]).starts_with("malformed header"));
    assert!(with(24, &[65]).starts_with("malformed number of sections"));
    assert!(with(24, &[3]).starts_with("malformed table of sections"));
    assert!(with(28, &[1]).starts_with("malformed flags"));
    assert!(with(32, &[3]).starts_with("malformed verification"));
    assert!(with(40, &[9]).starts_with("malformed serial"));
    assert!(with(48, &[64]).starts_with("malformed apex"));
    assert!(with(48, b"\x07exemple").starts_with("malformed contents at name 0"));
    assert!(with(HEADER, &[5]).starts_with("compiled with a section of kind 5"));
    assert!(with(HEADER, &[2]).starts_with("malformed table of sections"));
    assert!(with(HEADER + 8, &[1]).starts_with("malformed table of sections"));
    assert!(with(HEADER + 16, &[0; 8]).starts_with("malformed table of sections"));
    assert!(with(HEADER + 16, &[255; 8]).starts_with("malformed table of sections"));
}

#[test]
fn sections_of_the_future_are_passed_over() {
    let sound = compiled(&sample());
    // Another entry in the table moves the sections by as much as the alignment makes of it: nothing here.
    let table = HEADER + 4 * TABLE_ENTRY;
    assert_eq!(aligned(table as u64), aligned((table + TABLE_ENTRY) as u64));
    let mut octets = sound[..sound.len() - DIGEST].to_vec();
    let end = octets.len() as u64;
    let (offset, length) = (aligned(end), 100u64);
    octets[24] = 5;
    octets[table..table + 4].copy_from_slice(&(OPTIONAL | 7).to_le_bytes());
    octets[table + 8..table + 16].copy_from_slice(&offset.to_le_bytes());
    octets[table + 16..table + 24].copy_from_slice(&length.to_le_bytes());
    octets.resize((offset + length) as usize + DIGEST, 0);
    let total = octets.len() as u64;
    octets[16..24].copy_from_slice(&total.to_le_bytes());
    seal(&mut octets);
    assert_eq!(written(&read(&octets).unwrap().0), written(&sample()));
}

#[test]
fn every_flaw_of_the_contents_is_found() {
    type Change = fn(&mut Contents);
    let cases: [(Flaw, Change); 20] = [
        (Flaw::Offset, |zone| zone.nodes[0].name = 1),
        (Flaw::Offset, |zone| zone.nodes[2].name = u32::MAX),
        (Flaw::Name, |zone| zone.nodes[2].name -= 1),
        (Flaw::Name, |zone| zone.names.push(0)),
        (Flaw::NameOrder, |zone| zone.names[1] = b'x'),
        (Flaw::NameOrder, |zone| zone.names[zone.nodes[1].name as usize + 1] = b'z'),
        (Flaw::NameOrder, |zone| *zone.names.iter_mut().rev().nth(1).unwrap() = b'f'),
        (Flaw::Offset, |zone| zone.nodes[1].first_rrset = 0),
        (Flaw::Offset, |zone| zone.nodes[1].first_rrset = u32::MAX),
        (Flaw::RrsetOrder, |zone| (zone.rrsets[0].rtype, zone.rrsets[0].covered) = (Rtype::PTR, Rtype::PTR)),
        (Flaw::RrsetOrder, |zone| zone.rrsets[1].covered = Rtype::A),
        (Flaw::Rrset, |zone| zone.rrsets[0].rtype = Rtype::A),
        (Flaw::Rrset, |zone| zone.rrsets[0].ttl = 1 << 31),
        (Flaw::Rrset, |zone| zone.rrsets[0].count = 0),
        (Flaw::Offset, |zone| zone.rrsets[0].count = 2),
        (Flaw::Offset, |zone| zone.rrsets[1].start += 1),
        (Flaw::Offset, |zone| zone.rrsets.last_mut().unwrap().start = u64::MAX),
        (Flaw::Offset, |zone| zone.rdata.push(0)),
        (Flaw::Rdata, |zone| zone.rdata[2] = 64),
        (Flaw::Rrset, |zone| {
            let signature = zone.rrsets.iter_mut().find(|rrset| rrset.rtype == Rtype::RRSIG).unwrap();
            signature.covered = Rtype::NS;
        }),
    ];
    for (number, (flaw, change)) in cases.into_iter().enumerate() {
        let error = error_of(&flawed(change));
        // An offset that is wrong may first be seen as what it makes of the names.
        let accepted = error.contains(&flaw.to_string());
        assert!(accepted && error.starts_with("malformed contents at name "), "{number}: {error}");
    }
}

#[test]
fn records_out_of_order_and_what_is_no_zone_are_found() {
    let twice = flawed(|zone| {
        let is_www = |rrset: &&crate::contents::RrsetEntry| rrset.count == 2 && rrset.rtype == Rtype::A;
        let www = zone.rrsets.iter().find(is_www).unwrap().start as usize;
        zone.rdata[www + 11] = 7;
    });
    assert!(error_of(&twice).contains("records of an RRset are out of order"));
    let cname = flawed(|zone| {
        let soa = zone.rrsets.iter_mut().find(|rrset| rrset.rtype == Rtype::SOA).unwrap();
        (soa.rtype, soa.covered) = (Rtype(7), Rtype(7));
    });
    assert!(error_of(&cname).contains("malformed contents at name 0"));
    let beside = zone("a CNAME b\na NSEC b CNAME NSEC\n");
    let beside = {
        let mut contents = beside;
        let nsec = contents.rrsets.iter_mut().find(|rrset| rrset.rtype == Rtype::NSEC).unwrap();
        (nsec.rtype, nsec.covered) = (Rtype(65283), Rtype(65283));
        compiled(&contents)
    };
    assert!(error_of(&beside).contains("a.example. has a CNAME record and TYPE65283 too"));
    let empty = Contents { apex: Name::root(), names: vec![], rdata: vec![], nodes: vec![], rrsets: vec![] };
    assert!(error_of(&compiled(&empty)).contains("no SOA record"));
}

#[test]
fn text_and_compiled_zones_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (text, image) = (folder.path().join("text"), folder.path().join("image"));
    std::fs::write(&text, written(&sample())).unwrap();
    std::fs::write(&image, compiled(&sample())).unwrap();
    let (from_text, from_image) = (load(&text, None).unwrap(), load(&image, None).unwrap());
    assert_eq!(from_text.verification, None);
    assert_eq!(from_image.verification, Some(Verification::Full { at: 7 }));
    assert_eq!(written(&from_text.contents), written(&from_image.contents));
    let other: Name = "other.".parse().unwrap();
    let error = load(&image, Some(&other)).unwrap_err().to_string();
    assert!(
        error
            .ends_with("compiled of the zone example., but the origin is other.: give the right origin (-o)")
    );
    std::fs::write(&image, &compiled(&sample())[..500]).unwrap();
    assert!(matches!(
        load(&image, None),
        Err(LoadError::Compiled { source: CompiledError::Truncated { .. }, .. })
    ));
    std::fs::write(&image, b"").unwrap();
    assert!(matches!(load(&image, None), Err(LoadError::Text(_))));
    assert!(load(Path::new("/nonexistent/zone"), None).unwrap_err().to_string().contains("cannot be read"));
    assert!(load(folder.path(), None).unwrap_err().to_string().contains("cannot be read"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, rng_seed: proptest::test_runner::RngSeed::Fixed(11), ..ProptestConfig::default() })]

    #[test]
    fn compiled_zones_are_read_back_octet_by_octet(zone in zones()) {
        let octets = compiled(&zone);
        let (again, _) = read(&octets).unwrap();
        prop_assert_eq!(written(&again), written(&zone));
        prop_assert_eq!(compiled(&again), octets);
    }

    /// Octets altered under a digest that fits are refused, or are another zone that can be used.
    #[test]
    fn nothing_that_is_taken_goes_astray(
        zone in zones(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut octets = compiled(&zone);
        let end = octets.len() - DIGEST;
        for (place, value) in changes {
            octets[MAGIC_OCTETS + place.index(end - MAGIC_OCTETS)] = value;
        }
        seal(&mut octets);
        if let Ok((taken, _)) = read(&octets) {
            let text = written(&taken);
            let again = crate::read::read_text(text.as_bytes(), Path::new("again"), Some(taken.apex())).unwrap();
            prop_assert!(again.warnings.iter().all(|warning| *warning == crate::Warning::NoNs));
            prop_assert_eq!(written(&again.contents), text);
            let _ = Image::compile(&taken);
        }
    }
}
