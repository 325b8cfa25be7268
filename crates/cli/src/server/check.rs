//! `nonesuch serve --config FILE --check`: checks whether a server could start, reload and load its
//! zones with a configuration. It binds, serves and stores nothing.

use crate::access::FileUser;
use crate::arguments::CheckScope;
use crate::certificate;
use crate::config::{self, ConfigLocation, Configuration, FileRole, Problem, Sources};
use crate::files::{count_text, parent_directory, print_line, readable_key_warning};
use crate::keys::{find_signing_key, read_directory, world_readable_keys};
use crate::nsec5;
use crate::outcome::CommandOutcome;
use crate::root::check_root;
use crate::server::error::ServerError;
use crate::server::keys::QUIET_KEY_LOADER;
use crate::server::output::zone_line;
use crate::server::preflight::{self, Effect, PreflightFault};
use crate::server::privileges::{Account, drop_privileges};
use crate::server::settings::answer_settings;
use crate::zones;
use nix::unistd::Uid;
use nonesuch_authoritative::service::{
    MAX_FINDINGS, MAX_FINDINGS_PER_KIND, Service, SigningMode, StateDirectory, ZoneSettings, ZoneSource,
    ZoneStatus, serial_warning,
};
use nonesuch_authoritative::zones::Zones;
use nonesuch_dnssec::online::LoadProverError;
use nonesuch_proto::Name;
use nonesuch_zone::{Contents, semantics};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The results of a check.
#[derive(Default)]
struct Report {
    zones: usize,
    warnings: Vec<Value>,
    faults: Vec<ListedFault>,
    /// Locations of the recorded faults.
    locations: HashSet<ConfigLocation>,
}

/// A fault as text and as JSON.
struct ListedFault {
    text: String,
    value: Value,
    effect: Effect,
}

impl Report {
    /// Records a fault. Only the first fault of each location is recorded, because later faults
    /// there follow from the first.
    fn add_fault(&mut self, fault: PreflightFault) {
        let PreflightFault { problem, effect } = fault;
        if problem.location.line > 0 && !self.locations.insert(problem.location.clone()) {
            return;
        }
        let mut value = problem_value(&problem);
        insert_effect(&mut value, &effect);
        self.faults.push(ListedFault { text: format!("{problem}; {effect}"), value, effect });
    }

    /// Records problems that prevent a start.
    fn add_start_faults(&mut self, problems: impl IntoIterator<Item = Problem>) {
        for problem in problems {
            self.add_fault(PreflightFault { problem, effect: Effect::Start });
        }
    }

    /// Logs and records a warning.
    fn warn(&mut self, problem: &Problem) {
        tracing::warn!(name: "configuration-warning", "{problem}");
        self.warnings.push(problem_value(problem));
    }

    fn has(&self, wanted: &Effect) -> bool {
        self.faults.iter().any(|fault| fault.effect == *wanted)
    }

    /// Number of zones that would not be loaded.
    fn rejected_zones(&self) -> usize {
        let zones = self.faults.iter().filter_map(|fault| match &fault.effect {
            Effect::Zone(apex) => Some(apex),
            Effect::Start | Effect::Reload | Effect::Transfers | Effect::Storage | Effect::Findings(_) => {
                None
            }
        });
        zones.collect::<HashSet<_>>().len()
    }

    /// Number of zones with semantic check findings that count as faults.
    fn zones_with_findings(&self) -> usize {
        self.faults.iter().filter(|fault| matches!(fault.effect, Effect::Findings(_))).count()
    }

    /// The summary of the faults as text.
    fn verdict(&self) -> String {
        let (refused, with_findings) = (self.rejected_zones(), self.zones_with_findings());
        let effect_text = |effect: Effect| self.has(&effect).then(|| effect.to_string());
        let effects = [
            effect_text(Effect::Start),
            effect_text(Effect::Reload),
            effect_text(Effect::Transfers),
            effect_text(Effect::Storage),
            (refused > 0).then(|| format!("{} would not be loaded", count_text(refused, "zone"))),
            (with_findings > 0)
                .then(|| format!("semantic checks have findings in {}", count_text(with_findings, "zone"))),
        ];
        let effects: Vec<String> = effects.into_iter().flatten().collect();
        if effects.is_empty() { "valid".to_owned() } else { format!("invalid: {}", effects.join(", ")) }
    }

    /// Prints the report. The outcome is negative if there are faults that prevent neither a start
    /// nor a reload.
    ///
    /// # Errors
    /// A fault prevents a start or a reload, or the report cannot be printed.
    fn finish(self, path: &Path, is_json: bool) -> Result<CommandOutcome, ServerError> {
        if is_json {
            let faults: Vec<&Value> = self.faults.iter().map(|fault| &fault.value).collect();
            let summary = json!({
                "sound": faults.is_empty(), "zones": self.zones, "faults": faults, "warnings": self.warnings,
            });
            print_line(&summary.to_string())?;
        } else {
            for fault in &self.faults {
                print_line(&format!("fault: {}", fault.text))?;
            }
            print_line(&format!(
                "{}: {}: {}",
                path.display(),
                self.verdict(),
                count_text(self.zones, "zone")
            ))?;
        }
        if self.has(&Effect::Start) {
            Err(ServerError::NotStartable { path: path.to_path_buf() })
        } else if self.has(&Effect::Reload) {
            Err(ServerError::NotReloadable { path: path.to_path_buf() })
        } else {
            Ok(if self.faults.is_empty() { CommandOutcome::Done } else { CommandOutcome::Negative })
        }
    }
}

/// A problem as JSON.
fn problem_value(problem: &Problem) -> Value {
    let Problem { location: ConfigLocation { path, line, column, key, .. }, message } = problem;
    let mut value = json!({ "file": &**path, "message": message });
    if *line > 0 {
        value["line"] = json!(line);
        value["column"] = json!(column);
    }
    if !key.is_empty() {
        value["key"] = json!(key);
    }
    value
}

/// Adds the effect, and the zone that it concerns, to the JSON of a fault.
fn insert_effect(value: &mut Value, effect: &Effect) {
    value["effect"] = match effect {
        Effect::Start => json!("start"),
        Effect::Reload => json!("reload"),
        Effect::Transfers => json!("transfers"),
        Effect::Storage => json!("zones"),
        Effect::Zone(_) => json!("zone"),
        Effect::Findings(_) => json!("findings"),
    };
    if let Effect::Zone(apex) | Effect::Findings(apex) = effect {
        value["zone"] = json!(apex.to_string());
    }
}

/// Checks the configuration at `path`, the files that it names and, with [`CheckScope::Zones`], its
/// zones. With `is_strict`, findings of the semantic checks are faults. If this process is root, it
/// becomes the user of the server.
pub(crate) fn run(
    path: &Path,
    scope: CheckScope,
    is_strict: bool,
    is_json: bool,
) -> Result<CommandOutcome, ServerError> {
    let mut report = Report::default();
    let loaded = match config::load(path) {
        Ok(loaded) => loaded,
        Err(problems) if is_json => {
            report.add_start_faults(problems.0);
            return report.finish(path, true);
        }
        Err(problems) => return Err(problems.into()),
    };
    for warning in &loaded.warnings {
        report.warn(warning);
    }
    let (configuration, sources) = (loaded.configuration, loaded.sources);
    report.zones = configuration.zones.len();
    report.add_start_faults(preflight::check_start(&configuration, &sources));
    preflight::check_runtime_directories(&sources).iter().for_each(|problem| report.warn(problem));
    report.add_start_faults(
        preflight::load_identity(&configuration.server.tls, &sources)
            .err()
            .into_iter()
            .flat_map(|found| found.0),
    );
    let warning = certificate::problem(&configuration.server.tls, &sources);
    warning.iter().for_each(|problem| report.warn(problem));
    if let Err(error) = answer_settings(&configuration, None) {
        report.add_start_faults([sources.problem_of("", error.to_string())]);
    }
    if let Some(user) = become_user(&configuration, &sources, &mut report)? {
        for fault in preflight::check_file_access(&configuration, &sources, &user) {
            report.add_fault(fault);
        }
        warn_of_world_readable_keys(&sources, scope, &mut report);
        if !user.is_other() {
            check_keys(&sources, &mut report);
        }
        if scope == CheckScope::Zones && !report.has(&Effect::Start) {
            check_zones(&configuration, &mut report, is_strict, is_json)?;
        }
    }
    report.finish(path, is_json)
}

/// The user that the server runs as. If this process is root, it becomes that user. Returns `None`
/// if the user does not exist, which another check reports.
fn become_user(
    configuration: &Configuration,
    sources: &Sources,
    report: &mut Report,
) -> Result<Option<FileUser>, ServerError> {
    let server = &configuration.server;
    let user = server.user.as_deref();
    let Ok(found) = FileUser::find(user) else { return Ok(None) };
    if let (Some(name), true) = (user, found.is_other()) {
        if Uid::effective().is_root() {
            drop_privileges(Account::find(user)?.as_ref())?;
            return Ok(FileUser::find(user).ok());
        }
        let message = format!(
            "checked only the modes of files; run the check as root or {name} to test what \
                {name} can read"
        );
        report.warn(&sources.problem_of("user", message));
    }
    let addresses = server.listen.iter().chain(&server.tls.listen).copied();
    if check_root(user, addresses).is_err() {
        let message = "checked as root, which can read every file: if systemd starts the server as \
            another user, check as that user (`runuser -u USER -- nonesuch serve …`)";
        report.warn(&sources.problem_of("user", message));
    }
    Ok(Some(found))
}

/// Warns of private keys that every user may read. If zones are checked, this includes the keys in
/// the default directory of a zone file.
fn warn_of_world_readable_keys(sources: &Sources, scope: CheckScope, report: &mut Report) {
    let named = sources.files.iter().filter_map(|file| match &file.role {
        FileRole::SigningKeys(apex, _) | FileRole::VrfKeys(apex, _) => Some(apex),
        _ => None,
    });
    let named: HashSet<&Name> = named.collect();
    for file in &sources.files {
        let readable_keys = match &file.role {
            FileRole::SigningKeys(apex, _) => world_readable_keys(&file.path, apex),
            FileRole::VrfKeys(apex, _) => nsec5::world_readable_keys(&file.path, apex),
            FileRole::Zone(apex) if scope == CheckScope::Zones && !named.contains(apex) => {
                nsec5::world_readable_keys(&nsec5::default_directory(&file.path), apex)
            }
            _ => continue,
        };
        readable_keys.iter().for_each(|path| report.warn(&file.location.problem(readable_key_warning(path))));
    }
}

/// Checks the keys in the directories of the zones that have no fault so far. With NSEC5, checks
/// that the server can read no signing key.
fn check_keys(sources: &Sources, report: &mut Report) {
    for file in &sources.files {
        let (apex, problem) = match &file.role {
            FileRole::SigningKeys(apex, ignore_key_times) => {
                let at = (!ignore_key_times).then(|| zones::time_or_now(None));
                let keys = read_directory(&file.path, apex).and_then(|keys| keys.zone_keys(at));
                (apex, keys.err().map(|error| error.to_string()))
            }
            FileRole::VrfKeys(apex, zone) => {
                let directories =
                    zone.as_deref().map(parent_directory).into_iter().chain([file.path.as_path()]);
                let found =
                    directories.filter_map(|directory| find_signing_key(directory).ok().flatten()).next();
                let message = |path| LoadProverError::SigningKey { path, zone: apex.clone() }.to_string();
                (apex, found.map(message))
            }
            _ => continue,
        };
        let effect = Effect::Zone(apex.clone());
        if let Some(message) = problem.filter(|_| !report.has(&effect)) {
            report.add_fault(PreflightFault { problem: file.location.problem(message), effect });
        }
    }
}

/// Loads and verifies all zones that have files, except zones that already have a fault. Stores
/// nothing.
fn check_zones(
    configuration: &Configuration,
    report: &mut Report,
    is_strict: bool,
    is_json: bool,
) -> Result<(), ServerError> {
    let mut settings = configuration.service_settings();
    let state_dir = settings.state_dir.take();
    let is_faulty = |apex: &Name| report.has(&Effect::Zone(apex.clone()));
    settings.zones.retain(|zone| matches!(zone.source, ZoneSource::File(_)) && !is_faulty(&zone.apex));
    let files: Vec<(Name, PathBuf)> = settings.zones.iter().filter_map(zone_file).collect();
    // The stored version of a zone that is signed online differs from its file, so the two are not
    // compared.
    let not_signed_online =
        settings.zones.iter().filter(|zone| !matches!(zone.signing_mode, SigningMode::Online(_)));
    let compared: HashSet<Name> = not_signed_online.map(|zone| zone.apex.clone()).collect();
    let service = Service::open(settings, QUIET_KEY_LOADER, Arc::new(Zones::new()))?;
    service.begin().map_err(ServerError::Thread)?;
    let _ = service.wait_until_loaded();
    for (apex, file) in files {
        for zone in service.zone_status(Some(&apex)) {
            add_zone_result(&apex, &zone, report, is_json)?;
            if zone.error.is_none() {
                let stored = state_dir.as_deref().filter(|dir| {
                    compared.contains(&apex) && StateDirectory::version_path(dir, &apex).is_file()
                });
                // The service has read the zone, but does not keep the records of a compiled zone.
                let contents = (stored.is_some() || zone.findings.is_none())
                    .then(|| nonesuch_zone::load_regular(&file, Some(&apex)))
                    .transpose()?
                    .map(|loaded| loaded.contents);
                if let (Some(dir), Some(contents)) = (stored, &contents) {
                    compare_stored(dir, &apex, contents, report);
                }
                add_findings(&apex, contents.as_ref(), &zone, report, is_strict);
            }
        }
    }
    Ok(())
}

/// Warns if records differ from those of the stored version and the serial does not advance.
fn compare_stored(dir: &Path, apex: &Name, contents: &Contents, report: &mut Report) {
    if let Some(warning) = serial_warning(dir, apex, contents) {
        let name = apex.to_string();
        tracing::warn!(name: "zone-warning", zone = name, "zone {name}: {warning}");
        report.warnings.push(json!({ "message": warning, "zone": name }));
    }
}

/// The apex and the file of a zone from a file.
fn zone_file(zone: &ZoneSettings) -> Option<(Name, PathBuf)> {
    match &zone.source {
        ZoneSource::File(path) => Some((zone.apex.clone(), path.clone())),
        _ => None,
    }
}

/// Records the warnings and the error of a loaded zone. Prints the state of a zone without an
/// error, unless the output is JSON.
fn add_zone_result(
    apex: &Name,
    zone: &ZoneStatus,
    report: &mut Report,
    is_json: bool,
) -> Result<(), ServerError> {
    let name = &zone.zone;
    report.warnings.extend(zone.warnings.iter().map(|warning| json!({ "message": warning, "zone": name })));
    match &zone.error {
        None if is_json => Ok(()),
        None => Ok(print_line(&zone_line(zone))?),
        Some(error) => {
            let effect = Effect::Zone(apex.clone());
            let mut value = json!({ "message": error });
            insert_effect(&mut value, &effect);
            report.faults.push(ListedFault { text: format!("zone {}: {error}", zone.zone), value, effect });
            Ok(())
        }
    }
}

/// Reports the findings of the semantic checks. At a start, a compiled zone is served from its
/// image and its records are not checked, so this function checks `contents`.
fn add_findings(
    apex: &Name,
    contents: Option<&Contents>,
    zone: &ZoneStatus,
    report: &mut Report,
    is_strict: bool,
) {
    let name = &zone.zone;
    let count = zone.findings.or_else(|| {
        let findings = semantics::check(contents?, MAX_FINDINGS_PER_KIND);
        for warning in findings.lines(MAX_FINDINGS) {
            tracing::warn!(name: "zone-warning", zone = name, "zone {name}: {warning}");
            report.warnings.push(json!({ "message": warning, "zone": name }));
        }
        Some(findings.total())
    });
    let Some(count) = count.filter(|count| is_strict && *count > 0) else { return };
    let effect = Effect::Findings(apex.clone());
    let findings = count_text(count, "finding");
    let message = format!("{findings} of the semantic checks: `nonesuch zone verify --all FILE` lists them");
    let mut value = json!({ "message": message });
    insert_effect(&mut value, &effect);
    report.faults.push(ListedFault { text: format!("zone {name}: {message}"), value, effect });
}
