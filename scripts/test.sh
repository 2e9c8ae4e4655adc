#!/usr/bin/env bash
# Installs what the tests need and runs the whole suite: format, lints, documentation, licences, unit
# and integration tests with real Podman, git, SQLite, Chromium and model servers. May be run again.
#
#   scripts/test.sh [NEXTEST ARGUMENTS…]
#
# As root the checks run as root and the tests as an unprivileged user, because fleet refuses to run
# as root.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/host.sh
. scripts/host.sh
LOG=$(mktemp "${TMPDIR:-/tmp}/fleet-test.XXXXXX")
started=$SECONDS
export CARGO_TERM_COLOR=never

say "Packages: ${SANDBOX_PACKAGES[*]} ${BUILD_PACKAGES[*]} ${TEST_PACKAGES[*]}"
install_packages "${SANDBOX_PACKAGES[@]}" "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"

say "Rust toolchain, cargo-nextest, cargo-deny"
need_rust .
for tool in cargo-nextest cargo-deny; do
    command -v $tool >/dev/null || { note "installing $tool"; cargo install --locked --quiet $tool; }
done

say "Format, lints, documentation, licences"
# Every platform's crates: the licence check reads them all, offline.
cargo fetch --locked --quiet
cargo fmt --check
cargo clippy --locked --all-targets --quiet -- -D warnings
cargo clippy --locked --all-targets --features fault-injection --quiet -- -D warnings
# A release with fault injection must not build: its first error says so. (Without dependencies there
# are others, and that takes no second build.)
refusal=$(rustc --edition 2024 --crate-type lib --emit metadata -o /dev/null -C debug-assertions=no \
    --cfg 'feature="fault-injection"' src/lib.rs 2>&1 || true)
grep -q 'it is never in a release' <<<"$refusal" ||
    die "a release can be built with fault-injection" "src/fault.rs has a compile_error! for it"
RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --quiet
cargo deny --offline --log-level error check bans licenses sources

say "Building the tests"
work=$(mktemp -d "${TMPDIR:-/tmp}/fleet-suite.XXXXXX")
trap 'rm -rf "$work"; rm -f "$LOG"' EXIT
# One build for everything: the points of fault injection do nothing unless they are named.
cargo nextest archive --locked --features fault-injection --archive-file "$work/suite.tar.zst"
# A copy of the source that the unprivileged user can read, without the build directory.
mkdir "$work/source"
git ls-files -co --exclude-standard -z | tar --null -T - -cf - | tar -xf - -C "$work/source"

say "The suite"
prepare_account
[ "$(id -u)" != 0 ] || chown -R "$SERVICE_USER:" "$work"
chmod 0755 "$work"
say "Model servers that others wrote (PyPI)"
servers=$(as_service_user bash "$work/source/scripts/model-servers.sh")
nextest=$(command -v cargo-nextest)
install -m 0755 "$nextest" "$work/cargo-nextest"
as_service_user env FLEET_TEST_MODEL_SERVERS="$servers" bash -c 'cd "$1/source" && exec "$1/cargo-nextest" nextest run \
    --archive-file "$1/suite.tar.zst" --workspace-remap "$1/source" "${@:2}"' suite "$work" "$@"

note "done in $((SECONDS - started)) s"
