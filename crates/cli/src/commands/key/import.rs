//! `nonesuch key import`: converts private keys of other programs to key files of this program.
//!
//! BIND, ldns and PowerDNS write `.private` files; BIND and ldns also write a `.key` file. Knot DNS
//! stores PKCS#8 in PEM (`keys/<id>.pem` of its KASP database), which contains neither zone nor
//! role, nor the hash function of an RSA key.

use super::error::{Failure, Obstacle, Property};
use super::print_key;
use crate::arguments::KeyImportArguments;
use crate::files::read_key_file;
use crate::keys::ReadKeyError;
use crate::outcome::CommandOutcome;
use crate::{keys, zones};
use nonesuch_crypto::{PrivateKey, decode_pem, pkcs8_algorithms};
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::keys::directory::key_file_paths;
use nonesuch_dnssec::keys::{KeyRecord, KeyTimes, SEP, ZONE_KEY};
use std::path::Path;

/// Beginning of every PEM text (RFC 7468 §2).
const PEM: &str = "-----BEGIN ";

pub(super) fn run(arguments: &KeyImportArguments) -> Result<CommandOutcome, Failure> {
    // All files are read and checked before any file is written.
    let read = arguments.files.iter().map(|file| read(arguments, file)).collect::<Result<Vec<_>, _>>()?;
    for (key, _) in &read {
        check_existing_files(&arguments.dir, key)?;
    }
    for (key, times) in &read {
        keys::warn_about_key(key);
        // Two input files may contain different keys with the same tag.
        check_existing_files(&arguments.dir, key)?;
        keys::store_key(&arguments.dir, key, times)?;
        print_key(key, arguments.json)?;
    }
    Ok(CommandOutcome::Done)
}

/// Reads a private key and its `.key` file, and checks both against the options.
fn read(arguments: &KeyImportArguments, file: &Path) -> Result<(KeyPair, KeyTimes), Failure> {
    let named_public = file.extension().is_some_and(|extension| extension == "key");
    let path = if named_public { file.with_extension("private") } else { file.to_path_buf() };
    let record_path = path.with_extension("key");
    // A damaged public key matches no private key, so its own fault is reported first.
    let record = record_path.exists().then(|| keys::load_checked_record(&record_path)).transpose()?;
    let text = read_key_file(&path)?;
    let private = read_private(arguments, &path, &text)?;
    let pair = if let Some(record) = record {
        check_options(arguments, &record_path, &record)?;
        record.into_key_pair(private).map_err(|source| Failure::KeyFile { path: record_path, source })?
    } else {
        let zone = arguments.zone.as_ref().ok_or_else(|| Failure::ZoneNeeded { path: path.clone() })?;
        let flags = flags(arguments).ok_or_else(|| Failure::RoleNeeded { path: path.clone() })?;
        KeyPair::new(zone.view().to_canonical(), flags, private)
    };
    let times = KeyTimes::parse(&text).map_err(keys::key_file_error(&path))?;
    let times = times.unwrap_or_else(|| KeyTimes::active_since(zones::time_or_now(arguments.now)));
    Ok((pair, times))
}

/// Parses the text of a private key: a `.private` file or PEM.
fn read_private(arguments: &KeyImportArguments, path: &Path, text: &str) -> Result<PrivateKey, Failure> {
    let failed = |source| Failure::PrivateKey { path: path.to_path_buf(), source };
    if !text.contains(PEM) {
        let private = PrivateKey::from_bind(text).map_err(failed)?;
        return match arguments.algorithm {
            Some(wanted) if wanted != private.algorithm() => Err(contradiction(
                path,
                Property::Algorithm(private.algorithm()),
                Property::Algorithm(wanted),
            )),
            _ => Ok(private),
        };
    }
    let der = decode_pem(text).map_err(failed)?;
    let algorithm = match (arguments.algorithm, pkcs8_algorithms(&der).map_err(failed)?) {
        (Some(algorithm), _) => algorithm,
        (None, [only]) => *only,
        (None, several) => {
            let names: Vec<String> =
                several.iter().map(|algorithm| keys::algorithm_text(*algorithm)).collect();
            return Err(Failure::AlgorithmNeeded { path: path.to_path_buf(), choices: names.join(" or ") });
        }
    };
    PrivateKey::from_pkcs8(algorithm, &der).map_err(failed)
}

/// The flags of the role in the options.
fn flags(arguments: &KeyImportArguments) -> Option<u16> {
    match (arguments.ksk || arguments.csk, arguments.zsk) {
        (true, _) => Some(ZONE_KEY | SEP),
        (_, true) => Some(ZONE_KEY),
        _ => None,
    }
}

/// Checks that a `.key` file does not contradict the options.
fn check_options(arguments: &KeyImportArguments, path: &Path, record: &KeyRecord) -> Result<(), Failure> {
    if let Some(zone) = arguments.zone.as_ref().filter(|zone| *zone != record.owner()) {
        return Err(contradiction(
            path,
            Property::Zone(record.owner().clone()),
            Property::Zone(zone.clone()),
        ));
    }
    match flags(arguments) {
        Some(wanted) if wanted & SEP != record.flags() & SEP => {
            let role = |flags: u16| Property::Role { is_sep: flags & SEP != 0 };
            Err(contradiction(path, role(record.flags()), role(wanted)))
        }
        _ => Ok(()),
    }
}

fn contradiction(path: &Path, found: Property, wanted: Property) -> Failure {
    Failure::Contradiction { path: path.to_path_buf(), found, wanted }
}

/// Fails if the key files already exist and contain another key or cannot be read. Files with the
/// same key are accepted.
fn check_existing_files(dir: &Path, key: &KeyPair) -> Result<(), Failure> {
    let [key_path, private_path] = key_file_paths(dir, &key.base_name());
    if key_path.exists() {
        let record = keys::load_checked_record(&key_path).map_err(|error| unusable(&key_path, error))?;
        if *record.owner() != key.owner || record.rdata() != key.dnskey_rdata() {
            return Err(file_exists(&key_path, Obstacle::KeyMismatch));
        }
    }
    if private_path.exists() {
        let text = read_key_file(&private_path).map_err(|error| unusable(&private_path, error.into()))?;
        let found = PrivateKey::from_bind(&text)
            .map_err(|error| file_exists(&private_path, Obstacle::NotPrivate(error)))?;
        let public = key.private().public_key();
        if found.algorithm() != key.algorithm() || found.public_key() != public {
            return Err(file_exists(&private_path, Obstacle::KeyMismatch));
        }
    }
    Ok(())
}

fn file_exists(path: &Path, obstacle: Obstacle) -> Failure {
    Failure::FileExists { path: path.to_path_buf(), obstacle }
}

fn unusable(path: &Path, error: ReadKeyError) -> Failure {
    file_exists(path, Obstacle::Unusable(error))
}
