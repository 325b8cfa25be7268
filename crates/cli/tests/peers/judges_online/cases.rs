//! The zone, the questions, and their expected results.

pub(crate) const ORIGIN: &str = "modes.example.";

/// Every kind of response. `CHILD` is replaced with the address of the children's servers, `DS`
/// with the RDATA of the secure child's DS record.
pub(crate) const ZONE: &str = "$ORIGIN modes.example.\n$TTL 3600\n@ SOA ns1 hostmaster 7 3600 300 3600000 900\n@ NS ns1\n\
    @ MX 1 ns1\nns1 A 192.0.2.1\nwww A 192.0.2.2\nwww AAAA 2001:db8::2\nMixed.Case TXT \"t\"\n\
    a.b.c.d.e.deep TXT \"leaf\"\n*.w TXT \"w\"\n*.w MX 1 ns1\nexact.w A 192.0.2.3\n*.wc CNAME www\na.*.hollow TXT \"t\"\n\
    *.high.low TXT \"h\"\nalias CNAME www\nalias2 CNAME alias\nlost CNAME gone\nbare CNAME e.deep\nwild CNAME x.y.w\n\
    tree DNAME w\nlimb DNAME deep\nzz A 192.0.2.4\n0 A 192.0.2.5\n\
    unsigned NS ns.unsigned\nns.unsigned A CHILD\nun.lone NS ns.elsewhere.test.\n\
    secure NS ns.secure\nns.secure A CHILD\nsecure DS DS\n";

const A: u16 = 1;
const NS: u16 = 2;
const SOA: u16 = 6;
const MX: u16 = 15;
const TXT: u16 = 16;
const AAAA: u16 = 28;
const DS: u16 = 43;
const DNSKEY: u16 = 48;

/// The kind of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Answer,
    /// From a wildcard, directly or after aliases.
    Expanded,
    NoData,
    /// NODATA of a name that a wildcard matches, or after an expanded alias.
    WildcardNoData,
    /// NODATA for DS at a delegation without DS.
    DsNoData,
    NxDomain,
    /// In the signed child, after a referral.
    BehindSecure,
    /// In the unsigned child, after a referral.
    BehindUnsigned,
}

/// A question.
pub(crate) struct Case {
    /// Relative to the origin; empty for the apex.
    pub(crate) name: &'static str,
    pub(crate) rtype: u16,
    pub(crate) kind: Kind,
    /// Whether an alias precedes the response of this kind.
    pub(crate) is_alias: bool,
}

const fn case(name: &'static str, rtype: u16, kind: Kind) -> Case {
    Case { name, rtype, kind, is_alias: false }
}

const fn alias(name: &'static str, rtype: u16, kind: Kind) -> Case {
    Case { name, rtype, kind, is_alias: true }
}

/// Placeholders for long names: a label of 63 octets 255, a label of 63 octets 0, a name of 255
/// octets.
const LAST_LABEL: &str = "LAST";
const FIRST_LABEL: &str = "FIRST";
const LONGEST: &str = "LONGEST";

impl Case {
    /// The complete name.
    pub(crate) fn full_name(&self) -> String {
        match self.name {
            "" => ORIGIN.to_owned(),
            LAST_LABEL => format!("{}.{ORIGIN}", "\\255".repeat(63)),
            FIRST_LABEL => format!("{}.{ORIGIN}", "\\000".repeat(63)),
            LONGEST => {
                let label = "x".repeat(63);
                // 255 octets minus the origin's 15, minus three labels of 64, minus a length octet.
                format!("{}.{label}.{label}.{label}.{ORIGIN}", "x".repeat(255 - 15 - 3 * 64 - 1))
            }
            name => format!("{name}.{ORIGIN}"),
        }
    }
}

pub(crate) const CASES: &[Case] = &[
    // The apex, and existing names at every depth.
    case("", SOA, Kind::Answer),
    case("", NS, Kind::Answer),
    case("", MX, Kind::Answer),
    case("", DNSKEY, Kind::Answer),
    case("", TXT, Kind::NoData),
    case("www", A, Kind::Answer),
    case("WWW", AAAA, Kind::Answer),
    case("mixed.case", TXT, Kind::Answer),
    case("a.b.c.d.e.deep", TXT, Kind::Answer),
    case("exact.w", A, Kind::Answer),
    case("*.w", TXT, Kind::Answer),
    case("secure", DS, Kind::Answer),
    // NODATA.
    case("www", TXT, Kind::NoData),
    case("ns1", AAAA, Kind::NoData),
    case("www", DS, Kind::NoData),
    case("a.b.c.d.e.deep", A, Kind::NoData),
    case("*.w", A, Kind::NoData),
    case("exact.w", TXT, Kind::NoData),
    // Empty non-terminals.
    case("deep", A, Kind::NoData),
    case("e.deep", A, Kind::NoData),
    case("d.e.deep", TXT, Kind::NoData),
    case("c.d.e.deep", A, Kind::NoData),
    case("b.c.d.e.deep", A, Kind::NoData),
    case("hollow", A, Kind::NoData),
    case("*.hollow", A, Kind::NoData),
    case("low", A, Kind::NoData),
    // Wildcards.
    case("x.w", TXT, Kind::Expanded),
    case("a.b.c.w", MX, Kind::Expanded),
    case("x.high.low", TXT, Kind::Expanded),
    alias("x.wc", A, Kind::Expanded),
    case("x.w", A, Kind::WildcardNoData),
    case("a.b.c.w", AAAA, Kind::WildcardNoData),
    case("x.hollow", TXT, Kind::WildcardNoData),
    case("y.x.hollow", A, Kind::WildcardNoData),
    alias("x.wc", TXT, Kind::WildcardNoData),
    // DS at delegations without DS.
    case("unsigned", DS, Kind::DsNoData),
    case("un.lone", DS, Kind::DsNoData),
    // Alias chains inside the zone.
    alias("alias", A, Kind::Answer),
    alias("alias2", A, Kind::Answer),
    alias("alias", TXT, Kind::NoData),
    alias("bare", A, Kind::NoData),
    alias("lost", A, Kind::NxDomain),
    alias("wild", TXT, Kind::Expanded),
    alias("wild", A, Kind::WildcardNoData),
    alias("exact.tree", A, Kind::Answer),
    alias("x.tree", TXT, Kind::Expanded),
    alias("x.tree", A, Kind::WildcardNoData),
    alias("a.b.c.d.e.limb", TXT, Kind::Answer),
    alias("c.d.e.limb", A, Kind::NoData),
    alias("x.limb", A, Kind::NxDomain),
    // Missing names at every depth.
    case("gone", A, Kind::NxDomain),
    case("x.y.z.gone", TXT, Kind::NxDomain),
    case("x.www", A, Kind::NxDomain),
    case("x.deep", A, Kind::NxDomain),
    case("x.e.deep", A, Kind::NxDomain),
    case("x.y.d.e.deep", A, Kind::NxDomain),
    case("x.c.d.e.deep", A, Kind::NxDomain),
    case("x.a.b.c.d.e.deep", A, Kind::NxDomain),
    case("x.exact.w", TXT, Kind::NxDomain),
    case("x.low", A, Kind::NxDomain),
    case("*.gone", A, Kind::NxDomain),
    case("*", A, Kind::NxDomain),
    // Names before and after all names of the zone, and names of the maximum length.
    case("\\000", A, Kind::NxDomain),
    case("\\000.\\000", A, Kind::NxDomain),
    case("!", A, Kind::NxDomain),
    case("-", A, Kind::NxDomain),
    case("zzz", A, Kind::NxDomain),
    case("\\255\\255", A, Kind::NxDomain),
    case(LAST_LABEL, A, Kind::NxDomain),
    case(FIRST_LABEL, A, Kind::NxDomain),
    case(LONGEST, A, Kind::NxDomain),
    // Names below delegations.
    case("host.unsigned", A, Kind::BehindUnsigned),
    case("host.secure", A, Kind::BehindSecure),
];
