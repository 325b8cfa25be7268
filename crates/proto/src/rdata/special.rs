//! Formats that a table row cannot describe. Each file measures, reads and writes one format or a
//! group of related formats.

mod a6;
mod gateway;
mod host_identity;
mod location;
mod prefixes;
mod service;
mod small;

use super::Field;
use super::input::{Input, RdataFault};
pub(super) use a6::name_start as a6_name_start;
pub(super) use small::{algorithm_number, certificate_type};

/// Returns the length of a special field at the start of `rest` in octets, or `None` if it is
/// malformed.
pub(super) fn measure(field: Field, before: &[u8], rest: &[u8]) -> Option<usize> {
    match field {
        Field::Location => location::measure(rest),
        Field::AddressPrefixes => prefixes::measure(rest),
        Field::ServiceParameters => service::measure(rest),
        Field::GatewayType => gateway::measure_type(rest, false),
        Field::RelayType => gateway::measure_type(rest, true),
        Field::Gateway => gateway::measure(before, rest),
        Field::A6Address => a6::measure(rest),
        Field::HipFields => host_identity::measure(rest),
        Field::NxtBitmap => small::measure_nxt_bitmap(rest),
        _ => None,
    }
}

/// Returns whether a well-formed field has a presentation form. Other fields are written in the
/// generic form (RFC 3597 §5).
pub(super) fn has_presentation_form(field: Field, octets: &[u8]) -> bool {
    match field {
        Field::Location => location::has_presentation_form(octets),
        Field::AddressPrefixes => prefixes::has_presentation_form(octets),
        Field::ServiceParameters => service::has_presentation_form(octets),
        Field::A6Address => a6::has_presentation_form(octets),
        Field::NxtBitmap => small::has_nxt_presentation_form(octets),
        _ => true,
    }
}

/// Appends the wire form of a special field. `start` is the offset in `out` at which the RDATA
/// starts.
pub(super) fn read(
    field: Field,
    input: &mut Input<'_, '_>,
    start: usize,
    out: &mut Vec<u8>,
) -> Result<(), RdataFault> {
    match field {
        Field::Location => location::read(input, out),
        Field::AddressPrefixes => prefixes::read(input, out),
        Field::ServiceParameters => service::read(input, out),
        Field::GatewayType => gateway::read_type(input, out),
        Field::RelayType => gateway::read_relay_type(input, out),
        Field::Gateway => gateway::read(input, start, out),
        Field::A6Address => a6::read(input, out),
        Field::HipFields => host_identity::read(input, out),
        Field::NxtBitmap => small::read_nxt_bitmap(input, out),
        Field::HexPairs(count) => small::read_hex_pairs(count, input, out),
        Field::HexGroups64 => small::read_groups(input, out),
        // `read_field` reads all other fields itself.
        _ => Err(RdataFault::NeedsGeneric),
    }
}

/// Appends the presentation form of a well-formed special field. `before` is the RDATA before the
/// field.
pub(super) fn write(field: Field, before: &[u8], octets: &[u8], out: &mut Vec<u8>) {
    match field {
        Field::Location => location::write(octets, out),
        Field::AddressPrefixes => prefixes::write(octets, out),
        Field::ServiceParameters => service::write(octets, out),
        Field::RelayType => gateway::write_relay_type(octets, out),
        Field::Gateway => gateway::write(before, octets, out),
        Field::A6Address => a6::write(octets, out),
        Field::HipFields => host_identity::write(octets, out),
        Field::NxtBitmap => small::write_nxt_bitmap(octets, out),
        Field::HexPairs(_) => small::write_hex_pairs(octets, out),
        Field::HexGroups64 => small::write_groups(octets, out),
        _ => {}
    }
}
