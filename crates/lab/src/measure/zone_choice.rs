//! Selection of a zone for measurement: a generated zone or a zone file.

use super::subject::serde_as_text;
use crate::generate::ZoneModel;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A zone: generated, or a zone file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ZoneChoice {
    /// A generated zone with the given kind and number of names: `nl:200000`.
    Like {
        /// Kind of the zone.
        like: ZoneModel,
        /// Number of names.
        names: u64,
    },
    /// A zone file, `FILE` or `ORIGIN=FILE`. The experiment removes the records that signing added.
    File {
        /// Path of the file.
        path: PathBuf,
        /// The apex, if the file does not contain it.
        origin: Option<String>,
    },
}

/// The text does not describe a zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a zone: write KIND:NAMES with at least one name, for example nl:200000, or a zone file as FILE or ORIGIN=FILE"
)]
pub struct ZoneChoiceError(String);

impl FromStr for ZoneChoice {
    type Err = ZoneChoiceError;

    fn from_str(text: &str) -> Result<Self, ZoneChoiceError> {
        let wrong = || ZoneChoiceError(text.to_owned());
        if let Some((kind, names)) = text.split_once(':')
            && let Ok(like) = kind.parse::<ZoneModel>()
        {
            let names = names.replace('_', "").parse().ok().filter(|names| *names > 0).ok_or_else(wrong)?;
            return Ok(Self::Like { like, names });
        }
        let (origin, path) = match text.split_once('=') {
            Some((origin, path)) if !origin.is_empty() => (Some(origin.to_owned()), path),
            _ => (None, text),
        };
        if path.is_empty() { Err(wrong()) } else { Ok(Self::File { path: path.into(), origin }) }
    }
}

impl fmt::Display for ZoneChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Like { like, names } => f.pad(&format!("{like}:{names}")),
            Self::File { path, origin: None } => f.pad(&path.display().to_string()),
            Self::File { path, origin: Some(origin) } => f.pad(&format!("{origin}={}", path.display())),
        }
    }
}

serde_as_text!(ZoneChoiceError: ZoneChoice);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_in_all_forms() {
        let read = |text: &str| text.parse::<ZoneChoice>();
        assert_eq!(read("tld:200"), Ok(ZoneChoice::Like { like: ZoneModel::Tld, names: 200 }));
        assert_eq!(read("tld:1_000"), Ok(ZoneChoice::Like { like: ZoneModel::Tld, names: 1000 }));
        let file = |path: &str, origin: Option<&str>| {
            Ok(ZoneChoice::File { path: path.into(), origin: origin.map(str::to_owned) })
        };
        assert_eq!(read("a/se.zone"), file("a/se.zone", None));
        assert_eq!(read("se.=a/se.zone"), file("a/se.zone", Some("se.")));
        assert_eq!(read("./tld:200"), file("./tld:200", None));
        for wrong in ["", "tld:", "tld:0", "tld:x", "se.="] {
            assert_eq!(read(wrong), Err(ZoneChoiceError(wrong.to_owned())));
        }
        for text in ["tld:200", "a/se.zone", "se.=a/se.zone"] {
            assert_eq!(read(text).map(|choice| choice.to_string()), Ok(text.to_owned()));
        }
    }
}
