//! NIST's known answers for MAYO-2, with every kernel. The file is in `$NONESUCH_DATA/mayo-kat`.

use std::fs;

use aws_lc_rs::cipher::{AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use data_encoding::HEXUPPER;
use zeroize::Zeroizing;

use super::kernel::Kernel;
use super::scheme::{PublicKey, SALT_OCTETS, SEED_OCTETS, SIGNATURE_OCTETS, SecretKey};

/// CTR_DRBG of SP 800-90A with AES-256, without derivation function and additional input, as in
/// NIST's `rng.c`.
struct Drbg {
    key: [u8; 32],
    counter: u128,
}

impl Drbg {
    fn new(seed: &[u8; 48]) -> Self {
        let mut drbg = Self { key: [0; 32], counter: 0 };
        drbg.update(seed);
        drbg
    }

    /// Returns the next whole blocks of the key stream.
    fn stream(&mut self, blocks: usize) -> Vec<u8> {
        let key = UnboundCipherKey::new(&AES_256, &self.key).unwrap();
        let key = EncryptingKey::ctr(key).unwrap();
        let mut stream = vec![0; 16 * blocks];
        let first = self.counter.wrapping_add(1);
        self.counter = self.counter.wrapping_add(blocks as u128);
        let first = EncryptionContext::Iv128(FixedLength::from(first.to_be_bytes()));
        key.less_safe_encrypt(&mut stream, first).unwrap();
        stream
    }

    fn update(&mut self, input: &[u8; 48]) {
        let mut stream = self.stream(3);
        stream.iter_mut().zip(input).for_each(|(octet, input)| *octet ^= input);
        self.key = stream[..32].try_into().unwrap();
        self.counter = u128::from_be_bytes(stream[32..].try_into().unwrap());
    }

    fn next<const N: usize>(&mut self) -> [u8; N] {
        let octets = self.stream(N.div_ceil(16));
        self.update(&[0; 48]);
        octets[..N].try_into().unwrap()
    }
}

/// Returns a function that looks up the values of one case by name.
fn fields(case: &str) -> impl Fn(&str) -> Vec<u8> + '_ {
    |name| {
        let mut lines = case.lines().filter_map(|line| line.split_once(" = "));
        let (_, value) = lines.find(|(field, _)| *field == name).unwrap();
        HEXUPPER.decode(value.as_bytes()).unwrap()
    }
}

fn check(kernel: Kernel, case: &str) {
    let field = fields(case);
    let mut drbg = Drbg::new(&field("seed").try_into().unwrap());
    let seed: [u8; SEED_OCTETS] = drbg.next();
    let message = field("msg");
    assert_eq!(field("sk"), seed);
    let key = SecretKey::derive(kernel, Zeroizing::new(seed.to_vec())).unwrap();
    assert_eq!(field("pk"), key.public_octets());
    let random: [u8; SALT_OCTETS] = drbg.next();
    let signature = key.sign(&message, &random).unwrap().unwrap();
    assert_eq!(field("sm"), [&signature[..], &message].concat());
    let public = PublicKey::parse(kernel, &field("pk").try_into().unwrap()).unwrap();
    let mut read: [u8; SIGNATURE_OCTETS] = field("sm")[..SIGNATURE_OCTETS].try_into().unwrap();
    assert_eq!(public.verify(&message, &read), Ok(true));
    assert_eq!(public.verify(&message[1..], &read), Ok(false));
    read[0] ^= 1;
    assert_eq!(public.verify(&message, &read), Ok(false));
}

#[test]
fn known_answers_on_every_kernel() {
    let Some(path) = nonesuch_testing::public_data("mayo-kat/KAT/PQCsignKAT_24_MAYO_2.rsp") else { return };
    let text = fs::read_to_string(path).unwrap();
    let cases: Vec<&str> = text.split("count = ").skip(1).collect();
    assert_eq!(cases.len(), 100);
    for kernel in Kernel::all() {
        cases.iter().for_each(|case| check(kernel, case));
        println!("{} known answers, {:?}", cases.len(), kernel.implementation());
    }
}
