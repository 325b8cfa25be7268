//! What several commands do with zones: read one and say what is odd, the time, trust anchors.

use crate::error::Failure;
use nonesuch_dnssec::verify::Anchor;
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::{Contents, load, read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Reads a zone file or a compiled zone; warnings go to the log.
pub(crate) fn read_zone(path: &Path, origin: Option<&Name>) -> Result<Contents, Failure> {
    let loaded = load(path, origin)?;
    for warning in &loaded.warnings {
        tracing::warn!("{}: {warning}", path.display());
    }
    Ok(loaded.contents)
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
    let text = std::fs::read(path).map_err(|source| Failure::Read { path: path.to_path_buf(), source })?;
    let records = read::read_records(&text, path, &Name::root())?;
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
