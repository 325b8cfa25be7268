# `just` lists the recipes. A recipe is a few commands that also work without just.

# List the recipes
default:
    @just --list --unsorted

# Check format and lints, also of the fuzz targets
check:
    cargo fmt --check
    cargo fmt --check --manifest-path fuzz/Cargo.toml
    cargo fmt --check --manifest-path tools/count-verifications/Cargo.toml
    cargo fmt --check --manifest-path adoption/Cargo.toml
    cargo clippy --workspace --all-targets -- -D warnings
    CARGO_TARGET_DIR=target cargo clippy --locked --manifest-path fuzz/Cargo.toml --bins -- -D warnings
    cargo clippy --release --locked --manifest-path tools/count-verifications/Cargo.toml -- -D warnings

# Run all tests; tests of public data need NONESUCH_DATA
test:
    cargo test --workspace

# Run all steps of CI
ci:
    .ci/run

# Measure the cost of DNSSEC for a zone: one table, one report.html
compare *ARGUMENTS:
    cargo run --release -- compare {{ARGUMENTS}}

# Measure all figures of docs/benchmarks.md, docs/resolver-benchmarks.md and of the table in README.md; an hour on an idle machine
figures *ARGUMENTS:
    tools/figures {{ARGUMENTS}}

# Measure signing after a change, from scratch and incrementally
bench-resign *ARGUMENTS:
    cargo bench -p nonesuch-cli --bench resign -- {{ARGUMENTS}}

# Compare serving with the installed peers, with ratios
bench-serve *ARGUMENTS:
    cargo bench -p nonesuch-cli --bench serve -- {{ARGUMENTS}}

# Compare the resolver with the installed resolvers, as root
bench-resolve *ARGUMENTS:
    cargo bench -p nonesuch-cli --bench resolve -- {{ARGUMENTS}}

# Measure cold keys, memory, post-quantum algorithms and NSEC5 of the validating resolver, as root
bench-validate *ARGUMENTS:
    cargo bench -p nonesuch-cli --bench validate -- {{ARGUMENTS}}

# Compare the load generator with dnsperf
bench-load *ARGUMENTS:
    cargo bench -p nonesuch-cli --bench load -- {{ARGUMENTS}}

# Measure the service for other clients during floods and with idle connections
bench-abuse *ARGUMENTS:
    cargo bench -p nonesuch-cli --bench abuse -- {{ARGUMENTS}}

# The slow tests are the ignored ones, with those of `just validators`. The comparison has 100,000 questions in each
# mode, 10,000 answers with NSEC5, 10,000 recorded queries of Unbound and BIND, and transfers of 100,000 delegations in both directions.
# A build for x86-64-v2 runs every algorithm in qemu.
# Run slow tests that rarely fail, and the full comparison with other servers and validators
judge: check
    cargo test --workspace -- --ignored
    NONESUCH_DIFFERENTIAL_QUESTIONS=100000 cargo test -p nonesuch-cli --test peers -- differential peers_online
    NONESUCH_CHECKER_ANSWERS=10000 cargo test -p nonesuch-cli --test peers -- nsec5_checker
    NONESUCH_RECORDED_QUERIES=10000 cargo test -p nonesuch-cli --test peers -- plan_record --nocapture
    NONESUCH_DELEGATIONS=100000 cargo test -p nonesuch-cli --test slow -- large_zone --nocapture --test-threads 1
    tools/prove-level x86-64-v2

# Reload each second for SECONDS under RATE queries a second; fails if a query is lost
reloads SECONDS="60" RATE="20000":
    NONESUCH_RELOAD_SECONDS={{SECONDS}} NONESUCH_RELOAD_RATE={{RATE}} cargo test --release -p nonesuch-cli --test server -- no_query_is_lost --nocapture

# The test fails if an answer is lost, or if memory, open files or threads grow. An hour is 3600.
# Run mixed load with reloads and transfers each ten seconds, for SECONDS
soak SECONDS="60" RATE="3000":
    NONESUCH_SOAK_SECONDS={{SECONDS}} NONESUCH_SOAK_RATE={{RATE}} cargo test --release -p nonesuch-cli --test slow -- soak --nocapture

# Kill a server at KILLS random moments of reloads and transfers
crash KILLS="200":
    NONESUCH_KILLS={{KILLS}} cargo test --release -p nonesuch-cli --test slow -- crash --nocapture

# Compare the status of 20,000 names with DNSSEC faults: nonesuch resolve and four other validators
validators:
    cargo test -p nonesuch-cli --test peers -- validators --nocapture --ignored

# Run random simulations of the resolver: trees with faulty and hostile servers, and bad paths
simulate SEEDS="10000":
    cargo run --release -p nonesuch-conformance -- simulate --seeds {{SEEDS}}
    cargo run --release -p nonesuch-conformance -- simulate --signed --seeds {{SEEDS}}

# Build CoreDNS, the peer of `peers_online` for compact denial; its directory must be in PATH
coredns:
    go install github.com/coredns/coredns@v1.15.0

# Fuzz all targets, SECONDS in total
fuzz SECONDS="600":
    fuzz/run all {{SECONDS}}

# Build the library that counts the signatures which Unbound or BIND verify, for `plan record --verified`
count-verifications:
    cargo build --release --locked --manifest-path tools/count-verifications/Cargo.toml

# Build the program of `nonesuch adoption` beside nonesuch in target/release; the first build takes minutes
adoption:
    cargo build --release --locked --manifest-path adoption/Cargo.toml --target-dir target

# Test `nonesuch adoption` with a million rows; the tests of root zones need NONESUCH_DATA
adoption-test:
    cargo test --locked --manifest-path adoption/Cargo.toml --target-dir target

# Compare the tables of `nonesuch adoption report` with those of Spark on ROWS rows (needs Java 17; installs pyspark in a temporary environment)
adoption-spark ROWS="1000000":
    adoption/compare-spark {{ROWS}}

# Generate 100 million rows, report on them, compare the counts; prints the time and the peak memory
adoption-large DIR="/var/tmp/nonesuch-adoption":
    adoption/measure-large {{DIR}}

# Write manual pages and shell completions to DIR
man DIR="manual":
    cargo run --release -- manual --dir {{DIR}}

# Build nonesuch for LEVEL (x86-64-v2, x86-64-v3, or all), as additional binaries
level LEVEL="all":
    tools/build-level {{LEVEL}}

# Run every algorithm of a build for LEVEL on a processor model without instructions above LEVEL
prove-level LEVEL="x86-64-v2":
    tools/prove-level {{LEVEL}}

# Count the instructions of a signature and a verification on ARM, MIPS and x86-64, under qemu-user
foreign *ARGUMENTS:
    tools/foreign {{ARGUMENTS}}

# Build the Debian package
deb *ARGUMENTS:
    tools/build-deb {{ARGUMENTS}}

# Profile a server under load
profile *ARGUMENTS:
    tools/profile-server {{ARGUMENTS}}
