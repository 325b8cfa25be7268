//! Errors of `nonesuch query`.

use crate::files::FileError;
use nonesuch_net::{ClientError, TlsError};
use nonesuch_proto::message::MessageError;
use nonesuch_proto::{Name, NameError};
use nonesuch_server::tsig::{KeyTextError, TsigAlgorithm, TsigKeyError};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a query cannot be sent, or its response cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum QueryError {
    File(#[from] FileError),
    Client(#[from] ClientError),
    Tls(#[from] TlsError),
    #[error("nothing is asked: give a name, as in `nonesuch query example.com SOA @192.0.2.1`")]
    NoName,
    #[error("'{0}' is one word too many: give a name, a type and @SERVER, each once")]
    Surplus(String),
    #[error("'{text}' is no domain name: {source}")]
    Name {
        text: String,
        source: NameError,
    },
    #[error(
        "'{0}' is no type: write a mnemonic such as A, AAAA, SOA or DNSKEY, or TYPE followed by a number"
    )]
    Type(String),
    #[error("IXFR needs the serial of the zone that you have: give --ixfr SERIAL")]
    SerialNeeded,
    #[error("'@{0}' is no server: write @ADDRESS, @ADDRESS:PORT, @[IPv6 ADDRESS]:PORT or @HOST")]
    Server(String),
    #[error("{host}: the host name cannot be resolved: {source}; give the server's address")]
    Unresolved {
        host: String,
        source: io::Error,
    },
    #[error("{}: names no server to ask (a line `nameserver ADDRESS`){}: give one as @SERVER", path.display(), because(source.as_ref()))]
    NoResolver {
        path: PathBuf,
        source: Option<io::Error>,
    },
    #[error("{server}: the answer cannot be read: {source}; its octets: {octets}")]
    Unreadable {
        server: SocketAddr,
        source: MessageError,
        octets: String,
    },
    #[error("{server}: the answer is of another question")]
    OtherQuestion {
        server: SocketAddr,
    },
    #[error("{server}: the transfer is not right: {reason}")]
    Transfer {
        server: SocketAddr,
        reason: TransferFault,
    },
    #[error("--tsig-key: {0}")]
    Key(KeyArgumentFault),
    #[error("{}: {reason}", path.display())]
    KeyFile {
        path: PathBuf,
        reason: KeyFileFault,
    },
    #[error("the system gives no random octets: {0}")]
    Random(getrandom::Error),
    #[error("cannot be asked: {0}; raise the limits on open files and threads")]
    Runtime(io::Error),
}

fn because(source: Option<&io::Error>) -> String {
    source.map_or_else(String::new, |source| format!(": {source}"))
}

/// A violation of RFC 5936 or RFC 1995 in a transfer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferFault {
    #[error("it does not begin with an SOA record")]
    NoSoa,
    #[error("records follow its end")]
    AfterEnd,
    #[error("a message holds no record")]
    EmptyMessage,
}

/// Why a `--tsig-key` argument is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyArgumentFault {
    #[error(
        "{0}; --tsig-key takes NAME:ALGORITHM:SECRET, a file with a key as BIND has it, or NAME:FILE, the secret in the file"
    )]
    Key(TsigKeyError),
    #[error("'{0}' is no name of a key")]
    Name(String),
}

/// Why a file of `--tsig-key` is invalid.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum KeyFileFault {
    #[error("cannot be read: {0}; give a key file, NAME:FILE or NAME:ALGORITHM:SECRET")]
    Read(io::Error),
    #[error("holds a secret, and not the name of its key: give NAME:{file}, or NAME:ALGORITHM:{file}", file = path.display())]
    SecretAlone {
        path: PathBuf,
    },
    #[error("holds no key: write key \"NAME\" {{ algorithm hmac-sha256; secret \"…\"; }};")]
    NoKey,
    #[error("holds more than one key: give a file with the one to sign with")]
    SeveralKeys,
    #[error("holds no key {0}: name one that it holds")]
    NotHeld(Name),
    #[error("the key is of {0}: leave the algorithm out")]
    OtherAlgorithm(TsigAlgorithm),
    Key(#[from] TsigKeyError),
    Text(#[from] KeyTextError),
}
