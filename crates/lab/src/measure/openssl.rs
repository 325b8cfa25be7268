//! Measures the same operations with `openssl speed`, if it is installed.
//!
//! `openssl speed` signs a short digest with one key, then verifies the signature. With `-elapsed`,
//! it measures wall time, as this program does for its own operations. The output has one line for
//! each operation, such as `+R1:6286:1024:1.00`: a prefix (`LINES`), the number of operations
//! first, the seconds last. EdDSA has two fields between them, the other schemes have one.

use super::child::KillOnDrop;
use super::probe::CountResult;
use super::subject::{Operation, Subject};
use crate::measure::level::{Environment, command_with_all_cpu_features};
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Name of OpenSSL in rows and charts.
pub(crate) const NAME: &str = "openssl";

/// A signature scheme that `openssl speed` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scheme {
    /// Name in `openssl speed`.
    pub(crate) openssl_name: &'static str,
    /// Name in reports of this program.
    pub(crate) label: &'static str,
}

const SCHEMES: &[Scheme] = &[
    Scheme { openssl_name: "rsa1024", label: "RSA-1024" },
    Scheme { openssl_name: "rsa2048", label: "RSA-2048" },
    Scheme { openssl_name: "rsa3072", label: "RSA-3072" },
    Scheme { openssl_name: "rsa4096", label: "RSA-4096" },
    Scheme { openssl_name: "ecdsap256", label: "ECDSA P-256" },
    Scheme { openssl_name: "ecdsap384", label: "ECDSA P-384" },
    Scheme { openssl_name: "ed25519", label: "Ed25519" },
    Scheme { openssl_name: "ed448", label: "Ed448" },
];

/// Prefixes of the lines with counts, for RSA, ECDSA and EdDSA; signing and verification of each.
const LINES: &[(&str, Operation)] = &[
    ("+R1:", Operation::Sign),
    ("+R2:", Operation::Verify),
    ("+R5:", Operation::Sign),
    ("+R6:", Operation::Verify),
    ("+R8:", Operation::Sign),
    ("+R9:", Operation::Verify),
];

/// Time limit in addition to the requested seconds: for the start of the program and the generation
/// of a key.
const STARTUP_ALLOWANCE: Duration = Duration::from_secs(30);

/// Returns the schemes that `openssl speed` and `subjects` have in common.
pub(crate) fn chosen(subjects: &[Subject]) -> impl Iterator<Item = Scheme> + use<> {
    let schemes: Vec<String> = subjects.iter().map(Subject::scheme).collect();
    SCHEMES.iter().copied().filter(move |known| schemes.iter().any(|scheme| scheme == known.label))
}

/// Reasons why the run omits `openssl`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpensslError {
    #[error("{0} is not installed")]
    Missing(String),
    #[error("{program} cannot be started: {source}")]
    Start { program: String, source: io::Error },
    #[error("{program} did not end within {seconds} s")]
    Late { program: String, seconds: u64 },
    #[error("{program}: its output cannot be read: {source}")]
    Output { program: String, source: io::Error },
    #[error("{program}: {status}: {message}")]
    Failed { program: String, status: ExitStatus, message: String },
    #[error("{NAME} speed {0}: the output has no valid counts")]
    Uncounted(String),
}

/// Number and time of one operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OperationTiming {
    pub(crate) operation: Operation,
    pub(crate) measured: CountResult,
}

/// Returns the first line of the output of `openssl version`.
pub(crate) fn version() -> Result<String, OpensslError> {
    let text = run(command_with_all_cpu_features(Path::new(NAME)).arg("version"), STARTUP_ALLOWANCE)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Measures both operations of a scheme for `seconds` each, with the variables of `environment`,
/// which mask CPU features above an instruction level. `name` is the name in `openssl speed`.
pub(crate) fn speed(
    name: &str,
    seconds: u32,
    environment: Environment,
) -> Result<Vec<OperationTiming>, OpensslError> {
    let mut command = command_with_all_cpu_features(Path::new(NAME));
    command.envs(environment.iter().copied());
    command.args(["speed", "-elapsed", "-mr", "-seconds"]).arg(seconds.to_string()).arg(name);
    // The two operations take `seconds` each; a third time is a margin for a slow machine.
    let limit = Duration::from_secs(u64::from(seconds)) * 3 + STARTUP_ALLOWANCE;
    let counts = parse(&run(&mut command, limit)?);
    if counts.is_empty() {
        return Err(OpensslError::Uncounted(name.to_owned()));
    }
    Ok(counts)
}

/// Returns the valid counts in the output of `openssl speed`.
fn parse(text: &str) -> Vec<OperationTiming> {
    let count = |line: &str| {
        let (rest, operation) =
            LINES.iter().find_map(|(start, operation)| Some((line.strip_prefix(start)?, *operation)))?;
        let operations: u64 = rest.split(':').next()?.trim().parse().ok()?;
        let seconds: f64 = rest.rsplit(':').next()?.trim().parse().ok()?;
        let sound = operations > 0 && seconds > 0.0 && seconds.is_finite();
        sound.then_some(OperationTiming {
            operation,
            measured: CountResult { operations, seconds, cpu_seconds: None },
        })
    };
    text.lines().filter_map(count).collect()
}

/// Runs a program until it ends and returns its standard output followed by its standard error. It
/// reads the output only after the end of the program, so the output must fit in the pipe buffers
/// (64 KiB on Linux); otherwise the program blocks until the time limit. A program that still runs
/// after `limit` is killed.
fn run(command: &mut Command, limit: Duration) -> Result<String, OpensslError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => OpensslError::Missing(program.clone()),
        _ => OpensslError::Start { program: program.clone(), source: error },
    })?;
    let mut child = KillOnDrop(child);
    let Some(status) = child.end_within(limit) else {
        return Err(OpensslError::Late { program, seconds: limit.as_secs() });
    };
    let mut text = String::new();
    let stdout = child.0.stdout.take().map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut text));
    let stderr = child.0.stderr.take().map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut text));
    match stdout.and(stderr) {
        Err(source) => Err(OpensslError::Output { program, source }),
        Ok(_) if status.success() => Ok(text),
        Ok(_) => {
            let message = text.lines().last().unwrap_or_default().trim().to_owned();
            Err(OpensslError::Failed { program, status, message })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read() {
        let text = "+DTP:1024:private:rsa:1\n+R1:6286:1024:1.00\n+DTP:1024:public:rsa:1\n+R2:110387:1024:1.00\n\
            +F2:1:1024:6286.000000:110387.000000\n+R8:2919:456:Ed448:1.01\n+R9:x:456:Ed448:1.00\n+R6:0:256:1.00\n";
        let count = |operation, operations, seconds| OperationTiming {
            operation,
            measured: CountResult { operations, seconds, cpu_seconds: None },
        };
        assert_eq!(
            parse(text),
            [
                count(Operation::Sign, 6286, 1.0),
                count(Operation::Verify, 110_387, 1.0),
                count(Operation::Sign, 2919, 1.01),
            ]
        );
        assert_eq!(parse("+R1:5:1:nan\n+R1:5:1:0\n+R1\n"), []);
    }

    #[test]
    fn schemes_are_those_of_the_subjects() {
        let names: Vec<&str> =
            chosen(&Subject::list(&[], 64, 32)).map(|scheme| scheme.openssl_name).collect();
        assert_eq!(names.len(), SCHEMES.len());
        let some = ["RSASHA256/1280", "MAYO2", "ED448"].map(|name| name.parse().expect("a subject"));
        assert_eq!(chosen(&some).collect::<Vec<_>>(), [Scheme { openssl_name: "ed448", label: "Ed448" }]);
    }

    #[test]
    fn programs_that_fail_hang_or_are_missing_are_told() {
        let fault = |program: &str, arguments: &[&str]| {
            run(Command::new(program).args(arguments), Duration::from_millis(200)).expect_err("a fault")
        };
        let error = fault("nonesuch-is-not-there", &[]);
        assert!(
            matches!(&error, OpensslError::Missing(program) if program == "nonesuch-is-not-there"),
            "{error}"
        );
        let error = fault("sh", &["-c", "echo no such thing >&2; exit 3"]);
        let OpensslError::Failed { program, status, message } = &error else { panic!("{error}") };
        assert_eq!((program.as_str(), status.code(), message.as_str()), ("sh", Some(3), "no such thing"));
        let error = fault("sh", &["-c", "exec sleep 100"]);
        assert!(matches!(&error, OpensslError::Late { program, seconds: 0 } if program == "sh"), "{error}");
    }
}
