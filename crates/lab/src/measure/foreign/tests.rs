use super::*;

pub(crate) fn fixture() -> String {
    let row = |processor: &str, source: &str, operation: &str, count: u64| {
        format!(
            "{{\"processor\":\"{processor}\",\"model\":\"model of {processor}\",\"source\":\"{source}\",\"algorithm\":\
             \"ED25519\",\"operation\":\"{operation}\",\"count\":40,\"instructions\":{count},\"least\":{count},\
             \"greatest\":{count}}}"
        )
    };
    let rows = [
        row("arm64", "ours", "verify", 581_400),
        row("x86-64-v3", "ours", "verify", 480_000),
        row("x86-64-v3", "openssl", "verify", 1_529_000),
        row("mips64el", "openssl", "verify", 1_785_000),
        row("arm64", "ours", "sign", 122_000),
    ];
    let head = "\"counter\":\"qemu 7.2\",\"openssl\":\"3.0\",\"date\":\"2026-03-01T12:00:00Z\"";
    format!("{{{head},\"rows\":[{}]}}", rows.join(","))
}

#[test]
fn bad_files_are_refused_by_name_with_the_remedy() {
    let cases = [
        ("\"arm64\"", "\"ARM 64\"", "row 1: 'ARM 64' is not a processor such as arm64"),
        ("\"ours\"", "\"yours\"", "row 1: 'yours' is not a source: known are ours and openssl"),
        ("\"ED25519\"", "\"RSA\"", "row 1: 'RSA' is not an algorithm"),
        ("\"verify\"", "\"prove\"", "row 1: ED25519 does not support the operation prove"),
        ("\"count\":40", "\"count\":0", "row 1: impossible values: a mean of 581400 instructions"),
        ("\"least\":581400", "\"least\":581401", "row 1: impossible values: a mean of 581400 instructions"),
        ("\"x86-64-v3\"", "\"arm64\"", "row 2: duplicate row: verify of ED25519 on arm64"),
        ("\"count\":40", "\"count\":-1", "not a foreign.json of `tools/foreign`: invalid value"),
        ("\"rows\":[", "\"rows\":[],\"more\":[", "has no rows"),
        ("{", "", "not a foreign.json"),
    ];
    for (old, new, says) in cases {
        let text = fixture().replacen(old, new, 1);
        let error = parse(text.as_bytes(), Path::new("f.json")).expect_err(says).to_string();
        assert!(error.starts_with("foreign: f.json: ") && error.contains(says), "{error}");
        assert!(error.contains("tools/foreign"), "{error}");
    }
    let error = read(Path::new("/nowhere/foreign.json")).expect_err("missing").to_string();
    assert!(error.contains("/nowhere/foreign.json: cannot be read"), "{error}");
}
