//! `nonesuch zone stat`: prints statistics of a zone.

use crate::arguments::StatArguments;
use crate::files::print_line;
use crate::outcome::CommandOutcome;
use crate::zones::{self, ZoneError};
use indicatif::HumanCount;
use nonesuch_dnssec::statistics::{Statistics, Validity};
use nonesuch_proto::Rtype;
use nonesuch_zone::write::text_octets;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Width of the labels, in characters.
const LABEL_WIDTH: usize = 15;
/// Maximum number of lines of the histogram.
const MAX_HISTOGRAM_LINES: usize = 14;
/// Length of its longest bar, in characters.
const MAX_BAR_LENGTH: u64 = 40;

pub(crate) fn run(arguments: &StatArguments) -> Result<CommandOutcome, ZoneError> {
    let contents = zones::read_zone(&arguments.file, arguments.origin.as_ref())?;
    let now = zones::time_or_now(arguments.now);
    let statistics = Statistics::count(&contents, now);
    let text_octets = text_octets(&contents);
    let text = if arguments.json {
        as_json(&statistics, text_octets).to_string()
    } else {
        TextReport::of(&statistics, text_octets, now).lines.join("\n")
    };
    print_line(&text)?;
    Ok(CommandOutcome::Done)
}

/// Numbers of octets of records in wire form, by purpose.
struct OctetsByPurpose {
    all: u64,
    signatures: u64,
    chain: u64,
    keys: u64,
}

impl OctetsByPurpose {
    fn of(statistics: &Statistics) -> Self {
        let keys = [Rtype::DNSKEY, Rtype::CDS, Rtype::CDNSKEY];
        // Without an NSEC5 chain, a record with the type number of NSEC5KEY is ordinary data.
        let is_nsec5 = statistics.denial.as_ref().is_some_and(|denial| !denial.vrf_keys.is_empty());
        let is_key = |rtype| keys.contains(&rtype) || is_nsec5 && rtype == Rtype::NSEC5KEY;
        Self {
            all: statistics.octets(),
            signatures: statistics.octets_of(|rtype| rtype == Rtype::RRSIG),
            chain: statistics.chain_octets,
            keys: statistics.octets_of(is_key),
        }
    }
}

/// The report as text.
struct TextReport {
    lines: Vec<String>,
}

impl TextReport {
    fn of(statistics: &Statistics, text_octets: u64, now: u32) -> Self {
        let mut table = Self { lines: Vec::new() };
        table.add_zone(statistics);
        table.add_delegations(statistics);
        table.add_dnssec(statistics);
        if let Some(validity) = &statistics.validity {
            table.add_validity(validity, now);
        }
        table.add_octets(statistics, text_octets);
        table.add_types(statistics);
        table
    }

    fn add(&mut self, label: &str, text: &str) {
        self.lines.push(format!("{label:LABEL_WIDTH$}{text}"));
    }

    fn add_zone(&mut self, statistics: &Statistics) {
        let serial = statistics.serial.map_or_else(String::new, |serial| format!(", serial {serial}"));
        self.add("zone", &format!("{}{serial}", statistics.apex));
        let names = &statistics.names;
        self.add(
            "names",
            &format!(
                "{}: {} authoritative, {} delegations, {} glue, {} occluded, {} hashes",
                format_count(names.owners),
                format_count(names.authoritative),
                format_count(statistics.delegations.all),
                format_count(names.glue),
                format_count(names.occluded),
                format_count(names.hashed)
            ),
        );
        let (empty, wildcards) = (format_count(names.empty_non_terminals), format_count(names.wildcards));
        self.add("", &format!("{empty} empty non-terminals, {wildcards} wildcards"));
        let (records, rrsets) = (format_count(statistics.records()), format_count(statistics.rrsets()));
        self.add("records", &format!("{records} in {rrsets} RRsets and their signatures"));
    }

    fn add_delegations(&mut self, statistics: &Statistics) {
        let cuts = &statistics.delegations;
        if cuts.all == 0 {
            return;
        }
        self.add(
            "delegations",
            &format!(
                "{}: {} signed ({}), {} unsigned, {} with glue ({} addresses)",
                format_count(cuts.all),
                format_count(cuts.signed),
                percent(cuts.signed, cuts.all),
                format_count(cuts.all - cuts.signed),
                format_count(cuts.with_glue),
                format_count(cuts.glue_records)
            ),
        );
        self.add(
            "NS sets",
            &format!(
                "{} different, {:.2} delegations each, the most used by {}; {:.2} records each",
                format_count(cuts.ns_sets),
                cuts.all as f64 / cuts.ns_sets.max(1) as f64,
                format_count(cuts.most_shared_ns_set),
                cuts.ns_records as f64 / cuts.all as f64
            ),
        );
        let mut label = "DS";
        for ((algorithm, digest), count) in &cuts.ds {
            self.add(label, &format!("{} of keys {algorithm}, digest {digest}", format_count(*count)));
            label = "";
        }
    }

    fn add_dnssec(&mut self, statistics: &Statistics) {
        if statistics.keys.is_empty() && statistics.validity.is_none() {
            self.add("DNSSEC", "not signed");
        }
        let mut label = "keys";
        for (key, signatures) in &statistics.keys {
            self.add(label, &format!("{key}: {} signatures", format_count(*signatures)));
            label = "";
        }
        for ((tag, algorithm), signatures) in &statistics.foreign_signatures {
            self.add(
                label,
                &format!(
                    "{tag} {algorithm}, without DNSKEY record: {} signatures",
                    format_count(*signatures)
                ),
            );
            label = "";
        }
        if let Some(denial) = &statistics.denial {
            let mut text = format!("{denial}; {} records", format_count(denial.records));
            if denial.opt_out_records > 0 {
                text += &format!(", {} with the opt-out flag", format_count(denial.opt_out_records));
            }
            if denial.wildcard_records > 0 {
                text += &format!(", {} with the wildcard flag", format_count(denial.wildcard_records));
            }
            self.add("denial", &text);
            let mut label = "NSEC5 keys";
            for key in &denial.vrf_keys {
                self.add(label, &format!("{key}: {} records of the chain", format_count(key.records)));
                label = "";
            }
        }
        for zonemd in &statistics.zonemd {
            let hash = match zonemd.hash {
                1 => "SHA-384".to_owned(),
                2 => "SHA-512".to_owned(),
                other => format!("hash algorithm {other}"),
            };
            let scheme =
                if zonemd.scheme == 1 { "SIMPLE".to_owned() } else { format!("scheme {}", zonemd.scheme) };
            self.add("ZONEMD", &format!("{scheme}, {hash}, of serial {}", zonemd.serial));
        }
    }

    fn add_validity(&mut self, validity: &Validity, now: u32) {
        let range = |[first, last]: [u32; 2]| match first == last {
            true => time(first),
            false => format!("{} to {}", time(first), time(last)),
        };
        self.add("inception", &range(validity.inception));
        self.add("expiration", &range(validity.expiration));
        let (expired, early) = (format_count(validity.expired), format_count(validity.not_yet_valid));
        self.add("", &format!("at {}: {expired} signatures expired, {early} not valid yet", time(now)));
        let histogram_lines = histogram_lines(&validity.days_left);
        let max_count = histogram_lines.iter().map(|(_, _, count)| *count).max().unwrap_or(0).max(1);
        let mut label = "days left";
        for (first, last, count) in histogram_lines {
            let days = if first == last { first.to_string() } else { format!("{first} to {last}") };
            let bar = "#".repeat((count * MAX_BAR_LENGTH).div_ceil(max_count) as usize);
            self.add(label, &format!("{days:>9}  {:>12}  {bar}", format_count(count)));
            label = "";
        }
    }

    fn add_octets(&mut self, statistics: &Statistics, text_octets: u64) {
        let OctetsByPurpose { all, signatures, chain, keys } = OctetsByPurpose::of(statistics);
        self.add(
            "octets",
            &format!("{} in wire form, {} as text", format_count(all), format_count(text_octets)),
        );
        self.add(
            "",
            &format!(
                "signatures {}, chain {}, keys {}, data {}",
                percent(signatures, all),
                percent(chain, all),
                percent(keys, all),
                percent(all - signatures - chain - keys, all)
            ),
        );
        if let Some(largest) = &statistics.largest {
            let (records, octets) = (format_count(largest.records), format_count(largest.octets));
            let (owner, rtype) = (&largest.owner, largest.rtype);
            self.add(
                "largest RRset",
                &format!("{owner} {rtype}: {records} records, {octets} octets with signatures"),
            );
        }
    }

    fn add_types(&mut self, statistics: &Statistics) {
        let all = statistics.octets();
        self.lines.push(String::new());
        self.lines.push(format!(
            "{:<12}{:>14}{:>14}{:>16}{:>9}  {}",
            "type", "RRsets", "records", "octets", "share", "TTL"
        ));
        let mut types: Vec<_> = statistics.types.iter().collect();
        types.sort_by_key(|(rtype, counts)| (std::cmp::Reverse(counts.octets), **rtype));
        for (rtype, counts) in types {
            let ttl = match counts.min_ttl == counts.max_ttl {
                true => counts.min_ttl.to_string(),
                false => format!("{} to {}", counts.min_ttl, counts.max_ttl),
            };
            self.lines.push(format!(
                "{:<12}{:>14}{:>14}{:>16}{:>9}  {ttl}",
                rtype.to_string(),
                format_count(counts.rrsets),
                format_count(counts.records),
                format_count(counts.octets),
                percent(counts.octets, all)
            ));
        }
    }
}

/// First day, last day and number of signatures of each line. A line covers one day, or several
/// days if there would be more than [`MAX_HISTOGRAM_LINES`] lines. `days` has the number of
/// signatures by days until their expiration.
fn histogram_lines(days: &BTreeMap<i64, u64>) -> Vec<(i64, i64, u64)> {
    let (Some(first), Some(last)) = (days.keys().next(), days.keys().next_back()) else { return Vec::new() };
    if days.len() <= MAX_HISTOGRAM_LINES {
        return days.iter().map(|(day, count)| (*day, *day, *count)).collect();
    }
    let width = (last - first + 1 + MAX_HISTOGRAM_LINES as i64 - 1) / MAX_HISTOGRAM_LINES as i64;
    let mut histogram_lines: Vec<(i64, i64, u64)> = Vec::new();
    for (day, count) in days {
        let start = first + (day - first) / width * width;
        match histogram_lines.last_mut().filter(|bin| bin.0 == start) {
            Some(bin) => bin.2 += count,
            None => histogram_lines.push((start, start + width - 1, *count)),
        }
    }
    histogram_lines
}

/// Digits in groups of three.
fn format_count(number: u64) -> String {
    HumanCount(number).to_string()
}

fn percent(part: u64, all: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / all.max(1) as f64)
}

fn time(seconds: u32) -> String {
    jiff::Timestamp::from_second(i64::from(seconds))
        .map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

fn as_json(statistics: &Statistics, text_octets: u64) -> Value {
    let Statistics { names, delegations: cuts, .. } = statistics;
    let OctetsByPurpose { all, signatures, chain, keys } = OctetsByPurpose::of(statistics);
    let types: serde_json::Map<String, Value> = statistics
        .types
        .iter()
        .map(|(rtype, counts)| {
            let value = json!({
                "rrsets": counts.rrsets, "records": counts.records, "octets": counts.octets,
                "least_ttl": counts.min_ttl, "greatest_ttl": counts.max_ttl,
            });
            (rtype.to_string(), value)
        })
        .collect();
    let ds: Vec<Value> = cuts
        .ds
        .iter()
        .map(|((algorithm, digest), count)| json!({ "algorithm": algorithm.0, "digest": digest.0, "records": count }))
        .collect();
    json!({
        "zone": statistics.apex.to_string(), "serial": statistics.serial, "records": statistics.records(),
        "rrsets": statistics.rrsets(),
        "names": {
            "owners": names.owners, "authoritative": names.authoritative, "glue": names.glue,
            "occluded": names.occluded, "hashed": names.hashed, "empty_non_terminals": names.empty_non_terminals,
            "wildcards": names.wildcards,
        },
        "delegations": {
            "all": cuts.all, "signed": cuts.signed, "with_glue": cuts.with_glue, "glue_records": cuts.glue_records,
            "ns_records": cuts.ns_records, "ns_sets": cuts.ns_sets, "most_shared_ns_set": cuts.most_shared_ns_set, "ds": ds,
        },
        "octets": {
            "wire": all, "text": text_octets, "signatures": signatures, "chain": chain, "keys": keys,
        },
        "largest_rrset": statistics.largest.as_ref().map(|largest| json!({
            "owner": largest.owner.to_string(), "type": largest.rtype.to_string(), "records": largest.records,
            "octets": largest.octets,
        })),
        "keys": statistics.keys.iter().map(|(key, signatures)| {
            let mut value = zones::key_json(key);
            value["signatures"] = json!(signatures);
            value
        }).collect::<Vec<_>>(),
        "foreign_signatures": statistics.foreign_signatures.iter().map(|((tag, algorithm), signatures)| {
            json!({ "tag": tag, "algorithm": algorithm.0, "signatures": signatures })
        }).collect::<Vec<_>>(),
        "denial": statistics.denial.as_ref().map(zones::denial_json),
        "validity": statistics.validity.as_ref().map(|validity| json!({
            "first_inception": validity.inception[0], "last_inception": validity.inception[1],
            "first_expiration": validity.expiration[0], "last_expiration": validity.expiration[1],
            "expired": validity.expired, "not_yet_valid": validity.not_yet_valid,
            "days_left": validity.days_left.iter().map(|(day, count)| json!([day, count])).collect::<Vec<_>>(),
        })),
        "zonemd": statistics.zonemd.iter().map(|zonemd| {
            json!({ "serial": zonemd.serial, "scheme": zonemd.scheme, "hash": zonemd.hash })
        }).collect::<Vec<_>>(),
        "types": types,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in cases {
            assert_eq!(format_count(number), text);
        }
    }

    #[test]
    fn many_days_are_combined_in_one_line() {
        let few: BTreeMap<i64, u64> = [(-1, 2), (3, 4)].into();
        assert_eq!(histogram_lines(&few), [(-1, -1, 2), (3, 3, 4)]);
        let many: BTreeMap<i64, u64> = (-5..25).map(|day| (day, 1)).collect();
        let histogram_lines = histogram_lines(&many);
        assert!(histogram_lines.len() <= MAX_HISTOGRAM_LINES, "{histogram_lines:?}");
        assert_eq!(histogram_lines[0], (-5, -3, 3));
        assert_eq!(histogram_lines.iter().map(|bin| bin.2).sum::<u64>(), 30);
    }
}
