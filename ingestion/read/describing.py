"""Has a vision model say what figures show; what it cannot say is missing, and nothing else is."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from storage.blobs import Blobs
from storage.clock import steady_seconds
from storage.errors import DocumentError
from storage.figure_models import Figure
from storage.models import Box
from storage.pdf.models import RenderedPage

DPI = 110
MAX_FIGURES = 200
"""Figures of a PDF that a model is asked about."""
MAX_FAILURES, REST_SECONDS = 3, 600.0
"""So many in a row, and the model is away: for so long nobody waits for it, whatever the document."""
MAX_DESCRIPTION_CHARS = 600
"""Characters."""

Wait = Callable[[], Awaitable[object]]
Describe = Callable[[str, Sequence[Figure], Wait], Awaitable[Sequence[Figure]]]
"""Figures of a content, given its sha256, with their descriptions."""

_log = logging.getLogger(__name__)


class Renderer(Protocol):
    """Draws parts of pages outside this process."""

    async def render(self, path: Path, page: int, dpi: int, clip: Box | None = None) -> RenderedPage:
        """A part of a page as a picture; raises DocumentError or EngineStartError."""


class VisionModel(Protocol):
    """Says what a picture shows."""

    async def describe(self, picture: RenderedPage, caption: str) -> str | None:
        """In a few sentences; None when it could not."""


class FigureDescriber:
    """Describes the figures of contents, one after the other."""

    def __init__(self, blobs: Blobs, renderer: Renderer, model: VisionModel) -> None:
        self._blobs = blobs
        self._renderer = renderer
        self._model = model
        self._failures = 0
        self._rests_until = steady_seconds()

    async def describe(self, sha256: str, figures: Sequence[Figure], wait_until_idle: Wait) -> list[Figure]:
        """The same figures, described as far as the model could; those that were stay as they are.

        Raises:
            EngineStartError, OSError: an engine or a disk is at fault.
        """
        path, described = self._blobs.path(sha256), list(figures)
        for number, figure in enumerate(figures[:MAX_FIGURES]):
            if figure.description or steady_seconds() < self._rests_until:
                continue
            await wait_until_idle()
            described[number] = replace(figure, description=await self._ask(path, figure))
        return described

    async def _ask(self, path: Path, figure: Figure) -> str:
        try:
            picture = await self._renderer.render(path, figure.page, DPI, figure.box)
        except DocumentError:
            return ""
        said = await self._model.describe(picture, figure.caption)
        self._note(is_well=bool(said))
        return " ".join((said or "").split())[:MAX_DESCRIPTION_CHARS]

    def _note(self, *, is_well: bool) -> None:
        self._failures = 0 if is_well else self._failures + 1
        if self._failures == MAX_FAILURES:
            self._failures, self._rests_until = 0, steady_seconds() + REST_SECONDS
            _log.warning("the vision endpoint is left alone for %d s", REST_SECONDS)
