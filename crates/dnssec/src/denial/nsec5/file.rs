//! Format of the file of NSEC5 proofs, which a server reads with the zone. Encodes and decodes
//! octets.
//!
//! All numbers are big-endian. `n` is the number of names.
//!
//! | octets | content |
//! | --- | --- |
//! | 8 | `NSEC5PRF` |
//! | 2 | version, 1 |
//! | 1 + length | length of the zone name; the name in wire format and lower case |
//! | 2 + length | length of the RDATA of the NSEC5KEY record; the RDATA |
//! | 4 | serial of the signed zone |
//! | 2 | length of each proof in octets |
//! | 4 | `n` |
//! | 8 | length of all names in octets |
//! | | names in canonical order, in wire format and lower case; the root replaces the apex |
//! | 32 `n` | their hashes, in the same order |
//! | length of a proof × `n` | their proofs, in the same order |
//! | 1 | algorithm of the signing key that sealed the file; 0 without a seal |
//! | 2 | key tag of that key; 0 without a seal |
//! | 2 + length | length of the seal; the seal. Without a seal, the length is 0 |
//! | 32 | SHA-256 digest of all preceding octets |
//!
//! The seal is a signature over two octets 0, the text `Nonesuch NSEC5 proofs` (21 octets), and the
//! SHA-256 digest of all octets of the file up to the end of the proofs.
//!
//! The digest detects damage. The seal protects the next signing, which reuses the hashes without
//! verifying the proofs: it shows that a signer with a key of the zone has written the file.
//! Without a seal, a user who can write to the directory, but has no signing key, could make the
//! signer sign an NSEC5 record with a false hash of a name.

use super::Hash;
use super::proofs::{Proofs, Seal};
use crate::keys::{KeyPair, KeySet, Nsec5Key};
use nonesuch_crypto::vrf::VrfAlgorithm;
use nonesuch_crypto::{Algorithm, DigestType, PublicKey, SignError, sign_batch};
use nonesuch_proto::{MAX_NAME, NameRef, Rtype};
use std::io::{self, Write};

const MAGIC: &[u8; 8] = b"NSEC5PRF";
const VERSION: u16 = 1;
const DIGEST_OCTETS: usize = 32;
/// Prefix of the sealed message. The signed data of an RRset begin with the type covered, and no
/// RRset has type 0, so a seal is never a valid signature of an RRset.
const SEAL_PREFIX: &[u8] = b"\0\0Nonesuch NSEC5 proofs";

/// Error of reading a file of proofs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofsFileError {
    /// The octets do not begin with the magic number of the format.
    #[error("not a file of NSEC5 proofs")]
    NotProofs,
    /// The file has another version of the format.
    #[error("the file of proofs has format {0}, but only format 1 is supported")]
    Version(u16),
    /// The NSEC5 algorithm is unknown, or its proofs do not have the length in the file.
    #[error("the proofs have NSEC5 algorithm {0}, which is unknown or has proofs of another length")]
    Algorithm(VrfAlgorithm),
    /// The digest does not match, or the parts are inconsistent.
    #[error("the file of proofs is damaged")]
    Damaged,
}

impl Proofs {
    /// Writes the proofs in the format of the file of proofs, with the digest and the seal.
    ///
    /// # Errors
    /// If `out` fails, or if the zone has more than 2^32 - 1 names.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let header = self.header().ok_or_else(|| io::Error::other("too many names for a file of proofs"))?;
        let seal = self.seal_octets();
        let parts = [header.as_slice(), &self.names, self.hashes.as_flattened(), &self.proofs, &seal];
        parts.iter().try_for_each(|part| out.write_all(part))?;
        out.write_all(&digest(&parts))
    }

    /// Seals the proofs and their serial with the first of `keys` that signs data (a ZSK or CSK).
    /// Does nothing if no key signs data.
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn add_seal(&mut self, keys: &KeySet) -> Result<(), SignError> {
        // A stands for any data: the same keys sign all types except DNSKEY, CDS and CDNSKEY.
        let Some(key) = keys.signers(Rtype::A).first().map(|index| &keys.keys()[*index]) else {
            return Ok(());
        };
        let mut signature = Vec::new();
        sign_batch(key.private(), &[&self.sealed_message()], &mut signature)?;
        self.seal = Some(Seal { algorithm: key.algorithm(), tag: key.tag(), signature });
        Ok(())
    }

    /// Whether the proofs have a valid seal by one of `keys`: they and the serial have not changed
    /// since.
    #[must_use]
    pub fn is_sealed_by(&self, keys: &KeySet) -> bool {
        let Some(seal) = &self.seal else { return false };
        let has_sealed = |key: &&KeyPair| key.algorithm() == seal.algorithm && key.tag() == seal.tag;
        let message = self.sealed_message();
        keys.keys().iter().filter(has_sealed).any(|key| {
            PublicKey::parse(key.algorithm(), key.private().public_key())
                .is_ok_and(|public| public.verify(&message, &seal.signature).is_ok())
        })
    }

    /// Returns the message that the seal signs.
    fn sealed_message(&self) -> Vec<u8> {
        // If there is no header, `write_to` fails, so this message is in no file.
        let header = self.header().unwrap_or_default();
        let digest = digest(&[&header, &self.names, self.hashes.as_flattened(), &self.proofs]);
        [SEAL_PREFIX, &digest].concat()
    }

    fn seal_octets(&self) -> Vec<u8> {
        let Some(Seal { algorithm, tag, signature }) = &self.seal else { return vec![0; 5] };
        let mut octets = vec![algorithm.0];
        octets.extend_from_slice(&tag.to_be_bytes());
        // The longest signature has a few thousand octets.
        octets.extend_from_slice(&(signature.len() as u16).to_be_bytes());
        octets.extend_from_slice(signature);
        octets
    }

    fn header(&self) -> Option<Vec<u8>> {
        let (zone, key) = (self.zone.wire(), self.key.rdata());
        let mut header = Vec::with_capacity(64 + zone.len() + key.len());
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&VERSION.to_be_bytes());
        header.push(u8::try_from(zone.len()).ok()?);
        header.extend_from_slice(zone);
        header.extend_from_slice(&u16::try_from(key.len()).ok()?.to_be_bytes());
        header.extend_from_slice(key);
        header.extend_from_slice(&self.serial.to_be_bytes());
        header.extend_from_slice(&u16::try_from(self.proof_octets).ok()?.to_be_bytes());
        header.extend_from_slice(&u32::try_from(self.len()).ok()?.to_be_bytes());
        header.extend_from_slice(&(self.names.len() as u64).to_be_bytes());
        Some(header)
    }

    /// Decodes the octets of a file. Does not verify the seal ([`Proofs::is_sealed_by`]). The
    /// memory in use is at most proportional to the number of octets, whatever lengths the file
    /// states.
    ///
    /// # Errors
    /// All variants of [`ProofsFileError`].
    pub fn read(octets: &[u8]) -> Result<Self, ProofsFileError> {
        let mut rest = octets.strip_prefix(MAGIC).ok_or(ProofsFileError::NotProofs)?;
        // Another version may have another form of digest, so the version is read first.
        let version = take_number::<2>(&mut rest).ok_or(ProofsFileError::Damaged)? as u16;
        if version != VERSION {
            return Err(ProofsFileError::Version(version));
        }
        let (body, found) = octets.split_last_chunk::<DIGEST_OCTETS>().ok_or(ProofsFileError::Damaged)?;
        if digest(&[body]) != found {
            return Err(ProofsFileError::Damaged);
        }
        // Fails if the version and the digest overlap, because the file is too short.
        let rest = rest.strip_suffix(found).ok_or(ProofsFileError::Damaged)?;
        let proofs = read_body(rest).ok_or(ProofsFileError::Damaged)?;
        let algorithm = proofs.key.algorithm();
        if algorithm.entry().is_none_or(|entry| entry.proof_octets != proofs.proof_octets) {
            return Err(ProofsFileError::Algorithm(algorithm));
        }
        Ok(proofs)
    }
}

fn read_body(mut rest: &[u8]) -> Option<Proofs> {
    let rest = &mut rest;
    let zone_octets = take_number::<1>(rest)?;
    let zone = NameRef::from_wire(take(rest, zone_octets)?).ok()?.to_name();
    let key_octets = take_number::<2>(rest)?;
    let key = Nsec5Key::from_rdata(take(rest, key_octets)?)?;
    let serial = take_number::<4>(rest)? as u32;
    let proof_octets = usize::try_from(take_number::<2>(rest)?).ok().filter(|octets| *octets > 0)?;
    let count = take_number::<4>(rest)?;
    let names_octets = take_number::<8>(rest)?;
    let names = take(rest, names_octets)?;
    let (hashes, []) = take(rest, count.checked_mul(size_of::<Hash>() as u64)?)?.as_chunks() else {
        return None;
    };
    let proofs = take(rest, count.checked_mul(proof_octets as u64)?)?;
    let seal = read_seal(rest)?;
    let is_consistent =
        rest.is_empty() && is_lower_case(zone.wire()) && are_canonical_names(names, count, zone.wire().len());
    is_consistent.then(|| Proofs {
        zone,
        serial,
        key,
        names: names.to_vec(),
        hashes: hashes.to_vec(),
        proofs: proofs.to_vec(),
        proof_octets,
        seal,
    })
}

/// Reads the seal; the inner value is `None` if the file has no seal.
fn read_seal(rest: &mut &[u8]) -> Option<Option<Seal>> {
    let algorithm = Algorithm(take_number::<1>(rest)? as u8);
    let tag = take_number::<2>(rest)? as u16;
    let octets = take_number::<2>(rest)?;
    let signature = take(rest, octets)?.to_vec();
    Some((algorithm.0 != 0).then_some(Seal { algorithm, tag, signature }))
}

/// Whether `names` consists of `count` canonical names, in canonical order, without duplicates,
/// that fit below an apex of `apex_octets`.
fn are_canonical_names(names: &[u8], count: u64, apex_octets: usize) -> bool {
    let mut rest = names;
    let mut previous: Option<NameRef<'_>> = None;
    for _ in 0..count {
        let Ok((name, tail)) = NameRef::split_from(rest) else { return false };
        let ascending = previous.is_none_or(|previous| previous.cmp_canonical(name).is_lt());
        if !ascending || name.len() - 1 + apex_octets > MAX_NAME {
            return false;
        }
        (rest, previous) = (tail, Some(name));
    }
    rest.is_empty() && is_lower_case(names)
}

/// Whether names in wire format have no upper-case letter. The length octet of a label is at most
/// 63, and upper-case letters begin at 65.
fn is_lower_case(octets: &[u8]) -> bool {
    !octets.iter().any(u8::is_ascii_uppercase)
}

fn take<'a>(rest: &mut &'a [u8], octets: u64) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(usize::try_from(octets).ok()?)?;
    *rest = tail;
    Some(head)
}

fn take_number<const OCTETS: usize>(rest: &mut &[u8]) -> Option<u64> {
    let octets = take(rest, OCTETS as u64)?;
    Some(octets.iter().fold(0, |value, octet| value << 8 | u64::from(*octet)))
}

/// Returns the SHA-256 digest of the parts, one after the other.
fn digest(parts: &[&[u8]]) -> Vec<u8> {
    // The digest function is `None` only for unknown digest types.
    DigestType::SHA256.digest(parts).unwrap_or_default()
}
