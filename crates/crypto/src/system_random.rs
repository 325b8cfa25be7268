//! Random numbers of aws-lc, through the traits that `fn-dsa` and `fips205` require. Both libraries
//! export these traits of `rand_core` 0.6.

use aws_lc_rs::rand;
use fips205::{CryptoRng, RngCore, RngError};

/// Random numbers of aws-lc.
///
/// The methods of the trait cannot fail. If aws-lc fails, they return a counter that differs for
/// each call, so that loops that wait for suitable octets end. The caller checks `failed` and
/// discards the result.
#[derive(Default)]
pub(crate) struct SystemRandom {
    /// Whether aws-lc failed in a call.
    pub(crate) failed: bool,
    pub(crate) calls: u64,
}

impl RngCore for SystemRandom {
    fn next_u32(&mut self) -> u32 {
        random_number(self, u32::from_le_bytes)
    }

    fn next_u64(&mut self) -> u64 {
        random_number(self, u64::from_le_bytes)
    }

    fn fill_bytes(&mut self, octets: &mut [u8]) {
        if rand::fill(octets).is_err() {
            self.failed = true;
            self.calls += 1;
            let counter = self.calls.to_le_bytes().into_iter().cycle();
            octets.iter_mut().zip(counter).for_each(|(octet, value)| *octet = value);
        }
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), RngError> {
        self.fill_bytes(octets);
        Ok(())
    }
}

impl CryptoRng for SystemRandom {}

/// Returns a random number that `decode_octets` reads from `OCTETS` random octets.
fn random_number<const OCTETS: usize, T>(
    random: &mut SystemRandom,
    decode_octets: fn([u8; OCTETS]) -> T,
) -> T {
    let mut octets = [0; OCTETS];
    random.fill_bytes(&mut octets);
    decode_octets(octets)
}
