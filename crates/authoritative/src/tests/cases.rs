//! Single queries to one zone: unsigned, and signed with each mechanism, with and without DO. The
//! oracle also checks each response, and the checker checks each denial.

use super::*;

pub(super) const ZONE: &str = r#"$ORIGIN example.
$TTL 3600
@ SOA ns1 hostmaster 7 3600 300 3600000 900
@ NS ns1
@ NS ns.elsewhere.test.
@ MX 10 host
ns1 A 192.0.2.1
host A 192.0.2.2
host AAAA 2001:db8::2
host TXT "text"
*.wild A 192.0.2.3
*.wild TXT "wild"
there.wild A 192.0.2.4
*.nothing A 192.0.2.4
x.y.ent A 192.0.2.4
below.*.wildent A 192.0.2.4
secure NS ns.secure
secure DS 1 13 2 00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF
ns.secure A 192.0.2.5
insecure NS ns.insecure
insecure NS ns.secure
insecure NS ns.elsewhere.test.
insecure NS ns1
ns.insecure AAAA 2001:db8::5
self NS self
self A 192.0.2.6
cut.optent NS ns.elsewhere.test.
alias CNAME host
chain1 CNAME chain2
chain2 CNAME chain3
chain3 CNAME host
loop1 CNAME loop2
loop2 CNAME loop1
loop3 CNAME loop3
nowhere CNAME missing.ent
towild CNAME foo.wild
tocut CNAME www.insecure
tosecure CNAME www.secure
outside CNAME host.elsewhere.test.
*.walias CNAME host
*.wchain CNAME foo.wild
*.wnone CNAME missing.ent
*.wloop CNAME x.wloop
*.wds CNAME secure
target A 192.0.2.7
host.target A 192.0.2.7
dn DNAME target
dn TXT "beside"
dn2 DNAME dn
dnloop DNAME x.dnloop
dnout DNAME elsewhere.test.
intodn CNAME host.dn
*.tlsa TYPE52 \# 4 03010100
"#;

/// Query name, type, response code and AA flag; answer, authority and additional records without
/// DNSSEC records.
struct Case(
    &'static str,
    Rtype,
    u16,
    bool,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

const SOA: &str = "example. 900 SOA ns1.example. hostmaster.example. 7 3600 300 3600000 900";
const HOST: &str = "host.example. 3600 A 192.0.2.2";
const NO: &[&str] = &[];
const INSECURE: &[&str] = &[
    "insecure.example. 3600 NS ns.insecure.example.",
    "insecure.example. 3600 NS ns.secure.example.",
    "insecure.example. 3600 NS ns.elsewhere.test.",
    "insecure.example. 3600 NS ns1.example.",
];
/// In-domain, sibling and authoritative addresses. The zone contains none for the out-of-zone
/// server.
const INSECURE_GLUE: &[&str] = &[
    "ns.insecure.example. 3600 AAAA 2001:db8::5",
    "ns.secure.example. 3600 A 192.0.2.5",
    "ns1.example. 3600 A 192.0.2.1",
];
const SECURE: &[&str] = &["secure.example. 3600 NS ns.secure.example."];
const SECURE_GLUE: &[&str] = &["ns.secure.example. 3600 A 192.0.2.5"];
const DS: &str =
    "secure.example. 3600 DS 1 13 2 00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF";

#[rustfmt::skip] // a table
const CASES: &[Case] = &[
    Case("host.example.", Rtype::A, 0, true, &[HOST], NO, NO),
    Case("host.example.", Rtype::MX, 0, true, NO, &[SOA], NO),
    Case("example.", Rtype::SOA, 0, true, &["example. 3600 SOA ns1.example. hostmaster.example. 7 3600 300 3600000 900"], NO, NO),
    Case("example.", Rtype::NS, 0, true, &["example. 3600 NS ns1.example.", "example. 3600 NS ns.elsewhere.test."], NO, NO),
    Case("example.", Rtype::MX, 0, true, &["example. 3600 MX 10 host.example."], NO, NO),
    Case("example.", Rtype::DS, 0, true, NO, &[SOA], NO),
    Case("example.", Rtype::TXT, 0, true, NO, &[SOA], NO),
    Case("missing.example.", Rtype::A, 3, true, NO, &[SOA], NO),
    Case("a.b.missing.example.", Rtype::A, 3, true, NO, &[SOA], NO),
    Case("below.host.example.", Rtype::A, 3, true, NO, &[SOA], NO),
    Case("zzz.example.", Rtype::A, 3, true, NO, &[SOA], NO),
    Case("\\000.example.", Rtype::A, 3, true, NO, &[SOA], NO),
    Case("foo.wild.example.", Rtype::A, 0, true, &["foo.wild.example. 3600 A 192.0.2.3"], NO, NO),
    Case("a.b.c.wild.example.", Rtype::A, 0, true, &["a.b.c.wild.example. 3600 A 192.0.2.3"], NO, NO),
    Case("foo.wild.example.", Rtype::AAAA, 0, true, NO, &[SOA], NO),
    Case("foo.wild.example.", Rtype::DS, 0, true, NO, &[SOA], NO),
    Case("*.wild.example.", Rtype::A, 0, true, &["*.wild.example. 3600 A 192.0.2.3"], NO, NO),
    Case("*.wild.example.", Rtype::AAAA, 0, true, NO, &[SOA], NO),
    Case("foo.*.wild.example.", Rtype::A, 3, true, NO, &[SOA], NO),
    Case("wild.example.", Rtype::A, 0, true, NO, &[SOA], NO),
    Case("foo.there.wild.example.", Rtype::A, 3, true, NO, &[SOA], NO),
    Case("there.wild.example.", Rtype::TXT, 0, true, NO, &[SOA], NO),
    Case("foo.wildent.example.", Rtype::A, 0, true, NO, &[SOA], NO),
    Case("*.wildent.example.", Rtype::A, 0, true, NO, &[SOA], NO),
    Case("ent.example.", Rtype::A, 0, true, NO, &[SOA], NO),
    Case("y.ent.example.", Rtype::A, 0, true, NO, &[SOA], NO),
    Case("ent.example.", Rtype::DS, 0, true, NO, &[SOA], NO),
    Case("a.ent.example.", Rtype::A, 3, true, NO, &[SOA], NO),
    Case("optent.example.", Rtype::A, 0, true, NO, &[SOA], NO),
    Case("foo.optent.example.", Rtype::A, 3, true, NO, &[SOA], NO),
    Case("secure.example.", Rtype::DS, 0, true, &[DS], NO, NO),
    Case("insecure.example.", Rtype::DS, 0, true, NO, &[SOA], NO),
    Case("cut.optent.example.", Rtype::DS, 0, true, NO, &[SOA], NO),
    Case("cut.optent.example.", Rtype::A, 0, false, NO, &["cut.optent.example. 3600 NS ns.elsewhere.test."], NO),
    Case("secure.example.", Rtype::A, 0, false, NO, SECURE, SECURE_GLUE),
    Case("www.secure.example.", Rtype::A, 0, false, NO, SECURE, SECURE_GLUE),
    Case("a.b.c.secure.example.", Rtype::DS, 0, false, NO, SECURE, SECURE_GLUE),
    Case("ns.secure.example.", Rtype::A, 0, false, NO, SECURE, SECURE_GLUE),
    Case("x.ns.secure.example.", Rtype::A, 0, false, NO, SECURE, SECURE_GLUE),
    Case("insecure.example.", Rtype::NS, 0, false, NO, INSECURE, INSECURE_GLUE),
    Case("insecure.example.", Rtype::ANY, 0, false, NO, INSECURE, INSECURE_GLUE),
    Case("www.insecure.example.", Rtype::A, 0, false, NO, INSECURE, INSECURE_GLUE),
    Case("www.insecure.example.", Rtype::DS, 0, false, NO, INSECURE, INSECURE_GLUE),
    Case("self.example.", Rtype::A, 0, false, NO, &["self.example. 3600 NS self.example."], &["self.example. 3600 A 192.0.2.6"]),
    Case("alias.example.", Rtype::A, 0, true, &["alias.example. 3600 CNAME host.example.", HOST], NO, NO),
    Case("alias.example.", Rtype::CNAME, 0, true, &["alias.example. 3600 CNAME host.example."], NO, NO),
    Case("alias.example.", Rtype::ANY, 0, true, &["alias.example. 3600 CNAME host.example."], NO, NO),
    Case("alias.example.", Rtype::MX, 0, true, &["alias.example. 3600 CNAME host.example."], &[SOA], NO),
    Case("below.alias.example.", Rtype::A, 3, true, NO, &[SOA], NO),
    Case("chain1.example.", Rtype::A, 0, true, &["chain1.example. 3600 CNAME chain2.example.", "chain2.example. 3600 CNAME chain3.example.",
        "chain3.example. 3600 CNAME host.example.", HOST], NO, NO),
    Case("loop1.example.", Rtype::A, 0, true, &["loop1.example. 3600 CNAME loop2.example.", "loop2.example. 3600 CNAME loop1.example."], NO, NO),
    Case("loop3.example.", Rtype::A, 0, true, &["loop3.example. 3600 CNAME loop3.example."], NO, NO),
    Case("nowhere.example.", Rtype::A, 3, true, &["nowhere.example. 3600 CNAME missing.ent.example."], &[SOA], NO),
    Case("towild.example.", Rtype::A, 0, true, &["towild.example. 3600 CNAME foo.wild.example.", "foo.wild.example. 3600 A 192.0.2.3"], NO, NO),
    Case("towild.example.", Rtype::AAAA, 0, true, &["towild.example. 3600 CNAME foo.wild.example."], &[SOA], NO),
    Case("tocut.example.", Rtype::A, 0, true, &["tocut.example. 3600 CNAME www.insecure.example."], INSECURE, INSECURE_GLUE),
    Case("tosecure.example.", Rtype::A, 0, true, &["tosecure.example. 3600 CNAME www.secure.example."], SECURE, SECURE_GLUE),
    Case("outside.example.", Rtype::A, 0, true, &["outside.example. 3600 CNAME host.elsewhere.test."], NO, NO),
    Case("foo.walias.example.", Rtype::A, 0, true, &["foo.walias.example. 3600 CNAME host.example.", HOST], NO, NO),
    Case("foo.walias.example.", Rtype::CNAME, 0, true, &["foo.walias.example. 3600 CNAME host.example."], NO, NO),
    Case("foo.walias.example.", Rtype::MX, 0, true, &["foo.walias.example. 3600 CNAME host.example."], &[SOA], NO),
    Case("foo.wchain.example.", Rtype::A, 0, true, &["foo.wchain.example. 3600 CNAME foo.wild.example.", "foo.wild.example. 3600 A 192.0.2.3"], NO, NO),
    Case("foo.wnone.example.", Rtype::A, 3, true, &["foo.wnone.example. 3600 CNAME missing.ent.example."], &[SOA], NO),
    Case("y.wloop.example.", Rtype::A, 0, true, &["y.wloop.example. 3600 CNAME x.wloop.example.", "x.wloop.example. 3600 CNAME x.wloop.example."], NO, NO),
    Case("foo.wds.example.", Rtype::DS, 0, true, &["foo.wds.example. 3600 CNAME secure.example.", DS], NO, NO),
    Case("dn.example.", Rtype::DNAME, 0, true, &["dn.example. 3600 DNAME target.example."], NO, NO),
    Case("dn.example.", Rtype::A, 0, true, NO, &[SOA], NO),
    Case("dn.example.", Rtype::TXT, 0, true, &["dn.example. 3600 TXT \"beside\""], NO, NO),
    Case("host.dn.example.", Rtype::A, 0, true, &["dn.example. 3600 DNAME target.example.", "host.dn.example. 3600 CNAME host.target.example.",
        "host.target.example. 3600 A 192.0.2.7"], NO, NO),
    Case("host.dn.example.", Rtype::CNAME, 0, true, &["dn.example. 3600 DNAME target.example.", "host.dn.example. 3600 CNAME host.target.example."], NO, NO),
    Case("none.dn.example.", Rtype::A, 3, true, &["dn.example. 3600 DNAME target.example.", "none.dn.example. 3600 CNAME none.target.example."], &[SOA], NO),
    Case("host.dn2.example.", Rtype::A, 0, true, &["dn2.example. 3600 DNAME dn.example.", "host.dn2.example. 3600 CNAME host.dn.example.",
        "dn.example. 3600 DNAME target.example.", "host.dn.example. 3600 CNAME host.target.example.", "host.target.example. 3600 A 192.0.2.7"], NO, NO),
    Case("intodn.example.", Rtype::A, 0, true, &["intodn.example. 3600 CNAME host.dn.example.", "dn.example. 3600 DNAME target.example.",
        "host.dn.example. 3600 CNAME host.target.example.", "host.target.example. 3600 A 192.0.2.7"], NO, NO),
    Case("a.dnout.example.", Rtype::A, 0, true, &["dnout.example. 3600 DNAME elsewhere.test.", "a.dnout.example. 3600 CNAME a.elsewhere.test."], NO, NO),
    Case("HoSt.ExAmPlE.", Rtype::A, 0, true, &[HOST], NO, NO),
    Case("WWW.Secure.EXAMPLE.", Rtype::A, 0, false, NO, SECURE, SECURE_GLUE),
    Case("Foo.WILD.Example.", Rtype(52), 0, true, NO, &[SOA], NO),
    Case("host.example.", Rtype(65_280), 0, true, NO, &[SOA], NO),
    Case("host.example.", Rtype::NSEC3, 0, true, NO, &[SOA], NO),
];

fn in_every_way(mut test: impl FnMut(&Zone, bool)) {
    for setup in SIGNINGS.map(SigningSetup::new).into_iter().chain(SigningSetup::all_online()) {
        let zone = Zone::read(ZONE, "example.", &setup);
        for dnssec_ok in [false, true] {
            test(&zone, dnssec_ok);
        }
    }
}

/// Returns the expected response code. With compact denial and DO, a name that does not exist looks
/// like a name without data (RFC 9824 §3.1).
fn shown_rcode(zone: &Zone, dnssec_ok: bool, rcode: Rcode) -> Rcode {
    if zone.is_compact() && dnssec_ok && rcode == Rcode::NXDOMAIN { Rcode::NOERROR } else { rcode }
}

#[test]
fn every_case_in_every_way() {
    in_every_way(|zone, dnssec_ok| {
        for Case(qname, qtype, rcode, authoritative, answer, authority, additional) in CASES {
            let message = zone.checked_response(qname, *qtype, dnssec_ok);
            let what =
                format!("{qname} {qtype} {:?} DO {dnssec_ok}\n{}", zone.signing, display_message(&message));
            let data = |section| -> BTreeSet<String> {
                message.section(section).filter(|r| !is_dnssec(r.rtype)).map(line).collect()
            };
            let mut authority = set(authority);
            if dnssec_ok && authority == set(SECURE) {
                authority.insert(DS.to_lowercase());
            }
            assert_eq!(message.rcode(), shown_rcode(zone, dnssec_ok, Rcode(*rcode)), "{what}");
            assert_eq!(message.header.flags & flags::AA != 0, *authoritative, "{what}");
            assert_eq!(data(Section::Answer), set(answer), "{what}");
            assert_eq!(data(Section::Authority), authority, "{what}");
            assert_eq!(data(Section::Additional), set(additional), "{what}");
        }
    });
}

/// RFC 1034 §4.3.2, RFC 6672 §3.1: each alias precedes its target, and a DNAME record precedes the
/// CNAME record synthesised from it.
#[test]
fn aliases_are_in_chain_order() {
    in_every_way(|zone, dnssec_ok| {
        let message = zone.checked_response("intodn.example.", Rtype::A, dnssec_ok);
        let data = message.section(Section::Answer).filter(|r| !is_dnssec(r.rtype));
        let types: Vec<Rtype> = data.map(|record| record.rtype).collect();
        assert_eq!(types, [Rtype::CNAME, Rtype::DNAME, Rtype::CNAME, Rtype::A]);
    });
}

/// RFC 6672 §2.2: a name that becomes too long causes YXDOMAIN; the response contains the DNAME
/// record as the reason.
#[test]
fn a_dname_substitution_that_is_too_long() {
    in_every_way(|zone, dnssec_ok| {
        let label = "x".repeat(63);
        // 3 × 64 + 47 + ".dn.example." (12 octets of wire form) = 251; ".target." is four octets
        // longer than ".dn.".
        for (last, rcode) in [(50, Rcode(6)), (47, Rcode(6)), (46, Rcode::NXDOMAIN)] {
            let qname = format!("{label}.{label}.{label}.{}.dn.example.", "y".repeat(last));
            let message = zone.checked_response(&qname, Rtype::A, dnssec_ok);
            let rcode = shown_rcode(zone, dnssec_ok, rcode);
            assert_eq!(message.rcode(), rcode, "{} octets", name(&qname).wire().len());
            let first = message.section(Section::Answer).next().unwrap();
            assert_eq!(line(first), "dn.example. 3600 dname target.example.");
        }
        // A DNAME with a target below itself lengthens the name until the link limit is reached.
        let message = zone.checked_response("a.dnloop.example.", Rtype::A, dnssec_ok);
        let cnames = message.section(Section::Answer).filter(|record| record.rtype == Rtype::CNAME);
        assert!(cnames.count() >= 16);
    });
}

#[test]
fn names_of_255_octets() {
    in_every_way(|zone, dnssec_ok| {
        for (below, rcode) in
            [("missing", Rcode::NXDOMAIN), ("wild", Rcode::NOERROR), ("secure", Rcode::NOERROR)]
        {
            let room = 255 - name(&format!("{below}.example.")).wire().len();
            let mut labels = vec!["l".repeat(63); room / 64];
            labels.push("r".repeat(room % 64 - 1));
            let qname = format!("{}.{below}.example.", labels.join("."));
            assert_eq!(name(&qname).wire().len(), 255);
            let rcode = shown_rcode(zone, dnssec_ok, rcode);
            assert_eq!(zone.checked_response(&qname, Rtype::A, dnssec_ok).rcode(), rcode);
        }
    });
}

/// RFC 8482 §4.1: one RRset answers ANY, with its signatures.
#[test]
fn any_is_one_rrset() {
    in_every_way(|zone, dnssec_ok| {
        for qname in ["example.", "host.example.", "foo.wild.example.", "foo.tlsa.example.", "alias.example."]
        {
            let message = zone.checked_response(qname, Rtype::ANY, dnssec_ok);
            let answer: Vec<&Record> = message.section(Section::Answer).collect();
            let types: BTreeSet<Rtype> =
                answer.iter().map(|record| record.rtype).filter(|rtype| *rtype != Rtype::RRSIG).collect();
            assert_eq!(types.len(), 1, "{}", display_message(&message));
            assert!(answer.iter().all(|record| record.owner == name(qname)), "{}", display_message(&message));
        }
        let rcode = shown_rcode(zone, dnssec_ok, Rcode::NXDOMAIN);
        assert_eq!(zone.checked_response("missing.example.", Rtype::ANY, dnssec_ok).rcode(), rcode);
    });
}

/// Queries for records that signing adds. The owner in the answer is the query name, also at
/// wildcards and after aliases (RFC 4592 §4.7).
#[test]
fn queries_for_dnssec_records() {
    for signing in SIGNINGS {
        let zone = Zone::new(ZONE, "example.", signing);
        let answer = |qname: &str, qtype, dnssec_ok| -> Vec<String> {
            let message = zone.query_over_tcp(&name(qname), qtype, dnssec_ok);
            assert_eq!(message.rcode(), Rcode::NOERROR);
            message.section(Section::Answer).map(line).collect()
        };
        for dnssec_ok in [false, true] {
            let signatures = |qname: &str| answer(qname, Rtype::RRSIG, dnssec_ok);
            let nsec = signing == Some(Mechanism::Nsec);
            let mut host = vec!["host.example. 3600 rrsig a 2"; usize::from(signing.is_some())];
            if signing.is_some() {
                host.extend(["host.example. 3600 rrsig txt 2", "host.example. 3600 rrsig aaaa 2"]);
            }
            if nsec {
                host.push("host.example. 900 rrsig nsec 2");
            }
            assert_eq!(signatures("host.example."), host);
            let mut wild = Vec::new();
            if signing.is_some() {
                wild.extend(["foo.wild.example. 3600 rrsig a 2", "foo.wild.example. 3600 rrsig txt 2"]);
            }
            if nsec {
                wild.push("foo.wild.example. 900 rrsig nsec 2");
            }
            assert_eq!(signatures("foo.wild.example."), wild);

            let of_nsec = |qname: &str| -> Vec<String> {
                let lines = answer(qname, Rtype::NSEC, dnssec_ok).into_iter();
                lines.map(|line| line.split(' ').take(4).collect::<Vec<_>>().join(" ")).collect()
            };
            let expected = |lines: &[&str]| -> Vec<String> {
                let shown = lines.iter().filter(|line| dnssec_ok || !line.contains("rrsig nsec"));
                if nsec { shown.map(|line| (*line).to_owned()).collect() } else { Vec::new() }
            };
            let own = ["host.example. 900 nsec insecure.example.", "host.example. 900 rrsig nsec"];
            assert_eq!(of_nsec("host.example."), expected(&own));
            let wild = ["foo.wild.example. 900 nsec there.wild.example.", "foo.wild.example. 900 rrsig nsec"];
            assert_eq!(of_nsec("foo.wild.example."), expected(&wild));
            // If an alias has an NSEC record, a query for NSEC does not follow the alias.
            let alias = ["alias.example. 900 nsec chain1.example.", "alias.example. 900 rrsig nsec"];
            if nsec {
                assert_eq!(of_nsec("alias.example."), expected(&alias));
                // A name that a DNAME record substitutes has no NSEC record.
                let lines = of_nsec("host.dn.example.");
                let last = if dnssec_ok { lines.len() - 2 } else { lines.len() - 1 };
                assert_eq!(
                    lines[last],
                    "host.target.example. 900 nsec tlsa.example.".replace("tlsa", "*.tlsa")
                );
            }
            assert_eq!(answer("ent.example.", Rtype::NSEC, dnssec_ok), NO);
        }
        let dnskeys = zone.query_over_tcp(&name("example."), Rtype::DNSKEY, true);
        let expected = if signing.is_some() { 2 } else { 0 };
        assert_eq!(dnskeys.section(Section::Answer).count(), expected);
    }
}

/// RFC 5155 §7.2.8: for queries, the owner of an NSEC3 record does not exist, and NSEC3 records are
/// never answers.
#[test]
fn owners_of_nsec3_records_do_not_exist() {
    for signing in [Mechanism::Nsec3, Mechanism::Nsec3OptOut] {
        let zone = Zone::new(ZONE, "example.", Some(signing));
        let denial = zone.checked_response("host.example.", Rtype::MX, true);
        let record = denial.section(Section::Authority).find(|record| record.rtype == Rtype::NSEC3).unwrap();
        let owner = record.owner.to_string();
        for qtype in [Rtype::NSEC3, Rtype::A, Rtype::RRSIG, Rtype::ANY] {
            assert_eq!(zone.checked_response(&owner, qtype, true).rcode(), Rcode::NXDOMAIN);
            assert_eq!(
                zone.checked_response(&format!("below.{owner}"), qtype, true).rcode(),
                Rcode::NXDOMAIN
            );
        }
    }
}

#[test]
fn the_root_zone() {
    let text = "$ORIGIN .\n$TTL 3600\n@ SOA a.root. hostmaster.root. 7 3600 300 3600000 900\n@ NS a.root.\n\
        a.root. A 192.0.2.1\ntest. NS ns.test.\nns.test. A 192.0.2.2\norg. NS ns.test.\n\
        org. DS 1 13 2 00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF\nalias. CNAME a.root.\n";
    for signing in SIGNINGS {
        let zone = Zone::new(text, ".", signing);
        for dnssec_ok in [false, true] {
            for qname in [
                ".",
                "test.",
                "www.test.",
                "org.",
                "a.org.",
                "root.",
                "a.root.",
                "alias.",
                "none.",
                "a.none.",
            ] {
                for qtype in [Rtype::A, Rtype::NS, Rtype::SOA, Rtype::DS, Rtype::MX, Rtype::ANY] {
                    zone.checked_response(qname, qtype, dnssec_ok);
                }
            }
            assert_eq!(zone.checked_response("none.", Rtype::A, dnssec_ok).rcode(), Rcode::NXDOMAIN);
            assert!(
                lines(&zone.checked_response(".", Rtype::NS, dnssec_ok), Section::Answer)
                    .contains(". 3600 ns a.root.")
            );
        }
    }
}

/// RFC 6672 §2.3 forbids names below a DNAME. The owners of NSEC3 records do not violate this if
/// the zone has a DNAME at its apex.
#[test]
fn dname_at_the_apex() {
    let text = "$ORIGIN example.\n$TTL 3600\n@ SOA ns.test. hostmaster 7 3600 300 3600000 900\n@ NS ns.test.\n\
        @ DNAME other.test.\n";
    for signing in SIGNINGS {
        let zone = Zone::new(text, "example.", signing);
        for dnssec_ok in [false, true] {
            let message = zone.checked_response("a.b.example.", Rtype::A, dnssec_ok);
            assert!(lines(&message, Section::Answer).contains("a.b.example. 3600 cname a.b.other.test."));
            zone.checked_response("example.", Rtype::DNAME, dnssec_ok);
            zone.checked_response("example.", Rtype::A, dnssec_ok);
            zone.checked_response("example.", Rtype::DS, dnssec_ok);
        }
    }
}
