//! Tests of image files: a written image gives the same answers as the image in memory; a damaged
//! file is rejected.

use super::file::{self, PAGE, contents_range};
use super::{CompileError, Image, ImageFile, ImageFileError, Lookup, OwnerForm, Position};
use crate::read::read_text;
use crate::{CompiledError, Contents, NodesBuilder, Verification, ZoneFault};
use nonesuch_proto::{Name, NameRef, Rtype};
use std::path::Path;

/// Key tag of the NSEC5KEY record.
const VRF_TAG: u16 = 0x0704;
const FULL: Verification = Verification::Full { at: 1_700_000_000 };

/// Returns a zone with everything that an image can contain: a referral with glue, a chain of each
/// kind, signatures, a large RRset.
fn contents() -> Contents {
    let signature = |covered: &str, labels: u8, times: &str| {
        format!("RRSIG {covered} 13 {labels} 60 {times} 4711 example. AAECAwQFBgc=\n")
    };
    let hash = "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom";
    let vrf = "0".repeat(52);
    let many: String = (0..300).map(|n| format!("many A 198.18.{}.{}\n", n / 200, n % 200)).collect();
    let mut text = String::from(
        "$ORIGIN example.\n$TTL 60\n@ SOA ns hostmaster 7 1 1 1 30\n@ NS ns\n@ DNSKEY 257 3 13 AAAA\n\
         @ NSEC3PARAM 1 0 0 AB\n@ TYPE65281 \\# 5 0101020304\nns A 192.0.2.1\na MX 1 mail.a\na MX 2 b.a\n*.w TXT x\n\
         cut NS ns.cut\ncut NS ns\ncut NS ns.other.\nns.cut A 192.0.2.7\nns.cut AAAA 2001:db8::7\n\
         cut DS 1 13 2 00000000000000000000000000000000000000000000000000000000000000ff\nd DNAME other.\nx.d A 192.0.2.9\n\
         @ NSEC a SOA\na NSEC cut MX\n",
    );
    text.push_str(&many);
    text.push_str(&format!("@ {}", signature("SOA", 1, "20300101000000 20200101000000")));
    text.push_str(&format!("ns {}", signature("A", 2, "20290101000000 20210101000000")));
    text.push_str(&format!("a {}", signature("NSEC", 2, "20310101000000 20200101000000")));
    text.push_str(&format!(
        "{hash} NSEC3 1 0 0 AB {hash} A\n{hash} {}",
        signature("NSEC3", 2, "20300101000000 20200101000000")
    ));
    text.push_str(&format!("{vrf} TYPE65280 \\# 39 {VRF_TAG:04x}0020{}000140\n", "11".repeat(32)));
    read_text(text.as_bytes(), Path::new("zone"), None).unwrap_or_else(|error| panic!("{error}")).contents
}

fn written(contents: &Contents) -> (Image, Vec<u8>) {
    let image = Image::compile(contents).unwrap();
    let mut octets = Vec::new();
    file::write(&image, FULL, contents, FULL, &mut octets).unwrap();
    (image, octets)
}

/// Returns the results of all kinds of lookups in an image.
fn lookup_results(image: &Image) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let names = ["@", "ns", "a", "w", "x.w", "*.w", "cut", "ns.cut", "d", "x.d", "many", "none", "zzz"];
    let apex = image.apex().to_name();
    for text in names {
        let Ok(name) = Name::from_text(text.as_bytes(), Some(apex.view())) else { continue };
        let (Lookup::Exact(node) | Lookup::Encloser(node)) = image.find(name.view());
        let templates = node.templates().chain(node.glue().map(|glue| glue.addresses)).chain(node.nsec());
        for template in templates.chain(image.nsec_at_or_before(name.view())) {
            found.extend(template.expand().into_iter().map(|record| record.rdata));
            for owner in [OwnerForm::AsRendered, OwnerForm::At(0xc00c), OwnerForm::WrittenOut] {
                let mut out = vec![0; 40];
                let position = Position { question_octets: name.wire().len(), owner };
                template.append(position, true, usize::MAX, &mut out);
                template.append_signatures(position, usize::MAX, &mut out);
                found.push(out);
            }
        }
    }
    let mut chain = vec![Some(image.negative_soa())];
    for octet in [0, 0x06, 0x40, 0xff] {
        let (short, long) = ([octet; 20], [octet; 32]);
        chain.extend([image.nsec3_matching(&short), image.nsec3_covering(&short)]);
        chain.extend([image.nsec5_matching(&long), image.nsec5_covering(&long)]);
    }
    found.extend(
        chain.into_iter().flatten().flat_map(|template| template.expand()).map(|record| record.rdata),
    );
    found
}

#[test]
fn an_image_from_a_file_equals_the_image_in_memory() {
    let contents = contents();
    let (image, octets) = written(&contents);
    let opened = ImageFile::open(octets.clone()).unwrap();
    assert_eq!(opened.image().summary, image.summary);
    assert_eq!(opened.image().sections.all(), image.sections.all());
    assert_eq!(lookup_results(opened.image()), lookup_results(&image));
    assert_eq!(opened.record().verification, FULL);
    let compiled = &octets[contents_range(&octets[..PAGE]).unwrap().start as usize..];
    assert_eq!(opened.record().contents, *blake3::hash(compiled).as_bytes());
    let (again, _) = crate::compiled::read(compiled).unwrap();
    assert_eq!(Image::compile(&again).unwrap().sections.all(), image.sections.all());
}

#[test]
fn chains_and_periods_are_those_of_the_zone() {
    let (image, octets) = written(&contents());
    assert!(image.is_signed());
    assert_eq!(image.nsec3_parameters(), Some((&[0xab][..], 0)));
    let hash = data_encoding::BASE32HEX_NOPAD.decode(b"0P9MHAVEQVM6T7VBL5LOP2U3T2RP3TOM").unwrap();
    let hash: [u8; 20] = hash.try_into().unwrap();
    let matching = image.nsec3_matching(&hash).unwrap();
    assert_eq!((matching.rtype(), matching.signature_count()), (Rtype::NSEC3, 1));
    assert!(image.nsec3_covering(&hash).is_none() && image.nsec3_matching(&[7; 20]).is_none());
    assert!(image.nsec3_covering(&[7; 20]).unwrap().is_same(matching));
    assert_eq!(image.nsec5_key(), Some((VRF_TAG, 1)));
    assert_eq!(image.nsec5_matching(&[0; 32]).unwrap().rtype(), Rtype::NSEC5);
    assert!(image.nsec5_covering(&[9; 32]).is_some() && image.nsec5_covering(&[0; 32]).is_none());
    let period = ImageFile::open(octets).unwrap().period().unwrap();
    // The period has the latest inception and the earliest expiration of all signatures.
    assert_eq!((period.inception, period.expiration), (1_609_459_200, 1_861_920_000));
}

#[test]
fn each_signature_is_counted_once() {
    let contents = contents();
    // Negative answers also contain the signature of the SOA RRset, and referrals that of a
    // server's address.
    let signatures =
        contents.nodes().flat_map(|node| node.rrset(Rtype::RRSIG)).map(|rrset| rrset.count()).sum::<usize>();
    assert_eq!((signatures, written(&contents).0.signatures()), (4, 4));
}

#[test]
fn the_lookup_of_an_occluded_name_finds_the_cut_or_dname() {
    let (image, _) = written(&contents());
    let apex = image.apex();
    let below = |text: &str| Name::from_text(text.as_bytes(), Some(apex)).unwrap();
    for (name, above) in [("ns.cut", "cut"), ("x.ns.cut", "cut"), ("x.d", "d")] {
        let found = image.find(below(name).view());
        assert!(
            matches!(found, Lookup::Encloser(node) if node.name() == below(above).view()),
            "{name}: {above} encloses it"
        );
    }
}

#[test]
fn every_damaged_octet_is_found() {
    let (_, octets) = written(&contents());
    let length = contents_range(&octets[..PAGE]).unwrap().start as usize;
    for at in (0..length).step_by(64).chain([8, 12, 16, 20, PAGE - 1, length - 1]) {
        let mut damaged = octets.clone();
        damaged[at] ^= 0x11;
        let error = ImageFile::open(damaged).unwrap_err();
        match at {
            0 => assert_eq!(error, ImageFileError::NotImage),
            8 => assert!(matches!(error, ImageFileError::Version(_))),
            12 => assert!(matches!(error, ImageFileError::Malformed(_))),
            _ => assert_eq!(error, ImageFileError::Altered, "octet {at}"),
        }
    }
    for end in [0, 7, 8, PAGE - 1, PAGE, length - 1] {
        let error = ImageFile::open(octets[..end].to_vec()).unwrap_err();
        assert!(
            matches!(error, ImageFileError::NotImage | ImageFileError::Truncated { .. }),
            "{end}: {error}"
        );
    }
}

#[test]
fn a_verification_with_other_algorithm_tables_is_not_trusted() {
    let (_, mut octets) = written(&contents());
    let before = ImageFile::open(octets.clone()).unwrap().record().verification;
    let Verification::Full { at } = before else { panic!("{before:?}") };
    let tables = nonesuch_crypto::tables_digest();
    let offset = octets[..PAGE].windows(tables.len()).position(|found| found == tables).unwrap();
    for digest in [0, 7] {
        octets[offset..offset + tables.len()].fill(digest);
        recompute_digests(&mut octets);
        let file = ImageFile::open(octets.clone()).unwrap();
        assert_eq!(file.record().verification, Verification::OtherTables { at });
    }
}

#[test]
fn another_version_or_byte_order_is_rejected() {
    let (_, octets) = written(&contents());
    let error = |offset: std::ops::Range<usize>, number: u32| {
        let mut octets = octets.clone();
        octets[offset].copy_from_slice(&number.to_le_bytes());
        ImageFile::open(octets).unwrap_err()
    };
    assert_eq!(error(8..12, 9), ImageFileError::Version(9));
    assert_eq!(error(12..16, 0x0403_0201), ImageFileError::ByteOrder);
}

/// The server can read the contents after an image of an older version, and compile the image
/// again.
#[test]
fn the_contents_after_an_image_of_version_1_are_found() {
    let (_, mut octets) = written(&contents());
    let range = contents_range(&octets[..PAGE]).unwrap();
    octets[8..12].copy_from_slice(&1u32.to_le_bytes());
    recompute_digests(&mut octets);
    assert_eq!(contents_range(&octets[..PAGE]).unwrap(), range);
    assert_eq!(ImageFile::open(octets.clone()).unwrap_err(), ImageFileError::Version(1));
    for version in [0u32, 3] {
        octets[8..12].copy_from_slice(&version.to_le_bytes());
        recompute_digests(&mut octets);
        assert_eq!(contents_range(&octets[..PAGE]).unwrap_err(), ImageFileError::Version(version));
    }
}

/// Recomputes the digests.
pub(super) fn recompute_digests(octets: &mut [u8]) {
    let length = u64::from_le_bytes(octets[16..24].try_into().unwrap()).min(octets.len() as u64) as usize;
    if length >= PAGE {
        let digest = *blake3::hash(&octets[PAGE..length]).as_bytes();
        octets[112..144].copy_from_slice(&digest);
    }
    let digest = *blake3::hash(&octets[..PAGE - 32]).as_bytes();
    octets[PAGE - 32..PAGE].copy_from_slice(&digest);
}

#[test]
fn altered_octets_with_correct_digests_cause_no_panic() {
    let (_, octets) = written(&contents());
    let length = contents_range(&octets[..PAGE]).unwrap().start as usize;
    let (mut accepted, mut rejected) = (0, 0);
    // Alters octets of all fields of the first page, and some of the other octets that are not
    // padding.
    let used = (PAGE..length).filter(|at| octets[*at] != 0).step_by(5);
    for (turn, at) in (16..830).step_by(3).chain(used).enumerate() {
        let mut altered = octets[..length].to_vec();
        altered[at] ^= [1, 0x80, 0xff][turn % 3];
        recompute_digests(&mut altered);
        match ImageFile::open(altered) {
            Ok(file) => {
                accepted += 1;
                lookup_results(file.image());
            }
            Err(_) => rejected += 1,
        }
    }
    assert!(accepted > 0 && rejected > 0, "{accepted} accepted, {rejected} rejected");
}

#[test]
fn an_image_with_an_upper_case_name_is_rejected() {
    let (_, mut octets) = written(&contents());
    octets.truncate(contents_range(&octets[..PAGE]).unwrap().start as usize);
    let name = b"\x04many\x07example\0";
    let at = octets.windows(name.len()).position(|window| window == name).expect("the name of a block");
    octets[at + 1] = b'M';
    recompute_digests(&mut octets);
    assert!(matches!(ImageFile::open(octets), Err(ImageFileError::Malformed("block"))));
}

#[test]
fn names_of_every_length_are_found() {
    let mut label = String::new();
    let mut text = String::from("$ORIGIN example.\n@ 60 SOA . . 1 1 1 1 1\n");
    for length in 1..=63 {
        label.push(char::from(b'a' + length % 26));
        text.push_str(&format!("{label} 60 TXT x\n{label}.{label} 60 TXT x\n"));
    }
    let contents = read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
    let image = Image::compile(&contents).unwrap();
    let mut count = 0;
    for node in contents.nodes() {
        let name = node.name().to_canonical();
        assert!(
            image.find_exact(name.view()).is_some_and(|found| found.name().wire() == name.wire()),
            "{name}"
        );
        count += 1;
    }
    assert_eq!(count, 127);
    assert!(image.find_exact(NameRef::ROOT).is_none());
}

/// A negative answer without a proof is better than one with a record that covers another range.
#[test]
fn a_name_without_nsec_record_is_not_covered_by_its_predecessor() {
    let text = "$ORIGIN example.\n$TTL 60\n@ SOA ns h 7 1 1 1 30\n@ NS ns.other.\n@ DNSKEY 257 3 13 AAAA\n\
                a TXT x\nb TXT x\nc TXT x\n@ NSEC a SOA\na NSEC b TXT\nc NSEC @ TXT\n";
    let image =
        Image::compile(&read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents).unwrap();
    let owner = |name: &str| {
        let name: Name = name.parse().unwrap();
        image.nsec_at_or_before(name.view()).map(|template| template.expand()[0].owner.clone())
    };
    assert_eq!(owner("aa.example."), owner("a.example."));
    assert!(owner("cc.example.").is_some() && owner("c.example.") == owner("cc.example."));
    assert_eq!([owner("b.example."), owner("bb.example.")], [None, None]);
}

/// RFC 5155 §4.1.2, §7.3, §11: NSEC3PARAM records with flags or with an unknown hash algorithm are
/// ignored.
#[test]
fn the_nsec3param_record_selects_the_chain() {
    let hash = "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom";
    for (parameters, expected) in [
        ("", None),
        ("@ NSEC3PARAM 1 0 0 AB\n", Some(0)),
        ("@ NSEC3PARAM 1 1 0 AB\n", None),
        ("@ NSEC3PARAM 2 0 0 AB\n", None),
        ("@ NSEC3PARAM 1 0 0 AB\n@ NSEC3PARAM 2 0 0 AB\n@ NSEC3PARAM 1 1 0 CD\n", Some(0)),
        // The zone has no NSEC3 records with these parameters.
        ("@ NSEC3PARAM 1 0 5 AB\n", None),
        // Of two NSEC3PARAM records, the one with NSEC3 records is used.
        ("@ NSEC3PARAM 1 0 0 AA\n@ NSEC3PARAM 1 0 0 AB\n", Some(0)),
        ("@ NSEC3PARAM 1 0 0 AB\n@ NSEC3PARAM 1 0 5 AB\n", Some(0)),
    ] {
        let text = format!(
            "$ORIGIN example.\n$TTL 60\n@ SOA ns h 7 1 1 1 30\n@ NS ns.other.\n@ DNSKEY 257 3 13 AAAA\n\
             {parameters}{hash} NSEC3 1 0 0 AB {hash} A\n@ NSEC @ SOA\n"
        );
        let image =
            Image::compile(&read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents).unwrap();
        assert_eq!(image.nsec3_parameters().map(|(_, iterations)| iterations), expected, "{parameters}");
        assert!(image.is_signed());
    }
}

#[test]
fn a_chain_with_too_many_iterations_is_not_used() {
    let hash = "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom";
    for (iterations, expected) in [(500, Some(500)), (501, None), (65535, None)] {
        let text = format!(
            "$ORIGIN example.\n$TTL 60\n@ SOA ns h 7 1 1 1 30\n@ NS ns.other.\n@ DNSKEY 257 3 13 AAAA\n\
             @ NSEC3PARAM 1 0 {iterations} -\n{hash} NSEC3 1 0 {iterations} - {hash} A\n"
        );
        let image =
            Image::compile(&read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents).unwrap();
        assert_eq!(image.nsec3_parameters().map(|(_, iterations)| iterations), expected, "{iterations}");
        assert!(image.is_signed());
    }
}

/// A response omits addresses that do not fit, so such addresses do not make an image malformed.
#[test]
fn glue_may_exceed_the_size_of_a_message() {
    let apex: Name = "example.".parse().unwrap();
    let text = "$ORIGIN example.\n$TTL 60\n@ SOA . . 1 1 1 1 1\ncut NS ns.cut\n";
    let small = read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
    let host: Name = "ns.cut.example.".parse().unwrap();
    let mut builder = NodesBuilder::default();
    builder.push_nodes(&small, 0..2);
    builder.begin_node(host.view());
    builder.begin_rrset(Rtype::A, Rtype::A, 60);
    for number in 0..5000u16 {
        builder.push_record(|out| out.extend_from_slice(&[&[10, 0][..], &number.to_be_bytes()].concat()));
    }
    let image = Image::compile_any(&Contents::from_nodes(&apex, builder)).unwrap();
    let mut octets = Vec::new();
    file::write(&image, FULL, &small, FULL, &mut octets).unwrap();
    let opened = ImageFile::open(octets).unwrap();
    let (Lookup::Exact(cut) | Lookup::Encloser(cut)) = opened.image().find(host.view());
    assert_eq!(cut.glue().map(|glue| glue.addresses.counts().0).collect::<Vec<_>>(), [5000]);
}

/// The size limit also applies to contents that are built record by record, and to files that were
/// written before the limit existed.
#[test]
fn an_rrset_larger_than_a_message_is_rejected() {
    let apex: Name = "example.".parse().unwrap();
    let small = read_text(b"example. 60 SOA . . 1 1 1 1 1\n", Path::new("zone"), None).unwrap().contents;
    let mut builder = NodesBuilder::default();
    builder.push_nodes(&small, 0..1);
    builder.begin_rrset(Rtype::TXT, Rtype::TXT, 60);
    for number in 0..300u16 {
        builder.push_record(|out| {
            out.push(255);
            out.extend_from_slice(&number.to_be_bytes());
            out.resize(out.len() + 253, b'x');
        });
    }
    let large = Contents::from_nodes(&apex, builder);
    let error = Image::compile(&large).unwrap_err();
    let CompileError::Zone(ZoneFault::RrsetTooLarge { owner, rtype: Rtype::TXT, is_signed: false, .. }) =
        &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(*owner, apex);
    let image = Image::compile_any(&large).unwrap();
    let mut octets = Vec::new();
    file::write(&image, FULL, &small, FULL, &mut octets).unwrap();
    assert!(matches!(ImageFile::open(octets).unwrap_err(), ImageFileError::Malformed(_)));
    let mut compiled = Vec::new();
    crate::compiled::write(&large, FULL, &mut compiled).unwrap();
    assert!(matches!(crate::compiled::read(&compiled).unwrap_err(), CompiledError::Zone(_)));
}
