//! The zone of a registry: an apex and delegations (RFC 1034 §4.2.1), which are not sorted.

use super::label::{Labels, RESERVED, write_operator_label};
use super::profile::TldProportions;
use super::random::{Permutation, Purpose, RandomStream, Streams, mix, pick_weighted};
use super::sink::{Sink, Text};
use super::{GenerateError, GenerateOptions, Summary, outside_suffixes, write_soa};
use std::io::Write;

/// Number of letters in the label of a DNS operator, which runs name servers for many delegations.
const OPERATOR_LETTERS: usize = 8;
/// Number of sets of name servers of each large operator. Delegations that use the same set have
/// the same name servers.
const LARGE_OPERATOR_SETS: u32 = 64;
/// Octets of a SHA-256 digest in a DS record (RFC 4509 §2.2).
const SHA256_OCTETS: usize = 32;

/// The name servers of a delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameServers {
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
    proportions: &'static TldProportions,
    labels: Labels,
    streams: Streams,
    /// Numbers in the labels of the operators, by index of the operator.
    operators: Permutation,
    /// Number of small operators.
    small_operators: u64,
    /// Parents of the names of name servers outside the zone.
    suffixes: [&'static str; 2],
}

impl<'a> Tld<'a> {
    pub(super) fn new(options: &GenerateOptions<'a>, proportions: &'static TldProportions) -> Self {
        Self {
            origin: options.origin,
            count: options.names,
            seed: options.seed,
            proportions,
            labels: Labels::new(options.names, &proportions.labels, options.seed),
            streams: Streams::new(options.seed, Purpose::Name),
            operators: Permutation::new(1 << 24, options.seed ^ 0x6F70),
            small_operators: (options.names / proportions.delegations_per_small_operator).clamp(16, 1 << 20),
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
            let mut random = self.streams.stream(index);
            let servers = self.name_servers(index, &mut random);
            let is_signed = random.per_mille(self.proportions.signed);
            self.write_servers(&label, servers, sink)?;
            if is_signed {
                self.write_ds(&label, &mut random, sink)?;
            }
            if let NameServers::InDomain { count } = servers {
                self.write_glue(&label, count, &mut random, sink)?;
                summary.glued_delegations += 1;
            }
            summary.signed_delegations += u64::from(is_signed);
        }
        Ok(summary)
    }

    /// Returns the name servers of a delegation. This must be the first use of the random stream of
    /// the delegation, so that the same options always result in the same zone.
    fn name_servers(&self, index: u64, random: &mut RandomStream) -> NameServers {
        let proportions = self.proportions;
        let hosters = self.count / proportions.delegations_per_hoster;
        let point = random.below(1000);
        // The first delegations are hosters, which also provide name servers for other delegations
        // of the zone. A hoster has in-domain name servers. Their glue also serves the hosted
        // domains (sibling glue, RFC 9471 §2.2). Thus delegations never depend on each other in a
        // cycle.
        if index < hosters || point < proportions.in_domain {
            return NameServers::InDomain { count: random.weighted(proportions.in_domain_counts) };
        }
        if point < proportions.in_domain + proportions.sibling && hosters > 0 {
            return NameServers::Sibling { hoster: random.zipf(hosters) };
        }
        let mut point = random.below(1000);
        for (operator, &share) in (0..).zip(proportions.large_operators) {
            if point < share {
                return NameServers::Shared { operator, set: random.below(LARGE_OPERATOR_SETS) };
            }
            point -= share;
        }
        let small = random.zipf(self.small_operators);
        NameServers::Shared {
            operator: proportions.large_operators.len() as u64 + small,
            set: random.below(3),
        }
    }

    fn write_apex<W: Write>(&self, sink: &mut Sink<'_, W>) -> Result<(), GenerateError> {
        let proportions = self.proportions;
        let reserved = std::str::from_utf8(RESERVED).unwrap_or_default();
        let mut random = Streams::new(self.seed, Purpose::Apex).stream(0);
        sink.line().text("$ORIGIN ").text(self.origin);
        sink.end_directive()?;
        sink.line().text("$TTL ").decimal(proportions.delegation_ttl.into());
        sink.end_directive()?;
        write_soa(&proportions.soa, "a.nic", "hostmaster.nic", sink)?;
        let inside_letters = || (b'a'..=b'z').take(proportions.apex_servers_inside as usize).map(char::from);
        for letter in inside_letters() {
            begin_apex_record(proportions.apex_ttl, "NS", sink).push(letter as u8);
            sink.line().text(".").text(reserved);
            sink.end_entry()?;
        }
        for number in 0..proportions.apex_servers_outside {
            begin_apex_record(proportions.apex_ttl, "NS", sink);
            self.write_shared_server(0, LARGE_OPERATOR_SETS, number, sink.line());
            sink.end_entry()?;
        }
        for text in ["\"v=spf1 -all\"", "\"This zone was generated: its names are of no one.\""] {
            begin_apex_record(proportions.soa.ttl, "TXT", sink).text(text);
            sink.end_entry()?;
        }
        for letter in inside_letters() {
            for is_aaaa in [false, true] {
                sink.line().push(letter as u8);
                sink.line().text(".").text(reserved);
                write_address(is_aaaa, proportions.apex_ttl, &mut random, sink)?;
            }
        }
        Ok(())
    }

    fn write_servers<W: Write>(
        &self,
        label: &[u8],
        servers: NameServers,
        sink: &mut Sink<'_, W>,
    ) -> Result<(), GenerateError> {
        let count = match servers {
            NameServers::InDomain { count } => count,
            NameServers::Sibling { .. } => 2,
            NameServers::Shared { operator, set } => self.servers_of_set(operator, set),
        };
        for number in 0..count {
            let line = sink.line();
            line.extend_from_slice(label);
            line.text(" ").decimal(self.proportions.delegation_ttl.into()).text(" IN NS ");
            match servers {
                NameServers::InDomain { .. } => {
                    line.text("ns").decimal(u64::from(number) + 1).push(b'.');
                    line.extend_from_slice(label);
                }
                NameServers::Sibling { hoster } => {
                    line.text("ns").decimal(u64::from(number) + 1).push(b'.');
                    self.labels.write(hoster, line);
                }
                NameServers::Shared { operator, set } => {
                    self.write_shared_server(operator, set, number, line)
                }
            }
            sink.end_entry()?;
        }
        Ok(())
    }

    /// Returns the number of name servers in a shared set. It is the same for all delegations that
    /// use the set.
    fn servers_of_set(&self, operator: u64, set: u32) -> u32 {
        let number = mix(self.seed ^ (operator << 8) ^ u64::from(set));
        pick_weighted(self.proportions.server_counts, |total| (number % u64::from(total)) as u32)
    }

    /// Appends the name of name server `number` of a shared set, which is outside the zone.
    fn write_shared_server(&self, operator: u64, set: u32, number: u32, out: &mut Vec<u8>) {
        // A set has at most four servers. Therefore the servers of an operator's sets have
        // different numbers.
        out.text("ns").decimal(u64::from(set) * 4 + u64::from(number) + 1).push(b'.');
        write_operator_label(self.operators.apply(operator), OPERATOR_LETTERS, out);
        out.text(".").text(self.suffixes[(operator % 2) as usize]);
    }

    fn write_ds<W: Write>(
        &self,
        label: &[u8],
        random: &mut RandomStream,
        sink: &mut Sink<'_, W>,
    ) -> Result<(), GenerateError> {
        let algorithm = random.weighted(self.proportions.algorithms);
        let first_tag = random.below(0xFFFF);
        let records = 1 + u32::from(random.per_mille(self.proportions.second_ds));
        for number in 0..records {
            let line = sink.line();
            line.extend_from_slice(label);
            line.text(" ").decimal(self.proportions.ds_ttl.into()).text(" IN DS ");
            // The second key has another key tag.
            write_ds_fields((first_tag + number * 257) & 0xFFFF, algorithm, random, line);
            sink.end_entry()?;
        }
        Ok(())
    }

    fn write_glue<W: Write>(
        &self,
        label: &[u8],
        count: u32,
        random: &mut RandomStream,
        sink: &mut Sink<'_, W>,
    ) -> Result<(), GenerateError> {
        let has_aaaa = random.per_mille(self.proportions.glue_with_aaaa);
        for number in 0..count {
            for is_aaaa in [false, true].into_iter().take(1 + usize::from(has_aaaa)) {
                sink.line().text("ns").decimal(u64::from(number) + 1).push(b'.');
                sink.line().extend_from_slice(label);
                write_address(is_aaaa, self.proportions.delegation_ttl, random, sink)?;
            }
        }
        Ok(())
    }
}

/// Starts a record of the apex. The caller appends the RDATA and ends the line.
pub(super) fn begin_apex_record<'s, W: Write>(
    ttl: u32,
    rtype: &str,
    sink: &'s mut Sink<'_, W>,
) -> &'s mut Vec<u8> {
    sink.line().text("@ ").decimal(ttl.into()).text(" IN ").text(rtype).text(" ")
}

/// Appends an address record to a line that contains only the owner name, and ends the line.
pub(super) fn write_address<W: Write>(
    is_aaaa: bool,
    ttl: u32,
    random: &mut RandomStream,
    sink: &mut Sink<'_, W>,
) -> Result<(), GenerateError> {
    let number = random.next_u64() as u32;
    let line = sink.line();
    line.text(" ").decimal(ttl.into());
    if is_aaaa {
        line.text(" IN AAAA ").address_v6(number);
    } else {
        line.text(" IN A ").address_v4(number);
    }
    sink.end_entry()?;
    Ok(())
}

/// Appends the RDATA of a DS record with a SHA-256 digest (RFC 4034 §5.3; digest type 2 of RFC
/// 4509).
pub(super) fn write_ds_fields(key_tag: u32, algorithm: u8, random: &mut RandomStream, out: &mut Vec<u8>) {
    let mut digest = [0; SHA256_OCTETS];
    random.fill(&mut digest);
    out.decimal(key_tag.into()).text(" ").decimal(algorithm.into()).text(" 2 ").hex(&digest);
}
