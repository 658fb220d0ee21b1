"""A model names a procedure's metadata that patterns missed; only what the pages print is stored."""

from __future__ import annotations

import json

import pytest
from fakes.term_embedder import TermEmbedder
from harness.ingestion_home import Home
from llmock.pytest_plugin import LLMock
from samples.paper import pdf
from samples.printed import BODY, read_pdf

from bot.llm.metadata_filler import metadata_filler
from bot.settings import BotSettings, Settings
from ingestion.extraction.located_metadata import FIELDS, locate_fields, missing_fields
from ingestion.reading.generations import generations_of
from ingestion.settings import IngestionSettings
from storage.errors import SettingsError
from storage.models import Page, Rung
from storage.settings import StorageSettings

HEAD = ["Standard Operating Procedure", "Version: 7", "Made by the lime team, edition of 4 May 2023."]


def pages(*lines: str) -> tuple[Page, ...]:
    return read_pdf([[(line, BODY, False) for line in lines]]).pages


def asking(model: str, url: str | None = None) -> Settings:
    """Return settings with this FOOTNOTE_METADATA_MODEL, and a model at a URL."""
    bot = BotSettings(openai_base_url=url, model_seconds=5)
    return Settings(StorageSettings(), bot, IngestionSettings(metadata_model=model))


@pytest.mark.parametrize(
    ("name", "said", "stored"),
    [
        ("effective", "4 May 2023", "4 May 2023"),
        ("effective", "4 May", None),
        ("effective", "2023-05-04", None),
        ("department", "lime  team", "lime team"),
        ("department", "lime tea", None),
        ("department", "quality team", None),
        ("sop_id", "", None),
    ],
)
def test_only_printed_and_valid_values_are_located(name: str, said: str, stored: str | None) -> None:
    """Shows the value as printed with its boxes; no other form of a date, no part of a word."""
    found = locate_fields({name: said}, pages(*HEAD))
    assert [one.value for one in found.values()] == ([stored] if stored else [])
    assert all(one.page == 1 and one.boxes for one in found.values())


def test_only_procedures_are_asked_about() -> None:
    """Shows the fields that a procedure lacks, and none for another document."""
    assert missing_fields({"version", "sop_id"}, pages(*HEAD)) == ("department", "effective", "last_updated")
    assert missing_fields({}, pages("Lunch menu", "Lime soup")) == ()
    assert missing_fields({}, ()) == ()


async def test_a_model_fills_what_patterns_missed(home: Home, llmock: LLMock) -> None:
    """Shows located values in the catalog, an invented one dropped, and the printed version unchanged."""
    said = {name: "" for name in FIELDS} | {"department": "lime team", "sop_id": "SOP-99"}
    llmock.reply(json.dumps({**said, "version": "8", "effective": "4 May 2023"}))
    home.embedder = TermEmbedder("terms")
    home.drop("lab/lime.pdf", pdf("\n".join(HEAD)))
    fill = metadata_filler(asking("missing", llmock.base_url()))
    await home.serve(layout=False, ocr=False, metadata_model="missing", fill_metadata=fill)
    live = await home.until_found("lab", "lime", "lime.pdf", Rung.FULL)
    assert {name: one.value for name, one in live.metadata.items() if name in FIELDS} == {
        "version": "7",
        "department": "lime team",
        "effective": "4 May 2023",
    }
    sent = json.dumps(llmock.last_request.body)
    assert "edition of 4 May 2023" in sent
    assert "Fields: sop_id, department, effective, last_updated" in sent


async def test_a_model_that_fails_costs_only_its_fields(llmock: LLMock) -> None:
    """Shows no values from an endpoint that is down, or that answers no JSON."""
    fill = metadata_filler(asking("missing", llmock.base_url()))
    assert fill
    llmock.reply("There is none.", times=2)
    assert await fill("page", ["version"]) == {}
    llmock.outage()
    assert await fill("page", ["version"]) == {}


def test_the_model_is_off_unless_chosen() -> None:
    """Shows the default, the error without a model, and that choosing it repeats full readings only."""
    assert IngestionSettings().metadata_model == "off"
    assert metadata_filler(asking("off", "http://127.0.0.1:9/v1")) is None
    with pytest.raises(SettingsError, match="FOOTNOTE_METADATA_MODEL"):
        metadata_filler(asking("missing"))
    off, on = (
        generations_of(IngestionSettings(metadata_model=one), TermEmbedder("x")) for one in ("off", "missing")
    )
    assert (off.quick, off.full == on.full) == (on.quick, False)
