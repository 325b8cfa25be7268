//! The examples of RFC 4035 appendix B and RFC 5155 appendix B, with their zones signed by a key of
//! the test.
//!
//! These differences are intended, in every example of their kind:
//! - Positive answers contain neither the apex NS RRset nor additional addresses (B.1, B.6; RFC
//!   5155 B.4). Both are optional (RFC 1034 §4.3.2 step 6, RFC 9471 §1), and responses without them
//!   fit into a datagram more often.
//! - The DNSKEY RRset has one key; keys and signatures use Ed25519.

use super::*;

fn example(file: &str, mechanism: Mechanism, nsec3: Nsec3Params) -> Option<Zone> {
    let path = nonesuch_testing::public_data("rfc-zones/test-data")?.join(file);
    let plain = read::read_file(&path, Some(&name("example."))).unwrap().contents;
    Some(Zone::from_contents(plain, &SigningSetup { nsec3, ..SigningSetup::new(Some(mechanism)) }))
}

struct Example {
    section: &'static str,
    query: (&'static str, Rtype),
    rcode: Rcode,
    authoritative: bool,
    answer: &'static [&'static str],
    authority: &'static [&'static str],
    additional: &'static [&'static str],
}

#[track_caller]
fn compare(zone: &Zone, examples: &[Example]) {
    for example in examples {
        let message = zone.query_over_tcp(&name(example.query.0), example.query.1, true);
        let what = format!("{}\n{}", example.section, display_message(&message));
        assert_eq!(message.rcode(), example.rcode, "{what}");
        assert_eq!(message.header.flags & flags::AA != 0, example.authoritative, "{what}");
        assert_eq!(lines(&message, Section::Answer), set(example.answer), "{what}");
        assert_eq!(lines(&message, Section::Authority), set(example.authority), "{what}");
        assert_eq!(lines(&message, Section::Additional), set(example.additional), "{what}");
    }
}

const SOA: &str = "example. 3600 SOA ns1.example. bugs.x.w.example. 1081539377 3600 300 3600000 3600";
const SOA_5155: &str = "example. 3600 SOA ns1.example. bugs.x.w.example. 1 3600 300 3600000 3600";
const SOA_SIGNATURE: &str = "example. 3600 RRSIG SOA 1";

#[test]
fn rfc4035_appendix_b() {
    let nsec3 = Nsec3Params::default();
    let Some(zone) = example("example.rfc4035", Mechanism::Nsec, nsec3) else { return };
    compare(
        &zone,
        &[
            Example {
                section: "B.1 Answer",
                query: ("x.w.example.", Rtype::MX),
                rcode: Rcode::NOERROR,
                authoritative: true,
                answer: &["x.w.example. 3600 MX 1 xx.example.", "x.w.example. 3600 RRSIG MX 3"],
                authority: &[],
                additional: &[],
            },
            Example {
                section: "B.2 Name Error",
                query: ("ml.example.", Rtype::A),
                rcode: Rcode::NXDOMAIN,
                authoritative: true,
                answer: &[],
                authority: &[
                    SOA,
                    SOA_SIGNATURE,
                    "b.example. 3600 NSEC ns1.example. NS RRSIG NSEC",
                    "b.example. 3600 RRSIG NSEC 2",
                    "example. 3600 NSEC a.example. NS SOA MX RRSIG NSEC DNSKEY",
                    "example. 3600 RRSIG NSEC 1",
                ],
                additional: &[],
            },
            Example {
                section: "B.3 No Data Error",
                query: ("ns1.example.", Rtype::MX),
                rcode: Rcode::NOERROR,
                authoritative: true,
                answer: &[],
                authority: &[
                    SOA,
                    SOA_SIGNATURE,
                    "ns1.example. 3600 NSEC ns2.example. A RRSIG NSEC",
                    "ns1.example. 3600 RRSIG NSEC 2",
                ],
                additional: &[],
            },
            Example {
                section: "B.4 Referral to Signed Zone",
                query: ("mc.a.example.", Rtype::MX),
                rcode: Rcode::NOERROR,
                authoritative: false,
                answer: &[],
                authority: &[
                    "a.example. 3600 NS ns1.a.example.",
                    "a.example. 3600 NS ns2.a.example.",
                    "a.example. 3600 DS 57855 5 1 B6DCD485719ADCA18E5F3D48A2331627FDD3636B",
                    "a.example. 3600 RRSIG DS 2",
                ],
                additional: &["ns1.a.example. 3600 A 192.0.2.5", "ns2.a.example. 3600 A 192.0.2.6"],
            },
            Example {
                section: "B.5 Referral to Unsigned Zone",
                query: ("mc.b.example.", Rtype::MX),
                rcode: Rcode::NOERROR,
                authoritative: false,
                answer: &[],
                authority: &[
                    "b.example. 3600 NS ns1.b.example.",
                    "b.example. 3600 NS ns2.b.example.",
                    "b.example. 3600 NSEC ns1.example. NS RRSIG NSEC",
                    "b.example. 3600 RRSIG NSEC 2",
                ],
                additional: &["ns1.b.example. 3600 A 192.0.2.7", "ns2.b.example. 3600 A 192.0.2.8"],
            },
            Example {
                section: "B.6 Wildcard Expansion",
                query: ("a.z.w.example.", Rtype::MX),
                rcode: Rcode::NOERROR,
                authoritative: true,
                answer: &["a.z.w.example. 3600 MX 1 ai.example.", "a.z.w.example. 3600 RRSIG MX 2"],
                authority: &[
                    "x.y.w.example. 3600 NSEC xx.example. MX RRSIG NSEC",
                    "x.y.w.example. 3600 RRSIG NSEC 4",
                ],
                additional: &[],
            },
            Example {
                section: "B.7 Wildcard No Data Error",
                query: ("a.z.w.example.", Rtype::AAAA),
                rcode: Rcode::NOERROR,
                authoritative: true,
                answer: &[],
                authority: &[
                    SOA,
                    SOA_SIGNATURE,
                    "x.y.w.example. 3600 NSEC xx.example. MX RRSIG NSEC",
                    "x.y.w.example. 3600 RRSIG NSEC 4",
                    "*.w.example. 3600 NSEC x.w.example. MX RRSIG NSEC",
                    "*.w.example. 3600 RRSIG NSEC 2",
                ],
                additional: &[],
            },
            Example {
                section: "B.8 DS Child Zone No Data Error",
                query: ("example.", Rtype::DS),
                rcode: Rcode::NOERROR,
                authoritative: true,
                answer: &[],
                authority: &[
                    SOA,
                    SOA_SIGNATURE,
                    "example. 3600 NSEC a.example. NS SOA MX RRSIG NSEC DNSKEY",
                    "example. 3600 RRSIG NSEC 1",
                ],
                additional: &[],
            },
        ],
    );
}

/// An NSEC3 record with its signature.
macro_rules! nsec3 {
    ($owner:literal, $rest:literal) => {
        concat!($owner, ".example. 3600 NSEC3 1 1 12 aabbccdd ", $rest)
    };
    ($owner:literal) => {
        concat!($owner, ".example. 3600 RRSIG NSEC3 2")
    };
}

const APEX: &str = nsec3!(
    "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom",
    "2t7b4g4vsa5smi47k61mv5bv1a22bojr NS SOA MX RRSIG DNSKEY NSEC3PARAM"
);
const APEX_SIGNATURE: &str = nsec3!("0p9mhaveqvm6t7vbl5lop2u3t2rp3tom");
const NS1: &str = nsec3!("2t7b4g4vsa5smi47k61mv5bv1a22bojr", "2vptu5timamqttgl4luu9kg21e0aor3s A RRSIG");
const NS1_SIGNATURE: &str = nsec3!("2t7b4g4vsa5smi47k61mv5bv1a22bojr");
const A: &str = nsec3!("35mthgpgcu1qg68fab165klnsnk3dpvl", "b4um86eghhds6nea196smvmlo4ors995 NS DS RRSIG");
const A_SIGNATURE: &str = nsec3!("35mthgpgcu1qg68fab165klnsnk3dpvl");
const X_W: &str = nsec3!("b4um86eghhds6nea196smvmlo4ors995", "gjeqe526plbf1g8mklp59enfd789njgi MX RRSIG");
const X_W_SIGNATURE: &str = nsec3!("b4um86eghhds6nea196smvmlo4ors995");
const Y_W: &str = nsec3!("ji6neoaepv8b5o6k4ev33abha8ht9fgc", "k8udemvp1j2f7eg6jebps17vp3n8i58h");
const Y_W_SIGNATURE: &str = nsec3!("ji6neoaepv8b5o6k4ev33abha8ht9fgc");
const W: &str = nsec3!("k8udemvp1j2f7eg6jebps17vp3n8i58h", "kohar7mbb8dc2ce8a9qvl8hon4k53uhi");
const W_SIGNATURE: &str = nsec3!("k8udemvp1j2f7eg6jebps17vp3n8i58h");
const Q04: &str = nsec3!("q04jkcevqvmu85r014c7dkba38o0ji5r", "r53bq7cc2uvmubfu5ocmm6pers9tk9en A RRSIG");
const Q04_SIGNATURE: &str = nsec3!("q04jkcevqvmu85r014c7dkba38o0ji5r");
const WILD: &str = nsec3!("r53bq7cc2uvmubfu5ocmm6pers9tk9en", "t644ebqk9bibcna874givr6joj62mlhv MX RRSIG");
const WILD_SIGNATURE: &str = nsec3!("r53bq7cc2uvmubfu5ocmm6pers9tk9en");

#[test]
fn rfc5155_appendix_b() {
    let nsec3 = Nsec3Params { salt: vec![0xaa, 0xbb, 0xcc, 0xdd], iterations: 12 };
    let zone = example("example.rfc5155", Mechanism::Nsec3OptOut, nsec3);
    let Some(zone) = zone else { return };
    let negative = |section, qname, qtype, rcode, authority| Example {
        section,
        query: (qname, qtype),
        rcode,
        authoritative: true,
        answer: &[],
        authority,
        additional: &[],
    };
    compare(
        &zone,
        &[
            negative(
                "B.1 Name Error",
                "a.c.x.w.example.",
                Rtype::A,
                Rcode::NXDOMAIN,
                &[SOA_5155, SOA_SIGNATURE, APEX, APEX_SIGNATURE, X_W, X_W_SIGNATURE, A, A_SIGNATURE],
            ),
            negative(
                "B.2 No Data Error",
                "ns1.example.",
                Rtype::MX,
                Rcode::NOERROR,
                &[SOA_5155, SOA_SIGNATURE, NS1, NS1_SIGNATURE],
            ),
            negative(
                "B.2.1 No Data Error, Empty Non-Terminal",
                "y.w.example.",
                Rtype::A,
                Rcode::NOERROR,
                &[SOA_5155, SOA_SIGNATURE, Y_W, Y_W_SIGNATURE],
            ),
            Example {
                section: "B.3 Referral to an Opt-Out Unsigned Zone",
                query: ("mc.c.example.", Rtype::MX),
                rcode: Rcode::NOERROR,
                authoritative: false,
                answer: &[],
                authority: &[
                    "c.example. 3600 NS ns1.c.example.",
                    "c.example. 3600 NS ns2.c.example.",
                    A,
                    A_SIGNATURE,
                    APEX,
                    APEX_SIGNATURE,
                ],
                additional: &["ns1.c.example. 3600 A 192.0.2.7", "ns2.c.example. 3600 A 192.0.2.8"],
            },
            Example {
                section: "B.4 Wildcard Expansion",
                query: ("a.z.w.example.", Rtype::MX),
                rcode: Rcode::NOERROR,
                authoritative: true,
                answer: &["a.z.w.example. 3600 MX 1 ai.example.", "a.z.w.example. 3600 RRSIG MX 2"],
                authority: &[Q04, Q04_SIGNATURE],
                additional: &[],
            },
            negative(
                "B.5 Wildcard No Data Error",
                "a.z.w.example.",
                Rtype::AAAA,
                Rcode::NOERROR,
                &[SOA_5155, SOA_SIGNATURE, W, W_SIGNATURE, Q04, Q04_SIGNATURE, WILD, WILD_SIGNATURE],
            ),
            negative(
                "B.6 DS Child Zone No Data Error",
                "example.",
                Rtype::DS,
                Rcode::NOERROR,
                &[SOA_5155, SOA_SIGNATURE, APEX, APEX_SIGNATURE],
            ),
        ],
    );
}
