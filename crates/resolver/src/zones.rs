//! Forward zones and stub zones: parts of the name space for which the configuration names the
//! servers.

use crate::addresses::is_unusable_address;
use crate::name_map::NameMap;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Maximum number of servers of a forward or stub zone.
pub const MAX_RULE_SERVERS: usize = 64;

/// How the resolver uses the servers of a forward or stub zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneRuleKind {
    /// A forward zone: the servers are resolvers. The resolver sends them queries with RD for all
    /// names at and below the apex, and takes their answers.
    Forward {
        /// Whether the resolver resolves a name itself if no server gives a usable answer. If not,
        /// the result is SERVFAIL.
        first: bool,
    },
    /// A stub zone: the servers are authoritative for the zone. The resolver starts there and
    /// follows delegations.
    Stub,
}

/// A forward or stub zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneRule {
    /// Apex: the rule is for all names at and below it.
    pub apex: Name,
    /// Forward or stub.
    pub kind: ZoneRuleKind,
    /// Addresses and ports of the servers: 1 to [`MAX_RULE_SERVERS`].
    pub servers: Vec<SocketAddr>,
    /// Whether queries to the servers use only TCP.
    pub tcp: bool,
}

impl ZoneRule {
    /// Returns a stub zone with servers that are queried over UDP first.
    #[must_use]
    pub const fn stub(apex: Name, servers: Vec<SocketAddr>) -> Self {
        Self { apex, kind: ZoneRuleKind::Stub, servers, tcp: false }
    }

    /// Returns a forward zone with servers that are queried over UDP first. If they give no usable
    /// answer, the result is SERVFAIL.
    #[must_use]
    pub const fn forward(apex: Name, servers: Vec<SocketAddr>) -> Self {
        Self { apex, kind: ZoneRuleKind::Forward { first: false }, servers, tcp: false }
    }

    /// Returns a forward zone whose names are resolved from the root if its servers fail.
    #[must_use]
    pub const fn forward_first(apex: Name, servers: Vec<SocketAddr>) -> Self {
        Self { apex, kind: ZoneRuleKind::Forward { first: true }, servers, tcp: false }
    }

    fn check(&self) -> Result<(), ZoneRuleError> {
        let apex = || self.apex.clone();
        match self.servers.len() {
            0 => return Err(ZoneRuleError::NoServer { apex: apex() }),
            1..=MAX_RULE_SERVERS => {}
            count => return Err(ZoneRuleError::TooManyServers { apex: apex(), count }),
        }
        for (index, server) in self.servers.iter().enumerate() {
            if !is_server_address(*server) {
                return Err(ZoneRuleError::Server { apex: apex(), server: *server });
            }
            if self.servers[..index].contains(server) {
                return Err(ZoneRuleError::RepeatedServer { apex: apex(), server: *server });
            }
        }
        Ok(())
    }
}

/// Whether a server in the configuration can have this address. In contrast to addresses from zones,
/// it may be a loopback or link-local address.
fn is_server_address(server: SocketAddr) -> bool {
    let ip = server.ip();
    let is_local = match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local(),
    };
    server.port() != 0 && (is_local || !is_unusable_address(ip))
}

/// Why a forward or stub zone is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZoneRuleError {
    /// The zone has no servers.
    #[error("zone {apex}: no server: name at least one")]
    NoServer {
        /// The apex.
        apex: Name,
    },
    /// The zone has too many servers.
    #[error("zone {apex}: {count} servers: at most {MAX_RULE_SERVERS} are possible")]
    TooManyServers {
        /// The apex.
        apex: Name,
        /// The number of servers.
        count: usize,
    },
    /// A server has an address or port that no server can have.
    #[error(
        "zone {apex}: {server} cannot be the address of a server: write a unicast address and a port above 0"
    )]
    Server {
        /// The apex.
        apex: Name,
        /// The address.
        server: SocketAddr,
    },
    /// The zone has the same server twice.
    #[error("zone {apex}: server {server} is given twice: remove one")]
    RepeatedServer {
        /// The apex.
        apex: Name,
        /// The address.
        server: SocketAddr,
    },
    /// Two forward or stub zones have the same apex.
    #[error("zone {apex}: there are two forward or stub zones with this name: remove one")]
    Duplicate {
        /// The apex.
        apex: Name,
    },
}

/// The forward and stub zones of a resolver. The default has none.
#[derive(Clone, Debug, Default)]
pub struct ZoneRules {
    /// The rules by apex.
    table: NameMap<Arc<ZoneRule>>,
    /// The same rules in the order of the configuration.
    rules: Vec<Arc<ZoneRule>>,
}

impl ZoneRules {
    /// Checks the rules and returns a table of them. Their order has no effect on lookups.
    ///
    /// # Errors
    /// The first rule that is invalid, or that has the apex of an earlier rule.
    pub fn new(rules: impl IntoIterator<Item = ZoneRule>) -> Result<Self, ZoneRuleError> {
        let mut all = Self::default();
        rules.into_iter().try_for_each(|rule| all.insert(rule))?;
        Ok(all)
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// The rule is invalid, or there is one with its apex. The rules are then as before.
    pub fn insert(&mut self, rule: ZoneRule) -> Result<(), ZoneRuleError> {
        rule.check()?;
        if self.table.get(rule.apex.view()).is_some() {
            return Err(ZoneRuleError::Duplicate { apex: rule.apex });
        }
        let rule = Arc::new(rule);
        self.table.insert(rule.apex.view(), Arc::clone(&rule));
        self.rules.push(rule);
        Ok(())
    }

    /// Returns the rule with the closest apex at or above `name`.
    #[must_use]
    pub fn closest(&self, name: NameRef<'_>) -> Option<&Arc<ZoneRule>> {
        self.table.closest(name)
    }

    /// Returns the rule for a question. It is the [closest](Self::closest) rule, except for the DS
    /// RRset of an apex: this RRset is in the parent zone (RFC 4035 §3.1.4.1), so the rule for it is
    /// that of the parent. A rule for the root also has the DS RRset of the root.
    #[must_use]
    pub fn closest_for(&self, name: NameRef<'_>, rtype: Rtype) -> Option<&Arc<ZoneRule>> {
        match name.parent() {
            Some(parent) if rtype == Rtype::DS => self.closest(parent),
            _ => self.closest(name),
        }
    }

    /// Returns the stub zone with the closest apex at or above `name`: the zone where the iteration
    /// for this name starts.
    #[must_use]
    pub fn closest_stub(&self, name: NameRef<'_>) -> Option<&Arc<ZoneRule>> {
        self.table.find_map(name, |_, rule| (rule.kind == ZoneRuleKind::Stub).then_some(rule))
    }

    /// Returns the apexes of the rules that the others do not have, and of those that only the others
    /// have. An apex with two rules is returned twice.
    pub fn differences<'r>(&'r self, others: &'r Self) -> impl Iterator<Item = &'r Name> {
        let missing_in = |rules: &'r Self, from: &'r Self| {
            rules.iter().filter(|rule| from.table.get(rule.apex.view()) != Some(*rule))
        };
        missing_in(self, others).chain(missing_in(others, self)).map(|rule| &rule.apex)
    }

    /// Returns all rules, in the order of the configuration.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ZoneRule>> {
        self.rules.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn servers(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn rules() -> ZoneRules {
        let server = || servers(&["192.0.2.1:53"]);
        ZoneRules::new([
            ZoneRule::forward(name("corp.example."), server()),
            ZoneRule::stub(name("Lab.Corp.example."), server()),
            ZoneRule {
                kind: ZoneRuleKind::Forward { first: true },
                ..ZoneRule::forward(name("org."), server())
            },
            ZoneRule::forward(name("deep.lab.corp.example."), server()),
        ])
        .unwrap()
    }

    #[test]
    fn rules_that_differ_are_found() {
        let rule = |apex: &str, server: &str| ZoneRule::forward(name(apex), servers(&[server]));
        let old = ZoneRules::new([
            rule("a.", "192.0.2.1:53"),
            rule("b.", "192.0.2.1:53"),
            rule("c.", "192.0.2.1:53"),
        ]);
        let new = ZoneRules::new([
            rule("A.", "192.0.2.1:53"),
            rule("b.", "192.0.2.2:53"),
            rule("d.", "192.0.2.1:53"),
        ]);
        let (old, new) = (old.unwrap(), new.unwrap());
        let mut found: Vec<String> = old.differences(&new).map(ToString::to_string).collect();
        found.sort();
        assert_eq!(found, ["b.", "b.", "c.", "d."]);
        assert_eq!(old.differences(&old).count(), 0);
    }

    #[test]
    fn the_closest_rule_applies() {
        let rules = rules();
        let apex = |text: &str| rules.closest(name(text).view()).map(|rule| rule.apex.to_string());
        assert_eq!(apex("a.CORP.example."), Some("corp.example.".into()));
        assert_eq!(apex("a.b.lab.corp.example."), Some("Lab.Corp.example.".into()));
        assert_eq!(apex("xlab.corp.example."), Some("corp.example.".into()));
        assert_eq!(apex("example."), None);
        assert_eq!(apex("."), None);
        assert_eq!(rules.iter().count(), 4);
    }

    #[test]
    fn the_ds_rrset_of_an_apex_is_in_the_parent() {
        let rules = rules();
        let apex =
            |text: &str, rtype| rules.closest_for(name(text).view(), rtype).map(|rule| rule.apex.to_string());
        assert_eq!(apex("lab.corp.example.", Rtype::DS), Some("corp.example.".into()));
        assert_eq!(apex("lab.corp.example.", Rtype::NS), Some("Lab.Corp.example.".into()));
        assert_eq!(apex("a.lab.corp.example.", Rtype::DS), Some("Lab.Corp.example.".into()));
        assert_eq!(apex("org.", Rtype::DS), None);
        let root = ZoneRules::new([ZoneRule::forward(Name::root(), servers(&["192.0.2.1:53"]))]).unwrap();
        assert!(root.closest_for(NameRef::ROOT, Rtype::DS).is_some());
        assert!(root.closest_for(name("org.").view(), Rtype::DS).is_some());
    }

    #[test]
    fn iteration_starts_at_the_closest_stub_zone() {
        let rules = rules();
        let apex = |text: &str| rules.closest_stub(name(text).view()).map(|rule| rule.apex.to_string());
        assert_eq!(apex("x.deep.lab.corp.example."), Some("Lab.Corp.example.".into()));
        assert_eq!(apex("corp.example."), None);
    }

    #[test]
    fn invalid_rules_are_errors() {
        let new =
            |texts: &[&str]| ZoneRules::new([ZoneRule::stub(name("example."), servers(texts))]).map(drop);
        assert_eq!(new(&[]), Err(ZoneRuleError::NoServer { apex: name("example.") }));
        for text in
            ["0.0.0.0:53", "224.0.0.1:53", "255.255.255.255:53", "[::]:53", "[ff02::1]:53", "192.0.2.1:0"]
        {
            assert!(matches!(new(&[text]), Err(ZoneRuleError::Server { .. })), "{text}");
        }
        assert_eq!(new(&["127.0.0.1:5300", "[::1]:53", "[fe80::1%2]:53", "10.0.0.1:53"]), Ok(()));
        let twice = new(&["192.0.2.1:53", "192.0.2.2:53", "192.0.2.1:53"]);
        assert!(matches!(twice, Err(ZoneRuleError::RepeatedServer { .. })));
        let many: Vec<String> = (1..=65).map(|port| format!("192.0.2.1:{port}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(matches!(new(&many), Err(ZoneRuleError::TooManyServers { count: 65, .. })));
        assert_eq!(new(&many[..64]), Ok(()));
        let rule = |text| ZoneRule::forward(name(text), servers(&["192.0.2.1:53"]));
        let twice = ZoneRules::new([rule("example."), rule("EXAMPLE.")]).map(drop);
        assert_eq!(twice, Err(ZoneRuleError::Duplicate { apex: name("example.") }));
    }
}
