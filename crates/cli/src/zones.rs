//! What several commands do with zones: read one and say what is odd, the time, trust anchors.

use crate::error::Failure;
use crate::files::{input_name, is_standard, read_input, say};
use crate::progress;
use nonesuch_dnssec::facts::{DenialFacts, KeyFacts, VrfKeyFacts};
use nonesuch_dnssec::verify::Anchor;
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::{Contents, Loaded, load, load_octets, read};
use std::io;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Reads a zone file or a compiled zone, `-` from standard input; warnings go to the log.
pub(crate) fn read_zone(path: &Path, origin: Option<&Name>) -> Result<Contents, Failure> {
    Ok(load_zone(path, origin)?.contents)
}

/// As [`read_zone`], with what was verified before a compiled zone was compiled.
pub(crate) fn load_zone(path: &Path, origin: Option<&Name>) -> Result<Loaded, Failure> {
    let name = input_name(path).display();
    let line = progress::spinner(&format!("reading {name}"));
    let begun = Instant::now();
    let loaded = if is_standard(path) {
        load_octets(io::stdin().lock(), input_name(path), origin)
    } else {
        load(path, origin)
    };
    line.finish_and_clear();
    let loaded = loaded?;
    if !line.is_hidden() {
        let (records, seconds) = (loaded.contents.record_count(), begun.elapsed().as_secs_f64());
        let rate = progress::rate(records, seconds);
        say(&format!("{name}: {records} records read in {seconds:.2} s, {rate} records/s"));
    }
    for warning in &loaded.warnings {
        tracing::warn!("{name}: {warning}");
    }
    Ok(loaded)
}

/// A DNSKEY record for reports.
pub(crate) fn key_json(key: &KeyFacts) -> serde_json::Value {
    serde_json::json!({
        "tag": key.tag, "algorithm": key.algorithm.0, "mnemonic": key.algorithm.to_string(), "flags": key.flags,
        "bits": key.bits,
    })
}

/// How a zone denies existence, for reports.
pub(crate) fn denial_json(denial: &DenialFacts) -> serde_json::Value {
    let parameters = denial.parameters.as_ref();
    let vrf_key = |key: &VrfKeyFacts| {
        serde_json::json!({
            "tag": key.tag, "algorithm": key.algorithm.0, "mnemonic": key.algorithm.to_string(), "records": key.records,
        })
    };
    serde_json::json!({
        "mechanism": denial.mechanism.to_string(), "records": denial.records,
        "opt_out_records": denial.opt_out_records, "wildcard_records": denial.wildcard_records,
        "key_tag": denial.vrf_key().map(|key| key.tag),
        "nsec5_keys": denial.vrf_keys.iter().map(vrf_key).collect::<Vec<_>>(),
        "iterations": parameters.map(|parameters| parameters.iterations),
        "salt": parameters.map(|parameters| data_encoding::HEXUPPER.encode(&parameters.salt)),
    })
}

/// The time given, or else the clock's, in seconds since 1970 modulo 2^32.
pub(crate) fn now_or(time: Option<u32>) -> u32 {
    time.unwrap_or_else(|| {
        // A clock before 1970 makes every signature invalid, which is said then.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs() as u32)
    })
}

/// Reads the DS and DNSKEY records of `zone` from a file.
pub(crate) fn read_anchors(path: &Path, zone: &Name) -> Result<Vec<Anchor>, Failure> {
    let text = read_input(path)?;
    let records = read::read_records(&text, input_name(path), &Name::root())?;
    let anchors: Vec<Anchor> = records
        .into_iter()
        .filter(|(owner, _, _)| owner == zone)
        .filter_map(|(_, rtype, rdata)| match rtype {
            Rtype::DS => Some(Anchor::Ds(rdata)),
            Rtype::DNSKEY => Some(Anchor::Dnskey(rdata)),
            _ => None,
        })
        .collect();
    if anchors.is_empty() {
        return Err(Failure::NoAnchor { path: path.to_path_buf(), zone: zone.clone() });
    }
    Ok(anchors)
}
