//! Tests of the table of programs.

use super::*;
use std::path::PathBuf;

fn work(denial: Mechanism) -> Work<'static> {
    Work {
        program: Path::new("/bin/nonesuch"),
        zone: Path::new("/z/zone"),
        directory: PathBuf::from("/k"),
        key_names: vec!["Kexample.+013+00001".to_owned(), "Kexample.+013+00002".to_owned()],
        choice: AlgorithmChoice { algorithm: Algorithm::RSASHA256, bits: Some(2048) },
        denial,
    }
}

#[test]
fn names_are_different_and_the_own_signer_is_first() {
    assert_eq!((PROGRAMS[0].name, PROGRAMS[0].task), ("nonesuch zone sign", Task::Sign));
    assert_eq!(deduplicate(PROGRAMS.iter().map(|program| program.name)).len(), PROGRAMS.len());
    assert_eq!(PROGRAMS[0].find(), Ok(()));
}

#[test]
fn signers_get_the_denial_mechanism() {
    let words = |program: usize, denial| {
        let command = PROGRAMS[program].command(&work(denial)).expect("a command");
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    };
    assert!(
        words(0, Mechanism::Nsec3OptOut).contains("--denial nsec3-opt-out --keys /k -f /k/nonesuch.signed")
    );
    assert!(!words(2, Mechanism::Nsec).contains("-n"));
    assert!(words(2, Mechanism::Nsec3).contains("-n -t 0 /z/zone Kexample.+013+00001"));
    assert!(words(2, Mechanism::Nsec3OptOut).contains("-n -t 0 -p"));
    assert!(words(3, Mechanism::Nsec3OptOut).contains("-3 - -H 0 -A /z/zone"));
    let text = programs::knot_configuration(&work(Mechanism::Nsec3), Path::new("/k/knot"));
    for line in
        ["algorithm: RSASHA256", "nsec3: on", "nsec3-opt-out: off", "ksk-size: 2048", "file: \"/z/zone\""]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
}
