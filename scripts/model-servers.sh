#!/usr/bin/env bash
# Installs from PyPI two model servers that others wrote, against which the suite runs too: litellm's
# proxy, and llama.cpp's server with a small model. Prints where. Without root; may be run again.
#
#   scripts/model-servers.sh
set -euo pipefail
cd "$(dirname "$0")/../tests/model_servers"
version=$(cat proxy.txt llama.txt | sha256sum | cut -c1-12)
place=${XDG_CACHE_HOME:-$HOME/.cache}/fleet-tests/model-servers-$version
if [ ! -e "$place/ready" ]; then
    rm -rf "$place"
    mkdir -p "$place"
    python3 -m venv "$place/installer"
    "$place/installer/bin/pip" install --quiet --disable-pip-version-check uv >&2
    uv=$place/installer/bin/uv
    "$uv" venv --quiet "$place/python"
    into=(pip install --quiet --no-cache --system-certs --python "$place/python/bin/python")
    "$uv" "${into[@]}" --requirement proxy.txt >&2
    "$uv" "${into[@]}" --no-deps --requirement llama.txt >&2
    touch "$place/ready"
fi
printf '%s\n' "$place/python/bin"
