//! A zone whose keys roll, for the tests: fixed P-256 keys and signed DNSKEY RRsets.

use super::{Change, KeyEvent, ManagedAnchor, Observation, Outcome};
use crate::trust_anchors::{AnchorRecord, ZoneAnchor};
use nonesuch_crypto::{Algorithm, DigestType, PrivateKey, key_tag};
use nonesuch_dnssec::keys::{REVOKE, SEP, ZONE_KEY, ds_rdata};
use nonesuch_dnssec::rrsig::{Rrsig, push_signed_data};
use nonesuch_proto::{Name, Rtype};

pub(super) const DAY: u64 = 86_400;
/// The begin of the tests, 2026-10-01.
pub(super) const START: u64 = 1_790_812_800;
/// The original TTL of the RRset.
pub(super) const TTL: u32 = 172_800;
/// The time from the signature to its expiration.
pub(super) const VALIDITY: u32 = 14 * 86_400;

pub(super) fn apex() -> Name {
    "example.".parse().unwrap()
}

/// A key pair with flags.
pub(super) struct TestKey {
    private: PrivateKey,
    flags: u16,
}

/// Returns the KSK with the number `number`, from 1.
pub(super) fn ksk(number: u8) -> TestKey {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    // Base64 of 32 equal octets, the private key.
    let bits = u32::from(number) * 0x01_01_01;
    let group: String =
        [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(bits >> shift & 63) as usize])).iter().collect();
    let last = char::from(ALPHABET[(u32::from(number) << 2 & 63) as usize]);
    let text = format!(
        "Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: {}{}{last}=\n",
        group.repeat(10),
        &group[..2]
    );
    TestKey { private: PrivateKey::from_bind(&text).unwrap(), flags: ZONE_KEY | SEP }
}

impl TestKey {
    /// Returns the key with other flags.
    pub(super) fn with_flags(self, flags: u16) -> Self {
        Self { flags, ..self }
    }

    /// Returns the RDATA of the DNSKEY record.
    pub(super) fn rdata(&self) -> Vec<u8> {
        self.form(self.flags)
    }

    /// Returns the RDATA of the DNSKEY record with the REVOKE flag.
    pub(super) fn revoked(&self) -> Vec<u8> {
        self.form(self.flags | REVOKE)
    }

    fn form(&self, flags: u16) -> Vec<u8> {
        let mut rdata = flags.to_be_bytes().to_vec();
        rdata.extend_from_slice(&[3, Algorithm::ECDSAP256SHA256.0]);
        rdata.extend_from_slice(self.private.public_key());
        rdata
    }

    pub(super) fn tag(&self) -> u16 {
        key_tag(&self.rdata())
    }

    pub(super) fn ds(&self) -> AnchorRecord {
        AnchorRecord::Ds(ds_rdata(apex().view(), &self.rdata(), DigestType::SHA256).unwrap())
    }

    pub(super) fn dnskey(&self) -> AnchorRecord {
        AnchorRecord::Dnskey(self.rdata())
    }

    pub(super) fn change(&self, event: KeyEvent) -> Change {
        Change::Key { tag: self.tag(), algorithm: Algorithm::ECDSAP256SHA256, event }
    }
}

pub(super) fn configured(records: &[AnchorRecord]) -> ZoneAnchor {
    ZoneAnchor { apex: apex(), records: records.to_vec() }
}

/// Returns the state with these configured records.
pub(super) fn anchor(records: &[AnchorRecord]) -> ManagedAnchor {
    ManagedAnchor::new(&configured(records), START).unwrap()
}

/// A signed DNSKEY RRset.
#[derive(Clone)]
pub(super) struct Signed {
    pub(super) dnskeys: Vec<Vec<u8>>,
    pub(super) signatures: Vec<Vec<u8>>,
}

/// Signs an RRset at `now` with keys, each in the form that the RRset has: with the REVOKE flag if the
/// RRset has the key only with it.
pub(super) fn sign(dnskeys: &[Vec<u8>], signers: &[&TestKey], now: u64) -> Signed {
    sign_with_ttl(dnskeys, signers, now, TTL)
}

pub(super) fn sign_with_ttl(
    dnskeys: &[Vec<u8>],
    signers: &[&TestKey],
    now: u64,
    original_ttl: u32,
) -> Signed {
    let signature = |key: &&TestKey| {
        let form = if dnskeys.contains(&key.rdata()) { key.rdata() } else { key.revoked() };
        sign_as(dnskeys, key, &form, now, original_ttl)
    };
    Signed { dnskeys: dnskeys.to_vec(), signatures: signers.iter().map(signature).collect() }
}

/// Returns the RRSIG record by the key, whose tag is that of its DNSKEY record `form`.
pub(super) fn sign_as(
    dnskeys: &[Vec<u8>],
    key: &TestKey,
    form: &[u8],
    now: u64,
    original_ttl: u32,
) -> Vec<u8> {
    let mut sorted: Vec<&[u8]> = dnskeys.iter().map(Vec::as_slice).collect();
    sorted.sort_unstable();
    let apex = apex();
    let fields = Rrsig {
        covered: Rtype::DNSKEY,
        algorithm: Algorithm::ECDSAP256SHA256,
        labels: 1,
        original_ttl,
        expiration: now as u32 + VALIDITY,
        inception: now as u32 - 3600,
        tag: key_tag(form),
        signer: apex.view(),
        signature: &[],
    };
    let (mut message, mut rdata) = (Vec::new(), Vec::new());
    push_signed_data(&fields, apex.view(), sorted.iter().copied(), &mut message);
    fields.push_fields(&mut rdata);
    key.private.sign(&message, &mut rdata).unwrap();
    rdata
}

impl Signed {
    pub(super) fn observe(&self, anchor: &mut ManagedAnchor, now: u64) -> Outcome {
        let dnskeys: Vec<&[u8]> = self.dnskeys.iter().map(Vec::as_slice).collect();
        let signatures: Vec<&[u8]> = self.signatures.iter().map(Vec::as_slice).collect();
        anchor.observe(Observation { dnskeys: &dnskeys, signatures: &signatures }, now)
    }
}

/// Signs an RRset and lets `anchor` observe it. Returns the changes; a trust anchor must sign it.
pub(super) fn show(
    anchor: &mut ManagedAnchor,
    dnskeys: &[Vec<u8>],
    signers: &[&TestKey],
    now: u64,
) -> Vec<Change> {
    let outcome = sign(dnskeys, signers, now).observe(anchor, now);
    assert_eq!(outcome.fault, None);
    outcome.changes
}
