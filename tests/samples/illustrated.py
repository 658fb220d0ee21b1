"""A report with figures, drawn by a separate program: only the confined child may load PyMuPDF."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def illustrated_pdf(folder: Path) -> Path:
    """Return four pages with a logo each and a figure below the text: bars, lines, bitmap bars, boxes.

    Captions: "Figure 1. Emissions of carbon dioxide by year", "Figure 2. Water use by month" and "Figure 3.
    Rubbish by site"; the boxes have none. The third has "Oslo" and "40 tons" as pixels.
    """
    printer = [sys.executable, "-m", "tools.bench.print_illustrated", str(folder)]
    subprocess.run(printer, cwd=_ROOT, check=True)
    return folder / "illustrated.pdf"
