//! `nonesuch query`: sends one query to one server, or validates the answer itself, and prints the complete
//! response.

mod chain;
mod client;
mod error;
mod from_root;
mod message;
mod picture;
mod show;
mod target;
mod transfer;
mod tsig;

use crate::arguments::QueryArguments;
use crate::files::{print_line, print_to_stderr};
use crate::outcome::CommandOutcome;
use crate::zones::time_or_now;
pub(crate) use error::QueryError;
pub(crate) use target::{first_address, system_servers};
pub(crate) use tsig::TsigSigner;

use client::QueryClient;
use message::{QueryTemplate, Question};
use nonesuch_net::tls::ClientTls;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, Rtype};
use nonesuch_resolver::zones::ZoneRules;
use show::ParsedResponse;
use target::Target;

pub(crate) fn run(arguments: &QueryArguments) -> Result<CommandOutcome, QueryError> {
    let (question, server) = target::parse_words(arguments)?;
    picture::check(arguments.svg.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(QueryError::Runtime)?;
    if arguments.from_root {
        if let Some(server) = server {
            return Err(QueryError::ServerAndRoot(server.to_owned()));
        }
        let response = runtime.block_on(from_root::ask(arguments, &question, ZoneRules::default()))?;
        return finish_validation(&response, &question, arguments);
    }
    if server.is_none() && validates(arguments, &question) {
        let response = runtime.block_on(from_root::ask(arguments, &question, target::system_rules()?))?;
        return finish_validation(&response, &question, arguments);
    }
    if arguments.svg.is_some() {
        return Err(QueryError::SvgUnused);
    }
    if arguments.anchor.is_some() {
        return Err(QueryError::AnchorUnused);
    }
    let target = target::find_server(server, &arguments.transport)?;
    let signer = arguments.message.tsig_key.as_deref().map(TsigSigner::read).transpose()?;
    let tls = arguments.transport.tls.then(|| client_tls(arguments, &target)).transpose()?;
    let client = QueryClient { arguments: &arguments.transport, target: &target, tls: tls.as_ref(), signer };
    if matches!(question.rtype, Rtype::AXFR | Rtype::IXFR) {
        return runtime.block_on(transfer::run(arguments, &question, &client));
    }
    let response = runtime.block_on(ask(arguments, &question, &client))?;
    print_response(&response, arguments)
}

/// Whether a query without a server is validated. Options that determine how the query is sent, or that switch
/// validation off, send it to the first resolver of the system instead.
fn validates(arguments: &QueryArguments, question: &Question) -> bool {
    let QueryArguments { transport, message, .. } = arguments;
    let selects_transport = transport.tcp
        || transport.tls
        || transport.port.is_some()
        || transport.source.is_some()
        || transport.ignore_truncation;
    let selects_message = message.checking_disabled
        || message.no_recurse
        || message.cookie.is_some()
        || message.tsig_key.is_some();
    let is_transfer = matches!(question.rtype, Rtype::AXFR | Rtype::IXFR);
    question.class == Class::IN && !is_transfer && !selects_transport && !selects_message
}

/// Prints the response, and draws the chain of trust if this is wanted.
fn finish_validation(
    response: &ParsedResponse,
    question: &Question,
    arguments: &QueryArguments,
) -> Result<CommandOutcome, QueryError> {
    let outcome = print_response(response, arguments)?;
    if let Some(path) = &arguments.svg {
        let steps = response.steps.as_ref().map(|steps| steps.chain.as_slice()).unwrap_or_default();
        picture::write(path, question, steps, time_or_now(None))?;
    }
    Ok(outcome)
}

fn print_response(
    response: &ParsedResponse,
    arguments: &QueryArguments,
) -> Result<CommandOutcome, QueryError> {
    if arguments.json {
        print_line(&response.to_json().to_string())?;
    } else {
        let text = response.to_text(arguments.short);
        if !text.is_empty() {
            print_line(text.trim_end_matches('\n'))?;
        }
    }
    if arguments.short {
        // Standard output contains only the data, for programs.
        response
            .failure_reasons()
            .iter()
            .for_each(|reason| print_to_stderr(&format!("nonesuch: error: {reason}")));
    }
    Ok(response.outcome())
}

/// Sends the query, and sends it again with the server's cookie if the server requires one (RFC
/// 7873 section 5.3).
async fn ask(
    arguments: &QueryArguments,
    question: &Question,
    client: &QueryClient<'_>,
) -> Result<ParsedResponse, QueryError> {
    let mut template = QueryTemplate::new(&arguments.message, &arguments.transport)?;
    let first = client.ask(question, &template).await?;
    let response = ParsedResponse::read(first, &template)?;
    let cookie = response.options.iter().find(|option| option.code == nonesuch_proto::edns::COOKIE);
    match cookie {
        Some(cookie)
            if response.message.rcode() == Rcode::BADCOOKIE && template.add_server_cookie(&cookie.data) =>
        {
            let second = client.ask(question, &template).await?;
            let mut response = ParsedResponse::read(second, &template)?;
            response.notes.insert(0, "repeated with the server's cookie (BADCOOKIE)".to_owned());
            Ok(response)
        }
        _ => Ok(response),
    }
}

fn client_tls(arguments: &QueryArguments, target: &Target) -> Result<ClientTls, QueryError> {
    let hostname = arguments.transport.tls_hostname.as_deref().or(target.host.as_deref());
    Ok(match &arguments.transport.tls_ca {
        Some(file) => ClientTls::authenticated(file, hostname)?,
        None => ClientTls::opportunistic(hostname)?,
    })
}
