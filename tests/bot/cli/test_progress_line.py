"""Progress of ``serve`` at a terminal: unreadable files are named."""

from __future__ import annotations

from uuid import uuid4

import pytest

from bot.cli.progress import MAX_FILES_NAMED, ProgressLog
from storage.models import DocumentStatus


def document(file: str, state: str = "quarantined") -> DocumentStatus:
    """Return a document of the channel ``it``."""
    return DocumentStatus(
        channel="it",
        document=uuid4(),
        version="ab" * 32,
        file=file,
        title=file,
        pages=0,
        state=state,
        rung=None,
        reason="it is not a PDF" if state == "quarantined" else None,
    )


def test_a_quarantined_file_is_named_once_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Shows that each file is named with its reason, and not repeated with the next one."""
    progress_log = ProgressLog()
    progress_log.name_unreadable([document("a.pdf"), document("b.pdf", "live")])
    assert capsys.readouterr().err == "could not read it/a.pdf: it is not a PDF\n"
    progress_log.name_unreadable([document("a.pdf"), document("c.pdf")])
    assert capsys.readouterr().err == "could not read it/c.pdf: it is not a PDF\n"


def test_many_unreadable_files_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Shows that a folder of images called .pdf does not flood the terminal."""
    ProgressLog().name_unreadable([document(f"{number}.pdf") for number in range(MAX_FILES_NAMED + 5)])
    *named, last = capsys.readouterr().err.splitlines()
    assert (len(named), last) == (MAX_FILES_NAMED, "and 5 more; see footnote documents")
