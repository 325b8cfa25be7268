//! The table of programs that sign or verify a zone, with their commands.

use super::{ORIGIN, RunError, write_error};
use crate::measure::AlgorithmChoice;
use crate::measure::level::command_with_all_cpu_features;
use crate::peers::{find_program, version_of};
use nonesuch_dnssec::Mechanism;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Task {
    Sign,
    Verify,
}

/// A zone to sign or verify, and the keys.
pub(super) struct Work<'a> {
    /// Path of the program `nonesuch`.
    pub(super) program: &'a Path,
    /// The unsigned zone.
    pub(super) zone: &'a Path,
    /// Directory of the keys and of all files that the programs write.
    pub(super) directory: PathBuf,
    /// Names of the key files without suffix, that of the KSK first.
    pub(super) key_names: Vec<String>,
    pub(super) choice: AlgorithmChoice,
    pub(super) denial: Mechanism,
}

/// A program that signs or verifies a zone.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) task: Task,
    /// The Debian package; empty for nonesuch.
    package: &'static str,
    /// Option that prints the version.
    version_option: &'static str,
    /// Writes the files that the program needs, and sets its arguments.
    prepare: fn(&Work<'_>, &mut Command) -> Result<(), RunError>,
}

/// The programs. `nonesuch zone sign` precedes the verifiers, which read the zone that it signed.
pub(super) const PROGRAMS: [Program; 8] = [
    Program {
        name: "nonesuch zone sign",
        task: Task::Sign,
        package: "",
        version_option: "--version",
        prepare: sign,
    },
    Program {
        name: "kzonesign",
        task: Task::Sign,
        package: "knot-dnssecutils",
        version_option: "-V",
        prepare: sign_knot,
    },
    Program {
        name: "ldns-signzone",
        task: Task::Sign,
        package: "ldnsutils",
        version_option: "-v",
        prepare: sign_ldns,
    },
    Program {
        name: "dnssec-signzone",
        task: Task::Sign,
        package: "bind9-utils",
        version_option: "-V",
        prepare: sign_bind,
    },
    Program {
        name: "nonesuch zone verify",
        task: Task::Verify,
        package: "",
        version_option: "--version",
        prepare: verify,
    },
    Program {
        name: "dnssec-verify",
        task: Task::Verify,
        package: "bind9-utils",
        version_option: "-V",
        prepare: verify_bind,
    },
    Program {
        name: "ldns-verify-zone",
        task: Task::Verify,
        package: "ldnsutils",
        version_option: "-v",
        prepare: verify_ldns,
    },
    Program {
        name: "kzonecheck",
        task: Task::Verify,
        package: "knot-dnsutils",
        version_option: "-V",
        prepare: verify_knot,
    },
];

/// A program is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: not installed; package: {package}")]
pub(super) struct NotInstalled {
    name: &'static str,
    package: &'static str,
}

impl Program {
    /// Whether this is a command of nonesuch.
    fn is_own(&self) -> bool {
        self.package.is_empty()
    }

    /// Checks that the program is installed.
    pub(super) fn find(&self) -> Result<(), NotInstalled> {
        let Self { name, package, .. } = *self;
        if self.is_own() || find_program(name).is_some() {
            Ok(())
        } else {
            Err(NotInstalled { name, package })
        }
    }

    /// Returns the version of a program of another project, if it prints one.
    pub(super) fn version(&self) -> Option<String> {
        if self.is_own() { None } else { version_of(self.name, self.version_option) }
    }

    /// Returns the command for `work`.
    pub(super) fn command(&self, work: &Work<'_>) -> Result<Command, RunError> {
        let mut command = match find_program(self.name) {
            Some(path) if !self.is_own() => Command::new(path),
            _ => command_with_all_cpu_features(work.program),
        };
        command.current_dir(&work.directory);
        (self.prepare)(work, &mut command)?;
        Ok(command)
    }
}

impl Work<'_> {
    /// Returns the path of the zone that nonesuch signed.
    fn signed(&self) -> PathBuf {
        self.directory.join("nonesuch.signed")
    }

    fn has_nsec3(&self) -> bool {
        self.denial != Mechanism::Nsec
    }
}

fn sign(work: &Work<'_>, command: &mut Command) -> Result<(), RunError> {
    command.args(["zone", "sign", "-o", ORIGIN, "--denial", &work.denial.to_string(), "--keys"]);
    command.arg(&work.directory).arg("-f").arg(work.signed()).arg(work.zone);
    Ok(())
}

fn sign_ldns(work: &Work<'_>, command: &mut Command) -> Result<(), RunError> {
    command.args(["-o", ORIGIN, "-f", "ldns.signed"]);
    if work.has_nsec3() {
        command.args(["-n", "-t", "0"]);
    }
    if work.denial.is_opt_out() {
        command.arg("-p");
    }
    command.arg(work.zone).args(&work.key_names);
    Ok(())
}

fn sign_bind(work: &Work<'_>, command: &mut Command) -> Result<(), RunError> {
    // -P: without the verification, which the other signers leave to separate programs.
    command.args(["-q", "-P", "-o", ORIGIN, "-f", "bind.signed", "-S", "-K"]).arg(&work.directory);
    if work.has_nsec3() {
        command.args(["-3", "-", "-H", "0"]);
    }
    if work.denial.is_opt_out() {
        command.arg("-A");
    }
    command.arg(work.zone);
    Ok(())
}

/// Knot DNS signs with keys that it generates when it runs for the first time.
fn sign_knot(work: &Work<'_>, command: &mut Command) -> Result<(), RunError> {
    let directory = work.directory.join("knot");
    let (config, out) = (directory.join("knot.conf"), directory.join("out"));
    fs::create_dir_all(&out).map_err(|source| write_error(&out, source))?;
    fs::write(&config, knot_configuration(work, &directory))
        .map_err(|source| write_error(&config, source))?;
    command.arg("-c").arg(&config).arg("-o").arg(&out).arg(ORIGIN);
    Ok(())
}

pub(super) fn knot_configuration(work: &Work<'_>, directory: &Path) -> String {
    let (directory, zone, algorithm) = (directory.display(), work.zone.display(), work.choice.algorithm);
    let on_off = |is_on: bool| if is_on { "on" } else { "off" };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut text = format!(
        "server:\n  rundir: \"{directory}\"\n  background-workers: {threads}\ndatabase:\n  storage: \"{directory}\"\n\
         policy:\n  - id: p\n    algorithm: {algorithm}\n    signing-threads: {threads}\n    nsec3: {}\n    \
         nsec3-opt-out: {}\n    nsec3-iterations: 0\n    nsec3-salt-length: 0\n",
        on_off(work.has_nsec3()),
        on_off(work.denial.is_opt_out())
    );
    if let Some(bits) = work.choice.bits {
        let _ = write!(text, "    ksk-size: {bits}\n    zsk-size: {bits}\n");
    }
    let _ = write!(
        text,
        "template:\n  - id: default\n    dnssec-policy: p\n    dnssec-signing: on\n    journal-content: none\n    \
         zonefile-load: whole\nzone:\n  - domain: {ORIGIN}\n    file: \"{zone}\"\n"
    );
    text
}

fn verify(work: &Work<'_>, command: &mut Command) -> Result<(), RunError> {
    command.args(["zone", "verify", "-o", ORIGIN]).arg(work.signed());
    Ok(())
}

fn verify_bind(work: &Work<'_>, command: &mut Command) -> Result<(), RunError> {
    command.args(["-q", "-o", ORIGIN]).arg(work.signed());
    Ok(())
}

fn verify_ldns(work: &Work<'_>, command: &mut Command) -> Result<(), RunError> {
    let ksk = work.key_names.first().map(|name| work.directory.join(format!("{name}.key")));
    command.args(["-V1", "-k"]).args(ksk).arg(work.signed());
    Ok(())
}

fn verify_knot(work: &Work<'_>, command: &mut Command) -> Result<(), RunError> {
    command.args(["-d", "on", "-o", ORIGIN]).arg(work.signed());
    Ok(())
}
