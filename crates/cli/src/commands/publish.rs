//! What `nonesuch serve` serves: the image of a file that was verified when it was compiled, mapped into memory, or one that
//! is compiled of a zone that is verified first.

use super::serve::{verify, verify_options};
use super::serve_online::{self, Way};
use crate::arguments::{ServeArguments, VerifyMode};
use crate::error::Failure;
use crate::zones;
use nonesuch_authoritative::Published;
use nonesuch_authoritative::service::FULL;
use nonesuch_dnssec::online::{Nsec5Zone, prepare};
use nonesuch_dnssec::verify::Mode;
use nonesuch_net::{Map, release_free_memory};
use nonesuch_zone::image::file::{PAGE, contents_range, is_image};
use nonesuch_zone::{CompiledError, ImageFile, ImageFileError, LoadError, Loaded};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Takes the zone of the command line, verified, with what its answers are made by.
pub(super) fn publish(arguments: &ServeArguments) -> Result<Published, Failure> {
    if let Some(published) = map(arguments)? {
        return Ok(published);
    }
    let published = compile(arguments)?;
    // What reading and compiling have freed is a multiple of the image.
    release_free_memory();
    Ok(published)
}

/// Loads, verifies and compiles the zone.
fn compile(arguments: &ServeArguments) -> Result<Published, Failure> {
    let Loaded { contents, verification, .. } = zones::load_zone(&arguments.file, arguments.origin.as_ref())?;
    match serve_online::choose(arguments, &contents)? {
        Way::AsItIs => Ok(Published::new(&verify(arguments, contents, verification)?)?),
        Way::Online(mechanism) => {
            let options = serve_online::load_keys(arguments, contents.apex(), mechanism)?;
            let verify = verify_options(arguments, &contents, verification.as_ref());
            let prepared = prepare(contents, options, &verify)
                .map_err(|source| Failure::Prepare { path: arguments.file.clone(), source })?;
            for tag in prepared.keys().key_signing_tags() {
                tracing::warn!(
                    "key {tag} signs keys alone, and its private file is in the server's folder: sign the key set elsewhere, \
                     with `nonesuch zone sign --only-keys`, and keep that file there"
                );
            }
            Ok(Published::online(prepared)?)
        }
        Way::Nsec5(dir) => {
            // Before the zone is verified: a server that must not start says so at once.
            let prover = serve_online::load_prover(arguments, &Nsec5Zone::of_contents(&contents), &dir)?;
            let verified = verify(arguments, contents, verification)?;
            Ok(Published::nsec5(&verified, prover)?)
        }
    }
}

/// The image that the file begins with; `None` where it has none that may be served without verifying the zone.
fn map(arguments: &ServeArguments) -> Result<Option<Published>, Failure> {
    let path = arguments.file.as_path();
    // Who asks for all signatures to be verified does not rely on what a file says.
    if arguments.verify == VerifyMode::Full || serve_online::is_asked_for(arguments) {
        return Ok(None);
    }
    let Some(page) = read_page(path) else { return Ok(None) };
    let unusable = |source| LoadError::Image { path: path.to_path_buf(), source };
    let contents = contents_range(&page).map_err(unusable)?;
    let found = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if found < contents.end {
        // The image may be whole, and yet the file is not what was written.
        return Err(unusable(ImageFileError::Truncated { expected: contents.end, found }).into());
    }
    let unreadable = |source| Failure::Read { path: path.to_path_buf(), source };
    let map = Map::open(path, usize::try_from(contents.start).unwrap_or(usize::MAX)).map_err(unreadable)?;
    let file = ImageFile::open(map).map_err(unusable)?;
    check_origin(arguments, &file)?;
    let mode = match arguments.verify {
        VerifyMode::Auto if file.signatures() <= FULL => Mode::Full,
        _ => Mode::Structural,
    };
    let now = zones::now_or(arguments.now);
    let published = if file.image().nsec5_key().is_some() {
        let dir = serve_online::nsec5_folder(arguments)?;
        let prover = serve_online::load_prover(arguments, &Nsec5Zone::of_image(file.image()), &dir)?;
        Published::nsec5_from_file(file, prover, mode, now)
    } else if arguments.online.nsec5_keys.is_some() {
        return Err(Failure::NotNsec5 { path: path.to_path_buf() });
    } else {
        Published::from_file(file, mode, now)
    };
    match published {
        Ok(published) => Ok(Some(published)),
        Err(reason) => {
            tracing::info!("{}: {reason}; verifying the zone", path.display());
            Ok(None)
        }
    }
}

/// The first page of a regular file that begins as an image does. What cannot be read is for the reader of zones to
/// complain of.
fn read_page(path: &Path) -> Option<Vec<u8>> {
    let file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()).then(|| File::open(path));
    let mut page = Vec::with_capacity(PAGE);
    file?.ok()?.take(PAGE as u64).read_to_end(&mut page).ok()?;
    is_image(&page).then_some(page)
}

fn check_origin(arguments: &ServeArguments, file: &ImageFile) -> Result<(), Failure> {
    let found = file.image().apex();
    match arguments.origin.as_ref().filter(|origin| origin.view() != found) {
        None => Ok(()),
        Some(origin) => {
            let source = CompiledError::WrongOrigin { found: found.to_name(), origin: origin.clone() };
            Err(LoadError::Compiled { path: arguments.file.clone(), source }.into())
        }
    }
}
