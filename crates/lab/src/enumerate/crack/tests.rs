use super::*;
use nonesuch_crypto::nsec3_hash;

const ZONE: &str = "example.";

fn words(text: &str) -> Words {
    Words::new(text.as_bytes().to_vec())
}

fn masks(texts: &[&str]) -> Vec<Mask> {
    texts.iter().map(|text| text.parse().expect("a mask")).collect()
}

fn params() -> Nsec3Params {
    Nsec3Params { salt: vec![0xab, 0xcd], iterations: 3 }
}

fn hashes(names: &[&str]) -> Vec<Hash> {
    let hash = |name: &&str| {
        let name: Name = format!("{name}.{ZONE}").parse().expect("a name");
        nsec3_hash(name.wire(), &params().salt, params().iterations)
    };
    names.iter().map(hash).collect()
}

/// Searches from `position`; returns the sorted names and the last progress.
fn crack(
    plan: &Plan,
    names: &[&str],
    position: u64,
    threads: usize,
) -> (Vec<String>, CrackProgress, CrackReport) {
    let (params, parent, hashes) = (params(), ZONE.parse().expect("a name"), hashes(names));
    let end = Instant::now() + Duration::from_secs(600);
    let search = Search { plan, params: &params, parent: &parent, hashes: &hashes, position, threads, end };
    let (mut found, mut last) = (Vec::new(), None);
    let report = run(
        &search,
        |hash, name| {
            assert!(hashes.contains(&hash));
            found.push(name.to_string());
        },
        |progress| last = Some(progress),
    );
    found.sort();
    (found, last.expect("progress at the end"), report)
}

#[test]
fn words_affixes_and_masks_find_names() {
    let list = [words("www\nmail\n*\na.b\n")];
    let plan =
        Plan::new(&list, &masks(&["old-"]), &masks(&["?d", "-[xyz]"]), &masks(&["?l?l?d"])).expect("a plan");
    let wanted = ["www", "old-mail7", "mail-y", "a.b", "ab3", "*", "zz9", "missing"];
    for threads in [1, 2] {
        let (found, progress, report) = crack(&plan, &wanted, 0, threads);
        let expected =
            ["*", "a.b", "ab3", "mail-y", "old-mail7", "www", "zz9"].map(|name| format!("{name}.example."));
        assert_eq!(found, expected);
        assert_eq!(u128::from(report.tested), plan.names());
        assert_eq!(plan.names(), 2 * 4 * (1 + 10 + 3) + 6760);
        assert!(report.complete && progress.position == plan.units() && progress.found == 7);
    }
}

#[test]
fn a_search_continues_at_a_unit() {
    let plan = Plan::new(&[words("www\nmail")], &[], &[], &masks(&["?l?l", "?d"])).expect("a plan");
    assert_eq!(plan.units(), 3);
    let (found, progress, report) = crack(&plan, &["www", "ab", "7"], 2, 1);
    assert_eq!((found, report.tested, progress.position), (vec!["7.example.".to_owned()], 10, 3));
    let (found, _, report) = crack(&plan, &["www"], 3, 1);
    assert!(found.is_empty() && report.complete && report.tested == 0);
}

#[test]
fn a_search_stops_at_its_end() {
    let plan = Plan::new(&[], &[], &[], &masks(&["?a?a?a?a?a?a?a?a"])).expect("a plan");
    let (params, parent) = (params(), ZONE.parse().expect("a name"));
    let end = Instant::now();
    let search =
        Search { plan: &plan, params: &params, parent: &parent, hashes: &[], position: 0, threads: 2, end };
    let report = run(&search, |_, _| panic!("nothing is found"), |_| {});
    assert!(!report.complete && report.tested < 1 << 26, "{report:?}");
}

#[test]
fn the_digest_names_the_plan() {
    let plan = |list: &str, suffix: &[&str], mask: &[&str]| {
        Plan::new(&[words(list)], &[], &masks(suffix), &masks(mask)).expect("a plan").digest().to_owned()
    };
    let first = plan("a\nb", &["?d"], &["?l"]);
    assert_eq!(first, plan("a\nb", &["?d"], &["?l"]));
    for other in [plan("a\nc", &["?d"], &["?l"]), plan("a\nb", &["?l"], &["?l"]), plan("a\nb", &["?d"], &[])]
    {
        assert_ne!(first, other);
    }
}

#[test]
fn candidates_are_the_names_of_the_plan() {
    let plan = Plan::new(&[words("www\n\nx..y")], &[], &masks(&["[12]"]), &masks(&["a?d"])).expect("a plan");
    let names: Vec<Vec<u8>> = plan.candidates().collect();
    assert_eq!(names.len(), 3 + 10);
    assert_eq!(names[..3], [&b"\x03www"[..], b"\x04www1", b"\x04www2"]);
}

#[test]
fn many_iterations_do_not_delay_the_end() {
    assert_eq!(names_per_step(4096, 0), 4096);
    assert!(names_per_step(4096, u16::MAX) * (u64::from(u16::MAX) + 1) <= 1 << 22);
}
