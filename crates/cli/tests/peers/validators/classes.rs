//! The known differences between validators and the expected results.

use super::cases::Status::{self, Fails, Insecure, OtherRcode, Secure};

/// The program under test.
pub(super) const OURS: &str = "nonesuch";

/// A kind of difference.
pub(super) struct Class {
    /// The name in docs/differences.md.
    pub(super) name: &'static str,
    /// The programs with this difference.
    pub(super) programs: &'static [&'static str],
    /// The kinds of zones in which it occurs.
    pub(super) kinds: &'static [&'static str],
    /// The expected status.
    pub(super) expected: Status,
    /// The statuses that the programs find.
    pub(super) found: &'static [Status],
    /// Whether it occurs in each comparison, with each of the programs and kinds. Otherwise it depends
    /// on the order of events.
    pub(super) is_certain: bool,
}

const UNBOUND: &str = "unbound";
const BIND: &str = "named";
const KNOT_RESOLVER: &str = "kresd";
const POWERDNS: &str = "pdns_recursor";

const fn always(
    name: &'static str,
    programs: &'static [&'static str],
    kinds: &'static [&'static str],
    expected: Status,
    found: &'static [Status],
) -> Class {
    Class { name, programs, kinds, expected, found, is_certain: true }
}

const fn sometimes(
    name: &'static str,
    programs: &'static [&'static str],
    kinds: &'static [&'static str],
    expected: Status,
    found: &'static [Status],
) -> Class {
    Class { is_certain: false, ..always(name, programs, kinds, expected, found) }
}

pub(super) const CLASSES: &[Class] = &[
    always(
        "secure-denial-with-unknown-algorithm",
        &[POWERDNS],
        &["algorithm-18", "algorithm-251"],
        Insecure,
        &[Secure],
    ),
    sometimes(
        "wildcard-answer-without-proof-from-cache",
        &[POWERDNS],
        &["expired-denial", "missing-denial", "unsigned-denial", "wildcard-without-proof", "wrong-next-name"],
        Fails,
        &[Secure],
    ),
    sometimes("wildcard-answer-without-proof-from-cache", &[BIND], &["too-few-labels"], Fails, &[Secure]),
    always(
        "denial-of-two-mechanisms",
        &[UNBOUND, BIND, KNOT_RESOLVER, POWERDNS],
        &["mixed-denial"],
        Fails,
        &[Secure],
    ),
    always(
        "iterations-above-500",
        &[UNBOUND, BIND, KNOT_RESOLVER, POWERDNS],
        &["nsec3-iterations-501", "excessive-nsec3-iterations"],
        Fails,
        &[Insecure],
    ),
    always("iterations-above-50", &[UNBOUND, BIND, POWERDNS], &["nsec3-iterations-51"], Insecure, &[Secure]),
    always("work-for-deep-names", &[BIND, KNOT_RESOLVER, POWERDNS], &["deep-nsec3"], Fails, &[Secure]),
    sometimes("work-for-deep-names", &[UNBOUND, OURS], &["deep-nsec3"], Fails, &[Secure]),
    always("cname-of-dname", &[UNBOUND, BIND, POWERDNS], &["forged-cname"], Fails, &[Secure]),
    sometimes("cname-of-dname", &[KNOT_RESOLVER, OURS], &["forged-cname"], Fails, &[Secure]),
    always(
        "unsigned-delegation-in-denial",
        &[UNBOUND, BIND, POWERDNS],
        &["delegation-bit-above-name"],
        Fails,
        &[Insecure],
    ),
    always("unknown-nsec3-flags", &[BIND, POWERDNS], &["unknown-nsec3-flags"], Fails, &[Secure]),
    sometimes("unknown-nsec3-flags", &[KNOT_RESOLVER], &["unknown-nsec3-flags"], Fails, &[Secure]),
    always("unknown-nsec3-hash", &[POWERDNS], &["unknown-nsec3-hash"], Fails, &[Secure]),
    always("unknown-nsec3-hash-at-wildcard", &[BIND], &["unknown-nsec3-hash"], Fails, &[Insecure]),
    always(
        "next-name-outside-zone",
        &[KNOT_RESOLVER, POWERDNS],
        &["next-name-outside-zone"],
        Fails,
        &[Secure],
    ),
    always(
        "wildcard-above-existing-name",
        &[KNOT_RESOLVER, POWERDNS],
        &["wildcard-too-high"],
        Fails,
        &[Secure],
    ),
    always("revoked-key", &[UNBOUND], &["revoked-key"], Fails, &[Secure]),
    always("reserved-key-flags", &[KNOT_RESOLVER], &["reserved-key-flags"], Secure, &[Fails]),
    always("sha-1-with-sha-256", &[UNBOUND], &["wrong-sha256-ds"], Fails, &[Secure]),
    always("number-of-records", &[BIND], &["large-rrset"], Secure, &[Fails]),
    always("number-of-failures", &[BIND], &["one-valid-signature"], Secure, &[Fails]),
    always(
        "zone-cut-at-empty-non-terminal",
        &[POWERDNS],
        &[
            "expired-denial",
            "missing-denial",
            "missing-next-closer",
            "unsigned-denial",
            "wildcard-without-proof",
            "wrong-next-name",
        ],
        Secure,
        &[Fails],
    ),
    always(
        "zone-cut-at-empty-non-terminal",
        &[POWERDNS],
        &["nsec3-iterations", "nsec3-iterations-500", "nsec3-iterations-501", "excessive-nsec3-iterations"],
        Secure,
        &[Insecure],
    ),
    always("address-of-root-server", &[POWERDNS], &["root"], Secure, &[Insecure]),
    sometimes("unsigned-denial-from-cache", &[KNOT_RESOLVER], &["unsigned-denial"], Fails, &[Secure]),
    sometimes(
        "wildcard-from-cache",
        &[KNOT_RESOLVER],
        &[
            "nsec3-iterations-51",
            "nsec3-iterations",
            "nsec3-iterations-500",
            "nsec3-iterations-501",
            "excessive-nsec3-iterations",
        ],
        Secure,
        &[Insecure],
    ),
    sometimes(
        "aggressive-use-at-faulty-delegation",
        &[OURS, KNOT_RESOLVER],
        &["no-ns-bit"],
        Fails,
        &[Secure, OtherRcode],
    ),
    sometimes(
        "aggressive-use-at-faulty-delegation",
        &[KNOT_RESOLVER],
        &["soa-bit-at-delegation"],
        Fails,
        &[Secure, OtherRcode],
    ),
];
