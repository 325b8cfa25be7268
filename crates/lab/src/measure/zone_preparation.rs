//! Prepares a zone for a server: generates keys, signs and verifies the zone, and writes the files.

use super::examine::write_file;
use super::key_files::{WriteError, write_nsec5_files, write_signing_keys};
use super::server::{ServedZone, ServerKeys};
use super::subject::AlgorithmChoice;
use crate::conditions::OthersCpu;
use crate::process;
use crate::statistics::ValueRange;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfKeyError, VrfPrivateKey};
use nonesuch_crypto::{KeyError, PrivateKey};
use nonesuch_dnssec::denial::nsec5::{Nsec5Chain, Nsec5Error, Proofs, ProveOptions, prove_chain};
use nonesuch_dnssec::denial::{DenialGeneration, NameHash, Nsec3Params};
use nonesuch_dnssec::keys::{KeySetError, KeyTimes, SEP, ZONE_KEY};
use nonesuch_dnssec::sign::SignError;
use nonesuch_dnssec::verify::{Anchor, Fault};
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, Signed, VerifyOptions, sign, verify};
use nonesuch_proto::Name;
use nonesuch_zone::Contents;
use nonesuch_zone::write::text_octets;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Signatures are valid from this many seconds before the start of the measurement, because clocks
/// differ.
const BACKDATED_SECONDS: u32 = 3600;
/// Signatures are valid until this many seconds after the start of the measurement.
const VALID_SECONDS: u32 = 30 * 86_400;
/// Total time of the runs after which signing or verifying is not repeated.
const REPEAT_LIMIT: Duration = Duration::from_millis(700);

/// Reasons why a zone cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZonePreparationError {
    #[error("cannot generate keys: {0}")]
    Keys(#[from] KeyError),
    #[error("cannot generate a VRF key: {0}")]
    VrfKey(#[from] VrfKeyError),
    #[error(transparent)]
    KeySet(#[from] KeySetError),
    #[error(transparent)]
    Proofs(#[from] Nsec5Error),
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error("the signed zone has {0} faults, the first: {1}")]
    Faults(usize, Box<Fault>),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// A zone, and how to prepare it for a server.
pub(crate) struct ZonePreparation<'a> {
    /// The zone without DNSSEC records.
    pub(crate) zone: &'a Contents,
    /// Algorithms of the keys: a KSK and a ZSK of each. Empty: the zone is not signed.
    pub(crate) algorithms: &'a [AlgorithmChoice],
    /// Denial mechanism of a signed zone.
    pub(crate) mechanism: Mechanism,
    /// Additional iterations of an NSEC3 chain.
    pub(crate) iterations: u16,
    /// Algorithm of the VRF of an NSEC5 chain.
    pub(crate) vrf: VrfAlgorithm,
    /// Maximum number of runs of signing and of verifying. Further runs only improve the
    /// measurement; none begins when the runs together have taken [`REPEAT_LIMIT`].
    pub(crate) runs_max: u32,
    /// Current time, in seconds since 1970.
    pub(crate) now: u32,
    /// Empty directory for the files.
    pub(crate) directory: &'a Path,
    /// Called before each step.
    pub(crate) progress: &'a dyn Fn(&str),
}

/// A prepared zone.
#[derive(Debug)]
pub(crate) struct PreparedZone {
    pub(crate) served: ServedZone,
    /// Paths of the key files of a server that signs online, without suffix.
    pub(crate) key_files: Vec<PathBuf>,
    /// The secure entry points; empty for an unsigned zone.
    pub(crate) anchors: Vec<Anchor>,
    /// Number of records of the zone file.
    pub(crate) records: u64,
    /// Size of the zone file.
    pub(crate) octets: u64,
    /// `None` if the zone is not signed, or is signed online.
    pub(crate) signing: Option<OperationCost>,
    pub(crate) verification: Option<OperationCost>,
}

/// Cost of signing or verifying the whole zone, with all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct OperationCost {
    /// Wall time: the median of the runs.
    pub(crate) wall_s: ValueRange,
    /// CPU time of all threads: the mean of the runs; 0 if the system does not provide it.
    pub(crate) cpu_s: f64,
    /// Number of runs.
    pub(crate) runs: u32,
    /// Number of signatures that a run generates or verifies.
    pub(crate) signatures: u64,
    /// Share of the CPU time of all CPUs that others used during all runs, from 0 to 1.
    pub(crate) others_cpu: Option<f64>,
}

impl ZonePreparation<'_> {
    /// Prepares the zone. The cost of an NSEC5 chain includes that of its proofs.
    pub(crate) fn prepare(&self) -> Result<PreparedZone, ZonePreparationError> {
        if self.algorithms.is_empty() {
            return self.write(self.zone, &[]);
        }
        (self.progress)("generating keys");
        let is_nsec5 = self.mechanism.name_hash() == NameHash::Vrf;
        let keys = generate_keys(self.zone.apex(), self.algorithms, is_nsec5)?;
        let anchors: Vec<Anchor> =
            keys.secure_entry_points().map(|key| Anchor::Dnskey(key.dnskey_rdata())).collect();
        if self.mechanism.generation() == DenialGeneration::Online {
            let mut prepared = self.write(self.zone, &anchors)?;
            let directory = self.directory.join("keys");
            write_signing_keys(&directory, &keys, &KeyTimes::default())?;
            prepared.key_files = keys.keys().iter().map(|key| directory.join(key.base_name())).collect();
            prepared.served.keys = ServerKeys::Online { mechanism: self.mechanism, directory };
            return Ok(prepared);
        }
        let vrf = is_nsec5.then(|| VrfPrivateKey::generate(self.vrf)).transpose()?;
        let (signed, proofs, signing) = self.sign(&keys, vrf.as_ref())?;
        let verification = self.verify(&signed, &anchors)?;
        let mut prepared = self.write(signed.contents(), &anchors)?;
        if let Some((key, mut proofs)) = vrf.zip(proofs) {
            proofs.set_serial(signed.statistics().serial);
            proofs.add_seal(&keys).map_err(SignError::from)?;
            let directory = self.directory.join("nsec5");
            write_nsec5_files(&directory, self.zone.apex(), &key, &proofs)?;
            prepared.served.keys = ServerKeys::Nsec5 { directory };
        }
        Ok(PreparedZone { signing: Some(signing), verification: Some(verification), ..prepared })
    }

    fn sign(
        &self,
        keys: &KeySet,
        vrf: Option<&VrfPrivateKey>,
    ) -> Result<(Signed, Option<Proofs>, OperationCost), ZonePreparationError> {
        (self.progress)("signing");
        let now = self.now;
        let (inception, expiration) = (now.wrapping_sub(BACKDATED_SECONDS), now.wrapping_add(VALID_SECONDS));
        let nsec3 = Nsec3Params { iterations: self.iterations, ..Nsec3Params::default() };
        let ((signed, proofs), cost) = repeat(self.runs_max, || -> Result<_, ZonePreparationError> {
            let proofs = vrf.map(|key| prove_chain(self.zone, key, &ProveOptions::new(self.mechanism)));
            let proofs = proofs.transpose()?.map(|(proofs, _)| proofs);
            let nsec5 = proofs.as_ref().map(|proofs| Nsec5Chain { proofs, keep_other_keys: false });
            let mechanism = self.mechanism;
            let options = SignOptions {
                now,
                nsec3: nsec3.clone(),
                nsec5,
                ..SignOptions::new(mechanism, inception, expiration)
            };
            let signed = sign(self.zone, keys, &options)?;
            Ok((signed, proofs))
        })?;
        let signatures = signed.statistics().signatures;
        Ok((signed, proofs, OperationCost { signatures, ..cost }))
    }

    fn verify(&self, signed: &Signed, anchors: &[Anchor]) -> Result<OperationCost, ZonePreparationError> {
        (self.progress)("verifying");
        let wanted =
            VerifyOptions { now: Some(self.now), anchors: anchors.to_vec(), ..VerifyOptions::default() };
        let (report, cost) = repeat(self.runs_max, || {
            let report = verify(signed.contents(), &wanted);
            match report.faults.first() {
                None => Ok(report),
                Some(first) => {
                    Err(ZonePreparationError::Faults(report.faults.len(), Box::new(first.clone())))
                }
            }
        })?;
        Ok(OperationCost { signatures: report.signatures_verified, ..cost })
    }

    /// Writes the zone file.
    fn write(&self, contents: &Contents, anchors: &[Anchor]) -> Result<PreparedZone, ZonePreparationError> {
        (self.progress)("writing the zone file");
        let path = self.directory.join("zone");
        write_file(contents, &path).map_err(|source| WriteError { path: path.clone(), source })?;
        Ok(PreparedZone {
            served: ServedZone::without_keys(&contents.apex().to_string(), &path),
            key_files: Vec::new(),
            anchors: anchors.to_vec(),
            records: contents.record_count(),
            octets: text_octets(contents),
            signing: None,
            verification: None,
        })
    }
}

/// Generates a KSK and a ZSK of each algorithm. Key lengths that are too short for use are
/// permitted, because experiments measure them. For NSEC5, the keys have the alias algorithm
/// number.
pub(crate) fn generate_keys(
    apex: &Name,
    choices: &[AlgorithmChoice],
    is_nsec5: bool,
) -> Result<KeySet, ZonePreparationError> {
    let mut keys: Vec<KeyPair> = Vec::new();
    for choice in choices {
        let alias = choice.algorithm.nsec5_alias().filter(|_| is_nsec5);
        let algorithm = alias.unwrap_or(choice.algorithm);
        for flags in [ZONE_KEY | SEP, ZONE_KEY] {
            let make = || {
                let key = PrivateKey::generate_any_length(algorithm, choice.bits)?;
                Ok::<_, KeyError>(KeyPair::new(apex.clone(), flags, key))
            };
            let mut key = make()?;
            // Two keys have the same tag with a probability of 1 in 65,536. Such keys would make the
            // verification slower, because the tag would not select the key.
            while keys.iter().any(|other| other.tag() == key.tag()) {
                key = make()?;
            }
            keys.push(key);
        }
    }
    Ok(KeySet::new(apex, keys)?)
}

/// Runs `work` until it has taken [`REPEAT_LIMIT`] in total or has run `runs_max` times. Returns the
/// last result, and the cost without the number of signatures. The time in which results are
/// dropped is not measured.
fn repeat<T, E>(runs_max: u32, mut work: impl FnMut() -> Result<T, E>) -> Result<(T, OperationCost), E> {
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
        if together >= REPEAT_LIMIT || runs >= runs_max {
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
        let (last, cost) = repeat(5, || {
            runs += 1;
            Ok::<_, ()>(runs)
        })
        .expect("no failure");
        assert_eq!((last, cost.runs), (5, 5));
        assert_eq!(repeat(5, || Err::<(), _>("no")).err(), Some("no"));
    }
}
