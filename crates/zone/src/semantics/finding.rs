//! Results of the semantic checks.

use nonesuch_crypto::DigestType;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::collections::BTreeMap;

/// A problem of an RRset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{owner} {rtype}: {problem}")]
pub struct Finding {
    /// Owner of the RRset.
    pub owner: Name,
    /// Type of the RRset.
    pub rtype: Rtype,
    /// The problem.
    pub problem: Problem,
}

/// A problem of an RRset. It does not prevent serving the zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The target of an NS, MX or SRV record is a name in the zone without an address
    /// (RFC 1912 §2.4, §2.8).
    #[error("{target} has no A or AAAA record in this zone: add one, or correct the name")]
    TargetHasNoAddress {
        /// The target.
        target: Name,
    },
    /// The target of an NS, MX or SRV record is an alias (RFC 2181 §10.3, RFC 2782).
    #[error("{target} is an alias: use the target of its CNAME record instead")]
    TargetIsAlias {
        /// The target.
        target: Name,
    },
    /// The target of an NS, MX or SRV record is below a DNAME record and therefore an alias
    /// (RFC 6672 §2.3).
    #[error("{target} is an alias, because it is below a DNAME record: use a name that has addresses")]
    TargetBelowDname {
        /// The target.
        target: Name,
    },
    /// The target of an NS, MX, SRV or PTR record has the form of an IPv4 address.
    #[error("{target} is an address, not a name: use the name of the host")]
    TargetIsAddress {
        /// The target.
        target: Name,
    },
    /// The target of an NS, MX, SRV or PTR record, or the primary server in the SOA record, is not
    /// a hostname (RFC 1123 §2.1).
    #[error(
        "{target} is not a hostname: a label must consist of letters, digits and inner hyphens (RFC 1123 section 2.1)"
    )]
    TargetNotHostname {
        /// The target.
        target: Name,
    },
    /// The owner of an A, AAAA or MX record is not a hostname (RFC 1123 §2.1).
    #[error(
        "the owner is not a hostname: a label must consist of letters, digits and inner hyphens (RFC 1123 section 2.1)"
    )]
    OwnerNotHostname,
    /// A name server of a delegation is in the delegated zone and has no address in this zone, so
    /// resolvers cannot reach it (RFC 9471 §2.1).
    #[error("glue is missing: {target} has no A or AAAA record; add one, or remove the name server")]
    MissingGlue {
        /// The name server.
        target: Name,
    },
    /// An address at or below a zone cut to which no NS record of the zone refers.
    #[error(
        "occluded by the delegation of {cut}, and not glue, because no NS record refers to this name: remove the record"
    )]
    UnusedGlue {
        /// The zone cut.
        cut: Name,
    },
    /// Records at or below a zone cut that belong in the delegated zone (RFC 1034 §4.2.1).
    #[error("occluded by the delegation of {cut}: move the record to that zone, or remove it")]
    BelowCut {
        /// The zone cut.
        cut: Name,
    },
    /// Records below a DNAME record (RFC 6672 §2.4).
    #[error("occluded by the DNAME record of {dname}: remove this record (RFC 6672 section 2.4)")]
    BelowDname {
        /// Owner of the DNAME record.
        dname: Name,
    },
    /// A DNAME record and NS records at one name other than the apex (RFC 6672 §2.3).
    #[error("a name below the apex has DNAME and NS records: remove one of the types (RFC 6672 section 2.3)")]
    DnameBesideNs,
    /// A DS record without a delegation (RFC 4035 §2.4).
    #[error(
        "the name has a DS record, but is not a delegation, because it has no NS record: remove the DS record (RFC 4035 section 2.4)"
    )]
    DsWithoutNs,
    /// The digest type of a DS record is unknown. Validators ignore the record (RFC 4509 §3).
    #[error("DS {tag} has the unknown digest type {}: validators ignore it", digest_type.0)]
    UnknownDigestType {
        /// Key tag in the DS record.
        tag: u16,
        /// Digest type in the DS record.
        digest_type: DigestType,
    },
    /// The length of the digest in a DS record is wrong for its digest type.
    #[error("DS {tag} has a {digest_type} digest of {found} octets, not {expected}: it matches no key")]
    DigestLength {
        /// Key tag in the DS record.
        tag: u16,
        /// Digest type in the DS record.
        digest_type: DigestType,
        /// Length for this digest type, in octets.
        expected: usize,
        /// Length in the DS record, in octets.
        found: usize,
    },
    /// CDS records without CDNSKEY records, or the reverse. Some parents read CDS, others CDNSKEY
    /// (RFC 7344 §4).
    #[error(
        "missing {missing} records: publish CDS and CDNSKEY records, because a parent may read only one of the types (RFC 7344 section 4)"
    )]
    OneOfCdsAndCdnskey {
        /// The missing type.
        missing: Rtype,
    },
    /// A label `*` that is not the first label. The name is not a wildcard (RFC 4592 §2.1.1).
    #[error("the label * is not the first label: the name is not a wildcard (RFC 4592 section 2.1.1)")]
    InternalWildcard,
    /// The TTL exceeds the expire time of the SOA record. Caches can then use the records for a
    /// longer time than a secondary that has lost its primary.
    #[error(
        "the TTL {ttl} s is greater than the SOA expire time {expire} s: decrease the TTL, or increase the expire time"
    )]
    TtlAboveExpire {
        /// TTL of the RRset, in seconds.
        ttl: u32,
        /// Expire time, in seconds.
        expire: u32,
    },
    /// The retry time of the SOA record exceeds its refresh time (RFC 1912 §2.2).
    #[error("the retry time {retry} s is greater than the refresh time {refresh} s (RFC 1912 section 2.2)")]
    RetryAboveRefresh {
        /// Retry time, in seconds.
        retry: u32,
        /// Refresh time, in seconds.
        refresh: u32,
    },
    /// The expire time of the SOA record is so short that a secondary has no time for a second
    /// attempt (RFC 1912 §2.2).
    #[error(
        "the expire time {expire} s is less than refresh time plus retry time, {required} s: the zone expires \
        on secondaries after one failed refresh (RFC 1912 section 2.2)"
    )]
    ExpireTooShort {
        /// Expire time, in seconds.
        expire: u32,
        /// Refresh time plus retry time, in seconds.
        required: u64,
    },
    /// Caches store negative answers for more than one day (RFC 2308 §5).
    #[error(
        "resolvers cache negative responses for {ttl} s: reduce this to at most one day, 86400 s (RFC 2308 section 5)"
    )]
    LongNegativeTtl {
        /// The lower of the TTL and the minimum field of the SOA record, in seconds.
        ttl: u32,
    },
}

impl Problem {
    /// Returns a stable identifier of the kind of problem: words joined with hyphens.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TargetHasNoAddress { .. } => "target-has-no-address",
            Self::TargetIsAlias { .. } => "target-is-alias",
            Self::TargetBelowDname { .. } => "target-below-dname",
            Self::TargetIsAddress { .. } => "target-is-address",
            Self::TargetNotHostname { .. } => "target-not-hostname",
            Self::OwnerNotHostname => "owner-not-hostname",
            Self::MissingGlue { .. } => "missing-glue",
            Self::UnusedGlue { .. } => "unused-glue",
            Self::BelowCut { .. } => "below-cut",
            Self::BelowDname { .. } => "below-dname",
            Self::DnameBesideNs => "dname-beside-ns",
            Self::DsWithoutNs => "ds-without-ns",
            Self::UnknownDigestType { .. } => "unknown-digest-type",
            Self::DigestLength { .. } => "digest-length",
            Self::OneOfCdsAndCdnskey { .. } => "one-of-cds-and-cdnskey",
            Self::InternalWildcard => "internal-wildcard",
            Self::TtlAboveExpire { .. } => "ttl-above-expire",
            Self::RetryAboveRefresh { .. } => "retry-above-refresh",
            Self::ExpireTooShort { .. } => "expire-too-short",
            Self::LongNegativeTtl { .. } => "long-negative-ttl",
        }
    }

    /// Returns the target name of the records, or the name that occludes them.
    #[must_use]
    pub const fn target(&self) -> Option<&Name> {
        match self {
            Self::TargetHasNoAddress { target }
            | Self::TargetIsAlias { target }
            | Self::TargetBelowDname { target }
            | Self::TargetIsAddress { target }
            | Self::TargetNotHostname { target }
            | Self::MissingGlue { target } => Some(target),
            Self::UnusedGlue { cut } | Self::BelowCut { cut } => Some(cut),
            Self::BelowDname { dname } => Some(dname),
            _ => None,
        }
    }
}

/// The findings in a zone: the first ones of each kind, and the number of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Maximum number of findings of each kind in `list`.
    limit: usize,
    list: Vec<Finding>,
    /// Number of findings for each [`Problem::code`].
    counts: BTreeMap<&'static str, usize>,
}

impl Findings {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The first findings of each kind, in canonical order of the owners, then by type.
    #[must_use]
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// Number of findings for each [`Problem::code`].
    #[must_use]
    pub const fn counts(&self) -> &BTreeMap<&'static str, usize> {
        &self.counts
    }

    /// Total number of findings.
    #[must_use]
    pub fn total(&self) -> usize {
        self.counts.values().sum()
    }

    /// Returns lines for the log: a summary with all counts, then the first `max` findings.
    /// Without findings the list is empty.
    #[must_use]
    pub fn lines(&self, max: usize) -> Vec<String> {
        let total = self.total();
        if total == 0 {
            return Vec::new();
        }
        let counts: Vec<String> = self.counts.iter().map(|(code, count)| format!("{code} {count}")).collect();
        let summary = format!(
            "semantic checks: {total} finding{} ({}); `nonesuch zone verify --all FILE` lists all",
            if total == 1 { "" } else { "s" },
            counts.join(", ")
        );
        let findings = self.list.iter().take(max).map(|finding| format!("semantic checks: {finding}"));
        std::iter::once(summary).chain(findings).collect()
    }

    pub(super) fn add(&mut self, owner: NameRef<'_>, rtype: Rtype, problem: Problem) {
        let count = self.counts.entry(problem.code()).or_default();
        *count += 1;
        if *count <= self.limit {
            self.list.push(Finding { owner: owner.to_name(), rtype, problem });
        }
    }

    /// Appends the findings of other nodes. The limit applies to the sum.
    pub(super) fn append(&mut self, other: Self) {
        let mut counts = self.counts.clone();
        for finding in other.list {
            let count = counts.entry(finding.problem.code()).or_default();
            *count += 1;
            if *count <= self.limit {
                self.list.push(finding);
            }
        }
        for (code, count) in other.counts {
            *self.counts.entry(code).or_default() += count;
        }
    }

    pub(super) fn sort(&mut self) {
        self.list.sort_by(|a, b| a.owner.cmp(&b.owner).then(a.rtype.cmp(&b.rtype)));
    }
}
