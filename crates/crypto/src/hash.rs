//! Hash functions of aws-lc that write to a buffer of the caller, so that the caller can wipe
//! secrets.

use std::ptr;

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

/// The library failed because of lack of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LibraryFailed;

/// Fills `out` with SHAKE128 of `input` (FIPS 202).
///
/// # Errors
/// If the library has no memory for its state.
pub(crate) fn shake128(input: &[u8], out: &mut [u8]) -> Result<(), LibraryFailed> {
    // SAFETY: the function has no requirements.
    shake(unsafe { lc::EVP_shake128() }, input, out)
}

/// Fills `out` with SHAKE256 of `input` (FIPS 202).
///
/// # Errors
/// If the library has no memory for its state.
pub(crate) fn shake256(input: &[u8], out: &mut [u8]) -> Result<(), LibraryFailed> {
    // SAFETY: the function has no requirements.
    shake(unsafe { lc::EVP_shake256() }, input, out)
}

/// Fills `out` with the output of `function`, which must be SHAKE128 or SHAKE256.
fn shake(function: *const lc::EVP_MD, input: &[u8], out: &mut [u8]) -> Result<(), LibraryFailed> {
    let mut length = u32::try_from(out.len()).map_err(|_| LibraryFailed)?;
    // SAFETY: pointers and lengths are those of two slices; the second is borrowed exclusively. The
    // fourth argument is the length of the output, which the functions require. The engine may be
    // null. `function` is a constant of the library. No other pointer is used after this call.
    let done = unsafe {
        lc::EVP_Digest(
            input.as_ptr().cast(),
            input.len(),
            out.as_mut_ptr(),
            &raw mut length,
            function,
            ptr::null_mut(),
        )
    };
    if done == 1 { Ok(()) } else { Err(LibraryFailed) }
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    /// SHAKE of the empty message, as NIST publishes it with FIPS 202.
    #[test]
    fn shake_of_the_empty_message() {
        let mut out = [0; 32];
        shake128(&[], &mut out).unwrap();
        assert_eq!(HEXLOWER.encode(&out), "7f9c2ba4e88f827d616045507605853ed73b8093f6efbc88eb1a6eacfa66ef26");
        shake256(&[], &mut out).unwrap();
        assert_eq!(HEXLOWER.encode(&out), "46b9dd2b0ba88d13233b3feb743eeb243fcd52ea62b81b82b50c27646ed5762f");
    }
}
