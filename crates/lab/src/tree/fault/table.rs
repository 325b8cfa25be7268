//! The table of all faults.

use super::{Fault, FaultScope, Outcome};

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
    /// The sections of the RFCs that determine the result.
    pub rule: &'static str,
}

const fn row(
    fault: Fault,
    name: &'static str,
    scope: FaultScope,
    outcome: Outcome,
    extended_error: Option<u16>,
    rule: &'static str,
) -> FaultEntry {
    FaultEntry { fault, name, scope, outcome, extended_error, rule }
}

/// All faults, in the order of the variants of [`Fault`].
pub static FAULTS: &[FaultEntry] = {
    use FaultScope::{Data, Delegation, Denial, Ds, Keys, Responses, Servers, Signatures};
    use Outcome::{Bogus, Failure, Insecure, Secure};
    &[
        row(Fault::ExpiredSignature, "expired-signature", Signatures, Bogus, Some(7), "RFC 4035 §5.3.1"),
        row(
            Fault::SignatureNotYetValid,
            "signature-not-yet-valid",
            Signatures,
            Bogus,
            Some(8),
            "RFC 4035 §5.3.1",
        ),
        row(Fault::ReversedValidity, "reversed-validity", Signatures, Bogus, Some(25), "RFC 4034 §3.1.5"),
        row(Fault::WrongSignature, "wrong-signature", Signatures, Bogus, Some(6), "RFC 4035 §5.3.3"),
        row(Fault::MalformedSignature, "malformed-signature", Signatures, Bogus, Some(6), "RFC 4035 §5.3.3"),
        row(Fault::MissingSignature, "missing-signature", Signatures, Bogus, Some(10), "RFC 4035 §2.2"),
        row(Fault::WrongLabels, "wrong-labels", Signatures, Bogus, Some(6), "RFC 4035 §5.3.1"),
        row(Fault::TooFewLabels, "too-few-labels", Signatures, Bogus, Some(12), "RFC 4035 §5.3.4"),
        row(Fault::WrongSigner, "wrong-signer", Signatures, Bogus, Some(6), "RFC 4035 §5.3.1"),
        row(Fault::SignerIsParent, "signer-is-parent", Signatures, Bogus, Some(6), "RFC 4035 §5.3.1"),
        row(Fault::WrongTypeCovered, "wrong-type-covered", Signatures, Bogus, Some(10), "RFC 4035 §5.3.1"),
        row(
            Fault::SignatureOfOtherName,
            "signature-of-other-name",
            Signatures,
            Bogus,
            Some(6),
            "RFC 4034 §3.1.8.1",
        ),
        row(
            Fault::ChangedOriginalTtl,
            "changed-original-ttl",
            Signatures,
            Bogus,
            Some(6),
            "RFC 4034 §3.1.8.1",
        ),
        row(Fault::TtlAboveOriginal, "ttl-above-original", Signatures, Secure, None, "RFC 4035 §5.3.3"),
        row(
            Fault::UnknownSignatureAlgorithm,
            "unknown-signature-algorithm",
            Signatures,
            Bogus,
            Some(9),
            "RFC 4035 §5.3.1",
        ),
        row(Fault::UnknownKeyTag, "unknown-key-tag", Signatures, Bogus, Some(9), "RFC 4035 §5.3.1"),
        row(Fault::OneValidSignature, "one-valid-signature", Signatures, Secure, None, "RFC 6840 §5.11"),
        row(Fault::CollidingKeyTags, "colliding-key-tags", Signatures, Bogus, Some(6), "RFC 4035 §5.3.1"),
        row(Fault::MissingDnskey, "missing-dnskey", Keys, Bogus, Some(9), "RFC 4035 §5.2"),
        row(Fault::UnsignedDnskey, "unsigned-dnskey", Keys, Bogus, Some(10), "RFC 4035 §5.2"),
        row(Fault::DnskeySignedByZsk, "dnskey-signed-by-zsk", Keys, Bogus, Some(9), "RFC 4035 §5.2"),
        row(Fault::NoZoneKeyFlag, "no-zone-key-flag", Keys, Bogus, Some(11), "RFC 4034 §2.1.1"),
        row(Fault::WrongProtocol, "wrong-protocol", Keys, Bogus, Some(9), "RFC 4034 §2.1.2"),
        row(Fault::RevokedKey, "revoked-key", Keys, Bogus, Some(9), "RFC 5011 §2.1"),
        row(Fault::NoSepFlag, "no-sep-flag", Keys, Secure, None, "RFC 4034 §2.1.1"),
        row(Fault::ReservedKeyFlags, "reserved-key-flags", Keys, Secure, None, "RFC 4034 §2.1.1"),
        row(Fault::DataSignedByKsk, "data-signed-by-ksk", Keys, Secure, None, "RFC 4035 §5.3.1"),
        row(Fault::CollidingKeyTag, "colliding-key-tag", Keys, Secure, None, "RFC 4035 §5.3.1"),
        row(Fault::UnknownAlgorithmKey, "unknown-algorithm-key", Keys, Secure, None, "RFC 6840 §5.11"),
        row(Fault::DsForUnsignedZone, "ds-for-unsigned-zone", Keys, Bogus, Some(9), "RFC 4035 §5.2"),
        row(Fault::DsMatchesNoKey, "ds-matches-no-key", Ds, Bogus, Some(9), "RFC 4035 §5.2"),
        row(Fault::DsForZsk, "ds-for-zsk", Ds, Bogus, Some(9), "RFC 4035 §5.2"),
        row(Fault::StandbyDs, "standby-ds", Ds, Secure, None, "RFC 4035 §5.2"),
        row(Fault::WrongDsDigest, "wrong-ds-digest", Ds, Bogus, Some(9), "RFC 4035 §5.2"),
        row(Fault::WrongDsTag, "wrong-ds-tag", Ds, Bogus, Some(9), "RFC 4034 §5.2"),
        row(Fault::DsAlgorithmMismatch, "ds-algorithm-mismatch", Ds, Bogus, Some(9), "RFC 4035 §5.2"),
        row(Fault::Sha1Ds, "sha1-ds", Ds, Secure, None, "RFC 4034 §5.1.4"),
        row(Fault::Sha384Ds, "sha384-ds", Ds, Secure, None, "RFC 6605 §2"),
        row(Fault::WrongSha1Ds, "wrong-sha1-ds", Ds, Secure, None, "RFC 4509 §3"),
        row(Fault::WrongSha256Ds, "wrong-sha256-ds", Ds, Bogus, Some(9), "RFC 4509 §3"),
        row(Fault::UnknownDsAlgorithm, "unknown-ds-algorithm", Ds, Insecure, Some(1), "RFC 4035 §5.2"),
        row(Fault::UnknownDsDigest, "unknown-ds-digest", Ds, Insecure, Some(2), "RFC 6840 §5.2"),
        row(
            Fault::KnownAndUnknownDsAlgorithm,
            "known-and-unknown-ds-algorithm",
            Ds,
            Secure,
            None,
            "RFC 4035 §5.2",
        ),
        row(Fault::KnownAndUnknownDsDigest, "known-and-unknown-ds-digest", Ds, Secure, None, "RFC 6840 §5.2"),
        row(
            Fault::WrongAndUnknownDsDigest,
            "wrong-and-unknown-ds-digest",
            Ds,
            Bogus,
            Some(9),
            "RFC 6840 §5.2",
        ),
        row(Fault::ManyDs, "many-ds", Ds, Secure, None, "RFC 4035 §5.2"),
        row(Fault::CollidingDs, "colliding-ds", Ds, Bogus, Some(9), "RFC 4035 §5.2"),
        row(Fault::UnsignedDs, "unsigned-ds", Delegation, Bogus, Some(10), "RFC 4035 §5.2"),
        row(Fault::ExpiredDs, "expired-ds", Delegation, Bogus, Some(7), "RFC 4035 §5.2"),
        row(Fault::MissingDsDenial, "missing-ds-denial", Delegation, Bogus, Some(12), "RFC 4035 §5.2"),
        row(Fault::DsBitWithoutDs, "ds-bit-without-ds", Delegation, Bogus, Some(6), "RFC 4035 §5.2"),
        row(Fault::NoNsBit, "no-ns-bit", Delegation, Bogus, Some(6), "RFC 6840 §4.4"),
        row(Fault::SoaBitAtDelegation, "soa-bit-at-delegation", Delegation, Bogus, Some(6), "RFC 6840 §4.4"),
        row(Fault::MissingDenial, "missing-denial", Denial, Bogus, Some(12), "RFC 4035 §5.4"),
        row(Fault::UnsignedDenial, "unsigned-denial", Denial, Bogus, Some(10), "RFC 4035 §5.4"),
        row(Fault::ExpiredDenial, "expired-denial", Denial, Bogus, Some(7), "RFC 4035 §5.3.1"),
        row(Fault::WrongNextName, "wrong-next-name", Denial, Bogus, Some(12), "RFC 4035 §5.4"),
        row(Fault::NextNameOutsideZone, "next-name-outside-zone", Denial, Bogus, Some(6), "RFC 4034 §4.1.1"),
        row(
            Fault::MissingWildcardDenial,
            "missing-wildcard-denial",
            Denial,
            Bogus,
            Some(12),
            "RFC 4035 §5.4, RFC 5155 §8.4",
        ),
        row(
            Fault::MissingNextCloser,
            "missing-next-closer",
            Denial,
            Bogus,
            Some(12),
            "RFC 4035 §5.4, RFC 5155 §8.3",
        ),
        row(
            Fault::MissingClosestEncloser,
            "missing-closest-encloser",
            Denial,
            Bogus,
            Some(12),
            "RFC 5155 §8.3",
        ),
        row(Fault::LyingBitmap, "lying-bitmap", Denial, Bogus, Some(6), "RFC 4035 §5.4"),
        row(Fault::RemovedData, "removed-data", Denial, Bogus, Some(6), "RFC 4035 §5.4, RFC 5155 §8.4"),
        row(
            Fault::DelegationBitAboveName,
            "delegation-bit-above-name",
            Denial,
            Bogus,
            Some(6),
            "RFC 6840 §4.1, RFC 5155 §8.3",
        ),
        row(
            Fault::DnameBitAboveName,
            "dname-bit-above-name",
            Denial,
            Bogus,
            Some(6),
            "RFC 6840 §4.1, RFC 5155 §8.3",
        ),
        row(Fault::UnknownNsec3Hash, "unknown-nsec3-hash", Denial, Bogus, Some(6), "RFC 5155 §8.1"),
        row(Fault::UnknownNsec3Flags, "unknown-nsec3-flags", Denial, Bogus, Some(6), "RFC 5155 §8.2"),
        row(Fault::MixedNsec3Parameters, "mixed-nsec3-parameters", Denial, Bogus, Some(6), "RFC 5155 §8.2"),
        row(Fault::Nsec3Iterations51, "nsec3-iterations-51", Denial, Insecure, Some(27), "RFC 9276 §3.2"),
        row(Fault::Nsec3Iterations, "nsec3-iterations", Denial, Insecure, Some(27), "RFC 9276 §3.2"),
        row(Fault::Nsec3Iterations500, "nsec3-iterations-500", Denial, Insecure, Some(27), "RFC 9276 §3.2"),
        row(Fault::Nsec3Iterations501, "nsec3-iterations-501", Denial, Bogus, Some(27), "RFC 9276 §3.2"),
        row(
            Fault::ExcessiveNsec3Iterations,
            "excessive-nsec3-iterations",
            Denial,
            Bogus,
            Some(27),
            "RFC 9276 §3.2",
        ),
        row(Fault::DeepNsec3, "deep-nsec3", Denial, Failure, None, "RFC 9276 §3.2"),
        row(
            Fault::WildcardWithoutProof,
            "wildcard-without-proof",
            Denial,
            Bogus,
            Some(12),
            "RFC 4035 §5.3.4",
        ),
        row(Fault::WildcardTooHigh, "wildcard-too-high", Denial, Bogus, Some(12), "RFC 4035 §5.3.4"),
        row(Fault::LameDelegation, "lame-delegation", Servers, Failure, Some(22), "RFC 1034 §5.3.3"),
        row(Fault::UnreachableServer, "unreachable-server", Servers, Failure, Some(22), "RFC 1034 §5.3.3"),
        row(Fault::MissingGlue, "missing-glue", Servers, Failure, Some(22), "RFC 1034 §4.2.1"),
        row(Fault::UnsignedCname, "unsigned-cname", Data, Bogus, Some(10), "RFC 4035 §2.2"),
        row(Fault::Dname, "dname", Data, Secure, None, "RFC 6672 §5.3.1"),
        row(Fault::UnsignedDname, "unsigned-dname", Data, Bogus, Some(10), "RFC 6672 §5.3.1"),
        row(Fault::ForgedCname, "forged-cname", Responses, Bogus, Some(6), "RFC 6672 §5.3.1"),
        row(Fault::MixedDenial, "mixed-denial", Responses, Bogus, Some(6), "RFC 5155 §10.4"),
        row(Fault::CnameLoop, "cname-loop", Data, Failure, None, "RFC 1034 §3.6.2"),
        row(Fault::LargeRrset, "large-rrset", Data, Secure, None, "RFC 2181 §5.1"),
    ]
};

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
        let document = include_str!("../../../../../docs/local-trees.md");
        for row in FAULTS {
            let code = row.extended_error.map_or_else(|| "–".to_owned(), |code| code.to_string());
            let cells = format!("| `{}` | {} | {code} | {} |", row.name, row.outcome, row.rule);
            assert!(document.contains(&cells), "docs/local-trees.md: {cells}");
        }
    }
}
