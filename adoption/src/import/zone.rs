//! Delegations of a zone file, with their DS records.

use super::operator::operator;
use super::{Domain, ImportError, Input, list_text, name_text};
use crate::snapshot::{Day, day_of};
use jiff::civil::Date;
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::read::read_file;
use nonesuch_zone::{Contents, NameStatus, Node, name_statuses};
use std::path::Path;

/// Reads the delegations of a zone. The date is that in the serial number, if it has one.
pub(super) fn read(path: &Path, origin: Option<&Name>) -> Result<Input, ImportError> {
    let contents = read_file(path, origin)?.contents;
    let delegations = contents.nodes().zip(name_statuses(&contents));
    let delegations = delegations.filter(|(_, status)| *status == NameStatus::Delegation);
    let mut domains: Vec<Domain> = delegations.map(|(node, _)| delegation(node)).collect();
    domains.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(Input { domains, source: Some(name_text(contents.apex().view())), day: serial_day(&contents) })
}

fn delegation(node: Node<'_>) -> Domain {
    let ds: Vec<&[u8]> = node.rrset(Rtype::DS).iter().flat_map(|rrset| rrset.rdatas()).collect();
    // RFC 4034 §5.1: key tag of two octets, algorithm, digest type, digest.
    let octets = |place: usize| list_text(ds.iter().filter_map(|rdata| rdata.get(place).copied()).collect());
    let servers: Vec<String> =
        node.rrset(Rtype::NS).iter().flat_map(|rrset| rrset.rdatas()).filter_map(server).collect();
    Domain {
        name: name_text(node.name()),
        ds_algorithms: Some(octets(2)),
        ds_digests: Some(octets(3)),
        operator: operator(servers.iter().map(String::as_str)),
        ..Domain::default()
    }
}

fn server(rdata: &[u8]) -> Option<String> {
    NameRef::from_wire(rdata).ok().map(name_text)
}

/// Returns the date in a serial number of the form YYYYMMDDnn (RFC 1912 §2.2).
fn serial_day(contents: &Contents) -> Option<Day> {
    let serial = contents.soa()?.serial;
    let (year, month, day) = (serial / 1_000_000, serial / 10_000 % 100, serial / 100 % 100);
    let date = Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    (1980..2200).contains(&date.year()).then(|| day_of(date))
}
