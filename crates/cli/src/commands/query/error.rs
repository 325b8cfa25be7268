//! Errors of `nonesuch query`.

use super::message::MESSAGE_MAX;
use crate::files::{FileError, count_text};
use crate::server::resolver::ResolveError;
use nonesuch_net::{ClientError, TlsError};
use nonesuch_proto::message::MessageError;
use nonesuch_proto::{Name, NameError};
use nonesuch_resolver::zones::ZoneRuleError;
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
    #[error("{error}{option}", error = .0, option = hostname_option(.0))]
    Client(#[from] ClientError),
    Tls(#[from] TlsError),
    #[error("no name to query: give a name, for example `nonesuch query example.com SOA @192.0.2.1`")]
    NoName,
    #[error("'{0}' is one argument too many: give a name, a type and @SERVER, each once")]
    SurplusArgument(String),
    #[error("'{text}' is not a domain name: {source}")]
    Name {
        text: String,
        source: NameError,
    },
    #[error(
        "'{0}' is not a type: write a mnemonic such as A, AAAA, SOA or DNSKEY, or TYPE followed by a \
            number"
    )]
    Type(String),
    #[error(
        "'@{0}' is a server, but --from-root queries the servers of the root zone first: leave one of them out"
    )]
    ServerAndRoot(String),
    Resolver(#[from] ResolveError),
    #[error("IXFR needs the serial of your version of the zone: set --ixfr SERIAL")]
    SerialNeeded,
    #[error("'@{0}' is not a server: write @ADDRESS, @ADDRESS:PORT, @[IPv6 ADDRESS]:PORT or @HOST")]
    Server(String),
    #[error("--anchor needs --from-root, or a query without @SERVER that is validated")]
    AnchorUnused,
    #[error("--svg needs --from-root, or a query without @SERVER that is validated")]
    SvgUnused,
    #[error("--svg: nothing was validated: give --anchor FILE with the trust anchor of the root zone")]
    NothingValidated,
    Picture(#[from] nonesuch_lab::check::PictureError),
    #[error("{}: {source}", path.display())]
    SystemResolvers {
        path: PathBuf,
        source: ZoneRuleError,
    },
    #[error("{host}: cannot resolve the host name: {source}; give the address of the server")]
    Unresolved {
        host: String,
        source: io::Error,
    },
    #[error("{}: no line `nameserver ADDRESS`{}: give the server as @SERVER", path.display(), because(source.as_ref()))]
    NoResolver {
        path: PathBuf,
        source: Option<io::Error>,
    },
    #[error("{server}: malformed response: {source}; its octets: {octets}")]
    Unreadable {
        server: SocketAddr,
        source: MessageError,
        octets: String,
    },
    #[error("{server}: the response has a different question")]
    OtherQuestion {
        server: SocketAddr,
    },
    #[error("{server}: invalid transfer: {reason}")]
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
    #[error(
        "--edns-option: the query takes {octets} octets, but a message has at most {MESSAGE_MAX} (RFC 1035 \
            section 4.2.2): shorten the options"
    )]
    TooLarge {
        octets: usize,
    },
    #[error("cannot get random octets from the system: {0}")]
    Random(getrandom::Error),
    #[error("cannot start the client: {0}; raise the limits on open files and threads")]
    Runtime(io::Error),
}

/// The option for the host name in the certificate, if the server has a certificate for another
/// name than the requested one; otherwise empty.
fn hostname_option(error: &ClientError) -> String {
    error.certificate_name().map_or_else(String::new, |name| format!(" (--tls-hostname {name})"))
}

/// The reason of the system, for the end of a clause; empty without a source.
fn because(source: Option<&io::Error>) -> String {
    source.map_or_else(String::new, |source| format!(": {source}"))
}

/// A violation of RFC 5936 or RFC 1995 in a transfer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferFault {
    #[error("the first record is not a SOA record")]
    NoSoa,
    #[error("records follow the final SOA record")]
    AfterEnd,
    #[error("a message contains no record")]
    EmptyMessage,
    #[error(
        "the server closed the connection after {}, before the final SOA record: repeat the transfer",
        count_text(*messages, "message")
    )]
    Incomplete { messages: u64 },
}

/// Why a `--tsig-key` argument is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyArgumentFault {
    #[error(
        "{0}; --tsig-key takes NAME:ALGORITHM:SECRET, a file with a key in BIND format, or NAME:FILE \
            with the secret in the file"
    )]
    Key(TsigKeyError),
    #[error("'{0}' is not the name of a key")]
    Name(String),
}

/// Why a file of `--tsig-key` is invalid.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum KeyFileFault {
    #[error("cannot be read: {0}: --tsig-key takes a key file, NAME:FILE or NAME:ALGORITHM:SECRET")]
    Read(io::Error),
    #[error("contains a secret without the name of the key: give NAME:{file}, or NAME:ALGORITHM:{file}", file = path.display())]
    SecretAlone {
        path: PathBuf,
    },
    #[error("contains no key: write key \"NAME\" {{ algorithm hmac-sha256; secret \"…\"; }};")]
    NoKey,
    #[error("contains more than one key: select one of them with --tsig-key NAME:{file}", file = path.display())]
    SeveralKeys {
        path: PathBuf,
    },
    #[error("contains neither a secret in Base64 nor a key in BIND format: name another file")]
    NoSecret,
    #[error("contains no key {0}: name a key in the file")]
    KeyNotInFile(Name),
    #[error("the key has the algorithm {0}, not that of --tsig-key: leave the algorithm out")]
    OtherAlgorithm(TsigAlgorithm),
    Key(#[from] TsigKeyError),
    Text(#[from] KeyTextError),
}
