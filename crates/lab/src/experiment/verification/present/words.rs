//! The words around the figures.

use super::{Part, View};
use crate::experiment::published;
use crate::experiment::verification::subject::Operation;
use crate::experiment::verification::summary::{Line, rate, schemes};
use crate::experiment::verification::{Parameters, openssl};
use crate::report::{Block, Section, figure};

pub(super) const CHARTS: &str = "Signatures verified and made in a second by one core; longer is better. Each step of the \
    axis is ten times the one before. Bars are medians, whiskers go from the least iteration to the most. Of RSA, \
    RSASHA256 is shown; RSASHA512 is in the table of all figures. * marks what is experimental.";

pub(super) const VRFS: &str = "Proofs made and verified in a second by one core; longer is better. A server of an NSEC5 zone \
    makes a proof for a denial that it cannot answer from its cache, a resolver verifies it. In a batch, proofs share \
    what points on curves cost; RSA has nothing to share.";

/// How VRFs were measured.
const VRF_INPUTS: &str = "The input of a VRF is a name in wire form, a label of ten letters and digits below example.; at \
    least 64 such names are gone through in turn, since try-and-increment takes more tries for some than for others. A \
    proof that is made comes with its hash; one that is verified is compared whole.";

pub(super) const LEVELS: &str = "The same algorithms by programs that keep to an instruction level: built for it, with what \
    lies above it masked from the libraries that choose code when they start. AES, SHA, ADX and RDRAND instructions, \
    which no level has, are masked in x86-64-v2 and x86-64-v3 alike.";

pub(super) const FIGURES: &str = "Each iteration gives operations a second; std. dev.: the standard deviation over the \
    iterations, and in % of the mean. µs each: of the median. openssl times short digests, ours whole messages with \
    their hash.";

/// The operation as a thing that is counted.
pub(super) const fn noun(part: Part) -> &'static str {
    match (part.operation, part.vrf) {
        (Operation::Verify, false) => "Verifications",
        (Operation::Verify, true) => "VRF proofs verified",
        (Operation::Sign, _) => "Signatures made",
        (Operation::Prove, _) => "VRF proofs made",
    }
}

pub(super) const fn ratios(operation: Operation) -> &'static str {
    match operation {
        Operation::Verify => {
            "What a resolver pays for each signature when a zone changes its algorithm. The rows of openssl and the \
             published ones are held against RSA and ECDSA of the same program."
        }
        Operation::Sign => {
            "What a signer pays for each signature. The published study measured validation alone."
        }
        // VRFs are not held against signatures.
        Operation::Prove => "",
    }
}

/// What the numbers mean, in two sentences.
pub(super) fn lead(view: &View<'_>) -> String {
    let verify = |scheme: &str| rate(&view.lines, 0, scheme, Operation::Verify);
    let first = match (verify("ECDSA P-256"), verify("RSA-2048")) {
        (Some(p256), Some(rsa)) => format!(
            "One core verifies {} signatures of ECDSA P-256 a second and {} of RSA-2048: ECDSA is {:.1} times slower{}.",
            figure(p256),
            figure(rsa),
            rsa / p256,
            published_p256(view)
        ),
        _ => "Operations were counted, iteration by iteration.".to_owned(),
    };
    let all = schemes(&view.lines, false).into_iter();
    let slowest = all
        .filter_map(|scheme| verify(&scheme).map(|rate| (scheme, rate)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let second = slowest.zip(busy_resolver()).map(|((scheme, rate), needed)| {
        format!(
            " Slowest to verify is {scheme} with {} a second, {} times the {} that a busy resolver was published to need.",
            figure(rate),
            figure(rate / needed),
            figure(needed)
        )
    });
    first + &second.unwrap_or_default()
}

/// The newest published figure beside ours.
fn published_p256(view: &View<'_>) -> String {
    let Some(table) = view.published else { return String::new() };
    let place = table.columns.iter().position(|column| column == "RSA-2048");
    let mut rows =
        table.rows.iter().filter(|row| row.first().is_some_and(|cell| cell.print() == "ECDSA P-256"));
    let Some((row, place)) = rows.next_back().zip(place) else { return String::new() };
    let (Some(ratio), Some(version)) = (row.get(place), row.get(1)) else { return String::new() };
    format!(" (published: {} times, with OpenSSL {})", ratio.print(), version.print())
}

/// Validations a second of a busy resolver, as published.
fn busy_resolver() -> Option<f64> {
    let table = published::table("ecc-scenarios")?;
    table.rows.first()?.last()?.number()
}

pub(super) fn facts(view: &View<'_>) -> Vec<(String, String)> {
    let parameters = view.parameters;
    let mut facts = vec![(
        "Iterations".to_owned(),
        format!("{} of {} s each", parameters.iterations.value(), parameters.seconds.value()),
    )];
    facts.push((
        "Kept on".to_owned(),
        view.about.cpu.map_or_else(|| "no CPU of its own".to_owned(), |cpu| format!("CPU {cpu}")),
    ));
    for place in view.about.shown() {
        let backend = &view.about.backends[place];
        facts.push((format!("Program, {}", backend.label()), backend.version.clone()));
    }
    facts
}

/// Below the table of a terminal.
pub(super) fn terminal(parameters: &Parameters, experimental: bool) -> String {
    let mark = if experimental { " *: experimental, see the report." } else { "" };
    format!(
        "Medians of {} iterations of {} s on one core.{mark}",
        parameters.iterations.value(),
        parameters.seconds.value()
    )
}

/// How it was measured.
pub(super) fn method(view: &View<'_>) -> Section {
    let (about, parameters) = (view.about, view.parameters);
    let place = about.cpu.map_or_else(
        || "The programs were not kept on one CPU.".to_owned(),
        |cpu| format!("All programs were kept on CPU {cpu}, and ran one after the other."),
    );
    let loops = format!(
        "For each algorithm, operation and program there were {} iterations of {} s of continuous operation, and the \
         operations were counted. An iteration goes over all algorithms before the next begins, and each operation over \
         all instruction levels, so that a disturbance of the machine does not hit one of them alone. {place} The same \
         keys were used at every level.",
        parameters.iterations.value(),
        parameters.seconds.value()
    );
    let message = format!(
        "A message is what an RRSIG record is made over: {} octets, of the RRSIG fields and an RRset of two AAAA records of \
         www.example. Sixteen such messages with their signatures are gone through in turn (in batches, as many as the \
         batch holds); every outcome is checked. The clock is read every half millisecond.",
        about.message_octets
    );
    let openssl = format!(
        "openssl is timed by `openssl speed -elapsed` in {} iterations of {} s: it verifies and signs one short digest \
         with one key. The levels mask what it chooses its code by when it starts.",
        parameters.openssl_iterations,
        parameters.openssl_seconds.value()
    );
    let bounds = "What does not show here: parsing of keys and messages, and whatever else a resolver or signer does for a \
        signature. Figures of one machine compare with each other; those of another machine, or of the same one under \
        other load, differ.";
    let mut blocks = vec![Block::Paragraph(loops)];
    if about.message_octets > 0 {
        blocks.push(Block::Paragraph(message));
    }
    if view.lines.iter().any(Line::is_vrf) {
        blocks.push(Block::Paragraph(VRF_INPUTS.to_owned()));
    }
    if about.backends.iter().any(|backend| backend.name == openssl::NAME) {
        blocks.push(Block::Paragraph(openssl));
    }
    blocks.push(Block::Paragraph(bounds.to_owned()));
    let programs = about.backends.iter().map(|backend| (backend.label(), program(backend)));
    blocks.push(Block::Terms(programs.collect()));
    Section { title: "How it was measured".to_owned(), blocks }
}

fn program(backend: &crate::experiment::verification::Backend) -> String {
    let mut text = backend.version.clone();
    if !backend.compiled_for.is_empty() {
        text.push_str(&format!("; built for {}", backend.compiled_for.join(", ")));
    }
    for (name, value) in &backend.environment {
        text.push_str(&format!("; {name}={value}"));
    }
    text
}
