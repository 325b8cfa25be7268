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

/// Returns the error of the file in which `new` replaces the first `old`.
fn refuse(old: &str, new: &str) -> ForeignError {
    let text = fixture().replacen(old, new, 1);
    let error = parse(text.as_bytes(), Path::new("f.json")).expect_err(new);
    let message = error.to_string();
    assert!(message.starts_with("foreign: f.json: ") && message.contains("tools/foreign"), "{message}");
    error
}

#[test]
fn bad_files_are_refused_by_name_with_the_remedy() {
    let ed25519: Subject = "ED25519".parse().expect("a subject");
    let numbers = |count, least| RowError::Numbers { count, instructions: 581_400, least, greatest: 581_400 };
    let cases = [
        ("\"arm64\"", "\"ARM 64\"", 1, RowError::Processor("ARM 64".to_owned())),
        ("\"ours\"", "\"yours\"", 1, RowError::Source { name: "yours".to_owned() }),
        ("\"ED25519\"", "\"RSA\"", 1, RowError::Subject("RSA".parse::<Subject>().expect_err("unknown"))),
        ("\"verify\"", "\"prove\"", 1, RowError::Absent { subject: ed25519, operation: Operation::Prove }),
        ("\"count\":40", "\"count\":0", 1, numbers(0, 581_400)),
        ("\"least\":581400", "\"least\":581401", 1, numbers(40, 581_401)),
        (
            "\"x86-64-v3\"",
            "\"arm64\"",
            2,
            RowError::Twice { subject: ed25519, operation: Operation::Verify, processor: "arm64".to_owned() },
        ),
    ];
    for (old, new, wanted_row, wanted) in cases {
        let error = refuse(old, new);
        let ForeignError::Row { row, reason, .. } = &error else { panic!("{error}") };
        assert_eq!((*row, reason), (wanted_row, &wanted));
    }
    let error = refuse("\"count\":40", "\"count\":-1");
    assert!(matches!(&error, ForeignError::Form { source, .. } if source.is_data()), "{error}");
    let error = refuse("\"rows\":[", "\"rows\":[],\"more\":[");
    assert!(matches!(error, ForeignError::Empty { .. }), "{error}");
    let error = refuse("{", "");
    assert!(matches!(error, ForeignError::Form { .. }), "{error}");
    let missing = Path::new("/nowhere/foreign.json");
    let error = read(missing).expect_err("missing");
    assert!(matches!(&error, ForeignError::Read { path, .. } if path == missing), "{error}");
}
