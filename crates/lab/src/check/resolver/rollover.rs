//! A roll of the key of the root with a moved clock (RFC 5011): the check starts a resolver again and again,
//! with the same state and a later time, and changes the keys of the root.
//!
//! The clock is that of libfaketime, which the resolver loads. The root is not that of the other items.

use super::super::authority::{Authority, Content};
use super::super::signing::Unsigned;
use super::super::{CheckClient, Evidence};
use super::context::lookup;
use super::program::ProgramOptions;
use super::{ResolverKind, StartError};
use crate::measure::child::KillOnDrop;
use crate::measure::server::log_end;
use crate::peers::{find_program, free_address};
use crate::tree::{Description, Tree, TreeZone, ZoneDescription};
use nonesuch_crypto::DigestType;
use nonesuch_dnssec::keys::{REVOKE, ds_rdata};
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::message::{Rcode, Record, Section, flags};
use nonesuch_proto::{Name, Rtype, rdata};
use std::collections::HashMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A day, in seconds.
const DAY: u32 = 86_400;
/// Time limit for the resolver to be ready, and for its trust anchors to change.
const LIMIT: Duration = Duration::from_secs(10);
/// Time for the resolver to query the keys and to store its trust anchors.
const SETTLE: Duration = Duration::from_millis(1500);
/// File with the output of the resolver.
const LOG: &str = "log";
/// Places of libfaketime.
const LIBRARIES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

/// What a client sees of a name of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// AD is set.
    Secure,
    /// AD is clear.
    Insecure,
    /// SERVFAIL, or no answer.
    Fails,
}

impl Seen {
    /// In words.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Secure => "secure (AD=1)",
            Self::Insecure => "insecure (AD=0)",
            Self::Fails => "SERVFAIL",
        }
    }
}

/// The results of the roll.
#[derive(Clone, Copy, Debug)]
pub(super) struct Results {
    /// The root with the configured key.
    pub(super) configured: Seen,
    /// The root with only the new key, which has been published for 19 days.
    pub(super) before_hold_down: Seen,
    /// The root with only the new key, which was away and has been published again for 19 days, 40 days after
    /// its first publication.
    pub(super) after_absence: Seen,
    /// The root with only the new key, which has been published for more than 30 days.
    pub(super) after_hold_down: Seen,
    /// The root with only the old key again, which was missing.
    pub(super) after_missing: Seen,
    /// The root with the new key and the revoked one.
    pub(super) revoked: Seen,
    /// The root with only the old key again, without REVOKE, after its revocation.
    pub(super) after_revocation: Seen,
    /// The number of queries for the keys of the root.
    pub(super) key_queries: usize,
}

/// The keys that the root publishes and that sign its DNSKEY RRset.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Old,
    Both,
    New,
    Revoked,
}

/// The steps: day and keys.
const STEPS: [(u32, Keys); 12] = [
    (0, Keys::Old),
    (1, Keys::Both),
    (20, Keys::Both),
    (20, Keys::New),
    // The new key disappears: its time starts again (RFC 5011 §2.2).
    (22, Keys::Old),
    (23, Keys::Both),
    (41, Keys::New),
    (42, Keys::Both),
    (56, Keys::Both),
    (57, Keys::New),
    // The old key was missing and is valid again (RFC 5011 §4).
    (57, Keys::Old),
    (58, Keys::Revoked),
];
/// The step after the last one.
const LAST: (u32, Keys) = (60, Keys::Old);
/// Number of starts of the resolver.
pub(super) const STARTS: usize = STEPS.len() + 1;

/// Why the roll cannot be tested: completes "could not verify this because …".
pub(super) fn requirement(program: Option<&ProgramOptions>) -> Result<(&ProgramOptions, PathBuf), String> {
    let Some(program) = program else {
        return Err("the clock of a running resolver cannot be moved: name a resolver that the check starts, with --program unbound, bind or nonesuch".to_owned());
    };
    if matches!(program.kind, ResolverKind::KnotResolver | ResolverKind::PowerDns) {
        return Err("the check has no configuration of this resolver for RFC 5011: use --program unbound, bind or nonesuch".to_owned());
    }
    let library = LIBRARIES.iter().map(PathBuf::from).find(|path| path.is_file());
    library.map(|library| (program, library)).ok_or_else(|| {
        "libfaketime is not installed, which moves the clock of the resolver: install the package faketime".to_owned()
    })
}

/// Runs the roll.
pub(super) fn run(
    program: &ProgramOptions,
    library: &Path,
    (address, port): (Ipv4Addr, u16),
    (seed, now): (u64, u32),
    evidence: &mut Evidence,
) -> Result<Results, StartError> {
    let directory = tempfile::tempdir().map_err(StartError::Directory)?;
    let path = directory.path().canonicalize().map_err(StartError::Directory)?;
    fs::create_dir(path.join("state")).map_err(StartError::Directory)?;
    let world = World { program, library, address, port, seed, now, path: &path };
    let mut seen = Vec::new();
    let mut key_queries = 0;
    for (day, keys) in STEPS.into_iter().chain([LAST]) {
        let (found, queries) = world.step(day, keys, evidence)?;
        evidence
            .notes
            .push(format!("day {day}, root with {keys:?}: {found:?}, {queries} queries for its keys"));
        if seen.is_empty() && found != Seen::Secure {
            return Err(StartError::MovedClock(log_end(&path.join(LOG))));
        }
        seen.push(found);
        key_queries += queries;
    }
    Ok(Results {
        configured: seen[0],
        before_hold_down: seen[3],
        after_absence: seen[6],
        after_hold_down: seen[9],
        after_missing: seen[10],
        revoked: seen[11],
        after_revocation: seen[12],
        key_queries,
    })
}

/// What all steps have in common.
struct World<'w> {
    program: &'w ProgramOptions,
    library: &'w Path,
    address: Ipv4Addr,
    port: u16,
    seed: u64,
    /// The time of day 0.
    now: u32,
    path: &'w Path,
}

impl World<'_> {
    /// Serves the root with these keys on this day, starts the resolver, and asks it. Returns what a client
    /// sees, and the number of queries for the keys.
    fn step(&self, day: u32, keys: Keys, evidence: &mut Evidence) -> Result<(Seen, usize), StartError> {
        let now = self.now.wrapping_add(day * DAY);
        let (content, anchor) = self.root(keys, now)?;
        let authority = Authority::start(content)?;
        let listen = free_address(Ipv4Addr::LOCALHOST).map_err(StartError::Directory)?;
        let process = self.start(listen, day, &anchor)?;
        let client = CheckClient { server: listen, timeout: Duration::from_secs(2), attempts: 1 };
        let seen = self.wait_for_answer(&client, evidence);
        // The resolver stores its trust anchors.
        thread::sleep(SETTLE);
        let again = self.ask(&client, evidence).unwrap_or(seen);
        stop(process);
        let (_, observations) = authority.observations_from(0);
        let is_key_query = |(name, rtype): &(Name, Rtype)| name.view().is_root() && *rtype == Rtype::DNSKEY;
        let queries = observations.iter().filter_map(|seen| seen.question()).filter(is_key_query).count();
        Ok((again, queries))
    }

    fn ask(&self, client: &CheckClient, evidence: &mut Evidence) -> Option<Seen> {
        // A new name for each query: data in the cache keep their status.
        let label = format!("n{}", evidence.exchanges.len());
        let name: Name = format!("{label}.wild.").parse().ok()?;
        let response = client.ask(evidence, &lookup(&name, Rtype::A)).ok()?;
        Some(match (response.message.rcode(), response.has(flags::AD)) {
            (Rcode::NOERROR, true) => Seen::Secure,
            (Rcode::NOERROR, false) => Seen::Insecure,
            _ => Seen::Fails,
        })
    }

    fn wait_for_answer(&self, client: &CheckClient, evidence: &mut Evidence) -> Seen {
        let end = Instant::now() + LIMIT;
        loop {
            match self.ask(client, evidence) {
                Some(seen) => return seen,
                None if Instant::now() > end => return Seen::Fails,
                None => thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// The zone of the root, and its DNSKEY record and DS record of the configured key.
    fn root(&self, keys: Keys, now: u32) -> Result<(Content, [String; 2]), StartError> {
        // Keys follow from the seed and the name: another seed gives the new key.
        let tree = |seed| {
            let mut zone = ZoneDescription::new(".");
            zone.server = Some(self.address);
            "*.wild A 192.0.2.15\n".clone_into(&mut zone.records);
            Tree::build(
                &Description { zones: vec![zone], port: self.port, ..Description::default() },
                seed,
                now,
            )
        };
        let (old, new) = (tree(self.seed)?, tree(self.seed.wrapping_add(1))?);
        let anchor = anchor_texts(&old.zones[0]);
        let served = match keys {
            Keys::New => tree(self.seed.wrapping_add(1))?,
            _ => tree(self.seed)?,
        };
        let answers = key_answers(&old, &new, keys, now);
        let content = Content { tree: served, behaviours: HashMap::new(), answers, silent: Vec::new() };
        Ok((content, anchor))
    }

    /// Starts the resolver with a moved clock.
    fn start(
        &self,
        listen: SocketAddr,
        day: u32,
        [dnskey, ds]: &[String; 2],
    ) -> Result<KillOnDrop, StartError> {
        let write = |name: &str, text: String| {
            let path = self.path.join(name);
            fs::write(&path, text).map(|()| path).map_err(StartError::Directory)
        };
        write(
            "root.hints",
            format!(". 3600000 IN NS a.root-server.\na.root-server. 3600000 IN A {}\n", self.address),
        )?;
        let state = self.path.join("state");
        let (ip, port) = (listen.ip(), listen.port());
        let hints = self.path.join("root.hints");
        let hints = hints.display();
        let mut command = match self.program.kind {
            ResolverKind::Unbound => {
                let anchor = state.join("root.key");
                if !anchor.exists() {
                    fs::write(&anchor, format!(". 3600 IN DNSKEY {dnskey}\n"))
                        .map_err(StartError::Directory)?;
                }
                let text = format!(
                    "server:\n  interface: {ip}@{port}\n  username: \"\"\n  chroot: \"\"\n  do-daemonize: no\n  use-syslog: no\n  pidfile: \"\"\n  do-ip6: no\n  \
                     do-not-query-localhost: no\n  root-hints: \"{hints}\"\n  trust-anchor-signaling: no\n  auto-trust-anchor-file: \"{}\"\nremote-control:\n  control-enable: no\n",
                    anchor.display()
                );
                let mut command = Command::new(find_program("unbound").unwrap_or_else(|| "unbound".into()));
                command.arg("-d").arg("-c").arg(write("unbound.conf", text)?);
                command
            }
            ResolverKind::Bind => {
                let mut fields = dnskey.splitn(4, ' ');
                let mut next = || fields.next().unwrap_or_default();
                let key = format!("{} {} {} \"{}\"", next(), next(), next(), next());
                let text = format!(
                    "options {{ directory \"{dir}\"; managed-keys-directory \"{state}\"; listen-on port {port} {{ {ip}; }}; listen-on-v6 {{ none; }}; pid-file none; session-keyfile none; \
                     recursion yes; dnssec-validation yes; empty-zones-enable no; trust-anchor-telemetry no; port {servers}; }};\ncontrols {{ }};\n\
                     zone \".\" {{ type hint; file \"{hints}\"; }};\ntrust-anchors {{ \".\" initial-key {key}; }};\n",
                    dir = self.path.display(),
                    state = state.display(),
                    servers = self.port,
                );
                let mut command = Command::new(find_program("named").unwrap_or_else(|| "named".into()));
                command.args(["-g", "-n", "1", "-c"]).arg(write("named.conf", text)?);
                command
            }
            _ => {
                write("anchor.ds", format!(". 3600 IN DS {ds}\n"))?;
                let text = format!(
                    "version = 1\nlisten = [\"{listen}\"]\nworkers = 1\nhints = \"root.hints\"\ntrust-anchors = \"anchor.ds\"\nanchor-state = \"{}\"\n",
                    state.display()
                );
                let mut command = Command::new(&self.program.nonesuch);
                command.args(["resolve", "--config"]).arg(write("resolver.toml", text)?);
                command
            }
        };
        command
            .env("LD_PRELOAD", self.library)
            .env("FAKETIME", format!("+{day}d"))
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let log = File::create(self.path.join(LOG)).map_err(StartError::Directory)?;
        let same = log.try_clone().map_err(StartError::Directory)?;
        command.current_dir(self.path).stdin(Stdio::null()).stdout(log).stderr(same);
        command.spawn().map(KillOnDrop).map_err(StartError::Directory)
    }
}

/// Ends a process so that it stores its state.
fn stop(mut process: KillOnDrop) {
    // An error means that it has ended.
    let _ = nonesuch_net::signal_process(process.0.id(), nonesuch_net::ProcessSignal::Terminate);
    process.end_within(LIMIT);
}

/// The DNSKEY record of the KSK, and its DS record, in presentation form.
fn anchor_texts(root: &TreeZone) -> [String; 2] {
    let text = |rtype, octets: &[u8]| {
        let mut out = Vec::new();
        rdata::push_text(rtype, octets, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    let dnskey = root.entry_points.first().cloned().unwrap_or_default();
    let ds = ds_rdata(root.origin.view(), &dnskey, DigestType::SHA256).unwrap_or_default();
    [text(Rtype::DNSKEY, &dnskey), text(Rtype::DS, &ds)]
}

/// The answer to the query for the keys of the root. The ZSK is that of the served tree.
fn key_answers(old: &Tree, new: &Tree, keys: Keys, now: u32) -> HashMap<(Name, Rtype), Vec<Record>> {
    let (Some(old), Some(new)) = (root_keys(old), root_keys(new)) else { return HashMap::new() };
    let (signers, revoked, data_keys): (Vec<_>, _, _) = match keys {
        Keys::Old => (vec![key_of(old, true)], None, old),
        Keys::Both => (vec![key_of(old, true), key_of(new, true)], None, old),
        Keys::New => (vec![key_of(new, true)], None, new),
        Keys::Revoked => (vec![key_of(new, true)], key_of(old, true), old),
    };
    let signers: Vec<&KeyPair> = signers.into_iter().flatten().collect();
    let mut rdatas: Vec<Vec<u8>> = signers.iter().map(|key| key.dnskey_rdata()).collect();
    rdatas.extend(key_of(data_keys, false).map(KeyPair::dnskey_rdata));
    let revoked_rdata = revoked.map(|key| with_revoke(key.dnskey_rdata()));
    rdatas.extend(revoked_rdata.clone());
    let rrset = Unsigned { owner: Name::root(), rtype: Rtype::DNSKEY, ttl: 3600, rdatas };
    let lifetime = 10 * DAY;
    let mut records = rrset.records(Section::Answer);
    let mut push = |signature: Option<Vec<u8>>| {
        records.extend(signature.map(|rdata| Record {
            rtype: Rtype::RRSIG,
            rdata,
            ..rrset.records(Section::Answer)[0].clone()
        }));
    };
    for key in &signers {
        push(rrset.signature(key, &Name::root(), now, lifetime));
    }
    if let (Some(key), Some(rdata)) = (revoked, revoked_rdata) {
        // The tag of a revoked key differs (RFC 5011 §2.1).
        push(rrset.signature_with_tag(key, nonesuch_crypto::key_tag(&rdata), now, lifetime));
    }
    HashMap::from([((Name::root(), Rtype::DNSKEY), records)])
}

fn root_keys(tree: &Tree) -> Option<&[KeyPair]> {
    tree.zones.first()?.keys.as_ref().map(KeySet::keys)
}

/// The KSK or the ZSK.
fn key_of(keys: &[KeyPair], is_sep: bool) -> Option<&KeyPair> {
    keys.iter().find(|key| key.is_sep() == is_sep)
}

fn with_revoke(mut rdata: Vec<u8>) -> Vec<u8> {
    if let Some(low) = rdata.get_mut(1) {
        *low |= REVOKE as u8;
    }
    rdata
}
