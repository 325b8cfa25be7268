//! Tests of complete zones and query files.

use super::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::process::Command;

const ORIGIN: &str = "zone.test.";

fn options(like: ZoneModel, names: u64, seed: u64) -> GenerateOptions<'static> {
    GenerateOptions { like, names, seed, origin: ORIGIN }
}

fn zone(options: &GenerateOptions<'_>) -> (Summary, String) {
    let mut out = Vec::new();
    let summary = generate(options, &mut out).unwrap();
    (summary, String::from_utf8(out).unwrap())
}

/// 64-bit FNV-1a hash.
fn digest(text: &str) -> u64 {
    text.bytes()
        .fold(0xCBF2_9CE4_8422_2325, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01B3))
}

fn absolute(name: &str) -> String {
    match name {
        "@" => ORIGIN.to_owned(),
        name if name.ends_with('.') => name.to_owned(),
        name => format!("{name}.{ORIGIN}"),
    }
}

/// Returns the records of a zone: absolute owner, type, data.
fn records(text: &str) -> Vec<(String, String, String)> {
    let record = |line: &str| {
        let mut fields = line.splitn(5, ' ');
        let (owner, ttl, class) = (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
        assert!(ttl.parse::<u32>().is_ok_and(|ttl| ttl > 0), "{line}");
        assert_eq!(class, "IN", "{line}");
        (absolute(owner), fields.next().unwrap().to_owned(), fields.next().unwrap().to_owned())
    };
    text.lines().filter(|line| !line.starts_with([';', '$'])).map(record).collect()
}

fn by_owner(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut owners = BTreeMap::<_, BTreeSet<_>>::new();
    for (owner, rtype, _) in records(text) {
        owners.entry(owner).or_default().insert(rtype);
    }
    owners
}

/// Whether a name is strictly below another.
fn is_below(name: &str, other: &str) -> bool {
    name.strip_suffix(other).is_some_and(|rest| rest.ends_with('.'))
}

/// Returns the ancestors of a name, without the name itself.
fn ancestors(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').map(move |(dot, _)| &name[dot + 1..]).filter(|rest| !rest.is_empty())
}

fn assert_share(what: &str, part: usize, whole: usize, expected: f64, tolerance: f64) {
    let share = 100.0 * part as f64 / whole as f64;
    assert!(
        (share - expected).abs() <= tolerance,
        "{what}: {share:.2} %, expected {expected} % +- {tolerance}"
    );
}

#[test]
fn the_same_options_give_the_same_octets() {
    for (like, pinned) in [(ZoneModel::Tld, PINNED_TLD), (ZoneModel::Sld, PINNED_SLD)] {
        let (summary, text) = zone(&options(like, 500, 42));
        assert_eq!(zone(&options(like, 500, 42)), (summary, text.clone()));
        assert_eq!(
            digest(&text),
            pinned,
            "the octets of a zone like {like} have changed: {:#x}",
            digest(&text)
        );
        assert_ne!(zone(&options(like, 500, 43)).1, text);
        assert_eq!(summary.octets, text.len() as u64);
        assert_eq!(summary.records, records(&text).len() as u64);
    }
}

const PINNED_TLD: u64 = 0x9b9c17ef2ad6f3a8;
const PINNED_SLD: u64 = 0x1380133d13e68a32;

#[test]
fn shares_of_a_registry_hold() {
    let (summary, text) = zone(&options(ZoneModel::Tld, 20_000, 1));
    let mut servers = HashMap::<String, Vec<String>>::new();
    let mut ds = HashMap::<String, Vec<String>>::new();
    let mut owners_with_addresses = HashSet::new();
    for (owner, rtype, data) in records(&text) {
        match rtype.as_str() {
            "NS" if owner != ORIGIN => servers.entry(owner).or_default().push(absolute(&data)),
            "DS" => ds.entry(owner).or_default().push(data),
            "A" | "AAAA" => _ = owners_with_addresses.insert(owner),
            _ => {}
        }
    }
    let total = servers.len();
    assert_eq!((total, summary.delegations), (20_000, 20_000), "each name is delegated, once");
    assert!(servers.values().all(|set| (2..=4).contains(&set.len())));
    assert!(servers.values().all(|set| set.iter().collect::<HashSet<_>>().len() == set.len()));

    let in_domain =
        servers.iter().filter(|(owner, set)| set.iter().all(|host| is_below(host, owner))).count();
    assert_share("with glue", in_domain, total, 20.0, 1.0);
    assert_eq!(in_domain as u64, summary.glued_delegations);
    let inside = servers.values().filter(|set| set.iter().any(|host| is_below(host, ORIGIN))).count();
    assert_share("served from another domain of the zone", inside - in_domain, total, 10.0, 1.0);

    assert_share("signed", ds.len(), total, 30.0, 1.0);
    assert_eq!(ds.len() as u64, summary.signed_delegations);
    let two = ds.values().filter(|set| set.len() == 2).count();
    assert_share("second DS", two, ds.len(), 6.0, 1.0);
    let algorithm = |number: &str| ds.values().filter(|set| set[0].split(' ').nth(1) == Some(number)).count();
    assert_share("algorithm 13", algorithm("13"), ds.len(), 78.0, 2.0);
    assert_share("algorithm 8", algorithm("8"), ds.len(), 20.0, 2.0);
    assert_share("algorithm 15", algorithm("15"), ds.len(), 2.0, 0.6);
    assert!(ds.values().flatten().all(|data| data.split(' ').nth(2) == Some("2") && data.len() > 64));

    let mut operators = HashMap::<&str, usize>::new();
    for set in servers.values().filter(|set| !is_below(&set[0], ORIGIN)) {
        *operators.entry(set[0].split_once('.').unwrap().1).or_default() += 1;
    }
    let mut sizes: Vec<usize> = operators.values().copied().collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let outside: usize = sizes.iter().sum();
    assert_share("the biggest operator", sizes[0], outside, 18.9, 1.0);
    assert_share("the ten biggest operators", sizes[..10].iter().sum(), outside, 60.0, 5.0);
    assert!(sizes.len() > 100, "a long tail: {}", sizes.len());

    let glue_names: HashSet<&String> =
        servers.values().flatten().filter(|host| is_below(host, ORIGIN)).collect();
    for owner in &owners_with_addresses {
        assert!(glue_names.contains(owner) || is_below(owner, "nic.zone.test."), "{owner} is no one's glue");
    }
    for (owner, set) in &servers {
        let missing = set.iter().find(|host| is_below(host, owner) && !owners_with_addresses.contains(*host));
        assert_eq!(missing, None, "{owner} lacks glue");
    }
}

#[test]
fn published_shares_of_nl_se_and_nu_hold() {
    for (like, signed, internationalised) in
        [(ZoneModel::Nl, 60.0, 0.0), (ZoneModel::Se, 55.0, 2.0), (ZoneModel::Nu, 50.0, 2.0)]
    {
        let (summary, text) = zone(&options(like, 20_000, 1));
        let total = summary.delegations as usize;
        assert_share("signed", summary.signed_delegations as usize, total, signed, 1.2);
        let owners: HashSet<String> = records(&text)
            .into_iter()
            .filter(|(_, rtype, _)| rtype == "NS")
            .map(|(owner, ..)| owner)
            .collect();
        let internationalised_names = owners.iter().filter(|owner| owner.starts_with("xn--")).count();
        assert_share("internationalised", internationalised_names, total, internationalised, 0.4);
    }
}

#[test]
fn three_companies_serve_almost_half_of_nl() {
    let (summary, text) = zone(&options(ZoneModel::Nl, 20_000, 1));
    let mut operators = HashMap::<String, HashSet<String>>::new();
    for (owner, rtype, data) in records(&text) {
        let host = absolute(&data);
        if rtype == "NS" && owner != ORIGIN && !is_below(&host, ORIGIN) {
            operators.entry(host.split_once('.').unwrap().1.to_owned()).or_default().insert(owner);
        }
    }
    let mut sizes: Vec<usize> = operators.values().map(HashSet::len).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    assert_share("three companies", sizes[..3].iter().sum(), summary.delegations as usize, 48.0, 1.5);
}

#[test]
fn a_registry_zone_is_not_sorted() {
    let (_, text) = zone(&options(ZoneModel::Tld, 1000, 1));
    let owners: Vec<String> = records(&text).into_iter().filter(|r| r.1 == "DS").map(|r| r.0).collect();
    assert!(!owners.is_sorted());
}

#[test]
fn an_organisation_has_every_type_and_keeps_the_rules() {
    for names in [18, 200, 20_000] {
        let (summary, text) = zone(&options(ZoneModel::Sld, names, 3));
        let owners = by_owner(&text);
        let types: BTreeSet<&str> = owners.values().flatten().map(String::as_str).collect();
        for rtype in
            ["A", "AAAA", "MX", "TXT", "SRV", "CNAME", "NS", "DS", "CAA", "TLSA", "SSHFP", "NAPTR", "HTTPS"]
        {
            assert!(types.contains(rtype), "{rtype} of {names}");
        }
        assert!(types.contains("SVCB") && types.contains("DNAME") && types.contains("SOA"));
        assert!(owners.keys().any(|owner| owner.starts_with("*.")));
        for (owner, types) in &owners {
            if types.contains("CNAME") {
                assert_eq!(types.len(), 1, "{owner} is an alias with other data");
            }
            for ancestor in ancestors(owner) {
                let Some(above) = owners.get(ancestor) else { continue };
                assert!(!above.contains("DNAME"), "{owner} is below a DNAME");
                let below_cut = ancestor != ORIGIN && above.contains("NS");
                assert!(
                    !below_cut || types.iter().all(|rtype| rtype == "A" || rtype == "AAAA"),
                    "{owner} is occluded"
                );
            }
        }
        let glue = owners.keys().filter(|owner| {
            ancestors(owner).any(|a| a != ORIGIN && owners.get(a).is_some_and(|t| t.contains("NS")))
        });
        // The apex, www, mail, ns1, ns2, old and _dmarc are not counted.
        assert_eq!(owners.len() as u64 - glue.count() as u64 - 7, summary.names, "{names}");
        let racks: Vec<&str> = owners
            .keys()
            .flat_map(|owner| ancestors(owner))
            .filter(|name| name.starts_with("rack"))
            .collect();
        assert!(!racks.is_empty() && racks.iter().all(|name| !owners.contains_key(*name)));
    }
}

#[test]
fn an_organisation_points_only_at_what_is_there() {
    let (_, text) = zone(&options(ZoneModel::Sld, 5000, 8));
    let owners = by_owner(&text);
    let mut long_texts = 0;
    for (owner, rtype, data) in records(&text) {
        let target = match rtype.as_str() {
            "CNAME" | "NS" => data.clone(),
            "MX" | "SRV" => data.rsplit(' ').next().unwrap().to_owned(),
            "SVCB" => data.split(' ').nth(1).unwrap().to_owned(),
            "TXT" => {
                long_texts += usize::from(data.len() > 255);
                assert!(data.split("\" \"").all(|string| string.len() <= 257), "{owner}");
                continue;
            }
            _ => continue,
        };
        let target = absolute(&target);
        assert!(!is_below(&target, ORIGIN) || owners.contains_key(&target), "{owner} {rtype} {target}");
    }
    assert!(long_texts > 50, "{long_texts}");
    let aliases = owners.values().filter(|types| types.contains("CNAME")).count();
    assert_share("aliases", aliases, 5000, 15.0, 0.5);
}

#[test]
fn names_fit_below_the_longest_origin() {
    let label = "o".repeat(59);
    let origin = format!("{label}.{label}.");
    assert_eq!(origin.len(), MAX_ORIGIN);
    for like in ZoneModel::all() {
        let (_, text) = zone(&GenerateOptions { origin: &origin, ..options(like, 20_000, 1) });
        for (owner, rtype, data) in records(&text) {
            let relative = owner.strip_suffix(ORIGIN).unwrap();
            let mut names = vec![relative];
            names.extend((rtype == "NS").then_some(data.as_str()));
            for name in names {
                let labels = name.trim_end_matches('.').split('.');
                assert!(name.len() + origin.len() < 254, "{name} is too long");
                assert!(labels.clone().all(|label| label.len() <= 63), "{name} has too long a label");
            }
        }
    }
}

#[test]
fn servers_outside_are_outside_whatever_the_origin() {
    for origin in ["example.", "test.", "a.EXAMPLE.", "b.test.", "invalid.", "nl.", "notexample."] {
        for suffix in outside_suffixes(origin) {
            let origin = origin.to_ascii_lowercase();
            assert!(origin != suffix && !is_below(&origin, suffix), "{origin} {suffix}");
        }
    }
    assert_eq!(outside_suffixes("notexample."), ["example.", "test."]);
}

#[test]
fn options_that_fit_no_zone_are_refused() {
    let refuse = |options: GenerateOptions<'_>| generate(&options, &mut Vec::new()).unwrap_err();
    let good = options(ZoneModel::Sld, 100, 1);
    let error = refuse(GenerateOptions { names: 17, ..good });
    assert!(matches!(error, GenerateError::TooFewNames { like: ZoneModel::Sld, minimum: 18 }), "{error}");
    let error = refuse(GenerateOptions { names: 0, like: ZoneModel::Tld, ..good });
    assert!(matches!(error, GenerateError::TooFewNames { like: ZoneModel::Tld, minimum: 1 }), "{error}");
    let error = refuse(GenerateOptions { names: MAX_NAMES + 1, ..good });
    assert!(matches!(error, GenerateError::TooManyNames { names } if names == MAX_NAMES + 1), "{error}");
    let error = refuse(GenerateOptions { origin: ".", ..good });
    assert!(matches!(error, GenerateError::RootOrigin), "{error}");
    for relative in ["nl", ""] {
        let error = refuse(GenerateOptions { origin: relative, ..good });
        assert!(matches!(&error, GenerateError::RelativeOrigin { origin } if origin == relative), "{error}");
    }
    let error = refuse(GenerateOptions { origin: &format!("{}.", "a.".repeat(60)), ..good });
    assert!(matches!(error, GenerateError::OriginTooLong { octets: 121 }), "{error}");
    let percent = queries(&good, 101, 1, 1, &mut Vec::new());
    assert!(matches!(percent, Err(GenerateError::DeniedPercent { percent: 101 })));
}

#[test]
fn named_checkzone_accepts_every_kind() {
    nonesuch_testing::require_peer!("named-checkzone");
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        (ZoneModel::Tld, 5000),
        (ZoneModel::Nl, 5000),
        (ZoneModel::Se, 5000),
        (ZoneModel::Nu, 5000),
        (ZoneModel::Sld, 2000),
        (ZoneModel::Tld, 1),
        (ZoneModel::Sld, 18),
    ];
    for (like, names) in kinds {
        let (summary, text) = zone(&options(like, names, 11));
        let path = folder.path().join(format!("{like}-{names}.zone"));
        std::fs::write(&path, text).unwrap();
        // Only local checks: other checks query external name servers over the network.
        let run = Command::new("named-checkzone")
            .args(["-i", "local", "-k", "fail", "-n", "fail", ORIGIN])
            .arg(&path)
            .output();
        let run = run.unwrap();
        let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success() && said.contains("OK"), "{like} {summary:?}: {said}");
        let complaints: Vec<&str> =
            said.lines().filter(|line| !line.contains("serial") && *line != "OK").collect();
        assert_eq!(complaints, Vec::<&str>::new());
    }
}

/// Returns queries as pairs of name and type.
fn ask(options: &GenerateOptions<'_>, denied_percent: u8, count: u64) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let summary = queries(options, denied_percent, count, 5, &mut out).unwrap();
    assert_eq!(summary.existing + summary.denied, count);
    lines(out)
}

fn lines(out: Vec<u8>) -> Vec<(String, String)> {
    let text = String::from_utf8(out).unwrap();
    let pair =
        |line: &str| line.split_once(' ').map(|(name, rtype)| (name.to_owned(), rtype.to_owned())).unwrap();
    text.lines().map(pair).collect()
}

/// Whether the response for a name is not NXDOMAIN: the name exists, is an empty non-terminal,
/// matches a wildcard, or is below a zone cut or DNAME record.
fn exists(owners: &BTreeMap<String, BTreeSet<String>>, name: &str) -> bool {
    let below_cut = ancestors(name).filter(|ancestor| *ancestor != ORIGIN).any(|ancestor| {
        owners.get(ancestor).is_some_and(|types| types.contains("NS") || types.contains("DNAME"))
    });
    let non_terminal = || owners.keys().any(|owner| is_below(owner, name));
    let encloser =
        ancestors(name).find(|a| owners.contains_key(*a) || owners.keys().any(|owner| is_below(owner, a)));
    let wildcard = || encloser.is_some_and(|encloser| owners.contains_key(&format!("*.{encloser}")));
    owners.contains_key(name) || below_cut || wildcard() || non_terminal()
}

#[test]
fn queries_for_existing_names_exist_and_denied_ones_do_not() {
    for like in ZoneModel::all() {
        for (names, seed) in [(18, 1), (700, 2)] {
            let options = options(like, names, seed);
            let owners = by_owner(&zone(&options).1);
            for (name, _) in ask(&options, 0, 1500) {
                assert!(exists(&owners, &name), "{like}: {name} does not exist");
            }
            for (name, _) in ask(&options, 100, 1500) {
                assert!(!exists(&owners, &name), "{like}: {name} exists");
            }
        }
    }
}

#[test]
fn queries_are_mixed_and_popular_names_come_often() {
    let options = options(ZoneModel::Tld, 20_000, 1);
    let asked = ask(&options, 40, 20_000);
    assert_eq!(asked, ask(&options, 40, 20_000));
    let delegated = by_owner(&zone(&options).1);
    let denied = asked
        .iter()
        .filter(|(name, _)| !delegated.contains_key(name.strip_prefix("www.").unwrap_or(name)))
        .count();
    assert_share("denied", denied, asked.len(), 40.0, 1.0);
    let of_type = |rtype: &str| asked.iter().filter(|(_, asked)| asked == rtype).count();
    for rtype in ["A", "AAAA", "DS", "NS", "SOA", "DNSKEY", "MX"] {
        assert!(of_type(rtype) > 0, "{rtype}");
    }
    let mut counts = HashMap::<&str, usize>::new();
    for (name, _) in &asked {
        *counts.entry(name.strip_prefix("www.").unwrap_or(name)).or_default() += 1;
    }
    counts.remove(ORIGIN);
    assert!(counts.values().max() > Some(&300), "a popular name");
    assert!(counts.values().filter(|count| **count == 1).count() > 2000, "a long tail");
}

const A: u16 = 1;
const NS: u16 = 2;
const CNAME: u16 = 5;
const SOA: u16 = 6;
const DNAME: u16 = 39;
const RRSIG: u16 = 46;
const NSEC: u16 = 47;
const NSEC3: u16 = 50;

fn ask_owners(
    origin: &str,
    owners: &[(&str, &[u16])],
    denied_percent: u8,
) -> Result<Vec<(String, String)>, GenerateError> {
    let mut out = Vec::new();
    queries_from_owners(origin, owners.iter().copied(), denied_percent, 2000, 1, &mut out)?;
    Ok(lines(out))
}

#[test]
fn a_zone_of_the_users_own_is_asked_for() {
    let owners: &[(&str, &[u16])] = &[
        ("example.", &[SOA, NS, RRSIG, NSEC]),
        ("WWW.example.", &[A, RRSIG]),
        ("alias.example.", &[CNAME]),
        ("*.w.example.", &[A]),
        ("cut.example.", &[NS, NSEC]),
        ("old.example.", &[DNAME]),
        ("0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example.", &[NSEC3, RRSIG]),
        ("private.example.", &[65_280]),
    ];
    let asked = ask_owners("example.", owners, 0).unwrap();
    let types = |suffix: &str| -> BTreeSet<&str> {
        asked.iter().filter(|(name, _)| name.ends_with(suffix)).map(|(_, rtype)| rtype.as_str()).collect()
    };
    assert_eq!(types("WWW.example."), BTreeSet::from(["A"]));
    assert_eq!(types("alias.example."), BTreeSet::from(["A"]));
    assert_eq!(types("private.example."), BTreeSet::from(["TYPE65280"]));
    assert!(types("cut.example.").contains("DS") && types("cut.example.").contains("A"));
    assert!(asked.iter().any(|(name, _)| name == "www.cut.example."));
    assert!(asked.iter().any(|(name, _)| name.ends_with(".old.example.")));
    assert!(asked.iter().any(|(name, _)| name.ends_with(".w.example.") && !name.starts_with('*')));
    assert!(
        asked.iter().all(|(name, rtype)| !name.starts_with("0p9") && rtype != "RRSIG" && rtype != "NSEC")
    );
    let denied = ask_owners("example.", owners, 100).unwrap();
    assert!(denied.iter().all(|(name, _)| name.matches('.').count() == 2 && name.ends_with(".example.")));
}

#[test]
fn names_are_denied_where_no_wildcard_answers() {
    let owners: &[(&str, &[u16])] = &[
        ("example.", &[SOA, NS]),
        ("*.example.", &[A]),
        ("cut.example.", &[NS]),
        ("a.example.", &[A]),
        ("b.example.", &[A]),
        ("*.b.example.", &[A]),
    ];
    let denied = ask_owners("example.", owners, 100).unwrap();
    assert!(denied.iter().all(|(name, _)| name.ends_with(".a.example.")), "only a has room");
    let covered = ask_owners("example.", &owners[..3], 100);
    assert!(matches!(covered, Err(GenerateError::NothingToDeny { .. })));
    assert!(ask_owners("example.", &owners[..3], 0).is_ok());
    let redirected = ask_owners("example.", &[("example.", &[SOA, NS, DNAME])], 100);
    assert!(matches!(redirected, Err(GenerateError::NothingToDeny { .. })));
    let empty = ask_owners("example.", &[], 0);
    assert!(matches!(empty, Err(GenerateError::NothingToAsk { .. })));
}

#[test]
fn the_root_zone_can_be_asked_for() {
    let owners: &[(&str, &[u16])] = &[(".", &[SOA, NS]), ("nl.", &[NS, 43]), ("se.", &[NS, 43])];
    let asked = ask_owners(".", owners, 50).unwrap();
    assert!(asked.iter().all(|(name, _)| !name.contains("..") && name.ends_with('.')));
    assert!(asked.iter().any(|(name, rtype)| name == "." && rtype == "NS"));
    assert!(asked.iter().any(|(name, _)| name == "www.nl."));
    assert!(asked.iter().filter(|(name, _)| name.len() > 8).count() > 800);
}
