//! The zones of the soak test: small zones with versions that differ in a few records, each created
//! in its own way.

use super::common::configured::write_beside;
use super::common::{done, generate_key, made, text};
use nonesuch_proto::Rtype;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Names with addresses in each zone.
const HOSTS: u32 = 40;
/// Delegations in each zone.
const CUTS: u32 = 10;
/// One of this number of names with addresses changes with each version.
const TURNS: u32 = 8;

/// How a zone is created.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Unsigned,
    /// Signed with this denial mechanism.
    Signed(&'static str),
    Nsec5,
    /// Unsigned, with keys for the server, which uses this denial mechanism.
    Online(&'static str),
}

/// A zone that changes.
pub(crate) struct Zone {
    pub(crate) origin: &'static str,
    way: Way,
    dir: PathBuf,
}

/// A question.
pub(crate) struct Question {
    pub(crate) name: String,
    pub(crate) rtype: Rtype,
}

impl Zone {
    /// Creates a directory for the zone in `home`, with its keys.
    pub(crate) fn new(home: &Path, origin: &'static str, way: Way) -> Self {
        let dir = made(home, origin.trim_end_matches('.'));
        let keys = dir.join("keys");
        match way {
            Way::Unsigned => {}
            Way::Signed(_) | Way::Online(_) => {
                generate_key(&keys, origin, "ecdsap256sha256", &["--csk"]);
            }
            Way::Nsec5 => {
                generate_key(&keys, origin, "ecdsap256sha256", &["--nsec5", "--ksk"]);
                generate_key(&keys, origin, "ecdsap256sha256", &["--nsec5"]);
            }
        }
        Self { origin, way, dir }
    }

    /// The served file.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.join("zone")
    }

    /// The zone's table for a configuration, with `more` in it.
    pub(crate) fn table(&self, more: &str) -> String {
        let dir = self.dir.display();
        format!("[zone.\"{}\"]\nfile = \"{dir}/zone\"\n{}{more}", self.origin, self.settings())
    }

    /// The settings of the zone other than its source.
    fn settings(&self) -> String {
        let dir = self.dir.display();
        match self.way {
            Way::Nsec5 => format!("nsec5-keys = \"{dir}/vrf\"\n"),
            Way::Online(denial) => format!("denial = \"{denial}\"\nkeys = \"{dir}/keys\"\n"),
            Way::Unsigned | Way::Signed(_) => String::new(),
        }
    }

    /// Writes the version with this serial.
    pub(crate) fn write(&self, serial: u32) {
        let (plain, next, zone) = (self.dir.join("plain"), self.dir.join("next"), self.file());
        let unsigned = self.text(serial);
        let (keys, vrf) = (self.dir.join("keys"), self.dir.join("vrf"));
        let common =
            ["zone", "sign", text(&plain), "-o", self.origin, "--keys", text(&keys), "-f", text(&next)];
        let more = match self.way {
            Way::Unsigned | Way::Online(_) => return write_beside(&zone, &unsigned),
            Way::Nsec5 => vec!["--denial", "nsec5", "--nsec5-keys", text(&vrf)],
            Way::Signed(denial) if serial == 1 => vec!["--denial", denial],
            // Signatures of unchanged records are reused, because the next version differs only
            // slightly.
            Way::Signed(_) => vec!["--previous", text(&zone), "--serial", "keep"],
        };
        fs::write(&plain, unsigned).expect("written");
        done([&common[..], &more].concat());
        fs::rename(&next, &zone).expect("renamed");
    }

    fn text(&self, serial: u32) -> String {
        let mut text = format!(
            "$ORIGIN {}\n$TTL 60\n@ SOA ns h {serial} 90 30 604800 60\n@ NS ns\nns A 192.0.2.1\n*.w TXT \"x\"\nt TXT \"{serial}\"\n",
            self.origin
        );
        // Writing to a string does not fail.
        for host in 0..HOSTS {
            let turn = if (host + serial).is_multiple_of(TURNS) { serial } else { host };
            let _ = writeln!(text, "h{host} A 192.0.2.{}", turn % 250);
        }
        for cut in 0..CUTS {
            let _ = writeln!(text, "sub{cut} NS ns.sub{cut}\nns.sub{cut} A 192.0.2.9");
            if cut % 2 == 0 {
                let _ = writeln!(text, "sub{cut} DS 1 13 2 {:064}", cut);
            }
        }
        text
    }

    /// Questions of every kind: names, types, wildcards, missing names, and names below zone cuts.
    pub(crate) fn questions(&self) -> Vec<Question> {
        let mut questions = Vec::new();
        let mut push = |name: &str, rtype| {
            let name =
                if name.is_empty() { self.origin.to_owned() } else { format!("{name}.{}", self.origin) };
            questions.push(Question { name, rtype });
        };
        [Rtype::SOA, Rtype::NS, Rtype::DNSKEY].into_iter().for_each(|rtype| push("", rtype));
        push("t", Rtype::TXT);
        for host in 0..HOSTS {
            push(&format!("h{host}"), Rtype::A);
            push(&format!("h{host}"), Rtype::AAAA);
            push(&format!("none{host}"), Rtype::A);
            push(&format!("x{host}.w"), Rtype::TXT);
        }
        for cut in 0..CUTS {
            push(&format!("www.sub{cut}"), Rtype::A);
            push(&format!("sub{cut}"), Rtype::DS);
        }
        questions
    }

    /// Existing names. A label in front of them gives a missing name.
    pub(crate) fn names(&self) -> Vec<Question> {
        let host = |host| Question { name: format!("h{host}.{}", self.origin), rtype: Rtype::A };
        (0..HOSTS).map(host).collect()
    }
}

/// The questions in the file format of `nonesuch load`.
pub(crate) fn lines(questions: &[Question]) -> String {
    questions.iter().map(|question| format!("{} {}\n", question.name, question.rtype)).collect()
}
