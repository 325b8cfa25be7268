//! `nonesuch serve FILE`: a server of one zone. It behaves like a server with a configuration that
//! contains only the settings from the arguments. It stores nothing on disk.
//!
//! The server first reads the file, because the file determines the name of the zone, and verifies
//! it. Then it binds sockets. If it does not start, the exit status gives the class of the reason.

use crate::arguments::{ServeArguments, VerifyMode};
use crate::config::Configuration;
use crate::files::{FileError, input_name, is_standard_stream};
use crate::logging;
use crate::nsec5;
use crate::outcome::CommandOutcome;
use crate::root::check_root;
use crate::server::background::report_ready;
use crate::server::daemon::{ConfigurationSource, Daemon};
use crate::server::error::ServerError;
use crate::server::main_loop::stop;
use crate::server::open_files::raise_open_files;
use crate::server::output::{log_start, print_zone_ready};
use crate::server::panics::abort_on_panic;
use crate::server::privileges::drop_privileges;
use crate::server::settings::{max_connections, server_options};
use crate::server::signals::NonFatalSignals;
use crate::server::startup::assemble::AssemblyInputs;
use crate::server::startup::error::ZoneFileError;
use crate::zones::{self, ReadZoneError};
use nonesuch_authoritative::server::BoundSockets;
use nonesuch_authoritative::service::{
    OnlineSigning, PreloadedZone, SigningMode, VerifyChoice, VersionError, ZoneSettings, ZoneSource,
};
use nonesuch_authoritative::{OpenImageError, open_image};
use nonesuch_dnssec::denial::DenialGeneration;
use nonesuch_dnssec::online::PrepareError;
use nonesuch_net::release_free_memory;
use nonesuch_proto::Name;
use nonesuch_zone::{CompiledError, ImageFile, LoadError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Serves the zone of the file until the server is stopped.
pub(crate) fn run(arguments: &ServeArguments) -> Result<CommandOutcome, ServerError> {
    let started_at = Instant::now();
    let early_signals = NonFatalSignals::install().map_err(ServerError::Thread)?;
    check_root(None, [arguments.listen])?;
    abort_on_panic();
    let signing_mode = signing_mode(arguments)?;
    log_start("file", input_name(&arguments.file));
    let opened = open_zone(arguments)?;
    let configuration = configuration(arguments, signing_mode, opened.apex());
    raise_open_files(max_connections(&configuration));
    drop_privileges(None)?;
    logging::start_queue().map_err(ServerError::Thread)?;
    // With `--now`, signatures are verified and generated for that time.
    let clock_shift = arguments.now.map_or(0, |now| now.wrapping_sub(zones::time_or_now(None)));
    let inputs = AssemblyInputs {
        configuration,
        source: ConfigurationSource::Arguments,
        tls_identity: None,
        clock_shift,
        started_at,
    };
    let main_loop = inputs.assemble(early_signals)?;
    let (daemon, is_json) = (Arc::clone(&main_loop.daemon), arguments.json);
    let (starting_daemon, files) = (Arc::clone(&daemon), Files::of(arguments));
    main_loop.run(move || start(&starting_daemon, &files, opened, clock_shift, is_json))?;
    stop(&daemon, is_json)
}

/// Publishes the zone, binds the sockets, and reports that the server is ready.
fn start(
    daemon: &Daemon,
    files: &Files,
    opened: PreloadedZone,
    clock_shift: u32,
    is_json: bool,
) -> Result<(), ServerError> {
    let apex = opened.apex();
    daemon.service.begin_preloaded(opened).map_err(|refused| files.to_server_error(refused))?;
    let options = server_options(&daemon.configuration(), None, clock_shift);
    daemon.start(BoundSockets::bind(&options).map_err(ServerError::Bind)?)?;
    for zone in daemon.service.zone_status(Some(&apex)) {
        print_zone_ready(daemon, &zone, is_json);
    }
    report_ready()?;
    daemon.notifier.notify_ready(&daemon.status_line());
    Ok(())
}

/// The signing mode, from the options alone.
fn signing_mode(arguments: &ServeArguments) -> Result<SigningMode, ZoneFileError> {
    let online = &arguments.online;
    let path = || input_name(&arguments.file).to_path_buf();
    match (online.denial, &online.keys, &online.nsec5_keys) {
        (Some(mechanism), Some(keys), _) if mechanism.entry().generation == DenialGeneration::Online => {
            Ok(SigningMode::Online(OnlineSigning {
                mechanism,
                key_directory: keys.clone(),
                validity: online.signature_validity,
                ignore_key_times: online.ignore_key_times,
            }))
        }
        (Some(mechanism), _, _) => Err(ZoneFileError::NotOnline { path: path(), mechanism }),
        (None, Some(_), _) => Err(ZoneFileError::KeysWithoutDenial { path: path() }),
        (None, None, Some(dir)) => Ok(SigningMode::Nsec5 { key_directory: dir.clone() }),
        (None, None, None) => Ok(SigningMode::AsLoaded),
    }
}

/// The configuration that is equivalent to the arguments.
fn configuration(arguments: &ServeArguments, signing_mode: SigningMode, apex: Name) -> Configuration {
    let source = match input_name(&arguments.file).to_path_buf() {
        name if is_stream(&arguments.file) => ZoneSource::Stream(name),
        file => ZoneSource::File(file),
    };
    let verify = match arguments.verify {
        VerifyMode::Auto => VerifyChoice::Quick,
        VerifyMode::Full => VerifyChoice::Full,
        VerifyMode::Structural => VerifyChoice::Structural,
    };
    let zone = ZoneSettings {
        source,
        signing_mode,
        verify,
        allows_unsafe_transition: arguments.allow_unsafe_transition,
        ..ZoneSettings::of_file(apex, arguments.file.clone())
    };
    let mut configuration = Configuration::of_zone(zone);
    let server = &mut configuration.server;
    server.listen = vec![arguments.listen];
    server.workers = arguments.workers;
    server.cpus.clone_from(&arguments.cpus);
    server.max_udp_size = arguments.max_udp_size;
    server.signature_cache = u64::from(arguments.online.signature_cache) << 20;
    configuration
}

/// Whether the file can be read only once.
fn is_stream(path: &Path) -> bool {
    is_standard_stream(path) || std::fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// Opens the file: maps it if it is an image, otherwise reads the zone.
fn open_zone(arguments: &ServeArguments) -> Result<PreloadedZone, ServerError> {
    let path = &arguments.file;
    let read = || {
        let loaded = zones::load_zone(path, arguments.origin.as_ref())?;
        // Another thread verifies and compiles the zone and allocates its own memory, so the memory
        // that was freed here returns to the system.
        release_free_memory();
        Ok(loaded)
    };
    if is_stream(path) {
        return Ok(PreloadedZone::stream(read()?));
    }
    PreloadedZone::file(path, || map_image(arguments), read)
}

/// The image at the beginning of the file; `None` if there is no image or it must not be used.
fn map_image(arguments: &ServeArguments) -> Result<Option<ImageFile>, ServerError> {
    // An image contains no records that are generated online. With full verification, the server
    // does not rely on the results that the file claims.
    if arguments.verify == VerifyMode::Full || arguments.online.denial.is_some() {
        return Ok(None);
    }
    match open_image(&arguments.file) {
        Ok(Some(file)) => check_origin(arguments, &file).map(|()| Some(file)),
        // The zone reader reports read errors.
        Ok(None) | Err(OpenImageError::Read { .. }) => Ok(None),
        Err(OpenImageError::Load(error)) => Err(error.into()),
    }
}

/// Checks that the image has the zone of `--origin`, if this option is set.
fn check_origin(arguments: &ServeArguments, file: &ImageFile) -> Result<(), ServerError> {
    let found = file.image().apex();
    match arguments.origin.as_ref().filter(|origin| origin.view() != found) {
        None => Ok(()),
        Some(origin) => {
            let source = CompiledError::WrongOrigin { found: found.to_name(), origin: origin.clone() };
            let error = LoadError::Compiled { path: arguments.file.clone(), source };
            Err(ReadZoneError::from(error).into())
        }
    }
}

/// The files of the command line, for messages.
struct Files {
    zone: PathBuf,
    nsec5_keys: PathBuf,
}

impl Files {
    fn of(arguments: &ServeArguments) -> Self {
        let nsec5_keys = arguments.online.nsec5_keys.clone();
        Self {
            zone: input_name(&arguments.file).to_path_buf(),
            nsec5_keys: nsec5_keys.unwrap_or_else(|| nsec5::default_directory(&arguments.file)),
        }
    }

    /// Converts the error to one that refers to command line options.
    fn to_server_error(&self, refused: VersionError) -> ServerError {
        let (path, dir) = (self.zone.clone(), self.nsec5_keys.clone());
        let error = match refused {
            VersionError::Load(error) | VersionError::Image(OpenImageError::Load(error)) => {
                return error.into();
            }
            VersionError::Read { path: found, .. } if found == dir => {
                ZoneFileError::Nsec5KeysNeeded { path, dir }
            }
            VersionError::Read { path, source } => return FileError::Read { path, source }.into(),
            VersionError::OnlyKeySet => ZoneFileError::OnlyKeySet { path },
            VersionError::NotNsec5 => ZoneFileError::NotNsec5 { path },
            VersionError::Nsec5KeysNeeded { .. } => ZoneFileError::Nsec5KeysNeeded { path, dir },
            VersionError::Prepare(error) if matches!(*error, PrepareError::Nsec5(_)) => {
                ZoneFileError::Nsec5WithKeys { path }
            }
            refused @ (VersionError::Keys(_)
            | VersionError::Prover(_)
            | VersionError::ChangedWhileRead(_)) => ZoneFileError::Refused(refused),
            source => ZoneFileError::NotServed { path, source },
        };
        error.into()
    }
}
