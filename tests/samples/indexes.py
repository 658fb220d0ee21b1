"""Tenants and chunks for index tests, and a corpus of real prose."""

from __future__ import annotations

from pydoc_data.topics import topics
from uuid import UUID, uuid4

from storage.index.base import IndexedChunk, Vector
from storage.models import ChannelKey, Platform, TenantName
from storage.text.analyzer import index_terms

# The vector space of the tests.
SPACE = "onnx_0123456789abcdef"


def new_tenant() -> TenantName:
    """Return a unique tenant."""
    return ChannelKey(Platform.LOCAL, "", str(uuid4())).tenant


def chunk(
    publication: UUID,
    ordinal: int,
    text: str,
    *,
    vector: Vector | None = None,
    facets: tuple[str, ...] = (),
    title: str = "",
    space: str = SPACE,
) -> IndexedChunk:
    """Return a chunk on page ``ordinal + 1``."""
    return IndexedChunk(
        publication=publication,
        ordinal=ordinal,
        terms=index_terms(title, (), text),
        text=text,
        first_page=ordinal + 1,
        last_page=ordinal + 1,
        heading_path=("Chapter", f"Section {ordinal}"),
        facets=facets,
        vector=vector,
        space=space if vector is not None else None,
    )


def axis(direction: int, dimensions: int = 8) -> list[float]:
    """Return a unit vector along one axis."""
    return [float(place == direction) for place in range(dimensions)]


def prose(size: int = 1200) -> list[str]:
    """Return the Python language reference in pieces of about ``size`` characters."""
    pieces: list[str] = []
    for topic in sorted(topics):
        piece = ""
        for paragraph in topics[topic].split("\n\n"):
            piece += paragraph + "\n\n"
            if len(piece) > size:
                pieces.append(piece)
                piece = ""
    return pieces
