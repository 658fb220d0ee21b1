"""A report with figures, drawn by a program of its own: only the limited child may load PyMuPDF."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PRINTER = Path(__file__).parents[1] / "bench" / "print_illustrated.py"


def illustrated_pdf(folder: Path) -> Path:
    """Four pages with a logo on each and a figure below its text: bars, lines, bars of pixels, boxes.

    Captions: "Figure 1. Emissions of carbon dioxide by year", "Figure 2. Water use by month" and
    "Figure 3. Rubbish by site"; the boxes have none. The third holds "Oslo" and "40 tons" in pixels.
    """
    subprocess.run([sys.executable, str(_PRINTER), str(folder)], check=True)
    return folder / "illustrated.pdf"
