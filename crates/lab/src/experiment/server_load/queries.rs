//! Kinds of queries, and the lists of queries for a zone.

use crate::experiment::parameters::ParameterError;
use crate::generate::{GenerateError, QueriedZone};
use crate::load::{LABEL_OCTETS, LoadOptions, QueryList, QueryListError, SHORT_LABEL_OCTETS};
use crate::measure::loaded::mean_query_octets;
use crate::measure::subject::serde_as_text;
use nonesuch_proto::Rtype;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// Number of queries in each list. A load repeats the list.
const QUERIES: u64 = 50_000;

/// A kind of query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum QueryKind {
    /// `existing`: names that the zone answers: existing names, names below delegations, wildcards
    /// and DNAME records; Zipf-distributed.
    Existing,
    /// `denied`: a long random label below names that exist. Each query has a different name, and
    /// needs a different proof.
    Denied,
    /// `denied:N`: N % of the queries are for names that do not exist, the others for names that
    /// exist. The list of names is repeated.
    DeniedMixed(u8),
    /// `label`: a random label of six characters below names that exist (ePrint 2017/099 §7). Each
    /// query has a different name.
    RandomLabel,
    /// `label:N`: N % of the queries are for a random label of six characters below a name with an
    /// address, the others for a name with an address. Each name that does not exist is different.
    RandomLabelMixed(u8),
    /// `referral`: names below delegations.
    Referral,
    /// `no-data`: names that exist, with a type that they do not have.
    NoData,
    /// `wildcard`: names that match a wildcard. Each query has a different name.
    Wildcard,
    /// A type, for example `DNSKEY`: the apex with this type.
    Apex(Rtype),
}

impl FromStr for QueryKind {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        let unknown = || ParameterError::QueryKind(text.to_owned());
        if let Some((kind, percent)) = text.split_once(':') {
            let percent = percent.parse().ok().filter(|percent| *percent <= 100).ok_or_else(unknown)?;
            return match kind {
                "denied" => Ok(Self::DeniedMixed(percent)),
                "label" => Ok(Self::RandomLabelMixed(percent)),
                _ => Err(unknown()),
            };
        }
        Ok(match text {
            "existing" => Self::Existing,
            "denied" => Self::Denied,
            "label" => Self::RandomLabel,
            "referral" => Self::Referral,
            "no-data" => Self::NoData,
            "wildcard" => Self::Wildcard,
            rtype => Self::Apex(rtype.parse().map_err(|_| unknown())?),
        })
    }
}

impl fmt::Display for QueryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Existing => f.pad("existing"),
            Self::Denied => f.pad("denied"),
            Self::DeniedMixed(percent) => f.pad(&format!("denied:{percent}")),
            Self::RandomLabel => f.pad("label"),
            Self::RandomLabelMixed(percent) => f.pad(&format!("label:{percent}")),
            Self::Referral => f.pad("referral"),
            Self::NoData => f.pad("no-data"),
            Self::Wildcard => f.pad("wildcard"),
            Self::Apex(rtype) => f.pad(&rtype.to_string()),
        }
    }
}

serde_as_text!(ParameterError: QueryKind);

/// Reasons why a zone has no list of queries of a kind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueriesError {
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error(transparent)]
    List(#[from] QueryListError),
}

impl QueryKind {
    /// Generates the list of queries for a zone.
    pub(super) fn list(self, zone: &QueriedZone, seed: u64) -> Result<Arc<QueryList>, QueriesError> {
        let mut text = Vec::new();
        match self {
            Self::Existing => drop(zone.write_queries(0, QUERIES, seed, &mut text)?),
            Self::Denied | Self::RandomLabel => zone.write_parents(&mut text)?,
            Self::DeniedMixed(percent) => drop(zone.write_queries(percent, QUERIES, seed, &mut text)?),
            Self::RandomLabelMixed(_) => zone.write_hosts(&mut text)?,
            Self::Referral => zone.write_referrals(&mut text)?,
            Self::NoData => zone.write_missing_types(&mut text)?,
            Self::Wildcard => zone.write_wildcards(&mut text)?,
            Self::Apex(rtype) => zone.write_apex(rtype, &mut text)?,
        }
        Ok(Arc::new(QueryList::parse(Path::new("generated queries"), &text)?))
    }

    /// Returns the mean size of the queries of a load, in octets: of those in `list`, and of the
    /// random labels that the load adds ([`Self::with_labels`]).
    pub(super) fn query_octets(self, list: &QueryList) -> f64 {
        mean_query_octets(list) + self.mean_label_octets()
    }

    /// Returns the mean size of the random label that a load adds to a query, in octets.
    fn mean_label_octets(self) -> f64 {
        match self {
            Self::Denied | Self::Wildcard => LABEL_OCTETS as f64,
            Self::RandomLabel => SHORT_LABEL_OCTETS as f64,
            Self::RandomLabelMixed(percent) => SHORT_LABEL_OCTETS as f64 * f64::from(percent) / 100.0,
            _ => 0.0,
        }
    }

    /// Returns `options` with the random labels of this kind of query, if it has any.
    pub(super) fn with_labels(self, options: LoadOptions) -> LoadOptions {
        let random_prefix = matches!(self, Self::Denied | Self::Wildcard);
        let random_label = matches!(self, Self::RandomLabel | Self::RandomLabelMixed(_));
        let label_percent = if let Self::RandomLabelMixed(percent) = self { percent } else { 100 };
        LoadOptions { random_prefix, random_label, label_percent, ..options }
    }
}
