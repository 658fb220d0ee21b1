"""Editions of a procedure in a channel: the newest one in force wins."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from fakes.core import make_publication
from harness.tables import for_each

from bot.answers.retrieval.ranking import superseded_editions
from bot.answers.understanding import channel_documents
from storage.models import LivePublication, MetadataField

TODAY = date(2026, 11, 21)


def edition(name: str, **said: str) -> LivePublication:
    """Return a document with this metadata."""
    fields = {
        field: MetadataField(field, value, 1, (), value if field in ("effective", "last_updated") else None)
        for field, value in said.items()
    }
    return replace(make_publication(f"{name}.pdf"), metadata=fields)


@for_each(
    ("old", "new"),
    [
        ({"effective": "2023-05-01"}, {"effective": "2024-05-01"}),
        ({"last_updated": "2023-05-01"}, {"last_updated": "2024-05-01"}),
        ({"version": "1.9"}, {"version": "1.10"}),
        ({"version": "v.02"}, {"version": "v.03"}),
        ({"effective": "2027-01-01"}, {"effective": "2024-05-01"}),
    ],
)
def test_the_newest_edition_in_force_replaces_the_others(old: dict[str, str], new: dict[str, str]) -> None:
    """Covers dates, version numbers compared part by part, and an edition not yet in force."""
    before, after = edition("a", sop_id="SOP-IT-04", **old), edition("b", sop_id="sop\u2011it\u201104", **new)
    assert superseded_editions([before, after], TODAY) == {before.id}


@for_each(
    ("one", "other"),
    [
        ({"sop_id": "24", "version": "1"}, {"sop_id": "25", "version": "2"}),
        ({"version": "1"}, {"version": "2"}),
        ({"sop_id": "24"}, {"sop_id": "24", "version": "2"}),
        ({"sop_id": "24", "version": "2"}, {"sop_id": "24", "version": "2"}),
        ({"sop_id": "24", "version": "A"}, {"sop_id": "24", "version": "2"}),
        (
            {"sop_id": "24", "version": "1", "organisation": "Acme Ltd"},
            {"sop_id": "24", "version": "2", "organisation": "Bolt Ltd"},
        ),
    ],
)
def test_incomparable_editions_are_all_kept(one: dict[str, str], other: dict[str, str]) -> None:
    """Covers other procedures, missing numbers, equal editions, and other organisations."""
    assert superseded_editions([edition("a", **one), edition("b", **other)], TODAY) == frozenset()


@pytest.mark.parametrize(
    ("title", "said", "name"),
    [
        ("SOP-IT-04 Backup", {"sop_id": "SOP-IT-04", "version": "2.1"}, "version 2.1"),
        ("Using Balances", {"sop_id": "07A", "version": "02"}, "07A, version 02"),
        ("Using Balances", {"sop_id": "07A"}, "07A"),
        ("Handbook", {}, ""),
    ],
)
def test_a_source_shows_its_edition(title: str, said: dict[str, str], name: str) -> None:
    """Shows number and version next to the title, each once."""
    assert channel_documents.edition(replace(edition("a", **said), title=title)) == name
