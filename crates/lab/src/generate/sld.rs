//! The zone of an organisation: hosts, mail, services, aliases, wildcards, some delegations.
//!
//! Each generated name has one kind, and names of different kinds consist of different words. Thus
//! an alias has no other data (RFC 1034 §3.6.2), no name is below a DNAME record (RFC 6672 §2.3),
//! and only glue is below a delegation.

use super::profile::{NameKind, SldProportions};
use super::random::{Permutation, Purpose, RandomStream, Streams};
use super::sink::{Sink, Text};
use super::tld::{begin_apex_record, write_address, write_ds_fields};
use super::{GenerateError, GenerateOptions, Summary, outside_suffixes, write_soa};
use std::io::Write;

/// Words in host names. None contains a double letter.
const HOST_WORDS: &[&str] = &["web", "crm", "db", "api", "vpn", "git", "cache", "node", "build", "proxy"];
/// Words in names of aliases.
const ALIAS_WORDS: &[&str] = &["static", "blog", "docs", "status", "portal", "img"];
/// Services of SRV records (RFC 2782).
const SERVICES: &[(&str, u32)] =
    &[("_sip._tcp", 5060), ("_xmpp-client._tcp", 5222), ("_xmpp-server._tcp", 5269), ("_ldap._tcp", 389)];
/// Characters of base64, for DKIM keys.
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Start of a DKIM record (RFC 6376 §3.6.1), including the octets with which every 2048-bit RSA
/// public key begins.
const DKIM_PREFIX: &str = "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA";
/// Number of random characters between [`DKIM_PREFIX`] and the public exponent 65537.
const DKIM_RANDOM_LETTERS: usize = 342;
/// Maximum length of a character-string, in octets (RFC 1035 §3.3).
const CHARACTER_STRING_MAX: usize = 255;

/// The zone of an organisation, as a function from index to name.
pub(super) struct Sld<'a> {
    origin: &'a str,
    count: u64,
    seed: u64,
    proportions: &'static SldProportions,
    streams: Streams,
    /// Ranks of the names: the names of a kind have consecutive ranks.
    order: Permutation,
    /// First rank of each kind.
    starts: Vec<u64>,
    /// Parents of the names of name servers outside the zone.
    suffixes: [&'static str; 2],
}

impl<'a> Sld<'a> {
    /// Returns the minimum number of names: one of each kind.
    pub(super) fn minimum_names(proportions: &SldProportions) -> u64 {
        proportions.kinds.len() as u64
    }

    /// Creates the zone. `options.names` must be at least [`Self::minimum_names`].
    pub(super) fn new(options: &GenerateOptions<'a>, proportions: &'static SldProportions) -> Self {
        let kinds = proportions.kinds;
        let total: u64 = kinds.iter().map(|&(_, weight)| u64::from(weight)).sum();
        let distributed = options.names.saturating_sub(kinds.len() as u64);
        let (mut starts, mut before) = (Vec::with_capacity(kinds.len()), 0);
        for (index, &(_, weight)) in (0..).zip(kinds) {
            starts.push(index + (u128::from(distributed) * u128::from(before) / u128::from(total)) as u64);
            before += u64::from(weight);
        }
        Self {
            origin: options.origin,
            count: options.names,
            seed: options.seed,
            proportions,
            streams: Streams::new(options.seed, Purpose::Name),
            order: Permutation::new(options.names, options.seed ^ 0x736C_6400),
            starts,
            suffixes: outside_suffixes(options.origin),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the kind of the name at `index`, and its number among the names of this kind,
    /// starting at 0.
    pub(super) fn kind(&self, index: u64) -> (NameKind, u64) {
        let rank = self.order.apply(index);
        let kind = self.starts.partition_point(|&start| start <= rank).saturating_sub(1);
        (self.proportions.kinds[kind].0, rank - self.starts[kind])
    }

    pub(super) fn write<W: Write>(&self, sink: &mut Sink<'_, W>) -> Result<Summary, GenerateError> {
        let mut summary = Summary { names: self.count, ..Summary::default() };
        self.write_apex(sink)?;
        let mut owner = Vec::with_capacity(64);
        for index in 0..self.count {
            let (kind, number) = self.kind(index);
            owner.clear();
            write_owner(kind, number, &mut owner);
            let mut random = self.streams.stream(index);
            RecordWriter { zone: self, owner: &owner, random: &mut random, sink }.write(kind, number)?;
            summary.delegations += u64::from(matches!(
                kind,
                NameKind::UnsignedDelegation | NameKind::GluedDelegation | NameKind::SignedDelegation
            ));
            summary.signed_delegations += u64::from(kind == NameKind::SignedDelegation);
            summary.glued_delegations += u64::from(kind == NameKind::GluedDelegation);
        }
        Ok(summary)
    }

    fn write_apex<W: Write>(&self, sink: &mut Sink<'_, W>) -> Result<(), GenerateError> {
        let mut random = Streams::new(self.seed, Purpose::Apex).stream(0);
        sink.line().text("$ORIGIN ").text(self.origin);
        sink.end_directive()?;
        sink.line().text("$TTL 3600");
        sink.end_directive()?;
        write_soa(&self.proportions.soa, "ns1", "hostmaster", sink)?;
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
            sink.end_entry()?;
        }
        begin_apex_record(86_400, "NS", sink).text("ns3.operator.").text(self.suffixes[0]);
        sink.end_entry()?;
        // The only DNAME record, as after the domain `old` got a new name.
        sink.line().text("old 86400 IN DNAME moved.").text(self.suffixes[0]);
        sink.end_entry()?;
        for host in ["@", "www", "mail", "ns1", "ns2"] {
            for is_aaaa in [false, true] {
                sink.line().text(host);
                write_address(is_aaaa, 3600, &mut random, sink)?;
            }
        }
        Ok(())
    }
}

/// Appends the owner name of a kind with this number (starting at 0), relative to the origin.
pub(super) fn write_owner(kind: NameKind, number: u64, out: &mut Vec<u8>) {
    let mut of_words = |words: &[&str]| {
        let count = words.len() as u64;
        out.text(words[(number % count) as usize]).decimal(number / count + 1);
    };
    match kind {
        NameKind::Host => of_words(HOST_WORDS),
        NameKind::Alias => of_words(ALIAS_WORDS),
        // Racks and sites have no records of their own: their names are empty non-terminals.
        NameKind::SiteHost => {
            out.text("h").decimal(number % 32 + 1).text(".rack").decimal(number / 32 % 16 + 1);
            out.text(".site").decimal(number / 512 + 1);
        }
        NameKind::MailDomain => _ = out.text("dept").decimal(number + 1),
        NameKind::Dkim => _ = out.text("s").decimal(number + 1).text("._domainkey"),
        NameKind::Dmarc => _ = out.text("_dmarc.unit").decimal(number + 1),
        NameKind::Challenge => _ = out.text("_acme-challenge.svc").decimal(number + 1),
        NameKind::Service => {
            let count = SERVICES.len() as u64;
            out.text(SERVICES[(number % count) as usize].0).text(".voice").decimal(number / count + 1);
        }
        NameKind::Wildcard => _ = out.text("*.apps").decimal(number + 1),
        NameKind::UnsignedDelegation => _ = out.text("team").decimal(number + 1),
        NameKind::GluedDelegation => _ = out.text("branch").decimal(number + 1),
        NameKind::SignedDelegation => _ = out.text("lab").decimal(number + 1),
        NameKind::Issuers => _ = out.text("pki").decimal(number + 1),
        NameKind::Tlsa => _ = out.text("_443._tcp.tls").decimal(number + 1),
        NameKind::Login => _ = out.text("login").decimal(number + 1),
        NameKind::Naptr => _ = out.text("enum").decimal(number + 1),
        NameKind::Https => _ = out.text("edge").decimal(number + 1),
        NameKind::Svcb => _ = out.text("_dns.res").decimal(number + 1),
    }
}

/// Writes the records of one name.
struct RecordWriter<'r, 'z, 's, W: Write> {
    zone: &'r Sld<'z>,
    owner: &'r [u8],
    random: &'r mut RandomStream,
    sink: &'r mut Sink<'s, W>,
}

impl<W: Write> RecordWriter<'_, '_, '_, W> {
    fn write(&mut self, kind: NameKind, number: u64) -> Result<(), GenerateError> {
        let ttl = self.random.weighted(self.zone.proportions.ttls);
        match kind {
            NameKind::Host | NameKind::SiteHost => self.write_addresses(ttl),
            NameKind::Wildcard => self.write_address(false, ttl),
            NameKind::Alias => self.write_record_with_host(ttl, "CNAME "),
            NameKind::MailDomain => self.write_mail_domain(ttl),
            NameKind::Dkim => self.write_dkim(ttl),
            NameKind::Dmarc => {
                self.write_record(ttl, "TXT \"v=DMARC1; p=quarantine; rua=mailto:dmarc@invalid\"")
            }
            NameKind::Challenge => self.write_challenge(),
            NameKind::Service => {
                let port = SERVICES[(number % SERVICES.len() as u64) as usize].1;
                self.begin_record(ttl, "SRV 10 50 ").decimal(port.into()).push(b' ');
                self.append_host_and_end()
            }
            NameKind::UnsignedDelegation => self.write_delegation_without_glue(),
            NameKind::SignedDelegation => {
                self.write_delegation_without_glue()?;
                self.write_ds()
            }
            NameKind::GluedDelegation => self.write_delegation_with_glue(),
            NameKind::Issuers => {
                self.write_address(false, ttl)?;
                self.write_record(ttl, "CAA 0 issue \"ca.example\"")?;
                self.write_record(ttl, "CAA 0 iodef \"mailto:security@invalid\"")
            }
            NameKind::Tlsa => self.write_digest_record(ttl, "TLSA 3 1 1 "),
            NameKind::Login => {
                self.write_address(false, ttl)?;
                self.write_digest_record(ttl, "SSHFP 1 2 ")?;
                self.write_digest_record(ttl, "SSHFP 4 2 ")
            }
            NameKind::Naptr => self.write_record(ttl, "NAPTR 100 10 \"s\" \"SIP+D2T\" \"\" _sip._tcp.voice1"),
            NameKind::Https => {
                self.write_addresses(ttl)?;
                self.write_record(ttl, "HTTPS 1 . alpn=h2,h3")
            }
            NameKind::Svcb => {
                self.begin_record(ttl, "SVCB 1 ");
                self.append_host();
                self.sink.line().text(" alpn=dot");
                Ok(self.sink.end_entry()?)
            }
        }
    }

    /// Starts a record of the name.
    fn begin_record(&mut self, ttl: u32, type_and_data: &str) -> &mut Vec<u8> {
        let line = self.sink.line();
        line.extend_from_slice(self.owner);
        line.text(" ").decimal(ttl.into()).text(" IN ").text(type_and_data)
    }

    fn write_record(&mut self, ttl: u32, type_and_data: &str) -> Result<(), GenerateError> {
        self.begin_record(ttl, type_and_data);
        Ok(self.sink.end_entry()?)
    }

    /// Writes an A record, or an AAAA record if `is_aaaa` is set.
    fn write_address(&mut self, is_aaaa: bool, ttl: u32) -> Result<(), GenerateError> {
        self.sink.line().extend_from_slice(self.owner);
        write_address(is_aaaa, ttl, self.random, self.sink)
    }

    /// Writes an A record, and for some names an AAAA record.
    fn write_addresses(&mut self, ttl: u32) -> Result<(), GenerateError> {
        self.write_address(false, ttl)?;
        if self.random.per_mille(self.zone.proportions.with_aaaa) {
            self.write_address(true, ttl)
        } else {
            Ok(())
        }
    }

    /// Appends a random host name of the zone. It has addresses and is not an alias, as RFC 2181
    /// §10.3 requires for MX targets.
    fn append_host(&mut self) {
        let hosts = self.zone.starts.get(1).copied().unwrap_or(1);
        write_owner(NameKind::Host, self.random.below_wide(hosts), self.sink.line());
    }

    fn append_host_and_end(&mut self) -> Result<(), GenerateError> {
        self.append_host();
        Ok(self.sink.end_entry()?)
    }

    fn write_record_with_host(&mut self, ttl: u32, type_and_data: &str) -> Result<(), GenerateError> {
        self.begin_record(ttl, type_and_data);
        self.append_host_and_end()
    }

    fn write_mail_domain(&mut self, ttl: u32) -> Result<(), GenerateError> {
        self.write_record(ttl, "MX 10 mail")?;
        self.write_record_with_host(ttl, "MX 20 ")?;
        self.write_record(ttl, "TXT \"v=spf1 mx include:_spf.invalid -all\"")
    }

    fn write_dkim(&mut self, ttl: u32) -> Result<(), GenerateError> {
        let mut text = Vec::with_capacity(DKIM_PREFIX.len() + DKIM_RANDOM_LETTERS + 6);
        text.text(DKIM_PREFIX);
        for _ in 0..DKIM_RANDOM_LETTERS {
            text.push(BASE64[self.random.below(64) as usize]);
        }
        text.text("IDAQAB");
        let line = self.begin_record(ttl, "TXT");
        for string in text.chunks(CHARACTER_STRING_MAX) {
            line.text(" \"").extend_from_slice(string);
            line.push(b'"');
        }
        Ok(self.sink.end_entry()?)
    }

    /// Writes a TXT record for the DNS challenge of a certificate authority (RFC 8555 §8.4).
    fn write_challenge(&mut self) -> Result<(), GenerateError> {
        let mut token = [0; 43];
        token.fill_with(|| BASE64[self.random.below(62) as usize]);
        self.begin_record(300, "TXT \"").extend_from_slice(&token);
        self.sink.line().push(b'"');
        Ok(self.sink.end_entry()?)
    }

    /// Writes a record that ends with a SHA-256 digest.
    fn write_digest_record(&mut self, ttl: u32, type_and_fields: &str) -> Result<(), GenerateError> {
        let mut digest = [0; 32];
        self.random.fill(&mut digest);
        self.begin_record(ttl, type_and_fields).hex(&digest);
        Ok(self.sink.end_entry()?)
    }

    fn write_delegation_without_glue(&mut self) -> Result<(), GenerateError> {
        let operator = u64::from(self.random.below(20));
        let suffixes = self.zone.suffixes;
        for (number, suffix) in (1..).zip(suffixes) {
            let line = self.begin_record(self.zone.proportions.delegation_ttl, "NS ns");
            line.decimal(number).text(".operator").decimal(operator).text(".").text(suffix);
            self.sink.end_entry()?;
        }
        Ok(())
    }

    fn write_delegation_with_glue(&mut self) -> Result<(), GenerateError> {
        let ttl = self.zone.proportions.delegation_ttl;
        for number in 1..=2 {
            self.begin_record(ttl, "NS ns").decimal(number).push(b'.');
            self.sink.line().extend_from_slice(self.owner);
            self.sink.end_entry()?;
        }
        for number in 1..=2 {
            for is_aaaa in [false, true] {
                self.sink.line().text("ns").decimal(number).push(b'.');
                self.sink.line().extend_from_slice(self.owner);
                write_address(is_aaaa, ttl, self.random, self.sink)?;
            }
        }
        Ok(())
    }

    fn write_ds(&mut self) -> Result<(), GenerateError> {
        let algorithm = self.random.weighted(self.zone.proportions.algorithms);
        let key_tag = self.random.below(0xFFFF);
        self.begin_record(self.zone.proportions.delegation_ttl, "DS ");
        write_ds_fields(key_tag, algorithm, self.random, self.sink.line());
        Ok(self.sink.end_entry()?)
    }
}
