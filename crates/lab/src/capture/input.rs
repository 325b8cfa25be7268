//! The input of a capture: a buffer of fixed size, and the offset in the file.

use super::error::CaptureError;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Size of the buffer, and maximum size of a block of a file, in octets. The largest packets in
/// captures have 256 KiB.
pub(super) const BLOCK_MAX: usize = 1 << 20;

/// A file with a buffer.
pub(super) struct Input {
    path: PathBuf,
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Range of the octets in the buffer that are read but not consumed.
    start: usize,
    end: usize,
    /// Offset of `start` in the file.
    offset: u64,
}

impl Input {
    /// Creates the input. Errors name `path`.
    pub(super) fn new(path: &Path, source: Box<dyn Read + Send>) -> Self {
        Self { path: path.to_path_buf(), source, buffer: vec![0; BLOCK_MAX], start: 0, end: 0, offset: 0 }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the octets that are read but not consumed.
    pub(super) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads until at least `count` octets are available. Returns false if the file ends before.
    ///
    /// # Errors
    /// [`CaptureError::TooLarge`] if `count` is greater than [`BLOCK_MAX`], [`CaptureError::Read`].
    pub(super) fn fill_to(&mut self, count: usize) -> Result<bool, CaptureError> {
        if count > BLOCK_MAX {
            return Err(CaptureError::TooLarge {
                path: self.path.clone(),
                offset: self.offset,
                octets: count as u64,
                limit: BLOCK_MAX as u64,
            });
        }
        while self.end - self.start < count {
            if self.buffer.len() - self.start < count {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    let offset = self.offset + (self.end - self.start) as u64;
                    return Err(CaptureError::Read { path: self.path.clone(), offset, source });
                }
            }
        }
        Ok(true)
    }

    /// Consumes `count` available octets.
    pub(super) fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Creates the error for malformed content at the current offset.
    pub(super) fn malformed(&self, what: &'static str) -> CaptureError {
        CaptureError::Malformed { path: self.path.clone(), offset: self.offset, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns its octets in pieces of three.
    struct Slow(Vec<u8>);

    impl Read for Slow {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let count = out.len().min(3).min(self.0.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    #[test]
    fn octets_arrive_in_order_and_the_offset_follows() {
        let all: Vec<u8> = (0..=255).collect();
        let mut input = Input::new(Path::new("x"), Box::new(Slow(all)));
        for octet in (0..250).step_by(10) {
            assert!(input.fill_to(10).expect("read"));
            assert_eq!(input.available()[..10], Vec::from_iter(octet..octet + 10));
            input.consume(10);
        }
        assert!(input.fill_to(6).expect("read"));
        assert!(!input.fill_to(7).expect("read"));
        let error = input.malformed("thing");
        assert!(matches!(error, CaptureError::Malformed { offset: 250, .. }), "{error}");
        let error = input.fill_to(BLOCK_MAX + 1).expect_err("too large");
        assert!(matches!(error, CaptureError::TooLarge { offset: 250, .. }), "{error}");
    }

    #[test]
    fn a_full_buffer_is_moved_to_its_start() {
        let mut input = Input::new(Path::new("x"), Box::new(std::io::repeat(7)));
        assert!(input.fill_to(BLOCK_MAX).expect("read"));
        input.consume(BLOCK_MAX - 1);
        assert!(input.fill_to(BLOCK_MAX).expect("read"));
        assert_eq!(input.available().len(), BLOCK_MAX);
    }
}
