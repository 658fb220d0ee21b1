"""Simulated full disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def full_disk() -> Iterator[None]:
    """Make every write to files opened by descriptor fail with ENOSPC, by means of /dev/full."""
    fdopen = os.fdopen

    def open_full(descriptor: int, *arguments: Any) -> Any:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, descriptor, inheritable=False)
        os.close(full)
        return fdopen(descriptor, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fdopen", open_full)
        yield
