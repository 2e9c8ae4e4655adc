#!/usr/bin/env bash
# Checks the limits for real: boots a Debian of its own with systemd and pure cgroup v2 in QEMU, without
# KVM, and runs fleet there as an ordinary user. Slow (minutes) and apart from the suite.
#
#   scripts/vm.sh [bookworm|trixie] [FLEET] [SUITE]
#
# FLEET is a built binary, default target/release/fleet. SUITE is the built test binary `it`: with it the
# system-call filter and full memory are tried too, by crun.
#
# As root, for the packages. The guest's disk is kept in ${XDG_CACHE_HOME:-~/.cache}/fleet-vm.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/host.sh
. scripts/host.sh
LOG=$(mktemp "${TMPDIR:-/tmp}/fleet-vm.XXXXXX")
release=${1:-bookworm}
fleet=${2:-target/release/fleet}
suite=${3:-}
case $release in bookworm | trixie) ;; *) die "no guest for $release" "write bookworm or trixie" ;; esac
[ -x "$fleet" ] || die "there is no $fleet" "cargo build --release, or name a binary"
started=$SECONDS

[ -z "$suite" ] || [ -x "$suite" ] || die "there is no $suite" "cargo nextest list says where the test binaries are"

say "Packages: qemu-system-x86 mmdebstrap e2fsprogs"
install_packages qemu-system-x86 mmdebstrap e2fsprogs

cache=${XDG_CACHE_HOME:-$HOME/.cache}/fleet-vm
root=$cache/$release
mkdir -p "$cache"
if [ ! -e "$root/boot-ready" ]; then
    say "The guest: $release"
    rm -rf "$root"
    include=systemd-sysv,dbus-user-session,libpam-systemd,linux-image-cloud-amd64,podman,crun,uidmap
    include+=,python3,git,ca-certificates,procps,golang-github-containers-common
    mmdebstrap --quiet --variant=minbase --include="$include" "$release" "$root" >"$LOG" 2>&1 ||
        die "the guest could not be made (see $LOG)" "does this host reach Debian's packages?"
    install -m 0644 scripts/vm/fleet-check.service "$root/etc/systemd/system/fleet-check.service"
    chroot "$root" /bin/sh -ec '
        for user in fleet lonely; do useradd --create-home --shell /bin/bash $user; done
        printf "fleet:100000:65536\nlonely:165536:65536\n" | tee /etc/subuid >/etc/subgid
        mkdir -p /var/lib/systemd/linger; touch /var/lib/systemd/linger/fleet
        systemctl enable fleet-check.service
        # Its hang-up would cut the log.
        systemctl mask serial-getty@ttyS0.service systemd-networkd-wait-online.service
        echo "/dev/vda / ext4 defaults 0 1" >/etc/fstab
        echo fleet-vm >/etc/hostname' >>"$LOG" 2>&1
    touch "$root/boot-ready"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/fleet-vm.XXXXXX")
trap 'rm -rf "$work"; rm -f "$LOG"' EXIT
say "Disks"
# Made anew each time: the checks change the guest.
install -m 0755 scripts/vm/check.sh "$root/usr/local/bin/fleet-vm-check"
install -m 0644 scripts/vm/fleet-check.service "$root/etc/systemd/system/fleet-check.service"
# An emulated processor on a busy host: the guest's own services must not be given up.
for manager in system user; do
    mkdir -p "$root/etc/systemd/$manager.conf.d"
    printf '[Manager]\nDefaultTimeoutStartSec=600s\nDefaultTimeoutStopSec=600s\n' >"$root/etc/systemd/$manager.conf.d/slow.conf"
done
truncate -s 4G "$work/disk.img"
mkfs.ext4 -q -F -d "$root" "$work/disk.img"
mkdir "$work/data"
install -m 0755 "$fleet" "$work/data/fleet"
if [ -n "$suite" ]; then
    install -m 0755 "$suite" "$work/data/suite"
    gcc -static -O1 -o "$work/data/probe" tests/it/sandbox/seccomp_probe.c
fi
truncate -s 1G "$work/data.img"
mkfs.ext4 -q -F -d "$work/data" "$work/data.img"
kernel=$(ls "$root"/boot/vmlinuz-* | sort -V | tail -1)
initrd=$(ls "$root"/boot/initrd.img-* | sort -V | tail -1)

# boot LOG: until the guest powers off or is reset.
boot() {
    timeout 2400 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2048 -no-reboot \
        -kernel "$kernel" -initrd "$initrd" -append "root=/dev/vda rw console=ttyS0 panic=-1 quiet" \
        -drive "file=$work/disk.img,format=raw,if=virtio,cache=unsafe" \
        -drive "file=$work/data.img,format=raw,if=virtio,readonly=on" \
        -nic none -display none -monitor none -serial "file:$1" </dev/null
}

say "First boot: limits, and a reset in the middle of a run"
boot "$work/first.log" || true
say "Second boot: what became of the run"
boot "$work/second.log" || true

say "Results"
grep -ah '^CHECK ' "$work/first.log" "$work/second.log" | tr -d '\r' | sed 's/^CHECK /    /' || true
passed=$(grep -ahc '^CHECK ok' "$work/first.log" "$work/second.log" | awk '{ n += $1 } END { print n }')
failed=$(grep -ahc '^CHECK FAILED' "$work/first.log" "$work/second.log" | awk '{ n += $1 } END { print n }')
# Both boots say that they came to their end.
if [ "$failed" != 0 ] || ! grep -aq '^CHECK ok reset' "$work/first.log" || ! grep -aq '^CHECK ok end' "$work/second.log"; then
    cp "$work/first.log" "$work/second.log" "$cache/" || true
    die "$passed passed, $failed failed, or a boot did not come to its end" "the guest's console is in $cache/first.log and second.log"
fi
note "$passed passed, 0 failed on $release in $((SECONDS - started)) s"
