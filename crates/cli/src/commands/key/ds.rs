//! `nonesuch key ds`: prints DS records (RFC 4034 §5) in the format of `dnssec-dsfromkey`.

use super::error::Failure;
use crate::arguments::KeyDsArguments;
use crate::files::print_line;
use crate::keys;
use crate::outcome::CommandOutcome;
use nonesuch_crypto::DigestType;
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_dnssec::keys::directory::{KEY_FILE_SUFFIXES, key_file_paths};
use nonesuch_proto::{Name, Rtype, rdata};
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: &KeyDsArguments) -> Result<CommandOutcome, Failure> {
    let mut records = Vec::new();
    for text in &arguments.keys {
        records.extend(records_for_ds(arguments, text)?);
    }
    let wanted =
        records.iter().flat_map(|record| arguments.digest.iter().map(move |digest| (record, *digest)));
    // The command line accepts only digest types that are implemented.
    let digests: Vec<_> =
        wanted.filter_map(|(record, digest)| Some((record, digest, record.ds_rdata(digest)?))).collect();
    if arguments.json {
        let digests: Vec<_> =
            digests.iter().map(|(record, digest, rdata)| to_json(record, *digest, rdata)).collect();
        print_line(&serde_json::Value::from(digests).to_string())?;
    } else {
        for (record, _, rdata) in &digests {
            print_line(&format!("{} IN DS {}", record.owner(), ds_text(rdata)))?;
        }
    }
    Ok(CommandOutcome::Done)
}

/// The keys of a zone or file to which a DS record may refer: keys with the SEP flag or, with
/// `--all`, all keys; never revoked keys (RFC 5011 §2.1).
fn records_for_ds(arguments: &KeyDsArguments, text: &str) -> Result<Vec<KeyRecord>, Failure> {
    let paths: Vec<PathBuf> = if is_file(text) {
        vec![text.into()]
    } else {
        let zone =
            text.parse::<Name>().map_err(|source| Failure::ZoneName { text: text.to_owned(), source })?;
        let base_names = keys::key_names_of_zone(&arguments.dir, &zone)?;
        base_names.iter().map(|base| key_file_paths(&arguments.dir, base)[0].clone()).collect()
    };
    let mut records = Vec::new();
    for path in &paths {
        let record = keys::load_unchecked_record(path)?;
        if (record.is_sep() || arguments.all) && !record.is_revoked() {
            check_key_files(path, &record)?;
            records.push(record);
        }
    }
    records.sort_by_key(|record| (record.algorithm(), !record.is_sep(), record.tag()));
    if records.is_empty() {
        return Err(Failure::NoEntryPoint { input: text.to_owned() });
    }
    Ok(records)
}

/// Checks that the key can be used and fits its files, because a DS record of another key in the
/// parent would make the zone bogus. The private half may be missing, for example for a KSK that is
/// stored elsewhere.
fn check_key_files(path: &Path, record: &KeyRecord) -> Result<(), Failure> {
    record.check_public().map_err(keys::key_file_error(path))?;
    let Some(base) = path.to_str().and_then(|path| path.strip_suffix(KEY_FILE_SUFFIXES[0])) else {
        return Ok(());
    };
    let private_path = PathBuf::from(format!("{base}{}", KEY_FILE_SUFFIXES[1]));
    if private_path.exists() {
        keys::load_key_pair(record.clone(), &private_path)?;
    }
    let name = base.rsplit('/').next().unwrap_or(base);
    // A file name in another form contains no owner, algorithm or tag.
    if keys::is_key_base_name(name) {
        record.check_base_name(name).map_err(keys::key_file_error(path))?;
    }
    Ok(())
}

/// Whether `text` is a path: an existing file, or the name of a key file. A name with a final dot
/// is always a zone.
fn is_file(text: &str) -> bool {
    !text.ends_with('.')
        && (text.ends_with(".key") && text.contains('+') || text.contains('/') || Path::new(text).is_file())
}

/// The RDATA of a DS record in presentation format.
fn ds_text(rdata: &[u8]) -> String {
    let mut text = Vec::new();
    rdata::push_text(Rtype::DS, rdata, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn to_json(record: &KeyRecord, digest: DigestType, rdata: &[u8]) -> serde_json::Value {
    serde_json::json!({
        "zone": record.owner().to_string(), "tag": record.tag(), "algorithm": record.algorithm().to_string(),
        "algorithm_number": record.algorithm().0, "digest_type": digest.0,
        "digest": ds_text(rdata).rsplit(' ').next(), "base_name": record.base_name(),
    })
}
