//! What is served: the image of a zone that was verified, and how denial is made.

use nonesuch_dnssec::Verified;
use nonesuch_dnssec::online::{Nsec5Prover, OnlineKeys, OnlineSigner, PreparedZone};
use nonesuch_dnssec::verify::Mode;
use nonesuch_proto::serial;
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_zone::image::{CompileError, ImageFile};
use nonesuch_zone::{Contents, Image, Verification};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A zone ready to be served. A verified zone becomes one, or an image file with a record that its zone was
/// verified when the image was made; [`Published::unverified`] is the one exception. A copy shares image and keys.
#[derive(Clone, Debug)]
pub struct Published {
    image: Image,
    denial: Denial,
    /// Tells this image from every other of the process: signatures over its RRsets are cached under it.
    generation: u64,
}

/// Where the records of denials come from.
#[derive(Clone, Debug)]
pub(crate) enum Denial {
    /// From the image: the signer made them (NSEC, NSEC3), or there are none.
    Image,
    /// They are made when asked, and signed with the zone's keys; so is whatever the image has no signatures of.
    Online(Arc<OnlineKeys>),
    /// From the image, with a proof made when asked for most of them (NSEC5).
    Nsec5(Arc<Nsec5Prover>),
}

/// Why an image file cannot be served as it is. Its contents can be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnusableImage {
    /// Less was verified than is asked for.
    #[error("{} when the image was made", match .found {
        Verification::Nothing => "nothing was verified",
        Verification::Structural { .. } => "signatures were not verified",
        Verification::Full { .. } => "everything was verified",
        Verification::OtherTables { .. } => "the tables of algorithms were not those of this program",
    })]
    Record {
        /// What was verified.
        found: Verification,
    },
    /// Its denials are proved when asked, which takes the zone's VRF key.
    #[error("the zone has NSEC5, and denials take its VRF key")]
    Nsec5,
    /// The signatures are not all valid at this time.
    #[error(
        "signatures are valid from {} to {}, and it is {}",
        Rfc3339(u64::from(*inception)), Rfc3339(u64::from(*expiration)), Rfc3339(u64::from(*now))
    )]
    Time {
        /// The time.
        now: u32,
        /// The latest inception.
        inception: u32,
        /// The earliest expiration.
        expiration: u32,
    },
}

impl Published {
    /// Compiles a verified zone.
    pub fn new(zone: &Verified) -> Result<Self, CompileError> {
        Ok(Self::of(Image::compile(zone.contents())?.with_verified_chain(), Denial::Image))
    }

    /// Compiles a zone that was not verified, or has faults and is to be served nevertheless. Proofs and signatures that it
    /// lacks are missing from answers; each proof is checked before it is sent.
    pub fn unverified(contents: &Contents) -> Result<Self, CompileError> {
        Ok(Self::of(Image::compile(contents)?, Denial::Image))
    }

    /// Compiles a zone that is denied from, and where need be signed, when asked.
    pub fn online(zone: PreparedZone) -> Result<Self, CompileError> {
        let (contents, keys) = zone.into_parts();
        Ok(Self::of(Image::compile(&contents)?, Denial::Online(Arc::new(keys))))
    }

    /// Compiles a verified zone with NSEC5; `prover` is of that zone.
    pub fn nsec5(zone: &Verified, prover: Nsec5Prover) -> Result<Self, CompileError> {
        Self::nsec5_unverified(zone.contents(), prover)
    }

    /// As [`Published::unverified`], of a zone with NSEC5; `prover` is of that zone.
    pub fn nsec5_unverified(contents: &Contents, prover: Nsec5Prover) -> Result<Self, CompileError> {
        Ok(Self::of(Image::compile(contents)?, Denial::Nsec5(Arc::new(prover))))
    }

    pub(crate) fn of(image: Image, denial: Denial) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { image, denial, generation: NEXT.fetch_add(1, Relaxed) }
    }

    /// Takes the image of a file that says that its zone was verified, in this mode at least, and whose signatures are valid
    /// at `now`, in seconds since 1970 modulo 2^32. Without a mode nothing is demanded of zone or signatures.
    ///
    /// # Errors
    /// Why the zone must be verified first, or is served with [`Published::nsec5_from_file`].
    pub fn from_file(file: ImageFile, mode: Option<Mode>, now: u32) -> Result<Self, UnusableImage> {
        if file.image().nsec5_key().is_some() {
            return Err(UnusableImage::Nsec5);
        }
        check_file(&file, mode, now)?;
        let is_verified =
            matches!(file.record().verification, Verification::Full { .. } | Verification::Structural { .. });
        let image = file.into_image();
        let image = if is_verified { image.with_verified_chain() } else { image };
        Ok(Self::of(image, Denial::Image))
    }

    /// As [`Published::from_file`], of a zone with NSEC5; `prover` is of that zone.
    ///
    /// # Errors
    /// Why the zone must be verified first.
    pub fn nsec5_from_file(
        file: ImageFile,
        prover: Nsec5Prover,
        mode: Option<Mode>,
        now: u32,
    ) -> Result<Self, UnusableImage> {
        check_file(&file, mode, now)?;
        Ok(Self::of(file.into_image(), Denial::Nsec5(Arc::new(prover))))
    }

    /// As [`Published::from_file`], of a zone that was published with [`Published::online`] before, and of which that was
    /// verified: the file itself cannot say it, since its image lacks what is made when asked. Whoever calls knows that
    /// the image was made by the same mechanism of the same DNSKEY RRset.
    ///
    /// # Errors
    /// Why the zone must be prepared anew.
    pub fn online_from_file(
        file: ImageFile,
        verification: Verification,
        keys: OnlineKeys,
        mode: Option<Mode>,
        now: u32,
    ) -> Result<Self, UnusableImage> {
        match (verification, mode) {
            // Nothing is verified of a zone without signatures.
            (Verification::Nothing, Some(_)) => check_times(&file, now)?,
            (found, mode) => check(&file, found, mode, now)?,
        }
        Ok(Self::of(file.into_image(), Denial::Online(Arc::new(keys))))
    }

    /// The image.
    #[must_use]
    pub const fn image(&self) -> &Image {
        &self.image
    }

    /// Has `workshop` make all that answers of this zone want of it, with signatures of `now`.
    pub fn make_deferred(&self, workshop: &mut OnlineSigner, now: u32) {
        if self.is_online() {
            workshop.make_pending(self.online_keys(), self.prover(), now);
        }
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether answers are signed when asked: the zone has signatures of its own in part or not at all.
    #[must_use]
    pub const fn is_signed_online(&self) -> bool {
        matches!(self.denial, Denial::Online(_))
    }

    /// How the zone is served, for readers: `unsigned`, `signed with NSEC3`, `signed when asked (white-lies)` …
    #[must_use]
    pub fn description(&self) -> String {
        let image = &self.image;
        match &self.denial {
            Denial::Online(keys) => format!("signed when asked ({})", keys.mechanism()),
            Denial::Nsec5(_) => "signed with NSEC5, proved when asked".to_owned(),
            Denial::Image if !image.is_signed() => "unsigned".to_owned(),
            Denial::Image if image.nsec3_parameters().is_some() => "signed with NSEC3".to_owned(),
            Denial::Image => "signed with NSEC".to_owned(),
        }
    }

    /// The keys of answers that are signed online.
    pub(crate) fn online_keys(&self) -> Option<&OnlineKeys> {
        if let Denial::Online(keys) = &self.denial { Some(keys) } else { None }
    }

    /// What proves denials of a zone with NSEC5.
    pub(crate) fn prover(&self) -> Option<&Nsec5Prover> {
        if let Denial::Nsec5(prover) = &self.denial { Some(prover) } else { None }
    }

    /// Whether answers may have to be made: signed or proven when asked.
    #[must_use]
    pub const fn is_online(&self) -> bool {
        !matches!(self.denial, Denial::Image)
    }
}

/// Whether a file says enough of its zone.
fn check_file(file: &ImageFile, mode: Option<Mode>, now: u32) -> Result<(), UnusableImage> {
    check(file, file.record().verification, mode, now)
}

/// Whether it is enough of the zone of `file` that so much was verified of it.
fn check(file: &ImageFile, found: Verification, mode: Option<Mode>, now: u32) -> Result<(), UnusableImage> {
    let Some(mode) = mode else { return Ok(()) };
    match (found, mode) {
        (Verification::Full { .. }, _) | (Verification::Structural { .. }, Mode::Structural) => {}
        _ => return Err(UnusableImage::Record { found }),
    }
    check_times(file, now)
}

fn check_times(file: &ImageFile, now: u32) -> Result<(), UnusableImage> {
    if let Some(period) = file.period()
        && (serial::is_before(now, period.inception) || serial::is_before(period.expiration, now))
    {
        let (inception, expiration) = (period.inception, period.expiration);
        return Err(UnusableImage::Time { now, inception, expiration });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_zone::{image, read};
    use std::path::Path;

    const NOON: u32 = 1_750_000_000;

    /// An image file of a zone with signatures that are valid for an hour before and after noon; none where it is unsigned.
    fn file(verification: Verification, is_signed: bool) -> ImageFile {
        let mut text = String::from("$ORIGIN example.\n@ 60 SOA . . 7 1 1 1 1\n@ 60 NS ns.other.\n");
        if is_signed {
            let (from, to) = (NOON - 3600, NOON + 3600);
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
    fn only_what_was_verified_as_much_as_is_asked_for_is_published() {
        let (full, structural) = (Verification::Full { at: NOON }, Verification::Structural { at: NOON });
        let cases = [
            (full, Mode::Full, true),
            (full, Mode::Structural, true),
            (structural, Mode::Structural, true),
            (structural, Mode::Full, false),
            (Verification::Nothing, Mode::Structural, false),
            (Verification::Nothing, Mode::Full, false),
        ];
        for (found, mode, is_published) in cases {
            let outcome = Published::from_file(file(found, true), Some(mode), NOON);
            assert_eq!(outcome.is_ok(), is_published, "{found:?} {mode:?}");
            assert!(is_published || outcome.unwrap_err() == UnusableImage::Record { found });
            assert!(Published::from_file(file(found, true), None, NOON).is_ok(), "nothing is demanded");
        }
    }

    #[test]
    fn signatures_must_be_valid_at_the_time() {
        let full = Verification::Full { at: NOON };
        let at = |now| Published::from_file(file(full, true), Some(Mode::Full), now);
        for now in [NOON - 3600, NOON, NOON + 3600] {
            assert!(at(now).is_ok(), "{now}");
        }
        for now in [NOON - 3601, NOON + 3601] {
            let (inception, expiration) = (NOON - 3600, NOON + 3600);
            assert_eq!(at(now).unwrap_err(), UnusableImage::Time { now, inception, expiration });
        }
        assert!(Published::from_file(file(full, true), None, NOON + 3601).is_ok());
        let unsigned = file(full, false);
        assert_eq!(Published::from_file(unsigned, Some(Mode::Full), 0).unwrap().image().serial(), 7);
    }
}
