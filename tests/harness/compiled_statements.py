"""Compiled SQL statements of all engines of a test process, by the name of their dialect.

SQLAlchemy caches them per engine, and a test has an engine of its own: compiling took a seventh of a test
process's CPU time.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any


class CompiledStatements(MutableMapping[Any, Any]):
    """Cache for ``execution_options(compiled_cache=...)``, whose keys begin with an engine's dialect."""

    def __init__(self) -> None:
        self._compiled: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        return self._compiled[_by_name(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._compiled[_by_name(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self._compiled[_by_name(key)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._compiled)

    def __len__(self) -> int:
        return len(self._compiled)


def _by_name(key: Any) -> tuple[Any, ...]:
    dialect, *others = key
    return dialect.name, dialect.driver, *others
