//! Functions that the tests of incremental signing share: a zone, another version of it and the
//! changes between them, signed at times that are days apart.

use super::{KEYS_ORIGIN, KEYS_ZONE, folder, nonesuch, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The time of day 0: 2025-06-15.
pub const NOW: u32 = 1_750_000_000;
pub const DAY: u32 = 86_400;

/// A directory with [`KEYS_ZONE`] as `zone`; as `zone.new` with another address, without a secure
/// delegation and with a new name; and these changes as `changes`.
pub fn prepared() -> tempfile::TempDir {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("zone"), KEYS_ZONE).expect("written");
    let new = KEYS_ZONE.replace("192.0.2.1", "192.0.2.9") + "new A 192.0.2.7\n";
    let new = new.lines().filter(|line| !line.contains("ns.sub") && !line.starts_with("sub "));
    fs::write(dir.join("zone.new"), new.map(|line| format!("{line}\n")).collect::<String>())
        .expect("written");
    fs::write(
        dir.join("changes"),
        "; since the last run\n- ns 60 IN A 192.0.2.1\n+ ns 60 IN A 192.0.2.9\n- sub 60 IN NS ns.sub\n\
         - sub 60 IN DS 1 13 2 0123456789012345678901234567890123456789012345678901234567890123\n\
         - ns.sub 60 IN A 192.0.2.2\n+ new 60 IN A 192.0.2.7\n",
    )
    .expect("written");
    folder
}

/// Signs in `dir` with the keys in `keys`, `days` after [`NOW`].
pub fn command(dir: &Path, days: u32, mechanism: &str, more: &[&str]) -> Command {
    let now = (NOW + days * DAY).to_string();
    let mut command = nonesuch(["zone", "sign", "-o", KEYS_ORIGIN, "--keys", "keys"]);
    command.args(["--denial", mechanism, "--now", &now]).args(more).current_dir(dir);
    command
}

/// The JSON report of signing.
#[track_caller]
pub fn sign(dir: &Path, days: u32, mechanism: &str, more: &[&str]) -> Value {
    let ended =
        run(command(dir, days, mechanism, more).arg("--json")).expect_done(&format!("{mechanism} {more:?}"));
    serde_json::from_str(&ended.stdout).expect("JSON")
}

/// The lines of a zone file.
pub fn lines(dir: &Path, file: &str) -> Vec<String> {
    let zone = fs::read_to_string(dir.join(file)).expect("a zone file");
    zone.lines().map(str::to_owned).collect()
}

/// The lines without signatures and without digests over them.
pub fn without_signatures(dir: &Path, file: &str) -> Vec<String> {
    let made = |line: &String| line.contains("\tRRSIG\t") || line.contains("\tZONEMD\t");
    lines(dir, file).into_iter().filter(|line| !made(line)).collect()
}
