#!/usr/bin/env bash
# Makes .venv from a lock file, with this checkout and the data it bundles: deploy/install.sh LOCK
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
lock=$1

stop() {
    echo "$1" >&2
    exit 1
}

# One line that moves on a terminal, every twentieth package elsewhere.
follow() {
    awk -v total="$(grep -c '^[a-z0-9]' "$lock")" -v moving="$([ -t 2 ] && echo 1)" '
        /^(Collecting|Requirement already)/ { done++; name = $1 == "Collecting" ? $2 : $4; sub(/[=<>!~;].*/, "", name) }
        /^Installing collected/ { done = total; name = "unpacking" }
        /^(Collecting|Requirement already|Installing collected)/ {
            if (moving) printf "\r\033[K  %d/%d %s", done, total, name
            else if (done % 20 == 0 || done == total) printf "  %d/%d %s\n", done, total, name
            fflush()
            next
        }
        /^ERROR/ || failed { failed = 1; printf "\n%s", $0 }
        END { if (moving || failed) printf "\n" }'
}

if [ ! -x .venv/bin/pip ]; then
    command -v "$python" >/dev/null || stop "Footnote needs Python 3.11 or newer, and '$python' is not installed."
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        stop "Footnote needs Python 3.11 or newer; '$python' is $("$python" -V 2>&1). Name another: make install PYTHON=python3.12"
    "$python" -m venv .venv ||
        stop "'$python' cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv"
fi

# The pip that Python brought along is as old as Python; the locked one installs all else.
.venv/bin/pip install --disable-pip-version-check --no-input -q --require-hashes --only-binary=:all: \
    -r <(awk '/^[a-z0-9]/ { ours = /^pip==/ } ours' "$lock")
# Only wheels: what is built from source brings along build tools that no lock names.
echo "Python packages of $lock:"
.venv/bin/pip install --disable-pip-version-check --no-input --require-hashes --only-binary=:all: -r "$lock" 2>&1 | follow
# setuptools warns of folders that are named as packages are.
PYTHONWARNINGS="ignore:Editable installation" \
    .venv/bin/pip install --disable-pip-version-check --no-input -q --no-deps --no-build-isolation -e .
.venv/bin/python deploy/fetch_data.py
