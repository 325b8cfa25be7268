//! `openssl speed`, where it is installed: the same operations by another library.
//!
//! It times signing, then verification, of a short digest with one key; the time on the wall is asked for, as with our
//! own loop. Counts come as lines `+R1:operations:bits:seconds`, one for each operation.

use super::probe::Counted;
use super::subject::{Operation, Subject};
use crate::experiment::level::unmasked;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What rows and bars of it are called.
pub(super) const NAME: &str = "openssl";

/// Its names of schemes, and ours.
const SCHEMES: &[(&str, &str)] = &[
    ("rsa1024", "RSA-1024"),
    ("rsa2048", "RSA-2048"),
    ("rsa3072", "RSA-3072"),
    ("rsa4096", "RSA-4096"),
    ("ecdsap256", "ECDSA P-256"),
    ("ecdsap384", "ECDSA P-384"),
    ("ed25519", "Ed25519"),
    ("ed448", "Ed448"),
];

/// Numbers of the lines of counts: RSA, ECDSA, EdDSA; signing, verification.
const LINES: &[(&str, Operation)] = &[
    ("+R1:", Operation::Sign),
    ("+R2:", Operation::Verify),
    ("+R5:", Operation::Sign),
    ("+R6:", Operation::Verify),
    ("+R8:", Operation::Sign),
    ("+R9:", Operation::Verify),
];

/// Beside what was asked for: starting, and making a key.
const SPARE: Duration = Duration::from_secs(30);

/// Its name and ours of each scheme that `subjects` have too.
pub(super) fn chosen(subjects: &[Subject]) -> impl Iterator<Item = (&'static str, &'static str)> {
    let schemes: Vec<String> = subjects.iter().map(Subject::scheme).collect();
    SCHEMES.iter().copied().filter(move |(_, scheme)| schemes.iter().any(|known| known == scheme))
}

/// The first line of `openssl version`.
///
/// # Errors
/// Why there is none.
pub(super) fn version() -> Result<String, String> {
    let text = run(unmasked(Path::new(NAME)).arg("version"), SPARE)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Times both operations of a scheme, by its name there, for so many seconds each, with `environment` set.
///
/// # Errors
/// Why there are no counts.
pub(super) fn speed(
    name: &str,
    seconds: u32,
    environment: &[(String, String)],
) -> Result<Vec<(Operation, Counted)>, String> {
    let mut command = unmasked(Path::new(NAME));
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.args(["speed", "-elapsed", "-mr", "-seconds"]).arg(seconds.to_string()).arg(name);
    let limit = Duration::from_secs(u64::from(seconds)) * 3 + SPARE;
    let counts = parse(&run(&mut command, limit)?);
    if counts.is_empty() {
        return Err(format!("{NAME} speed {name} tells no counts that can be read"));
    }
    Ok(counts)
}

/// The counts among what it printed.
fn parse(text: &str) -> Vec<(Operation, Counted)> {
    let count = |line: &str| {
        let (rest, operation) =
            LINES.iter().find_map(|(start, operation)| Some((line.strip_prefix(start)?, *operation)))?;
        let operations: u64 = rest.split(':').next()?.trim().parse().ok()?;
        let seconds: f64 = rest.rsplit(':').next()?.trim().parse().ok()?;
        let sound = operations > 0 && seconds > 0.0 && seconds.is_finite();
        sound.then_some((operation, Counted { operations, seconds, cpu_seconds: None }))
    };
    text.lines().filter_map(count).collect()
}

/// Runs a program to its end and gives both of its outputs, which are short. One that takes too long is ended.
fn run(command: &mut Command, limit: Duration) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{program} is not installed"),
        _ => format!("{program} cannot be started: {error}"),
    })?;
    let end = Instant::now() + limit;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                // It may have ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{program} did not end within {} s", limit.as_secs()));
            }
        }
    };
    let mut text = String::new();
    let stdout = child.stdout.take().map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut text));
    let stderr = child.stderr.take().map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut text));
    match stdout.and(stderr) {
        Err(error) => Err(format!("{program}: its output cannot be read: {error}")),
        Ok(_) if status.success() => Ok(text),
        Ok(_) => Err(format!("{program}: {status}: {}", text.lines().last().unwrap_or_default().trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read() {
        let text = "+DTP:1024:private:rsa:1\n+R1:6286:1024:1.00\n+DTP:1024:public:rsa:1\n+R2:110387:1024:1.00\n\
            +F2:1:1024:6286.000000:110387.000000\n+R8:2919:456:Ed448:1.01\n+R9:x:456:Ed448:1.00\n+R6:0:256:1.00\n";
        let counted = |operations, seconds| Counted { operations, seconds, cpu_seconds: None };
        assert_eq!(
            parse(text),
            [
                (Operation::Sign, counted(6286, 1.0)),
                (Operation::Verify, counted(110_387, 1.0)),
                (Operation::Sign, counted(2919, 1.01)),
            ]
        );
        assert_eq!(parse("+R1:5:1:nan\n+R1:5:1:0\n+R1\n"), []);
    }

    #[test]
    fn schemes_are_those_of_the_subjects() {
        let names: Vec<&str> = chosen(&Subject::list(&[], 64, 32)).map(|(name, _)| name).collect();
        assert_eq!(names.len(), SCHEMES.len());
        let some = ["RSASHA256/1280", "MAYO2", "ED448"].map(|name| name.parse().expect("a subject"));
        assert_eq!(chosen(&some).collect::<Vec<_>>(), [("ed448", "Ed448")]);
    }

    #[test]
    fn programs_that_fail_hang_or_are_missing_are_told() {
        let fault = |program: &str, arguments: &[&str]| {
            run(Command::new(program).args(arguments), Duration::from_millis(200)).expect_err("a fault")
        };
        assert_eq!(fault("nonesuch-is-not-there", &[]), "nonesuch-is-not-there is not installed");
        assert!(fault("sh", &["-c", "echo no such thing >&2; exit 3"]).ends_with("no such thing"));
        assert_eq!(fault("sh", &["-c", "exec sleep 100"]), "sh did not end within 0 s");
    }
}
