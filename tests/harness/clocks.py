"""Simulated time: the process's clocks run ahead inside a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from storage.clock import OFFSETS


@contextmanager
def shift_wall_clock(by: timedelta) -> Iterator[None]:
    """Shift this process's wall clock, to test that clock jumps do no harm."""
    OFFSETS.add(by)
    try:
        yield
    finally:
        OFFSETS.add(-by)


@contextmanager
def advance_clocks(by: timedelta) -> Iterator[None]:
    """Advance both clocks of this process, to test what happens after a wait."""
    OFFSETS.add(by, by.total_seconds())
    try:
        yield
    finally:
        OFFSETS.add(-by, -by.total_seconds())
