use super::*;
use crate::read::read_text;
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str =
    "$ORIGIN example.\n$TTL 3600\n@ SOA ns1 host 7 7200 3600 1209600 3600\n@ NS ns1\nns1 A 192.0.2.1\n";

fn contents(rest: &str) -> Contents {
    let text = format!("{HEAD}{rest}");
    read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents
}

/// Returns the findings in a zone with these additional records: owner, type, kind and target.
fn found(rest: &str) -> Vec<String> {
    lines(&check(&contents(rest), usize::MAX))
}

fn lines(findings: &Findings) -> Vec<String> {
    let line = |finding: &Finding| {
        let target = finding.problem.target().map(|target| format!(" {target}")).unwrap_or_default();
        format!("{} {} {}{target}", finding.owner, finding.rtype, finding.problem.code())
    };
    findings.list().iter().map(line).collect()
}

#[track_caller]
fn expect(rest: &str, expected: &[&str]) {
    assert_eq!(found(rest), expected, "{rest}");
}

#[test]
fn a_correct_zone_has_no_findings() {
    expect(
        "@ MX 10 mail\nmail AAAA 2001:db8::1\nnull MX 0 .\n_sip._tcp SRV 0 0 5060 mail\n_x._tcp SRV 0 0 0 .\n\
         far MX 1 mail.other.\nalias CNAME gone\n*.w A 192.0.2.2\nwild MX 1 a.b.w\n_under TXT x\n\
         d NS ns.d\nns.d A 192.0.2.3\nsibling NS ns.d\nd DS 1 13 2 0123456789012345678901234567890123456789012345678901234567890123\n\
         own NS own\nown AAAA 2001:db8::2\ncut NS ns.other.\ntree DNAME other.\n\
         other NS ns.cut\n",
        &[],
    );
}

#[test]
fn targets_without_addresses_are_reported() {
    let kind = "target-has-no-address";
    for rtype in ["NS", "MX 1", "SRV 0 0 1"] {
        let name = rtype.split(' ').next().unwrap_or_default();
        for (rest, target) in [
            ("", "gone.example."),
            ("text TXT x\n", "text.example."),
            ("a.hollow TXT x\n", "hollow.example."),
            // RFC 4592 §2.2.1: a wildcard does not match a name that exists, nor a name below one.
            ("*.w A 192.0.2.2\na.w TXT x\n", "b.a.w.example."),
            ("*.w A 192.0.2.2\na.w TXT x\n", "a.w.example."),
            ("*.w TXT x\n", "a.w.example."),
        ] {
            let line = format!("{rest}x {rtype} {target}\n");
            expect(&line, &[&format!("x.example. {name} {kind} {target}")]);
        }
    }
    expect("@ NS gone\n", &["example. NS target-has-no-address gone.example."]);
}

#[test]
fn aliases_as_targets_are_reported() {
    let rest = "alias CNAME ns1\n*.w CNAME ns1\ntree DNAME other.\n";
    for rtype in ["NS", "MX 1", "SRV 0 0 1"] {
        let name = rtype.split(' ').next().unwrap_or_default();
        for (target, kind) in
            [("alias", "target-is-alias"), ("a.w", "target-is-alias"), ("a.tree", "target-below-dname")]
        {
            let expected = format!("x.example. {name} {kind} {target}.example.");
            expect(&format!("{rest}x {rtype} {target}\n"), &[&expected]);
        }
    }
    expect("tree DNAME other.\nx NS tree\n", &["x.example. NS target-has-no-address tree.example."]);
}

#[test]
fn missing_glue_is_reported() {
    expect("d NS ns.d\n", &["d.example. NS missing-glue ns.d.example."]);
    expect("d NS d\n", &["d.example. NS missing-glue d.example."]);
    expect("d NS a.d\nd NS b.d\na.d A 192.0.2.2\n", &["d.example. NS missing-glue b.d.example."]);
    expect("@ NS ns.d\nd NS ns.other.\n", &["example. NS missing-glue ns.d.example."]);
    // RFC 9471 §2.2: glue of another delegation is useful, and its absence is not a fault.
    expect("d NS ns.other.\nx NS ns.d\n", &[]);
    expect("x MX 1 mail.d\nd NS ns.other.\n", &[]);
}

#[test]
fn unused_glue_is_reported() {
    let rest = "d NS ns.d\nns.d A 192.0.2.2\nold.d A 192.0.2.3\nold.d AAAA 2001:db8::3\n";
    let unused = ["old.d.example. A unused-glue d.example.", "old.d.example. AAAA unused-glue d.example."];
    expect(rest, &unused);
    expect(&format!("{rest}x NS old.d\n"), &[]);
    // Clients query the delegated zone for the address of a mail server.
    expect(&format!("{rest}x MX 1 old.d\n"), &unused);
    expect("d NS ns.other.\nd A 192.0.2.2\n", &["d.example. A unused-glue d.example."]);
}

#[test]
fn occluded_records_are_found() {
    expect(
        "d NS ns.other.\nx.d TXT x\ny.x.d MX 1 ns1\n",
        &["x.d.example. TXT below-cut d.example.", "y.x.d.example. MX below-cut d.example."],
    );
    expect("d NS ns.other.\nd TXT x\n", &["d.example. TXT below-cut d.example."]);
    expect("d NS ns.other.\nx.d NS ns.other.\n", &["x.d.example. NS below-cut d.example."]);
    expect(
        "t DNAME other.\nx.t A 192.0.2.2\ny.x.t TXT x\n",
        &["x.t.example. A below-dname t.example.", "y.x.t.example. TXT below-dname t.example."],
    );
    expect("t DNAME other.\nt NS ns.other.\n", &["t.example. DNAME dname-beside-ns"]);
    expect(
        "@ DNAME other.\n",
        &["example. NS target-below-dname ns1.example.", "ns1.example. A below-dname example."],
    );
}

#[test]
fn names_that_are_not_hostnames_are_reported() {
    expect(
        "a_b A 192.0.2.1\na_b MX 1 ns1\n-a AAAA 2001:db8::1\na- A 192.0.2.1\na_b TXT x\n*.w A 192.0.2.1\n",
        &[
            "-a.example. AAAA owner-not-hostname",
            "a-.example. A owner-not-hostname",
            "a_b.example. A owner-not-hostname",
            "a_b.example. MX owner-not-hostname",
        ],
    );
    expect(
        "x NS n_s.other.\ny MX 1 m_x.other.\nz SRV 0 0 1 s_v.other.\n",
        &[
            "x.example. NS target-not-hostname n_s.other.",
            "y.example. MX target-not-hostname m_x.other.",
            "z.example. SRV target-not-hostname s_v.other.",
        ],
    );
    expect("x MX 1 192.0.2.1\n", &["x.example. MX target-is-address 192.0.2.1.example."]);
    expect("x NS 192.0.2.1.\n", &["x.example. NS target-is-address 192.0.2.1."]);
    expect("a.*.w TXT x\n*.w TXT x\n", &["a.*.w.example. TXT internal-wildcard"]);
    let reverse = "$ORIGIN 2.0.192.in-addr.arpa.\n$TTL 60\n@ SOA n_s.other. h 7 7200 3600 1209600 3600\n@ NS ns.other.\n1 PTR a_b.other.\n";
    let contents = read_text(reverse.as_bytes(), Path::new("zone"), None).unwrap().contents;
    assert_eq!(
        lines(&check(&contents, 9)),
        [
            "2.0.192.in-addr.arpa. SOA target-not-hostname n_s.other.",
            "1.2.0.192.in-addr.arpa. PTR target-not-hostname a_b.other.",
        ]
    );
}

#[test]
fn incorrect_ds_and_cds_records_are_reported() {
    expect("x DS 1 13 2 00\n", &["x.example. DS ds-without-ns"]);
    expect(
        "d NS ns.other.\nd DS 1 13 2 00\nd DS 1 13 77 00\n",
        &["d.example. DS digest-length", "d.example. DS unknown-digest-type"],
    );
    expect("@ CDS 1 13 2 00\n", &["example. CDS one-of-cds-and-cdnskey"]);
    expect("@ CDNSKEY 257 3 13 AAAA\n", &["example. CDNSKEY one-of-cds-and-cdnskey"]);
}

#[test]
fn inconsistent_times_of_the_soa_record_are_reported() {
    for (ttl, times, expected) in [
        (60, "7200 7201 1209600 3600", &["retry-above-refresh"][..]),
        (60, "7200 7199 14399 3600", &[]),
        (60, "7200 7199 14398 3600", &["expire-too-short"]),
        (60, "4294967294 4294967295 1209600 3600", &["expire-too-short", "retry-above-refresh"]),
        (60, "7200 7200 14400 3600", &[]),
        (604_800, "7200 3600 1209600 86400", &[]),
        (86_400, "7200 3600 1209600 604800", &[]),
        (86_401, "7200 3600 1209600 86401", &["long-negative-ttl"]),
    ] {
        let text = format!("$ORIGIN example.\n@ {ttl} SOA ns.other. h 7 {times}\n@ 60 NS ns.other.\n");
        let contents = read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
        let findings = check(&contents, 9);
        let codes: Vec<&str> = findings.counts().keys().copied().collect();
        assert_eq!(codes, expected, "{ttl} {times}");
    }
    expect("x 1209600 TXT x\ny 1209601 TXT x\n", &["y.example. TXT ttl-above-expire"]);
}

#[test]
fn signatures_and_chains_are_not_checked() {
    expect(
        "d NS ns.other.\nx.d NSEC y.d NSEC\nx.d RRSIG NSEC 13 4 3600 20300101000000 20200101000000 1 example. AAAA\n",
        &[],
    );
}

#[test]
fn findings_of_each_kind_are_limited_and_counted() {
    let mut rest = String::new();
    for number in 0..NODES_PER_PIECE + 100 {
        let _ = writeln!(rest, "d{number:06} NS ns.d{number:06}");
    }
    rest.push_str("zz MX 1 gone\n");
    let contents = contents(&rest);
    let few = check(&contents, 3);
    let owners: Vec<String> = few.list().iter().map(|finding| finding.owner.to_string()).collect();
    assert_eq!(owners, ["d000000.example.", "d000001.example.", "d000002.example.", "zz.example."]);
    assert_eq!(few.total(), NODES_PER_PIECE + 101);
    assert_eq!(few.counts()["missing-glue"], NODES_PER_PIECE + 100);
    let all = check(&contents, usize::MAX);
    assert_eq!(all.list().len(), NODES_PER_PIECE + 101);
    assert_eq!(check(&contents, 0).list(), []);
}

#[test]
fn a_finding_has_owner_type_and_target() {
    let findings = check(&contents("d NS ns.d\n"), 1);
    let [finding] = findings.list() else { panic!("{findings:?}") };
    let problem = Problem::MissingGlue { target: "ns.d.example.".parse().unwrap() };
    assert_eq!(finding.problem, problem);
    assert_eq!(finding.to_string(), format!("d.example. NS: {problem}"));
    assert!(problem.to_string().contains("ns.d.example."), "{problem}");
}
