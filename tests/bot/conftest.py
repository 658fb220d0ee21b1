"""Fixtures for the core: a channel with documents."""

from __future__ import annotations

import pytest
from fakes.core import BACKUPS, TRAVEL, Register, Shelf, World, make_passage, make_status


@pytest.fixture
def world() -> World:
    """Return a channel with two short documents."""
    passages = [
        make_passage(BACKUPS, page=1),
        make_passage(TRAVEL, file="travel.pdf", title="Travel Policy", page=3),
    ]
    statuses = [make_status("sop-it-04.pdf"), make_status("travel.pdf")]
    return World(Shelf(passages), Register(statuses))
