//! Predicts whether a resolver can verify the signatures of other algorithms, with today's signed zones
//! and if all zones are signed.

mod charts;
mod home_router;
mod input;
mod octets;
mod page;
mod popularity;
mod rates;
#[cfg(test)]
mod tests;

pub use home_router::{HomeRouter, HomeRouterOptions};
pub use input::{Input, Provenance};
pub use octets::{OctetPrediction, ResponseSizes, Volume};
pub use popularity::{GrowthPoint, RankingError, read_ranking};
pub use rates::{Rate, RateSource, RatesError, Sizes, measured, published, read as read_rates};

use super::columns::{Columns, FitError, Symbol};
use super::fit::LabelledRecording;
use super::model::{Chain, Estimate, IntervalChoice, Model};
use super::regression::mean;
use crate::measure::AlgorithmChoice;
use crate::record::RunRecord;
use crate::report::PageError;
use nonesuch_crypto::Algorithm;
use nonesuch_proto::Name;
use serde::Serialize;

/// Version of the JSON form of [`Prediction`].
const FORMAT: u32 = 1;
/// Document 000, scenario 1: verified signatures per second of a busy resolver.
const DOCUMENT_VALIDATIONS: f64 = 150.0;
/// The mark on the chart "Results for Unbound" of document 000, in queries per second. The document
/// does not say that it belongs to the resolver of scenario 1.
const ASSUMED_QUERIES: f64 = 1800.0;
/// Assumed share of the signed responses that have the keys of a zone.
const DNSKEY_SHARE: f64 = 0.02;
/// The algorithm that signs today's zones, if none is given.
const TODAY: AlgorithmChoice = AlgorithmChoice { algorithm: Algorithm::ECDSAP256SHA256, bits: None };
/// Number of intervals of a curve over α_s.
const CURVE_STEPS: u32 = 20;

/// What to predict.
#[derive(Clone, Debug)]
pub struct PredictOptions<'a> {
    /// Recordings; without any, the prediction is for `load`.
    pub recordings: &'a [LabelledRecording],
    /// A resolver without a recording.
    pub load: GivenLoad,
    /// Verification rates of one core.
    pub rates: &'a [Rate],
    /// Number of cores that validate.
    pub cores: u32,
    /// The home router.
    pub home_router: HomeRouterOptions,
    /// The algorithm that signs today's zones; `None`: assumed to be ECDSA P-256.
    pub current_algorithm: Option<AlgorithmChoice>,
    /// Share of the signed responses that have the keys of a zone; `None`: assumed to be 0.02.
    pub dnskey_share: Option<f64>,
    /// Domains, the most popular first; `None`: the order of the recording.
    pub ranking: Option<&'a [Name]>,
    /// How to compute confidence intervals.
    pub intervals: IntervalChoice,
}

/// The load of a resolver without a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct GivenLoad {
    /// Verified signatures per second; `None`: 150, as in document 000.
    pub validations: Option<f64>,
    /// Queries to authoritative servers per second; `None`: assumed.
    pub queries: Option<f64>,
    /// Share of responses with signatures, above 0 and at most 1; `None`: unknown.
    pub signed_share: Option<f64>,
}

/// A prediction.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// Version of this form.
    format: u32,
    /// Number of cores of the columns for several cores.
    pub cores: u32,
    /// The rates, in the order of the requirements.
    pub rates: Vec<Rate>,
    /// One for each recording, or one for the given load.
    pub resolvers: Vec<PredictedResolver>,
    /// The home router, with the resolver that has the maximum of signatures for each query.
    pub home_router: HomeRouter,
}

/// The prediction for a resolver.
#[derive(Clone, Debug, Serialize)]
pub struct PredictedResolver {
    /// Name of the recording, or `given load`.
    pub name: String,
    /// The numbers from which the prediction follows.
    pub inputs: Vec<Input>,
    /// Queries to authoritative servers per second.
    pub queries: Level,
    /// Scenario 1: all signed zones change the algorithm, so the resolver verifies as many signatures
    /// as today.
    pub today: Scenario,
    /// Scenario 2: all zones are signed; `None` if today's share of signed responses is unknown.
    pub all_signed: Option<AllSigned>,
    /// Octets of responses for each algorithm; empty if unknown.
    pub octets: Vec<OctetPrediction>,
    /// Sizes of today's responses, if known.
    pub response_sizes: Option<ResponseSizes>,
    #[serde(skip)]
    chain: Chain,
}

/// A rate: its mean, and that of the busiest window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Mean.
    pub mean: f64,
    /// Maximum of the windows.
    pub peak: f64,
}

/// Verified signatures, and what they need.
#[derive(Clone, Debug, Serialize)]
pub struct Scenario {
    /// Verified signatures per second.
    pub validations: Level,
    /// One for each rate.
    pub requirements: Vec<Requirement>,
}

/// What a number of verified signatures needs with one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Requirement {
    /// Mean share of a core that verification uses; above 1: more than a core.
    pub core_share: f64,
    /// The same in the busiest window.
    pub peak_core_share: f64,
    /// Number of cores that the busiest window needs.
    pub cores: u64,
    /// Highest Q that one core can validate, in queries per second; `None` if it is not limited.
    pub max_queries: Option<f64>,
    /// Highest Q that all cores can validate.
    pub max_queries_all_cores: Option<f64>,
}

/// Scenario 2.
#[derive(Clone, Debug, Serialize)]
pub struct AllSigned {
    /// If all responses are signed.
    pub scenario: Scenario,
    /// Interval of the mean of S_v, if the parameters are fitted.
    pub mean_interval: Option<Estimate>,
    /// S_v while α_s grows to 1.
    pub curve: Vec<CurvePoint>,
    /// α_s while the most popular domains are signed; empty if domains are unknown.
    pub growth: Vec<GrowthPoint>,
}

/// S_v with a share of signed responses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// α_s.
    pub signed_share: f64,
    /// Verified signatures per second at the mean of Q, with the interval if the parameters are fitted.
    pub mean: Estimate,
    /// At the highest Q.
    pub peak: f64,
}

/// Why a prediction fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum PredictError {
    #[error(transparent)]
    Fit(#[from] FitError),
    #[error("no verification rates: choose at least one of measured, published or a file of rates")]
    NoRates,
    #[error(
        "{recording}: the fitted model verifies {a} signatures for each query, so it predicts nothing: record for a longer time"
    )]
    NoSlope { recording: String, a: f64 },
}

/// Predicts what the resolvers need.
///
/// # Errors
/// Fails without rates, if a recording cannot be fitted, or if its S_v does not grow with Q.
pub fn predict(options: &PredictOptions<'_>) -> Result<Prediction, PredictError> {
    if options.rates.is_empty() {
        return Err(PredictError::NoRates);
    }
    let resolvers = match options.recordings {
        [] => vec![given(options)],
        recordings => recordings.iter().map(|one| recorded(options, one)).collect::<Result<_, _>>()?,
    };
    let home_router = home_router(options, &resolvers);
    Ok(Prediction {
        format: FORMAT,
        cores: options.cores,
        rates: options.rates.to_vec(),
        resolvers,
        home_router,
    })
}

/// The prediction for a load that is given by a few numbers: f has no intercept.
fn given(options: &PredictOptions<'_>) -> PredictedResolver {
    let GivenLoad { validations, queries, signed_share } = options.load;
    let from = |given: bool, otherwise| if given { Provenance::Given } else { otherwise };
    let queries_value = queries.unwrap_or(ASSUMED_QUERIES);
    let validations_value = validations.unwrap_or(DOCUMENT_VALIDATIONS);
    let mut inputs = vec![
        Input::new(
            "S_v: verified signatures per second",
            validations_value,
            from(validations.is_some(), Provenance::Document),
        ),
        Input::new(
            "Q: queries to authoritative servers per second",
            queries_value,
            from(queries.is_some(), Provenance::Assumed),
        ),
    ];
    inputs.extend(
        signed_share
            .map(|share| Input::new("α_s: share of responses with signatures", share, Provenance::Given)),
    );
    let today_share = signed_share.unwrap_or(1.0);
    let per_signature = validations_value / (queries_value * today_share);
    let chain = Chain([1.0, 0.0, today_share, 0.0, 1.0, 0.0, per_signature, 0.0]);
    let level = |value| Level { mean: value, peak: value };
    let load =
        Load { chain, model: None, queries: level(queries_value), validations: level(validations_value) };
    PredictedResolver {
        name: "given load".to_owned(),
        inputs,
        queries: load.queries,
        today: load.today(options),
        all_signed: signed_share.map(|_| load.all_signed(options, Vec::new())),
        octets: Vec::new(),
        response_sizes: None,
        chain,
    }
}

/// The prediction for a recorded resolver.
fn recorded(
    options: &PredictOptions<'_>,
    labelled: &LabelledRecording,
) -> Result<PredictedResolver, PredictError> {
    let recording = &labelled.recording;
    let columns = Columns::of(recording)?;
    let too_few = || FitError::TooFewWindows { recording: recording.name.clone(), found: columns.len() };
    let model = Model::fit(&columns, options.intervals).ok_or_else(too_few)?;
    let (a, b) = model.chain.compose();
    if a <= 0.0 {
        return Err(PredictError::NoSlope { recording: recording.name.clone(), a });
    }
    let level = |symbol| Level::of(columns.rates(symbol));
    let load = Load {
        chain: model.chain,
        model: Some(&model),
        queries: level(Symbol::Queries),
        validations: level(Symbol::Verified),
    };
    let signed_share = model.chain.signed_share();
    let total: u64 = recording.windows.iter().map(|window| window.queries).sum();
    let growth = popularity::growth(&recording.domains, options.ranking, total, signed_share);
    let input = |name, value| Input::new(name, value, Provenance::Recording);
    let mut inputs = vec![
        input("Q: queries to authoritative servers per second, mean", load.queries.mean),
        input("Q: queries to authoritative servers per second, busiest window", load.queries.peak),
        input("S_v: verified signatures per second, mean", load.validations.mean),
        input("S_v: verified signatures per second, busiest window", load.validations.peak),
        input("α_s: share of responses with signatures", signed_share),
        input("a: verified signatures for each query", a),
        input("b: verified signatures per second without queries", b),
    ];
    let current = options.current_algorithm.unwrap_or(TODAY);
    let dnskey_share = Input::given_or_assumed(
        "share of the signed responses with the keys of a zone",
        options.dnskey_share,
        DNSKEY_SHARE,
    );
    let sizes = Sizes::of(current).and_then(|today| ResponseSizes::of(recording, today, dnskey_share.value));
    let peak_responses = Level::of(columns.rates(Symbol::Responses)).peak;
    if let Some(sizes) = &sizes {
        inputs.push(input("octets of a response, mean", sizes.mean_octets));
        inputs.push(dnskey_share);
    }
    Ok(PredictedResolver {
        name: labelled.name(),
        inputs,
        queries: load.queries,
        today: load.today(options),
        all_signed: Some(load.all_signed(options, growth)),
        octets: sizes.map(|sizes| all_octets(&sizes, options.rates, peak_responses)).unwrap_or_default(),
        response_sizes: sizes,
        chain: model.chain,
    })
}

/// Returns the octets for each algorithm of the rates, once.
fn all_octets(sizes: &ResponseSizes, rates: &[Rate], peak_responses: f64) -> Vec<OctetPrediction> {
    let mut found: Vec<OctetPrediction> = Vec::new();
    for rate in rates {
        let Some(algorithm) = rate.sizes.filter(|_| found.iter().all(|known| known.scheme != rate.scheme))
        else {
            continue;
        };
        found.push(sizes.predict(&rate.scheme, algorithm, peak_responses));
    }
    found
}

/// The home router has the maximum a of the resolvers: signatures for each query.
fn home_router(options: &PredictOptions<'_>, resolvers: &[PredictedResolver]) -> HomeRouter {
    let slope = |resolver: &PredictedResolver| resolver.chain.compose().0;
    let worst = resolvers.iter().max_by(|one, other| slope(one).total_cmp(&slope(other)));
    let provenance = match (options.recordings, options.load) {
        ([_, ..], _) => Provenance::Recording,
        (_, GivenLoad { validations: Some(_), queries: Some(_), .. }) => Provenance::Given,
        _ => Provenance::Assumed,
    };
    let today = Input::new("a: verified signatures for each query", worst.map_or(0.0, slope), provenance);
    let all_signed = worst
        .filter(|resolver| resolver.all_signed.is_some())
        .map(|resolver| resolver.chain.with_signed_share(1.0).compose().0);
    HomeRouter::predict(options.home_router, today, all_signed)
}

/// The load of a resolver.
struct Load<'m> {
    chain: Chain,
    /// The fitted model, if any.
    model: Option<&'m Model>,
    queries: Level,
    validations: Level,
}

impl Load<'_> {
    fn today(&self, options: &PredictOptions<'_>) -> Scenario {
        Scenario::of(self.validations, &self.chain, options)
    }

    fn all_signed(&self, options: &PredictOptions<'_>, growth: Vec<GrowthPoint>) -> AllSigned {
        let chain = self.chain.with_signed_share(1.0);
        let (a, b) = chain.compose();
        let validations = Level { mean: a * self.queries.mean + b, peak: a * self.queries.peak + b };
        AllSigned {
            scenario: Scenario::of(validations, &chain, options),
            mean_interval: self.model.map(|model| model.predict(self.queries.mean, Some(1.0))),
            curve: self.curve(),
            growth,
        }
    }

    fn curve(&self) -> Vec<CurvePoint> {
        let today = self.chain.signed_share().min(1.0);
        let point = |step: u32| {
            let signed_share = today + (1.0 - today) * f64::from(step) / f64::from(CURVE_STEPS);
            let (a, b) = self.chain.with_signed_share(signed_share).compose();
            let value = a * self.queries.mean + b;
            let exact = Estimate { value, low: value, high: value };
            let mean = self.model.map_or(exact, |model| model.predict(self.queries.mean, Some(signed_share)));
            CurvePoint { signed_share, mean, peak: a * self.queries.peak + b }
        };
        (0..=CURVE_STEPS).map(point).collect()
    }
}

impl Level {
    fn of(rates: &[f64]) -> Self {
        Self { mean: mean(rates), peak: rates.iter().copied().fold(0.0, f64::max) }
    }
}

impl Scenario {
    fn of(validations: Level, chain: &Chain, options: &PredictOptions<'_>) -> Self {
        let requirement = |rate: &Rate| Requirement {
            core_share: validations.mean / rate.per_second,
            peak_core_share: validations.peak / rate.per_second,
            cores: (validations.peak / rate.per_second).ceil().max(0.0) as u64,
            max_queries: max_queries(chain, rate.per_second),
            max_queries_all_cores: max_queries(chain, rate.per_second * f64::from(options.cores)),
        };
        Self { validations, requirements: options.rates.iter().map(requirement).collect() }
    }
}

/// Returns the highest Q for a number of verifications per second; `None` if S_v does not grow with Q.
fn max_queries(chain: &Chain, verifications: f64) -> Option<f64> {
    let (a, b) = chain.compose();
    (a > 0.0).then(|| ((verifications - b) / a).max(0.0))
}

impl Prediction {
    /// Returns the report as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        super::text::to_text(&page::sections(self))
    }

    /// Returns the report as an HTML page.
    ///
    /// # Errors
    /// Fails if the page cannot be rendered; no input is known to cause this error.
    pub fn page(&self, record: &RunRecord) -> Result<String, PageError> {
        page::page(self, record).to_html()
    }
}
