//! Hash functions of aws-lc that write to a buffer of the caller, so that the caller can wipe
//! secrets.

use aws_lc_sys as lc;

/// Returns the SHA-256 digest of `message`.
pub(crate) fn sha256(message: &[u8]) -> [u8; 32] {
    let mut digest = [0; 32];
    // SAFETY: pointer and length are those of one slice, which is only read. A SHA-256 digest has
    // 32 octets, the size of `digest`.
    unsafe { lc::SHA256(message.as_ptr(), message.len(), digest.as_mut_ptr()) };
    digest
}

/// Writes the SHA-512 digest of `message` to `digest`.
pub(crate) fn sha512_into(message: &[u8], digest: &mut [u8; 64]) {
    // SAFETY: pointer and length are those of one slice, which is only read. A SHA-512 digest has
    // 64 octets, the size of `digest`.
    unsafe { lc::SHA512(message.as_ptr(), message.len(), digest.as_mut_ptr()) };
}

/// Returns the SHA-512 digest of `message`.
pub(crate) fn sha512(message: &[u8]) -> [u8; 64] {
    let mut digest = [0; 64];
    sha512_into(message, &mut digest);
    digest
}
