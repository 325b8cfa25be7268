//! Serves versions of a zone from image files without verifying the zone again.
//!
//! The image of a zone that is signed online also depends on its keys, which are recorded in the
//! state file ([`ImageInputs`]). The image of a zone with NSEC5 depends only on the zone: its VRF
//! key and proofs are loaded each time, and must match.

use super::build::{NOTHING_VERIFIED, warn_of_key_signers};
use super::image_inputs::{ImageInputs, inputs_digest, signers_digest};
use super::publish::Version;
use super::record_limits;
use super::settings::{FULL_VERIFICATION_LIMIT, OnlineSigning, SigningMode, VerifyChoice, ZoneSettings};
use super::state::Fingerprint;
use super::{KeyLoader, VersionError};
use crate::{Published, open_image};
use nonesuch_dnssec::online::{Nsec5Zone, prepare_keys};
use nonesuch_dnssec::verify::Mode;
use nonesuch_proto::Rtype;
use nonesuch_zone::{Contents, ImageFile, Verification, load_regular, open_compiled};
use std::path::Path;
use std::sync::Arc;

/// Reads versions of a zone from image files.
pub(super) struct ImageReader<'r> {
    pub(super) settings: &'r ZoneSettings,
    pub(super) key_loader: &'r KeyLoader,
    /// Fingerprints of the source files, as in [`Version::origin`].
    pub(super) origin: &'r [Fingerprint],
    /// Inputs of the image of a zone that is signed online; `None` if they are not known.
    pub(super) inputs: Option<ImageInputs>,
    /// Time at which signatures must be valid, in seconds since 1970 modulo 2^32.
    pub(super) now: u32,
    /// Time at which timing metadata in key files is evaluated; `None` ignores the metadata.
    pub(super) key_time: Option<u32>,
}

/// An image that is ready to be served.
struct ServableImage {
    published: Published,
    /// Digest of the signing keys, as in [`Version::key_digest`].
    key_digest: Option<String>,
}

impl ImageReader<'_> {
    /// Returns whether the settings permit serving an image without verification. With `verify =
    /// "full"`, the record in the file is ignored; for a zone that is signed online, the inputs of
    /// the image must be known.
    pub(super) fn may_use_images(&self) -> bool {
        let is_unknown =
            matches!(self.settings.signing_mode, SigningMode::Online(_)) && self.inputs.is_none();
        self.settings.verify != VerifyChoice::Full && !is_unknown
    }

    /// Returns a version with the image at the start of the file at `path`. Returns `None` if the
    /// zone must be verified or compiled again.
    pub(super) fn open(&self, path: &Path) -> Result<Option<Version>, VersionError> {
        let file = if self.may_use_images() { open_image(path)? } else { None };
        file.map_or(Ok(None), |file| self.read(file, path))
    }

    /// Returns a version with the mapped image of the file at `path`, as [`open`](Self::open) does.
    pub(super) fn read(&self, file: ImageFile, path: &Path) -> Result<Option<Version>, VersionError> {
        let settings = self.settings;
        if file.image().apex() != settings.apex.view() {
            return Ok(None);
        }
        let verified_at = self.verified_at(&file);
        let Some(ServableImage { published, key_digest }) = self.publish(file)? else { return Ok(None) };
        let warnings = record_limits::check(published.image(), settings.limits)?;
        let contents = if settings.keeps_contents_in_memory() {
            Some(Arc::new(load_regular(path, Some(&settings.apex))?.contents))
        } else {
            None
        };
        let verified = match settings.verify {
            VerifyChoice::Nothing => NOTHING_VERIFIED.to_owned(),
            _ => "when its image was created".to_owned(),
        };
        Ok(Some(Version {
            published,
            records: count_records(contents.as_deref(), path),
            contents,
            verified,
            verified_at,
            origin: self.origin.to_vec(),
            warnings,
            findings: None,
            is_new: true,
            key_digest,
            unstored: None,
        }))
    }

    /// Returns the time at which the signatures of the zone were verified.
    fn verified_at(&self, file: &ImageFile) -> Option<u32> {
        let recorded =
            self.inputs.as_ref().map_or_else(|| file.record().verification, |inputs| inputs.verification);
        match recorded {
            Verification::Full { at } if file.signatures() > 0 => Some(at),
            _ => None,
        }
    }

    fn publish(&self, file: ImageFile) -> Result<Option<ServableImage>, VersionError> {
        let (settings, now) = (self.settings, self.now);
        let mode = match settings.verify {
            VerifyChoice::Nothing => None,
            VerifyChoice::Structural => Some(Mode::Structural),
            VerifyChoice::Quick if file.signatures() > FULL_VERIFICATION_LIMIT => Some(Mode::Structural),
            _ => Some(Mode::Full),
        };
        if mode.is_none() && file.image().apex_rdatas(Rtype::NS).is_empty() {
            return Err(VersionError::NoApexNs);
        }
        let is_nsec5 = file.image().nsec5_key().is_some();
        let is_online = matches!(settings.signing_mode, SigningMode::Online(_));
        if settings.requires_dnssec && !is_online && !file.image().is_signed() {
            return Err(VersionError::NotSigned);
        }
        let published = match &settings.signing_mode {
            SigningMode::AsLoaded if !is_nsec5 => Published::from_file(file, mode, now),
            SigningMode::AsLoaded | SigningMode::Nsec5 { .. } if is_nsec5 => {
                let zone = Nsec5Zone::of_image(file.image());
                let directory = settings.nsec5_directory()?;
                let source = settings.source.path();
                let prover = (self.key_loader.load_prover)(&directory, source, &zone).map_err(Box::new)?;
                Published::nsec5_from_file(file, prover, mode, now)
            }
            SigningMode::Online(signing) if !is_nsec5 => return self.publish_online(file, signing, mode),
            SigningMode::AsLoaded | SigningMode::Nsec5 { .. } | SigningMode::Online(_) => return Ok(None),
        };
        let zone = settings.apex.to_string();
        let published = published.inspect_err(|reason| {
            tracing::info!(
                name: "image-not-used",
                zone,
                "zone {zone}: cannot use its image without verification: {reason}; verifying the zone"
            );
        });
        Ok(published.ok().map(|published| ServableImage { published, key_digest: None }))
    }

    /// Combines the image of a zone that is signed online with its private keys, which are loaded
    /// each time. Returns `None` unless the image was compiled for the current mechanism and key
    /// records.
    fn publish_online(
        &self,
        file: ImageFile,
        signing: &OnlineSigning,
        mode: Option<Mode>,
    ) -> Result<Option<ServableImage>, VersionError> {
        let Some(inputs) = &self.inputs else { return Ok(None) };
        let (apex, mechanism) = (file.image().apex().to_name(), signing.mechanism);
        let keys = (self.key_loader.load_signing_keys)(&signing.key_directory, &apex, self.key_time)
            .map_err(Box::new)?;
        if inputs.digest != inputs_digest(mechanism, &keys) {
            return Ok(None);
        }
        let key_digest = Some(signers_digest(mechanism, &keys));
        let dnskeys = file.image().apex_rdatas(Rtype::DNSKEY);
        let keys =
            prepare_keys(&apex, &dnskeys, inputs.has_signed_keys, keys.pairs, mechanism, signing.validity);
        let keys = keys.map_err(Box::new)?;
        warn_of_key_signers(&apex, &keys);
        let published = Published::online_from_file(file, inputs.verification, keys, mode, self.now);
        Ok(published.ok().map(|published| ServableImage { published, key_digest }))
    }
}

/// Returns the number of records of a zone. If the records are not in memory, reads the number from
/// the index of the compiled zone.
fn count_records(contents: Option<&Contents>, path: &Path) -> Option<u64> {
    match contents {
        Some(contents) => Some(contents.record_count()),
        None => open_compiled(path, None).ok().flatten().map(|zone| zone.record_count()),
    }
}
