"""The output of the HTML child is untrusted, because it parses untrusted pages."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from harness.tables import for_each

from ingestion.compute_program import chunk_web_page
from storage.models import load_metadata

JOB = {"limit": 400, "tokenizer": None, "window": 256, "reading": str(uuid4())}


@for_each(
    ("written", "day"),
    [
        ("2024-03-01", "2024-03-01"),
        ("2024-02-30", ""),
        ("20240301", ""),
        ("2024-03-01 or so", ""),
        ("9999-99-99", ""),
        ("", ""),
        (None, ""),
        (20240301, ""),
        (["2024-03-01"], ""),
    ],
)
def test_an_invalid_date_of_a_page_is_dropped(tmp_path: Path, written: object, day: str) -> None:
    """Shows that a text's age can always be computed from its day."""
    blocks = [["text", 0, "", "A landlord must protect your deposit within 30 days."]]
    page = {"title": "Deposits", "day": written, "blocks": blocks}
    made = chunk_web_page({**JOB, "root": str(tmp_path)}, json.dumps(page).encode())
    dates = [one.day for one in load_metadata(made["details"], {}).values()]
    assert dates == ([day] if day else [])
