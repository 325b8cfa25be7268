//! A zone that the server can answer from: its image, and the source of its denial records.

use nonesuch_dnssec::Verified;
use nonesuch_dnssec::online::{Nsec5Prover, OnlineKeys, PreparedZone, ZoneSigner};
use nonesuch_dnssec::verify::Mode;
use nonesuch_proto::serial;
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_zone::image::{CompileError, ImageFile};
use nonesuch_zone::{Contents, Image, Verification};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A zone that is ready to be served. A clone shares the image and the keys.
///
/// It is built from a verified zone, or from an image file whose header records that the zone was
/// verified before its image was compiled. There are three exceptions without verification:
/// [`Published::unverified`], [`Published::nsec5_unverified`], and the functions for image files
/// without a required mode.
#[derive(Clone, Debug)]
pub struct Published {
    image: Image,
    denial: Denial,
    /// Number of this image, unique in the process. Cached signatures over its RRsets are stored
    /// under this number.
    generation: u64,
}

/// Source of the denial records.
#[derive(Clone, Debug)]
pub(crate) enum Denial {
    /// The image contains the denial records of the signer (NSEC, NSEC3), or the zone has none.
    Image,
    /// The server generates the denial records online and signs them with the keys of the zone. It
    /// also signs all RRsets that have no signatures in the image.
    Online(Arc<OnlineKeys>),
    /// The image contains the denial records, and the server generates the NSEC5 proofs that most
    /// denials need.
    Nsec5(Arc<Nsec5Prover>),
}

/// Reasons why an image file cannot be served without verifying its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnusableImage {
    /// According to the file, less of the zone was verified than the caller requires.
    #[error("{}", match .found {
        Verification::Nothing => "nothing was verified when the image was created",
        Verification::Structural { .. } => "signatures were not verified when the image was created",
        Verification::Full { .. } => "everything was verified when the image was created",
        Verification::OtherTables { .. } => "the image was verified with other algorithm tables, or does not record them",
    })]
    InsufficientVerification {
        /// The verification that the file records.
        found: Verification,
    },
    /// The zone has NSEC5, and its denials need proofs that are generated online with the VRF key
    /// of the zone.
    #[error("the zone has NSEC5, and denial of existence needs its VRF key")]
    Nsec5,
    /// Not all signatures are valid at the current time.
    #[error(
        "signatures are valid from {} to {}, and the current time is {}",
        Rfc3339(u64::from(*inception)), Rfc3339(u64::from(*expiration)), Rfc3339(u64::from(*now))
    )]
    SignatureTimes {
        /// The current time, in seconds since 1970 modulo 2^32.
        now: u32,
        /// The latest inception of a signature.
        inception: u32,
        /// The earliest expiration of a signature.
        expiration: u32,
    },
}

impl Published {
    /// Compiles a verified zone.
    ///
    /// # Errors
    /// Returns an error if the zone does not fit into an image.
    pub fn new(zone: &Verified) -> Result<Self, CompileError> {
        Ok(Self::from_parts(Image::compile(zone.contents())?.with_verified_chain(), Denial::Image))
    }

    /// Compiles a zone that was not verified, or that has faults and must be served nevertheless.
    /// Answers lack the proofs and signatures that the zone lacks. The server checks each proof
    /// from the image, and omits one that a validator would reject.
    ///
    /// # Errors
    /// Returns an error if the zone does not fit into an image.
    pub fn unverified(contents: &Contents) -> Result<Self, CompileError> {
        Ok(Self::from_parts(Image::compile(contents)?, Denial::Image))
    }

    /// Compiles a zone whose denials are generated online. The server also signs online all RRsets
    /// that have no signatures.
    ///
    /// # Errors
    /// Returns an error if the zone does not fit into an image.
    pub fn online(zone: PreparedZone) -> Result<Self, CompileError> {
        let (contents, keys) = zone.into_parts();
        Ok(Self::from_parts(Image::compile(&contents)?, Denial::Online(Arc::new(keys))))
    }

    /// Compiles a verified zone with NSEC5. `prover` must belong to this zone.
    ///
    /// # Errors
    /// Returns an error if the zone does not fit into an image.
    pub fn nsec5(zone: &Verified, prover: Nsec5Prover) -> Result<Self, CompileError> {
        Self::nsec5_unverified(zone.contents(), prover)
    }

    /// Compiles a zone with NSEC5 that was not verified, or that has faults and must be served
    /// nevertheless. `prover` must belong to this zone.
    ///
    /// # Errors
    /// Returns an error if the zone does not fit into an image.
    pub fn nsec5_unverified(contents: &Contents, prover: Nsec5Prover) -> Result<Self, CompileError> {
        Ok(Self::from_parts(Image::compile(contents)?, Denial::Nsec5(Arc::new(prover))))
    }

    /// Publishes an image, under the next generation number.
    pub(crate) fn from_parts(image: Image, denial: Denial) -> Self {
        static NEXT_GENERATION: AtomicU64 = AtomicU64::new(0);
        Self { image, denial, generation: NEXT_GENERATION.fetch_add(1, Relaxed) }
    }

    /// Publishes the image of a file. The file must record that its zone was verified at least in
    /// `required_mode`, and the signatures must be valid at `now`, in seconds since 1970 modulo
    /// 2^32. If `required_mode` is `None`, neither is required.
    ///
    /// # Errors
    /// Returns the reason why the zone must be verified first. Returns [`UnusableImage::Nsec5`] for
    /// a zone with NSEC5, which needs [`Published::nsec5_from_file`].
    pub fn from_file(file: ImageFile, required_mode: Option<Mode>, now: u32) -> Result<Self, UnusableImage> {
        if file.image().nsec5_key().is_some() {
            return Err(UnusableImage::Nsec5);
        }
        check_file(&file, required_mode, now)?;
        let is_verified =
            matches!(file.record().verification, Verification::Full { .. } | Verification::Structural { .. });
        let image = file.into_image();
        let image = if is_verified { image.with_verified_chain() } else { image };
        Ok(Self::from_parts(image, Denial::Image))
    }

    /// Publishes the image of a zone with NSEC5, as [`Published::from_file`] does. `prover` must
    /// belong to this zone.
    ///
    /// # Errors
    /// Returns the reason why the zone must be verified first.
    pub fn nsec5_from_file(
        file: ImageFile,
        prover: Nsec5Prover,
        required_mode: Option<Mode>,
        now: u32,
    ) -> Result<Self, UnusableImage> {
        check_file(&file, required_mode, now)?;
        Ok(Self::from_parts(file.into_image(), Denial::Nsec5(Arc::new(prover))))
    }

    /// Publishes the image of a zone that [`Published::online`] published before, as
    /// [`Published::from_file`] does. `verification` is the verification of that zone; the file
    /// cannot record it, because its image lacks the records that are generated online. The caller
    /// must ensure that the image was compiled for the same mechanism and the same DNSKEY RRset.
    ///
    /// # Errors
    /// Returns the reason why the zone must be prepared again.
    pub fn online_from_file(
        file: ImageFile,
        verification: Verification,
        keys: OnlineKeys,
        required_mode: Option<Mode>,
        now: u32,
    ) -> Result<Self, UnusableImage> {
        match (verification, required_mode) {
            // A zone without signatures has nothing to verify.
            (Verification::Nothing, Some(_)) => check_signature_times(&file, now)?,
            (found, mode) => check_verification(&file, found, mode, now)?,
        }
        Ok(Self::from_parts(file.into_image(), Denial::Online(Arc::new(keys))))
    }

    /// Returns the zone image.
    #[must_use]
    pub const fn image(&self) -> &Image {
        &self.image
    }

    /// Returns what generates the signatures and proofs for deferred answers from this zone.
    #[must_use]
    pub fn signer(&self) -> ZoneSigner<'_> {
        ZoneSigner { keys: self.online_keys(), prover: self.nsec5_prover() }
    }

    /// Returns the number of this image, unique in the process.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns whether the server signs answers online. The image of such a zone contains some or
    /// none of the signatures.
    #[must_use]
    pub const fn is_signed_online(&self) -> bool {
        matches!(self.denial, Denial::Online(_))
    }

    /// Returns a description of the denial mechanism for messages: `unsigned`, `signed with NSEC3`,
    /// `signed online (white-lies)` and others.
    #[must_use]
    pub fn description(&self) -> String {
        let image = &self.image;
        match &self.denial {
            Denial::Online(keys) => format!("signed online ({})", keys.mechanism()),
            Denial::Nsec5(_) => "signed with NSEC5, proofs generated online".to_owned(),
            Denial::Image if !image.is_signed() => "unsigned".to_owned(),
            Denial::Image if image.nsec3_parameters().is_some() => "signed with NSEC3".to_owned(),
            Denial::Image => "signed with NSEC".to_owned(),
        }
    }

    /// Returns the keys for online signing; `None` if the zone is not signed online.
    pub(crate) fn online_keys(&self) -> Option<&OnlineKeys> {
        if let Denial::Online(keys) = &self.denial { Some(keys) } else { None }
    }

    /// Returns the prover for denials of a zone with NSEC5; `None` for another zone.
    pub(crate) fn nsec5_prover(&self) -> Option<&Nsec5Prover> {
        if let Denial::Nsec5(prover) = &self.denial { Some(prover) } else { None }
    }

    /// Returns whether answers may need signatures or proofs that are generated online: the zone is
    /// signed online, or has NSEC5.
    #[must_use]
    pub const fn needs_online_work(&self) -> bool {
        !matches!(self.denial, Denial::Image)
    }
}

/// Does the same as [`check_verification`] with the verification that the file records.
fn check_file(file: &ImageFile, required_mode: Option<Mode>, now: u32) -> Result<(), UnusableImage> {
    check_verification(file, file.record().verification, required_mode, now)
}

/// Checks that the verification `found` is at least that of `required_mode`, and that the
/// signatures are valid at `now`. If `required_mode` is `None`, checks nothing.
fn check_verification(
    file: &ImageFile,
    found: Verification,
    required_mode: Option<Mode>,
    now: u32,
) -> Result<(), UnusableImage> {
    let Some(mode) = required_mode else { return Ok(()) };
    match (found, mode) {
        (Verification::Full { .. }, _) | (Verification::Structural { .. }, Mode::Structural) => {}
        _ => return Err(UnusableImage::InsufficientVerification { found }),
    }
    check_signature_times(file, now)
}

/// Checks that all signatures in the image are valid at `now`.
fn check_signature_times(file: &ImageFile, now: u32) -> Result<(), UnusableImage> {
    if let Some(period) = file.period()
        && (serial::is_before(now, period.inception) || serial::is_before(period.expiration, now))
    {
        let (inception, expiration) = (period.inception, period.expiration);
        return Err(UnusableImage::SignatureTimes { now, inception, expiration });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_zone::{image, read};
    use std::path::Path;

    /// The time of the checks, in seconds since 1970.
    const NOW: u32 = 1_750_000_000;

    /// Returns an image file of a zone. If `is_signed`, its signatures are valid from one hour
    /// before [`NOW`] to one hour after.
    fn file(verification: Verification, is_signed: bool) -> ImageFile {
        let mut text = String::from("$ORIGIN example.\n@ 60 SOA . . 7 1 1 1 1\n@ 60 NS ns.other.\n");
        if is_signed {
            let (from, to) = (NOW - 3600, NOW + 3600);
            text.push_str(&format!("@ 60 RRSIG SOA 13 1 60 {to} {from} 1 example. AAAA\n"));
            text.push_str(&format!("@ 60 RRSIG NS 13 1 60 {} {from} 1 example. AAAA\n", to + 60));
        }
        let contents = read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
        let compiled = Image::compile(&contents).unwrap();
        let mut octets = Vec::new();
        image::file::write(&compiled, verification, &contents, verification, &mut octets).unwrap();
        ImageFile::open(octets).unwrap()
    }

    #[test]
    fn an_image_with_less_verification_than_required_is_not_published() {
        let (full, structural) = (Verification::Full { at: NOW }, Verification::Structural { at: NOW });
        let cases = [
            (full, Mode::Full, true),
            (full, Mode::Structural, true),
            (structural, Mode::Structural, true),
            (structural, Mode::Full, false),
            (Verification::Nothing, Mode::Structural, false),
            (Verification::Nothing, Mode::Full, false),
        ];
        for (found, mode, is_published) in cases {
            let outcome = Published::from_file(file(found, true), Some(mode), NOW);
            assert_eq!(outcome.is_ok(), is_published, "{found:?} {mode:?}");
            assert!(
                is_published || outcome.unwrap_err() == UnusableImage::InsufficientVerification { found }
            );
            assert!(Published::from_file(file(found, true), None, NOW).is_ok(), "nothing is required");
        }
    }

    #[test]
    fn signatures_must_be_valid_at_the_time() {
        let full = Verification::Full { at: NOW };
        let at = |now| Published::from_file(file(full, true), Some(Mode::Full), now);
        for now in [NOW - 3600, NOW, NOW + 3600] {
            assert!(at(now).is_ok(), "{now}");
        }
        for now in [NOW - 3601, NOW + 3601] {
            let (inception, expiration) = (NOW - 3600, NOW + 3600);
            assert_eq!(at(now).unwrap_err(), UnusableImage::SignatureTimes { now, inception, expiration });
        }
        assert!(Published::from_file(file(full, true), None, NOW + 3601).is_ok());
        let unsigned = file(full, false);
        assert_eq!(Published::from_file(unsigned, Some(Mode::Full), 0).unwrap().image().serial(), 7);
    }
}
