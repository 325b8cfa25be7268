//! The statistics of signing.

/// The statistics of signing a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignStatistics {
    /// Number of signed RRsets.
    pub rrsets_signed: u64,
    /// Number of generated signatures. With keys of two algorithms, each RRset has two.
    pub signatures: u64,
    /// Number of signatures that were not generated: reused from the previous zone, or copied from
    /// keys whose private keys were not given.
    pub signatures_kept: u64,
    /// Number of NSEC, NSEC3 or NSEC5 records in the signed zone.
    pub chain_records: u64,
    /// Number of records of the signed zone.
    pub records: u64,
    /// Serial number of the signed zone.
    pub serial: u32,
}

impl SignStatistics {
    /// Adds the numbers of `other`. The serial remains.
    pub(super) const fn add(&mut self, other: &Self) {
        self.rrsets_signed += other.rrsets_signed;
        self.signatures += other.signatures;
        self.signatures_kept += other.signatures_kept;
        self.chain_records += other.chain_records;
        self.records += other.records;
    }
}
