//! What is served: the image of a zone that was verified.

use nonesuch_dnssec::Verified;
use nonesuch_zone::Image;
use nonesuch_zone::image::CompileError;

/// A zone ready to be served. Only a verified zone becomes one, so nothing unverified is published.
#[derive(Debug)]
pub struct Published {
    image: Image,
}

impl Published {
    /// Compiles a verified zone.
    pub fn new(zone: &Verified) -> Result<Self, CompileError> {
        Ok(Self { image: Image::compile(zone.contents())? })
    }

    /// The image.
    #[must_use]
    pub const fn image(&self) -> &Image {
        &self.image
    }
}
