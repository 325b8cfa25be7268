//! Prepares a combination: generates keys, signs and verifies the zone, and writes the files for
//! the server.

use super::figures::{OperationCost, Row, ValueRange};
use super::{Combination, CombinationFault, CompareError, CompareOptions};
use crate::conditions::OthersCpu;
use crate::measure::examine::write_file;
use crate::measure::key_files::{write_nsec5_files, write_signing_keys};
use crate::measure::{Choice, ServedZone, ServerKeys};
use crate::process;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_crypto::{Algorithm, PrivateKey};
use nonesuch_dnssec::denial::nsec5::{Nsec5Chain, Proofs, ProveOptions, prove_chain};
use nonesuch_dnssec::denial::{DenialGeneration, NameHash};
use nonesuch_dnssec::keys::{SEP, ZONE_KEY};
use nonesuch_dnssec::verify::Anchor;
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, Signed, VerifyOptions, sign, verify};
use nonesuch_zone::Contents;
use nonesuch_zone::write::text_octets;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Signatures are valid from this many seconds before the start of the comparison, because clocks
/// differ.
const BACKDATED_SECONDS: u32 = 3600;
/// Signatures are valid until this many seconds after the start of the comparison.
const VALID_SECONDS: u32 = 30 * 86_400;
/// Total time after which an operation on the zone is not repeated.
const REPEAT_LIMIT: Duration = Duration::from_millis(700);
/// Maximum number of runs of an operation on the zone.
const MAX_REPEATS: u32 = 5;

/// The preparation of a combination.
pub(super) struct Preparation<'a> {
    pub(super) options: &'a CompareOptions<'a>,
    pub(super) combination: Combination,
    /// Empty directory for the files.
    pub(super) folder: &'a Path,
    /// Called before each step.
    pub(super) progress: &'a dyn Fn(&str),
}

impl Preparation<'_> {
    /// Prepares the combination, and writes the figures of the zone to `row`.
    pub(super) fn prepare(&self, row: &mut Row) -> Result<ServedZone, CompareError> {
        let unsigned = &self.options.zone.contents;
        let file = self.folder.join("zone");
        let fault = |fault| CompareError::Combination(self.combination, fault);
        let keys = match self.combination {
            Combination::Unsigned => {
                self.write(unsigned, &file, row)?;
                ServerKeys::None
            }
            Combination::Signed(choice, mechanism) if mechanism.generation() == DenialGeneration::Online => {
                (self.progress)("generating keys");
                let keys = make_keys(unsigned, choice.algorithm, choice.bits).map_err(fault)?;
                self.write(unsigned, &file, row)?;
                ServerKeys::Online { mechanism, directory: self.write_keys(&keys)? }
            }
            Combination::Signed(choice, mechanism) => {
                let (signed, keys, proofs) = self.sign(choice, mechanism, row).map_err(fault)?;
                self.write(signed.contents(), &file, row)?;
                match proofs {
                    Some(proofs) => self.write_proofs(proofs, signed.statistics().serial, &keys)?,
                    None => ServerKeys::None,
                }
            }
        };
        Ok(ServedZone { origin: unsigned.apex().to_string(), file, keys })
    }

    /// Generates keys, and signs and verifies the zone. The cost of an NSEC5 chain includes that of
    /// its proofs.
    fn sign(
        &self,
        choice: Choice,
        mechanism: Mechanism,
        row: &mut Row,
    ) -> Result<(Signed, KeySet, Option<NamedProofs>), CombinationFault> {
        let (unsigned, now) = (&self.options.zone.contents, self.options.now);
        (self.progress)("generating keys");
        let is_nsec5 = mechanism.name_hash() == NameHash::Vrf;
        let alias = choice.algorithm.nsec5_alias().filter(|_| is_nsec5);
        let keys = make_keys(unsigned, alias.unwrap_or(choice.algorithm), choice.bits)?;
        let vrf = is_nsec5.then(|| VrfPrivateKey::generate(VrfAlgorithm::P256_SHA256_TAI)).transpose()?;
        (self.progress)("signing");
        let (inception, expiration) = (now.wrapping_sub(BACKDATED_SECONDS), now.wrapping_add(VALID_SECONDS));
        let ((signed, proofs), work) = repeat(|| -> Result<_, CombinationFault> {
            let mut options = SignOptions { now, ..SignOptions::new(mechanism, inception, expiration) };
            let proofs = vrf.as_ref().map(|key| prove_chain(unsigned, key, &ProveOptions::new(mechanism)));
            let proofs = proofs.transpose()?.map(|(proofs, _)| proofs);
            options.nsec5 = proofs.as_ref().map(|proofs| Nsec5Chain { proofs, keep_other_keys: false });
            let signed = sign(unsigned, &keys, &options)?;
            Ok((signed, proofs))
        })?;
        row.signing = Some(OperationCost { signatures: signed.statistics().signatures, ..work });
        (self.progress)("verifying");
        let anchors = keys.secure_entry_points().map(|key| Anchor::Dnskey(key.dnskey_rdata())).collect();
        let wanted = VerifyOptions { now: Some(now), anchors, ..VerifyOptions::default() };
        let (report, work) = repeat(|| {
            let report = verify(signed.contents(), &wanted);
            match report.faults.first() {
                None => Ok(report),
                Some(first) => Err(CombinationFault::Unsound(report.faults.len(), Box::new(first.clone()))),
            }
        })?;
        row.verification = Some(OperationCost { signatures: report.signatures_verified, ..work });
        Ok((signed, keys, vrf.zip(proofs).map(|(key, proofs)| NamedProofs { key, proofs })))
    }

    /// Writes the zone to `file`, and its size to the row.
    fn write(&self, contents: &Contents, file: &Path, row: &mut Row) -> Result<(), CompareError> {
        (self.progress)("writing the zone file");
        (row.records, row.zone_octets) = (contents.record_count(), text_octets(contents));
        write_file(contents, file).map_err(|source| CompareError::Write { path: file.to_path_buf(), source })
    }

    /// Writes the key files for a server that signs online. Returns their directory.
    fn write_keys(&self, keys: &KeySet) -> Result<PathBuf, CompareError> {
        let directory = self.folder.join("keys");
        write_signing_keys(&directory, keys)?;
        Ok(directory)
    }

    /// Writes the VRF key and the proofs of the zone with this serial.
    fn write_proofs(
        &self,
        named: NamedProofs,
        serial: u32,
        keys: &KeySet,
    ) -> Result<ServerKeys, CompareError> {
        let NamedProofs { key, mut proofs } = named;
        proofs.set_serial(serial);
        proofs.add_seal(keys).map_err(|source| {
            CompareError::Combination(self.combination, CombinationFault::Sign(source.into()))
        })?;
        let directory = self.folder.join("nsec5");
        write_nsec5_files(&directory, self.options.zone.contents.apex(), &key, &proofs)?;
        Ok(ServerKeys::Nsec5 { directory })
    }
}

/// The proofs of the names of a zone, and the VRF key that generated them.
struct NamedProofs {
    key: VrfPrivateKey,
    proofs: Proofs,
}

/// Generates a KSK and a ZSK of the same strength, including weak keys, because their cost is part
/// of the comparison.
fn make_keys(zone: &Contents, algorithm: Algorithm, bits: Option<u16>) -> Result<KeySet, CombinationFault> {
    let apex = zone.apex();
    let make = |flags| {
        let key = PrivateKey::generate_forced(algorithm, bits)?;
        Ok::<_, CombinationFault>(KeyPair::new(apex.clone(), flags, key))
    };
    let ksk = make(ZONE_KEY | SEP)?;
    let mut zsk = make(ZONE_KEY)?;
    // Two keys have the same tag with a probability of 1 in 65,536. Such keys would make the
    // verification slower, because the tag would not select the key.
    while zsk.tag() == ksk.tag() {
        zsk = make(ZONE_KEY)?;
    }
    Ok(KeySet::new(apex, vec![ksk, zsk])?)
}

/// Runs `work` until it has taken [`REPEAT_LIMIT`] in total or has run [`MAX_REPEATS`] times.
/// Returns the last result, and the cost without the number of signatures. The time in which
/// results are dropped is not measured.
fn repeat<T, E>(mut work: impl FnMut() -> Result<T, E>) -> Result<(T, OperationCost), E> {
    let pid = std::process::id();
    let others = OthersCpu::begin(None);
    let (mut walls, mut cpu_us, mut together) = (Vec::new(), 0, Duration::ZERO);
    loop {
        let before = process::cpu_time(pid);
        let start = Instant::now();
        let outcome = work()?;
        let wall = start.elapsed();
        if let Some(spent) = before.zip(process::cpu_time(pid)).map(|(before, after)| after.since(before)) {
            cpu_us += spent.user_us + spent.system_us;
        }
        walls.push(wall.as_secs_f64());
        together += wall;
        let runs = walls.len() as u32;
        if together >= REPEAT_LIMIT || runs >= MAX_REPEATS {
            let wall_s = ValueRange::median(&walls).unwrap_or_default();
            let cpu_s = cpu_us as f64 / 1e6 / f64::from(runs);
            let others_cpu = others.share();
            return Ok((outcome, OperationCost { wall_s, cpu_s, runs, signatures: 0, others_cpu }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_repeated_until_it_fails_or_is_enough() {
        let mut runs = 0;
        let (last, work) = repeat(|| {
            runs += 1;
            Ok::<_, ()>(runs)
        })
        .expect("no failure");
        assert_eq!((last, work.runs), (MAX_REPEATS, MAX_REPEATS));
        assert_eq!(repeat(|| Err::<(), _>("no")).err(), Some("no"));
    }
}
