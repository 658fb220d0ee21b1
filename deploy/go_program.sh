#!/bin/sh
# Builds a program of a Go module, of files whose hashes are known:
#   deploy/go_program.sh GO MODULE@VERSION CHECKSUM ./PACKAGE TARGET
# CHECKSUM is the module's line in a go.sum, "h1:...". The module's own go.sum is part of what it covers and holds the
# hash of every other module, so the program is built in a copy of its files: what has another hash ends the build.
set -eu

go=$1 module=$2 checksum=$3 package=$4 target=$5
path=${module%@*}
# Go fetches no other Go, and adds nothing to a go.sum. Whether its checksum database is within reach does not matter.
export GOTOOLCHAIN=local GOWORK=off GOFLAGS="-mod=readonly -trimpath -buildvcs=false" CGO_ENABLED=0 GONOSUMDB="$path"

work=$(mktemp -d "$(dirname "$target")/.go-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

found=$(cd / && "$go" mod download -json "$module") || { echo "$found" >&2; exit 1; }
field() { echo "$found" | sed -n "s/^[[:space:]]*\"$1\": \"\(.*\)\",\{0,1\}$/\1/p"; }
if [ "$(field Sum)" != "$checksum" ]; then
    echo "$module is not the one that was pinned: $(field Sum) instead of $checksum" >&2
    exit 1
fi
cp -R "$(field Dir)" "$work/source"
chmod -R u+w "$work/source"  # Go's cache is read-only, and so would be what is removed at the end
(cd "$work/source" && "$go" build -o "$work/program" "$package")
mv -f "$work/program" "$target"
