//! Simulated paths in the parameters of an experiment.

use crate::experiment::parameters::ParameterError;
use crate::link::{LinkOptions, PathOptions};
use crate::measure::subject::serde_as_text;
use crate::testbed::{LinkPlace, PlacedLink};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The path without a delay, on which all parts are in one namespace.
const DIRECT: &str = "direct";

/// A path: `direct`, or words with spaces between them: `clients` (between clients and resolver
/// instead of between resolver and servers), `rtt=MS`, `loss=PERCENT`, `mtu=OCTETS`,
/// `no-fragments`, `no-udp`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathChoice {
    text: String,
    link: Option<PlacedLink>,
}

impl PathChoice {
    /// The path without a delay.
    pub(super) fn direct() -> Self {
        Self { text: DIRECT.to_owned(), link: None }
    }

    /// The simulated path with this seed; `None` for the direct path.
    pub(super) fn link(&self, seed: u64) -> Option<PlacedLink> {
        self.link.map(|link| PlacedLink { options: LinkOptions { seed, ..link.options }, ..link })
    }

    /// The properties of one direction, with the round-trip time in ms.
    pub(super) fn properties(&self) -> Option<(f64, PathOptions)> {
        let options = self.link?.options.forward;
        Some((2000.0 * options.delay.as_secs_f64(), options))
    }

    /// Round-trip time between resolver and servers; `None` without a delay there.
    pub(super) fn round_trip_to_servers(&self) -> Option<Duration> {
        let link = self.link.filter(|link| link.place == LinkPlace::Servers)?;
        Some(2 * link.options.forward.delay).filter(|time| !time.is_zero())
    }
}

impl FromStr for PathChoice {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        if text == DIRECT {
            return Ok(Self::direct());
        }
        let unknown = || ParameterError::Path(text.to_owned());
        let (mut options, mut place) = (PathOptions::default(), LinkPlace::Servers);
        for word in text.split(' ') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let number = || {
                value
                    .parse::<f64>()
                    .ok()
                    .filter(|number| (0.0..=60_000.0).contains(number))
                    .ok_or_else(unknown)
            };
            match name {
                "clients" => place = LinkPlace::Clients,
                // Half of it in each direction.
                "rtt" => options.delay = Duration::from_secs_f64(number()? / 2000.0),
                "loss" => options.loss = number()? / 100.0,
                "mtu" => options.mtu = value.parse().map_err(|_| unknown())?,
                "no-fragments" => options.drop_fragments = true,
                "no-udp" => options.drop_udp = true,
                _ => return Err(unknown()),
            }
        }
        options.check().map_err(|_| unknown())?;
        let options = LinkOptions { forward: options, backward: options, seed: 0 };
        Ok(Self { text: text.to_owned(), link: Some(PlacedLink { place, options }) })
    }
}

impl fmt::Display for PathChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

serde_as_text!(ParameterError: PathChoice);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_all_forms() {
        for text in ["direct", "rtt=20", "clients rtt=20 loss=1", "mtu=1280 no-fragments", "no-udp"] {
            assert_eq!(text.parse::<PathChoice>().map(|path| path.to_string()), Ok(text.to_owned()));
        }
        for wrong in ["", "rtt", "rtt=-1", "loss=101", "mtu=60", "rtt=5  loss=1", "tcp"] {
            assert!(wrong.parse::<PathChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_direction_has_half_of_the_round_trip_time() {
        let path: PathChoice = "rtt=30 loss=2".parse().expect("a path");
        let link = path.link(7).expect("a link");
        assert_eq!((link.options.seed, link.place), (7, LinkPlace::Servers));
        assert_eq!(link.options.forward.delay, Duration::from_millis(15));
        assert_eq!(path.round_trip_to_servers(), Some(Duration::from_millis(30)));
        let at_clients: PathChoice = "clients rtt=30".parse().expect("a path");
        assert_eq!(at_clients.round_trip_to_servers(), None);
    }
}
