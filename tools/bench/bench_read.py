"""``make bench-read CORPUS=DIR``: accuracy of PDF reading, against labels that people made from the pages.

``labels/`` lists the files by folder and name; those in ``samples`` are in ``bot/cli/setup``, those in
``papers`` are drawn for each run. A file missing from DIR is a failure, because a bar that is met by half of
the labels says nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.bench.print_papers import print_papers
from tools.bench.reading.full import read_full
from tools.bench.reading.labels import Labels, load_labels
from tools.bench.reading.library import Files, printed_words, read_with
from tools.bench.reading.measures.fields import count_fields, printed_fields
from tools.bench.reading.measures.sentences import Words, count_sentences, sample
from tools.bench.reading.quick import read_quick
from tools.bench.reading.report import Row, Rows, count, printed
from tools.bench.reading.tally import Tally

SAMPLES = Path(__file__).parents[2] / "bot" / "cli" / "setup"
FULL, QUICK = "ours", "ours, quick"
LIBRARIES = {"PyMuPDF": "pymupdf", "pymupdf4llm": "pymupdf4llm"}


def main() -> None:
    """Measure and print the table; exit with 1 if a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder of the labelled PDFs")
    parser.add_argument("--show", choices=(FULL, QUICK, *LIBRARIES), help="list what this reader got wrong")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        met = _measure(asked.corpus, Path(folder), asked.show)
    sys.exit(not all(met))


def _measure(corpus: Path, work: Path, shown: str | None) -> list[bool]:
    labels = load_labels(print_papers(work / "papers"))
    fields = printed_fields()
    homes = {"samples": SAMPLES, "papers": work}
    pages = labels.pages()
    paths = {
        name: homes.get(name.split("/")[0], corpus) / name for name in sorted(pages.keys() | fields.keys())
    }
    files = {name: (paths[name], numbers) for name, numbers in pages.items()}
    quick = asyncio.run(read_quick(paths))
    full = asyncio.run(read_full(paths, quick.pdfs))
    readouts = {FULL: full.readout(), QUICK: quick.readout()} | {
        name: read_with(library, files) for name, library in LIBRARIES.items()
    }
    words = _words(labels, files)
    tallies = {name: count(labels, words, readout) for name, readout in readouts.items()}
    metadata = count_fields(fields, quick.pdfs)
    boxes = count_sentences(sample(words), words, full.chunks())
    found = [*_field_rows(metadata, FULL), *Rows(tallies, FULL).all(), _sentence_row(boxes, FULL)]
    if shown:
        wrong = [*metadata.wrong, *boxes.wrong] if shown == FULL else []
        print("\n".join([*wrong, *tallies[shown].wrong()]), end="\n\n")
    print(printed(found, list(readouts)))
    return [row.is_met for row in found if row.is_met is not None]


def _words(labels: Labels, files: Files) -> Words:
    """Return the words of pages with labelled text; on other pages they may be part of pictures."""
    kinds = (*((name, kinds["headings"]) for name, kinds in labels.headings.items()), *labels.order.items())
    numbers: dict[str, set[int]] = {}
    for name, pages in kinds:
        numbers.setdefault(name, set()).update(map(int, pages))
    return printed_words({name: (files[name][0], sorted(pages)) for name, pages in numbers.items()})


def _sentence_row(tally: Tally, ours: str) -> Row:
    share = tally.share("right", "asked")
    what = f"sentence boxes right (of {tally.counts['asked']})"
    return Row(what, ">= 0.99", {ours: f"{share:.3f}"}, share >= 0.99)


def _field_rows(tally: Tally, ours: str) -> Sequence[Row]:
    share, wrong = tally.share("right", "asked"), tally.counts["wrong"]
    return [
        Row(
            f"SOP fields right (of {tally.counts['asked']})", ">= 0.97", {ours: f"{share:.3f}"}, share >= 0.97
        ),
        Row("SOP fields wrong", "0", {ours: str(wrong)}, wrong == 0),
    ]


if __name__ == "__main__":
    main()
