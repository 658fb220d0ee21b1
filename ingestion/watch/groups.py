"""Finds arriving files that may have exchanged names: they are taken together, all others one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ingestion.sources.port import ScannedFile
from ingestion.watch.known import KnownFolder

_Links = dict[str | int, str | int]
"""File or size -> another one of its group; who has none stands for the group."""

PORTION_FILES = 16
PORTION_BYTES = 16 << 20


def group(
    arriving: Mapping[str, ScannedFile], present: Mapping[str, ScannedFile], folders: Iterable[KnownFolder]
) -> list[list[ScannedFile]]:
    """Put together what has to be judged together; sizes tell who can be whose new name.

    Args:
        arriving: files that are new or look different.
        present: everything that the scan saw.
        folders: the folders that the place feeds.
    """
    links: _Links = {}
    sizes = set()
    for file, size in _vacated(arriving, present, folders):
        sizes.add(size)
        if file in arriving:
            _join(links, file, size)
    for file, seen in arriving.items():
        if seen.stat.size in sizes:
            _join(links, file, seen.stat.size)
    groups: dict[str | int, list[ScannedFile]] = {}
    for file, seen in arriving.items():
        groups.setdefault(_root(links, file), []).append(seen)
    return list(groups.values())


def _vacated(
    arriving: Mapping[str, ScannedFile], present: Mapping[str, ScannedFile], folders: Iterable[KnownFolder]
) -> Iterator[tuple[str, int]]:
    """(file, size as it was stored) of every document whose file is away or looks different now."""
    for folder in folders if arriving else ():
        for file, known in folder.documents.items():
            if known.stat is not None and (file in arriving or file not in present):
                yield file, known.stat.size


def batches_of(groups: Sequence[list[ScannedFile]]) -> Iterator[list[list[ScannedFile]]]:
    """Groups to be stored in one transaction: a few small ones, or a single large one."""
    portion: list[list[ScannedFile]] = []
    files = size = 0
    for members in groups:
        files += len(members)
        size += sum(seen.stat.size for seen in members)
        if portion and (files > PORTION_FILES or size > PORTION_BYTES):
            yield portion
            portion, files, size = [], len(members), sum(seen.stat.size for seen in members)
        portion.append(members)
    if portion:
        yield portion


def _join(links: _Links, one: str | int, other: str | int) -> None:
    links[_root(links, one)] = _root(links, other)


def _root(links: _Links, one: str | int) -> str | int:
    """Who stands for the group of ``one``."""
    root = one
    while (above := links.get(root, root)) != root:
        root = above
    while one != root:
        links[one], one = root, links.get(one, root)
    return root
