//! `nonesuch key list`: lists the keys in a directory and checks their files.

use super::error::Failure;
use crate::arguments::KeyListArguments;
use crate::files::{FileError, print_line};
use crate::keys::{self, ReasonOnly, algorithm_text, experimental_reason};
use crate::outcome::CommandOutcome;
use crate::zones;
use nonesuch_crypto::{Algorithm, KeyError};
use nonesuch_dnssec::keys::directory::{is_key_file_of, key_file_paths};
use nonesuch_dnssec::keys::{KeyEvent, KeyFileError, KeyPhase, KeyRecord, KeyTimes, Role, roles};
use nonesuch_lab::report::{Column, Table};
use nonesuch_proto::timestamp::Rfc3339;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The state of the private half of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrivateHalf {
    /// It matches the public half.
    Matches,
    /// The file does not exist.
    Missing,
    /// Its algorithm is not supported.
    Unsupported,
    /// It cannot be read, or belongs to another key.
    Damaged,
    /// The public half cannot be used, so the private half cannot be checked.
    Unchecked,
}

impl PrivateHalf {
    const fn name(self) -> &'static str {
        match self {
            Self::Matches => "fits",
            Self::Missing => "none",
            Self::Unsupported => "unsupported",
            Self::Damaged => "damaged",
            Self::Unchecked => "unchecked",
        }
    }
}

/// A key that can be listed.
struct ListedKey {
    base: String,
    record: KeyRecord,
    private: PrivateHalf,
    times: KeyTimes,
    /// State of the key at the time of the list, from its timing metadata.
    phase: KeyPhase,
    /// The next event that changes the state, and its time.
    next: Option<(KeyEvent, u32)>,
}

impl ListedKey {
    /// The name of the role. It is `CSK` for a key with the role CSK, the SEP flag and a matching
    /// private half, because a CSK signs everything and no key signs without its private half.
    /// Otherwise, it is `KSK` with the SEP flag and `ZSK` without it. `role` results from the other
    /// keys of the zone (see [`roles_of`]).
    const fn role_word(&self, role: Role) -> &'static str {
        match (role, self.private, self.record.is_sep()) {
            (Role::Csk, PrivateHalf::Matches, true) => "CSK",
            (.., true) => "KSK",
            (.., false) => "ZSK",
        }
    }

    /// The RRsets that the key signs if the zone is signed with the keys in the directory: `all`,
    /// `keys` (the key set), `data` (all others), or a dash for none.
    const fn signs(&self, role: Role) -> &'static str {
        match (self.private, role) {
            _ if !self.phase.signs() => "–",
            (PrivateHalf::Matches, Role::Csk) => "all",
            (PrivateHalf::Matches, Role::Ksk) => "keys",
            (PrivateHalf::Matches, Role::Zsk) => "data",
            _ => "–",
        }
    }
}

/// A fault of a key file.
struct FileFault {
    path: PathBuf,
    reason: String,
}

pub(super) fn run(arguments: &KeyListArguments) -> Result<CommandOutcome, Failure> {
    let mut base_names = keys::list_key_files(&arguments.dir)?;
    if let Some(zone) = &arguments.zone {
        base_names.retain(|base, _| is_key_file_of(base, zone));
    }
    let at = (!arguments.ignore_key_times).then(|| zones::time_or_now(arguments.now));
    let (mut listed, mut faults) = (Vec::new(), Vec::new());
    for (base, _) in base_names {
        listed.extend(examine(&arguments.dir, base, at, &mut faults));
    }
    // By zone, then in the order of the signer.
    listed.sort_by(|a, b| {
        let sort_key = |key: &ListedKey| (key.record.algorithm(), !key.record.is_sep(), key.record.tag());
        let by_zone = a.record.owner().view().cmp_canonical(b.record.owner().view());
        by_zone.then_with(|| sort_key(a).cmp(&sort_key(b)))
    });
    let roles = roles_of(&listed);
    if arguments.json {
        print_json(&listed, &roles, &faults)
    } else {
        print_text(arguments, &listed, &roles, &faults)
    }?;
    Ok(if faults.is_empty() { CommandOutcome::Done } else { CommandOutcome::Negative })
}

/// Reads both files of a key and adds their faults to `faults`. Returns `None` if there is no
/// public half. The state is computed for the time `at`; `None` ignores the times of the key.
fn examine(dir: &Path, base: String, at: Option<u32>, faults: &mut Vec<FileFault>) -> Option<ListedKey> {
    let [key_path, private_path] = key_file_paths(dir, &base);
    let mut fault = |path: &Path, reason: &dyn Display| {
        faults.push(FileFault { path: path.to_path_buf(), reason: reason.to_string() });
    };
    if !key_path.exists() {
        fault(&private_path, &"the .key file is missing: zone and flags are unknown");
        return None;
    }
    let mut record = keys::load_unchecked_record(&key_path)
        .inspect_err(|error| fault(&key_path, &ReasonOnly(error)))
        .ok()?;
    let mut has_no_fault = true;
    let private = match record.check_public() {
        // An old key with an algorithm that is not supported is not a fault of the directory.
        Err(KeyFileError::Public(KeyError::UnknownAlgorithm(_))) => PrivateHalf::Unsupported,
        Err(error) => {
            fault(&key_path, &error);
            has_no_fault = false;
            if private_path.exists() { PrivateHalf::Unchecked } else { PrivateHalf::Missing }
        }
        Ok(()) if !private_path.exists() => PrivateHalf::Missing,
        Ok(()) => match keys::load_key_pair(record.clone(), &private_path) {
            Ok(_) => PrivateHalf::Matches,
            Err(failure) => {
                fault(&private_path, &ReasonOnly(&failure));
                has_no_fault = false;
                PrivateHalf::Damaged
            }
        },
    };
    if let Err(error) = record.check_base_name(&base) {
        // Only one fault for each key: if the key is damaged, its name always differs.
        if has_no_fault {
            fault(&key_path, &error);
        }
        return None;
    }
    let read = at.filter(|_| {
        matches!(private, PrivateHalf::Matches | PrivateHalf::Unsupported) && private_path.exists()
    });
    let times = match read.map(|_| keys::load_key_times(&private_path)).transpose() {
        Ok(times) => times.flatten().unwrap_or_default(),
        Err(failure) => {
            fault(&private_path, &ReasonOnly(&failure));
            KeyTimes::default()
        }
    };
    let phase = times.phase(at.unwrap_or_default());
    let next = at.and_then(|now| times.next_event(now));
    if phase == KeyPhase::Revoked {
        record.revoke();
    }
    Some(ListedKey { base, record, private, times, phase, next })
}

/// The role of each key among the keys of its zone.
fn roles_of(listed: &[ListedKey]) -> Vec<Role> {
    let of_zone = |zone: &[ListedKey]| {
        let keys: Vec<_> = zone.iter().map(|key| (key.record.algorithm(), key.record.flags())).collect();
        let signs = |key: &ListedKey| key.phase.signs();
        let signing: Vec<_> =
            zone.iter().zip(&keys).filter(|(key, _)| signs(key)).map(|(_, kind)| *kind).collect();
        // For a key that does not sign, the role that it would have if it signed.
        let role =
            |kind: &(Algorithm, u16)| roles(&[&signing[..], &[*kind]].concat()).pop().unwrap_or(Role::Csk);
        keys.iter().map(role).collect::<Vec<_>>()
    };
    listed.chunk_by(|a, b| a.record.owner() == b.record.owner()).flat_map(of_zone).collect()
}

fn print_text(
    arguments: &KeyListArguments,
    listed: &[ListedKey],
    roles: &[Role],
    faults: &[FileFault],
) -> Result<(), FileError> {
    if listed.is_empty() && faults.is_empty() {
        return print_line(&format!("{}: no key files", arguments.dir.display()));
    }
    if !listed.is_empty() {
        print_line(table(listed, roles).to_text().trim_end())?;
    }
    faults
        .iter()
        .try_for_each(|fault| print_line(&format!("fault: {}: {}", fault.path.display(), fault.reason)))
}

fn table(listed: &[ListedKey], roles: &[Role]) -> Table {
    let text = Column::text;
    let figures = |title| Column::figures("", title);
    let columns = vec![
        text("zone"),
        text("role"),
        text("state"),
        text("next event"),
        text("signs"),
        text("algorithm"),
        figures("bits"),
        figures("tag"),
        text("private"),
        text("files"),
    ];
    let mut legend: Vec<String> = Vec::new();
    for algorithm in listed.iter().map(|key| key.record.algorithm()) {
        let reason =
            experimental_reason(algorithm).map(|reason| format!("* {algorithm} is experimental: {reason}"));
        legend.extend(reason.filter(|line| !legend.contains(line)));
    }
    if listed.iter().zip(roles).any(|(key, role)| key.role_word(*role) == "CSK") {
        let why = "A CSK is a key-signing key that signs the whole zone, because its algorithm has no \
            zone-signing key.";
        legend.push(why.to_owned());
    }
    if listed.iter().any(|key| key.private == PrivateHalf::Missing) {
        let why = "A key without its private file cannot sign, and `nonesuch zone sign` rejects the \
            directory: restore the file, or move the .key file. To publish a key that does not sign, \
            add its DNSKEY record to the zone file.";
        legend.push(why.to_owned());
    }
    let rows = listed.iter().zip(roles).map(|(key, role)| {
        let record = &key.record;
        let mark = if experimental_reason(record.algorithm()).is_some() { "*" } else { "" };
        let revoked = if record.is_revoked() { ", revoked" } else { "" };
        vec![
            record.owner().to_string(),
            format!("{}{revoked}", key.role_word(*role)),
            key.phase.to_string(),
            key.next.map_or_else(|| "–".to_owned(), |(event, time)| event_words(event, time)),
            key.signs(*role).to_owned(),
            format!("{}{mark}", algorithm_text(record.algorithm())),
            record.bits().map_or_else(|| "–".to_owned(), |bits| bits.to_string()),
            record.tag().to_string(),
            key.private.name().to_owned(),
            key.base.clone(),
        ]
    });
    Table { columns, rows: rows.collect(), legend }
}

/// A future event: `Inactive 2026-12-01T00:00:00Z`.
fn event_words(event: KeyEvent, time: u32) -> String {
    format!("{} {}", event.name(), Rfc3339(time.into()))
}

/// All times of a key, in seconds since 1970.
fn times_json(times: &KeyTimes) -> serde_json::Map<String, serde_json::Value> {
    times.iter().map(|(event, time)| (event.name().to_owned(), time.into())).collect()
}

fn print_json(listed: &[ListedKey], roles: &[Role], faults: &[FileFault]) -> Result<(), FileError> {
    let keys = listed.iter().zip(roles).map(|(key, role)| {
        let record = &key.record;
        serde_json::json!({
            "zone": record.owner().to_string(), "role": key.role_word(*role), "signs": key.signs(*role), "flags": record.flags(),
            "revoked": record.is_revoked(), "algorithm": record.algorithm().to_string(),
            "algorithm_number": record.algorithm().0, "experimental": experimental_reason(record.algorithm()),
            "bits": record.bits(), "tag": record.tag(), "private": key.private.name(), "base_name": key.base,
            "state": key.phase.to_string(), "times": times_json(&key.times),
            "next_event": key.next.map(|(event, time)| serde_json::json!({ "event": event.name(), "at": time })),
        })
    });
    let faults = faults.iter().map(|fault| serde_json::json!({ "file": fault.path, "reason": fault.reason }));
    let report =
        serde_json::json!({ "keys": keys.collect::<Vec<_>>(), "faults": faults.collect::<Vec<_>>() });
    print_line(&report.to_string())
}
