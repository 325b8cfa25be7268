//! DS and CDS RDATA (RFC 4034 §5.1, RFC 7344 §3.1).

use nonesuch_crypto::{DigestType, key_tag};
use nonesuch_proto::NameRef;

/// RDATA of the DS record for the DNSKEY `dnskey_rdata` at `owner` (RFC 4034 §5.1), which is also
/// the RDATA of the CDS record. `None` if the digest type is unknown or the DNSKEY RDATA are
/// truncated.
#[must_use]
pub fn ds_rdata(owner: NameRef<'_>, dnskey_rdata: &[u8], digest_type: DigestType) -> Option<Vec<u8>> {
    let algorithm = *dnskey_rdata.get(3)?;
    let mut name = Vec::with_capacity(owner.len());
    owner.push_canonical(&mut name);
    let digest = digest_type.digest(&[&name, dnskey_rdata])?;
    let mut rdata = Vec::with_capacity(4 + digest.len());
    rdata.extend_from_slice(&key_tag(dnskey_rdata).to_be_bytes());
    rdata.extend_from_slice(&[algorithm, digest_type.0]);
    rdata.extend_from_slice(&digest);
    Some(rdata)
}
