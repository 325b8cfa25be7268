//! The zone checkers of BIND, ldns, NSD and Knot DNS.

use super::{Ended, is_installed, run};
use std::path::Path;
use std::process::Command;

/// A program that checks a signed zone.
pub struct Judge {
    pub program: &'static str,
    /// Arguments before the file; `ORIGIN` is replaced with the apex.
    pub arguments: &'static [&'static str],
    /// Class `unknown-type`: registered types that this program does not know by mnemonic.
    pub unknown: &'static [&'static str],
}

/// The checkers. The arguments disable checks of glue and of servers outside the zone.
pub const JUDGES: [Judge; 5] = [
    Judge { program: "dnssec-verify", arguments: &["-q", "-o", "ORIGIN"], unknown: &[] },
    Judge { program: "named-checkzone", arguments: &["-q", "-i", "none", "ORIGIN"], unknown: &[] },
    Judge { program: "ldns-verify-zone", arguments: &["-V1"], unknown: &["AVC"] },
    Judge { program: "nsd-checkzone", arguments: &["ORIGIN"], unknown: &["GPOS"] },
    Judge {
        program: "kzonecheck",
        arguments: &["-o", "ORIGIN"],
        unknown: &["MB", "MG", "MR", "PX", "X25", "ISDN", "GPOS", "AVC"],
    },
];

/// The result of a checker for a zone.
#[track_caller]
pub fn judged(judge: &Judge, origin: &str, file: &Path) -> Ended {
    let arguments =
        judge.arguments.iter().map(|argument| if *argument == "ORIGIN" { origin } else { argument });
    run(Command::new(judge.program).args(arguments).arg(file))
}

/// The installed checkers.
pub fn installed_judges() -> Vec<&'static Judge> {
    JUDGES.iter().filter(|judge| is_installed(judge.program)).collect()
}
