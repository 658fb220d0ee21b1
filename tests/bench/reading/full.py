"""Our full reading, with layout, tables and figures, as a column of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reading.seen import Readout


async def read_full(files: Mapping[str, tuple[Path, Sequence[int]]]) -> Readout | None:
    """What the full reading sees; None as long as there is none, and the quick one stands in its column.

    A page comes as blocks with kind, text range and box. Their texts in their order are ``Seen.text``,
    those of the kind heading ``Seen.headings``, boxes of the kind figure ``Seen.figures``, and tables,
    which hold rows of cell texts, ``Seen.tables``.
    """
    del files
    return None
