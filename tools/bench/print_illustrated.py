"""Draws the illustrated report into a folder; a separate program, like ``print_papers.py``."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.bench.papers.illustrated import illustrated

if __name__ == "__main__":
    illustrated().save(Path(sys.argv[1]))
