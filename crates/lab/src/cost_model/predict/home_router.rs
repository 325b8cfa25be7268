//! The home router of document 000: few users, and a slow device.

use super::input::{Input, Provenance};
use serde::Serialize;

/// Document 000, slide "n=1 home router experiment": simultaneous users.
const USERS: f64 = 10.0;
/// The same slide: queries of the clients per second, at the peak.
const CLIENT_QUERIES: f64 = 60.0;
/// The same slide: ECDSA P-256 verifications per second of the slowest device (MIPS).
const VERIFICATIONS: f64 = 35.0;
/// Assumed share of client queries that the cache answers.
const CACHE_HIT_RATE: f64 = 0.5;
/// Assumed queries to authoritative servers for each client query that the cache does not answer.
const QUERIES_PER_MISS: f64 = 1.5;

/// Options of the home router.
#[derive(Clone, Copy, Debug, Default)]
pub struct HomeRouterOptions {
    /// Share of client queries that the cache answers, from 0 to 1.
    pub cache_hit_rate: Option<f64>,
    /// Queries to authoritative servers for each other client query.
    pub queries_per_miss: Option<f64>,
}

/// The home router.
#[derive(Clone, Debug, Serialize)]
pub struct HomeRouter {
    /// The numbers from which the prediction follows.
    pub inputs: Vec<Input>,
    /// Queries to authoritative servers per second, at the peak.
    pub queries: f64,
    /// Verified signatures per second with today's signed zones, at the peak.
    pub validations: f64,
    /// Share of the device that they use.
    pub device_share: f64,
    /// Whether the device verifies them.
    pub keeps_up: bool,
    /// Verified signatures per second if all responses are signed; `None` if today's share of signed
    /// responses is unknown.
    pub validations_all_signed: Option<f64>,
    /// Whether the device verifies these.
    pub keeps_up_all_signed: Option<bool>,
    /// Lowest cache hit rate at which the device keeps up if each query needs one verification.
    pub sufficient_hit_rate: f64,
}

impl HomeRouter {
    /// `today` is a of f, with its provenance; `all_signed` is a if all responses are signed.
    pub(super) fn predict(options: HomeRouterOptions, today: Input, all_signed: Option<f64>) -> Self {
        let hit_rate = Input::given_or_assumed(
            "share of client queries that the cache answers",
            options.cache_hit_rate,
            CACHE_HIT_RATE,
        );
        let per_miss = Input::given_or_assumed(
            "queries for each other client query",
            options.queries_per_miss,
            QUERIES_PER_MISS,
        );
        let queries = CLIENT_QUERIES * (1.0 - hit_rate.value) * per_miss.value;
        let (validations, validations_all_signed) = (today.value * queries, all_signed.map(|a| a * queries));
        Self {
            queries,
            validations,
            device_share: validations / VERIFICATIONS,
            keeps_up: validations <= VERIFICATIONS,
            validations_all_signed,
            keeps_up_all_signed: validations_all_signed.map(|validations| validations <= VERIFICATIONS),
            sufficient_hit_rate: (1.0 - VERIFICATIONS / (CLIENT_QUERIES * per_miss.value)).max(0.0),
            inputs: vec![
                Input::new("simultaneous users", USERS, Provenance::Document),
                Input::new("client queries per second, at the peak", CLIENT_QUERIES, Provenance::Document),
                Input::new(
                    "ECDSA P-256 verifications per second of the device",
                    VERIFICATIONS,
                    Provenance::Document,
                ),
                hit_rate,
                per_miss,
                today,
            ],
        }
    }
}
