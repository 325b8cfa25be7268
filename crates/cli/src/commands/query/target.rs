//! Parses the positional arguments: name, type and server.

use super::error::QueryError;
use super::message::Question;
use crate::arguments::{QueryArguments, QueryTransport};
use nonesuch_proto::{Name, Rtype};
use nonesuch_resolver::zones::{ZoneRule, ZoneRules};
use nonesuch_server::acl::{DNS_PORT, TLS_PORT};
use std::fs;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;

/// The system's list of resolvers.
const RESOLVER_LIST: &str = "/etc/resolv.conf";
/// Number of its resolvers that are used, as in resolv.conf(5).
const RESOLVERS_MAX: usize = 3;

/// The server to which the query is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Its host name, if the argument is a host name.
    pub(super) host: Option<String>,
    first: SocketAddr,
    others: Vec<SocketAddr>,
}

/// Determines which arguments are the name, the type and the server, and parses name and type.
/// Returns the server without its `@`.
pub(super) fn parse_words(arguments: &QueryArguments) -> Result<(Question, Option<&str>), QueryError> {
    let (servers, words): (Vec<&str>, Vec<&str>) =
        arguments.words.iter().map(String::as_str).partition(|word| word.starts_with('@'));
    let is_type = |word: &str| word.parse::<Rtype>().is_ok();
    let words = match words[..] {
        [first, second] if arguments.reverse.is_none() && is_type(first) && !is_type(second) => {
            vec![second, first]
        }
        _ => words,
    };
    let mut words = words.into_iter();
    let name = match arguments.reverse {
        Some(address) => read_name(&reverse_name(address))?,
        None => read_name(words.next().ok_or(QueryError::NoName)?)?,
    };
    let rtype = words.next().map(|word| word.parse().map_err(|_| QueryError::Type(word.to_owned())));
    let default = if arguments.reverse.is_some() { Rtype::PTR } else { Rtype::A };
    let rtype = match (arguments.axfr, arguments.ixfr) {
        (true, _) => Rtype::AXFR,
        (_, Some(_)) => Rtype::IXFR,
        _ => rtype.transpose()?.unwrap_or(default),
    };
    if rtype == Rtype::IXFR && arguments.ixfr.is_none() {
        return Err(QueryError::SerialNeeded);
    }
    if let Some(surplus) = words.next().or_else(|| servers.get(1).copied()) {
        return Err(QueryError::SurplusArgument(surplus.to_owned()));
    }
    let question = Question { name, rtype, class: arguments.class, serial: arguments.ixfr };
    Ok((question, servers.first().map(|server| &server[1..])))
}

/// Parses and resolves the server. Default: the first resolver of the system.
pub(super) fn find_server(server: Option<&str>, transport: &QueryTransport) -> Result<Target, QueryError> {
    let default = if transport.tls { TLS_PORT } else { DNS_PORT };
    let port = transport.port.unwrap_or(default);
    match server {
        Some(server) => read_server(server, port),
        None => system_resolver(Path::new(RESOLVER_LIST), port),
    }
}

/// Parses a server without its `@`, resolves it, and returns its first address.
pub(crate) fn first_address(server: &str) -> Result<SocketAddr, QueryError> {
    read_server(server, DNS_PORT).map(|target| target.first)
}

fn read_name(text: &str) -> Result<Name, QueryError> {
    text.parse().map_err(|source| QueryError::Name { text: text.to_owned(), source })
}

/// The owner name of the PTR record of an address (RFC 1035 section 3.5, RFC 3596 section 2.5).
fn reverse_name(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa.")
        }
        IpAddr::V6(address) => {
            let octets = address.octets();
            let digits = octets.iter().rev().map(|octet| format!("{:x}.{:x}.", octet & 15, octet >> 4));
            digits.collect::<String>() + "ip6.arpa."
        }
    }
}

/// Parses the text after the `@`. `default` is the port if the text has none. Resolves a host name.
fn read_server(text: &str, default: u16) -> Result<Target, QueryError> {
    let wrong = || QueryError::Server(text.to_owned());
    let read_port = |text: &str| text.parse::<u16>().ok().filter(|&port| port != 0).ok_or_else(wrong);
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']').ok_or_else(wrong)?;
        let port = match rest.strip_prefix(':') {
            Some(port) => read_port(port)?,
            None if rest.is_empty() => default,
            None => return Err(wrong()),
        };
        return Ok(Target::of_address(address.parse().map_err(|_| wrong())?, port));
    }
    if let Ok(address) = text.parse() {
        return Ok(Target::of_address(address, default));
    }
    let (host, port) = match text.split_once(':') {
        // The system parses an IPv6 address with a zone index, such as fe80::1%eth0.
        Some((host, port)) if !port.contains(':') => (host, read_port(port)?),
        _ => (text, default),
    };
    if host.is_empty() {
        return Err(wrong());
    }
    if let Ok(address) = host.parse() {
        return Ok(Target::of_address(address, port));
    }
    let unresolved = |source| QueryError::Unresolved { host: host.to_owned(), source };
    let mut addresses = (host, port).to_socket_addrs().map_err(unresolved)?;
    let first = addresses.next().ok_or_else(|| unresolved(std::io::ErrorKind::NotFound.into()))?;
    Ok(Target { host: Some(host.to_owned()), first, others: addresses.collect() })
}

impl Target {
    fn of_address(address: IpAddr, port: u16) -> Self {
        Self::at(SocketAddr::new(address, port))
    }

    pub(super) const fn at(first: SocketAddr) -> Self {
        Self { host: None, first, others: Vec::new() }
    }

    /// The first address, and the addresses that are used in order if it does not respond.
    pub(super) fn addresses(&self) -> (SocketAddr, &[SocketAddr]) {
        (self.first, &self.others)
    }
}

/// The rule that all names are resolved by the resolvers of the system.
pub(super) fn system_rules() -> Result<ZoneRules, QueryError> {
    let rules = ZoneRules::new([ZoneRule::forward(Name::root(), system_servers()?)]);
    rules.map_err(|source| QueryError::SystemResolvers { path: RESOLVER_LIST.into(), source })
}

/// The resolvers of the system: at least one.
pub(crate) fn system_servers() -> Result<Vec<SocketAddr>, QueryError> {
    let addresses = system_resolvers(Path::new(RESOLVER_LIST))?.into_iter();
    Ok(addresses.map(|address| SocketAddr::new(address, DNS_PORT)).collect())
}

/// The first resolver in the file `path`.
fn system_resolver(path: &Path, port: u16) -> Result<Target, QueryError> {
    // There is at least one.
    system_resolvers(path).map(|addresses| Target::of_address(addresses[0], port))
}

/// The resolvers in the file `path`: at least one.
fn system_resolvers(path: &Path) -> Result<Vec<IpAddr>, QueryError> {
    let text = fs::read_to_string(path)
        .map_err(|source| QueryError::NoResolver { path: path.to_owned(), source: Some(source) })?;
    let addresses = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        words.next().filter(|&word| word == "nameserver").and_then(|_| words.next()?.parse().ok())
    });
    let addresses: Vec<IpAddr> = addresses.take(RESOLVERS_MAX).collect();
    if addresses.is_empty() {
        return Err(QueryError::NoResolver { path: path.to_owned(), source: None });
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};
    use clap::Parser as _;
    use nonesuch_proto::NameError;

    fn read(words: &[&str]) -> Result<(Question, Target), QueryError> {
        let words = ["nonesuch", "query"].iter().chain(words);
        match Arguments::try_parse_from(words).expect("arguments").command {
            Command::Query(arguments) => {
                let (question, server) = parse_words(&arguments)?;
                Ok((question, find_server(server, &arguments.transport)?))
            }
            _ => panic!("another command"),
        }
    }

    fn server(text: &str) -> Option<String> {
        let target = read_server(text, 53).ok()?;
        Some(target.first.to_string())
    }

    #[test]
    fn arguments_are_accepted_in_any_order() {
        for words in [
            ["@127.0.0.1", "example.com", "mx"],
            ["example.com", "MX", "@127.0.0.1"],
            ["MX", "@127.0.0.1", "example.com"],
        ] {
            let (question, target) = read(&words).expect("read");
            assert_eq!((question.name.to_string(), question.rtype), ("example.com.".to_owned(), Rtype::MX));
            assert_eq!(target.first.to_string(), "127.0.0.1:53");
        }
        // A word that can be a name or a type is the name if it comes first.
        let (question, _) = read(&["mx", "a", "@127.0.0.1"]).expect("read");
        assert_eq!((question.name.to_string(), question.rtype), ("mx.".to_owned(), Rtype::A));
        let (question, target) = read(&["@::1", "--tls", "."]).expect("read");
        assert_eq!((question.name, question.rtype), (Name::root(), Rtype::A));
        assert_eq!(target.first.to_string(), "[::1]:853");
        let (question, _) = read(&["-x", "192.0.2.1", "@127.0.0.1", "--port", "5300"]).expect("read");
        assert_eq!(question.name.to_string(), "1.2.0.192.in-addr.arpa.");
        assert_eq!(question.rtype, Rtype::PTR);
        let (question, _) = read(&["-x", "2001:db8::f1", "ANY", "@127.0.0.1"]).expect("read");
        let name = "1.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.";
        assert_eq!((question.name.to_string().as_str(), question.rtype), (name, Rtype::ANY));
        let (question, _) = read(&["example.", "--ixfr", "7", "@127.0.0.1"]).expect("read");
        assert_eq!((question.rtype, question.serial), (Rtype::IXFR, Some(7)));
    }

    #[test]
    fn errors_name_the_invalid_argument() {
        let fault = |words: &[&str]| read(words).expect_err("a fault");
        assert!(matches!(fault(&["@127.0.0.1"]), QueryError::NoName));
        for (words, surplus) in [(["a", "A", "b"], "b"), (["a", "@127.0.0.1", "@127.0.0.2"], "@127.0.0.2")] {
            let error = fault(&words);
            assert!(matches!(&error, QueryError::SurplusArgument(found) if found == surplus), "{error}");
        }
        let error = fault(&["a..b", "@127.0.0.1"]);
        assert!(
            matches!(&error, QueryError::Name { text, source: NameError::EmptyLabel } if text == "a..b"),
            "{error}"
        );
        let error = fault(&["a.b", "NOTYPE", "@127.0.0.1"]);
        assert!(matches!(&error, QueryError::Type(found) if found == "NOTYPE"), "{error}");
        assert!(matches!(fault(&["a", "IXFR", "@127.0.0.1"]), QueryError::SerialNeeded));
        for server in ["[::1", "127.0.0.1:x", ""] {
            let error = fault(&["a", &format!("@{server}")]);
            assert!(matches!(&error, QueryError::Server(found) if found == server), "{error}");
        }
    }

    #[test]
    fn servers_are_parsed_in_all_forms() {
        for (text, expected) in [
            ("192.0.2.1", Some("192.0.2.1:53")),
            ("192.0.2.1:5300", Some("192.0.2.1:5300")),
            ("2001:db8::1", Some("[2001:db8::1]:53")),
            ("[2001:db8::1]", Some("[2001:db8::1]:53")),
            ("[2001:db8::1]:99", Some("[2001:db8::1]:99")),
            ("[2001:db8::1]99", None),
            ("192.0.2.1:0", None),
            (":53", None),
        ] {
            assert_eq!(server(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_resolver_of_the_system_is_found_or_the_error_names_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("resolv.conf");
        let error = system_resolver(&path, 53).expect_err("no file");
        assert!(
            matches!(&error, QueryError::NoResolver { path: found, source: Some(_) } if *found == path),
            "{error}"
        );
        fs::write(&path, "# nothing\nsearch example\n").expect("written");
        let error = system_resolver(&path, 53).expect_err("no address");
        assert!(matches!(error, QueryError::NoResolver { source: None, .. }), "{error}");
        fs::write(&path, "search example\nnameserver 192.0.2.7\nnameserver 192.0.2.8\n").expect("written");
        let target = system_resolver(&path, 53).expect("found");
        assert_eq!(target.first.to_string(), "192.0.2.7:53");
    }
}
