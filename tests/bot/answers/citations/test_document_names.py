"""Display names of documents under an answer: unique in the channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from uuid import uuid4

from fakes.core import make_publication
from harness.tables import for_each

from bot.answers.citations.citations import names_among, said_beside
from storage.models import LivePublication, MetadataField

VERSIONS = count(1)


def document(file: str, title: str = "", said: Mapping[str, str] | None = None) -> LivePublication:
    """Return a live document with this metadata."""
    metadata = {name: MetadataField(name, value, 1, ()) for name, value in (said or {}).items()}
    publication = make_publication(file, title or file.rpartition("/")[2])
    return replace(publication, document_id=uuid4(), version_id=next(VERSIONS), metadata=metadata)


@for_each(
    ("documents", "names"),
    [
        ([("a.pdf", "Handbook", {}), ("b.pdf", "Travel", {})], ["Handbook", "Travel"]),
        ([("a.pdf", "Contoso", {}), ("x/b.pdf", "contoso", {})], ["a.pdf", "b.pdf"]),
        ([("x/a.pdf", "Contoso", {}), ("y/a.pdf", "Contoso", {})], ["x/a.pdf", "y/a.pdf"]),
        ([("x/a.pdf", "", {}), ("y/b.pdf", "", {})], ["a.pdf", "b.pdf"]),
        ([("a.pdf", "Contoso Ltd", {"organisation": "CONTOSO LTD"})], ["a.pdf"]),
        ([("a.pdf", "Template", {"title": "Using Balances"})], ["Using Balances"]),
        (
            [("a.pdf", "", {"title": "Using Balances", "version": v}) for v in ("01", "02")],
            ["Using Balances v01", "Using Balances v02"],
        ),
        ([("a.pdf", "Handbook v3", {"version": "3"})], ["Handbook v3"]),
        ([("a.pdf", "Handbook", {"version": "V.3"})], ["Handbook V.3"]),
        ([("a.pdf", "b.pdf", {}), ("b.pdf", "Other", {})], ["a.pdf", "Other"]),
    ],
)
def test_a_name_is_the_first_that_no_other_document_has(
    documents: list[tuple[str, str, dict[str, str]]], names: list[str]
) -> None:
    """Printed title, then the file's own title, file name, path; never the organisation's name."""
    known = [document(file, title, said) for file, title, said in documents]
    assert list(names_among(known, known).values()) == names


def test_an_uncited_document_also_reserves_its_name() -> None:
    """Shows that names are unique in the channel, not only in the answer."""
    cited, other = document("a.pdf", "Report"), document("b.pdf", "Report")
    assert names_among([cited, other], [cited]) == {cited.version_id: "a.pdf"}


def test_two_versions_of_a_document_may_share_a_name() -> None:
    """Covers the live version and the one that was cited before it."""
    old = document("a.pdf", "Report")
    new = replace(old, version_id=next(VERSIONS))
    assert names_among([old, new], [old]) == {old.version_id: "Report"}


def test_details_in_the_title_are_not_repeated() -> None:
    """Shows SOP id, department and date, as far as they are printed and not in the title."""
    said = {
        "sop_id": "SOP-IT-04",
        "department": "IT",
        "effective": "2024-01-15",
        "last_updated": "2025-01-01",
    }
    assert said_beside(document("a.pdf", "SOP-IT-04 Backup", said)) == ("IT", "2024-01-15")
    assert said_beside(document("a.pdf", "Backup", said)) == ("SOP-IT-04", "IT", "2024-01-15")
    assert said_beside(document("a.pdf")) == ()
