//! The two validators: the checker in Python, and the command `nonesuch validate`.
//! Each reads a line of JSON for every response and writes one line.

use super::answers::Case;
use super::common::{self, is_installed, text};
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A validator's result for one response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    pub(crate) status: String,
    pub(crate) proved: Option<String>,
    pub(crate) reason: String,
    /// Number of verified signatures and proofs.
    pub(crate) signatures: u64,
    pub(crate) vrf: u64,
}

/// A validator and its command.
pub(crate) struct Judge {
    pub(crate) name: &'static str,
    program: PathBuf,
    arguments: Vec<PathBuf>,
}

/// Directory of the checker in Python.
pub(crate) fn checker() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/nsec5-checker")
}

/// The checker, if Python is installed.
pub(crate) fn python() -> Option<Judge> {
    is_installed("python3").then(|| Judge {
        name: "Python",
        program: "python3".into(),
        arguments: vec!["-B".into(), checker().join("check.py")],
    })
}

/// This project's validator: `nonesuch validate`.
pub(crate) fn ours() -> Judge {
    let program = common::nonesuch([""; 0]).get_program().into();
    Judge { name: "ours", program, arguments: vec!["validate".into(), "--json".into()] }
}

fn line(zone: &str, case: &Case) -> Value {
    let all = |rdatas: &[Vec<u8>]| rdatas.iter().map(|rdata| BASE64.encode(rdata)).collect::<Vec<String>>();
    json!({
        "zone": zone,
        "dnskey": all(&case.dnskeys),
        "nsec5key": all(&case.nsec5_keys),
        "now": case.now,
        "question": { "name": case.name.to_string(), "type": case.rtype.0 },
        "response": BASE64.encode(&case.octets()),
    })
}

/// Writes the responses for the validators.
pub(crate) fn write<'c>(file: &Path, zone: &str, cases: impl Iterator<Item = &'c Case>) {
    let lines: String = cases.map(|case| line(zone, case).to_string() + "\n").collect();
    fs::write(file, lines).expect("written");
}

impl Judge {
    /// The validator's result for each response in the file.
    pub(crate) fn judge(&self, file: &Path) -> Vec<Said> {
        self.answer(file).iter().map(Said::read).collect()
    }

    /// The validator's output lines for the lines of the file.
    pub(crate) fn answer(&self, file: &Path) -> Vec<Value> {
        let output = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(File::open(file).expect("the answers"))
            .output()
            .expect("the judge runs");
        let said = String::from_utf8_lossy(&output.stdout);
        // The command reports bogus responses and invalid lines with 1 and 2.
        assert!(
            matches!(output.status.code(), Some(0..=2)),
            "{}: {}",
            text(&self.program),
            String::from_utf8_lossy(&output.stderr)
        );
        said.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

impl Said {
    fn read(value: &Value) -> Self {
        let member = |name: &str| value[name].as_str().map(str::to_owned);
        Self {
            status: member("status").unwrap_or_else(|| panic!("no status in {value}")),
            proved: member("proved"),
            reason: member("reason").unwrap_or_default(),
            signatures: value["signatures"].as_u64().unwrap_or(0),
            vrf: value["vrf"].as_u64().unwrap_or(0),
        }
    }
}
