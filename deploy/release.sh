#!/bin/sh
# Checks, builds and tags the version in pyproject.toml; uploads nothing. `make release` calls it with CHECKS.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "release: $*" >&2
    exit 1
}

require_clean_tree() {
    git status --short
    [ -z "$(git status --porcelain)" ] || fail "commit or remove these files"
}

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
require_clean_tree
! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null ||
    fail "v$version is tagged already: raise the version in pyproject.toml"
grep -Eq "^## $version - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md ||
    fail "CHANGELOG.md has no section '## $version - YYYY-MM-DD'"

make --no-print-directory ${CHECKS:?}
require_clean_tree

rm -rf dist
make --no-print-directory wheel
(cd dist && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)

git tag -a "v$version" -m "Footnote $version"
echo "release: tagged v$version; push the tag and publish dist/ yourself"
