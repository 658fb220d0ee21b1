"""``make bench-ingest``: speed and cost of ingestion, compared to the bare library in the same run.

Not part of the tests: a busy machine is slow, which is no fault of the code.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools.bench.corpus import describe
from tools.bench.figures import Figure, table
from tools.bench.rows.asking import bench_ask
from tools.bench.rows.embedding import bench_embed
from tools.bench.rows.ingesting import bench_drop, bench_mass, bench_memory
from tools.bench.rows.reading_speed import bench_read
from tools.bench.rows.scanning import bench_scan

# Divisor of files and pages with ``--quick``.
QUICK_SCALE = 10


def rows(scale: int) -> dict[str, Callable[[Path], list[Figure]]]:
    """Return the benchmarks by name."""
    return {
        "scan": bench_scan,
        "read": bench_read,
        "embed": bench_embed,
        "drop": bench_drop,
        "ask": partial(bench_ask, scale=1 if scale == 1 else 4),
        "mass": partial(bench_mass, scale=scale),
        "memory": partial(bench_memory, scale=scale),
    }


def main() -> None:
    """Run the chosen benchmarks and print the table; exit with 1 if a bar was missed."""
    asked = read_arguments()
    scale = QUICK_SCALE if asked.quick else 1
    chosen = {name: bench for name, bench in rows(scale).items() if not asked.rows or name in asked.rows}
    print(
        f"machine: {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    print(f"corpus: {describe()}", flush=True)
    figures: list[Figure] = []
    for name, bench in chosen.items():
        figures += measure(name, bench)
    print(f"\n{table(figures)}")
    sys.exit(any(figure.is_met is False for figure in figures))


def measure(name: str, bench: Callable[[Path], list[Figure]]) -> list[Figure]:
    """Run one benchmark in its own folder; if it raises, return a failed row."""
    started = time.monotonic()
    print(f"{name} ...", flush=True)
    work = Path(tempfile.mkdtemp(prefix=f"footnote-bench-{name}-", dir=Path.home() / ".cache" / "footnote"))
    try:
        figures = bench(work)
    except Exception as error:
        figures = [Figure(name, "", f"{type(error).__name__}: {error}"[:200], "", "", False)]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{table(figures)}\n  ({name}: {time.monotonic() - started:.0f} s)", flush=True)
    return figures


def read_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the pages: three minutes")
    parser.add_argument("--rows", default="", help=f"comma-separated, of {','.join(rows(1))}")
    asked = parser.parse_args()
    asked.rows = {name for name in asked.rows.split(",") if name}
    if strange := asked.rows - rows(1).keys():
        parser.error(f"no such row: {', '.join(sorted(strange))}")
    return asked


if __name__ == "__main__":
    main()
