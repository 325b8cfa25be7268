//! Functions that several commands use for zones: reading with warnings, verification, time, trust
//! anchors.

use crate::files::{FileError, input_name, is_standard_stream, print_to_stderr, read_input};
use crate::progress::{self, ProgressCount, RateBar};
use nonesuch_dnssec::VerifyOptions;
use nonesuch_dnssec::denial::nsec5::Nsec5Evidence;
use nonesuch_dnssec::inspect::{DenialInfo, KeyInfo, VrfKeyInfo};
use nonesuch_dnssec::verify::{Anchor, ProgressFn, Report, VerifyInputs, VerifyProgress, verify_with_inputs};
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::{
    CompiledError, Contents, LoadError, LoadedZone, ReadError, ReadFault, Warning, ZoneFault, load,
    load_octets, read,
};
use std::collections::HashMap;
use std::hash::Hash;
use std::io;
use std::mem::discriminant;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The message about a zone in which only the key set (DNSKEY, CDS and CDNSKEY) is signed.
pub(crate) const ONLY_KEY_SET_MESSAGE: &str = "only the DNSKEY, CDS and CDNSKEY records are signed, as by `nonesuch zone sign --only-keys`: \
    serve it with `nonesuch serve FILE --denial MECHANISM --keys DIR`, or sign the whole zone";

/// Why a zone is not read, or why the result is not written.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum ZoneError {
    File(#[from] FileError),
    Load(#[from] ReadZoneError),
}

/// Why the zone in a file from the command line is not read.
#[derive(Debug, thiserror::Error)]
#[error("{source}{}", message_end(source, *option))]
pub(crate) struct ReadZoneError {
    source: LoadError,
    option: ZoneOption,
}

/// The option to name in the message if the file contains a zone with another apex than expected.
#[derive(Clone, Copy, Debug)]
enum ZoneOption {
    Origin,
    Previous,
}

impl ReadZoneError {
    /// The error of reading the file of `--previous`.
    pub(crate) const fn previous(source: LoadError) -> Self {
        Self { source, option: ZoneOption::Previous }
    }
}

impl From<LoadError> for ReadZoneError {
    fn from(source: LoadError) -> Self {
        Self { source, option: ZoneOption::Origin }
    }
}

/// The end of the message if the apex in the file is not the expected one; otherwise empty. It
/// completes `…: name the file of zone example.`, the end of both errors `WrongOrigin`.
fn message_end(error: &LoadError, option: ZoneOption) -> String {
    let (LoadError::Text(ReadError { fault: ReadFault::Zone(ZoneFault::WrongOrigin { found, .. }), .. })
    | LoadError::Compiled { source: CompiledError::WrongOrigin { found, .. }, .. }) = error
    else {
        return String::new();
    };
    match option {
        ZoneOption::Origin => format!(", or set --origin to {found}"),
        ZoneOption::Previous => " with --previous".to_owned(),
    }
}

/// Why there are no trust anchors.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum AnchorError {
    File(#[from] FileError),
    Records(#[from] ReadError),
    #[error("{}: contains no DS or DNSKEY record", path.display())]
    NoRecord {
        path: PathBuf,
    },
    #[error("{}: contains no DS or DNSKEY record of {zone}", path.display())]
    NoAnchor {
        path: PathBuf,
        zone: Name,
    },
}

/// Reads a zone file or a compiled zone; `-` is standard input. Logs warnings; [`load_zone`] returns
/// them instead.
pub(crate) fn read_zone(path: &Path, origin: Option<&Name>) -> Result<Contents, ReadZoneError> {
    let loaded = load_zone(path, origin)?;
    log_warnings(path, &loaded.warnings);
    Ok(loaded.contents)
}

/// Like [`read_zone`], for the file of `--previous`.
pub(crate) fn read_previous(path: &Path, origin: Option<&Name>) -> Result<Contents, ReadZoneError> {
    read_zone(path, origin).map_err(|error| ReadZoneError::previous(error.source))
}

/// Maximum number of listed warnings of one kind, and default maximum for faults and findings.
pub(crate) const MAX_LISTED_PER_KIND: usize = 20;

/// The first `limit` entries of each kind, in their order.
pub(crate) fn first_of_each_kind<T, K: Eq + Hash>(
    all: &[T],
    limit: usize,
    kind: impl Fn(&T) -> K,
) -> Vec<&T> {
    let mut counts: HashMap<K, usize> = HashMap::new();
    let is_listed = |entry: &&T| {
        let count = counts.entry(kind(entry)).or_default();
        *count += 1;
        *count <= limit
    };
    all.iter().filter(is_listed).collect()
}

/// Logs warnings about the zone from `path`: the first [`MAX_LISTED_PER_KIND`] of each kind.
pub(crate) fn log_warnings(path: &Path, warnings: &[Warning]) {
    let name = input_name(path).display();
    let listed = first_of_each_kind(warnings, MAX_LISTED_PER_KIND, discriminant);
    for warning in &listed {
        tracing::warn!(name: "zone-warning", "{name}: {warning}");
    }
    if listed.len() < warnings.len() {
        tracing::warn!(name: "zone-warnings-omitted", "{name}: listed the first {MAX_LISTED_PER_KIND} of each kind of {} warnings", warnings.len());
    }
}

/// Like [`read_zone`], but returns the warnings instead of logging them. On a terminal, shows the
/// elapsed time, and then a line with the number of records, the time and the rate.
pub(crate) fn load_zone(path: &Path, origin: Option<&Name>) -> Result<LoadedZone, ReadZoneError> {
    let name = input_name(path).display();
    let spinner = progress::spinner(&format!("reading {name}"));
    let started_at = Instant::now();
    let loaded = if is_standard_stream(path) {
        load_octets(io::stdin().lock(), input_name(path), origin)
    } else {
        load(path, origin)
    };
    spinner.finish_and_clear();
    let loaded = loaded?;
    if !spinner.is_hidden() {
        let (records, seconds) = (loaded.contents.record_count(), started_at.elapsed().as_secs_f64());
        let rate = progress::rate(records, seconds);
        print_to_stderr(&format!("{name}: {records} records read in {seconds:.2} s, {rate} records/s"));
    }
    Ok(loaded)
}

/// Verifies a zone with `evidence`, and shows the progress on a terminal.
pub(crate) fn verify_with_progress(
    contents: &Contents,
    options: &VerifyOptions,
    evidence: &Nsec5Evidence<'_>,
) -> Report {
    let bar = RateBar::new("verifying");
    let show = |at: VerifyProgress| {
        let signatures = ProgressCount { done: at.signatures, name: "signatures" };
        bar.show(at.names, at.total_names, &[signatures, ProgressCount { done: at.names, name: "names" }]);
    };
    let progress = bar.is_visible().then_some(&show as ProgressFn<'_>);
    let report = verify_with_inputs(
        contents,
        options,
        &VerifyInputs { evidence: *evidence, progress, predecessor: None },
    );
    bar.end();
    report
}

/// A DNSKEY record in JSON, for reports.
pub(crate) fn key_json(key: &KeyInfo) -> serde_json::Value {
    serde_json::json!({
        "tag": key.tag, "algorithm": key.algorithm.0, "mnemonic": key.algorithm.to_string(), "flags": key.flags,
        "bits": key.bits,
    })
}

/// The denial of existence of a zone in JSON, for reports.
pub(crate) fn denial_json(denial: &DenialInfo) -> serde_json::Value {
    let parameters = denial.parameters.as_ref();
    let vrf_key = |key: &VrfKeyInfo| {
        serde_json::json!({
            "tag": key.tag, "algorithm": key.algorithm.0, "mnemonic": key.algorithm.to_string(), "records": key.records,
        })
    };
    serde_json::json!({
        "mechanism": denial.mechanism.to_string(), "records": denial.records,
        "opt_out_records": denial.opt_out_records, "wildcard_records": denial.wildcard_records,
        // The NSEC5 key of most records.
        "key_tag": denial.vrf_key().map(|key| key.tag),
        "nsec5_keys": denial.vrf_keys.iter().map(vrf_key).collect::<Vec<_>>(),
        "iterations": parameters.map(|parameters| parameters.iterations),
        "salt": parameters.map(|parameters| data_encoding::HEXUPPER.encode(&parameters.salt)),
    })
}

/// The given time or, if it is `None`, the current time, in seconds since 1970 modulo 2^32.
pub(crate) fn time_or_now(time: Option<u32>) -> u32 {
    time.unwrap_or_else(|| {
        // If the clock is before 1970, the time is 0. Every signature is then invalid, which is
        // reported later.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs() as u32)
    })
}

/// Reads the DS and DNSKEY records of `zone` from a file.
pub(crate) fn read_anchors(path: &Path, zone: &Name) -> Result<Vec<Anchor>, AnchorError> {
    let anchors = anchors_of(zone, read_anchor_file(path)?);
    if anchors.is_empty() {
        return Err(AnchorError::NoAnchor { path: path.to_path_buf(), zone: zone.clone() });
    }
    Ok(anchors)
}

/// Reads the trust anchors in a file. The zone is the owner of the first DS or DNSKEY record; records
/// of other owners are ignored.
pub(crate) fn read_anchors_of_first_zone(path: &Path) -> Result<(Name, Vec<Anchor>), AnchorError> {
    let records = read_anchor_file(path)?;
    let first = records.iter().find(|(_, rtype, _)| matches!(*rtype, Rtype::DS | Rtype::DNSKEY));
    match first.map(|(owner, ..)| owner.clone()) {
        Some(zone) => {
            let anchors = anchors_of(&zone, records);
            Ok((zone, anchors))
        }
        None => Err(AnchorError::NoRecord { path: path.to_path_buf() }),
    }
}

fn read_anchor_file(path: &Path) -> Result<Vec<(Name, Rtype, Vec<u8>)>, AnchorError> {
    let text = read_input(path)?;
    Ok(read::read_records(&text, input_name(path), &Name::root())?)
}

fn anchors_of(zone: &Name, records: Vec<(Name, Rtype, Vec<u8>)>) -> Vec<Anchor> {
    let of_zone = records.into_iter().filter(|(owner, _, _)| owner == zone);
    of_zone
        .filter_map(|(_, rtype, rdata)| match rtype {
            Rtype::DS => Some(Anchor::Ds(rdata)),
            Rtype::DNSKEY => Some(Anchor::Dnskey(rdata)),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_zone::Verification;

    /// The ends of the messages depend on the texts of the errors in the crate `nonesuch-zone`.
    #[test]
    fn the_messages_about_a_wrong_zone_name_the_option() {
        let folder = tempfile::tempdir().unwrap();
        let (path, compiled) = (folder.path().join("zone"), folder.path().join("zone.image"));
        std::fs::write(&path, "a. 60 IN SOA . . 1 1 1 1 1\na. 60 IN NS ns.test.\n").unwrap();
        let contents = load(&path, None).unwrap().contents;
        let mut octets = Vec::new();
        nonesuch_zone::compiled::write(&contents, Verification::Nothing, &mut octets).unwrap();
        std::fs::write(&compiled, octets).unwrap();
        let origin: Name = "example.".parse().unwrap();
        let name_file = "name the file of zone example.";
        for (path, position, fault) in [
            (&path, ":1:1", "the SOA record is at a., not at example."),
            (&compiled, "", "compiled zone of a., not of example."),
        ] {
            let message = format!("{}{position}: {fault}: {name_file}", path.display());
            let error = read_zone(path, Some(&origin)).unwrap_err();
            assert_eq!(error.to_string(), format!("{message}, or set --origin to a."));
            let error = read_previous(path, Some(&origin)).unwrap_err();
            assert_eq!(error.to_string(), format!("{message} with --previous"));
        }
    }
}
