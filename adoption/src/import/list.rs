//! Lists of delegations: lines of words, or CSV with a header.

use super::operator::operator;
use super::{Domain, ImportError, Input, list_text, name_text};
use crate::check::{RowChecker, Values};
use nonesuch_crypto::Algorithm;
use nonesuch_proto::{Name, NameRef};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

/// Maximum length of a line, in octets.
const MAX_LINE: u64 = 64 * 1024;

/// Why a line is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ListFault {
    #[error("cannot be read: {0}")]
    Read(#[from] std::io::Error),
    #[error("is longer than {MAX_LINE} octets")]
    Long,
    #[error("{0:?} is not a domain name: {1}")]
    Name(String, nonesuch_proto::NameError),
    #[error(
        "{0:?} is not an algorithm: write a mnemonic such as ECDSAP256SHA256, a number from 0 to 255, or - for none"
    )]
    Algorithm(String),
    #[error("{0:?} is not a digest type: write a number from 0 to 255, or - for none")]
    Digest(String),
    #[error("has {0} words; expected: DOMAIN ALGORITHMS [DIGEST-TYPES] [NAME-SERVER]")]
    Words(usize),
    #[error("{0:?} is not a positive number")]
    Rank(String),
    #[error("{0:?} is not a number from 0 to 65535")]
    Iterations(String),
    #[error("{0:?} is not true or false")]
    Flag(String),
    #[error("{0}")]
    Row(String),
    #[error("{0}")]
    Csv(csv::Error),
    #[error("the header has no column domain; columns: {}", COLUMNS.join(", "))]
    NoDomain,
    #[error("the header has the unknown column {:?}; columns: {}", .0, COLUMNS.join(", "))]
    Column(String),
    #[error("the header has the column {0} twice")]
    RepeatedColumn(String),
}

/// Columns of CSV files.
const COLUMNS: [&str; 10] = [
    "domain",
    "dnskey_algorithms",
    "ds_algorithms",
    "ds_digests",
    "ns",
    "denial",
    "nsec3_iterations",
    "nsec3_salt",
    "nsec3_opt_out",
    "rank",
];

/// Reads lines with a domain, the algorithms of its DS records, their digest types and a name server.
/// `#` starts a comment.
pub(super) fn read_text(path: &Path) -> Result<Input, ImportError> {
    let failed = |line: u64, fault: ListFault| ImportError::List { path: path.to_owned(), line, fault };
    let mut reader = BufReader::new(File::open(path).map_err(|error| failed(0, error.into()))?);
    let mut domains = Collected::default();
    let mut text = String::new();
    for line in 1.. {
        text.clear();
        let read = reader.by_ref().take(MAX_LINE + 1).read_line(&mut text);
        match read.map_err(|error| failed(line, error.into()))? {
            0 => break,
            octets if octets as u64 > MAX_LINE => return Err(failed(line, ListFault::Long)),
            _ => {}
        }
        let words: Vec<&str> = text.split('#').next().unwrap_or_default().split_whitespace().collect();
        if !words.is_empty() {
            domains.add(path, line, line_domain(&words).map_err(|fault| failed(line, fault))?)?;
        }
    }
    Ok(domains.into_input())
}

fn line_domain(words: &[&str]) -> Result<Domain, ListFault> {
    if !(2..=4).contains(&words.len()) {
        return Err(ListFault::Words(words.len()));
    }
    let algorithms = algorithms(words[1])?;
    let given = words.get(2).map(|text| digests(text)).transpose()?;
    let domain = Domain {
        name: name(words[0])?,
        // Without algorithms there are no DS records, and thus no digests.
        ds_digests: given.or_else(|| algorithms.is_empty().then(String::new)),
        ds_algorithms: Some(algorithms),
        operator: operator(words.get(3).map(|text| name(text)).transpose()?.as_deref().into_iter()),
        ..Domain::default()
    };
    checked(domain)
}

/// Reads CSV (RFC 4180) with a header. An empty cell is unknown, `-` is an empty list.
pub(super) fn read_csv(path: &Path) -> Result<Input, ImportError> {
    let failed = |line: u64, fault: ListFault| ImportError::List { path: path.to_owned(), line, fault };
    let file = File::open(path).map_err(|error| failed(0, error.into()))?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(file);
    let header = reader.headers().map_err(|error| failed(1, ListFault::Csv(error)))?.clone();
    check_header(&header).map_err(|fault| failed(1, fault))?;
    let mut domains = Collected::default();
    for record in reader.records() {
        let record = record.map_err(|error| {
            failed(error.position().map_or(0, csv::Position::line), ListFault::Csv(error))
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        let cells: BTreeMap<&str, &str> =
            header.iter().zip(record.iter()).filter(|(_, cell)| !cell.is_empty()).collect();
        domains.add(path, line, csv_domain(&cells).map_err(|fault| failed(line, fault))?)?;
    }
    Ok(domains.into_input())
}

fn check_header(header: &csv::StringRecord) -> Result<(), ListFault> {
    for (place, column) in header.iter().enumerate() {
        if !COLUMNS.contains(&column) {
            return Err(ListFault::Column(column.to_owned()));
        }
        if header.iter().take(place).any(|earlier| earlier == column) {
            return Err(ListFault::RepeatedColumn(column.to_owned()));
        }
    }
    if header.iter().any(|column| column == "domain") { Ok(()) } else { Err(ListFault::NoDomain) }
}

fn csv_domain(cells: &BTreeMap<&str, &str>) -> Result<Domain, ListFault> {
    let cell = |column: &str| cells.get(column).copied();
    let servers = cell("ns").map(parts).into_iter().flatten().map(name).collect::<Result<Vec<_>, _>>()?;
    let ds_algorithms = cell("ds_algorithms").map(algorithms).transpose()?;
    let no_ds = ds_algorithms.as_deref() == Some("");
    let ds_digests = cell("ds_digests").map(digests).transpose()?;
    checked(Domain {
        name: name(cell("domain").unwrap_or_default())?,
        dnskey_algorithms: cell("dnskey_algorithms").map(algorithms).transpose()?,
        ds_digests: ds_digests.or_else(|| no_ds.then(String::new)),
        ds_algorithms,
        operator: operator(servers.iter().map(String::as_str)),
        denial: cell("denial").map(str::to_owned),
        iterations: number(cell("nsec3_iterations"), ListFault::Iterations)?,
        salt: cell("nsec3_salt").map(|salt| if salt == "-" { "" } else { salt }.to_ascii_lowercase()),
        opt_out: number(cell("nsec3_opt_out"), ListFault::Flag)?,
        rank: number(cell("rank"), ListFault::Rank)?,
    })
}

/// Applies the rules for rows, so that the report accepts all imported rows.
fn checked(domain: Domain) -> Result<Domain, ListFault> {
    let values = Values {
        domain: Some(&domain.name),
        dnskey_algorithms: domain.dnskey_algorithms.as_deref(),
        ds_algorithms: domain.ds_algorithms.as_deref(),
        ds_digests: domain.ds_digests.as_deref(),
        denial: domain.denial.as_deref(),
        iterations: domain.iterations.map(i32::from),
        salt: domain.salt.as_deref(),
        opt_out: domain.opt_out,
        rank: domain.rank,
    };
    match RowChecker::default().fault(&values) {
        Some(fault) => Err(ListFault::Row(fault.to_string())),
        None => Ok(domain),
    }
}

/// Domains with their lines.
#[derive(Default)]
struct Collected {
    domains: BTreeMap<String, (u64, Domain)>,
}

impl Collected {
    fn add(&mut self, path: &Path, line: u64, domain: Domain) -> Result<(), ImportError> {
        match self.domains.insert(domain.name.clone(), (line, domain)) {
            None => Ok(()),
            Some((earlier, Domain { name: domain, .. })) => {
                Err(ImportError::Repeated { path: path.to_owned(), domain, lines: (earlier, line) })
            }
        }
    }

    fn into_input(self) -> Input {
        let domains = self.domains.into_values().map(|(_, domain)| domain).collect();
        Input { domains, source: None, day: None }
    }
}

fn name(text: &str) -> Result<String, ListFault> {
    let name = Name::from_text(text.as_bytes(), Some(NameRef::ROOT));
    name.map(|name| name_text(name.view())).map_err(|error| ListFault::Name(text.to_owned(), error))
}

/// Splits a list between commas, semicolons or spaces.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ';', ' ']).filter(|part| !part.is_empty())
}

/// Reads algorithms; `-` is none.
fn algorithms(text: &str) -> Result<String, ListFault> {
    if text == "-" {
        return Ok(String::new());
    }
    let number = |part: &str| {
        part.parse().map(|Algorithm(number)| number).map_err(|_| ListFault::Algorithm(part.to_owned()))
    };
    let numbers = parts(text).map(number).collect::<Result<Vec<u8>, _>>()?;
    if numbers.is_empty() { Err(ListFault::Algorithm(text.to_owned())) } else { Ok(list_text(numbers)) }
}

/// Reads digest types; `-` is none.
fn digests(text: &str) -> Result<String, ListFault> {
    if text == "-" {
        return Ok(String::new());
    }
    let number = |part: &str| part.parse().map_err(|_| ListFault::Digest(part.to_owned()));
    let numbers = parts(text).map(number).collect::<Result<Vec<u8>, _>>()?;
    if numbers.is_empty() { Err(ListFault::Digest(text.to_owned())) } else { Ok(list_text(numbers)) }
}

fn number<T: std::str::FromStr>(
    cell: Option<&str>,
    fault: impl Fn(String) -> ListFault,
) -> Result<Option<T>, ListFault> {
    cell.map(|text| text.parse().map_err(|_| fault(text.to_owned()))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::DENIALS;

    fn line(text: &str) -> Result<Domain, ListFault> {
        line_domain(&text.split_whitespace().collect::<Vec<_>>())
    }

    fn lists(domain: &Domain) -> [Option<&str>; 3] {
        [domain.ds_algorithms.as_deref(), domain.ds_digests.as_deref(), domain.operator.as_deref()]
    }

    #[test]
    fn a_line_has_a_domain_algorithms_digests_and_a_server() {
        let domain = line("Example.COM. 13,RSASHA256 2 ns1.example.net.").expect("valid");
        assert_eq!(
            (domain.name.as_str(), lists(&domain)),
            ("example.com", [Some("8,13"), Some("2"), Some("example.net")])
        );
        assert_eq!(lists(&line("a.com 8").expect("valid")), [Some("8"), None, None]);
        assert_eq!(lists(&line("a.com -").expect("valid")), [Some(""), Some(""), None]);
        assert_eq!(lists(&line("a.com - - ns.b.com").expect("valid")), [Some(""), Some(""), Some("b.com")]);
    }

    #[test]
    fn invalid_lines_are_rejected() {
        assert!(matches!(line("a.com"), Err(ListFault::Words(1))));
        assert!(matches!(line("a.com 8 2 ns 5"), Err(ListFault::Words(5))));
        assert!(matches!(line("a..com 8"), Err(ListFault::Name(..))));
        assert!(matches!(line("a.com 256"), Err(ListFault::Algorithm(_))));
        assert!(matches!(line("a.com ,"), Err(ListFault::Algorithm(_))));
        assert!(matches!(line("a.com 8 x"), Err(ListFault::Digest(_))));
        assert!(matches!(line("a.com 8 -"), Err(ListFault::Row(_))));
    }

    #[test]
    fn cells_are_read_by_their_column() {
        let cells = |list: &[(&'static str, &'static str)]| csv_domain(&list.iter().copied().collect());
        let domain = cells(&[
            ("domain", "a.com"),
            ("dnskey_algorithms", "8;13"),
            ("ds_algorithms", "-"),
            ("ns", "ns1.b.net ns2.b.net"),
            ("denial", "nsec3"),
            ("nsec3_iterations", "0"),
            ("nsec3_salt", "AB"),
            ("nsec3_opt_out", "true"),
            ("rank", "7"),
        ]);
        let expected = Domain {
            name: "a.com".to_owned(),
            dnskey_algorithms: Some("8,13".to_owned()),
            ds_algorithms: Some(String::new()),
            ds_digests: Some(String::new()),
            operator: Some("b.net".to_owned()),
            denial: Some("nsec3".to_owned()),
            iterations: Some(0),
            salt: Some("ab".to_owned()),
            opt_out: Some(true),
            rank: Some(7),
        };
        assert_eq!(domain.expect("valid"), expected);
        assert!(matches!(cells(&[("domain", "a.com"), ("rank", "0")]), Err(ListFault::Row(_))));
        assert!(matches!(cells(&[("domain", "a.com"), ("rank", "x")]), Err(ListFault::Rank(_))));
        assert!(matches!(
            cells(&[("domain", "a.com"), ("denial", DENIALS[0]), ("nsec3_salt", "-")]),
            Err(ListFault::Row(_))
        ));
        assert!(matches!(cells(&[("rank", "1")]), Err(ListFault::Name(..) | ListFault::Row(_))));
    }

    #[test]
    fn headers_name_known_columns_once() {
        let header = |names: &[&str]| check_header(&csv::StringRecord::from(names.to_vec()));
        assert!(header(&["rank", "domain"]).is_ok());
        assert!(matches!(header(&["rank"]), Err(ListFault::NoDomain)));
        assert!(matches!(header(&["domain", "x"]), Err(ListFault::Column(_))));
        assert!(matches!(header(&["domain", "rank", "rank"]), Err(ListFault::RepeatedColumn(_))));
    }
}
