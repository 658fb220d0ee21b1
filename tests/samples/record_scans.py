"""Record the OCR lines of the scans of ``make_scans.py``: ``record_scans.py FOLDER FILE``.

Tests of line grouping read them from ``scans.json``, because OCR of all scans takes 20 s of CPU.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pymupdf

from storage.pdf.child.ocr_engine import OcrEngine
from storage.pdf.child.ocr_job import draw
from storage.pdf.child.ocr_layout import WHOLE, Quad

NAMES = ("side", "straight", "columns", "skewed", "head")


def _numbers(quad: Quad) -> list[int]:
    return [round(float(number)) for number in quad.ravel()]


def main() -> None:
    engine, scans = OcrEngine(), {}
    for name in NAMES:
        with pymupdf.open(Path(sys.argv[1]) / f"{name}.pdf") as document:
            picture, dpi = draw(document, 1, WHOLE)
        lines = [
            ([(text, _numbers(quad)) for text, quad in line.words], _numbers(line.quad), round(line.score, 3))
            for line in engine.read(picture, dpi)
        ]
        scans[name] = {"dpi": dpi, "size": picture.shape[1::-1], "lines": lines}
    Path(sys.argv[2]).write_text(json.dumps(scans, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
