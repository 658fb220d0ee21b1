"""Labels: what people saw on the pages of the corpus, and the ground truth of generated papers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "labels"
# Page number, as text -> its labels.
Pages = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels by kind: file, relative to its folder -> labelled pages."""

    # ``headings``; ``plain`` ones, set like body text; ``doubtful`` ones, which never count.
    headings: Mapping[str, Mapping[str, Pages]]
    # Tables of a page as rows of cells; null continues a merged cell.
    tables: Mapping[str, Pages]
    # Snippets of a page in reading order.
    order: Mapping[str, Pages]
    # Boxes of a page with captions; a doubtful one counts neither as missed nor as invented.
    figures: Mapping[str, Pages]

    def pages(self) -> dict[str, list[int]]:
        """Return file -> labelled pages."""
        found: dict[str, set[int]] = {}
        for name, pages in self._all():
            found.setdefault(name, set()).update(map(int, pages))
        return {name: sorted(pages) for name, pages in found.items()}

    def _all(self) -> Iterator[tuple[str, Pages]]:
        yield from ((name, kinds["headings"]) for name, kinds in self.headings.items())
        for kind in (self.tables, self.order, self.figures):
            yield from kind.items()


def load_labels(drawn: Mapping[str, Mapping[str, Pages]]) -> Labels:
    """Return the committed labels, and those of the papers just drawn."""
    kept = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
    return Labels(
        kept["headings"],
        *({**kept[kind], **drawn.get(kind, {})} for kind in ("tables", "order", "figures")),
    )
