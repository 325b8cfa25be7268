//! The values of a row.

use crate::snapshot::DENIALS;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Maximum number of lists whose check is remembered.
const MAX_LISTS: usize = 4096;
/// Maximum number of characters of a value in a message.
const MAX_SHOWN: usize = 60;

/// The values that are checked; `None` is NULL.
pub(crate) struct Values<'a> {
    pub(crate) domain: Option<&'a str>,
    pub(crate) dnskey_algorithms: Option<&'a str>,
    pub(crate) ds_algorithms: Option<&'a str>,
    pub(crate) ds_digests: Option<&'a str>,
    pub(crate) denial: Option<&'a str>,
    pub(crate) iterations: Option<i32>,
    pub(crate) salt: Option<&'a str>,
    pub(crate) opt_out: Option<bool>,
    pub(crate) rank: Option<i32>,
}

/// Why a row is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RowFault<'a> {
    #[error("the domain is NULL")]
    NoDomain,
    #[error("the domain is not in lower case without a final dot (`.` for the root)")]
    Domain,
    #[error("{column} is {}, not ascending numbers from 0 to 255 between commas", shortened(.value))]
    List { column: &'static str, value: &'a str },
    #[error("ds_algorithms and ds_digests disagree whether there are DS records")]
    Digests,
    #[error("denial is {}, not one of {}", shortened(.0), DENIALS.join(", "))]
    Denial(&'a str),
    #[error("a column of NSEC3 has a value, but denial is not nsec3")]
    NotNsec3,
    #[error("nsec3_iterations is {0}, not a number from 0 to 65535")]
    Iterations(i32),
    #[error("nsec3_salt is {}, not an even number of hexadecimal digits, at most 510", shortened(.0))]
    Salt(&'a str),
    #[error("rank is {0}, not a positive number")]
    Rank(i32),
    #[error("the domain is more than once in the snapshot")]
    Repeated,
}

/// Checks rows. Most rows have the same few lists, so it remembers the lists that are checked.
#[derive(Default)]
pub(crate) struct RowChecker {
    lists: HashMap<String, bool>,
}

impl RowChecker {
    /// Returns the first fault of a row.
    pub(crate) fn fault<'a>(&mut self, row: &Values<'a>) -> Option<RowFault<'a>> {
        let Some(domain) = row.domain else { return Some(RowFault::NoDomain) };
        if !is_domain(domain) {
            return Some(RowFault::Domain);
        }
        let lists = [
            ("dnskey_algorithms", row.dnskey_algorithms),
            ("ds_algorithms", row.ds_algorithms),
            ("ds_digests", row.ds_digests),
        ];
        for (column, list) in lists {
            if let Some(value) = list.filter(|value| !self.is_list(value)) {
                return Some(RowFault::List { column, value });
            }
        }
        // The digest types may be unknown even if the algorithms are known, but not the reverse.
        if row.ds_digests.is_some_and(|list| row.ds_algorithms.map(str::is_empty) != Some(list.is_empty())) {
            return Some(RowFault::Digests);
        }
        denial_fault(row).or_else(|| row.rank.filter(|rank| *rank < 1).map(RowFault::Rank))
    }

    fn is_list(&mut self, text: &str) -> bool {
        if let Some(known) = self.lists.get(text) {
            return *known;
        }
        let is_valid = is_list(text);
        if self.lists.len() < MAX_LISTS {
            self.lists.insert(text.to_owned(), is_valid);
        }
        is_valid
    }
}

fn denial_fault<'a>(row: &Values<'a>) -> Option<RowFault<'a>> {
    if let Some(denial) = row.denial.filter(|denial| !DENIALS.contains(denial)) {
        return Some(RowFault::Denial(denial));
    }
    let has_parameters = row.iterations.is_some() || row.salt.is_some() || row.opt_out.is_some();
    if has_parameters && row.denial != Some("nsec3") {
        return Some(RowFault::NotNsec3);
    }
    let iterations = row.iterations.filter(|iterations| u16::try_from(*iterations).is_err());
    iterations
        .map(RowFault::Iterations)
        .or_else(|| row.salt.filter(|salt| !is_salt(salt)).map(RowFault::Salt))
}

/// Whether the name is in the form of the column: so that equal names are equal texts.
fn is_domain(domain: &str) -> bool {
    let is_plain = !domain.is_empty() && !domain.ends_with('.');
    domain == "." || (is_plain && !domain.bytes().any(|octet| octet.is_ascii_uppercase() || octet <= b' '))
}

/// Whether the text is empty, or ascending numbers from 0 to 255 between commas.
fn is_list(text: &str) -> bool {
    let mut last = None;
    text.is_empty()
        || text.split(',').all(|part| {
            let number: Option<u8> = part.parse().ok().filter(|number: &u8| number.to_string() == part);
            let is_next = number.is_some() && number > last;
            last = number;
            is_next
        })
}

fn is_salt(text: &str) -> bool {
    text.len() <= 510 && text.len().is_multiple_of(2) && text.bytes().all(|octet| octet.is_ascii_hexdigit())
}

/// Returns the start of a value, quoted, for a message.
pub(crate) fn shortened(value: &str) -> String {
    let mut text = format!("{:?}", value.chars().take(MAX_SHOWN).collect::<String>());
    if value.chars().nth(MAX_SHOWN).is_some() {
        let _ = write!(text, "...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: Values<'static> = Values {
        domain: Some("example.com"),
        dnskey_algorithms: Some("8,13"),
        ds_algorithms: Some("13"),
        ds_digests: Some("2"),
        denial: Some("nsec3"),
        iterations: Some(0),
        salt: Some("ab12"),
        opt_out: Some(false),
        rank: Some(1),
    };

    fn fault<'a>(row: &Values<'a>) -> Option<RowFault<'a>> {
        RowChecker::default().fault(row)
    }

    #[test]
    fn valid_rows_have_no_fault() {
        let nothing = Values {
            domain: Some("."),
            dnskey_algorithms: None,
            ds_algorithms: None,
            ds_digests: None,
            denial: None,
            iterations: None,
            salt: None,
            opt_out: None,
            rank: None,
        };
        let empty =
            Values { dnskey_algorithms: Some(""), ds_algorithms: Some(""), ds_digests: Some(""), ..VALID };
        let without_digests = Values { ds_digests: None, ..VALID };
        for row in [VALID, nothing, empty, without_digests] {
            assert_eq!(fault(&row), None);
        }
    }

    #[test]
    fn each_value_is_checked() {
        let list = |column, value| Some(RowFault::List { column, value });
        let cases = [
            (Values { domain: None, ..VALID }, Some(RowFault::NoDomain)),
            (Values { domain: Some("Example.com"), ..VALID }, Some(RowFault::Domain)),
            (Values { domain: Some("example.com."), ..VALID }, Some(RowFault::Domain)),
            (Values { domain: Some(""), ..VALID }, Some(RowFault::Domain)),
            (Values { dnskey_algorithms: Some("13,8"), ..VALID }, list("dnskey_algorithms", "13,8")),
            (Values { ds_algorithms: Some("x"), ..VALID }, list("ds_algorithms", "x")),
            (Values { ds_digests: Some("02"), ..VALID }, list("ds_digests", "02")),
            (Values { ds_digests: Some(""), ..VALID }, Some(RowFault::Digests)),
            (Values { ds_algorithms: None, ..VALID }, Some(RowFault::Digests)),
            (Values { denial: Some("NSEC"), ..VALID }, Some(RowFault::Denial("NSEC"))),
            (Values { denial: Some("nsec"), ..VALID }, Some(RowFault::NotNsec3)),
            (Values { iterations: Some(65_536), ..VALID }, Some(RowFault::Iterations(65_536))),
            (Values { salt: Some("abc"), ..VALID }, Some(RowFault::Salt("abc"))),
            (Values { salt: Some("-"), ..VALID }, Some(RowFault::Salt("-"))),
            (Values { rank: Some(0), ..VALID }, Some(RowFault::Rank(0))),
        ];
        for (row, expected) in cases {
            assert_eq!(fault(&row), expected);
        }
    }

    #[test]
    fn lists_are_ascending_numbers_of_an_octet() {
        for valid in ["", "0", "8", "8,13", "5,7,8,255"] {
            assert!(is_list(valid), "{valid}");
        }
        for invalid in [",", "8,", "8,8", "256", "-1", "+1", "08", "8, 13", "13,8", "8;13"] {
            assert!(!is_list(invalid), "{invalid}");
        }
    }

    #[test]
    fn long_values_are_shortened() {
        assert_eq!(shortened("a\u{1b}"), "\"a\\u{1b}\"");
        assert_eq!(shortened(&"é".repeat(1000)).chars().count(), MAX_SHOWN + 5);
    }
}
