"""Writes hostile PDFs: ``python -m tools.hostile.make_hostile FOLDER SEED FIRST COUNT``.

A separate program, since neither the service nor the tests' own process loads PyMuPDF. ``cases.json`` next to
the files lists number, kind, name and expected outcome of each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tools.hostile.hostile_cases import KINDS, case


def main(folder: Path, seed: int, first: int, count: int) -> None:
    """Write the files as NUMBER.pdf, and ``cases.json``."""
    rows = []
    for number in range(first, first + count):
        made = case(seed, number)
        (folder / f"{number}.pdf").write_bytes(made.data)
        rows.append({"number": number, "kind": made.kind, "name": made.name, "ends": KINDS[made.kind].ends})
    (folder / "cases.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
