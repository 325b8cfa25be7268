//! The tables of a recording: the columns, and the conversion of windows and domains from and to rows.

use super::error::WindowFault;
use super::{DomainCounts, Window};
use crate::cost_model::record::CountedDomain;
use crate::data::{ColumnType, DataColumn};
use serde::Serialize;
use serde_json::Value;

/// Columns of windows: name, and meaning with the unit.
const WINDOW_COLUMNS: [(&str, &str); 10] = [
    ("start_us", "start, microseconds since 1970"),
    ("length_us", "length, microseconds"),
    ("queries", "queries to authoritative servers (Q)"),
    ("tcp_queries", "queries over TCP or TLS"),
    ("responses", "responses, truncated ones included (R)"),
    ("truncated", "truncated responses"),
    ("signed_responses", "responses with an RRSIG record (R_s)"),
    ("signatures", "RRSIG records in responses (S)"),
    ("verified", "verified signatures, failed ones included (S_v)"),
    ("response_octets", "octets of responses; empty if unknown"),
];

pub(super) fn window_columns() -> Vec<DataColumn> {
    let columns = WINDOW_COLUMNS.iter();
    columns.map(|(name, meaning)| DataColumn::new(name, ColumnType::Integer, meaning)).collect()
}

pub(super) fn domain_columns() -> Vec<DataColumn> {
    let integer = |name, meaning| DataColumn::new(name, ColumnType::Integer, meaning);
    vec![
        DataColumn::new("domain", ColumnType::Text, "apex of the zone"),
        integer("queries", "answered queries to its servers, at least"),
        integer("uncertainty", "queries that may be missing in this number"),
        integer("signed", "1 if a response had an RRSIG record of this signer, otherwise 0"),
    ]
}

/// The fields are those of [`WINDOW_COLUMNS`].
#[derive(Serialize)]
pub(super) struct WindowRow {
    start_us: u64,
    length_us: u64,
    queries: u64,
    tcp_queries: u64,
    responses: u64,
    truncated: u64,
    signed_responses: u64,
    signatures: u64,
    verified: u64,
    response_octets: Option<u64>,
}

impl From<&Window> for WindowRow {
    fn from(window: &Window) -> Self {
        Self {
            start_us: window.start,
            length_us: window.length,
            queries: window.queries,
            tcp_queries: window.tcp_queries,
            responses: window.responses,
            truncated: window.truncated,
            signed_responses: window.signed_responses,
            signatures: window.signatures,
            verified: window.verified,
            response_octets: window.response_octets,
        }
    }
}

/// Returns the window of a row, whose cells have the types of the columns.
pub(super) fn window_of(row: &[Value]) -> Result<Window, WindowFault> {
    let mut cells = row.iter().zip(&WINDOW_COLUMNS);
    let mut next = || {
        let (cell, (name, _)) = cells.next().ok_or(WindowFault::Missing { column: "" })?;
        let number = |value: i64| u64::try_from(value).map_err(|_| WindowFault::Negative { column: name });
        cell.as_i64().map(number).transpose().map(|value| (value, *name))
    };
    let mut required = || {
        let (value, column) = next()?;
        value.ok_or(WindowFault::Missing { column })
    };
    let window = Window {
        start: required()?,
        length: required()?,
        queries: required()?,
        tcp_queries: required()?,
        responses: required()?,
        truncated: required()?,
        signed_responses: required()?,
        signatures: required()?,
        verified: required()?,
        response_octets: None,
    };
    let (response_octets, _) = next()?;
    check(&window)?;
    Ok(Window { response_octets, ..window })
}

/// Checks what holds for every window.
fn check(window: &Window) -> Result<(), WindowFault> {
    if window.length == 0 || window.start.checked_add(window.length).is_none() {
        return Err(WindowFault::Length);
    }
    let parts = [
        ("tcp_queries", window.tcp_queries, "queries", window.queries),
        ("truncated", window.truncated, "responses", window.responses),
        ("signed_responses", window.signed_responses, "responses", window.responses),
        ("signed_responses", window.signed_responses, "signatures", window.signatures),
    ];
    match parts.into_iter().find(|(_, part, _, whole)| part > whole) {
        Some((part, _, whole, _)) => Err(WindowFault::Contradiction { part, whole }),
        None => Ok(()),
    }
}

/// The fields are those of [`domain_columns`].
#[derive(Serialize)]
pub(super) struct DomainRow {
    domain: String,
    queries: u64,
    uncertainty: u64,
    signed: u64,
}

impl From<&CountedDomain> for DomainRow {
    fn from(counted: &CountedDomain) -> Self {
        Self {
            domain: counted.domain.to_string(),
            queries: counted.at_least(),
            uncertainty: counted.uncertainty,
            signed: counted.signed.into(),
        }
    }
}

/// Returns the domain of a row; `None` if a cell is missing, negative or not a domain name.
pub(super) fn domain_of(row: &[Value]) -> Option<CountedDomain> {
    let [domain, queries, uncertainty, signed] = row else { return None };
    let (queries, uncertainty) = (queries.as_u64()?, uncertainty.as_u64()?);
    let signed = match signed.as_u64()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let domain = domain.as_str()?.parse().ok()?;
    Some(CountedDomain { domain, count: queries.checked_add(uncertainty)?, uncertainty, signed })
}

impl From<CountedDomain> for DomainCounts {
    fn from(counted: CountedDomain) -> Self {
        let queries = counted.at_least();
        Self { domain: counted.domain, queries, signed: counted.signed }
    }
}
