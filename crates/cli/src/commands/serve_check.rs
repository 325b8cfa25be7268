//! `nonesuch serve --config FILE --check`: what a start, a reload and the zones of a configuration would come to, with nothing bound,
//! served or kept.

use super::nsec5;
use super::serve_keys::{QUIET_KEY_FILES, find_signing_key, load_available, open_keys};
use super::serve_settings::answer_settings;
use super::serve_system::{Account, check_root, drop_privileges};
use super::serve_words::zone_line;
use crate::Outcome;
use crate::arguments::CheckScope;
use crate::config::certificate::warn_of_expiry;
use crate::config::{self, Configuration, Effect, Eyes, Fault, Problem, Role, Sources};
use crate::error::Failure;
use crate::files::{counted, folder_of, open_key_words, print_line};
use nix::unistd::Uid;
use nonesuch_authoritative::service::{Service, Source, ZoneStatus};
use nonesuch_authoritative::zones::Zones;
use nonesuch_proto::Name;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was found.
#[derive(Default)]
struct Report {
    zones: usize,
    warnings: Vec<Value>,
    faults: Vec<Said>,
    /// File, line, column and key of those that have them.
    places: HashSet<(PathBuf, usize, usize, String)>,
}

/// A fault in words and for programs.
struct Said {
    text: String,
    value: Value,
    effect: Effect,
}

impl Report {
    /// Of one place it is said once what is wrong: what comes of that later on follows from it.
    fn fault(&mut self, fault: Fault) {
        let Fault { problem, effect } = fault;
        let place = (problem.path.clone(), problem.line, problem.column, problem.key.clone());
        if problem.line > 0 && !self.places.insert(place) {
            return;
        }
        let mut value = problem_value(&problem);
        note_effect(&mut value, &effect);
        self.faults.push(Said { text: format!("{problem}; {effect}"), value, effect });
    }

    fn refuse_start(&mut self, problems: impl IntoIterator<Item = Problem>) {
        for problem in problems {
            self.fault(Fault { problem, effect: Effect::Start });
        }
    }

    fn warn(&mut self, problem: &Problem) {
        tracing::warn!("{problem}");
        self.warnings.push(problem_value(problem));
    }

    fn has(&self, wanted: &Effect) -> bool {
        self.faults.iter().any(|fault| fault.effect == *wanted)
    }

    /// Zones that would not be loaded.
    fn refused_zones(&self) -> usize {
        let zones = self.faults.iter().filter_map(|fault| match &fault.effect {
            Effect::Zone(apex) => Some(apex),
            Effect::Start | Effect::Reload | Effect::Transfers | Effect::Zones => None,
        });
        zones.collect::<HashSet<_>>().len()
    }

    /// What all of it comes to, in words.
    fn verdict(&self) -> String {
        let refused = self.refused_zones();
        let said = |effect: Effect| self.has(&effect).then(|| effect.to_string());
        let words = [
            said(Effect::Start),
            said(Effect::Reload),
            said(Effect::Transfers),
            said(Effect::Zones),
            (refused > 0).then(|| format!("{} would not be loaded", counted(refused, "zone"))),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        if words.is_empty() { "sound".to_owned() } else { format!("not sound: {}", words.join(", ")) }
    }

    /// Prints all of it; zones alone that would not be loaded are an answer "no".
    fn finish(self, path: &Path, is_json: bool) -> Result<Outcome, Failure> {
        if is_json {
            let faults: Vec<&Value> = self.faults.iter().map(|said| &said.value).collect();
            let told = json!({
                "sound": faults.is_empty(), "zones": self.zones, "faults": faults, "warnings": self.warnings,
            });
            print_line(&told.to_string())?;
        } else {
            for said in &self.faults {
                print_line(&format!("fault: {}", said.text))?;
            }
            print_line(&format!("{}: {}: {}", path.display(), self.verdict(), counted(self.zones, "zone")))?;
        }
        if self.has(&Effect::Start) {
            Err(Failure::NotStartable { path: path.to_path_buf() })
        } else if self.has(&Effect::Reload) {
            Err(Failure::NotReloadable { path: path.to_path_buf() })
        } else {
            Ok(if self.faults.is_empty() { Outcome::Done } else { Outcome::No })
        }
    }
}

fn problem_value(problem: &Problem) -> Value {
    let Problem { path, line, column, key, message } = problem;
    let mut value = json!({ "file": path, "message": message });
    if *line > 0 {
        value["line"] = json!(line);
        value["column"] = json!(column);
    }
    if !key.is_empty() {
        value["key"] = json!(key);
    }
    value
}

fn note_effect(value: &mut Value, effect: &Effect) {
    value["effect"] = match effect {
        Effect::Start => json!("start"),
        Effect::Reload => json!("reload"),
        Effect::Transfers => json!("transfers"),
        Effect::Zones => json!("zones"),
        Effect::Zone(_) => json!("zone"),
    };
    if let Effect::Zone(apex) = effect {
        value["zone"] = json!(apex.to_string());
    }
}

/// Says what is wrong with the configuration at `path`, with the files that it names, and with its zones where that is asked for.
pub(super) fn run(path: &Path, scope: CheckScope, is_json: bool) -> Result<Outcome, Failure> {
    let mut report = Report::default();
    let read = match config::load(path) {
        Ok(read) => read,
        Err(problems) if is_json => {
            report.refuse_start(problems.0);
            return report.finish(path, true);
        }
        Err(problems) => return Err(problems.into()),
    };
    for warning in &read.warnings {
        report.warn(warning);
    }
    let (configuration, sources) = (read.configuration, read.sources);
    report.zones = configuration.zones.len();
    report.refuse_start(config::check_start(&configuration, &sources));
    config::check_runtime(&sources).iter().for_each(|problem| report.warn(problem));
    report.refuse_start(
        config::load_identity(&configuration, &sources).err().into_iter().flat_map(|found| found.0),
    );
    let certificate = configuration.server.tls.as_ref().map(|files| files.certificate.as_path());
    if let Some(message) = certificate.and_then(|path| warn_of_expiry(path, jiff::Timestamp::now())) {
        report.warn(&sources.problem_of("tls-certificate", message));
    }
    if let Err(message) = answer_settings(&configuration, None) {
        report.refuse_start([sources.problem_of("", message)]);
    }
    if let Some(eyes) = take_eyes(&configuration, &sources, &mut report)? {
        for fault in config::check_reading(&configuration, &sources, &eyes) {
            report.fault(fault);
        }
        warn_of_open_keys(&sources, scope, &mut report);
        if !eyes.is_other() {
            check_keys(&sources, &mut report);
        }
        if scope == CheckScope::Zones && !report.has(&Effect::Start) {
            check_zones(&configuration, &mut report, is_json)?;
        }
    }
    report.finish(path, is_json)
}

/// Becomes the server's user where that is possible, and sees with its eyes; `None` where there is no such user.
fn take_eyes(
    configuration: &Configuration,
    sources: &Sources,
    report: &mut Report,
) -> Result<Option<Eyes>, Failure> {
    let server = &configuration.server;
    let user = server.user.as_deref();
    let Ok(eyes) = Eyes::of(user) else { return Ok(None) };
    if let (Some(name), true) = (user, eyes.is_other()) {
        if Uid::effective().is_root() {
            drop_privileges(Account::find(user)?.as_ref())?;
            return Ok(Eyes::of(user).ok());
        }
        let message =
            format!("checked by the modes of files: root, or {name}, can check what {name} may really read");
        report.warn(&sources.problem_of("user", message));
    }
    let addresses = server.listen.iter().chain(&server.listen_tls).copied();
    if check_root(user, addresses).is_err() {
        let message = "checked as root, who may read everything: where systemd starts the server as another user, check as that one \
                       (`runuser -u USER -- nonesuch serve …`)";
        report.warn(&sources.problem_of("user", message));
    }
    Ok(Some(eyes))
}

/// Warns of private keys that everybody may read; of those that lie beside a zone's file where zones are read.
fn warn_of_open_keys(sources: &Sources, scope: CheckScope, report: &mut Report) {
    let named = sources.files.iter().filter_map(|file| match &file.role {
        Role::SigningKeys(apex) | Role::VrfKeys(apex, _) => Some(apex),
        _ => None,
    });
    let named: HashSet<&Name> = named.collect();
    for file in &sources.files {
        let open = match &file.role {
            Role::SigningKeys(apex) => open_keys(&file.path, apex),
            Role::VrfKeys(apex, _) => nsec5::open_keys(&file.path, apex),
            Role::Zone(apex) if scope == CheckScope::Zones && !named.contains(apex) => {
                nsec5::open_keys(&nsec5::beside(&file.path), apex)
            }
            _ => continue,
        };
        open.iter().for_each(|path| report.warn(&sources.problem(&file.place, open_key_words(path))));
    }
}

/// What keys are in the folders of those zones with which nothing is wrong so far.
fn check_keys(sources: &Sources, report: &mut Report) {
    for file in &sources.files {
        let (apex, problem) = match &file.role {
            Role::SigningKeys(apex) => {
                (apex, load_available(&file.path, apex).err().map(|failure| failure.to_string()))
            }
            Role::VrfKeys(apex, zone) => {
                let folders = zone.as_deref().map(folder_of).into_iter().chain([file.path.as_path()]);
                let found = folders.filter_map(|folder| find_signing_key(folder).ok().flatten()).next();
                let said = |path| Failure::SigningKeyAtServer { path, zone: apex.clone() }.to_string();
                (apex, found.map(said))
            }
            _ => continue,
        };
        let effect = Effect::Zone(apex.clone());
        if let Some(message) = problem.filter(|_| !report.has(&effect)) {
            report.fault(Fault { problem: sources.problem(&file.place, message), effect });
        }
    }
}

/// Loads and verifies all zones that have files, but for those that are faulty already; nothing is kept.
fn check_zones(configuration: &Configuration, report: &mut Report, is_json: bool) -> Result<(), Failure> {
    let mut settings = configuration.service_settings();
    settings.state_dir = None;
    let is_faulty = |apex: &Name| report.has(&Effect::Zone(apex.clone()));
    settings.zones.retain(|zone| matches!(zone.source, Source::File(_)) && !is_faulty(&zone.apex));
    let apexes: Vec<Name> = settings.zones.iter().map(|zone| zone.apex.clone()).collect();
    let service = Service::open(settings, QUIET_KEY_FILES, Arc::new(Zones::new()))?;
    service.begin().map_err(Failure::Thread)?;
    let _ = service.wait();
    for apex in apexes {
        for zone in service.zone_status(Some(&apex)) {
            take_zone(apex.clone(), &zone, report, is_json)?;
        }
    }
    Ok(())
}

fn take_zone(apex: Name, zone: &ZoneStatus, report: &mut Report, is_json: bool) -> Result<(), Failure> {
    match &zone.error {
        None if is_json => Ok(()),
        None => print_line(&zone_line(zone)),
        Some(error) => {
            let effect = Effect::Zone(apex);
            let mut value = json!({ "message": error });
            note_effect(&mut value, &effect);
            report.faults.push(Said { text: format!("zone {}: {error}", zone.zone), value, effect });
            Ok(())
        }
    }
}
