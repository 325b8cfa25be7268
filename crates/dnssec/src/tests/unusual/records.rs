//! Records of unusual zones, below the apex of a zone `example.`: case, rule that permits it,
//! records. Each zone is signed without changes and must be sound. In the tests of the command,
//! other implementations verify the same records.

/// Case, rule, records.
pub(super) type Plain = (&'static str, &'static str, &'static str);

/// Unusual names.
pub(super) const NAMES: &[Plain] = &[
    ("escaped dot", "RFC 1035 §5.1", "a\\.b A 192.0.2.1"),
    ("escaped backslash", "RFC 1035 §5.1", "a\\\\b A 192.0.2.1"),
    ("escaped quote", "RFC 1035 §5.1", "a\\\"b A 192.0.2.1"),
    ("escaped semicolon", "RFC 1035 §5.1", "a\\;b A 192.0.2.1"),
    ("escaped parentheses", "RFC 1035 §5.1", "\\(a\\) A 192.0.2.1"),
    ("needless escapes", "RFC 1035 §5.1", "\\097\\b A 192.0.2.1"),
    ("blank in a label", "RFC 2181 §11", "a\\032b A 192.0.2.1"),
    ("octet 0", "RFC 4034 §6.1", "\\000 A 192.0.2.1\nx.\\000 A 192.0.2.1"),
    ("octets 0 at the end of a label", "RFC 4034 §6.1", "a A 192.0.2.1\na\\000 A 192.0.2.1\nx.a A 192.0.2.1"),
    ("octet 255", "RFC 2181 §11", "\\255 A 192.0.2.1\n\\255\\255.\\255 A 192.0.2.1"),
    ("octets above 127 keep their value", "RFC 4343 §3", "\\192 A 192.0.2.1\n\\224 A 192.0.2.2"),
    ("an at sign as a label", "RFC 1035 §5.1", "\\064 A 192.0.2.1"),
    ("octets around letters", "RFC 4343 §3", "\\091 A 192.0.2.1\n\\096 A 192.0.2.1\n\\123 A 192.0.2.1"),
    ("a dollar sign before a directive's name", "RFC 1035 §5.1", "\\$ORIGIN A 192.0.2.1"),
    (
        "the order of RFC 4034",
        "RFC 4034 §6.1",
        "a TXT \"\"\nyljkjljk.a TXT \"\"\nZ.a TXT \"\"\nzABC.a.EXAMPLE. TXT \"\"\n\
        z TXT \"\"\n\\001.z TXT \"\"\n*.z TXT \"\"\n\\200.z TXT \"\"",
    ),
    (
        "labels that begin others",
        "RFC 4034 §6.1",
        "a A 192.0.2.1\naa A 192.0.2.1\naaa A 192.0.2.1\na.aa A 192.0.2.1",
    ),
    ("upper case", "RFC 4034 §6.2", "HOST A 192.0.2.1\nMiXed.HOST MX 1 MAIL.Example."),
    ("one name in two cases", "RFC 4343 §4", "host A 192.0.2.1\nHOST TXT \"t\""),
    ("underscores", "RFC 8552 §1", "_25._tcp.mail TLSA 3 1 1 00\n_dmarc TXT \"v=DMARC1\""),
    ("digits and hyphens", "RFC 1123 §2.1", "1 A 192.0.2.1\n-a- A 192.0.2.1\n127.0.0.1 A 192.0.2.1"),
    ("an internationalised name", "RFC 5891 §4.4", "xn--bcher-kva A 192.0.2.1"),
    ("a wildcard directly below the apex", "RFC 4592 §2.1", "* A 192.0.2.1"),
    ("an escaped asterisk", "RFC 4592 §2.1.1", "\\042.w A 192.0.2.1"),
    ("an asterisk within a label", "RFC 4592 §2.1.1", "a*b A 192.0.2.1\n** A 192.0.2.1\n*a A 192.0.2.1"),
    ("an asterisk in the middle", "RFC 4592 §2.1.2", "a.*.w A 192.0.2.1"),
    ("a wildcard below a wildcard", "RFC 4592 §2.1.3", "*.w A 192.0.2.1\n*.*.w A 192.0.2.2"),
    ("a name below a wildcard next to its data", "RFC 4592 §2.2.2", "*.w A 192.0.2.1\nx.*.w A 192.0.2.1"),
];

/// Unusual types, RDATA and TTLs.
pub(super) const TYPES: &[Plain] = &[
    ("an unknown type", "RFC 3597 §4", "x TYPE65400 \\# 3 010203"),
    ("RDATA of no octets", "RFC 3597 §5", "x TYPE65400 \\# 0\ny APL"),
    ("a known type in the form of an unknown one", "RFC 3597 §5", "x TYPE1 \\# 4 c0000201"),
    ("the highest type", "RFC 4034 §4.1.2", "x TYPE65535 \\# 1 00"),
    (
        "bit maps of many windows",
        "RFC 4034 §4.1.2",
        "x A 192.0.2.1\nx CAA 0 issue \"ca.test\"\nx TYPE1024 \\# 1 00\n\
        x TYPE4096 \\# 1 00\nx TYPE32000 \\# 1 00\nx TYPE65535 \\# 1 00",
    ),
    ("an alias", "RFC 4035 §2.5", "x CNAME y.test."),
    ("a chain of aliases and a loop", "RFC 1034 §3.6.2", "x CNAME y\ny CNAME z\nz CNAME x"),
    ("an alias of itself", "RFC 1034 §3.6.2", "x CNAME x"),
    ("a wildcard alias", "RFC 4592 §4.3", "*.x CNAME y.test."),
    ("SRV at a wildcard", "RFC 4592 §4.4", "*._tcp SRV 0 0 443 a.test."),
    ("PTR records at one name", "RFC 2181 §10.2", "x PTR a.test.\nx PTR b.test."),
    ("empty strings", "RFC 1035 §3.3", "x TXT \"\"\ny TXT \"\" \"\" \"\""),
    (
        "strings of 255 octets",
        "RFC 1035 §3.3",
        concat!(
            "x TXT \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""
        ),
    ),
    ("text of odd octets", "RFC 1035 §5.1", "x TXT \"\\000\\\"\\\\\\255;()\""),
    ("strings that differ in case alone", "RFC 4034 §6.2", "x TXT \"a\"\nx TXT \"A\""),
    ("records that are one in canonical form", "RFC 4034 §6.3", "x MX 1 Mail.test.\nx MX 1 mail.TEST."),
    (
        "RDATA of which one begins the other",
        "RFC 4034 §6.3",
        "x TYPE65400 \\# 1 01\nx TYPE65400 \\# 2 0100\nx TYPE65400 \\# 0",
    ),
    ("names in RDATA with odd octets", "RFC 4034 §6.2", "x MX 1 A\\.B\\000.test.\ny PTR \\255.TEST."),
    ("the root as a target", "RFC 7505 §3", "x MX 0 .\ny SRV 0 0 0 .\nz CNAME ."),
    ("SVCB keeps its case", "RFC 3597 §7", "x SVCB 1 TARGET.test.\ny HTTPS 0 Target.test."),
    ("records of RFC 2535", "RFC 3755 §3", "x KEY 256 3 13 AAAA\nx NXT y.test. A"),
    ("SPF next to TXT", "RFC 7208 §3.1", "x SPF \"v=spf1 -all\"\nx TXT \"v=spf1 -all\""),
    ("the highest private type", "RFC 6895 §3.1", "x TYPE65534 \\# 1 ff"),
    ("TTL 0", "RFC 2181 §8", "x 0 A 192.0.2.1"),
    ("the longest TTL", "RFC 2181 §8", "x 2147483647 A 192.0.2.1"),
    (
        "every RRset with a TTL of its own",
        "RFC 2181 §5.2",
        "x 1 A 192.0.2.1\nx 2 TXT \"t\"\nx 3 MX 1 y\ny 4 A 192.0.2.1",
    ),
];

/// Unusual trees.
pub(super) const STRUCTURES: &[Plain] = &[
    ("the apex alone", "RFC 4035 §2.3", ""),
    ("one name", "RFC 4035 §2.3", "a A 192.0.2.1"),
    ("an empty non-terminal", "RFC 5155 §7.1", "x.ent A 192.0.2.1"),
    ("empty non-terminals in a row", "RFC 5155 §7.1", "x.e1.e2.e3.e4.e5 A 192.0.2.1"),
    (
        "empty non-terminals next to names",
        "RFC 5155 §7.1",
        "a.ent A 192.0.2.1\nb.c.ent A 192.0.2.1\nx.a.ent A 192.0.2.1",
    ),
    ("an empty non-terminal that is a wildcard", "RFC 4592 §2.2.2", "a.*.w A 192.0.2.1"),
    (
        "an empty non-terminal above delegations alone",
        "RFC 5155 §7.1",
        "a.ent NS ns.test.\nb.c.ent NS ns.test.",
    ),
    (
        "an empty non-terminal above both sorts of delegation",
        "RFC 5155 §7.1",
        "a.ent NS ns.test.\nb.ent NS ns.test.\nb.ent DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
    ),
    ("delegations alone", "RFC 5155 §6", "a NS ns.test.\nb NS ns.test.\nc NS ns.test."),
    (
        "secure delegations alone",
        "RFC 4035 §2.4",
        "a NS ns.test.\na DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\nb NS ns.test.\nb DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
    ),
    ("glue below the cut", "RFC 4035 §2.2", "d NS ns.d\nns.d A 192.0.2.1\nns.d AAAA 2001:db8::1"),
    ("glue at the cut", "RFC 4035 §2.2", "d NS d\nd A 192.0.2.1\nd AAAA 2001:db8::1"),
    ("glue below another cut", "RFC 4035 §2.2", "d NS ns.e\ne NS ns.e\nns.e A 192.0.2.1"),
    ("glue far below the cut", "RFC 4035 §2.2", "d NS a.b.c.d\na.b.c.d A 192.0.2.1"),
    (
        "a server of a delegation with data of the zone's own",
        "RFC 4035 §2.2",
        "d NS ns.hosts\nns.hosts A 192.0.2.1",
    ),
    ("text below a cut", "RFC 4035 §2.2", "d NS ns.test.\nx.d TXT \"occluded\"\n*.d MX 1 x.test."),
    ("text at a cut", "RFC 4035 §2.2", "d NS ns.test.\nd TXT \"occluded\"\nd MX 1 x.test."),
    (
        "a cut below a cut",
        "RFC 4035 §2.2",
        "d NS ns.test.\nx.d NS ns.test.\nx.d DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
    ),
    ("a DNAME below a cut", "RFC 6672 §2.3", "d NS ns.test.\nx.d DNAME target.test."),
    (
        "a delegation with a name between",
        "RFC 4035 §2.3",
        "c.b NS ns.test.\na.c.b A 192.0.2.1\nb A 192.0.2.1",
    ),
    ("a DNAME", "RFC 6672 §2.3", "n DNAME target.test."),
    ("a DNAME next to data", "RFC 6672 §2.3", "n DNAME target.test.\nn A 192.0.2.1\nn TXT \"t\""),
    ("data below a DNAME", "RFC 6672 §2.4", "n DNAME target.test.\nx.n A 192.0.2.1\ny.z.n TXT \"t\""),
    (
        "a cut below a DNAME",
        "RFC 6672 §2.4",
        "n DNAME target.test.\nx.n NS ns.test.\nx.n DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
    ),
    ("a DNAME at the apex", "RFC 6672 §2.3", "@ DNAME target.test."),
    ("a DNAME at the apex above data", "RFC 6672 §2.4", "@ DNAME target.test.\nx A 192.0.2.1\nd NS ns.x"),
    ("a DNAME into its own tree", "RFC 6672 §2.2", "n DNAME m\nm DNAME x.n"),
    ("a DNAME at a wildcard", "RFC 6672 §3.3", "*.n DNAME target.test."),
    ("NS at a wildcard", "RFC 4592 §4.2", "*.n NS ns.test."),
    (
        "DS at a wildcard",
        "RFC 4592 §4.6",
        "*.n NS ns.test.\n*.n DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "DS without NS",
        "RFC 4035 §2.4",
        "x DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
    ),
    ("DS with an unknown digest", "RFC 4509 §3", "s NS ns.test.\ns DS 1 13 99 00ff"),
    (
        "DS with an unknown algorithm",
        "RFC 4035 §5.2",
        "s NS ns.test.\ns DS 1 199 2 0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "DS with the SHA-1, SHA-256 and SHA-384 digests",
        "RFC 4509 §3",
        "s NS ns.test.\ns DS 1 13 1 0000000000000000000000000000000000000000\ns DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\ns DS 1 13 4 000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    ),
    ("DS with a digest of the wrong length", "RFC 4034 §5.1.4", "s NS ns.test.\ns DS 1 13 2 0011"),
    ("DS of algorithm 0", "RFC 8078 §4", "s NS ns.test.\ns DS 0 0 0 00"),
    (
        "DS records of many keys",
        "RFC 4034 §5.2",
        "s NS ns.test.\ns DS 1 8 2 0000000000000000000000000000000000000000000000000000000000000000\ns DS 2 13 2 0000000000000000000000000000000000000000000000000000000000000000\ns DS 3 15 2 0000000000000000000000000000000000000000000000000000000000000000\ns DS 65535 18 2 0000000000000000000000000000000000000000000000000000000000000000",
    ),
    ("one server for many delegations", "RFC 4035 §2.2", "a NS ns.a\nb NS ns.a\nc NS ns.a\nns.a A 192.0.2.1"),
    ("a delegation to the zone's own apex", "RFC 1034 §4.2", "d NS @\n@ A 192.0.2.1"),
    ("the apex as its own server", "RFC 1034 §4.2", "@ NS @\n@ A 192.0.2.1"),
    (
        "CDS and CDNSKEY at signalling names",
        "RFC 9615 §2",
        "_dsboot.child.test._signal.ns1 CDS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n\
        _dsboot.child.test._signal.ns1 CDNSKEY 257 3 13 AAAA",
    ),
    (
        "CDS below a cut",
        "RFC 4035 §2.2",
        "d NS ns.test.\nx.d CDS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\nx.d DNSKEY 257 3 13 AAAA",
    ),
    ("a DNSKEY that is no zone key away from the apex", "RFC 4034 §2.1.1", "host DNSKEY 0 3 13 AAAA"),
];
