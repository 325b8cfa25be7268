//! The order in which domains become signed in scenario 2: popular ones first.

use crate::cost_model::DomainCounts;
use crate::files::read_bounded;
use nonesuch_proto::Name;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum size of a ranking, in octets. A list of ten million domains is smaller.
const MAX_RANKING_OCTETS: u64 = 512 << 20;
/// Number of points of a curve of growth.
const POINTS: usize = 40;

/// Why a ranking cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum RankingError {
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "{}:{line}: '{found}' is not a domain: write a domain, or a rank, a comma and a domain, on each line, \
         the most popular domain first", path.display()
    )]
    Line { path: PathBuf, line: usize, found: String },
    #[error("{}: no domains: write one on each line, the most popular first", path.display())]
    Empty { path: PathBuf },
}

/// A point of the growth: after the most popular domains have been signed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GrowthPoint {
    /// Number of the most popular domains that are all signed.
    pub domains: usize,
    /// α_s then.
    pub signed_share: f64,
}

/// Reads a ranking: a domain on each line, the most popular first. A line can have a rank, a comma and
/// further fields, as the lists of Tranco and Umbrella have. Empty lines and lines that start with `#`
/// are ignored.
///
/// # Errors
/// Fails if the file cannot be read, is larger than 512 MiB, has no domains, or has a line that is not
/// a domain.
pub fn read_ranking(path: &Path) -> Result<Vec<Name>, RankingError> {
    let octets = read_bounded(path, MAX_RANKING_OCTETS)
        .map_err(|source| RankingError::Read { path: path.to_path_buf(), source })?;
    let mut names = Vec::new();
    for (index, line) in octets.split(|octet| *octet == b'\n').enumerate() {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        names.push(parse_line(text).ok_or_else(|| RankingError::Line {
            path: path.to_path_buf(),
            line: index + 1,
            found: text.chars().take(100).collect(),
        })?);
    }
    if names.is_empty() {
        return Err(RankingError::Empty { path: path.to_path_buf() });
    }
    Ok(names)
}

/// Parses `example.com` or `1,example.com`, with further fields.
fn parse_line(text: &str) -> Option<Name> {
    let mut fields = text.split(',').map(str::trim);
    let first = fields.next()?;
    let is_rank = !first.is_empty() && first.bytes().all(|octet| octet.is_ascii_digit());
    let domain = if is_rank { fields.next()? } else { first };
    let dot = if domain.ends_with('.') { "" } else { "." };
    format!("{domain}{dot}").parse().ok()
}

/// Returns α_s after each number of the most popular domains has been signed: from today's share to 1.
///
/// The popularity of a domain is its share of the queries. `ranking` replaces the order of the
/// recording; domains that it does not have follow. Queries for domains that are missing in the list of
/// the recording are for less popular domains, which are signed last. α_s grows in proportion to the
/// queries of domains that are not signed today. Returns an empty list if there are no domains.
pub(super) fn growth(
    domains: &[DomainCounts],
    ranking: Option<&[Name]>,
    total_queries: u64,
    signed_share: f64,
) -> Vec<GrowthPoint> {
    let ordered = order(domains, ranking);
    let listed: u64 = domains.iter().map(|domain| domain.queries).sum();
    let signed: u64 = domains.iter().filter(|domain| domain.signed).map(|domain| domain.queries).sum();
    let unsigned = total_queries.max(listed) - signed;
    if ordered.is_empty() || unsigned == 0 {
        return Vec::new();
    }
    let mut newly_signed = 0;
    let mut points = vec![GrowthPoint { domains: 0, signed_share }];
    let wanted = counts(ordered.len());
    for (place, domain) in ordered.iter().enumerate() {
        newly_signed += if domain.signed { 0 } else { domain.queries };
        if wanted.contains(&(place + 1)) {
            let grown = newly_signed as f64 / unsigned as f64;
            points.push(GrowthPoint {
                domains: place + 1,
                signed_share: signed_share + (1.0 - signed_share) * grown,
            });
        }
    }
    points
}

fn order<'d>(domains: &'d [DomainCounts], ranking: Option<&[Name]>) -> Vec<&'d DomainCounts> {
    let mut ordered: Vec<&DomainCounts> = domains.iter().collect();
    let ranks: HashMap<&Name, usize> =
        ranking.unwrap_or_default().iter().enumerate().rev().map(|(rank, name)| (name, rank)).collect();
    let rank = |domain: &DomainCounts| ranks.get(&domain.domain).copied().unwrap_or(usize::MAX);
    ordered.sort_by_key(|domain| (rank(domain), std::cmp::Reverse(domain.queries)));
    ordered
}

/// Returns numbers from 1 to `last` at about equal ratios.
fn counts(last: usize) -> HashSet<usize> {
    let power = |step: usize| (last as f64).powf(step as f64 / POINTS as f64).round() as usize;
    (0..=POINTS).map(power).chain([last]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(name: &str, queries: u64, signed: bool) -> DomainCounts {
        DomainCounts { domain: name.parse().expect("a name"), queries, signed }
    }

    fn domains() -> Vec<DomainCounts> {
        vec![domain("a.", 50, false), domain("b.", 20, true), domain("c.", 20, false)]
    }

    #[test]
    fn popular_domains_are_signed_first() {
        let points = growth(&domains(), None, 100, 0.2);
        let shares: Vec<(usize, f64)> =
            points.iter().map(|point| (point.domains, point.signed_share)).collect();
        // 80 of 100 queries are for domains that are not signed, 10 of them for domains without a name.
        assert_eq!(shares.len(), 4);
        for ((count, share), (expected_count, expected)) in
            shares.into_iter().zip([(0, 0.2), (1, 0.7), (2, 0.7), (3, 0.9)])
        {
            assert!(count == expected_count && (share - expected).abs() < 1e-12, "{count} {share}");
        }
    }

    #[test]
    fn a_ranking_replaces_the_order() {
        let ranking: Vec<Name> = ["c.", "x.", "a."].map(|name| name.parse().expect("a name")).to_vec();
        let points = growth(&domains(), Some(&ranking), 90, 0.2);
        let last = points.last().expect("a point");
        assert!((points[1].signed_share - (0.2 + 0.8 * 20.0 / 70.0)).abs() < 1e-12);
        assert!(last.domains == 3 && (last.signed_share - 1.0).abs() < 1e-12);
    }

    #[test]
    fn without_domains_or_unsigned_ones_there_is_no_growth() {
        assert!(growth(&[], None, 100, 0.2).is_empty());
        assert!(growth(&[domain("a.", 5, true)], None, 5, 0.2).is_empty());
        assert!(counts(1).len() == 1 && counts(1_000_000).len() <= POINTS + 1);
    }

    #[test]
    fn rankings_are_read_and_checked() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("ranking");
        std::fs::write(&path, "# a list\n1,example.com\n2,example.org.,more\n\nexample.net\r\n")
            .expect("written");
        let names = read_ranking(&path).expect("a ranking");
        assert_eq!(
            names.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["example.com.", "example.org.", "example.net."]
        );
        std::fs::write(&path, "example.com\na..b\n").expect("written");
        assert!(matches!(read_ranking(&path), Err(RankingError::Line { line: 2, .. })));
        std::fs::write(&path, "\n").expect("written");
        assert!(matches!(read_ranking(&path), Err(RankingError::Empty { .. })));
        assert!(matches!(read_ranking(&folder.path().join("none")), Err(RankingError::Read { .. })));
    }
}
