"""``make bench-diff CORPUS=DIR``: our quick text of PDFs, compared to pypdfium2 and poppler's pdftotext.

Prints a line for each page on which both disagree with us, and draws the tokens with a digit into
``build/differential``. A difference is not an error yet: a person looks at the picture.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.bench.figures import markdown
from tools.differential.readers import ComparedPage, compare_files, has_poppler
from tools.differential.sheet import write_sheets
from tools.differential.tokens import Difference, Kind

HEAD = ("file", "page", "numbers", *Kind, "words:", *list(Kind)[:-1], "pairs", "strange")
SHEETS = Path("build") / "differential"


def main() -> None:
    """Compare all PDFs below a folder; the exit status is 0 in any case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder of the PDFs")
    parser.add_argument("--sheets", type=Path, default=SHEETS, help="where the pictures go")
    parser.add_argument("--show", action="store_true", help="list the tokens, too")
    asked = parser.parse_args()
    files = {str(path.relative_to(asked.corpus)): path for path in sorted(asked.corpus.rglob("*.pdf"))}
    if not files:
        sys.exit(f"no PDF below {asked.corpus}")
    if not has_poppler():
        print("pdftotext is not installed (sudo apt-get install -y poppler-utils): pypdfium2 alone")
    pages = asyncio.run(compare_files(files))
    print(page_table(pages), *(token_lines(pages) if asked.show else []), sep="\n")
    shutil.rmtree(asked.sheets, ignore_errors=True)
    sheets = write_sheets(pages, asked.sheets)
    print(f"\n{len(files)} files, {len(pages)} pages, {len(sheets)} sheets of pictures in {asked.sheets}")


def page_table(pages: Sequence[ComparedPage]) -> str:
    """Return a table with a line for each page that differs, and one of sums."""
    differing = [one for one in pages if one.found.numbers or one.found.words]
    rows = [(one.name, str(one.page.number), *_figures([one])) for one in differing]
    return markdown([HEAD, *rows, ("all", str(len(pages)), *_figures(pages))])


def token_lines(pages: Sequence[ComparedPage]) -> list[str]:
    """Return the differing tokens with a digit, by page."""
    return [
        f"{one.name} {one.page.number}: " + ", ".join(f"{each.kind} {each.token}" for each in listed)
        for one in pages
        if (listed := one.found.numbers)
    ]


def _figures(pages: Sequence[ComparedPage]) -> list[str]:
    found = [one.found for one in pages]
    pairs = sum(one.pairs for one in found)
    share = sum(one.strange_pairs for one in found) / max(1, pairs)
    return [
        str(sum(one.count for one in found)),
        *_kinds([each for one in found for each in one.numbers]),
        "",
        *_kinds([each for one in found for each in one.words])[:-1],
        str(pairs),
        f"{share:.3f}",
    ]


def _kinds(differences: Sequence[Difference]) -> list[str]:
    counted = Counter(each.kind for each in differences)
    return [str(counted[kind] or "") for kind in Kind]


if __name__ == "__main__":
    main()
