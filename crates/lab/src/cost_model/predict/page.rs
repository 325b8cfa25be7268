//! The report of a prediction.

use super::{
    AllSigned, HomeRouter, Input, OctetPrediction, PredictedResolver, Prediction, Rate, RateSource,
    Requirement, ResponseSizes, Scenario, Volume, charts,
};
use crate::cost_model::text::{interval, percent};
use crate::record::RunRecord;
use crate::report::{Block, Column, Page, Section, Table, figure, grouped};

const LEAD: &str = "How many signatures a resolver verifies each second, and what share of a core this uses with each \
    algorithm: with today's signed zones, and if all zones are signed. The model is that of R. van Rijswijk-Deij, \
    K. Hageman, A. Sperotto and A. Pras, IEEE/ACM Transactions on Networking 25(2), 2017.";

pub(super) fn page(prediction: &Prediction, record: &RunRecord) -> Page {
    Page {
        title: "Resolver cost model: prediction".to_owned(),
        lead: LEAD.to_owned(),
        facts: vec![
            ("date".to_owned(), record.date.clone()),
            ("cores".to_owned(), grouped(prediction.cores.into())),
        ],
        run_facts: record.facts(),
        attachment: None,
        sections: sections(prediction),
    }
}

pub(super) fn sections(prediction: &Prediction) -> Vec<Section> {
    let mut sections: Vec<Section> =
        prediction.resolvers.iter().flat_map(|resolver| resolver_sections(prediction, resolver)).collect();
    sections.push(home_router(&prediction.home_router));
    sections
}

fn paragraph(text: impl Into<String>) -> Block {
    Block::Paragraph(text.into())
}

fn resolver_sections(prediction: &Prediction, resolver: &PredictedResolver) -> Vec<Section> {
    let name = &resolver.name;
    let section = |title: &str, blocks| Section { title: format!("{name}: {title}"), blocks };
    let mut sections = vec![
        section("inputs", vec![inputs(&resolver.inputs)]),
        section(
            "scenario 1, today's signed zones change the algorithm",
            scenario_1(prediction, &resolver.today),
        ),
        section("scenario 2, all zones are signed", scenario_2(prediction, resolver)),
    ];
    let sizes = match &resolver.response_sizes {
        Some(sizes) => octets(&resolver.octets, sizes),
        None => vec![paragraph(
            "The sizes of responses are unknown: record a resolver to predict bandwidth and TCP.",
        )],
    };
    sections.push(section("size of responses", sizes));
    sections
}

fn inputs(inputs: &[Input]) -> Block {
    let row =
        |input: &Input| vec![input.name.to_owned(), figure(input.value), input.provenance.name().to_owned()];
    let columns = vec![Column::text("quantity"), Column::figures("", "value"), Column::text("source")];
    Block::Table(Table { columns, rows: inputs.iter().map(row).collect(), legend: Vec::new() })
}

fn scenario_1(prediction: &Prediction, scenario: &Scenario) -> Vec<Block> {
    let text = format!("The resolver verifies as many signatures as today: {}.", validations(scenario));
    vec![paragraph(text), Block::Table(requirements(prediction, scenario))]
}

fn validations(scenario: &Scenario) -> String {
    let level = scenario.validations;
    if level.peak > level.mean {
        format!("{} a second, {} in the busiest window", figure(level.mean), figure(level.peak))
    } else {
        format!("{} a second", figure(level.mean))
    }
}

fn scenario_2(prediction: &Prediction, resolver: &PredictedResolver) -> Vec<Block> {
    let Some(AllSigned { scenario, mean_interval, growth, .. }) = &resolver.all_signed else {
        return vec![paragraph(
            "Today's share of responses with signatures (α_s) is unknown: record a resolver, or set --signed-share.",
        )];
    };
    let interval = mean_interval.as_ref().map_or_else(String::new, |estimate| {
        format!(" The 95 % confidence interval of the mean is {}.", interval(estimate))
    });
    let text = format!("The resolver verifies {}.{interval}", validations(scenario));
    let order = if growth.is_empty() {
        "The domains are unknown, so their order is not predicted."
    } else {
        "Popular domains are signed first: the popularity of a domain is its share of the queries."
    };
    vec![
        paragraph(text),
        paragraph(order),
        Block::Table(requirements(prediction, scenario)),
        Block::LineCharts(charts::of(prediction, resolver)),
    ]
}

fn requirements(prediction: &Prediction, scenario: &Scenario) -> Table {
    let has_peak = scenario.validations.peak > scenario.validations.mean;
    let cores = format!("{} cores", prediction.cores);
    let mut columns = vec![
        Column::text("algorithm"),
        Column::text("implementation"),
        Column::figures("", "verifications/s"),
        Column::figures("share of a core", "mean"),
    ];
    if has_peak {
        columns.push(Column::figures("share of a core", "peak"));
    }
    columns.push(Column::figures("", "cores needed"));
    columns.push(Column::figures("highest Q, 1/s", "1 core"));
    if prediction.cores > 1 {
        columns.push(Column::figures("highest Q, 1/s", &cores));
    }
    let queries = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
    let row = |(rate, needs): (&Rate, &Requirement)| {
        let mut row = vec![
            rate.name(),
            rate.implementation.clone(),
            figure(rate.per_second),
            percent(needs.core_share),
        ];
        row.extend(has_peak.then(|| percent(needs.peak_core_share)));
        row.extend([needs.cores.to_string(), queries(needs.max_queries)]);
        row.extend((prediction.cores > 1).then(|| queries(needs.max_queries_all_cores)));
        row
    };
    let rows = prediction.rates.iter().zip(&scenario.requirements).map(row).collect();
    Table { columns, rows, legend: legend(&prediction.rates) }
}

fn legend(rates: &[Rate]) -> Vec<String> {
    let mut legend = Vec::new();
    if rates.iter().any(|rate| rate.source == RateSource::Published) {
        let hardware =
            crate::published::table("ecc-validation-rates").map_or("", |table| table.hardware.as_str());
        legend.push(format!(
            "Rates of OpenSSL, Donna and Goldilocks without \"this machine\": document 000, {hardware}."
        ));
    }
    if rates.iter().any(|rate| rate.is_batch) {
        legend.push(
            "Batches: signatures of one key, which the resolver must collect before it verifies them."
                .to_owned(),
        );
    }
    if rates.iter().any(|rate| rate.is_experimental) {
        legend.push("* experimental.".to_owned());
    }
    legend
}

fn octets(predictions: &[OctetPrediction], sizes: &ResponseSizes) -> Vec<Block> {
    let mut columns = vec![
        Column::text("algorithm"),
        Column::figures("octets", "signature"),
        Column::figures("octets", "key"),
    ];
    for group in ["today's signed zones", "all zones signed"] {
        columns.extend(
            ["octets/response", "Mbit/s at peak", "over 1232"].map(|title| Column::figures(group, title)),
        );
    }
    let cells = |volume: &Volume| {
        [figure(volume.mean_octets), figure(volume.peak_bits_per_second / 1e6), percent(volume.tcp_share)]
    };
    let row = |one: &OctetPrediction| {
        let mut row = vec![one.scheme.clone(), one.sizes.signature.to_string(), one.sizes.key.to_string()];
        row.extend(cells(&one.today).into_iter().chain(cells(&one.all_signed)));
        row
    };
    let text = format!(
        "Today, a response has {} octets on average, and {} of the responses are truncated. Octets are those of \
         DNS messages. Responses over 1232 octets are assumed to come over TCP. Assumed: today's signatures all \
         have the algorithm of --current-algorithm; a signed response has one signature and a further number with a \
         Poisson distribution; a response with keys has two.",
        figure(sizes.mean_octets),
        percent(sizes.truncated_share),
    );
    let table = Table { columns, rows: predictions.iter().map(row).collect(), legend: Vec::new() };
    vec![paragraph(text), Block::Table(table)]
}

fn home_router(router: &HomeRouter) -> Section {
    let verdict = |keeps_up: bool| if keeps_up { "keeps up" } else { "does not keep up" };
    let mut text = format!(
        "The resolver of the home router sends {} queries a second at the peak and verifies {} signatures: {} of the \
         device. It {}.",
        figure(router.queries),
        figure(router.validations),
        percent(router.device_share),
        verdict(router.keeps_up),
    );
    if let Some((validations, keeps_up)) = router.validations_all_signed.zip(router.keeps_up_all_signed) {
        let all = format!(
            " If all zones are signed, it verifies {} and {}.",
            figure(validations),
            verdict(keeps_up)
        );
        text.push_str(&all);
    }
    let limit = format!(
        " If each query needed one verification, a cache hit rate of at least {} would be necessary.",
        percent(router.sufficient_hit_rate)
    );
    text.push_str(&limit);
    Section { title: "Home router".to_owned(), blocks: vec![inputs(&router.inputs), paragraph(text)] }
}
