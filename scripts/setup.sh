#!/usr/bin/env bash
# Sets fleet up on a fresh Debian, Ubuntu or Fedora host and runs the demo to its end. Needs no API key and
# no image registry. May be run again: it does what is missing.
#
#   scripts/setup.sh [--no-demo] [--no-serve]
#
# As root it makes an unprivileged user ("fleet", or $FLEET_SERVICE_USER) and runs everything but the
# build as that user; as a user it needs sudo only for missing packages.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/host.sh
. scripts/host.sh

demo=yes serve=yes
for argument in "$@"; do
    case $argument in
        --no-demo) demo=no ;;
        --no-serve) serve=no ;;
        *) die "unknown argument $argument" "usage: scripts/setup.sh [--no-demo] [--no-serve]" ;;
    esac
done
LOG=$(mktemp "${TMPDIR:-/tmp}/fleet-setup.XXXXXX")

say "1/5 Packages: ${SANDBOX_PACKAGES[*]} ${BUILD_PACKAGES[*]}"
install_packages "${SANDBOX_PACKAGES[@]}" "${BUILD_PACKAGES[@]}"

say "2/5 Rust toolchain"
need_rust .

say "3/5 Building the release binary (some minutes on two cores)"
cargo build --release --locked
! grep -aq FLEET_FAULT "${CARGO_TARGET_DIR:-target}/release/fleet" ||
    die "the release binary can be told to kill itself" "build it without the feature fault-injection"
if [ "$(id -u)" = 0 ]; then binary=/usr/local/bin/fleet; else binary=$HOME/.local/bin/fleet; fi
install -D -m 0755 "${CARGO_TARGET_DIR:-target}/release/fleet" "$binary"
note "installed $binary: $("$binary" --version)"
case :$PATH: in
    *":$(dirname "$binary"):"*) ;;
    *) note "$(dirname "$binary") is not on your PATH: log in again, or add it" ;;
esac

say "4/5 The account that runs fleet"
prepare_account

say "5/5 Sandbox image and demo"
# The script travels on standard input: the service user may not be able to read this directory.
as_service_user bash -s -- "$demo" "$serve" <scripts/demo.sh
rm -f "$LOG"
[ "$(id -u)" != 0 ] || note "go on as that user: su - $SERVICE_USER"
