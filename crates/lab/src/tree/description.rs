//! The description of a tree, typed or as a TOML file.

use super::error::TreeError;
use super::fault::Fault;
use nonesuch_crypto::Algorithm;
use nonesuch_crypto::vrf::VrfAlgorithm;
use nonesuch_dnssec::Mechanism;
use nonesuch_proto::{Name, Rtype};
use serde::{Deserialize, Deserializer, de};
use std::fmt::Display;
use std::fs::File;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::str::FromStr;

/// Maximum size of a description, in octets.
const FILE_SIZE_MAX: u64 = 4 << 20;
/// Maximum number of zones of a tree.
const MAX_ZONES: u32 = 100_000;
/// Maximum number of generated names of a zone.
const MAX_NAMES: u32 = 1_000_000;

/// The description of a tree. The default has no zone; [`Tree::build`](super::Tree::build) needs
/// at least the root.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Description {
    /// Address of the first server; the others follow it. Default 127.53.0.1.
    #[serde(default = "default_first_address")]
    pub first_address: Ipv4Addr,
    /// Port of all servers. Default 53.
    #[serde(default = "default_port")]
    pub port: u16,
    /// The zones, in any order.
    #[serde(rename = "zone")]
    pub zones: Vec<ZoneDescription>,
    /// Whether servers may have addresses outside loopback networks and 198.18.0.0/15. Default false;
    /// files cannot set it.
    #[serde(skip)]
    pub any_address: bool,
}

/// The description of one zone, or of `count` zones.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ZoneDescription {
    /// The apex, absolute. With `count`, `#` in it stands for the number of the zone.
    pub origin: String,
    /// Number of zones with this description, numbered from 0. Default: one zone.
    #[serde(default)]
    pub count: Option<u32>,
    /// Whether the zone is signed. Default true.
    #[serde(default = "default_true")]
    pub signed: bool,
    /// Algorithm; with NSEC5, its alias number is used. Default ECDSAP256SHA256. A zone can have a number from 1 to
    /// 251 that this program does not sign with: validators should find it insecure.
    #[serde(default = "default_algorithm", deserialize_with = "from_string")]
    pub algorithm: Algorithm,
    /// Length of RSA keys in bits; `None` selects the default of the algorithm.
    #[serde(default)]
    pub bits: Option<u16>,
    /// Whether one key signs everything (CSK), instead of a KSK and a ZSK. Default false.
    #[serde(default)]
    pub csk: bool,
    /// Denial mechanism. Default NSEC.
    #[serde(default = "default_mechanism", deserialize_with = "from_string")]
    pub denial: Mechanism,
    /// Whether the zone is in a conservative transition to NSEC5 (ePrint 2017/099 §9.1): it has keys
    /// and signatures of the algorithm and of its alias number, and a second version with NSEC5
    /// instead of NSEC3. Needs NSEC3. Default false.
    #[serde(default)]
    pub also_nsec5: bool,
    /// NSEC3 iterations. Default 0.
    #[serde(default)]
    pub iterations: u16,
    /// NSEC3 salt in hexadecimal, two digits for each octet. Default: no salt.
    #[serde(default)]
    pub salt: String,
    /// VRF of NSEC5: `p256` (default), `ed25519-tai`, `ed25519` or `rsa`.
    #[serde(default = "default_vrf", deserialize_with = "vrf_from_string")]
    pub vrf: VrfAlgorithm,
    /// Whether the parent has DS records for this zone. Default true. A signed zone without them is
    /// an island of security (RFC 4033 §2).
    #[serde(default = "default_true")]
    pub ds: bool,
    /// TTL of all records, in seconds. Default 3600.
    #[serde(default = "default_ttl")]
    pub ttl: u32,
    /// Number of generated names `host0`, `host1` and so on, each with an address. Default 0.
    #[serde(default)]
    pub names: u32,
    /// Whether the zone has sample names: `www`, `mail`, `alias` (CNAME), `*.wild`, `deep.ent`.
    /// Default true, except for the root.
    #[serde(default)]
    pub samples: Option<bool>,
    /// More records, as lines of a zone file with the zone as origin.
    #[serde(default)]
    pub records: String,
    /// Address of the server. Zones with the same address share a server. Default: a server of its
    /// own, with the next address.
    #[serde(default)]
    pub server: Option<Ipv4Addr>,
    /// The planted faults. If several of them affect a question, the expected result is that of the
    /// first one.
    #[serde(default)]
    pub faults: Vec<PlantedFault>,
}

/// A fault of a zone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlantedFault {
    /// The fault.
    #[serde(deserialize_with = "from_string")]
    pub fault: Fault,
    /// Owner of the affected RRsets, relative to the origin (`@` is the origin). Faults of
    /// signatures affect all owners by default. The lying bit map is by default at `@`.
    #[serde(default)]
    pub at: Option<String>,
    /// Type of the affected RRsets. Faults of signatures affect all types by default. The lying bit
    /// map has by default the type TYPE65400.
    #[serde(default, rename = "type", deserialize_with = "option_from_string")]
    pub rtype: Option<Rtype>,
}

impl PlantedFault {
    /// A fault of the whole zone.
    #[must_use]
    pub const fn new(fault: Fault) -> Self {
        Self { fault, at: None, rtype: None }
    }
}

impl Default for Description {
    fn default() -> Self {
        Self {
            first_address: default_first_address(),
            port: default_port(),
            zones: Vec::new(),
            any_address: false,
        }
    }
}

impl ZoneDescription {
    /// A zone at `origin` with the default of each field.
    #[must_use]
    pub fn new(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            count: None,
            signed: true,
            algorithm: default_algorithm(),
            bits: None,
            csk: false,
            denial: default_mechanism(),
            also_nsec5: false,
            iterations: 0,
            salt: String::new(),
            vrf: default_vrf(),
            ds: true,
            ttl: default_ttl(),
            names: 0,
            samples: None,
            records: String::new(),
            server: None,
            faults: Vec::new(),
        }
    }

    /// The description of the version with NSEC5 of a zone with `also_nsec5`.
    #[must_use]
    pub(super) fn successor(&self) -> Self {
        Self { denial: Mechanism::Nsec5, also_nsec5: false, ..self.clone() }
    }

    /// Whether a fault of this kind is planted in the zone.
    #[must_use]
    pub fn has(&self, fault: Fault) -> bool {
        self.faults.iter().any(|planted| planted.fault == fault)
    }
}

impl Description {
    /// Reads a TOML file.
    ///
    /// # Errors
    /// [`TreeError::Read`] if the file cannot be read, [`TreeError::TooLarge`] if it has more than
    /// 4 MiB, [`TreeError::Malformed`] if its text is not a description.
    pub fn read(path: &Path) -> Result<Self, TreeError> {
        let fault = |source| TreeError::Read { path: path.to_owned(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(fault)?;
        file.take(FILE_SIZE_MAX + 1).read_to_string(&mut text).map_err(fault)?;
        if text.len() as u64 > FILE_SIZE_MAX {
            return Err(TreeError::TooLarge { path: path.to_owned() });
        }
        Self::parse(&text, &path.display().to_string())
    }

    /// Parses the text of a description. Errors contain `file`.
    ///
    /// # Errors
    /// [`TreeError::Malformed`], with line and column, if the text is not a description.
    pub fn parse(text: &str, file: &str) -> Result<Self, TreeError> {
        toml::from_str(text).map_err(|error| {
            let before = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or(text);
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            let line = before.matches('\n').count() + 1;
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            TreeError::Malformed { file: file.to_owned(), line, column, message }
        })
    }

    /// Returns each zone with its apex. A description with `count` becomes `count` zones.
    ///
    /// # Errors
    /// [`TreeError::TooManyZones`], [`TreeError::TooManyNames`], or [`TreeError::Origin`] if an
    /// origin is not a domain name.
    pub(super) fn expand(&self) -> Result<Vec<(Name, &ZoneDescription)>, TreeError> {
        let total: u64 = self.zones.iter().map(|zone| u64::from(zone.count.unwrap_or(1))).sum();
        if total > u64::from(MAX_ZONES) {
            return Err(TreeError::TooManyZones { zones: total, maximum: MAX_ZONES });
        }
        let mut zones = Vec::new();
        for zone in &self.zones {
            if zone.names > MAX_NAMES {
                let (zone, names) = (zone.origin.clone(), zone.names);
                return Err(TreeError::TooManyNames { zone, names, maximum: MAX_NAMES });
            }
            for number in 0..zone.count.unwrap_or(1) {
                let origin = match zone.count {
                    Some(_) => zone.origin.replace('#', &number.to_string()),
                    None => zone.origin.clone(),
                };
                let name = origin.parse().map_err(|_| TreeError::Origin { origin })?;
                zones.push((name, zone));
            }
        }
        Ok(zones)
    }
}

const fn default_true() -> bool {
    true
}

const fn default_ttl() -> u32 {
    3600
}

const fn default_port() -> u16 {
    53
}

const fn default_first_address() -> Ipv4Addr {
    Ipv4Addr::new(127, 53, 0, 1)
}

const fn default_algorithm() -> Algorithm {
    Algorithm::ECDSAP256SHA256
}

const fn default_mechanism() -> Mechanism {
    Mechanism::Nsec
}

const fn default_vrf() -> VrfAlgorithm {
    VrfAlgorithm::P256_SHA256_TAI
}

/// Deserializes a value from a string with [`FromStr`].
fn from_string<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(de::Error::custom)
}

fn option_from_string<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    from_string(from).map(Some)
}

/// Deserializes a VRF from its name.
fn vrf_from_string<'de, D: Deserializer<'de>>(from: D) -> Result<VrfAlgorithm, D::Error> {
    let text = String::deserialize(from)?;
    VrfAlgorithm::from_name(&text).ok_or_else(|| {
        de::Error::custom(format!("unknown VRF '{text}': known are p256, ed25519-tai, ed25519, rsa"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
port = 5300

[[zone]]
origin = \".\"

[[zone]]
origin = \"z#.example.\"
count = 3
algorithm = \"ed25519\"
denial = \"nsec3\"
faults = [{ fault = \"expired-signature\", at = \"www\", type = \"A\" }]
";

    #[test]
    fn a_description_is_read_and_expanded() {
        let description = Description::parse(TEXT, "tree.toml").unwrap();
        assert_eq!((description.port, description.first_address), (5300, Ipv4Addr::new(127, 53, 0, 1)));
        let names: Vec<String> =
            description.expand().unwrap().iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names, [".", "z0.example.", "z1.example.", "z2.example."]);
        assert_eq!(description.zones[0], ZoneDescription::new("."));
        let fault =
            PlantedFault { fault: Fault::ExpiredSignature, at: Some("www".into()), rtype: Some(Rtype::A) };
        assert_eq!(description.zones[1].faults, [fault]);
        assert_eq!(description.zones[1].algorithm, Algorithm::ED25519);
    }

    #[test]
    fn a_fault_of_the_text_has_line_and_column() {
        let cases = [
            ("algorithm = \"ed25519\"", "algorithm = \"rot13\"", (9, 13)),
            ("expired-signature", "none", (11, 21)),
            ("denial = \"nsec3\"", "vrf = \"dsa\"", (10, 7)),
            ("count = 3", "cuont = 3", (8, 1)),
            ("port = 5300", "port = 70000", (1, 8)),
        ];
        for (old, new, place) in cases {
            let error = Description::parse(&TEXT.replace(old, new), "tree.toml").expect_err(new);
            let TreeError::Malformed { line, column, .. } = error else { panic!("{new}: {error}") };
            assert_eq!((line, column), place, "{new}");
        }
    }

    #[test]
    fn sizes_are_bounded() {
        let zone = |change: fn(&mut ZoneDescription)| {
            let mut zone = ZoneDescription::new("#.");
            change(&mut zone);
            Description { zones: vec![zone], ..Description::default() }
        };
        let zones = zone(|zone| zone.count = Some(u32::MAX));
        assert!(matches!(zones.expand(), Err(TreeError::TooManyZones { .. })));
        let names = zone(|zone| zone.names = u32::MAX);
        assert!(matches!(names.expand(), Err(TreeError::TooManyNames { .. })));
        let origin = zone(|zone| zone.origin = "a..b.".to_owned());
        assert!(matches!(origin.expand(), Err(TreeError::Origin { .. })));
    }
}
