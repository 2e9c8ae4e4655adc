#!/usr/bin/env bash
# Sets fleet up on a fresh Debian or Ubuntu host and runs the demo to its end. Needs no API key and
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
if [ "$(id -u)" = 0 ]; then binary=/usr/local/bin/fleet; else binary=$HOME/.local/bin/fleet; fi
install -D -m 0755 "${CARGO_TARGET_DIR:-target}/release/fleet" "$binary"
note "installed $binary: $("$binary" --version)"

say "4/5 The account that runs fleet"
if [ "$(id -u)" = 0 ]; then
    make_service_user
    note "fleet runs as $SERVICE_USER, never as root"
else
    id_file_ok=yes
    grep -q "^$(id -un):" /etc/subuid 2>/dev/null && grep -q "^$(id -un):" /etc/subgid 2>/dev/null || id_file_ok=no
    if [ $id_file_ok = no ]; then
        note "giving $(id -un) subordinate ids"
        as_root usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "$(id -un)" ||
            die "$(id -un) has no subordinate ids, and there is no sudo" \
                "as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)"
    fi
    [ ! -d /run/systemd/system ] || loginctl enable-linger "$(id -un)" 2>/dev/null ||
        note "linger could not be enabled: containers end with your session (loginctl enable-linger)"
    note "fleet runs as $(id -un)"
fi

say "5/5 Sandbox image and demo"
# The script travels on standard input: the service user may not be able to read this directory.
as_service_user bash -s -- "$demo" "$serve" <scripts/demo.sh
rm -f "$LOG"
