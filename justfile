# `just` lists the recipes. Each is one or two commands that can be typed without just.

# The recipes
default:
    @just --list --unsorted

# Format and lints, those of the fuzz targets too
check:
    cargo fmt --check
    cargo clippy --workspace --all-targets -- -D warnings
    CARGO_TARGET_DIR=target cargo clippy --locked --manifest-path fuzz/Cargo.toml --bins -- -D warnings

# All tests; with the zones of NONESUCH_DATA where that is set
test:
    cargo test --workspace

# Everything that CI does
ci:
    .ci/run

# What DNSSEC costs on a zone: one table, one report.html
compare *ARGUMENTS:
    cargo run --release -- compare {{ARGUMENTS}}

# Signing and verifying beside the installed peers, with ratios
bench-sign *ARGUMENTS:
    cargo bench -p nonesuch-cli --bench sign -- {{ARGUMENTS}}

# Signing again after a change, from scratch and incrementally
bench-resign *ARGUMENTS:
    cargo bench -p nonesuch-cli --bench resign -- {{ARGUMENTS}}

# Serving beside the installed peers, with ratios
bench-serve *ARGUMENTS:
    cargo bench -p nonesuch-cli --bench serve -- {{ARGUMENTS}}

# The load generator beside dnsperf
bench-load *ARGUMENTS:
    cargo bench -p nonesuch-cli --bench load -- {{ARGUMENTS}}

# Floods and idle connections, and what is left for other clients
bench-abuse *ARGUMENTS:
    cargo bench -p nonesuch-cli --bench abuse -- {{ARGUMENTS}}

# What is slow and rarely fails: the ignored tests; beside the other nameservers, 100,000 questions in each mode, 10,000 answers with NSEC5, 100,000 delegations transferred both ways
judge: check
    cargo test --workspace -- --ignored
    NONESUCH_DIFFERENTIAL_QUESTIONS=100000 cargo test -p nonesuch-cli --test peers -- differential peers_online
    cargo build -p nonesuch-dnssec --example validate_lines
    NONESUCH_CHECKER_ANSWERS=10000 cargo test -p nonesuch-cli --test peers -- nsec5_checker
    NONESUCH_DELEGATIONS=100000 cargo test -p nonesuch-cli --test slow -- large_zone --nocapture --test-threads 1

# Reloads each second under RATE queries a second for SECONDS, none of which may be lost
reloads SECONDS="60" RATE="20000":
    NONESUCH_RELOAD_SECONDS={{SECONDS}} NONESUCH_RELOAD_RATE={{RATE}} cargo test --release -p nonesuch-cli --test server -- no_query_is_lost --nocapture

# Mixed load with reloads and transfers each ten seconds for SECONDS (an hour: 3600): no answer is lost, nothing grows
soak SECONDS="60" RATE="3000":
    NONESUCH_SOAK_SECONDS={{SECONDS}} NONESUCH_SOAK_RATE={{RATE}} cargo test --release -p nonesuch-cli --test slow -- soak --nocapture

# Kills a server at KILLS random moments of reloads and transfers
crash KILLS="200":
    NONESUCH_KILLS={{KILLS}} cargo test --release -p nonesuch-cli --test slow -- crash --nocapture

# Build CoreDNS, which `peers_online` compares compact denial with; it must then be in PATH
coredns:
    go install github.com/coredns/coredns@v1.15.0

# Fuzz all targets, SECONDS in all
fuzz SECONDS="600":
    fuzz/run all {{SECONDS}}

# Manual pages and shell completions, into DIR
man DIR="manual":
    cargo run --release -- manual --dir {{DIR}}

# Build nonesuch for LEVEL (x86-64-v2, x86-64-v3), beside the usual binary
level LEVEL:
    tools/build-level {{LEVEL}}

# Run every algorithm of that build on a processor model that faults on what lies above LEVEL
prove-level LEVEL="x86-64-v2":
    tools/prove-level {{LEVEL}}

# Instructions per signature and verification on ARM, MIPS and x86-64, under qemu-user
foreign *ARGUMENTS:
    tools/foreign {{ARGUMENTS}}

# The Debian package
deb *ARGUMENTS:
    tools/build-deb {{ARGUMENTS}}

# Where the time of a server goes under load
profile *ARGUMENTS:
    tools/profile-server {{ARGUMENTS}}
