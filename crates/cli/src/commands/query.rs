//! `nonesuch query`: one question to one server, and the answer in full.

mod ask;
mod edns;
mod message;
mod rcode;
mod record;
mod show;
mod target;
mod transfer;
mod tsig;

use crate::Outcome;
use crate::arguments::QueryArguments;
use crate::error::Failure;
use crate::files::print_line;
use ask::Asker;
use edns::OptionCode;
use message::{Draft, Question};
use nonesuch_net::tls::ClientTls;
use nonesuch_proto::message::{Message, MessageError, Rcode};
use nonesuch_proto::{NameError, Rtype};
use show::Said;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use target::Target;
use tsig::Signing;

/// Why a question cannot be asked, or its answer not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum QueryError {
    #[error("nothing is asked: give a name, as in `nonesuch query example.com SOA @192.0.2.1`")]
    NoName,
    #[error("'{0}' is one word too many: give a name, a type and @SERVER, each once")]
    Surplus(String),
    #[error("'{text}' is no domain name: {source}")]
    Name { text: String, source: NameError },
    #[error(
        "'{0}' is no type: write a mnemonic such as A, AAAA, SOA or DNSKEY, or TYPE followed by a number"
    )]
    Type(String),
    #[error("IXFR needs the serial of the zone that you have: give --ixfr SERIAL")]
    SerialNeeded,
    #[error("'@{0}' is no server: write @ADDRESS, @ADDRESS:PORT, @[IPv6 ADDRESS]:PORT or @HOST")]
    Server(String),
    #[error("{host}: the host name cannot be resolved: {source}; give the server's address")]
    Unresolved { host: String, source: io::Error },
    #[error("{}: names no server to ask (a line `nameserver ADDRESS`){}: give one as @SERVER", path.display(), because(source.as_ref()))]
    NoResolver { path: PathBuf, source: Option<io::Error> },
    #[error("{server}: the answer cannot be read: {source}; its octets: {octets}")]
    Unreadable { server: SocketAddr, source: MessageError, octets: String },
    #[error("{server}: the answer is of another question")]
    OtherQuestion { server: SocketAddr },
    #[error("{server}: the transfer is not right: {reason}")]
    Transfer { server: SocketAddr, reason: String },
    #[error("--tsig-key: {0}")]
    Key(String),
    #[error("{}: {reason}", path.display())]
    KeyFile { path: PathBuf, reason: String },
    #[error("the system gives no random octets: {0}")]
    Random(getrandom::Error),
    #[error("cannot be asked: {0}; raise the limits on open files and threads")]
    Runtime(io::Error),
}

fn because(source: Option<&io::Error>) -> String {
    source.map_or_else(String::new, |source| format!(": {source}"))
}

pub(crate) fn run(arguments: &QueryArguments) -> Result<Outcome, Failure> {
    let (question, target) = target::read_words(arguments)?;
    let signing = arguments.message.tsig_key.as_deref().map(Signing::read).transpose()?;
    let tls = arguments.transport.tls.then(|| client_tls(arguments, &target)).transpose()?;
    let asker = Asker { arguments: &arguments.transport, target: &target, tls: tls.as_ref(), signing };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(QueryError::Runtime)?;
    if matches!(question.rtype, Rtype::AXFR | Rtype::IXFR) {
        return runtime.block_on(transfer::run(arguments, &question, &asker));
    }
    let said = runtime.block_on(ask(arguments, &question, &asker))?;
    if arguments.json {
        print_line(&said.to_json().to_string())?;
    } else {
        let text = said.to_text(arguments.short);
        if !text.is_empty() {
            print_line(text.trim_end_matches('\n'))?;
        }
    }
    if arguments.short {
        // What is printed is data alone, for programs.
        said.complaints().iter().for_each(|complaint| eprintln!("nonesuch: {complaint}"));
    }
    Ok(said.outcome())
}

/// Asks, and asks again where the server first wants to see its own cookie (RFC 7873 section 5.3).
async fn ask(arguments: &QueryArguments, question: &Question, asker: &Asker<'_>) -> Result<Said, Failure> {
    let mut draft = Draft::new(&arguments.message, &arguments.transport)?;
    let first = asker.ask(question, &draft).await?;
    let said = Said::read(first, &draft)?;
    let cookie = said.options.iter().find(|option| option.code == OptionCode::COOKIE);
    match cookie {
        Some(cookie)
            if said.message.rcode() == Rcode(rcode::BADCOOKIE) && draft.takes_cookie(&cookie.data) =>
        {
            let second = asker.ask(question, &draft).await?;
            let mut said = Said::read(second, &draft)?;
            said.notes.insert(0, "asked again with the server's cookie (BADCOOKIE)".to_owned());
            Ok(said)
        }
        _ => Ok(said),
    }
}

fn client_tls(arguments: &QueryArguments, target: &Target) -> Result<ClientTls, Failure> {
    let hostname = arguments.transport.tls_hostname.as_deref().or(target.host.as_deref());
    Ok(match &arguments.transport.tls_ca {
        Some(file) => ClientTls::authenticated(file, hostname)?,
        None => ClientTls::opportunistic(hostname)?,
    })
}

/// Reads an answer.
fn read_message(octets: &[u8], server: SocketAddr) -> Result<Message, QueryError> {
    Message::parse(octets).map_err(|source| {
        let octets = data_encoding::HEXLOWER.encode(octets);
        QueryError::Unreadable { server, source, octets }
    })
}
