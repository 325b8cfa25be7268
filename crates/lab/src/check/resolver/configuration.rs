//! The configuration that lets a resolver use the servers of a check: root hints, trust anchors, servers on
//! loopback addresses, and a negative trust anchor.

use super::context::{Place, ResolverOptions, StartError, zone_options};
use crate::tree::{AnchorForm, Tree};
use nonesuch_proto::{Rtype, rdata};
use std::fmt::Write as _;
use std::str::FromStr;

/// A resolver program with a form of configuration of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolverKind {
    /// Unbound.
    Unbound,
    /// BIND.
    Bind,
    /// Knot Resolver 5.
    KnotResolver,
    /// PowerDNS Recursor 4.
    PowerDns,
    /// `nonesuch resolve`.
    Nonesuch,
}

impl ResolverKind {
    /// All kinds, with their names on the command line.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Unbound, "unbound"),
        (Self::Bind, "bind"),
        (Self::KnotResolver, "kresd"),
        (Self::PowerDns, "pdns"),
        (Self::Nonesuch, "nonesuch"),
    ];
}

impl ResolverKind {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// The text is no name of a resolver program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown resolver: write unbound, bind, kresd, pdns or nonesuch")]
pub struct UnknownResolver;

impl FromStr for ResolverKind {
    type Err = UnknownResolver;

    fn from_str(text: &str) -> Result<Self, UnknownResolver> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(kind, _)| *kind).ok_or(UnknownResolver)
    }
}

/// The files that a resolver needs: name and contents. They are the same for each run.
///
/// # Errors
/// The keys of the zones cannot be derived.
pub fn configuration(
    options: &ResolverOptions,
    kind: ResolverKind,
) -> Result<Vec<(&'static str, String)>, StartError> {
    let zones = zone_options(options, "run", 1);
    let tree = zones.constant_tree()?;
    let Place::Local { .. } = options.place else { return Ok(Vec::new()) };
    let negative = format!("nta.{}", zones.suffix);
    Ok(match kind {
        ResolverKind::Unbound => unbound(&tree, &negative),
        ResolverKind::Bind => bind(&tree, &negative),
        ResolverKind::KnotResolver => knot_resolver(&tree, &negative),
        ResolverKind::PowerDns => powerdns(&tree, &negative),
        ResolverKind::Nonesuch => nonesuch(&tree, &negative),
    })
}

/// The records that delegate the domain of a check, for the zone file of its parent: NS, the address of the
/// server, and DS.
///
/// # Errors
/// The keys of the zones cannot be derived.
pub fn delegation(options: &ResolverOptions) -> Result<String, StartError> {
    let zones = zone_options(options, "run", 1);
    let tree = zones.constant_tree()?;
    let mut text = String::new();
    if let Some(zone) = tree.zones.iter().find(|zone| zone.origin == zones.suffix) {
        let (origin, server, address) = (&zone.origin, &zone.nameserver, zone.server);
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{origin} 3600 IN NS {server}\n{server} 3600 IN A {address}\n");
        for ds in &zone.ds {
            let mut rdata = Vec::new();
            rdata::push_text(Rtype::DS, ds, &mut rdata);
            let _ = writeln!(text, "{origin} 3600 IN DS {}", String::from_utf8_lossy(&rdata));
        }
    }
    Ok(text)
}

/// The file with the root hints, which all configurations name.
const HINTS: &str = "root.hints";

fn unbound(tree: &Tree, negative: &str) -> Vec<(&'static str, String)> {
    let mut text = tree.anchors(AnchorForm::Unbound);
    let _ = write!(
        text,
        "    root-hints: \"{HINTS}\"\n    do-not-query-localhost: no\n    trust-anchor-signaling: no\n    domain-insecure: \"{negative}\"\n"
    );
    vec![(HINTS, tree.root_hints()), ("unbound-check.conf", text)]
}

fn bind(tree: &Tree, negative: &str) -> Vec<(&'static str, String)> {
    let text = format!(
        "// in options {{ }}: dnssec-validation yes; validate-except {{ \"{negative}\"; }};{port}\nzone \".\" {{ type hint; file \"{HINTS}\"; }};\n{}",
        tree.anchors(AnchorForm::Bind),
        port = if tree.port == 53 { String::new() } else { format!(" port {};", tree.port) },
    );
    vec![(HINTS, tree.root_hints()), ("named-check.conf", text)]
}

fn knot_resolver(tree: &Tree, negative: &str) -> Vec<(&'static str, String)> {
    let text = format!(
        "modules.unload('priming')\nmodules.unload('ta_update')\nmodules.unload('ta_signal_query')\n\
         modules.unload('detect_time_skew')\ntrust_anchors.remove('.')\n{}\
         trust_anchors.set_insecure({{ '{negative}' }})\nmodules.load('hints > iterate')\nhints.root_file('{HINTS}')\n",
        tree.anchors(AnchorForm::KnotResolver)
    );
    vec![(HINTS, tree.root_hints()), ("kresd-check.conf", text)]
}

fn powerdns(tree: &Tree, negative: &str) -> Vec<(&'static str, String)> {
    let settings = format!(
        "hint-file={HINTS}\nlua-config-file=check.lua\ndnssec=validate\ndont-query=\nsecurity-poll-suffix=\n\
         dont-throttle-netmasks=127.0.0.0/8\n"
    );
    let lua =
        format!("clearTA()\n{}addNTA('{negative}', 'check')\n", tree.anchors(AnchorForm::PowerDnsRecursor));
    vec![(HINTS, tree.root_hints()), ("recursor-check.conf", settings), ("check.lua", lua)]
}

fn nonesuch(tree: &Tree, negative: &str) -> Vec<(&'static str, String)> {
    let text = format!(
        "version = 1\nlisten = [\"127.0.0.1:5300\"]\nhints = \"{HINTS}\"\ntrust-anchors = \"anchor.ds\"\n\
         # With it, NSEC5 and the algorithms without a number of IANA are used.\nexperimental-algorithms = false\n\
         [negative-anchor.\"{negative}\"]\nuntil = \"2099-01-01T00:00:00Z\"\n"
    );
    vec![
        (HINTS, tree.root_hints()),
        ("anchor.ds", tree.anchors(AnchorForm::Ds)),
        ("nonesuch-check.toml", text),
    ]
}
