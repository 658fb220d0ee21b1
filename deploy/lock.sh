#!/usr/bin/env bash
# Writes the four locks (users, those with shares, those with traces, developers) from pyproject.toml, every file with its hash.
# setuptools is locked with the rest, because `make install` builds without fetching anything else.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v uv >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 1; }

compile() {
    echo "setuptools>=77" | uv pip compile pyproject.toml - --universal --generate-hashes --no-emit-index-url \
        --python-version 3.11 --no-header --quiet --upgrade "$@"
}
compile --output-file requirements.txt
compile --extra shares --constraints requirements.txt --output-file requirements-shares.txt
compile --extra shares --extra otel --constraints requirements-shares.txt --output-file requirements-otel.txt
compile --extra dev --constraints requirements-otel.txt --output-file requirements-dev.txt
