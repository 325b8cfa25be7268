//! The CDS and CDNSKEY records of a zone (RFC 7344) according to the times in key files.

use super::{CdsPhase, REVOKE, ds_rdata};
use nonesuch_crypto::DigestType;
use nonesuch_proto::NameRef;

/// RDATA of the CDS record that requests the deletion of all DS records (RFC 8078 §4).
pub(crate) const DELETE_CDS: [u8; 5] = [0, 0, 0, 0, 0];
/// RDATA of the CDNSKEY record that requests the deletion of all DS records (RFC 8078 §4).
pub(crate) const DELETE_CDNSKEY: [u8; 5] = [0, 0, 3, 0, 0];

/// The keys whose files have times for the publication or withdrawal of their CDS and CDNSKEY
/// records. Each key is its DNSKEY RDATA with the phase of these records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CdsSchedule(Vec<(Vec<u8>, CdsPhase)>);

impl CdsSchedule {
    /// Adds a key (DNSKEY RDATA) with its phase; does nothing for [`CdsPhase::Unset`]. A revoked
    /// key gets [`CdsPhase::Deleted`], so that the parent removes its DS record.
    pub fn add(&mut self, dnskey: &[u8], phase: CdsPhase) {
        let flags = dnskey.first_chunk().map_or(0, |flags| u16::from_be_bytes(*flags));
        let phase = if flags & REVOKE == 0 { phase } else { CdsPhase::Deleted };
        if phase != CdsPhase::Unset {
            self.0.push((dnskey.to_vec(), phase));
        }
    }

    /// Whether [`CdsSchedule::records`] changes nothing: no key has a publication or withdrawal
    /// time in the past.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.0.iter().any(|(_, phase)| matches!(phase, CdsPhase::Published | CdsPhase::Deleted))
    }

    /// The keys (DNSKEY RDATA) and their phases.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], CdsPhase)> {
        self.0.iter().map(|(key, phase)| (key.as_slice(), *phase))
    }

    /// RDATA of the CDS RRset and of the CDNSKEY RRset of the zone at `apex`.
    ///
    /// `present` is the RDATA of the CDS records and of the CDNSKEY records of the zone. If
    /// `entry_points` (DNSKEY RDATA) is given, the records of these keys replace `present`. The
    /// result contains the records of keys after their publication time, and omits those of keys
    /// after their withdrawal time. It omits a key of `entry_points` before its publication time.
    /// If `present` requests the deletion of all DS records and is not replaced, the result has no
    /// other record.
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
        let keys_in = |wanted| self.iter().filter(move |(_, phase)| *phase == wanted).map(|(key, _)| key);
        for key in keys_in(CdsPhase::Deleted) {
            cds.retain(|rdata| !is_ds_of(apex, rdata, key));
            cdnskeys.retain(|rdata| rdata != key);
        }
        let is_timed = |key: &[u8]| self.0.iter().any(|(timed, _)| timed == key);
        let untimed = entry_points.unwrap_or_default().iter().map(Vec::as_slice).filter(|key| !is_timed(key));
        for key in untimed.chain(keys_in(CdsPhase::Published)) {
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
    fn records_are_published_and_withdrawn_at_the_times_of_their_keys() {
        let apex: Name = "example.".parse().unwrap();
        let key = |last: u8| vec![1, 1, 3, 15, last];
        let ds = |key: &[u8]| ds_rdata(apex.view(), key, DigestType::SHA256).unwrap();
        let mut keys = CdsSchedule::default();
        keys.add(&key(1), CdsPhase::Published);
        keys.add(&key(2), CdsPhase::Deleted);
        keys.add(&key(3), CdsPhase::Future);
        keys.add(&key(4), CdsPhase::Unset);
        keys.add(&[1, 0x81, 3, 15, 5], CdsPhase::Published);
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
        assert_eq!(CdsSchedule::default().records(apex.view(), present.clone(), None), present);
    }
}
