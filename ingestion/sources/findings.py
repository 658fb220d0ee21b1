"""Collects what a scan finds, and what an admin should hear about single files."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ingestion.sources.names import safe_name
from ingestion.sources.port import FileStat, Scan, ScannedFile

EXAMPLES = 3


class ScanReport:
    """The files of one scan while it runs."""

    def __init__(self) -> None:
        self._files: dict[str, ScannedFile] = {}
        self._problems: dict[str, list[str]] = {}
        self._is_gone = False
        self._linked: list[str] = []
        self._unusable: list[str] = []

    def add(self, parts: tuple[str, ...], file_stat: FileStat, links: int = 1) -> None:
        """A PDF, and how many names of the file system lead to it."""
        name = safe_name(parts)
        self._files[name] = ScannedFile(name, parts, file_stat)
        if links > 1:
            self._linked.append(name)

    def add_unusable(self, parts: tuple[str, ...]) -> None:
        """A name that leads nowhere safe, so nobody reads the file."""
        self._unusable.append(safe_name(parts))

    def add_problem(self, sentence: str, parts: tuple[str, ...] = ()) -> None:
        """Something that could not be seen, and where; the first sentence is told, with all its places."""
        places = self._problems.setdefault(sentence, [])
        if parts:
            places.append(safe_name(parts))

    def add_absence(self, sentence: str) -> None:
        """The folder itself is not there."""
        self.add_problem(sentence)
        self._is_gone = True

    def scan(self) -> Scan:
        """All of it."""
        problem, places = next(iter(self._problems.items()), (None, []))
        where = _examples(places) if places else ""
        return Scan(self._files, problem, tuple(self._remarks()), where, self._is_gone)

    def _remarks(self) -> Iterator[str]:
        if self._linked:
            yield (
                f"{_examples(self._linked)}: other names outside or inside the folder lead to the same "
                "bytes (hard links); whoever writes there changes this document too."
            )
        for twins in _twins(self._files):
            yield f"{_examples(twins)}: these names look the same and are kept as separate documents."
        if self._unusable:
            yield f"{_examples(self._unusable)}: passed over, because no path can have such a name."


def _twins(names: Iterable[str]) -> Iterator[list[str]]:
    """Names that differ only in how their letters are composed, or in case."""
    folded = {name: _fold(name) for name in names}
    if len(set(folded.values())) == len(folded):
        return
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name, fold in folded.items():
        alike[fold].append(name)
    yield from (sorted(twins) for twins in alike.values() if len(twins) > 1)


def _fold(name: str) -> str:
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()


def _examples(names: list[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in sorted(names)[:EXAMPLES])
    return shown if len(names) <= EXAMPLES else f"{shown} and {len(names) - EXAMPLES} more"
