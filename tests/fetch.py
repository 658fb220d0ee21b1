"""Fetches every engine that pip, npm and Go can give: ``python tests/fetch.py [name ...]``.

An engine that cannot be fetched is reported and leaves the others alone: the tests themselves say
loudly what they did without, and fail for it under ``--require-engines``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from engines import MODULES, FetchError, load


def main(names: list[str]) -> None:
    """Fetch the named engines, or all; those already there are passed over."""
    for name in names or MODULES:
        engine = load(name)
        if engine.missing():
            print(f"fetching {name} ...", flush=True)
            try:
                engine.fetch()
            except (FetchError, OSError, subprocess.SubprocessError) as error:
                print(f"{name} could not be fetched: {error}", file=sys.stderr)


if __name__ == "__main__":
    # Our packages come before the test folders of the same names, as pytest has it in pyproject.toml.
    sys.path.insert(0, str(Path(__file__).parent.parent))
    main(sys.argv[1:])
