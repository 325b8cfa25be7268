//! What can keep a command from being carried out: named by file, line, record and remedy.

use crate::commands::query::QueryError;
use nonesuch_authoritative::service::Refused;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfKeyError};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::nsec5::{Nsec5Error, ProofsFileError};
use nonesuch_dnssec::denial::{MECHANISMS, Made};
use nonesuch_dnssec::keys::{KeyFileError, KeySetError};
use nonesuch_dnssec::online::{KeySetSignError, PrepareError, ProverError};
use nonesuch_dnssec::sign::SignError;
use nonesuch_dnssec::verify::{Fault, count_faults};
use nonesuch_lab::compare::{CompareError, SubjectError};
use nonesuch_lab::experiment::echo::EchoError;
use nonesuch_lab::experiment::signing::ExamineError;
use nonesuch_lab::experiment::verification::FollowError;
use nonesuch_lab::experiment::{DefinitionError, RunError, StoreError, UnreadableColumn};
use nonesuch_lab::generate::GenerateError;
use nonesuch_lab::load::{LoadError, QueryListError};
use nonesuch_net::{ClientError, NetError, TlsError};
use nonesuch_zone::ReadError;
use nonesuch_zone::change::{ChangeFault, ChangeReadError};
use nonesuch_zone::image::CompileError;
use nonesuch_zone::read::read_remedy;
use std::io;
use std::path::PathBuf;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("standard input can be read once only: give files for all inputs but one")]
    InputTwice,
    #[error("{}: cannot be written: {source}{}", path.display(), write_remedy(source))]
    Write { path: PathBuf, source: io::Error },
    #[error("{}: a private key stands there and is not written over: give another output file", path.display())]
    OverKey { path: PathBuf },
    #[error("{}: the output would take the place of a file that is read: give another output file", path.display())]
    OverSource { path: PathBuf },
    #[error("{}: both outputs would be written there: give another file for one of them", path.display())]
    OneOutput { path: PathBuf },
    #[error("{}: the previous zone is not sound ({}, the first: {first}): sign without it", path.display(), count_faults(*count))]
    PreviousNotSound { path: PathBuf, count: usize, first: Fault },
    #[error("{}: cannot be written: there is no folder {}: make it, or give another output file", path.display(), folder.display())]
    NoFolder { path: PathBuf, folder: PathBuf },
    #[error("{}: a file is there, and is not written over: move it away, or give another", path.display())]
    FileThere { path: PathBuf },
    #[error("the server does not export zone {zone}")]
    NotExported { zone: nonesuch_proto::Name },
    #[error("the system's random generator fails: {0}")]
    Random(getrandom::Error),
    #[error(
        "'{name}' is no name that every server takes for a TSIG key: use letters, digits, - and _, as in transfer.example."
    )]
    TsigName { name: nonesuch_proto::Name },
    #[error("standard output: {0}")]
    Output(io::Error),
    #[error(transparent)]
    Zone(#[from] ReadError),
    #[error(transparent)]
    LoadZone(#[from] nonesuch_zone::LoadError),
    #[error("the old file is of the zone {old} and the new one of {new}: give two versions of one zone")]
    DifferentZones { old: nonesuch_proto::Name, new: nonesuch_proto::Name },
    #[error("{}: no key files of {zone} (K*.key beside K*.private); make them with `nonesuch key generate {zone} --dir DIR`", dir.display())]
    NoKeys { dir: PathBuf, zone: nonesuch_proto::Name },
    #[error("{}: {source}", path.display())]
    KeyFile { path: PathBuf, source: KeyFileError },
    #[error(
        "{}: there is no private key file beside it: restore it from a copy, or move this file away; a key that is to be published \
         and not to sign stands in the zone file, as DNSKEY record",
        path.display()
    )]
    NoPrivateFile { path: PathBuf },
    #[error("{}: there is no public key file (.key) beside it: restore it from a copy, or move this file away if the key is no longer used", path.display())]
    NoPublicFile { path: PathBuf },
    #[error(transparent)]
    KeySet(#[from] KeySetError),
    #[error(transparent)]
    KeyGeneration(#[from] nonesuch_crypto::KeyError),
    #[error("no key with a tag of its own could be made in {}: remove keys that are no longer used", dir.display())]
    NoFreeTag { dir: PathBuf },
    #[error("{}: {source}", path.display())]
    PrivateKey { path: PathBuf, source: nonesuch_crypto::KeyError },
    #[error("{}: no .key file beside it says whose key it is: give --zone ZONE", path.display())]
    ZoneNeeded { path: PathBuf },
    #[error("{}: no .key file beside it says what the key is for: give --ksk, --csk or --zsk", path.display())]
    RoleNeeded { path: PathBuf },
    #[error("{}: the key may be of {choices}: give --algorithm", path.display())]
    AlgorithmNeeded { path: PathBuf, choices: String },
    #[error("{}: the key is {found}, not {wanted}: leave the option out, or take another file", path.display())]
    Contradiction { path: PathBuf, found: String, wanted: String },
    #[error("{}: another key stands in its place, and nothing was written: {reason}", path.display())]
    InTheWay { path: PathBuf, reason: String },
    #[error("{place}: no key that the parent's DS records are to name: --all takes zone-signing keys too")]
    NoEntryPoint { place: String },
    #[error("the zone '{text}' is no domain name: {source}")]
    ZoneName { text: String, source: nonesuch_proto::NameError },
    #[error("the salt '{0}' is not hexadecimal digits (write - for none)")]
    Salt(String),
    #[error(
        "the salt '{0}' has an odd number of digits, and two are an octet: add a digit, or take one away"
    )]
    OddSalt(String),
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error(transparent)]
    Nsec5(#[from] Nsec5Error),
    #[error("{}: {source}", path.display())]
    VrfKey { path: PathBuf, source: VrfKeyError },
    #[error("no VRF key could be made: {0}")]
    VrfGeneration(VrfKeyError),
    #[error("{}: the file holds another key than its name says: it should be named {expected}.private", path.display())]
    VrfName { path: PathBuf, expected: String },
    #[error("{}: the VRF key is of {found}, but --vrf asks for {wanted}: leave --vrf out, or give another folder", path.display())]
    OtherVrf { path: PathBuf, found: VrfAlgorithm, wanted: VrfAlgorithm },
    #[error(
        "{}: {count} VRF keys of {zone}, and not just one of them is in the zone file as NSEC5KEY record: move the others to \
         another folder",
        dir.display()
    )]
    SeveralVrfKeys { dir: PathBuf, zone: nonesuch_proto::Name, count: usize },
    #[error(
        "{}: a signing key stands in the folder of the VRF key, which the server reads: move it to a folder of its own",
        path.display()
    )]
    SigningKey { path: PathBuf },
    #[error("{}: no folder with proofs or a VRF key: give --nsec5-keys the one that the zone was signed with, or leave it out", dir.display())]
    NoEvidenceFolder { dir: PathBuf },
    #[error("{}: not a folder, and the VRF key and the proofs need one: give --nsec5-keys another name", dir.display())]
    NotAFolder { dir: PathBuf },
    #[error("{}: neither proofs nor a VRF key of the zone {zone}: give its folder, or leave --nsec5-keys out", dir.display())]
    NoEvidence { dir: PathBuf, zone: nonesuch_proto::Name },
    #[error("{}: {source}", path.display())]
    Proofs { path: PathBuf, source: ProofsFileError },
    #[error(
        "{}: the zone is signed with NSEC5: its server has no signing key and denies by nothing else: leave --keys and --denial \
         out, and give the folder of the VRF key with --nsec5-keys",
        path.display()
    )]
    Nsec5WithKeys { path: PathBuf },
    #[error(
        "{}: the zone is signed with NSEC5, and there is no folder {} with its VRF key: give it with --nsec5-keys",
        path.display(), dir.display()
    )]
    Nsec5KeysNeeded { path: PathBuf, dir: PathBuf },
    #[error(
        "{}: --keys is for records that are made when asked: say which with --denial ({}), or leave --keys out",
        path.display(), made_when_asked()
    )]
    KeysWithoutDenial { path: PathBuf },
    #[error("{}: the zone is not signed with NSEC5: leave --nsec5-keys out", path.display())]
    NotNsec5 { path: PathBuf },
    #[error(
        "{}: {mechanism} makes its records when the zone is signed: sign it with `nonesuch zone sign --denial {mechanism}`, and \
         leave --denial out",
        path.display()
    )]
    NotOnline { path: PathBuf, mechanism: Mechanism },
    #[error(
        "{}: a signing key, in a folder that the server of {zone} reads: with NSEC5 a server has none, so that nobody who breaks \
         into it forges; move the key to a folder of its own",
        path.display()
    )]
    SigningKeyAtServer { path: PathBuf, zone: nonesuch_proto::Name },
    #[error("{}: no VRF key of {zone} that is among its NSEC5KEY records: give the folder of the key that signed it", dir.display())]
    NoVrfKey { dir: PathBuf, zone: nonesuch_proto::Name },
    #[error("{}: {source}", dir.display())]
    Prover { dir: PathBuf, source: ProverError },
    #[error(transparent)]
    SignKeySet(#[from] KeySetSignError),
    #[error(
        "{mechanism} cannot be compared: the servers of a comparison have no keys, and it needs one there; leave it out"
    )]
    NotCompared { mechanism: &'static str },
    #[error("{}:{source}", path.display())]
    ChangeSet { path: PathBuf, source: ChangeReadError },
    #[error("{}:{line}: {fault}", path.display())]
    Change { path: PathBuf, line: u32, fault: ChangeFault },
    #[error("{}: holds no DS or DNSKEY record of {zone}", path.display())]
    NoAnchor { path: PathBuf, zone: nonesuch_proto::Name },
    #[error("{}: {source}", path.display())]
    NotServed { path: PathBuf, source: Refused },
    #[error("{}: {KEY_SET}", path.display())]
    OnlyKeySet { path: PathBuf },
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error("the configuration is refused:\n{0}")]
    Configuration(#[from] crate::config::Problems),
    #[error("{}: a server would not start so", path.display())]
    NotStartable { path: PathBuf },
    #[error("{}: a server that runs would refuse it at a reload", path.display())]
    NotReloadable { path: PathBuf },
    #[error("{0}")]
    Settings(String),
    #[error(transparent)]
    Bind(NetError),
    #[error("--check is of a configuration: name it with --config")]
    CheckWithoutConfiguration,
    #[error(transparent)]
    State(#[from] nonesuch_authoritative::service::StateError),
    #[error(transparent)]
    Privilege(#[from] crate::commands::PrivilegeError),
    #[error(transparent)]
    Tap(#[from] nonesuch_authoritative::tap::TapError),
    #[error(transparent)]
    Metrics(#[from] crate::metrics::MetricsError),
    #[error("no thread could be started: {0}: raise the limits on threads and open files")]
    Thread(io::Error),
    #[error("{}: the control socket cannot be made: {source}: make its folder, and writable for this user", path.display())]
    ControlSocket { path: PathBuf, source: io::Error },
    #[error("{}: is there, and no socket: name another path as control-socket, or move it away", path.display())]
    ControlPlace { path: PathBuf },
    #[error("{}: a server answers at this control socket: stop it (`nonesuch ctl stop`), or name another one", path.display())]
    ControlTaken { path: PathBuf },
    #[error("group {group:?} does not exist: make it, or name another as control-group")]
    NoGroup { group: String },
    #[error(
        "{}: no server answers there: {source}; is it running, and may you open the socket? --socket names another",
        path.display()
    )]
    Control { path: PathBuf, source: io::Error },
    #[error(
        "{}: the server has given no sign of life for {seconds} s, and what was asked may still be carried out: look at its log, or wait \
         longer with --timeout",
        path.display()
    )]
    ControlSilent { path: PathBuf, seconds: u64 },
    #[error(
        "{}: the server ended the connection before its answer was whole, as it does when it stops: its log says why",
        path.display()
    )]
    ControlEnded { path: PathBuf },
    #[error("{}: what answers there is no server of this version", path.display())]
    ControlAnswer { path: PathBuf },
    #[error("{}: names no control-socket: add one, and start the server again, or name the one that it has with --socket", path.display())]
    NoControlSocket { path: PathBuf },
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error(transparent)]
    Queries(#[from] QueryListError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Echo(#[from] EchoError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Subject(#[from] SubjectError),
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    #[error(transparent)]
    Experiment(#[from] RunError),
    #[error(transparent)]
    Results(#[from] StoreError),
    #[error(transparent)]
    ResultsColumn(#[from] UnreadableColumn),
    #[error(transparent)]
    Orders(#[from] FollowError),
    #[error(transparent)]
    Examine(#[from] ExamineError),
    #[error("{0}")]
    Measurement(String),
}

/// What a zone is whose key set alone is signed.
pub(crate) const KEY_SET: &str = "the key set is signed and nothing else, as `nonesuch zone sign --only-keys` leaves it: serve it \
    with `nonesuch serve FILE --denial MECHANISM --keys DIR`, or sign the zone as a whole";

impl Failure {
    /// Whether the command was carried out, and the answer is "no": a zone does not verify.
    pub(crate) fn is_no(&self) -> bool {
        match self {
            Self::OnlyKeySet { .. } | Self::NotServed { source: Refused::Unsound { .. }, .. } => true,
            Self::NotServed { source: Refused::Prepare(error), .. } => {
                matches!(**error, PrepareError::Unsound(_))
            }
            _ => false,
        }
    }
}

impl Failure {
    /// Whether the system kept a server from starting that another time may start: an address that is not there yet, a port or a
    /// folder that another process still has.
    pub(crate) const fn is_of_system(&self) -> bool {
        matches!(
            self,
            Self::Bind(_)
                | Self::State(_)
                | Self::Tap(_)
                | Self::Metrics(_)
                | Self::Thread(_)
                | Self::ControlSocket { .. }
                | Self::ControlTaken { .. }
        )
    }
}

/// The mechanisms whose records are made when asked.
fn made_when_asked() -> String {
    let made = MECHANISMS.iter().filter(|entry| entry.made == Made::WhenAsked);
    made.map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

/// What to do where a file cannot be written.
fn write_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ": make room, or write to another place"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": write to another place, or make this one writable"
        }
        io::ErrorKind::IsADirectory => ": a folder stands there, name a file",
        _ => "",
    }
}
