//! What `nonesuch serve` serves: the image of a file that was verified when it was compiled, mapped into memory, or one that
//! is compiled of a zone that is verified first.

use super::serve::{verify, verify_options};
use super::serve_online::{self, Way};
use crate::arguments::{ServeArguments, VerifyMode};
use crate::error::Failure;
use crate::zones;
use nonesuch_authoritative::service::FULL;
use nonesuch_authoritative::{OpenImageError, Published, open_image};
use nonesuch_dnssec::online::{Nsec5Zone, prepare};
use nonesuch_dnssec::verify::Mode;
use nonesuch_net::release_free_memory;
use nonesuch_zone::{CompiledError, ImageFile, LoadError, Loaded};

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
            let prover =
                serve_online::load_prover(&dir, Some(&arguments.file), &Nsec5Zone::of_contents(&contents))?;
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
    let file = match open_image(path) {
        Ok(Some(file)) => file,
        // What cannot be read is for the reader of zones to complain of.
        Ok(None) | Err(OpenImageError::Read { .. }) => return Ok(None),
        Err(OpenImageError::Load(error)) => return Err(error.into()),
    };
    check_origin(arguments, &file)?;
    let mode = match arguments.verify {
        VerifyMode::Auto if file.signatures() <= FULL => Mode::Full,
        _ => Mode::Structural,
    };
    let now = zones::now_or(arguments.now);
    let published = if file.image().nsec5_key().is_some() {
        let dir = serve_online::nsec5_folder(arguments)?;
        let prover = serve_online::load_prover(&dir, Some(path), &Nsec5Zone::of_image(file.image()))?;
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
