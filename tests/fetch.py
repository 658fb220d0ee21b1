"""Fetches every engine that pip, npm and Go can give: ``python tests/fetch.py [name ... | --all]``.

Without a name those of ``make test``; with ``--all`` also those that only ``make test-all`` needs.

An engine that cannot be fetched is reported and leaves the others alone: the tests themselves say
loudly what they did without, and fail for it under ``--require-engines``.
"""

from __future__ import annotations

import subprocess
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path

from engines import LONG_ONLY, MODULES, Engine, FetchError, cache, load


def main(names: list[str]) -> None:
    """Fetch the named engines, or all; those already there are passed over."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "fetch.lock").open("w") as lock:
        flock(lock, LOCK_EX)  # whoever comes second finds everything there
        daily = [name for name in MODULES if name not in LONG_ONLY]
        for name in [*daily, *LONG_ONLY] if names == ["--all"] else names or daily:
            engine = load(name)
            if engine.missing():
                print(f"fetching {name} ...", flush=True)
                _fetch(name, engine)


def _fetch(name: str, engine: Engine) -> None:
    try:
        engine.fetch()
    except (FetchError, OSError, subprocess.SubprocessError) as error:
        print(f"{name} could not be fetched: {error}", file=sys.stderr)


if __name__ == "__main__":
    # Our packages come before the test folders of the same names, as pytest has it in pyproject.toml.
    sys.path.insert(0, str(Path(__file__).parent.parent))
    main(sys.argv[1:])
