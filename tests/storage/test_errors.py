"""Location of unexpected errors in log lines."""

from __future__ import annotations

import asyncio
import json

import pytest

from storage.errors import InvalidTenant, raised_at
from storage.models import TenantName


def test_an_error_is_located_without_its_message() -> None:
    """Shows that a log line has type, file and line, and nothing of the message."""
    with pytest.raises(InvalidTenant) as raised:
        TenantName("a secret question")
    assert raised_at(raised.value).startswith("InvalidTenant at storage/models.py:")
    assert "secret" not in raised_at(raised.value)


def test_a_library_error_is_located_where_it_was_raised() -> None:
    """Used when no frame of the product is in the traceback."""
    with pytest.raises(json.JSONDecodeError) as raised:
        json.loads("nothing")
    assert raised_at(raised.value).startswith("JSONDecodeError at decoder.py:")


async def test_the_first_error_of_a_group_is_located() -> None:
    """Shows which task of a task group failed, and where."""

    async def fail() -> None:
        TenantName("none")

    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
    assert raised_at(raised.value).startswith("InvalidTenant at storage/models.py:")


def test_an_error_without_a_traceback_has_no_location() -> None:
    assert raised_at(ValueError("text")) == "ValueError"
