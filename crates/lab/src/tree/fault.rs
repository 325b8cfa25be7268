//! The faults that a tree can contain, each with the result that a validator should report.

use std::fmt;
use std::str::FromStr;

/// A planted fault. [`FAULTS`] has its name, its meaning and the expected result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// The signatures expired a week before the time of the tree.
    ExpiredSignature,
    /// The signatures become valid a week after the time of the tree.
    SignatureNotYetValid,
    /// The signatures expire before their inception.
    ReversedValidity,
    /// The last octet of each signature is wrong.
    WrongSignature,
    /// The RRsets have no signatures.
    MissingSignature,
    /// The Labels field of the signatures exceeds the number of labels of the owner.
    WrongLabels,
    /// The Signer's Name field of the signatures is not the apex.
    WrongSigner,
    /// The signatures have a key tag that no DNSKEY record has.
    UnknownKeyTag,
    /// KeyTrap (CVE-2023-50387): many DNSKEY records with the key tag of the signing key, and many
    /// signatures with this tag, none of which is valid.
    CollidingKeyTags,
    /// The zone has no DNSKEY RRset.
    MissingDnskey,
    /// The DNSKEY records do not have the Zone Key flag; the DS records match them.
    NoZoneKeyFlag,
    /// The Protocol field of the DNSKEY records is 4; the DS records match them.
    WrongProtocol,
    /// The keys with the SEP flag are revoked (RFC 5011); the DS records match the revoked form.
    RevokedKey,
    /// The DS records are for a key that the zone does not publish.
    DsMatchesNoKey,
    /// The DS records have the tag of the key, and a wrong digest.
    WrongDsDigest,
    /// The DS records have the unknown algorithm number 200.
    UnknownDsAlgorithm,
    /// The DS records have the unknown digest type 200.
    UnknownDsDigest,
    /// Many DS records with the tag of the key, all with wrong digests.
    CollidingDs,
    /// The zone is not signed, and the parent has DS records for it.
    DsForUnsignedZone,
    /// The NSEC, NSEC3 or NSEC5 records are missing.
    MissingDenial,
    /// The bit map of one NSEC, NSEC3 or NSEC5 record lists a type that the name does not have.
    LyingBitmap,
    /// The next name of each NSEC record is outside the zone.
    NextNameOutsideZone,
    /// The NSEC3 records have the unknown hash algorithm 2.
    UnknownNsec3Hash,
    /// The NSEC3 records have unknown flags.
    UnknownNsec3Flags,
    /// The zone has 200 NSEC3 iterations: more than validators compute (RFC 9276 §3.2).
    Nsec3Iterations,
    /// The NSEC3 records have 2,500 iterations.
    ExcessiveNsec3Iterations,
    /// Closest encloser proofs of names with many labels, at 50 iterations (CVE-2023-50868).
    DeepNsec3,
    /// Answers from a wildcard come without the proof that no closer match exists.
    WildcardWithoutProof,
    /// The nameserver of the zone, according to the parent, is the server of the parent.
    LameDelegation,
    /// No server listens on the address of the nameserver.
    UnreachableServer,
    /// The parent has no address of the nameserver, whose name is in the zone.
    MissingGlue,
    /// Two CNAME records refer to each other.
    CnameLoop,
    /// An RRset of 150 records, which is not a fault: validators have limits near 100.
    LargeRrset,
}

/// What a fault changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultScope {
    /// The signatures over the selected RRsets, or over all RRsets if none is selected.
    Signatures,
    /// The DNSKEY records of the zone.
    Keys,
    /// The DS records in the parent.
    Ds,
    /// The NS or address records in the parent, or the server.
    Servers,
    /// The chain of denial records.
    Denial,
    /// Records that the fault adds.
    Data,
}

/// The expected result of the resolution of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The answer is Secure.
    Secure,
    /// The answer is Insecure.
    Insecure,
    /// The answer is Bogus; a resolver returns SERVFAIL.
    Bogus,
    /// The name cannot be resolved, or only with more work than a validator does; a resolver
    /// returns SERVFAIL.
    Failure,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Secure => "secure",
            Self::Insecure => "insecure",
            Self::Bogus => "bogus",
            Self::Failure => "failure",
        })
    }
}

/// One row of [`FAULTS`].
#[derive(Clone, Copy, Debug)]
pub struct FaultEntry {
    /// The fault.
    pub fault: Fault,
    /// The name in descriptions.
    pub name: &'static str,
    /// What the fault changes.
    pub scope: FaultScope,
    /// The expected result for the names that the fault affects.
    pub outcome: Outcome,
    /// The code of the extended DNS error (RFC 8914 and its IANA registry) that a validator should
    /// give; `None` if no code fits.
    pub extended_error: Option<u16>,
}

const fn row(
    fault: Fault,
    name: &'static str,
    scope: FaultScope,
    outcome: Outcome,
    extended_error: Option<u16>,
) -> FaultEntry {
    FaultEntry { fault, name, scope, outcome, extended_error }
}

/// All faults, in the order of the variants of [`Fault`].
pub static FAULTS: &[FaultEntry] = {
    use FaultScope::{Data, Denial, Ds, Keys, Servers, Signatures};
    use Outcome::{Bogus, Failure, Insecure, Secure};
    &[
        row(Fault::ExpiredSignature, "expired-signature", Signatures, Bogus, Some(7)),
        row(Fault::SignatureNotYetValid, "signature-not-yet-valid", Signatures, Bogus, Some(8)),
        row(Fault::ReversedValidity, "reversed-validity", Signatures, Bogus, Some(25)),
        row(Fault::WrongSignature, "wrong-signature", Signatures, Bogus, Some(6)),
        row(Fault::MissingSignature, "missing-signature", Signatures, Bogus, Some(10)),
        row(Fault::WrongLabels, "wrong-labels", Signatures, Bogus, Some(6)),
        row(Fault::WrongSigner, "wrong-signer", Signatures, Bogus, Some(6)),
        row(Fault::UnknownKeyTag, "unknown-key-tag", Signatures, Bogus, Some(9)),
        row(Fault::CollidingKeyTags, "colliding-key-tags", Signatures, Bogus, Some(6)),
        row(Fault::MissingDnskey, "missing-dnskey", Keys, Bogus, Some(9)),
        row(Fault::NoZoneKeyFlag, "no-zone-key-flag", Keys, Bogus, Some(11)),
        row(Fault::WrongProtocol, "wrong-protocol", Keys, Bogus, Some(9)),
        row(Fault::RevokedKey, "revoked-key", Keys, Bogus, Some(9)),
        row(Fault::DsMatchesNoKey, "ds-matches-no-key", Ds, Bogus, Some(9)),
        row(Fault::WrongDsDigest, "wrong-ds-digest", Ds, Bogus, Some(9)),
        row(Fault::UnknownDsAlgorithm, "unknown-ds-algorithm", Ds, Insecure, Some(1)),
        row(Fault::UnknownDsDigest, "unknown-ds-digest", Ds, Insecure, Some(2)),
        row(Fault::CollidingDs, "colliding-ds", Ds, Bogus, Some(9)),
        row(Fault::DsForUnsignedZone, "ds-for-unsigned-zone", Keys, Bogus, Some(9)),
        row(Fault::MissingDenial, "missing-denial", Denial, Bogus, Some(12)),
        row(Fault::LyingBitmap, "lying-bitmap", Denial, Bogus, Some(6)),
        row(Fault::NextNameOutsideZone, "next-name-outside-zone", Denial, Bogus, Some(6)),
        row(Fault::UnknownNsec3Hash, "unknown-nsec3-hash", Denial, Bogus, Some(6)),
        row(Fault::UnknownNsec3Flags, "unknown-nsec3-flags", Denial, Bogus, Some(6)),
        row(Fault::Nsec3Iterations, "nsec3-iterations", Denial, Insecure, Some(27)),
        row(Fault::ExcessiveNsec3Iterations, "excessive-nsec3-iterations", Denial, Bogus, Some(27)),
        row(Fault::DeepNsec3, "deep-nsec3", Denial, Failure, None),
        row(Fault::WildcardWithoutProof, "wildcard-without-proof", Denial, Bogus, Some(12)),
        row(Fault::LameDelegation, "lame-delegation", Servers, Failure, Some(22)),
        row(Fault::UnreachableServer, "unreachable-server", Servers, Failure, Some(22)),
        row(Fault::MissingGlue, "missing-glue", Servers, Failure, Some(22)),
        row(Fault::CnameLoop, "cname-loop", Data, Failure, None),
        row(Fault::LargeRrset, "large-rrset", Data, Secure, None),
    ]
};

impl Fault {
    /// The row of [`FAULTS`].
    #[must_use]
    pub fn entry(self) -> &'static FaultEntry {
        // A test checks that the rows have the order of the variants.
        &FAULTS[self as usize]
    }

    /// What the fault changes.
    #[must_use]
    pub fn scope(self) -> FaultScope {
        self.entry().scope
    }
}

impl fmt::Display for Fault {
    /// Writes the name in descriptions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.entry().name)
    }
}

/// The text is not the name of a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault '{text}': known are {}", FAULTS.iter().map(|row| row.name).collect::<Vec<_>>().join(", "))]
pub struct UnknownFault {
    text: String,
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let found = FAULTS.iter().find(|row| row.name.eq_ignore_ascii_case(text));
        found.map(|row| row.fault).ok_or_else(|| UnknownFault { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_variants_and_names_are_parsed() {
        for row in FAULTS {
            assert_eq!(row.fault.entry().name, row.name);
            assert_eq!(row.fault.to_string().to_uppercase().parse(), Ok(row.fault));
        }
        assert!("none".parse::<Fault>().is_err());
    }

    #[test]
    fn the_document_lists_every_fault() {
        let document = include_str!("../../../../docs/local-trees.md");
        for row in FAULTS {
            let code = row.extended_error.map_or_else(|| "–".to_owned(), |code| code.to_string());
            let cells = format!("| `{}` | {} | {code} |", row.name, row.outcome);
            assert!(document.contains(&cells), "docs/local-trees.md: {cells}");
        }
    }
}
