//! What is served: the image of a zone that was verified, and how denial is made.

use nonesuch_dnssec::online::{Nsec5Prover, OnlineKeys, Prepared, Workshop};
use nonesuch_dnssec::{Mechanism, Verified};
use nonesuch_zone::Image;
use nonesuch_zone::image::CompileError;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A zone ready to be served. Only a verified zone becomes one, so nothing unverified is published.
#[derive(Debug)]
pub struct Published {
    image: Image,
    denial: Denial,
    /// Tells this image from every other of the process: signatures over its RRsets are cached under it.
    generation: u64,
}

/// Where the records of denials come from.
#[derive(Debug)]
pub(crate) enum Denial {
    /// From the image: the signer made them (NSEC, NSEC3), or there are none.
    FromImage,
    /// They are made when asked, and signed with the zone's keys; so is whatever the image has no signatures of.
    Online {
        /// The mechanism.
        mechanism: Mechanism,
        /// The keys.
        keys: Box<OnlineKeys>,
    },
    /// From the image, with a proof made when asked for most of them (NSEC5).
    Nsec5(Box<Nsec5Prover>),
}

impl Published {
    /// Compiles a verified zone.
    pub fn new(zone: &Verified) -> Result<Self, CompileError> {
        Ok(Self::of(Image::compile(zone.contents())?, Denial::FromImage))
    }

    /// Compiles a zone that is denied from, and where need be signed, when asked.
    pub fn online(zone: Prepared) -> Result<Self, CompileError> {
        let (contents, mechanism, keys) = zone.into_parts();
        Ok(Self::of(Image::compile(&contents)?, Denial::Online { mechanism, keys: Box::new(keys) }))
    }

    /// Compiles a verified zone with NSEC5; `prover` is of that zone.
    pub fn nsec5(zone: &Verified, prover: Nsec5Prover) -> Result<Self, CompileError> {
        Ok(Self::of(Image::compile(zone.contents())?, Denial::Nsec5(Box::new(prover))))
    }

    pub(crate) fn of(image: Image, denial: Denial) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { image, denial, generation: NEXT.fetch_add(1, Relaxed) }
    }

    /// The image.
    #[must_use]
    pub const fn image(&self) -> &Image {
        &self.image
    }

    pub(crate) const fn denial(&self) -> &Denial {
        &self.denial
    }

    /// Has `workshop` make all that answers of this zone want of it, with signatures of `now`.
    pub fn make(&self, workshop: &mut Workshop, now: u32) {
        match &self.denial {
            Denial::FromImage => {}
            Denial::Online { keys, .. } => workshop.make(Some(keys), None, now),
            Denial::Nsec5(prover) => workshop.make(None, Some(prover), now),
        }
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether answers may have to be made: signed or proven when asked.
    #[must_use]
    pub const fn is_online(&self) -> bool {
        !matches!(self.denial, Denial::FromImage)
    }
}
