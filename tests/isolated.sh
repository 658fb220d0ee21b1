#!/usr/bin/env bash
# Runs a command with loopback as its only network, where this machine allows it: servers that listen
# on all interfaces can then be reached by nobody, and a test that calls out fails. Elsewhere the
# command runs as it is, and tests/conftest.py leaves such servers out.
set -euo pipefail
loopback="$(dirname "$0")/loopback.py"
if [ "$(id -u)" = 0 ] && unshare --net true 2>/dev/null; then
    exec unshare --net .venv/bin/python "$loopback" "$@"
elif unshare --map-root-user --net unshare --map-user="$(id -u)" true 2>/dev/null; then
    # Root of the namespace switches loopback on; the command runs as the user it would be without.
    exec unshare --map-root-user --net .venv/bin/python "$loopback" \
        unshare --map-user="$(id -u)" --map-group="$(id -g)" "$@"
fi
exec "$@"
