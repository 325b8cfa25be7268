//! ZONEMD in a zone to be signed (RFC 8976 §3). The records are added before signing with digests
//! of zeros, so that the chain lists the type. The digests are computed when all other records are
//! signed, and the ZONEMD RRset is signed last.

use super::chunk::ChunkSigner;
use super::rrsets::TtlAndRdatas;
use super::{SignError, SignOptions, SignStatistics, SignWarning};
use nonesuch_proto::Rtype;
use nonesuch_zone::zonemd::{Digester, SCHEME_SIMPLE, Zonemd, ZonemdHash, hashes};
use nonesuch_zone::{Contents, NodesBuilder};
use std::collections::BTreeMap;

/// Replaces the ZONEMD records of the zone by records with digests of zeros. `soa_ttl` is the TTL
/// of the SOA record, which RFC 8976 §2.1 recommends for a new RRset; `serial` is the serial of the
/// signed zone. Warns about records with an unsupported scheme or hash algorithm, which it removes.
pub(super) fn prepare(
    rrsets: &mut BTreeMap<Rtype, TtlAndRdatas>,
    options: &SignOptions<'_>,
    soa_ttl: u32,
    serial: u32,
    warnings: &mut Vec<SignWarning>,
) {
    let present = rrsets.remove(&Rtype::ZONEMD);
    let ttl = present.as_ref().map_or(soa_ttl, |(ttl, _)| *ttl);
    let hashes = options
        .zonemd
        .clone()
        .unwrap_or_else(|| supported_hashes(present.iter().flat_map(|(_, rdatas)| rdatas), warnings));
    let mut rdatas = Vec::new();
    // RFC 8976 §2: two records must not have the same scheme and hash algorithm.
    for hash in ZonemdHash::ALL.into_iter().filter(|hash| hashes.contains(hash)) {
        rdatas.push(rdata(serial, hash, &vec![0; hash.octets()]));
    }
    if !rdatas.is_empty() {
        rrsets.insert(Rtype::ZONEMD, (ttl, rdatas));
    }
}

/// RDATA of a ZONEMD record.
fn rdata(serial: u32, hash: ZonemdHash, digest: &[u8]) -> Vec<u8> {
    let mut rdata = Vec::new();
    Zonemd { serial, scheme: SCHEME_SIMPLE, hash: hash.number(), digest }.push_rdata(&mut rdata);
    rdata
}

/// The supported hash algorithms of the records in the zone; warns about the others.
fn supported_hashes<'r>(
    rdatas: impl Iterator<Item = &'r Vec<u8>>,
    warnings: &mut Vec<SignWarning>,
) -> Vec<ZonemdHash> {
    let mut hashes = Vec::new();
    for record in rdatas.filter_map(|rdata| Zonemd::parse(rdata)) {
        let (scheme, hash) = (record.scheme, record.hash);
        match record.supported_hash() {
            Some(hash) => hashes.push(hash),
            None => warnings.push(SignWarning::ZonemdDropped { scheme, hash }),
        }
    }
    hashes
}

/// The incremental digest of the zone; computes nothing if the prepared `apex` has no ZONEMD
/// record.
pub(super) struct ZonemdHasher<'z> {
    apex: &'z Contents,
    digester: Option<Digester>,
}

impl<'z> ZonemdHasher<'z> {
    pub(super) fn new(apex: &'z Contents) -> Self {
        let hashes = hashes(apex);
        Self { apex, digester: (!hashes.is_empty()).then(|| Digester::new(&hashes)) }
    }

    /// Whether the zone has ZONEMD records.
    pub(super) const fn is_needed(&self) -> bool {
        self.digester.is_some()
    }

    /// Adds the next records of the zone in canonical form (RFC 8976 §3.3).
    pub(super) fn update(&mut self, octets: &[u8]) {
        if let Some(digester) = &mut self.digester {
            digester.update(octets);
        }
    }

    /// The apex with only its ZONEMD RRset, signed; `None` if the zone has none.
    pub(super) fn finish(
        self,
        signer: &ChunkSigner<'_>,
    ) -> Result<Option<(Contents, SignStatistics)>, SignError> {
        let Self { apex, digester } = self;
        let (Some(digester), Some(placeholder)) = (digester, apex.apex_rrset(Rtype::ZONEMD)) else {
            return Ok(None);
        };
        let serial = placeholder.rdatas().next().and_then(Zonemd::parse).map_or(0, |record| record.serial);
        let mut builder = NodesBuilder::default();
        builder.begin_node(apex.apex().view());
        builder.begin_rrset(Rtype::ZONEMD, Rtype::ZONEMD, placeholder.ttl());
        for (hash, digest) in digester.finish() {
            builder.push_record(|out| out.extend_from_slice(&rdata(serial, hash, &digest)));
        }
        let unsigned = builder.into_contents(apex.apex());
        let Some(rrset) = unsigned.apex_rrset(Rtype::ZONEMD) else { return Ok(None) };
        let (builder, statistics) = signer.sign_apex_rrset(rrset)?;
        Ok(Some((builder.into_contents(apex.apex()), statistics)))
    }
}
