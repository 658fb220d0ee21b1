"""Table-driven tests that run within one test.

pytest collects each case of ``parametrize`` in every process of a parallel run and reports it separately,
which costs more than most cases take.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


def for_each(
    names: str | tuple[str, ...], cases: Iterable[Any], *, at_once: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a test for each case; raise all failures together, each with its case.

    All cases share the same fixtures: use ``parametrize`` where a case needs new ones. Coroutines that mostly
    wait may run concurrently (``at_once``).
    """
    fields = tuple(names.replace(" ", "").split(",")) if isinstance(names, str) else names
    listed = list(cases)
    rows = [dict(zip(fields, one if len(fields) > 1 else (one,), strict=True)) for one in listed]

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            async def run(**fixtures: Any) -> None:
                failures: list[BaseException] = []
                cases = [_await_case(test(**fixtures, **row), failures, row) for row in rows]
                await (asyncio.gather(*cases) if at_once else _await_in_turn(cases))
                _raise(failures, len(rows))
        else:

            def run(**fixtures: Any) -> None:  # type: ignore[misc]
                failures: list[BaseException] = []
                for row in rows:
                    with _collected(failures, row):
                        test(**fixtures, **row)
                _raise(failures, len(rows))

        functools.update_wrapper(run, test)
        signature = inspect.signature(test)
        rest = [one for name, one in signature.parameters.items() if name not in fields]
        run.__signature__ = signature.replace(parameters=rest)
        return run

    return decorate


async def _await_in_turn(cases: Iterable[Awaitable[None]]) -> None:
    for case in cases:
        await case


async def _await_case(case: Awaitable[None], failures: list[BaseException], row: dict[str, Any]) -> None:
    with _collected(failures, row):
        await case


@contextmanager
def _collected(failures: list[BaseException], row: dict[str, Any]) -> Iterator[None]:
    try:
        yield
    except (Exception, pytest.fail.Exception) as failure:
        failure.add_note(f"in the case {row!r:.1000}")
        failures.append(failure)


def _raise(failures: list[BaseException], cases: int) -> None:
    assert cases, "the table is empty"
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {cases} cases failed", failures)
