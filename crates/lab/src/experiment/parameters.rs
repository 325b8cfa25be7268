//! Parameter types that several experiments use: numbers within bounds, CPUs, denial mechanisms.

use super::error::RunError;
use crate::machine;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::UnknownMechanism;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reasons why the value of a parameter is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    #[error("{value} is not {bounds}")]
    Bounds { value: f64, bounds: &'static str },
    #[error(transparent)]
    Mechanism(#[from] UnknownMechanism),
    #[error(
        "{0} cannot be measured here, because it needs a key on the server and the servers get only zone files: omit it"
    )]
    Online(Mechanism),
    #[error(
        "'{0}' is not a kind of query: expected existing, denied, denied:PERCENT, label, referral, no-data, wildcard or a type such as DNSKEY"
    )]
    QueryKind(String),
    #[error(
        "'{0}' is not a kind of traffic: expected existing, wildcard, hits:PERCENT, denied, denied-random, mixed:PERCENT, no-data or below"
    )]
    Traffic(String),
    #[error(
        "'{0}' is not a path: expected direct, or words such as clients, rtt=MS, loss=PERCENT, mtu=OCTETS, no-fragments, no-udp"
    )]
    Path(String),
    #[error("'{found}' is not an attack: known are {known}")]
    Attack { found: String, known: String },
    #[error("'{0}' is not a CPU: expected a number, \"last\" or \"none\"")]
    Cpu(String),
}

/// Defines a number within bounds: name and number type, type in files (also as text, for serde),
/// bounds as text for the error, and bounds as a condition.
macro_rules! bounded {
    ($(#[$meta:meta])* $name:ident: $number:ty, $form:ty as $form_name:literal, $bounds:literal, $fits:expr) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(try_from = $form_name, into = $form_name)]
        pub struct $name($number);

        impl $name {
            /// Creates a value without a check. The caller must ensure that `number` is within the
            /// bounds.
            pub(super) const fn of(number: $number) -> Self {
                Self(number)
            }

            /// Returns the number, which is within the bounds.
            pub const fn value(self) -> $number {
                self.0
            }
        }

        impl TryFrom<$form> for $name {
            type Error = ParameterError;

            fn try_from(value: $form) -> Result<Self, ParameterError> {
                let fits: fn(&$form) -> bool = $fits;
                let bounds = $bounds;
                let out = ParameterError::Bounds { value: value as f64, bounds };
                fits(&value).then_some(Self(value as $number)).ok_or(out)
            }
        }

        impl From<$name> for $form {
            fn from(number: $name) -> Self {
                number.0.into()
            }
        }
    };
}

bounded!(
    /// An integer from 1 to 1,000,000.
    Count: u32, i64 as "i64", "from 1 to 1000000", |value| (1..=1_000_000).contains(value)
);
bounded!(
    /// Size of a response in octets, from the size of a header to the maximum of the server.
    Octets: u16, i64 as "i64", "from 12 to 4096 octets", |value| (12..=4096).contains(value)
);
bounded!(
    /// Number of workers of a server.
    Workers: u16, i64 as "i64", "from 1 to 256 workers", |value| (1..=256).contains(value)
);
bounded!(
    /// Seconds, above 0 and at most 3600.
    Seconds: f64, f64 as "f64", "above 0 and at most 3600", |value| *value > 0.0 && *value <= 3600.0
);
bounded!(
    /// Minutes, at most 525,600 (a year); 0: no limit.
    Minutes: f64, f64 as "f64", "from 0 (no limit) to 525600", |value| (0.0..=525_600.0).contains(value)
);
bounded!(
    /// A share from 0 to 0.5.
    Share: f64, f64 as "f64", "from 0 to 0.5", |value| (0.0..=0.5).contains(value)
);

impl Octets {
    /// Returns the valid response size that is nearest to `octets`.
    pub(super) fn nearest(octets: f64) -> Self {
        Self(octets.round().clamp(12.0, 4096.0) as u16)
    }
}

/// A denial mechanism, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PresignedMechanism(pub Mechanism);

impl TryFrom<String> for PresignedMechanism {
    type Error = ParameterError;

    fn try_from(text: String) -> Result<Self, ParameterError> {
        let mechanism: Mechanism = text.parse()?;
        let is_measured = mechanism.entry().is_served_without_keys();
        is_measured.then_some(Self(mechanism)).ok_or(ParameterError::Online(mechanism))
    }
}

impl From<PresignedMechanism> for String {
    fn from(denial: PresignedMechanism) -> Self {
        denial.0.to_string()
    }
}

/// Kind of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueriedNames {
    /// Queries for names that exist.
    Existing,
    /// Queries for names that do not exist.
    Denied,
}

impl fmt::Display for QueriedNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if *self == Self::Existing { "existing" } else { "denied" })
    }
}

/// CPU to which the measurement is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "CpuForm", into = "CpuForm")]
pub enum Cpu {
    /// The last CPU that this process may use, because most interrupts occur on the first CPU.
    Last,
    /// Not bound.
    None,
    /// The CPU with this number.
    Number(u32),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected the number of a CPU, \"last\" or \"none\"")]
enum CpuForm {
    Number(u32),
    Word(String),
}

impl TryFrom<CpuForm> for Cpu {
    type Error = ParameterError;

    fn try_from(form: CpuForm) -> Result<Self, ParameterError> {
        match form {
            CpuForm::Number(number) => Ok(Self::Number(number)),
            CpuForm::Word(word) if word == "last" => Ok(Self::Last),
            CpuForm::Word(word) if word == "none" => Ok(Self::None),
            CpuForm::Word(word) => Err(ParameterError::Cpu(word)),
        }
    }
}

impl From<Cpu> for CpuForm {
    fn from(cpu: Cpu) -> Self {
        match cpu {
            Cpu::Last => Self::Word("last".to_owned()),
            Cpu::None => Self::Word("none".to_owned()),
            Cpu::Number(number) => Self::Number(number),
        }
    }
}

impl Cpu {
    /// Runs `work` in a separate thread that is bound to the CPU, so that the affinity of the
    /// calling thread does not change. Programs that `work` starts are bound to the same CPU.
    /// `work` receives the number of the CPU, or `None` if the thread is not bound.
    pub(super) fn run_bound<T: Send>(
        self,
        work: impl FnOnce(Option<u64>) -> Result<T, RunError> + Send,
    ) -> Result<T, RunError> {
        let measured = std::thread::scope(|scope| scope.spawn(|| work(self.pin()?)).join());
        measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Binds the calling thread to the CPU. Returns the number of the CPU, or `None` if the thread
    /// is not bound.
    fn pin(self) -> Result<Option<u64>, RunError> {
        let number = match self {
            Self::None => return Ok(None),
            Self::Number(number) => number as usize,
            Self::Last => match machine::allowed_cpus().last() {
                Some(last) => *last,
                None => return Ok(None),
            },
        };
        nonesuch_net::pin_current_thread(number).map_err(|source| RunError::Pin { cpu: number, source })?;
        Ok(Some(number as u64))
    }
}

/// Returns the values without duplicates, in their order.
pub(crate) fn deduplicate<T: PartialEq + Clone>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_in_all_forms() {
        let read = |text: &str| serde_json::from_str::<Cpu>(text).map_err(|error| error.to_string());
        assert_eq!(read("3"), Ok(Cpu::Number(3)));
        assert_eq!(read("\"last\""), Ok(Cpu::Last));
        assert_eq!(read("\"none\""), Ok(Cpu::None));
        for wrong in ["-1", "\"first\"", "[]", "1.5"] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.contains("\"last\"") && error.contains("\"none\""), "{wrong}: {error}");
        }
        assert_eq!(
            Cpu::try_from(CpuForm::Word("first".to_owned())),
            Err(ParameterError::Cpu("first".to_owned()))
        );
        for cpu in [Cpu::Last, Cpu::None, Cpu::Number(7)] {
            assert_eq!(read(&serde_json::json!(cpu).to_string()), Ok(cpu));
        }
    }

    #[test]
    fn unknown_mechanisms_are_rejected() {
        assert_eq!(
            PresignedMechanism::try_from("nsec9".to_owned()),
            Err(ParameterError::Mechanism(UnknownMechanism))
        );
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let count = Count::try_from(0_i64);
        assert!(matches!(count, Err(ParameterError::Bounds { value, .. }) if value == 0.0), "{count:?}");
        let seconds = Seconds::try_from(-1.0_f64);
        assert!(matches!(seconds, Err(ParameterError::Bounds { value, .. }) if value == -1.0), "{seconds:?}");
        for wrong in [0, -1, i64::MAX, 1_000_001] {
            assert!(Count::try_from(wrong).is_err() && Workers::try_from(wrong).is_err());
            assert!(Octets::try_from(wrong).is_err());
        }
        assert!(Workers::try_from(257).is_err() && Octets::try_from(11).is_err());
        for wrong in [-0.1, f64::NAN, f64::INFINITY, 1e9] {
            assert!(Seconds::try_from(wrong).is_err() && Minutes::try_from(wrong).is_err());
            assert!(Share::try_from(wrong).is_err());
        }
        assert!(Seconds::try_from(0.0).is_err() && Seconds::try_from(3600.1).is_err());
        assert!(Minutes::try_from(0.0).is_ok() && Share::try_from(0.6).is_err());
        assert_eq!((Count::try_from(1), Seconds::try_from(3600.0)), (Ok(Count(1)), Ok(Seconds(3600.0))));
        assert_eq!(
            [0.4, 289.5, 1e9].map(Octets::nearest),
            [Octets(12), Octets(290), Octets(nonesuch_net::udp::RESPONSE_CAPACITY as u16)]
        );
    }
}
