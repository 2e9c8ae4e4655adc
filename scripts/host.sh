# shellcheck shell=bash
# Sourced by setup.sh and test.sh: what both do to a host. Says what it does before it does it.

say() { printf '\n==> %s\n' "$*"; }
note() { printf '    %s\n' "$*"; }
die() { printf 'error: %s\n' "$1" >&2; [ $# -gt 1 ] && printf '  hint: %s\n' "$2" >&2; exit 1; }

# The unprivileged account under which fleet runs when this is started as root.
SERVICE_USER=${FLEET_SERVICE_USER:-fleet}

# as_root COMMAND…: runs it with root's rights, through sudo where we are not root.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else return 1
    fi
}

# What installs packages here: apt or dnf.
if command -v apt-get >/dev/null; then PACKAGES_BY=apt
elif command -v dnf >/dev/null; then PACKAGES_BY=dnf
else PACKAGES_BY=nobody
fi

# is_installed PACKAGE
is_installed() {
    case $PACKAGES_BY in
        apt) dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed ;;
        dnf) rpm --quiet -q "$1" ;;
    esac
}

# install_packages PACKAGE…: installs what is missing with apt or dnf, and nothing else.
install_packages() {
    local missing=() package
    [ $PACKAGES_BY != nobody ] ||
        die "this host has neither apt-get nor dnf: only Debian, Ubuntu and Fedora are set up automatically" \
            "install these yourself and start again: $*"
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    if [ ${#missing[@]} = 0 ]; then note "packages: all present"; return; fi
    note "installing packages: ${missing[*]}"
    if [ $PACKAGES_BY = apt ]; then
        as_root env DEBIAN_FRONTEND=noninteractive sh -c '
            apt-get -q update && apt-get -q install -y --no-install-recommends "$@"' sh "${missing[@]}" \
            >"$LOG" 2>&1 ||
            die "the packages could not be installed (see $LOG)" \
                "as root: apt-get update && apt-get install --no-install-recommends ${missing[*]}"
    else
        as_root dnf --assumeyes --setopt=install_weak_deps=False install "${missing[@]}" >"$LOG" 2>&1 ||
            die "the packages could not be installed (see $LOG)" \
                "as root: dnf --setopt=install_weak_deps=False install ${missing[*]}"
    fi
}

# need_rust DIRECTORY: puts a toolchain that is new enough on PATH.
need_rust() {
    local want have
    want=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$1/Cargo.toml")
    [ -x "$HOME/.cargo/bin/cargo" ] && PATH=$HOME/.cargo/bin:$PATH
    have=$(rustc --version 2>/dev/null | cut -d' ' -f2)
    if [ -n "$have" ] && [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -1)" = "$want" ]; then
        note "Rust $have: new enough (needs $want)"
        return
    fi
    note "installing a Rust toolchain with rustup (needs $want, found ${have:-none})"
    install_packages curl ca-certificates
    if command -v rustup >/dev/null; then rustup -q toolchain install stable --profile minimal -c clippy -c rustfmt >>"$LOG" 2>&1
    else curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
            sh -s -- -y -q --profile minimal -c clippy -c rustfmt >>"$LOG" 2>&1
    fi || die "no Rust toolchain: rustup could not install one (see $LOG)" \
        "install Rust $want or newer so that cargo is on PATH, then start again"
    PATH=$HOME/.cargo/bin:$PATH
}

# grant_ids USER: 65536 subordinate user and group ids, behind those of everybody else.
grant_ids() {
    local kind file start
    for kind in uid gid; do
        file=/etc/sub$kind
        grep -q "^$1:" "$file" 2>/dev/null && continue
        start=$(awk -F: '{ end = $2 + $3; if (end > most) most = end } END { print (most > 100000 ? most : 100000) }' "$file" 2>/dev/null)
        note "giving $1 65536 subordinate ${kind}s from ${start:-100000}"
        as_root usermod --add-sub${kind}s "${start:-100000}-$((${start:-100000} + 65535))" "$1" ||
            die "$1 has no subordinate ${kind}s, and there is no sudo" \
                "as root: usermod --add-sub${kind}s ${start:-100000}-$((${start:-100000} + 65535)) $1"
    done
}

# prepare_account: the account that runs fleet. As root an unprivileged user, made when it is
# missing; else ourselves.
prepare_account() {
    local user
    user=$(id -un)
    if [ "$(id -u)" = 0 ]; then
        user=$SERVICE_USER
        if ! id "$user" >/dev/null 2>&1; then
            note "creating the user $user"
            useradd --create-home --shell /bin/bash "$user"
        fi
    fi
    grant_ids "$user"
    if [ -d /run/systemd/system ]; then
        note "enabling linger for $user, so that its containers outlive log-ins"
        loginctl enable-linger "$user" ||
            note "linger could not be enabled: containers end with the session (as root: loginctl enable-linger $user)"
    fi
    note "fleet runs as $user, never as root"
}

# runtime_dir USER: prints the user's runtime directory, and makes one where no systemd does.
runtime_dir() {
    local uid dir
    uid=$(id -u "$1")
    dir=/run/user/$uid
    if [ -d /run/systemd/system ]; then
        # linger starts the user manager, which makes the directory: wait for it.
        for _ in $(seq 50); do [ -d "$dir" ] && break; sleep 0.1; done
    elif [ "$(id -u)" = 0 ]; then
        install -d -m 0755 /run/user
        install -d -m 0700 -o "$uid" -g "$(id -g "$1")" "$dir"
    elif [ ! -w "$dir" ]; then
        dir=${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}/fleet-runtime-$uid}
        install -d -m 0700 "$dir"
    fi
    printf '%s\n' "$dir"
}

# as_service_user COMMAND…: runs it as the service user (as root) or as ourselves, with an empty
# environment.
as_service_user() {
    local user home dir
    if [ "$(id -u)" = 0 ]; then user=$SERVICE_USER; else user=$(id -un); fi
    home=$(getent passwd "$user" | cut -d: -f6)
    [ "$(id -u)" = 0 ] || home=$HOME
    dir=$(runtime_dir "$user")
    local clean=(env -i HOME="$home" USER="$user" LANG=C.UTF-8 TERM="${TERM:-dumb}"
        XDG_RUNTIME_DIR="$dir" PATH="$home/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        ${CI:+CI="$CI"})
    [ -S "$dir/bus" ] && clean+=(DBUS_SESSION_BUS_ADDRESS="unix:path=$dir/bus")
    if [ "$(id -u)" = 0 ]; then runuser -u "$user" -- "${clean[@]}" "$@"; else "${clean[@]}" "$@"; fi
}

# What rootless Podman and the sandbox image need, what the build needs besides Rust (a C compiler for
# SQLite), and what the tests need besides both.
if [ $PACKAGES_BY = dnf ]; then
    SANDBOX_PACKAGES=(podman crun runc shadow-utils git python3 ca-certificates util-linux tar)
    BUILD_PACKAGES=(gcc glibc-devel)
    TEST_PACKAGES=(chromium python3-pip)
else
    SANDBOX_PACKAGES=(podman crun runc uidmap mmdebstrap git python3 ca-certificates util-linux)
    BUILD_PACKAGES=(gcc libc6-dev)
    TEST_PACKAGES=(chromium python3-venv runsc)
fi
