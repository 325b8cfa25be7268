//! What signing did.

/// What signing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignStatistics {
    /// RRsets that are signed.
    pub rrsets_signed: u64,
    /// Signatures made: with two algorithms two for each RRset.
    pub signatures: u64,
    /// Signatures kept of the previous zone.
    pub signatures_kept: u64,
    /// NSEC, NSEC3 or NSEC5 records made.
    pub chain_records: u64,
    /// Records of the signed zone.
    pub records: u64,
    /// Serial number of the signed zone.
    pub serial: u32,
}

impl SignStatistics {
    pub(super) const fn add(&mut self, other: &Self) {
        self.rrsets_signed += other.rrsets_signed;
        self.signatures += other.signatures;
        self.signatures_kept += other.signatures_kept;
        self.chain_records += other.chain_records;
        self.records += other.records;
    }
}
