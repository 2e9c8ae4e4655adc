#!/usr/bin/env bash
# Runs inside the guest of vm.sh, as root from systemd: checks fleet as the user fleet, and says CHECK ok
# or CHECK FAILED, one line each.
set -uo pipefail
# The console is shared with the kernel: each line begins anew.
say() { printf '\nCHECK %s\n' "$*"; }
mkdir -p /data && mount -o ro /dev/vdb /data
install -m 0755 /data/fleet /usr/local/bin/fleet

# as USER COMMAND…: like cron does it, with nothing in the environment but HOME and PATH.
as() {
    local user=$1
    shift
    (cd "/home/$user" && runuser -u "$user" -- env -i HOME="/home/$user" PATH=/usr/local/bin:/usr/bin:/bin "$@")
}
# check NAME COMMAND…: whether it ends well.
check() {
    local name=$1 told
    shift
    if told=$("$@" 2>&1); then say "ok $name"; else
        say "FAILED $name"
        printf '%s\n' "$told" | tail -60 | sed 's/^/    /'
    fi
}
has() { grep -q -e "$1" <<<"$2" || { printf 'no %s in:\n%s\n' "$1" "$2"; return 1; }; }
json() { python3 -c "import json,sys; run = json.load(sys.stdin); print($1)"; }

# Forks until it may not, and says how often.
FORK='python3 -c "
import os, time
n = 0
try:
    while n < 120:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        n += 1
except OSError:
    pass
open(\"count.txt\", \"w\").write(str(n))"'

bundle() {
    as fleet env FORK="$FORK" bash -ec '
        mkdir -p b/tasks b/scripted && cd b && git init -q -b main
        git config user.name fleet; git config user.email fleet@example.invalid
        printf "version: 1\nname: vm\ndefaults: {model: scripted/session}\nproviders: [{name: scripted, type: scripted}]\n" >manifest.yaml
        task() { # NAME LIMITS COMMAND CHECK
            printf "prompt: x\nlimits: {sandbox: {%s}}\ncompletion: {shell: \"%s\"}\n" "$2" "$4" >tasks/$1.yaml
            printf "turns:\n  - tool_calls:\n      - name: bash\n        arguments: {command: %s}\n  - text: Done.\n" "$(python3 -c "import json,sys; print(json.dumps(sys.argv[1]))" "$3")" >scripted/$1.yaml
        }
        task memory "memory_mb: 128" "python3 -c \"x = bytearray(400 << 20); print(len(x))\" || echo died >died.txt" "test -e died.txt"
        task cell "memory_mb: 128" "" "test -e cell.txt"
        cat >scripted/cell.yaml <<END
turns:
  - tool_calls:
      - name: run_python
        arguments: {code: "x = bytearray(400 << 20)"}
  - tool_calls:
      - name: run_python
        arguments: {code: "open(\"cell.txt\", \"w\").write(\"alive\")"}
  - text: Done.
END
        task pids "pids: 40" "$FORK" "test \$(cat count.txt) -lt 40"
        task tmp "memory_mb: 256" "head -c 400000000 /dev/zero >/tmp/big; stat -c %s /tmp/big >size.txt; exit 0" "test \$(cat size.txt) -lt 300000000"
        task cpu "cpus: 0.5" "cat /sys/fs/cgroup/cpu.max >cpu.txt; exit 0" "grep -q 50000.100000 cpu.txt"
        task shared "memory_mb: 256" "python3 -c \"import multiprocessing; multiprocessing.Lock()\" && echo ok >shared.txt; exit 0" "test -e shared.txt"
        task slow "memory_mb: 128" "echo begun >begun.txt; sleep 600" "true"
        git add -A && git commit -qm vm'
}
run_task() { as fleet fleet task run "$1" --bundle /home/fleet/b >/dev/null 2>&1; }
says_out_of_memory() { as fleet fleet runs logs "$(as fleet fleet runs list --task "$1" --limit 1 --json | json 'run[0]["run_id"]')" | grep -e "out of memory: the kernel killed a process"; }
state_of() { as fleet fleet runs list --task "$1" --limit 1 --json | json 'run[0]["state"]'; }
succeeds() { run_task "$1"; local state; state=$(state_of "$1"); [ "$state" = success ] || { as fleet fleet runs logs "$(as fleet fleet runs list --task "$1" --limit 1 --json | json 'run[0]["run_id"]')" | tail -12; return 1; }; }

first() {
    check "image" as fleet fleet sandbox build --skeleton
    check "limits are enforced and read back" as fleet fleet sandbox probe --limits
    local report
    report=$(as fleet fleet sandbox probe 2>&1)
    for line in memory.max memory.swap.max pids.max cpu.max; do check "$line holds" has "$line" "$report"; done
    check "bundle" bundle
    check "a command beyond its memory dies alone" succeeds memory
    check "its end is told as out of memory" says_out_of_memory memory
    check "a cell beyond its memory loses its interpreter alone" succeeds cell
    check "its end is told as out of memory too" says_out_of_memory cell
    check "a fork bomb ends at the limit of processes" succeeds pids
    check "/tmp counts against memory and has its size" succeeds tmp
    check "processors are limited" succeeds cpu
    check "processes of Python share memory" succeeds shared
    local refused
    refused=$(as lonely fleet sandbox build --skeleton 2>&1; as lonely fleet sandbox probe 2>&1)
    check "a user without linger is told the way out" has "enable-linger" "$refused"
    if [ -x /data/suite ]; then
        check "crun applies the system-call filter, call by call, and full memory ends what filled it" \
            as fleet env FLEET_TEST_RUNTIME=crun FLEET_TEST_SECCOMP_PROBE=/data/probe XDG_RUNTIME_DIR="/run/user/$(id -u fleet)" \
            /data/suite --test-threads 1 --skip git_shells sandbox::seccomp:: sandbox::hostile::code_that_fills
        check "git, shells, threads and processes work under that filter" \
            as fleet env FLEET_TEST_RUNTIME=crun FLEET_TEST_SECCOMP_PROBE=/data/probe XDG_RUNTIME_DIR="/run/user/$(id -u fleet)" \
            /data/suite --test-threads 1 sandbox::seccomp::git_shells
    fi
    # A daemon with a run in its tool call, and then the power goes.
    as fleet bash -c 'setsid nohup fleet serve --bundle b --listen 127.0.0.1:0 >serve.log 2>&1 </dev/null & sleep 5'
    as fleet fleet sched trigger slow --bundle /home/fleet/b
    local waited=0
    until [ -n "$(find /home/fleet/.local/state/fleet -name begun.txt 2>/dev/null)" ] || [ $waited = 120 ]; do sleep 1; waited=$((waited + 1)); done
    check "a run is in its tool call" test $waited -lt 120
    touch /var/lib/fleet-vm-second
    sync
    say "ok reset"
    sleep 2
    echo b >/proc/sysrq-trigger
}

second() {
    as fleet bash -c 'setsid nohup fleet serve --bundle b --listen 127.0.0.1:0 >serve2.log 2>&1 </dev/null &'
    local waited=0
    until grep -q "will be tried again" /home/fleet/serve2.log 2>/dev/null || [ $waited = 120 ]; do sleep 1; waited=$((waited + 1)); done
    check "the next start resolves the run that the reset cut off" test $waited -lt 120
    local run
    run=$(as fleet fleet runs list --task slow --limit 1 --json | json 'run[0]["run_id"]')
    check "it is cancelled by hand" as fleet fleet sched cancel "$run"
    waited=0
    until [ "$(state_of slow)" = cancelled ] || [ $waited = 60 ]; do sleep 1; waited=$((waited + 1)); done
    check "and ends" test $waited -lt 60
    sleep 3
    check "no container is left" bash -c 'test -z "$(pgrep -u fleet conmon)"'
    check "no worktree is left" bash -c 'test "$(runuser -u fleet -- env -i HOME=/home/fleet PATH=/usr/local/bin:/usr/bin:/bin fleet worktree list --json)" = "[]"'
    check "the store is whole" python3 -c 'import sqlite3; assert sqlite3.connect("/home/fleet/.local/state/fleet/fleet.db").execute("pragma integrity_check").fetchone()[0] == "ok"'
    say "ok end"
    sleep 1
    poweroff -f
}

if [ -e /var/lib/fleet-vm-second ]; then second; else first; fi
