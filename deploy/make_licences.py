"""Generates ``docs/licences.md``, the licence of every locked and installed package; run by ``make format``.

The licence comes from the package's own metadata, normalised to SPDX. An unknown licence ends the run with a
message. ``tests/test_licences.py`` checks the page against the installed packages and our AGPL-3.0.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
# Each lock includes the previous one, so a package belongs to the first that lists it.
LOCKS = {
    "requirements.txt": "everybody",
    "requirements-shares.txt": "shares",
    "requirements-otel.txt": "traces",
    "requirements-dev.txt": "development",
}
NPM_LOCK = ROOT / "tests" / "engines" / "support" / "slack_schemas" / "package-lock.json"

# Licence names in package metadata -> SPDX identifiers.
WORDS = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 3-clause": "BSD-3-Clause",
    "The BSD 2-Clause License": "BSD-2-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT license": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "MIT, BSD": "MIT AND BSD-3-Clause",
    "PSFL": "PSF-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "Dual Licensed - GNU AFFERO GPL 3.0 or Artifex Commercial License": "AGPL-3.0-only OR LicenseRef-Artifex",
    "LGPL-2.1": "LGPL-2.1-only",
}

# Packages whose metadata names no licence: stubs that bring PyMuPDF along, and one "Dual License".
READ_BY_HAND = {
    "pypdfium2": "Apache-2.0 AND BSD-3-Clause",
    "pymupdf4llm": "AGPL-3.0-only OR LicenseRef-Artifex",
    "pymupdf-layout": "AGPL-3.0-only OR LicenseRef-Artifex",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
}

# Licences that may be part of a program under the AGPL-3.0.
COMPATIBLE = {
    "0BSD", "AGPL-3.0-only", "AGPL-3.0-or-later", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause",
    "BSD-3-Clause", "CC0-1.0", "GPL-3.0-only", "GPL-3.0-or-later", "ISC", "LGPL-2.1-only",
    "LGPL-2.1-or-later", "LGPL-3.0-only", "LGPL-3.0-or-later", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0",
    "PSF-2.0", "Unlicense", "Zlib",
}  # fmt: skip

# Packages that the rule rejects and a person has reviewed.
EXPLAINED = {
    "regex": "it names CNRI's licence of Python 1.6 for lines of CPython 2.6 and 3.1, which the Python "
    "Software Foundation distributes under its own licence, a compatible one. tiktoken needs it.",
}

HEAD = """\
# Licences of what is installed

Look up a package's licence here. `make format` writes this page from the packages' metadata
(`deploy/make_licences.py`). A test fails when a package is missing, says something else, or is incompatible
with our AGPL-3.0 (`tests/test_licences.py`). Why each direct dependency is needed, and the licences of other
programs: [packages.md](packages.md).

"Everybody" is `make install`, "shares" comes with `SHARES=1`, "traces" with `TRACES=1`, "development" with
`make test`.

| package | licence | for |
|---|---|---|
"""
NPM_HEAD = """
## npm packages that tests unpack

| package | licence |
|---|---|
"""


def render() -> str:
    """Return the whole page.

    Raises:
        SystemExit: a package's licence is not understood.
    """
    lines = [f"| {name} | {licence} | {whom} |" for name, (licence, whom) in installed().items()]
    notes = [f"* **{name}**: {why}" for name, why in EXPLAINED.items()]
    npm = [f"| {name} | {licence} |" for name, licence in npm_licences()]
    return HEAD + "\n".join([*lines, "", *notes, NPM_HEAD]) + "\n".join(npm) + "\n"


def installed() -> dict[str, tuple[str, str]]:
    """Return name -> (licence, audience) of each package that is both locked and installed.

    Raises:
        SystemExit: a package's licence is not understood.
    """
    whom = {name: label for lock, label in reversed(LOCKS.items()) for name in locked(lock)}
    found = {canonical(one.metadata["Name"]): one for one in distributions()}
    return {name: (licence(found[name]), whom[name]) for name in sorted(found.keys() & whom.keys())}


def locked(lock: str) -> list[str]:
    """Return the package names in a lock file."""
    return re.findall(r"(?m)^([a-z0-9-]+)(?:\[[a-z,]+\])?==", (ROOT / lock).read_text(encoding="utf-8"))


def canonical(name: str) -> str:
    """Return a package name normalised as in lock files."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(package: Distribution) -> str:
    """Return a package's SPDX licence: from its expression, else its licence field, else its classifiers."""
    said = package.metadata
    name = canonical(said["Name"])
    if expression := READ_BY_HAND.get(name) or said.get("License-Expression"):
        return WORDS.get(expression, expression)
    kinds = [
        kind.rsplit(" :: ", 1)[-1] for kind in said.get_all("Classifier", []) if kind.startswith("License")
    ]
    for word in [*(said.get("License") or "").splitlines()[:1], *kinds]:
        if is_compatible(known := WORDS.get(word.strip(), word.strip())):
            return known
    words = [said.get("License"), *kinds]
    sys.exit(f"{name} says {words} of its licence: read it, then deploy/make_licences.py")


def npm_licences() -> list[tuple[str, str]]:
    """Return (name, licence) of each npm package in the lock file."""
    packages = json.loads(NPM_LOCK.read_text(encoding="utf-8"))["packages"]
    names = {place: place.rpartition("node_modules/")[2] for place in packages if place}
    return sorted({(name, packages[place].get("license", "nothing")) for place, name in names.items()})


def is_compatible(expression: str) -> bool:
    """True if all licences of an SPDX expression are compatible, or one of its alternatives is."""
    if "(" in expression:
        return all(
            part in COMPATIBLE for part in re.split(r" (?:AND|OR|WITH) ", re.sub(r"[()]", "", expression))
        )
    return any(all(part in COMPATIBLE for part in one.split(" AND ")) for one in expression.split(" OR "))


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
