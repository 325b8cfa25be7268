//! CDS and CDNSKEY records (RFC 7344) according to the times in key files.

use super::{REVOKE, SyncPhase, ds_rdata};
use nonesuch_crypto::DigestType;
use nonesuch_proto::NameRef;

/// RDATA of the CDS record that requests the deletion of all DS records (RFC 8078 §4).
pub(crate) const DELETE_CDS: [u8; 5] = [0, 0, 0, 0, 0];
/// RDATA of the CDNSKEY record that requests the deletion of all DS records (RFC 8078 §4).
pub(crate) const DELETE_CDNSKEY: [u8; 5] = [0, 0, 3, 0, 0];

/// The keys (DNSKEY RDATA) with times for the publication or withdrawal of their CDS and CDNSKEY
/// records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncKeys(Vec<(Vec<u8>, SyncPhase)>);

impl SyncKeys {
    /// Adds a key with its phase; does nothing for [`SyncPhase::Unset`]. A revoked key counts as
    /// [`SyncPhase::Deleted`], because the parent removes the DS records of revoked keys.
    pub fn add(&mut self, dnskey: &[u8], phase: SyncPhase) {
        let flags = dnskey.first_chunk().map_or(0, |flags| u16::from_be_bytes(*flags));
        let phase = if flags & REVOKE == 0 { phase } else { SyncPhase::Deleted };
        if phase != SyncPhase::Unset {
            self.0.push((dnskey.to_vec(), phase));
        }
    }

    /// Whether the times change no record of the zone.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.0.iter().any(|(_, phase)| matches!(phase, SyncPhase::Published | SyncPhase::Deleted))
    }

    /// The keys and their phases.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], SyncPhase)> {
        self.0.iter().map(|(key, phase)| (key.as_slice(), *phase))
    }

    /// RDATA of the CDS RRset and of the CDNSKEY RRset of the zone at `apex`.
    ///
    /// `present` has the CDS and CDNSKEY records of the zone. With `entry_points` (DNSKEY RDATA),
    /// the records of these keys replace them. The result omits the records of keys after their
    /// withdrawal time, and has the records of keys after their publication time. It omits a key of
    /// `entry_points` before its publication time. If `present` requests the deletion of all DS
    /// records and is not replaced, the result has no other record.
    #[must_use]
    pub fn records(
        &self,
        apex: NameRef<'_>,
        present: [Vec<Vec<u8>>; 2],
        entry_points: Option<&[Vec<u8>]>,
    ) -> [Vec<Vec<u8>>; 2] {
        let [mut cds, mut cdnskeys] =
            if entry_points.is_some() { <[Vec<Vec<u8>>; 2]>::default() } else { present };
        // RFC 8078 §4: a deletion record is the only record of its RRset.
        if cds.iter().any(|rdata| *rdata == DELETE_CDS)
            || cdnskeys.iter().any(|rdata| *rdata == DELETE_CDNSKEY)
        {
            cds.retain(|rdata| *rdata == DELETE_CDS);
            cdnskeys.retain(|rdata| *rdata == DELETE_CDNSKEY);
            return [cds, cdnskeys];
        }
        let of = |wanted| self.iter().filter(move |(_, phase)| *phase == wanted).map(|(key, _)| key);
        for key in of(SyncPhase::Deleted) {
            cds.retain(|rdata| !is_ds_of(apex, rdata, key));
            cdnskeys.retain(|rdata| rdata != key);
        }
        let is_timed = |key: &[u8]| self.0.iter().any(|(timed, _)| timed == key);
        let usual = entry_points.unwrap_or_default().iter().map(Vec::as_slice).filter(|key| !is_timed(key));
        for key in usual.chain(of(SyncPhase::Published)) {
            // All validators support this digest type (RFC 8624 §3.3).
            let ds = ds_rdata(apex, key, DigestType::SHA256);
            cds.extend(ds.filter(|ds| !cds.contains(ds)));
            if !cdnskeys.iter().any(|rdata| rdata == key) {
                cdnskeys.push(key.to_vec());
            }
        }
        [cds, cdnskeys]
    }
}

/// Whether the CDS RDATA are a digest of `dnskey`, with any digest type.
fn is_ds_of(apex: NameRef<'_>, cds: &[u8], dnskey: &[u8]) -> bool {
    cds.get(3).is_some_and(|digest| ds_rdata(apex, dnskey, DigestType(*digest)).as_deref() == Some(cds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;

    #[test]
    fn records_come_and_go_by_the_times_of_their_keys() {
        let apex: Name = "example.".parse().unwrap();
        let key = |last: u8| vec![1, 1, 3, 15, last];
        let ds = |key: &[u8]| ds_rdata(apex.view(), key, DigestType::SHA256).unwrap();
        let mut keys = SyncKeys::default();
        keys.add(&key(1), SyncPhase::Published);
        keys.add(&key(2), SyncPhase::Deleted);
        keys.add(&key(3), SyncPhase::Future);
        keys.add(&key(4), SyncPhase::Unset);
        keys.add(&[1, 0x81, 3, 15, 5], SyncPhase::Published);
        let sha384 = ds_rdata(apex.view(), &key(2), DigestType::SHA384).unwrap();
        let present = [vec![ds(&key(2)), sha384, ds(&key(9))], vec![key(2), key(9)]];
        let expected = [vec![ds(&key(9)), ds(&key(1))], vec![key(9), key(1)]];
        assert_eq!(keys.records(apex.view(), present.clone(), None), expected);
        let entry_points = [key(1), key(2), key(3), key(4)];
        let expected = [vec![ds(&key(4)), ds(&key(1))], vec![key(4), key(1)]];
        assert_eq!(keys.records(apex.view(), present.clone(), Some(&entry_points)), expected);
        assert!(!keys.is_empty());
        // RFC 8078 §4: the deletion record is the only record.
        let removal = [vec![DELETE_CDS.to_vec()], vec![DELETE_CDNSKEY.to_vec()]];
        assert_eq!(keys.records(apex.view(), removal.clone(), None), removal);
        let by_cds = [vec![DELETE_CDS.to_vec(), ds(&key(9))], vec![key(9)]];
        assert_eq!(keys.records(apex.view(), by_cds, None), [removal[0].clone(), Vec::new()]);
        assert_eq!(keys.records(apex.view(), removal, Some(&entry_points)), expected);
        assert_eq!(SyncKeys::default().records(apex.view(), present.clone(), None), present);
    }
}
