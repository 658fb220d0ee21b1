"""``make bench-read CORPUS=DIR``: how rightly PDFs are read, against labels that people made from the pages.

``labels/`` names the files by folder and name; those of ``samples`` lie in ``deploy``. A file that DIR
lacks is a failure, because a bar that is met by half of the labels says nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

from figures import Figure, table

from ingestion.read.metadata import read_metadata
from storage.pdf.process import PdfProcess
from storage.settings import StorageSettings

LABELS = Path(__file__).parent / "labels"
SAMPLES = Path(__file__).parents[2] / "deploy"


def main() -> None:
    """Print the table; the exit status says whether every bar was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder of the labelled PDFs")
    asked = parser.parse_args()
    figures = asyncio.run(_metadata(asked.corpus))
    print(table(figures))
    sys.exit(any(figure.is_met is False for figure in figures))


async def _metadata(corpus: Path) -> list[Figure]:
    """Fields of every labelled file: right, missed, or said although the page says something else."""
    labels: dict[str, dict[str, str]] = json.loads((LABELS / "metadata.json").read_text())
    counts: Counter[str] = Counter()
    pdf = PdfProcess(StorageSettings())
    try:
        for name, printed in labels.items():
            path = (SAMPLES if name.startswith("samples/") else corpus) / name
            found = {field: one.value for field, one in read_metadata(await pdf.read(path)).items()}
            for field in printed.keys() | found.keys():
                outcome = _outcome(printed.get(field), found.get(field))
                counts[outcome] += 1
                if outcome != "right":
                    print(f"{name}: {field} {outcome}: {found.get(field)!r}, printed {printed.get(field)!r}")
    finally:
        await pdf.aclose()
    fields = sum(map(len, labels.values()))
    share = counts["right"] / fields
    return [
        Figure("SOP fields right", ">= 0.97", f"{share:.3f} of {fields}", "", "", share >= 0.97),
        Figure("SOP fields wrong", "0", str(counts["wrong"]), "", "", counts["wrong"] == 0),
    ]


def _outcome(printed: str | None, found: str | None) -> str:
    if printed == found:
        return "right"
    return "missed" if found is None else "wrong"


if __name__ == "__main__":
    main()
