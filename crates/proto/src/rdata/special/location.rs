//! LOC (RFC 1876): a location on the Earth.
//!
//! Angles are in thousandths of a second of arc. The equator and the prime meridian have the value
//! 2^31. The altitude is in centimetres, counted from 100,000 m below the reference spheroid. Sizes
//! are in centimetres, as one decimal digit and a power of ten.

use crate::rdata::input::{Input, RdataFault};
use crate::rdata::output::push_display;
use crate::text::{Token, parse_u32};

/// Length of version 0 in octets. No other version is defined.
const VERSION_0_LENGTH: usize = 16;
/// Angle of the equator and the prime meridian (RFC 1876 §2).
const ZERO_ANGLE: u32 = 1 << 31;
/// Units of an angle (thousandths of a second of arc) in a degree.
const UNITS_PER_DEGREE: u32 = 3_600_000;
/// Altitude value of the spheroid: centimetres above the lowest altitude (RFC 1876 §2).
const ZERO_ALTITUDE: i64 = 10_000_000;
/// Maximum size in centimetres: digit 9, power 9.
const MAX_SIZE: u64 = 9_000_000_000;
/// Defaults: size 1 m, horizontal precision 10,000 m, vertical precision 10 m (RFC 1876 §3).
const DEFAULT_SIZES: [u8; 3] = [0x12, 0x16, 0x13];

const FAULT: RdataFault =
    RdataFault::Malformed("location (write D [M [S]] N|S D [M [S]] E|W ALTITUDEm [SIZEm [HPm [VPm]]])");

/// RFC 1876 §2 defines nothing about the octets of versions other than 0.
pub(super) fn measure(rest: &[u8]) -> Option<usize> {
    if *rest.first()? != 0 {
        return Some(rest.len());
    }
    let location = Location::from_octets(rest)?;
    let is_within = |angle: u32, degrees: u32| angle.abs_diff(ZERO_ANGLE) <= degrees * UNITS_PER_DEGREE;
    let valid = is_within(location.latitude, 90)
        && is_within(location.longitude, 180)
        && location.sizes.iter().all(|size| is_valid_size(*size));
    valid.then_some(VERSION_0_LENGTH)
}

pub(super) fn has_presentation_form(octets: &[u8]) -> bool {
    octets.first() == Some(&0)
}

/// RFC 1876 §2: digit and power are 0 to 9. Zero is only valid with the power 0, so that it has one
/// encoding.
const fn is_valid_size(size: u8) -> bool {
    let (digit, power) = (size >> 4, size & 0x0f);
    digit <= 9 && power <= 9 && (digit > 0 || power == 0)
}

struct Location {
    /// Size, horizontal and vertical precision, each with a digit in the upper four bits and a
    /// power of ten in the lower four bits.
    sizes: [u8; 3],
    latitude: u32,
    longitude: u32,
    altitude: u32,
}

impl Location {
    fn from_octets(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; VERSION_0_LENGTH] = octets.first_chunk()?;
        let u32_at =
            |at: usize| u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
        let sizes = [octets[1], octets[2], octets[3]];
        Some(Self { sizes, latitude: u32_at(4), longitude: u32_at(8), altitude: u32_at(12) })
    }
}

pub(super) fn read(input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let latitude = read_angle(input, 90, *b"NS")?;
    let longitude = read_angle(input, 180, *b"EW")?;
    let altitude = read_altitude(input.take()?).ok_or(FAULT)?;
    let mut sizes = DEFAULT_SIZES;
    for size in &mut sizes {
        let Some(token) = input.take_optional() else { break };
        *size = read_size(token).ok_or(FAULT)?;
    }
    out.push(0);
    out.extend_from_slice(&sizes);
    for word in [latitude, longitude, altitude] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    Ok(())
}

/// Reads degrees, minutes and seconds, and the letter of the hemisphere. Minutes and seconds are
/// optional. `limit` is the maximum in degrees. `hemispheres` has the letter for angles from
/// [`ZERO_ANGLE`] on, and that for smaller angles.
fn read_angle(input: &mut Input<'_, '_>, limit: u32, hemispheres: [u8; 2]) -> Result<u32, RdataFault> {
    let degrees = parse_u32(input.take()?.octets).filter(|n| *n <= limit).ok_or(FAULT)?;
    let mut angle = degrees * UNITS_PER_DEGREE;
    for unit in [60_000, 1000] {
        let token = input.take()?;
        if let Some(is_south_or_west) = hemisphere(token, hemispheres) {
            return encode_angle(angle, limit, is_south_or_west);
        }
        let decimals = if unit == 1000 { 3 } else { 0 };
        let value = parse_decimal(token.octets, decimals).ok_or(FAULT)?;
        // Minutes are integers; seconds are in thousandths. Both must be below 60.
        let scaled = if unit == 1000 { value } else { value.saturating_mul(u64::from(unit)) };
        let scaled = u32::try_from(scaled).ok().filter(|scaled| *scaled < 60 * unit).ok_or(FAULT)?;
        angle += scaled;
    }
    let is_south_or_west = hemisphere(input.take()?, hemispheres).ok_or(FAULT)?;
    encode_angle(angle, limit, is_south_or_west)
}

/// Returns the wire form of an angle in thousandths of a second of arc.
fn encode_angle(angle: u32, limit: u32, is_south_or_west: bool) -> Result<u32, RdataFault> {
    if angle > limit * UNITS_PER_DEGREE {
        return Err(FAULT);
    }
    Ok(if is_south_or_west { ZERO_ANGLE - angle } else { ZERO_ANGLE + angle })
}

/// Returns false if `token` is the first of the letters (N or E), true if it is the second (S or
/// W), and `None` if it is neither of them.
fn hemisphere(token: Token<'_>, hemispheres: [u8; 2]) -> Option<bool> {
    let [letter] = token.octets else { return None };
    hemispheres.iter().position(|known| known.eq_ignore_ascii_case(letter)).map(|at| at == 1)
}

/// Parses an unsigned number with up to `decimals` digits after the decimal point. The unit of the
/// result is the last decimal.
fn parse_decimal(text: &[u8], decimals: usize) -> Option<u64> {
    let point = text.iter().position(|octet| *octet == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    let ends_in_point = point.is_some() && fraction.is_empty();
    if ends_in_point || fraction.len() > decimals || whole.is_empty() || whole.len() > 10 {
        return None;
    }
    let padding = std::iter::repeat_n(&b'0', decimals - fraction.len());
    let digits = whole.iter().chain(fraction).chain(padding);
    digits
        .map(|octet| octet.checked_sub(b'0').filter(|digit| *digit < 10))
        .try_fold(0u64, |sum, digit| Some(sum * 10 + u64::from(digit?)))
}

/// Parses `[-]N[.NN][m]` and returns centimetres.
fn parse_metres(text: &[u8]) -> Option<i64> {
    let text = text.strip_suffix(b"m").or_else(|| text.strip_suffix(b"M")).unwrap_or(text);
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(text) => (true, text),
        None => (false, text),
    };
    let value = i64::try_from(parse_decimal(text, 2)?).ok()?;
    Some(if negative { -value } else { value })
}

fn read_altitude(token: Token<'_>) -> Option<u32> {
    u32::try_from(parse_metres(token.octets)? + ZERO_ALTITUDE).ok()
}

/// Keeps only the first digit, as RFC 1876 appendix A does.
fn read_size(token: Token<'_>) -> Option<u8> {
    let mut digit = u64::try_from(parse_metres(token.octets)?).ok().filter(|size| *size <= MAX_SIZE)?;
    let mut power = 0;
    while digit > 9 {
        digit /= 10;
        power += 1;
    }
    u8::try_from(digit << 4 | power).ok()
}

pub(super) fn write(octets: &[u8], out: &mut Vec<u8>) {
    let Some(location) = Location::from_octets(octets) else { return };
    write_angle(location.latitude, ['N', 'S'], out);
    write_angle(location.longitude, ['E', 'W'], out);
    let altitude = i64::from(location.altitude) - ZERO_ALTITUDE;
    let sign = if altitude < 0 { "-" } else { "" };
    let (metres, centimetres) = (altitude.abs() / 100, altitude.abs() % 100);
    push_display(format_args!("{sign}{metres}.{centimetres:02}m"), out);
    for size in location.sizes {
        write_size(size, out);
    }
}

fn write_angle(angle: u32, hemispheres: [char; 2], out: &mut Vec<u8>) {
    let letter = if angle < ZERO_ANGLE { hemispheres[1] } else { hemispheres[0] };
    let angle = angle.abs_diff(ZERO_ANGLE);
    let (degrees, minutes) = (angle / UNITS_PER_DEGREE, angle / 60_000 % 60);
    let (seconds, thousandths) = (angle / 1000 % 60, angle % 1000);
    push_display(format_args!("{degrees} {minutes} {seconds}.{thousandths:03} {letter} "), out);
}

fn write_size(size: u8, out: &mut Vec<u8>) {
    let (digit, power) = (u64::from(size >> 4), u32::from(size & 0x0f));
    let centimetres = digit * 10u64.pow(power);
    if power >= 2 {
        push_display(format_args!(" {}m", centimetres / 100), out);
    } else {
        push_display(format_args!(" 0.{centimetres:02}m"), out);
    }
}
