//! The zone of an organisation: hosts, mail, services, aliases, wildcards, some delegations.
//!
//! Each generated name has one kind, and names of different kinds consist of different words. Thus
//! an alias has no other data (RFC 1034 §3.6.2), no name is below a DNAME record (RFC 6672 §2.3),
//! and only glue is below a delegation.

use super::profile::{Kind, Organisation};
use super::random::{Permutation, Purpose, RandomStream, Streams};
use super::sink::{Sink, Text};
use super::tld::{apex, write_address, write_ds_fields};
use super::{GenerateError, GenerateOptions, Summary, outside_suffixes, write_soa};
use std::io::Write;

/// Words in host names. None contains a double letter.
const HOSTS: &[&str] = &["web", "crm", "db", "api", "vpn", "git", "cache", "node", "build", "proxy"];
/// Words in names of aliases.
const ALIASES: &[&str] = &["static", "blog", "docs", "status", "portal", "img"];
/// Services of SRV records (RFC 2782).
const SERVICES: &[(&str, u32)] =
    &[("_sip._tcp", 5060), ("_xmpp-client._tcp", 5222), ("_xmpp-server._tcp", 5269), ("_ldap._tcp", 389)];
/// Characters of base64, for DKIM keys.
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Start of a DKIM record (RFC 6376 §3.6.1), including the octets with which every 2048-bit RSA
/// public key begins.
const DKIM_BEGIN: &str = "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA";
/// Number of random characters between this start and the exponent 65537.
const DKIM_RANDOM: usize = 342;
/// Maximum length of a character-string, in octets (RFC 1035 §3.3).
const STRING_OCTETS: usize = 255;

/// The zone of an organisation, as a function from index to name.
pub(super) struct Sld<'a> {
    origin: &'a str,
    count: u64,
    seed: u64,
    organisation: &'static Organisation,
    streams: Streams,
    order: Permutation,
    /// First rank of each kind.
    starts: Vec<u64>,
    suffixes: [&'static str; 2],
}

impl<'a> Sld<'a> {
    /// Returns the minimum number of names: one of each kind.
    pub(super) fn minimum(organisation: &Organisation) -> u64 {
        organisation.kinds.len() as u64
    }

    /// Creates the zone. `options.names` must be at least [`Self::minimum`].
    pub(super) fn new(options: &GenerateOptions<'a>, organisation: &'static Organisation) -> Self {
        let kinds = organisation.kinds;
        let total: u64 = kinds.iter().map(|&(_, weight)| u64::from(weight)).sum();
        let shared_out = options.names.saturating_sub(kinds.len() as u64);
        let (mut starts, mut before) = (Vec::with_capacity(kinds.len()), 0);
        for (place, &(_, weight)) in (0..).zip(kinds) {
            starts.push(place + (u128::from(shared_out) * u128::from(before) / u128::from(total)) as u64);
            before += u64::from(weight);
        }
        Self {
            origin: options.origin,
            count: options.names,
            seed: options.seed,
            organisation,
            streams: Streams::new(options.seed, Purpose::Name),
            order: Permutation::new(options.names, options.seed ^ 0x736C_6400),
            starts,
            suffixes: outside_suffixes(options.origin),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the kind of the name at `index`, and its number within the kind.
    pub(super) fn kind(&self, index: u64) -> (Kind, u64) {
        let rank = self.order.apply(index);
        let place = self.starts.partition_point(|&start| start <= rank).saturating_sub(1);
        (self.organisation.kinds[place].0, rank - self.starts[place])
    }

    pub(super) fn write<W: Write>(&self, sink: &mut Sink<'_, W>) -> Result<Summary, GenerateError> {
        let mut summary = Summary { names: self.count, ..Summary::default() };
        self.write_apex(sink)?;
        let mut owner = Vec::with_capacity(64);
        for index in 0..self.count {
            let (kind, number) = self.kind(index);
            owner.clear();
            write_owner(kind, number, &mut owner);
            let mut draw = self.streams.draw(index);
            RecordWriter { zone: self, owner: &owner, draw: &mut draw, sink }.write(kind, number)?;
            summary.delegations += u64::from(matches!(
                kind,
                Kind::UnsignedDelegation | Kind::GluedDelegation | Kind::SignedDelegation
            ));
            summary.signed_delegations += u64::from(kind == Kind::SignedDelegation);
            summary.glued_delegations += u64::from(kind == Kind::GluedDelegation);
        }
        Ok(summary)
    }

    fn write_apex<W: Write>(&self, sink: &mut Sink<'_, W>) -> Result<(), GenerateError> {
        let mut draw = Streams::new(self.seed, Purpose::Apex).draw(0);
        sink.line().text("$ORIGIN ").text(self.origin);
        sink.end_uncounted()?;
        sink.line().text("$TTL 3600");
        sink.end_uncounted()?;
        write_soa(&self.organisation.soa, "ns1", "hostmaster", sink)?;
        let fixed = [
            "@ 86400 IN NS ns1",
            "@ 86400 IN NS ns2",
            "@ 3600 IN MX 10 mail",
            "@ 3600 IN TXT \"v=spf1 mx -all\"",
            "@ 86400 IN CAA 0 issue \"ca.example\"",
            "@ 3600 IN HTTPS 1 . alpn=h2,h3",
            "_dmarc 3600 IN TXT \"v=DMARC1; p=reject\"",
        ];
        for record in fixed {
            sink.line().text(record);
            sink.end()?;
        }
        apex(86_400, "NS", sink).text("ns3.operator.").text(self.suffixes[0]);
        sink.end()?;
        // The only DNAME record: a domain with a new name.
        sink.line().text("old 86400 IN DNAME moved.").text(self.suffixes[0]);
        sink.end()?;
        for host in ["@", "www", "mail", "ns1", "ns2"] {
            for aaaa in [false, true] {
                sink.line().text(host);
                write_address(aaaa, 3600, &mut draw, sink)?;
            }
        }
        Ok(())
    }
}

/// Appends the owner name of name `number` of a kind, relative to the origin.
pub(super) fn write_owner(kind: Kind, number: u64, out: &mut Vec<u8>) {
    let mut of_words = |words: &[&str]| {
        let count = words.len() as u64;
        out.text(words[(number % count) as usize]).decimal(number / count + 1);
    };
    match kind {
        Kind::Host => of_words(HOSTS),
        Kind::Alias => of_words(ALIASES),
        // The names of racks and sites are empty non-terminals.
        Kind::SiteHost => {
            out.text("h").decimal(number % 32 + 1).text(".rack").decimal(number / 32 % 16 + 1);
            out.text(".site").decimal(number / 512 + 1);
        }
        Kind::MailDomain => _ = out.text("dept").decimal(number + 1),
        Kind::Dkim => _ = out.text("s").decimal(number + 1).text("._domainkey"),
        Kind::Dmarc => _ = out.text("_dmarc.unit").decimal(number + 1),
        Kind::Challenge => _ = out.text("_acme-challenge.svc").decimal(number + 1),
        Kind::Service => {
            let count = SERVICES.len() as u64;
            out.text(SERVICES[(number % count) as usize].0).text(".voice").decimal(number / count + 1);
        }
        Kind::Wildcard => _ = out.text("*.apps").decimal(number + 1),
        Kind::UnsignedDelegation => _ = out.text("team").decimal(number + 1),
        Kind::GluedDelegation => _ = out.text("branch").decimal(number + 1),
        Kind::SignedDelegation => _ = out.text("lab").decimal(number + 1),
        Kind::Issuers => _ = out.text("pki").decimal(number + 1),
        Kind::Tlsa => _ = out.text("_443._tcp.tls").decimal(number + 1),
        Kind::Login => _ = out.text("login").decimal(number + 1),
        Kind::Naptr => _ = out.text("enum").decimal(number + 1),
        Kind::Https => _ = out.text("edge").decimal(number + 1),
        Kind::Svcb => _ = out.text("_dns.res").decimal(number + 1),
    }
}

/// Writes the records of one name.
struct RecordWriter<'r, 'z, 's, W: Write> {
    zone: &'r Sld<'z>,
    owner: &'r [u8],
    draw: &'r mut RandomStream,
    sink: &'r mut Sink<'s, W>,
}

impl<W: Write> RecordWriter<'_, '_, '_, W> {
    fn write(&mut self, kind: Kind, number: u64) -> Result<(), GenerateError> {
        let ttl = self.draw.weighted(self.zone.organisation.ttls);
        match kind {
            Kind::Host | Kind::SiteHost => self.addresses(ttl),
            Kind::Wildcard => self.address(false, ttl),
            Kind::Alias => self.point_at_host(ttl, "CNAME "),
            Kind::MailDomain => self.mail_domain(ttl),
            Kind::Dkim => self.dkim(ttl),
            Kind::Dmarc => self.record(ttl, "TXT \"v=DMARC1; p=quarantine; rua=mailto:dmarc@invalid\""),
            Kind::Challenge => self.challenge(),
            Kind::Service => {
                let port = SERVICES[(number % SERVICES.len() as u64) as usize].1;
                self.begin(ttl, "SRV 10 50 ").decimal(port.into()).push(b' ');
                self.host_and_end()
            }
            Kind::UnsignedDelegation => self.delegation_outside(),
            Kind::SignedDelegation => {
                self.delegation_outside()?;
                self.ds()
            }
            Kind::GluedDelegation => self.delegation_with_glue(),
            Kind::Issuers => {
                self.address(false, ttl)?;
                self.record(ttl, "CAA 0 issue \"ca.example\"")?;
                self.record(ttl, "CAA 0 iodef \"mailto:security@invalid\"")
            }
            Kind::Tlsa => self.digest(ttl, "TLSA 3 1 1 "),
            Kind::Login => {
                self.address(false, ttl)?;
                self.digest(ttl, "SSHFP 1 2 ")?;
                self.digest(ttl, "SSHFP 4 2 ")
            }
            Kind::Naptr => self.record(ttl, "NAPTR 100 10 \"s\" \"SIP+D2T\" \"\" _sip._tcp.voice1"),
            Kind::Https => {
                self.addresses(ttl)?;
                self.record(ttl, "HTTPS 1 . alpn=h2,h3")
            }
            Kind::Svcb => {
                self.begin(ttl, "SVCB 1 ");
                self.host();
                self.sink.line().text(" alpn=dot");
                Ok(self.sink.end()?)
            }
        }
    }

    fn begin(&mut self, ttl: u32, type_and_data: &str) -> &mut Vec<u8> {
        let line = self.sink.line();
        line.extend_from_slice(self.owner);
        line.text(" ").decimal(ttl.into()).text(" IN ").text(type_and_data)
    }

    fn record(&mut self, ttl: u32, type_and_data: &str) -> Result<(), GenerateError> {
        self.begin(ttl, type_and_data);
        Ok(self.sink.end()?)
    }

    fn address(&mut self, aaaa: bool, ttl: u32) -> Result<(), GenerateError> {
        self.sink.line().extend_from_slice(self.owner);
        write_address(aaaa, ttl, self.draw, self.sink)
    }

    fn addresses(&mut self, ttl: u32) -> Result<(), GenerateError> {
        self.address(false, ttl)?;
        if self.draw.per_mille(self.zone.organisation.with_aaaa) { self.address(true, ttl) } else { Ok(()) }
    }

    /// Appends a random host name of the zone. It has addresses and is not an alias, as RFC 2181
    /// §10.3 requires for MX targets.
    fn host(&mut self) {
        let hosts = self.zone.starts.get(1).copied().unwrap_or(1);
        write_owner(Kind::Host, self.draw.below_wide(hosts), self.sink.line());
    }

    fn host_and_end(&mut self) -> Result<(), GenerateError> {
        self.host();
        Ok(self.sink.end()?)
    }

    fn point_at_host(&mut self, ttl: u32, type_and_data: &str) -> Result<(), GenerateError> {
        self.begin(ttl, type_and_data);
        self.host_and_end()
    }

    fn mail_domain(&mut self, ttl: u32) -> Result<(), GenerateError> {
        self.record(ttl, "MX 10 mail")?;
        self.point_at_host(ttl, "MX 20 ")?;
        self.record(ttl, "TXT \"v=spf1 mx include:_spf.invalid -all\"")
    }

    fn dkim(&mut self, ttl: u32) -> Result<(), GenerateError> {
        let mut text = Vec::with_capacity(DKIM_BEGIN.len() + DKIM_RANDOM + 6);
        text.text(DKIM_BEGIN);
        for _ in 0..DKIM_RANDOM {
            text.push(BASE64[self.draw.below(64) as usize]);
        }
        text.text("IDAQAB");
        let line = self.begin(ttl, "TXT");
        for string in text.chunks(STRING_OCTETS) {
            line.text(" \"").extend_from_slice(string);
            line.push(b'"');
        }
        Ok(self.sink.end()?)
    }

    /// Writes a TXT record for the DNS challenge of a certificate authority (RFC 8555 §8.4).
    fn challenge(&mut self) -> Result<(), GenerateError> {
        let mut token = [0; 43];
        token.fill_with(|| BASE64[self.draw.below(62) as usize]);
        self.begin(300, "TXT \"").extend_from_slice(&token);
        self.sink.line().push(b'"');
        Ok(self.sink.end()?)
    }

    fn digest(&mut self, ttl: u32, type_and_fields: &str) -> Result<(), GenerateError> {
        let mut digest = [0; 32];
        self.draw.fill(&mut digest);
        self.begin(ttl, type_and_fields).hex(&digest);
        Ok(self.sink.end()?)
    }

    fn delegation_outside(&mut self) -> Result<(), GenerateError> {
        let operator = u64::from(self.draw.below(20));
        let suffixes = self.zone.suffixes;
        for (number, suffix) in (1..).zip(suffixes) {
            let line = self.begin(self.zone.organisation.delegation_ttl, "NS ns");
            line.decimal(number).text(".operator").decimal(operator).text(".").text(suffix);
            self.sink.end()?;
        }
        Ok(())
    }

    fn delegation_with_glue(&mut self) -> Result<(), GenerateError> {
        let ttl = self.zone.organisation.delegation_ttl;
        for number in 1..=2 {
            self.begin(ttl, "NS ns").decimal(number).push(b'.');
            self.sink.line().extend_from_slice(self.owner);
            self.sink.end()?;
        }
        for number in 1..=2 {
            for aaaa in [false, true] {
                self.sink.line().text("ns").decimal(number).push(b'.');
                self.sink.line().extend_from_slice(self.owner);
                write_address(aaaa, ttl, self.draw, self.sink)?;
            }
        }
        Ok(())
    }

    fn ds(&mut self) -> Result<(), GenerateError> {
        let algorithm = self.draw.weighted(self.zone.organisation.algorithms);
        let key_tag = self.draw.below(0xFFFF);
        self.begin(self.zone.organisation.delegation_ttl, "DS ");
        write_ds_fields(key_tag, algorithm, self.draw, self.sink.line());
        Ok(self.sink.end()?)
    }
}
