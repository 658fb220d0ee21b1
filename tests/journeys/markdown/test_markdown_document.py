"""A second document type is a reader and its registration: scans, uploads, answers and links follow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from harness.waiting import until
from markdown_registration import markdown_registered

from bot.bootstrap import open_answering, open_ingestion
from bot.core.models import AnswerState, Language, Question
from bot.core.wording import reply_words
from bot.settings import BotSettings, Settings
from bot.uploads.file_checks import UploadRejected, UploadValidator
from bot.uploads.file_host import FileDownload
from bot.uploads.file_names import free_file_name, safe_file_name
from bot.web.security import document_headers
from ingestion.settings import IngestionSettings
from ingestion.sources.scan_report import skip_reason, unsupported_reason
from storage.models import ChannelKey, Platform
from storage.settings import StorageSettings

NOTES = """# Kitchen rules

## Coffee machine
The coffee machine is descaled on the first Monday of each month.

## Fridge
Food without a name is thrown away every Friday at noon.
"""


@pytest.fixture(autouse=True)
def markdown() -> Iterator[None]:
    """The Markdown reader, registered."""
    with markdown_registered():
        yield


async def test_a_dropped_markdown_file_is_cited(tmp_path: Path) -> None:
    """Drop, read by words and with vectors, publish, ask: the quote is cited with its section and boxes."""
    settings = Settings(
        StorageSettings(home=tmp_path / "home"),
        BotSettings(),
        IngestionSettings(settle_seconds=1, rest_seconds=1, scan_seconds=0.2),
    )
    file = settings.inbox / "office" / "kitchen.md"
    file.parent.mkdir(parents=True)
    async with open_ingestion(settings) as (stores, ingestion):
        await ingestion.start(settings.inbox)
        file.write_text(NOTES)
        channel = await stores.channels.ensure(ChannelKey(Platform.LOCAL, "", "office"))

        async def live() -> bool:
            documents = await stores.catalog.documents(channel.id)
            return [(one.state, one.rung) for one in documents] == [("live", "full")]

        await until(live)
        await ingestion.stop()
    async with open_answering(settings) as (stores, answering):
        question = Question("1", "When is the coffee machine descaled?", channel, datetime.now(UTC))
        answer = await answering.answer(question)
    assert answer.state is AnswerState.PASSAGES
    first = answer.citations[0]
    assert (first.file, first.page) == ("kitchen.md", 1)
    assert "first Monday" in first.quote
    assert first.boxes


def test_a_registered_type_is_known_everywhere() -> None:
    """Shows scans, names of uploads, messages and downloads; other types are still refused."""
    assert skip_reason("kitchen.md") is None
    assert unsupported_reason("kitchen.MD") is None
    assert skip_reason("a.doc") == (
        "is not a PDF or a Markdown file: its name does not end in .pdf or .md or .markdown"
    )
    assert unsupported_reason("a.doc") == "Only PDFs and Markdown files are read: save it as a PDF."
    assert safe_file_name("../kitchen.md") == "kitchen.md"
    assert safe_file_name("kitchen", "text/markdown") == "kitchen.md"
    assert free_file_name("kitchen.md", ["Kitchen.MD"]) == "kitchen (2).md"
    assert document_headers("hr/kitchen.md")["Content-Type"] == "text/markdown"


def test_an_upload_is_accepted_by_its_declared_type() -> None:
    """Shows that a format without a signature is accepted, and an unknown one is not."""
    checks, words = UploadValidator(1), reply_words(Language.ENGLISH)
    checks.check_declared(FileDownload("kitchen", "text/markdown", 9, nothing()), words)
    with pytest.raises(UploadRejected, match=r"a\.doc"):
        checks.check_declared(FileDownload("a.doc", "application/msword", 9, nothing()), words)


async def nothing() -> AsyncIterator[bytes]:
    """Yield no bytes."""
    return
    yield b""
