//! Buffered output of lines, with counts of records (or queries) and octets.

use std::io::{self, Write};

/// The buffer is written when it has at least this number of octets.
const FLUSH_SIZE: usize = 64 * 1024;

/// Buffer between the generator and the output.
pub(super) struct Sink<'a, W: Write> {
    out: &'a mut W,
    buffer: Vec<u8>,
    /// Octets written.
    written: u64,
    /// Number of records or queries.
    entries: u64,
}

impl<'a, W: Write> Sink<'a, W> {
    pub(super) fn new(out: &'a mut W) -> Self {
        Self { out, buffer: Vec::with_capacity(FLUSH_SIZE + 4096), written: 0, entries: 0 }
    }

    /// Returns the buffer, to which the caller appends the current line.
    pub(super) fn line(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Ends a line with a record or query, and counts it.
    pub(super) fn end_entry(&mut self) -> io::Result<()> {
        self.entries += 1;
        self.end_directive()
    }

    /// Ends a line with a comment or directive (`$ORIGIN`, `$TTL`), which is not counted.
    pub(super) fn end_directive(&mut self) -> io::Result<()> {
        self.buffer.push(b'\n');
        if self.buffer.len() >= FLUSH_SIZE { self.flush() } else { Ok(()) }
    }

    /// Writes the rest of the buffer. Returns the number of records or queries, and the number of
    /// octets of all lines.
    pub(super) fn finish(mut self) -> io::Result<(u64, u64)> {
        self.flush()?;
        self.out.flush()?;
        Ok((self.entries, self.written))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Appends text in pieces, without the overhead of `std::fmt`.
pub(super) trait Text {
    /// Appends text unchanged.
    fn text(&mut self, text: &str) -> &mut Self;
    /// Appends a decimal number.
    fn decimal(&mut self, number: u64) -> &mut Self;
    /// Appends octets in lower-case hexadecimal.
    fn hex(&mut self, octets: &[u8]) -> &mut Self;
    /// Appends an IPv4 address in 198.18.0.0/15, which is reserved for benchmarks (RFC 2544, RFC
    /// 6890). The low 17 bits of `random` select the address.
    fn address_v4(&mut self, random: u32) -> &mut Self;
    /// Appends an IPv6 address in 2001:db8::/32, which is reserved for documentation (RFC 3849).
    fn address_v6(&mut self, random: u32) -> &mut Self;
}

impl Text for Vec<u8> {
    fn text(&mut self, text: &str) -> &mut Self {
        self.extend_from_slice(text.as_bytes());
        self
    }

    fn decimal(&mut self, number: u64) -> &mut Self {
        let mut digits = [0; 20];
        let mut start = digits.len();
        let mut rest = number;
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.extend_from_slice(&digits[start..]);
        self
    }

    fn hex(&mut self, octets: &[u8]) -> &mut Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for octet in octets {
            self.push(DIGITS[usize::from(octet >> 4)]);
            self.push(DIGITS[usize::from(octet & 15)]);
        }
        self
    }

    fn address_v4(&mut self, random: u32) -> &mut Self {
        let [_, high, middle, low] = random.to_be_bytes();
        self.text("198.").decimal(18 + u64::from(high & 1));
        self.text(".").decimal(u64::from(middle)).text(".").decimal(u64::from(low))
    }

    fn address_v6(&mut self, random: u32) -> &mut Self {
        let [a, b, c, d] = random.to_be_bytes();
        // The digit 1 before each octet prevents leading zeros (RFC 5952 §4.1).
        self.text("2001:db8:1").hex(&[a]).text(":1").hex(&[b]).text("::1").hex(&[c]).text(":1").hex(&[d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses() {
        let mut out = Vec::new();
        out.decimal(0).text(" ").decimal(u64::MAX).text(" ").hex(&[0, 0xAF, 0x10]);
        assert_eq!(out, b"0 18446744073709551615 00af10");
        for random in [0, 1, 0xFFFF_FFFF, 0x0102_0304] {
            let (mut v4, mut v6) = (Vec::new(), Vec::new());
            v4.address_v4(random);
            v6.address_v6(random);
            let v4: std::net::Ipv4Addr = String::from_utf8(v4).unwrap().parse().unwrap();
            assert!(v4.octets()[0] == 198 && v4.octets()[1] & 0xFE == 18, "{v4}");
            let text = String::from_utf8(v6).unwrap();
            let v6: std::net::Ipv6Addr = text.parse().unwrap();
            assert_eq!(v6.to_string(), text);
        }
    }

    #[test]
    fn nothing_is_lost_at_the_flush() {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out);
        for number in 0..50_000 {
            sink.line().decimal(number);
            sink.end_entry().unwrap();
        }
        let (lines, octets) = sink.finish().unwrap();
        assert_eq!((lines, octets), (50_000, out.len() as u64));
        assert!(out.ends_with(b"\n49999\n"));
    }
}
