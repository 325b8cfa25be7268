//! What can keep a command from being carried out: named by file, line, record and remedy.

use nonesuch_dnssec::keys::{KeyFileError, KeySetError};
use nonesuch_dnssec::sign::SignError;
use nonesuch_lab::compare::{CompareError, SubjectError};
use nonesuch_lab::experiment::signing::ExamineError;
use nonesuch_lab::experiment::verification::FollowError;
use nonesuch_lab::experiment::{DefinitionError, RunError, StoreError, UnreadableColumn};
use nonesuch_lab::generate::GenerateError;
use nonesuch_lab::load::{LoadError, QueryListError};
use nonesuch_net::NetError;
use nonesuch_zone::ReadError;
use nonesuch_zone::image::CompileError;
use std::io;
use std::path::PathBuf;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{}: a private key stands there and is not written over: give another output file", path.display())]
    OverKey { path: PathBuf },
    #[error("standard output: {0}")]
    Output(io::Error),
    #[error(transparent)]
    Zone(#[from] ReadError),
    #[error("{}: no key files of {zone} (K*.key beside K*.private); make them with `nonesuch key generate {zone} --dir DIR`", dir.display())]
    NoKeys { dir: PathBuf, zone: nonesuch_proto::Name },
    #[error("{}: {source}", path.display())]
    KeyFile { path: PathBuf, source: KeyFileError },
    #[error("{}: there is no private key file beside it", path.display())]
    NoPrivateFile { path: PathBuf },
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
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error("{}: holds no DS or DNSKEY record of {zone}", path.display())]
    NoAnchor { path: PathBuf, zone: nonesuch_proto::Name },
    #[error(
        "{}: the zone is not fit to be served: {faults} faults, the first: {first}; `nonesuch zone verify` lists all",
        path.display()
    )]
    Unverified { path: PathBuf, faults: usize, first: String },
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error(transparent)]
    Queries(#[from] QueryListError),
    #[error(transparent)]
    Load(#[from] LoadError),
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
