#!/usr/bin/env bash
# Run by setup.sh as the account that runs fleet: builds the sandbox image, runs the demo task once,
# and shows what came of it.   demo.sh DEMO SERVE   (each yes or no)
set -euo pipefail
demo=$1 serve=$2
cd "$HOME"
state=$HOME/.local/state/fleet
bundle=$HOME/fleet-demo
step() { printf '\n--- %s\n' "$*"; }

mkdir -p "$state"
chmod 0700 "$state"

step "sandbox image"
fleet sandbox build --if-missing

step "the seal, read back from inside a container"
if ! fleet sandbox probe --limits >/dev/null 2>&1 && [ ! -e "$state/fleet.toml" ]; then
    echo "This host does not let rootless Podman enforce every limit (memory, processes, CPU)."
    printf '%s\n' \
        '# Written by setup.sh: this host does not let rootless Podman enforce cgroup limits, so' \
        '# rlimits stand in and every run is marked best_effort. The network seal, capabilities,' \
        '# seccomp and the read-only root are enforced all the same.' \
        '[sandbox]' \
        'limits = "best_effort"' >"$state/fleet.toml"
    echo "Wrote sandbox.limits = \"best_effort\" to $state/fleet.toml: rlimits stand in, and every run says so."
fi
fleet sandbox probe
[ "$demo" = yes ] || exit 0

step "bundle"
if [ -d "$bundle" ]; then echo "$bundle is there already"; else fleet init "$bundle"; fi
fleet bundle validate "$bundle"

step "task hello-report, by hand"
fleet task run hello-report --bundle "$bundle"
run=$(fleet runs list --task hello-report --limit 1 --json | python3 -c 'import json,sys; print(json.load(sys.stdin)[0]["run_id"])')

step "the run"
fleet runs show "$run"
step "its artifacts"
fleet runs artifacts "$run"

step "its branch"
fleet runs show "$run" --json | python3 -c '
import json, subprocess, sys
run = json.load(sys.stdin)
repo = next(a["repo"] for a in reversed(run["attempt_list"]) if a["repo"])
print("in", repo, flush=True)
subprocess.run(["git", "-C", repo, "log", "--stat", "-n", "2", run["branch"]], check=True)'

[ "$serve" = yes ] || exit 0
step "status page"
# A daemon that is there already is left alone: a second one on the same state refuses to start.
setsid nohup fleet serve --bundle "$bundle" >>"$state/serve.log" 2>&1 </dev/null &
if ! page=$(python3 - "$state/serve.lock" <<'END'
import json, sys, time, urllib.request
for _ in range(100):
    try:
        page = json.load(open(sys.argv[1]))["page"]
        urllib.request.urlopen(page + "readyz", timeout=1)
        print(page)
        break
    except (OSError, ValueError, TypeError):
        time.sleep(0.1)
else:
    sys.exit(1)
END
)
then
    echo "the daemon did not start; the end of $state/serve.log:" >&2
    tail -n 5 "$state/serve.log" >&2
    echo "If the port is taken: put [serve] and listen = \"127.0.0.1:PORT\" into $state/fleet.toml, and run this again." >&2
    exit 1
fi
echo "${page}runs/$run shows the run; $page all tasks"
fleet status
echo "it logs to $state/serve.log; stop it with: kill -TERM and that pid"
