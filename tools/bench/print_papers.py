"""Draws the generated papers into a folder, with their ground truth in ``labels.json``.

A separate program, because only the sandboxed child may load PyMuPDF.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KINDS = ("tables", "order", "figures")


def print_papers(folder: Path) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Draw the papers; return kind of label -> file, relative to the folder's parent -> page -> label."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", __name__, str(folder)], check=True)
    labels: dict[str, dict[str, Mapping[str, Any]]] = json.loads((folder / "labels.json").read_text())
    return labels


def main() -> None:
    """Draw all papers into the folder named on the command line."""
    from tools.bench.papers.columns import column_papers  # noqa: PLC0415  (they load PyMuPDF)
    from tools.bench.papers.reports import reports  # noqa: PLC0415
    from tools.bench.papers.tables import table_papers  # noqa: PLC0415
    from tools.bench.papers.turned import turned_paper  # noqa: PLC0415

    folder = Path(sys.argv[1])
    labels: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    for paper in (*reports(), *table_papers(), *column_papers(), turned_paper()):
        paper.save(folder)
        for kind in KINDS:
            if known := getattr(paper, kind):
                labels[kind][f"{folder.name}/{paper.name}.pdf"] = known
    (folder / "labels.json").write_text(json.dumps(labels, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
