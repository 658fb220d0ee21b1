"""Fetches the engines used by tests, from pip, npm, Go and Debian.

An engine that cannot be fetched is reported with the reason, and the others continue: its tests are skipped
and listed. With ``--require`` this fails at once instead of half an hour later.
"""

from __future__ import annotations

import argparse
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path

from engines import LONG_ONLY, MODULES, Engine, FetchError, cache, load


def main() -> None:
    """Fetch the named engines, or all; those already fetched are skipped."""
    asked = read_arguments()
    daily = [name for name in MODULES if name not in LONG_ONLY]
    names = MODULES if asked.all else asked.names or daily
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "fetch.lock").open("w") as lock:
        flock(lock, LOCK_EX)  # a second process finds everything fetched
        failed = [name for name in names if not _fetch(name, load(name))]
    if failed and asked.require:
        sys.exit(f"required and not here: {', '.join(failed)}")


def read_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"Engines: {', '.join(MODULES)}.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="engine to fetch; default: those of make test"
    )
    parser.add_argument("--all", action="store_true", help="also those that only make test-all needs")
    parser.add_argument("--require", action="store_true", help="fail when one of them cannot be fetched")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.names).difference(MODULES)):
        parser.error(f"unknown engine: {', '.join(unknown)}")
    return asked


def _fetch(name: str, engine: Engine) -> bool:
    """Fetch a missing engine; print the reason and return False if that fails."""
    if engine.missing():
        print(f"fetching {name} ...", flush=True)
        try:
            engine.fetch()
        except (FetchError, OSError) as error:
            print(f"{name} could not be fetched: {error}", file=sys.stderr, flush=True)
            return False
    return True


if __name__ == "__main__":
    # Our packages precede the test folders of the same names, as for pytest in pyproject.toml.
    sys.path.insert(0, str(Path(__file__).parent.parent))
    main()
