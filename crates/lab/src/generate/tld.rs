//! The zone of a registry: an apex and delegations (RFC 1034 §4.2.1), which are not sorted.

use super::label::{Labels, RESERVED, write_operator};
use super::profile::Registry;
use super::random::{Permutation, Purpose, RandomStream, Streams, mix, pick};
use super::sink::{Sink, Text};
use super::{GenerateError, GenerateOptions, Summary, outside_suffixes, write_soa};
use std::io::Write;

/// Number of letters in the label of an operator.
const OPERATOR_LETTERS: usize = 8;
/// Number of name server sets of each large operator.
const SETS_OF_BIG: u32 = 64;
/// Octets of a SHA-256 digest in a DS record (RFC 4509 §2.2).
const SHA256_OCTETS: usize = 32;

/// The name servers of a delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Servers {
    /// Name servers below the delegation, with glue.
    InDomain { count: u32 },
    /// Name servers below another delegation of the zone.
    Sibling { hoster: u64 },
    /// A shared set of name servers outside the zone.
    Shared { operator: u64, set: u32 },
}

/// The zone of a registry, as a function from index to delegation.
pub(super) struct Tld<'a> {
    origin: &'a str,
    count: u64,
    seed: u64,
    registry: &'static Registry,
    labels: Labels,
    streams: Streams,
    operators: Permutation,
    small_operators: u64,
    suffixes: [&'static str; 2],
}

impl<'a> Tld<'a> {
    pub(super) fn new(options: &GenerateOptions<'a>, registry: &'static Registry) -> Self {
        Self {
            origin: options.origin,
            count: options.names,
            seed: options.seed,
            registry,
            labels: Labels::new(options.names, &registry.labels, options.seed),
            streams: Streams::new(options.seed, Purpose::Name),
            operators: Permutation::new(1 << 24, options.seed ^ 0x6F70),
            small_operators: (options.names / registry.delegations_per_small_operator).clamp(16, 1 << 20),
            suffixes: outside_suffixes(options.origin),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn write_label(&self, index: u64, out: &mut Vec<u8>) {
        self.labels.write(index, out);
    }

    pub(super) fn write<W: Write>(&self, sink: &mut Sink<'_, W>) -> Result<Summary, GenerateError> {
        let mut summary = Summary { names: self.count, delegations: self.count, ..Summary::default() };
        self.write_apex(sink)?;
        let mut label = Vec::with_capacity(64);
        for index in 0..self.count {
            label.clear();
            self.labels.write(index, &mut label);
            let mut draw = self.streams.draw(index);
            let servers = self.servers(index, &mut draw);
            let signed = draw.per_mille(self.registry.signed);
            self.write_servers(&label, servers, sink)?;
            if signed {
                self.write_ds(&label, &mut draw, sink)?;
            }
            if let Servers::InDomain { count } = servers {
                self.write_glue(&label, count, &mut draw, sink)?;
                summary.glued_delegations += 1;
            }
            summary.signed_delegations += u64::from(signed);
        }
        Ok(summary)
    }

    /// Returns the name servers of a name. This must be the first use of the name's random stream.
    fn servers(&self, index: u64, draw: &mut RandomStream) -> Servers {
        let registry = self.registry;
        let hosters = self.count / registry.hoster_in;
        let point = draw.below(1000);
        // A hoster has in-domain name servers. Their glue also serves the hosted domains (sibling
        // glue, RFC 9471 §2.2). Thus delegations never depend on each other in a cycle.
        if index < hosters || point < registry.in_domain {
            return Servers::InDomain { count: draw.weighted(registry.in_domain_counts) };
        }
        if point < registry.in_domain + registry.sibling && hosters > 0 {
            return Servers::Sibling { hoster: draw.zipf(hosters) };
        }
        let mut point = draw.below(1000);
        for (operator, &share) in (0..).zip(registry.big_operators) {
            if point < share {
                return Servers::Shared { operator, set: draw.below(SETS_OF_BIG) };
            }
            point -= share;
        }
        let small = draw.zipf(self.small_operators);
        Servers::Shared { operator: registry.big_operators.len() as u64 + small, set: draw.below(3) }
    }

    fn write_apex<W: Write>(&self, sink: &mut Sink<'_, W>) -> Result<(), GenerateError> {
        let registry = self.registry;
        let reserved = std::str::from_utf8(RESERVED).unwrap_or_default();
        let mut draw = Streams::new(self.seed, Purpose::Apex).draw(0);
        sink.line().text("$ORIGIN ").text(self.origin);
        sink.end_uncounted()?;
        sink.line().text("$TTL ").decimal(registry.delegation_ttl.into());
        sink.end_uncounted()?;
        write_soa(&registry.soa, "a.nic", "hostmaster.nic", sink)?;
        let inside = || (b'a'..=b'z').take(registry.apex_servers_inside as usize).map(char::from);
        for letter in inside() {
            apex(registry.apex_ttl, "NS", sink).push(letter as u8);
            sink.line().text(".").text(reserved);
            sink.end()?;
        }
        for number in 0..registry.apex_servers_outside {
            apex(registry.apex_ttl, "NS", sink);
            self.write_shared(0, SETS_OF_BIG, number, sink.line());
            sink.end()?;
        }
        for text in ["\"v=spf1 -all\"", "\"This zone was generated: its names are of no one.\""] {
            apex(registry.soa.ttl, "TXT", sink).text(text);
            sink.end()?;
        }
        for letter in inside() {
            for aaaa in [false, true] {
                sink.line().push(letter as u8);
                sink.line().text(".").text(reserved);
                write_address(aaaa, registry.apex_ttl, &mut draw, sink)?;
            }
        }
        Ok(())
    }

    fn write_servers<W: Write>(
        &self,
        label: &[u8],
        servers: Servers,
        sink: &mut Sink<'_, W>,
    ) -> Result<(), GenerateError> {
        let count = match servers {
            Servers::InDomain { count } => count,
            Servers::Sibling { .. } => 2,
            Servers::Shared { operator, set } => self.servers_of_set(operator, set),
        };
        for number in 0..count {
            let line = sink.line();
            line.extend_from_slice(label);
            line.text(" ").decimal(self.registry.delegation_ttl.into()).text(" IN NS ");
            match servers {
                Servers::InDomain { .. } => {
                    line.text("ns").decimal(u64::from(number) + 1).push(b'.');
                    line.extend_from_slice(label);
                }
                Servers::Sibling { hoster } => {
                    line.text("ns").decimal(u64::from(number) + 1).push(b'.');
                    self.labels.write(hoster, line);
                }
                Servers::Shared { operator, set } => self.write_shared(operator, set, number, line),
            }
            sink.end()?;
        }
        Ok(())
    }

    /// Returns the number of name servers in a shared set. It is the same for all delegations that
    /// use the set.
    fn servers_of_set(&self, operator: u64, set: u32) -> u32 {
        let number = mix(self.seed ^ (operator << 8) ^ u64::from(set));
        pick(self.registry.server_counts, |total| (number % u64::from(total)) as u32)
    }

    /// Appends the name of a name server outside the zone.
    fn write_shared(&self, operator: u64, set: u32, number: u32, out: &mut Vec<u8>) {
        // A set has at most four servers. Therefore the servers of an operator's sets have
        // different numbers.
        out.text("ns").decimal(u64::from(set) * 4 + u64::from(number) + 1).push(b'.');
        write_operator(self.operators.apply(operator), OPERATOR_LETTERS, out);
        out.text(".").text(self.suffixes[(operator % 2) as usize]);
    }

    fn write_ds<W: Write>(
        &self,
        label: &[u8],
        draw: &mut RandomStream,
        sink: &mut Sink<'_, W>,
    ) -> Result<(), GenerateError> {
        let algorithm = draw.weighted(self.registry.algorithms);
        let first_tag = draw.below(0xFFFF);
        let records = 1 + u32::from(draw.per_mille(self.registry.second_ds));
        for number in 0..records {
            let line = sink.line();
            line.extend_from_slice(label);
            line.text(" ").decimal(self.registry.ds_ttl.into()).text(" IN DS ");
            // The second key has another key tag.
            write_ds_fields((first_tag + number * 257) & 0xFFFF, algorithm, draw, line);
            sink.end()?;
        }
        Ok(())
    }

    fn write_glue<W: Write>(
        &self,
        label: &[u8],
        count: u32,
        draw: &mut RandomStream,
        sink: &mut Sink<'_, W>,
    ) -> Result<(), GenerateError> {
        let with_aaaa = draw.per_mille(self.registry.glue_with_aaaa);
        for number in 0..count {
            for aaaa in [false, true].into_iter().take(1 + usize::from(with_aaaa)) {
                sink.line().text("ns").decimal(u64::from(number) + 1).push(b'.');
                sink.line().extend_from_slice(label);
                write_address(aaaa, self.registry.delegation_ttl, draw, sink)?;
            }
        }
        Ok(())
    }
}

/// Starts a record of the apex.
pub(super) fn apex<'s, W: Write>(ttl: u32, rtype: &str, sink: &'s mut Sink<'_, W>) -> &'s mut Vec<u8> {
    sink.line().text("@ ").decimal(ttl.into()).text(" IN ").text(rtype).text(" ")
}

/// Appends an address record to a line that contains only the owner name, and ends the line.
pub(super) fn write_address<W: Write>(
    aaaa: bool,
    ttl: u32,
    draw: &mut RandomStream,
    sink: &mut Sink<'_, W>,
) -> Result<(), GenerateError> {
    let random = draw.bits() as u32;
    let line = sink.line();
    line.text(" ").decimal(ttl.into());
    if aaaa {
        line.text(" IN AAAA ").address_v6(random);
    } else {
        line.text(" IN A ").address_v4(random);
    }
    sink.end()?;
    Ok(())
}

/// Appends the RDATA of a DS record with a SHA-256 digest (RFC 4034 §5.3; digest type 2 of RFC
/// 4509).
pub(super) fn write_ds_fields(key_tag: u32, algorithm: u8, draw: &mut RandomStream, out: &mut Vec<u8>) {
    let mut digest = [0; SHA256_OCTETS];
    draw.fill(&mut digest);
    out.decimal(key_tag.into()).text(" ").decimal(algorithm.into()).text(" 2 ").hex(&digest);
}
