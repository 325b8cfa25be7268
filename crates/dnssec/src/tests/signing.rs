//! The cases of signing, one by one. Every zone is verified after signing.

use super::*;
use crate::keys::{KeyTimes, ds_rdata};
use crate::sign::{PreviousZone, SerialPolicy, SignError, SignProgress, SignWarning, resign_changes};
use nonesuch_proto::bitmap;
use nonesuch_zone::ChangeSet;

const DS: &str = "DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000";

fn nsec(contents: &Contents, owner: &str) -> String {
    rdatas(contents, owner, Rtype::NSEC).join(" / ")
}

#[test]
fn empty_non_terminal() {
    let contents = zone("x.y.ent A 192.0.2.1");
    let by_nsec = signed(&contents, Mechanism::Nsec);
    assert_eq!(nsec(&by_nsec, "example."), "x.y.ent.example. NS SOA RRSIG NSEC DNSKEY");
    assert!(!has_node(&by_nsec, "ent.example."));
    for mechanism in [Mechanism::Nsec3, Mechanism::Nsec3OptOut] {
        let hashed = signed(&contents, mechanism);
        assert_eq!(nsec3_types(&hashed, "ent.example.").as_deref(), Some(""));
        assert_eq!(nsec3_types(&hashed, "y.ent.example.").as_deref(), Some(""));
        assert_eq!(nsec3_types(&hashed, "x.y.ent.example.").as_deref(), Some("A RRSIG"));
    }
}

#[test]
fn empty_non_terminals_have_one_nsec3_record_each() {
    let contents = zone(
        "a.ent A 192.0.2.1\nb.ent A 192.0.2.1\nb.c.ent A 192.0.2.1\nd.c.ent A 192.0.2.1\nx.b.ent A 192.0.2.1",
    );
    let hashed = signed(&contents, Mechanism::Nsec3);
    let count = hashed.nodes().filter(|node| node.has(Rtype::NSEC3)).count();
    // The apex, five names, and the two empty non-terminals ent and c.ent.
    assert_eq!(count, 1 + 5 + 2);
}

#[test]
fn wildcard() {
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&zone("*.w TXT \"any\""), mechanism);
        let node = node(&signed, "*.w.example.");
        let rdata = node.signatures(Rtype::TXT).unwrap().rdatas().next().unwrap();
        // RFC 4034 §3.1.3: the asterisk label is not counted.
        assert_eq!(Rrsig::parse(rdata).unwrap().labels, 2);
    }
}

#[test]
fn wildcard_as_empty_non_terminal() {
    let contents = zone("a.*.w A 192.0.2.1");
    assert_eq!(
        nsec(&signed(&contents, Mechanism::Nsec), "example."),
        "a.*.w.example. NS SOA RRSIG NSEC DNSKEY"
    );
    let hashed = signed(&contents, Mechanism::Nsec3);
    assert_eq!(nsec3_types(&hashed, "*.w.example.").as_deref(), Some(""));
    assert_eq!(nsec3_types(&hashed, "w.example.").as_deref(), Some(""));
}

#[test]
fn wildcard_below_wildcard() {
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&zone("*.w A 192.0.2.1\n*.*.w A 192.0.2.2"), mechanism);
        let rdata = node(&signed, "*.*.w.example.").signatures(Rtype::A).unwrap().rdatas().next().unwrap();
        assert_eq!(Rrsig::parse(rdata).unwrap().labels, 3);
    }
}

#[test]
fn secure_delegation() {
    let contents = zone(&format!("d NS ns.d\nd {DS}\nd A 192.0.2.1\nns.d A 192.0.2.1"));
    let by_nsec = signed(&contents, Mechanism::Nsec);
    assert_eq!(nsec(&by_nsec, "d.example."), "example. NS DS RRSIG NSEC");
    assert_eq!(signed_types(&by_nsec, "d.example."), [Rtype::DS, Rtype::NSEC]);
    for mechanism in [Mechanism::Nsec3, Mechanism::Nsec3OptOut] {
        let hashed = signed(&contents, mechanism);
        assert_eq!(nsec3_types(&hashed, "d.example.").as_deref(), Some("NS DS RRSIG"));
        assert_eq!(signed_types(&hashed, "d.example."), [Rtype::DS]);
    }
}

#[test]
fn insecure_delegation() {
    let contents = zone("d NS ns.elsewhere.test.");
    let by_nsec = signed(&contents, Mechanism::Nsec);
    assert_eq!(nsec(&by_nsec, "d.example."), "example. NS RRSIG NSEC");
    assert_eq!(signed_types(&by_nsec, "d.example."), [Rtype::NSEC]);
    let hashed = signed(&contents, Mechanism::Nsec3);
    // Nothing is signed at this name: the bit map has no RRSIG bit (RFC 5155 §7.1).
    assert_eq!(nsec3_types(&hashed, "d.example.").as_deref(), Some("NS"));
    assert_eq!(signed_types(&hashed, "d.example."), []);
}

#[test]
fn opted_out_delegation() {
    let contents = zone(&format!(
        "d NS ns.elsewhere.test.\ne.ent NS ns.elsewhere.test.\ns.both {DS}\ns.both NS ns.elsewhere.test.\ni.both NS ns.elsewhere.test."
    ));
    let hashed = signed(&contents, Mechanism::Nsec3OptOut);
    assert_eq!(nsec3_types(&hashed, "d.example."), None);
    assert_eq!(nsec3_types(&hashed, "e.ent.example."), None);
    assert_eq!(nsec3_types(&hashed, "i.both.example."), None);
    // An empty non-terminal that exists only for insecure delegations is omitted with them. Another
    // empty non-terminal stays.
    assert_eq!(nsec3_types(&hashed, "ent.example."), None);
    assert_eq!(nsec3_types(&hashed, "both.example.").as_deref(), Some(""));
    for node in hashed.nodes().filter(|node| node.has(Rtype::NSEC3)) {
        let flags = node.rrset(Rtype::NSEC3).unwrap().rdatas().next().unwrap()[1];
        assert_eq!(flags, 1);
    }
    assert_eq!(rdatas(&hashed, "example.", Rtype::NSEC3PARAM), ["1 0 0 -"]);
}

#[test]
fn glue_below_the_cut_is_not_signed() {
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&zone("d NS ns.d\nns.d A 192.0.2.1\nns.d AAAA 2001:db8::1"), mechanism);
        assert_eq!(signed_types(&signed, "ns.d.example."), []);
        assert_eq!(nsec3_types(&signed, "ns.d.example."), None);
    }
}

#[test]
fn glue_at_the_zone_cut_is_neither_signed_nor_in_the_bit_map() {
    let by_nsec = signed(&zone("d NS d\nd A 192.0.2.1"), Mechanism::Nsec);
    assert_eq!(nsec(&by_nsec, "d.example."), "example. NS RRSIG NSEC");
    assert_eq!(signed_types(&by_nsec, "d.example."), [Rtype::NSEC]);
}

#[test]
fn sibling_glue_is_not_signed() {
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&zone("d NS ns.e\ne NS ns.e\nns.e A 192.0.2.1"), mechanism);
        assert_eq!(signed_types(&signed, "ns.e.example."), []);
    }
}

#[test]
fn an_address_that_is_not_below_a_zone_cut_is_signed() {
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&zone("d NS ns.hosts\nns.hosts A 192.0.2.1"), mechanism);
        assert!(signed_types(&signed, "ns.hosts.example.").contains(&Rtype::A));
    }
}

#[test]
fn occluded_data_below_a_cut() {
    let contents = zone(
        "d NS ns.elsewhere.test.\nx.d TXT \"occluded\"\ny.x.d NS ns.elsewhere.test.\ny.x.d DS 1 13 2 00\n*.d MX 1 x",
    );
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&contents, mechanism);
        for owner in ["x.d.example.", "y.x.d.example.", "*.d.example."] {
            assert_eq!(signed_types(&signed, owner), [], "{owner}");
            assert_eq!(nsec3_types(&signed, owner), None);
        }
    }
    assert_eq!(nsec(&signed(&contents, Mechanism::Nsec), "d.example."), "example. NS RRSIG NSEC");
}

#[test]
fn occluded_data_below_a_dname() {
    let contents =
        zone("d DNAME target.test.\nd TXT \"not occluded\"\nx.d TXT \"occluded\"\nx.y.d A 192.0.2.1");
    let by_nsec = signed(&contents, Mechanism::Nsec);
    assert_eq!(nsec(&by_nsec, "d.example."), "example. TXT DNAME RRSIG NSEC");
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&contents, mechanism);
        assert!(signed_types(&signed, "d.example.").contains(&Rtype::DNAME));
        assert_eq!(signed_types(&signed, "x.d.example."), []);
        assert_eq!(nsec3_types(&signed, "x.d.example."), None);
        assert_eq!(nsec3_types(&signed, "y.d.example."), None);
    }
}

#[test]
fn a_dname_at_the_apex_occludes_all_other_names() {
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&zone("@ DNAME target.test.\nx A 192.0.2.1"), mechanism);
        assert_eq!(signed_types(&signed, "x.example."), []);
    }
}

#[test]
fn apex_only() {
    let by_nsec = signed(&zone(""), Mechanism::Nsec);
    assert_eq!(nsec(&by_nsec, "example."), "example. NS SOA RRSIG NSEC DNSKEY");
    for mechanism in [Mechanism::Nsec3, Mechanism::Nsec3OptOut] {
        let contents = signed(&zone(""), mechanism);
        assert_eq!(contents.node_count(), 2);
        let own = hashed("example.");
        let next = rdatas(&contents, &own, Rtype::NSEC3)[0].split(' ').nth(4).unwrap().to_owned();
        assert!(own.starts_with(&next));
    }
}

#[test]
fn root_zone() {
    let text = ". 3600 SOA a.test. b.test. 1 2 3 4 900\n. 3600 NS a.test.\ntest. 3600 NS a.test.\na.test. 3600 A 192.0.2.1\norg. 3600 NS a.test.";
    let contents = read_zone(text, &Name::root());
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&contents, mechanism);
        assert_eq!(signed_types(&signed, "a.test."), []);
        let rdata = node(&signed, ".").signatures(Rtype::SOA).unwrap().rdatas().next().unwrap();
        let fields = Rrsig::parse(rdata).unwrap();
        assert_eq!((fields.labels, fields.signer.is_root()), (0, true));
    }
    assert_eq!(nsec(&signed(&contents, Mechanism::Nsec), "org."), "test. NS RRSIG NSEC");
}

#[test]
fn names_with_escaped_octets() {
    let contents = zone(
        "a\\.b A 192.0.2.1\n\\000 A 192.0.2.1\n\\000.\\255 A 192.0.2.1\nb\\032c A 192.0.2.1\n\\001\\000 MX 1 \\.\\\\",
    );
    for mechanism in NSEC_AND_NSEC3 {
        let again = read_zone(&text(&signed(&contents, mechanism)), contents.apex());
        assert_sound(&again);
    }
    let by_nsec = signed(&contents, Mechanism::Nsec);
    assert_eq!(nsec(&by_nsec, "\\000.example."), "\\001\\000.example. A RRSIG NSEC");
}

#[test]
fn upper_case_names_are_signed_in_lower_case() {
    let records = "Host.Sub MX 10 MAIL.Example.\nZ.sub A 192.0.2.1";
    let apex = name("eXaMple.");
    let text_of = |records: &str| {
        format!(
            "$ORIGIN eXaMple.\n$TTL 3600\n@ SOA NS1 Host 1 2 3 4 900\n@ NS Ns1\nNs1 A 192.0.2.1\n{records}"
        )
    };
    for mechanism in NSEC_AND_NSEC3 {
        let upper = signed(&read_zone(&text_of(records), &apex), mechanism);
        assert!(text(&upper).contains("Host.Sub.eXaMple."));
        // The signatures also verify for the same zone in lower case.
        let lower: String = text(&upper).lines().map(lower_case_of_names).collect();
        assert_sound(&read_zone(&lower, &apex));
    }
    let by_nsec = signed(&read_zone(&text_of(records), &apex), Mechanism::Nsec);
    assert_eq!(nsec(&by_nsec, "ns1.example."), "host.sub.example. A RRSIG NSEC");
    assert_eq!(nsec(&by_nsec, "Z.SUB.example."), "example. A RRSIG NSEC");
}

/// A line with owner and RDATA in lower case, except Base64 text.
fn lower_case_of_names(line: &str) -> String {
    let fields = Bench::fields(line);
    let keep = matches!(fields[3], "RRSIG" | "DNSKEY" | "NSEC" | "NSEC3");
    let rdata = if keep { fields[4].to_owned() } else { fields[4].to_lowercase() };
    format!("{}\t{}\tIN\t{}\t{rdata}\n", fields[0].to_lowercase(), fields[1], fields[3])
}

#[test]
fn labels_of_63_octets_and_names_of_255() {
    let label = "L".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}", "m".repeat(53));
    let contents = zone(&format!("{label} A 192.0.2.1\n{longest} A 192.0.2.2"));
    assert_eq!(node(&contents, &format!("{longest}.example.")).name().len(), 255);
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&contents, mechanism);
        assert!(signed_types(&signed, &format!("{longest}.example.")).contains(&Rtype::A));
    }
}

#[test]
fn a_hashed_owner_may_be_a_name_of_the_zone() {
    // As in RFC 5155, appendix A: a name that equals the hash of another one.
    let owner = hashed("ns1.example.");
    let contents = zone(&format!("ns1 A 192.0.2.1\n{owner} A 192.0.2.2\nsub.{owner} TXT \"below\""));
    for mechanism in [Mechanism::Nsec3, Mechanism::Nsec3OptOut] {
        let signed = signed(&contents, mechanism);
        assert_eq!(signed_types(&signed, &owner), [Rtype::A, Rtype::NSEC3]);
        assert_eq!(nsec3_types(&signed, &owner).as_deref(), Some("A RRSIG"));
    }
}

#[test]
fn an_apex_too_long_for_nsec3_is_an_error() {
    let apex = format!("{0}.{0}.{0}.{1}.", "x".repeat(63), "y".repeat(29));
    assert_eq!(name(&apex).view().len(), 223);
    let text = format!("{apex} 3600 SOA a.test. b.test. 1 2 3 4 900\n{apex} 3600 NS a.test.");
    let contents = read_zone(&text, &name(&apex));
    let error = sign(&contents, &ksk_and_zsk_of(&apex), &options(Mechanism::Nsec3)).unwrap_err();
    assert_eq!(error, SignError::ApexTooLong { zone: name(&apex) });
    assert_sound(sign(&contents, &ksk_and_zsk_of(&apex), &options(Mechanism::Nsec)).unwrap().contents());
    let shorter = apex[1..].to_owned();
    let contents = read_zone(&text.replace(&apex, &shorter), &name(&shorter));
    assert_sound(sign(&contents, &ksk_and_zsk_of(&shorter), &options(Mechanism::Nsec3)).unwrap().contents());
}

/// Every type of RFC 4034 §6.2 with names, except SOA, RRSIG and NSEC, which have separate tests.
const LOWERED: [&str; 21] = [
    "NS TARGET.Example.",
    "MD TARGET.Example.",
    "MF TARGET.Example.",
    "CNAME TARGET.Example.",
    "MB TARGET.Example.",
    "MG TARGET.Example.",
    "MR TARGET.Example.",
    "PTR TARGET.Example.",
    "MINFO TARGET.Example. OTHER.Example.",
    "MX 10 TARGET.Example.",
    "RP TARGET.Example. OTHER.Example.",
    "AFSDB 1 TARGET.Example.",
    "RT 1 TARGET.Example.",
    "SIG A 13 2 3600 20300101000000 20200101000000 7 TARGET.Example. aaaa",
    "PX 1 TARGET.Example. OTHER.Example.",
    "NXT TARGET.Example. A",
    "NAPTR 1 1 \"s\" \"x\" \"\" TARGET.Example.",
    "KX 1 TARGET.Example.",
    "SRV 1 2 3 TARGET.Example.",
    "DNAME TARGET.Example.",
    "A6 64 ::1 TARGET.Example.",
];

#[test]
fn canonical_form_of_every_type_of_rfc4034_section_6_2() {
    let lines = LOWERED.iter().enumerate().map(|(number, record)| match record.split_once(' ') {
        // NS records of the zone itself are only at the apex.
        Some(("NS", _)) => format!("@ {record}\n"),
        _ => format!("n{number} {record}\n"),
    });
    let contents = zone(&lines.collect::<String>());
    for mechanism in NSEC_AND_NSEC3 {
        let upper = signed(&contents, mechanism);
        assert!(text(&upper).contains("TARGET.Example."));
        let lower = text(&upper)
            .replace("TARGET.Example.", "target.example.")
            .replace("OTHER.Example.", "other.example.");
        let lower = read_zone(&lower, contents.apex());
        assert_sound(&lower);
        let report = report(&lower);
        assert!(report.rrsets >= LOWERED.len() as u64);
    }
}

#[test]
fn soa_and_rrsig_names_are_signed_in_lower_case() {
    let upper = signed(&zone("a A 192.0.2.1"), Mechanism::Nsec);
    let other = text(&upper).replace("hostmaster.example.", "HOSTMASTER.example.");
    assert_sound(&read_zone(&other, &name("example.")));
    // RRSIG: the signer's name is signed in lower case, regardless of its case in the record.
    let other = rewrite(&upper, |_, rtype, _, rdata| {
        if rtype == Rtype::RRSIG {
            rdata[19..26].make_ascii_uppercase();
        }
    });
    assert!(text(&other).contains(" EXAMPLE. "));
    assert_sound(&other);
}

#[test]
fn names_of_newer_types_text_and_nsec_keep_their_case() {
    // RFC 3597 §7 for SVCB, RFC 6840 §5.1 for HINFO and NSEC.
    for (record, other) in
        [("SVCB 0 TARGET.test.", "SVCB 0 target.test."), ("HINFO \"A\" \"B\"", "HINFO \"a\" \"b\"")]
    {
        let mut bench = Bench::new(&zone(&format!("x {record}")), csk_of("example."), Mechanism::Nsec);
        let (rtype, lower) = other.split_once(' ').unwrap();
        bench.edit("x.example.", rtype, |_| lower.to_owned());
        let faults = bench.faults();
        assert!(matches!(faults[..], [Fault { reason: FaultReason::BadSignature { .. }, .. }]), "{faults:?}");
    }
    let mut bench = Bench::new(&zone("x A 192.0.2.1"), csk_of("example."), Mechanism::Nsec);
    bench.edit("example.", "NSEC", |rdata| rdata.replace("x.example.", "X.example."));
    let faults = bench.faults();
    assert!(matches!(faults[..], [Fault { reason: FaultReason::BadSignature { .. }, .. }]), "{faults:?}");
}

#[test]
fn the_order_of_records_and_duplicates_do_not_change_the_zone() {
    let records = [
        "a A 192.0.2.2",
        "a A 192.0.2.1",
        "A A 192.0.2.1",
        "b MX 1 x",
        "b MX 1 X",
        "*.b TXT \"t\"",
        "d NS ns.d",
        "ns.d A 192.0.2.9",
    ];
    for mechanism in NSEC_AND_NSEC3 {
        let forward = signed(&zone(&records.join("\n")), mechanism);
        let backward: Vec<&str> = records.iter().rev().copied().collect();
        let backward = signed(&zone(&backward.join("\n")), mechanism);
        assert_eq!(text(&forward).to_lowercase(), text(&backward).to_lowercase());
        assert_eq!(node(&forward, "a.example.").rrset(Rtype::A).unwrap().count(), 2);
    }
}

fn expirations(contents: &Contents) -> Vec<u32> {
    let signatures =
        contents.nodes().flat_map(|node| node.rrsets()).filter(|rrset| rrset.rtype() == Rtype::RRSIG);
    signatures.flat_map(|rrset| rrset.rdatas()).map(|rdata| Rrsig::parse(rdata).unwrap().expiration).collect()
}

#[test]
fn jitter_distributes_expirations_and_depends_on_the_seed() {
    let records: String = (0..200).map(|number| format!("h{number} A 192.0.2.1\n")).collect();
    let contents = zone(&records);
    let expirations_with = |jitter, seed| {
        let mut options = options(Mechanism::Nsec);
        (options.jitter, options.seed) = (jitter, seed);
        let signed = sign(&contents, &csk_of("example."), &options).unwrap();
        assert_sound(signed.contents());
        expirations(signed.contents())
    };
    assert!(expirations_with(0, 1).iter().all(|expiration| *expiration == EXPIRATION));
    let drawn = expirations_with(1000, 1);
    assert!(drawn.iter().all(|expiration| (EXPIRATION - 1000..=EXPIRATION).contains(expiration)));
    // Four hundred random values are enough to reach each quarter of the range.
    for quarter in 0..4 {
        let least = EXPIRATION - 250 * (quarter + 1);
        let share = drawn.iter().filter(|expiration| (least..least + 250).contains(expiration)).count();
        assert!((50..150).contains(&share), "{quarter}: {share}");
    }
    assert_eq!(drawn, expirations_with(1000, 1));
    assert_ne!(drawn, expirations_with(1000, 2));
}

#[test]
fn serial_policies() {
    for (policy, expected) in [
        (SerialPolicy::Keep, 7),
        (SerialPolicy::Increment, 8),
        (SerialPolicy::Unixtime, NOW),
        (SerialPolicy::Date, 2_025_061_500),
    ] {
        let mut options = options(Mechanism::Nsec);
        (options.serial, options.now) = (policy, NOW);
        let signed = sign(&zone(""), &csk_of("example."), &options).unwrap();
        assert_sound(signed.contents());
        assert_eq!(signed.contents().soa().unwrap().serial, expected, "{policy}");
        assert_eq!(signed.statistics().serial, expected);
        assert!(signed.warnings().is_empty());
        assert_eq!(policy.to_string().to_uppercase().parse(), Ok(policy));
    }
    // A second signing in the same second would not increase the time.
    let mut options = options(Mechanism::Nsec);
    (options.serial, options.now) = (SerialPolicy::Unixtime, 7);
    let signed = sign(&zone(""), &csk_of("example."), &options).unwrap();
    assert_eq!((signed.statistics().serial, signed.warnings().len()), (8, 1));
}

#[test]
fn cds_and_cdnskey_on_request() {
    let keys = ksk_and_zsk_of("example.");
    let plain = sign(&zone(""), &keys, &options(Mechanism::Nsec)).unwrap();
    assert!(rdatas(plain.contents(), "example.", Rtype::CDS).is_empty());
    let mut options = options(Mechanism::Nsec);
    options.publish_cds = true;
    for keys in [keys, csk_of("example.")] {
        let signed = sign(&zone(""), &keys, &options).unwrap();
        assert_sound(signed.contents());
        let ksk = keys.secure_entry_points().next().unwrap();
        let rrset = |rtype| {
            node(signed.contents(), "example.")
                .rrset(rtype)
                .unwrap()
                .rdatas()
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            rrset(Rtype::CDS),
            [ds_rdata(ksk.owner.view(), &ksk.dnskey_rdata(), nonesuch_crypto::DigestType::SHA256).unwrap()]
        );
        assert_eq!(rrset(Rtype::CDNSKEY), [ksk.dnskey_rdata()]);
        // RFC 7344 §4.1: signed by a key to which the DS RRset refers.
        for rtype in [Rtype::CDS, Rtype::CDNSKEY] {
            let rdata =
                node(signed.contents(), "example.").signatures(rtype).unwrap().rdatas().next().unwrap();
            assert_eq!(Rrsig::parse(rdata).unwrap().tag, ksk.tag());
        }
        let map = rdatas(signed.contents(), "example.", Rtype::NSEC);
        assert!(map[0].ends_with("CDS CDNSKEY"), "{map:?}");
    }
}

#[test]
fn cds_records_of_the_zone_remain_without_publish_cds() {
    let contents = zone("@ CDS 0 0 0 00");
    let kept = signed(&contents, Mechanism::Nsec);
    assert_eq!(rdatas(&kept, "example.", Rtype::CDS), ["0 0 0 00"]);
    let mut options = options(Mechanism::Nsec);
    options.publish_cds = true;
    let replaced = sign(&contents, &csk_of("example."), &options).unwrap();
    assert_eq!(rdatas(replaced.contents(), "example.", Rtype::CDS).len(), 1);
    assert_ne!(rdatas(replaced.contents(), "example.", Rtype::CDS), ["0 0 0 00"]);
}

/// Tags of the keys that sign the RRset.
fn tags(contents: &Contents, rtype: Rtype) -> Vec<u16> {
    let signatures = node(contents, "example.").signatures(rtype).unwrap();
    signatures.rdatas().map(|rdata| Rrsig::parse(rdata).unwrap().tag).collect()
}

#[test]
fn ksks_sign_the_key_set_and_zsks_the_data() {
    let keys = ksk_and_zsk_of("example.");
    let (ksk, zsk) = (keys.keys()[0].tag(), keys.keys()[1].tag());
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&zone(""), mechanism);
        assert_eq!(tags(&signed, Rtype::DNSKEY), [ksk]);
        assert_eq!(tags(&signed, Rtype::SOA), [zsk]);
        assert_eq!(rdatas(&signed, "example.", Rtype::DNSKEY).len(), 2);
    }
}

#[test]
fn csk_signs_everything() {
    let keys = csk_of("example.");
    for mechanism in NSEC_AND_NSEC3 {
        let signed = sign(&zone("a A 192.0.2.1"), &keys, &options(mechanism)).unwrap();
        assert_sound(signed.contents());
        assert_eq!(tags(signed.contents(), Rtype::DNSKEY), tags(signed.contents(), Rtype::SOA));
    }
}

#[test]
fn two_algorithms_sign_everything_twice() {
    let p256 = Algorithm::ECDSAP256SHA256;
    let all = vec![
        key("example.", 257, Algorithm::ED25519, 1),
        key("example.", 256, Algorithm::ED25519, 2),
        key("example.", 257, p256, 3),
    ];
    let keys = KeySet::new(&name("example."), all).unwrap();
    for mechanism in NSEC_AND_NSEC3 {
        let signed = sign(&zone("a A 192.0.2.1\n*.b MX 1 a"), &keys, &options(mechanism)).unwrap();
        assert_sound(signed.contents());
        let statistics = signed.statistics();
        assert_eq!(statistics.signatures, 2 * statistics.rrsets_signed);
        for rtype in [Rtype::DNSKEY, Rtype::SOA] {
            assert_eq!(tags(signed.contents(), rtype).len(), 2);
        }
    }
}

#[test]
fn foreign_keys_of_the_same_algorithm_are_kept() {
    let other = key("example.", 256, Algorithm::ED25519, 40);
    let line = other.key_file_text(&KeyTimes::default()).lines().last().unwrap().to_owned();
    let kept = signed(&zone(&line), Mechanism::Nsec);
    assert_eq!(rdatas(&kept, "example.", Rtype::DNSKEY).len(), 3);
    let mut options = options(Mechanism::Nsec);
    options.drop_foreign_dnskeys = true;
    let dropped = sign(&zone(&line), &ksk_and_zsk_of("example."), &options).unwrap();
    assert_eq!(rdatas(dropped.contents(), "example.", Rtype::DNSKEY).len(), 2);
}

#[test]
fn foreign_keys_of_another_algorithm_are_errors_or_removed() {
    let other = key("example.", 256, Algorithm::ECDSAP256SHA256, 40);
    let contents = zone(other.key_file_text(&KeyTimes::default()).lines().last().unwrap());
    let error = sign(&contents, &ksk_and_zsk_of("example."), &options(Mechanism::Nsec)).unwrap_err();
    assert_eq!(error, SignError::ForeignKey { tag: other.tag(), algorithm: other.algorithm() });
    let mut options = options(Mechanism::Nsec);
    options.drop_foreign_dnskeys = true;
    assert_sound(sign(&contents, &ksk_and_zsk_of("example."), &options).unwrap().contents());
}

#[test]
fn ttl_of_dnskey() {
    let ttl = |contents: &Contents, wanted| {
        let mut options = options(Mechanism::Nsec);
        options.dnskey_ttl = wanted;
        let signed = sign(contents, &ksk_and_zsk_of("example."), &options).unwrap();
        assert_sound(signed.contents());
        signed.contents().apex_rrset(Rtype::DNSKEY).unwrap().ttl()
    };
    let other = key("example.", 256, Algorithm::ED25519, 40);
    let line = other.key_file_text(&KeyTimes::default()).lines().last().unwrap().replace(" 3600 ", " 77 ");
    assert_eq!(ttl(&zone(""), None), 3600);
    assert_eq!(ttl(&zone(&line), None), 77);
    assert_eq!(ttl(&zone(&line), Some(60)), 60);
}

#[test]
fn generated_records_of_a_previous_signing_are_replaced() {
    let contents = zone("a A 192.0.2.1\nd NS ns.d\nns.d A 192.0.2.1");
    for before in NSEC_AND_NSEC3 {
        for after in NSEC_AND_NSEC3 {
            let twice = signed(&signed(&contents, before), after);
            assert_eq!(text(&twice), text(&signed(&contents, after)), "{before} {after}");
        }
    }
}

#[test]
fn signatures_have_ttl_labels_and_signer() {
    let signed = signed(&zone("*.a.B 77 TXT \"t\""), Mechanism::Nsec);
    let rrset = node(&signed, "*.a.b.example.").signatures(Rtype::TXT).unwrap();
    let fields = Rrsig::parse(rrset.rdatas().next().unwrap()).unwrap();
    assert_eq!((rrset.ttl(), fields.original_ttl, fields.labels), (77, 77, 3));
    assert_eq!((fields.inception, fields.expiration), (INCEPTION, EXPIRATION));
    assert_eq!(fields.signer.wire(), name("example.").wire());
}

#[test]
fn types_beyond_256_have_windows_of_their_own() {
    let signed = signed(&zone("x TYPE65400 \\# 1 00\nx CAA 0 issue \"ca.test\""), Mechanism::Nsec);
    let rdata = node(&signed, "x.example.").rrset(Rtype::NSEC).unwrap().rdatas().next().unwrap();
    let map = &rdata[name("example.").view().len()..];
    assert_eq!(bitmap::types(map).collect::<Vec<_>>(), [Rtype::RRSIG, Rtype::NSEC, Rtype(257), Rtype(65400)]);
}

#[test]
fn options_out_of_range_are_errors() {
    let error = |change: fn(&mut SignOptions<'_>)| {
        let mut options = options(Mechanism::Nsec3);
        change(&mut options);
        sign(&zone(""), &csk_of("example."), &options).unwrap_err()
    };
    assert_eq!(error(|options| options.nsec3.iterations = 501), SignError::Iterations { iterations: 501 });
    assert_eq!(error(|options| options.nsec3.salt = vec![0; 256]), SignError::Salt { octets: 256 });
    assert_eq!(error(|options| options.expiration = options.inception), SignError::Period);
    assert_eq!(error(|options| options.expiration = options.inception - 1), SignError::Period);
    let period = EXPIRATION - INCEPTION;
    assert_eq!(
        error(|options| options.jitter = EXPIRATION - INCEPTION),
        SignError::Jitter { jitter: period, period }
    );
    // Signatures that have expired when they are made.
    let expired = error(|options| (options.now, options.jitter) = (EXPIRATION - 3600, 3600));
    assert_eq!(expired, SignError::Jitter { jitter: 3600, period: 3600 });
    let keys = csk_of("other.");
    let other = sign(&zone(""), &keys, &options(Mechanism::Nsec)).unwrap_err();
    assert_eq!(other, SignError::KeysOfOtherZone { zone: name("example."), keys: name("other.") });
}

#[test]
fn times_may_pass_the_end_of_32_bits() {
    let options = SignOptions::new(Mechanism::Nsec, u32::MAX - 10, 1000);
    let signed = sign(&zone(""), &csk_of("example."), &options).unwrap();
    for (now, sound) in
        [(u32::MAX - 11, false), (u32::MAX - 10, true), (0, true), (1000, true), (1001, false)]
    {
        let options = VerifyOptions { now: Some(now), ..VerifyOptions::default() };
        assert_eq!(verify(signed.contents(), &options).has_no_faults(), sound, "{now}");
    }
}

#[test]
fn the_last_progress_has_the_numbers_of_the_zone() {
    let records: String = (0..1500).map(|number| format!("h{number} A 192.0.2.1\n")).collect();
    let told = std::sync::Mutex::new(Vec::new());
    let progress = |at| told.lock().unwrap().push(at);
    let mut options = options(Mechanism::Nsec3);
    options.progress = Some(&progress);
    let signed = sign(&zone(&records), &csk_of("example."), &options).unwrap();
    assert_sound(signed.contents());
    let statistics = signed.statistics();
    let told: Vec<SignProgress> = told.into_inner().unwrap();
    let last = told.last().unwrap();
    assert_eq!((last.rrsets, last.total_rrsets), (statistics.rrsets_signed, statistics.rrsets_signed));
    assert_eq!((last.signatures, last.records), (statistics.signatures, signed.contents().record_count()));
    assert!(told.is_sorted_by_key(|at| (at.rrsets, at.records)) && told[0].rrsets < last.rrsets);
    assert_eq!(statistics.chain_records, 1501);
    // A and NSEC3 for each name; SOA, NS, DNSKEY, NSEC3PARAM and NSEC3 for the apex.
    assert_eq!(statistics.rrsets_signed, 2 * 1500 + 5);
}

/// Records at a signalling name about keys of another zone are ordinary data (RFC 9615 §2), and so
/// are keys of hosts.
#[test]
fn dnskey_and_cds_records_below_the_apex_are_signed_by_the_zsk() {
    let zsk = ksk_and_zsk_of("example.").keys().iter().find(|key| !key.is_sep()).unwrap().tag();
    let records = "_dsboot.c.test._signal.ns1 CDS 1 13 2 00\nhost DNSKEY 0 3 13 AAAA";
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&zone(records), mechanism);
        for (owner, rtype) in
            [("_dsboot.c.test._signal.ns1.example.", Rtype::CDS), ("host.example.", Rtype::DNSKEY)]
        {
            let signatures = node(&signed, owner).signatures(rtype).unwrap();
            let tags: Vec<u16> = signatures.rdatas().map(|rdata| Rrsig::parse(rdata).unwrap().tag).collect();
            assert_eq!(tags, [zsk], "{owner}");
        }
    }
}

/// A zone that can be signed and that verification rejects: the warnings of the signer are the
/// faults of the verification.
#[test]
fn records_that_verification_rejects_cause_warnings() {
    let (tag, digest) = (csk_of("example.").keys()[0].tag(), "00".repeat(32));
    let key = {
        let mut out = Vec::new();
        rdata::push_text(Rtype::DNSKEY, &csk_of("example.").keys()[0].dnskey_rdata(), &mut out);
        String::from_utf8(out).unwrap()
    };
    // The records, and the RRset and the rule in the first warning.
    let cases = [
        (format!("@ DS 1 13 2 {digest}"), "example. DS: ", "(RFC 4035 section 2.4)"),
        (format!("b DNSKEY {key}"), "b.example. DNSKEY: ", "(RFC 4034 section 2.1.1)"),
        (format!("b CDS {tag} 15 2 {digest}"), "b.example. CDS: ", "(RFC 7344 section 4.1, "),
        (format!("b CDNSKEY {key}"), "b.example. CDNSKEY: ", "(RFC 7344 section 4.1, "),
        (format!("@ CDS {tag} 15 2 {digest}"), "example. CD", "(RFC 7344 section 4.1)"),
        (format!("@ CDS 0 0 0 00\n@ CDNSKEY {key}"), "example. CD", "(RFC 7344 section 4)"),
        ("@ CDNSKEY 257 3 0 AA==".to_owned(), "example. CD", "RFC 8078 section 4"),
        (format!("@ DS 1 13 2 {digest}\nb DNSKEY {key}"), "example. DS: ", "(RFC 4035 section 2.4)"),
    ];
    for (records, rrset, rule) in &cases {
        let contents = zone(&format!("a A 192.0.2.1\n{records}"));
        let signed = sign(&contents, &csk_of("example."), &options(Mechanism::Nsec)).unwrap();
        let told = signed.warnings().iter().map(|warning| match warning {
            SignWarning::WillNotVerify { owner, rtype, reason } => {
                Fault { owner: owner.clone(), rtype: Some(*rtype), reason: reason.clone() }
            }
            other => panic!("{records}: {other}"),
        });
        assert_eq!(told.collect::<Vec<_>>(), report(signed.contents()).faults, "{records}");
        assert!(!signed.warnings().is_empty(), "{records}");
        let said = signed.warnings()[0].to_string();
        assert!(said.starts_with(rrset) && said.contains(rule), "{said}");
    }
    // In the correct place, or below a zone cut, the records are sound.
    let sound = [
        format!("d NS ns\nx.d DNSKEY {key}\nx.d CDS {tag} 15 2 {digest}"),
        format!("_dsboot.c._signal.ns CDS {tag} 15 2 {digest}"),
        "b DNSKEY 0 3 15 AAAA".to_owned(),
        format!("@ CDNSKEY {key}"),
        "@ CDS 0 0 0 00\n@ CDNSKEY 0 3 0 AA==".to_owned(),
    ];
    for records in &sound {
        let signed = sign(&zone(records), &csk_of("example."), &options(Mechanism::Nsec3)).unwrap();
        assert_eq!((signed.warnings(), report(signed.contents()).faults), (&[][..], vec![]), "{records}");
    }
}

/// The same test with incremental signing by a change set on a previous zone.
#[test]
fn changes_that_verification_rejects_cause_warnings() {
    let keys = csk_of("example.");
    for mechanism in NSEC_AND_NSEC3 {
        let previous = sign(&zone("a A 192.0.2.1"), &keys, &options(mechanism)).unwrap().into_contents();
        let changes = ChangeSet::parse(b"+ b 3600 IN DNSKEY 256 3 15 AAAA\n", &name("example.")).unwrap();
        let kept = PreviousZone::new(&previous, EXPIRATION - INCEPTION);
        let again = SignOptions { previous: Some(kept), ..options(mechanism) };
        let resigned = resign_changes(&changes, &keys, &again).unwrap().unwrap();
        assert!(resigned.names_planned().is_some());
        let (owner, rtype, reason) = (name("b.example."), Rtype::DNSKEY, FaultReason::UnexpectedRecords);
        let is_place = |warning: &&SignWarning| matches!(warning, SignWarning::WillNotVerify { .. });
        let told: Vec<_> = resigned.warnings().iter().filter(is_place).cloned().collect();
        assert_eq!(told, [SignWarning::WillNotVerify { owner, rtype, reason }]);
    }
}
