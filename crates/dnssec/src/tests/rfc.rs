//! The example zones of RFC 4035 and RFC 5155, and RFC 9077.

use super::*;

/// A zone of the RFCs with its keys, both RSA.
fn example(file: &str, zone: &str, keys: &[&str]) -> Option<(Contents, KeySet)> {
    let folder = nonesuch_testing::public_data("rfc-zones/test-data")?;
    let contents = read::read_file(&folder.join(file), Some(&name(zone))).unwrap().contents;
    let read = |base: &&str| {
        let text = |extension| std::fs::read_to_string(folder.join(format!("{base}.{extension}"))).unwrap();
        KeyPair::parse(&text("key"), &text("private")).unwrap()
    };
    let keys = KeySet::new(&name(zone), keys.iter().map(read).collect()).unwrap();
    Some((contents, keys))
}

const EXAMPLE_KEYS: [&str; 2] = ["Kexample.+008+31967", "Kexample.+008+38353"];

fn chain(contents: &Contents, rtype: Rtype) -> Vec<String> {
    let mut out = Vec::new();
    for node in contents.nodes().filter(|node| node.has(rtype)) {
        let owner = node.name().to_string();
        out.extend(rdatas(contents, &owner, rtype).into_iter().map(|rdata| format!("{owner} {rdata}")));
    }
    out
}

#[test]
fn rfc4035_appendix_a() {
    let Some((contents, keys)) = example("example.rfc4035", "example.", &EXAMPLE_KEYS) else {
        return;
    };
    let signed = sign(&contents, &keys, &options(Mechanism::Nsec)).unwrap();
    assert_sound(signed.contents());
    let expected = [
        "example. a.example. NS SOA MX RRSIG NSEC DNSKEY",
        "a.example. ai.example. NS DS RRSIG NSEC",
        "ai.example. b.example. A HINFO AAAA RRSIG NSEC",
        "b.example. ns1.example. NS RRSIG NSEC",
        "ns1.example. ns2.example. A RRSIG NSEC",
        "ns2.example. *.w.example. A RRSIG NSEC",
        "*.w.example. x.w.example. MX RRSIG NSEC",
        "x.w.example. x.y.w.example. MX RRSIG NSEC",
        "x.y.w.example. xx.example. MX RRSIG NSEC",
        "xx.example. example. A HINFO AAAA RRSIG NSEC",
    ];
    assert_eq!(chain(signed.contents(), Rtype::NSEC), expected);
    // The RFC has two RRSIG records over DNSKEY; one is by a KSK that signs nothing else.
    assert_eq!(signed.statistics().signatures, signed.statistics().rrsets_signed);
}

#[test]
fn rfc5155_appendix_a() {
    let Some((contents, keys)) = example("example.rfc5155", "example.", &EXAMPLE_KEYS) else {
        return;
    };
    let mut options = options(Mechanism::Nsec3OptOut);
    options.nsec3 = Nsec3Params { salt: vec![0xaa, 0xbb, 0xcc, 0xdd], iterations: 12 };
    let signed = sign(&contents, &keys, &options).unwrap();
    let report = report(signed.contents());
    assert_eq!(report.faults, []);
    assert_eq!(report.mechanism, Some(Mechanism::Nsec3OptOut));
    let expected = [
        "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom 2t7b4g4vsa5smi47k61mv5bv1a22bojr NS SOA MX RRSIG DNSKEY NSEC3PARAM",
        "2t7b4g4vsa5smi47k61mv5bv1a22bojr 2vptu5timamqttgl4luu9kg21e0aor3s A RRSIG",
        "2vptu5timamqttgl4luu9kg21e0aor3s 35mthgpgcu1qg68fab165klnsnk3dpvl MX RRSIG",
        "35mthgpgcu1qg68fab165klnsnk3dpvl b4um86eghhds6nea196smvmlo4ors995 NS DS RRSIG",
        "b4um86eghhds6nea196smvmlo4ors995 gjeqe526plbf1g8mklp59enfd789njgi MX RRSIG",
        "gjeqe526plbf1g8mklp59enfd789njgi ji6neoaepv8b5o6k4ev33abha8ht9fgc A HINFO AAAA RRSIG",
        "ji6neoaepv8b5o6k4ev33abha8ht9fgc k8udemvp1j2f7eg6jebps17vp3n8i58h",
        "k8udemvp1j2f7eg6jebps17vp3n8i58h kohar7mbb8dc2ce8a9qvl8hon4k53uhi",
        "kohar7mbb8dc2ce8a9qvl8hon4k53uhi q04jkcevqvmu85r014c7dkba38o0ji5r A RRSIG",
        "q04jkcevqvmu85r014c7dkba38o0ji5r r53bq7cc2uvmubfu5ocmm6pers9tk9en A RRSIG",
        "r53bq7cc2uvmubfu5ocmm6pers9tk9en t644ebqk9bibcna874givr6joj62mlhv MX RRSIG",
        "t644ebqk9bibcna874givr6joj62mlhv 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A HINFO AAAA RRSIG",
    ];
    let expected: Vec<String> =
        expected.iter().map(|line| line.replacen(' ', ".example. 1 1 12 AABBCCDD ", 1)).collect();
    assert_eq!(chain(signed.contents(), Rtype::NSEC3), expected);
    assert_eq!(rdatas(signed.contents(), "example.", Rtype::NSEC3PARAM), ["1 0 12 AABBCCDD"]);
}

#[test]
fn rfc9077_ttl_is_the_lesser_of_soa_ttl_and_minimum() {
    let keys = ["Kexample.org.+008+28954", "Kexample.org.+008+51331"];
    for file in ["example.org.rfc9077-min-is-soa-minimum", "example.org.rfc9077-min-is-soa-ttl"] {
        let Some((contents, keys)) = example(file, "example.org.", &keys) else { return };
        for mechanism in NSEC_AND_NSEC3 {
            let signed = sign(&contents, &keys, &options(mechanism)).unwrap();
            // The examples omit the NS records.
            let fault =
                Fault { owner: name("example.org."), rtype: Some(Rtype::NS), reason: FaultReason::NoNs };
            assert_eq!(report(signed.contents()).faults, [fault]);
            let chain = signed.contents().nodes().flat_map(|node| node.rrsets());
            let ttls: Vec<_> = chain
                .filter(|rrset| matches!(rrset.covered(), Rtype::NSEC | Rtype::NSEC3))
                .map(|rrset| rrset.ttl())
                .collect();
            assert_eq!(ttls, [238; 4], "{file}");
        }
    }
}
