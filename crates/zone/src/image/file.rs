//! Image files, which `zone compile` writes and the server maps into memory.
//!
//! All numbers are little-endian. The file has this format:
//!
//! | octets | content |
//! | --- | --- |
//! | 8 | magic `89 4e 53 43 49 0d 0a 1a`: no text begins with it, and a transfer in text mode alters it |
//! | 4 | version of the format, 2 |
//! | 4 | byte order mark, 0x01020304 |
//! | 8 | octets of the image, including this page |
//! | 8 | octets of the file |
//! | 4 | serial of the zone |
//! | 4 | flags: 1 the zone is signed, 2 it has an NSEC3 chain, 4 it has an NSEC5 chain, 8 it has signatures |
//! | 4 | verification before the image was compiled: 0 none, 1 structural, 2 full |
//! | 4 | time for which the verification is valid, in seconds since 1970 modulo 2^32 |
//! | 4, 4 | latest inception and earliest expiration of the signatures |
//! | 8 | number of signatures |
//! | 2 | index of the SOA RRset of negative answers among the RRsets of the apex |
//! | 2, 2 | NSEC3 iterations, octets of the salt |
//! | 2, 2 | key tag and algorithm of the NSEC5 chain |
//! | 6 | 0 |
//! | 32 | BLAKE3 digest of the verified contents, in the form in which they follow the image |
//! | 32 | BLAKE3 digest of the image without this page |
//! | 16 each | offset and octets of each section (`super::Sections`), at multiples of 4096 |
//! | 256, 256 | apex in wire format, salt, each padded with zeros |
//! | 16 | digest of the algorithm tables used for the verification ([`nonesuch_crypto::tables_digest`]); 0 in older files |
//! | … | 0 up to 4064 |
//! | 32 | BLAKE3 digest of these 4064 octets |
//! | … | the sections |
//! | … | the contents of the zone in the format of [`crate::compiled`], to the end of the file |
//!
//! The digests show that the file is unaltered. They do not show who wrote it: a user with write
//! permission can also state that the zone was verified. Therefore the file needs the same
//! protection and permissions as the server's configuration. All offsets are checked nevertheless
//! (`super::check`): a forged file can cause wrong answers, but no panic and no endless loop.

use super::signature::ValidityPeriod;
use super::{Image, Nsec3Parameters, Nsec5Key, SECTION_COUNT, Sections, ZoneSummary, check};
use crate::{Contents, Verification, compiled};
use bytes::Bytes;
use nonesuch_crypto::tables_digest;
use nonesuch_proto::NameRef;
use std::io::{self, Write};
use std::ops::{Range, RangeInclusive};

const MAGIC: [u8; 8] = *b"\x89NSCI\r\n\x1a";
const VERSION: u32 = 2;
/// Versions of the format whose first page states the location of the contents in the same field.
const READABLE_VERSIONS: RangeInclusive<u32> = 1..=VERSION;
const BYTE_ORDER: u32 = 0x0102_0304;
/// Octets of the first page. The offsets of sections are multiples of this number.
pub const PAGE: usize = 4096;
/// Maximum octets of an image that is copied out of its file instead of mapped. For a small image,
/// a map would take several times the memory because of the padding of its pages. The system also
/// limits the number of maps of a process (65,530), and a server may have more zones.
const MAX_COPIED_OCTETS: u64 = 64 * PAGE as u64;
/// Octets of a BLAKE3 digest.
const DIGEST_OCTETS: usize = 32;
/// Octets at the start of the first page that the digest of the page covers.
const DIGESTED_OCTETS: usize = PAGE - DIGEST_OCTETS;
/// Octets of each of the fields for the apex and for the salt.
const VARIABLE_FIELD_OCTETS: usize = 256;
/// Flag: the zone is signed.
const FLAG_SIGNED: u32 = 1;
/// Flag: the zone has an NSEC3 chain.
const FLAG_NSEC3: u32 = 2;
/// Flag: the zone has an NSEC5 chain.
const FLAG_NSEC5: u32 = 4;
/// Flag: the zone has signatures.
const FLAG_SIGNATURES: u32 = 8;

/// Verification of a zone before its image was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationRecord {
    /// Extent and time of the verification.
    pub verification: Verification,
    /// BLAKE3 digest of the verified compiled contents, which follow the image.
    pub contents: [u8; DIGEST_OCTETS],
}

/// An image from a file, with the verification that the file records.
#[derive(Debug)]
pub struct ImageFile {
    image: Image,
    record: VerificationRecord,
}

/// Reason why a file is not a usable image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageFileError {
    /// The file does not begin with the magic of an image.
    #[error("not a zone image")]
    NotImage,
    /// The file has the other byte order.
    #[error("zone image in another byte order: compile the zone with this program")]
    ByteOrder,
    /// The version of the format is unknown.
    #[error(
        "zone image of format version {0}, but this program supports version {VERSION}: compile the zone again"
    )]
    Version(u32),
    /// Octets are missing at the end.
    #[error(
        "truncated: {found} of {expected} bytes of the zone image: copy the file again, or compile the zone again"
    )]
    Truncated {
        /// Expected number of octets.
        expected: u64,
        /// Number of octets in the file.
        found: u64,
    },
    /// A digest does not match.
    #[error(
        "zone image altered after compilation (digest mismatch): copy the file again, or compile the zone again"
    )]
    Altered,
    /// The digests match, but the image is malformed.
    #[error("malformed {0}: compile the zone again")]
    Malformed(&'static str),
}

/// Whether `octets` begin with the magic of an image file.
#[must_use]
pub fn is_image(octets: &[u8]) -> bool {
    octets.starts_with(&MAGIC)
}

/// Returns the range of the contents of the zone in an image file, up to the end of the file.
/// `page` is the start of the file with at least [`PAGE`] octets. The image before the contents may
/// have an older version of the format.
///
/// # Errors
/// The file is not an image file.
pub fn contents_range(page: &[u8]) -> Result<Range<u64>, ImageFileError> {
    let page = read_page(page, READABLE_VERSIONS)?;
    Ok(page.length..page.file_length)
}

impl ImageFile {
    /// Opens the image at the start of `octets`. Verifies its digests and uses the octets in place,
    /// without a copy. A small image is copied, and `octets` is dropped.
    ///
    /// # Errors
    /// The octets are not a valid image.
    pub fn open(octets: impl AsRef<[u8]> + Send + 'static) -> Result<Self, ImageFileError> {
        let octets = Bytes::from_owner(octets);
        let page = read_page(&octets, VERSION..=VERSION)?;
        let found = octets.len() as u64;
        let sections_octets = usize::try_from(page.length).ok().and_then(|length| octets.get(PAGE..length));
        let sections_octets =
            sections_octets.ok_or(ImageFileError::Truncated { expected: page.length, found })?;
        let mut sections: [Bytes; SECTION_COUNT] = Default::default();
        let is_small = page.length <= MAX_COPIED_OCTETS;
        for (section, (offset, length)) in sections.iter_mut().zip(page.sections) {
            let range = offset..offset + length;
            *section = if is_small { Bytes::copy_from_slice(&octets[range]) } else { octets.slice(range) };
        }
        let (summary, sections) = (page.summary, Sections::from_all(sections));
        let image = Image { summary, sections, is_chain_verified: false };
        let (digest, checked) = rayon::join(
            || blake3::Hasher::new().update_rayon(sections_octets).finalize(),
            || check::check(&image),
        );
        if digest != blake3::Hash::from_bytes(page.digest) {
            return Err(ImageFileError::Altered);
        }
        checked?;
        Ok(Self { image, record: page.record })
    }

    /// The verification of the zone.
    #[must_use]
    pub const fn record(&self) -> &VerificationRecord {
        &self.record
    }

    /// The image.
    #[must_use]
    pub const fn image(&self) -> &Image {
        &self.image
    }

    /// Period in which each RRset has a valid signature; `None` if there are no signatures.
    #[must_use]
    pub const fn period(&self) -> Option<ValidityPeriod> {
        self.image.period()
    }

    /// Number of signatures in the image.
    #[must_use]
    pub const fn signatures(&self) -> u64 {
        self.image.signatures()
    }

    /// Returns the image without the verification record.
    #[must_use]
    pub fn into_image(self) -> Image {
        self.image
    }
}

/// Writes an image file: the image of `contents` with `verification`, followed by the contents.
///
/// `contents_verification` is the verification in the header of the contents ([`compiled::write`]).
///
/// # Errors
/// Errors of `out`.
pub fn write(
    image: &Image,
    verification: Verification,
    contents: &Contents,
    contents_verification: Verification,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut hasher = blake3::Hasher::new();
    compiled::write(contents, contents_verification, &mut hasher)?;
    let record = VerificationRecord { verification, contents: *hasher.finalize().as_bytes() };
    image.write(&record, hasher.count(), out)?;
    compiled::write(contents, contents_verification, out)
}

impl Image {
    /// Writes the first page and the sections. `following_octets` is the number of octets that the
    /// caller writes after them.
    fn write(
        &self,
        record: &VerificationRecord,
        following_octets: u64,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut hasher = blake3::Hasher::new();
        for section in self.sections.all() {
            hasher.update_rayon(section);
            hasher.update(padding(section.len()));
        }
        out.write_all(&self.page(record, following_octets, *hasher.finalize().as_bytes()))?;
        for section in self.sections.all() {
            out.write_all(section)?;
            out.write_all(padding(section.len()))?;
        }
        Ok(())
    }

    /// Returns the first page. `digest` is the digest of the sections with their padding.
    fn page(
        &self,
        record: &VerificationRecord,
        following_octets: u64,
        digest: [u8; DIGEST_OCTETS],
    ) -> Vec<u8> {
        let ZoneSummary { apex, serial, is_signed, negative_soa, nsec3, nsec5, period, signatures } =
            &self.summary;
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags = flag(*is_signed, FLAG_SIGNED)
            | flag(nsec3.is_some(), FLAG_NSEC3)
            | flag(nsec5.is_some(), FLAG_NSEC5)
            | flag(period.is_some(), FLAG_SIGNATURES);
        let [kind, at] = record.verification.to_words();
        let (inception, expiration) = period.map_or((0, 0), |period| (period.inception, period.expiration));
        let (iterations, salt) = nsec3.as_ref().map_or((0, &[][..]), |nsec3| (nsec3.iterations, &nsec3.salt));
        let (tag, algorithm) = nsec5.map_or((0, 0), |key| (key.tag, key.algorithm));
        let length: usize =
            PAGE + self.sections.all().map(|section| padded(section.len())).iter().sum::<usize>();
        let mut page = Vec::with_capacity(PAGE);
        page.extend_from_slice(&MAGIC);
        push_words(&mut page, [VERSION, BYTE_ORDER]);
        page.extend_from_slice(&(length as u64).to_le_bytes());
        page.extend_from_slice(&(length as u64 + following_octets).to_le_bytes());
        push_words(&mut page, [*serial, flags, kind, at, inception, expiration]);
        page.extend_from_slice(&signatures.to_le_bytes());
        for number in [*negative_soa, iterations, salt.len() as u16, tag, u16::from(algorithm), 0, 0, 0] {
            page.extend_from_slice(&number.to_le_bytes());
        }
        page.extend_from_slice(&record.contents);
        page.extend_from_slice(&digest);
        let mut offset = PAGE;
        for section in self.sections.all() {
            page.extend_from_slice(&(offset as u64).to_le_bytes());
            page.extend_from_slice(&(section.len() as u64).to_le_bytes());
            offset += padded(section.len());
        }
        for octets in [apex.wire(), salt] {
            page.extend_from_slice(octets);
            page.resize(page.len() + VARIABLE_FIELD_OCTETS - octets.len(), 0);
        }
        page.extend_from_slice(&tables_digest());
        page.resize(DIGESTED_OCTETS, 0);
        let page_digest = blake3::hash(&page);
        page.extend_from_slice(page_digest.as_bytes());
        page
    }
}

fn push_words<const N: usize>(page: &mut Vec<u8>, words: [u32; N]) {
    words.iter().for_each(|word| page.extend_from_slice(&word.to_le_bytes()));
}

/// Returns the octets of a section with its padding.
const fn padded(length: usize) -> usize {
    length.next_multiple_of(PAGE)
}

/// Returns the zeros between a section and the next one.
fn padding(length: usize) -> &'static [u8] {
    &[0; PAGE][..padded(length) - length]
}

/// Content of the first page.
struct Page {
    /// Octets of the image, including this page.
    length: u64,
    /// Octets of the file.
    file_length: u64,
    summary: ZoneSummary,
    record: VerificationRecord,
    /// Digest of the image without this page.
    digest: [u8; DIGEST_OCTETS],
    /// Offset and octets of each section, within `length`.
    sections: [(usize, usize); SECTION_COUNT],
}

/// Takes fields from the start of the page. There are always enough octets, because the page has a
/// constant size.
struct Fields<'p>(&'p [u8]);

impl<'p> Fields<'p> {
    fn take_array<const N: usize>(&mut self) -> [u8; N] {
        self.take_octets(N).first_chunk().copied().unwrap_or([0; N])
    }

    fn take_octets(&mut self, count: usize) -> &'p [u8] {
        let (head, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        head
    }

    fn take_u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take_array())
    }

    fn take_u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take_array())
    }

    fn take_u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take_array())
    }
}

/// Reads the first page at the start of `octets` and verifies its digest. `versions` are the
/// accepted versions of the format.
fn read_page(octets: &[u8], versions: RangeInclusive<u32>) -> Result<Page, ImageFileError> {
    if !is_image(octets) {
        return Err(ImageFileError::NotImage);
    }
    let found = octets.len() as u64;
    let page = octets.get(..PAGE).ok_or(ImageFileError::Truncated { expected: PAGE as u64, found })?;
    let mut fields = Fields(&page[MAGIC.len()..]);
    match (fields.take_u32(), fields.take_u32()) {
        (_, mark) if mark == BYTE_ORDER.swap_bytes() => return Err(ImageFileError::ByteOrder),
        (version, _) if !versions.contains(&version) => return Err(ImageFileError::Version(version)),
        (_, mark) if mark != BYTE_ORDER => return Err(ImageFileError::Malformed("byte order")),
        _ => {}
    }
    if blake3::hash(&page[..DIGESTED_OCTETS]).as_bytes() != &page[DIGESTED_OCTETS..] {
        return Err(ImageFileError::Altered);
    }
    read_fields(fields)
}

/// Reads the fields after the byte order mark.
fn read_fields(mut fields: Fields<'_>) -> Result<Page, ImageFileError> {
    let (length, file_length) = (fields.take_u64(), fields.take_u64());
    let [serial, flags, kind, at, inception, expiration] = std::array::from_fn(|_| fields.take_u32());
    let signatures = fields.take_u64();
    let [negative_soa, iterations, salt_length, tag, algorithm, ..]: [u16; 8] =
        std::array::from_fn(|_| fields.take_u16());
    let (contents, digest) = (fields.take_array(), fields.take_array());
    let sections = read_table(&mut fields, length)?;
    let malformed = ImageFileError::Malformed;
    if file_length < length {
        return Err(malformed("file length"));
    }
    let apex = NameRef::split_from(fields.take_octets(VARIABLE_FIELD_OCTETS))
        .map_err(|_| malformed("apex"))?
        .0
        .to_canonical();
    let salt = fields
        .take_octets(VARIABLE_FIELD_OCTETS)
        .get(..usize::from(salt_length))
        .filter(|salt| salt.len() <= 255);
    let salt = salt.ok_or_else(|| malformed("salt"))?.to_vec();
    let verification = Verification::from_words([kind, at], fields.take_array());
    let verification = verification.ok_or_else(|| malformed("verification record"))?;
    let algorithm = u8::try_from(algorithm).map_err(|_| malformed("NSEC5 algorithm"))?;
    let summary = ZoneSummary {
        apex,
        serial,
        is_signed: flags & FLAG_SIGNED != 0,
        negative_soa,
        nsec3: (flags & FLAG_NSEC3 != 0).then_some(Nsec3Parameters { iterations, salt }),
        nsec5: (flags & FLAG_NSEC5 != 0).then_some(Nsec5Key { tag, algorithm }),
        period: (flags & FLAG_SIGNATURES != 0).then_some(ValidityPeriod { inception, expiration }),
        signatures,
    };
    Ok(Page {
        length,
        file_length,
        summary,
        record: VerificationRecord { verification, contents },
        digest,
        sections,
    })
}

/// Reads the table of sections. The sections must be consecutive from the first page on, each at
/// the next multiple of [`PAGE`], and end at the end of the image.
fn read_table(
    fields: &mut Fields<'_>,
    length: u64,
) -> Result<[(usize, usize); SECTION_COUNT], ImageFileError> {
    let mut sections = [(0, 0); SECTION_COUNT];
    let mut end = PAGE as u64;
    for section in &mut sections {
        let (offset, octets) = (fields.take_u64(), fields.take_u64());
        let section_end =
            octets.checked_next_multiple_of(PAGE as u64).and_then(|octets| offset.checked_add(octets));
        let section_end = section_end.filter(|section_end| offset == end && *section_end <= length);
        end = section_end.ok_or(ImageFileError::Malformed("section table"))?;
        // The offsets are less than `length`. The caller compares `length` with the number of
        // available octets before it uses them.
        *section = (offset as usize, octets as usize);
    }
    if end == length { Ok(sections) } else { Err(ImageFileError::Malformed("section table")) }
}
