"""File names of uploads: sanitized, visible to scans, and usable in chat commands."""

from __future__ import annotations

import unicodedata

from harness.tables import for_each
from hypothesis import given
from hypothesis import strategies as st

from bot.chat.commands.chat_intents import ChatIntent, recognize
from bot.core.models import Language
from bot.uploads.file_names import free_file_name, safe_file_name
from ingestion.sources.scan_report import safe_name, skip_reason


@for_each(
    ("name", "safe"),
    [
        ("Leave policy v3.pdf", "Leave policy v3.pdf"),
        ("Übersicht (2).PDF", "Übersicht (2).pdf"),
        ("../../etc/passwd.pdf", "passwd.pdf"),
        ("..\\..\\boot.pdf", "boot.pdf"),
        ("/", "document.pdf"),
        ("", "document.pdf"),
        ("...pdf", "document.pdf"),
        (".hidden.pdf", "hidden.pdf"),
        ("~$Report.pdf", "Report.pdf"),
        ("._x.pdf", "_x.pdf"),
        ("invoice\u202efdp.exe", "invoicefdp.exe.pdf"),
        ("two\nlines\0.pdf", "twolines.pdf"),
        ("a\u2028b \t c.pdf", "ab c.pdf"),
        ("CON.pdf", "_CON.pdf"),
        ("nul.tar.pdf", "_nul.tar.pdf"),
        ("lpt¹.pdf", "_lpt¹.pdf"),
        ('what? "this": <a|b>*.pdf', "what_ _this__ _a_b__.pdf"),
        ("ends with a dot. .pdf", "ends with a dot.pdf"),
        ("Cafe\u0301.pdf", "Café.pdf"),
        ("half \ud800 pair.pdf", "half pair.pdf"),
        ("scan", "scan.pdf"),
        (f"{300 * 'x'}.pdf", f"{80 * 'x'}.pdf"),
        (f"{300 * '日'}.pdf", f"{80 * '日'}.pdf"),
        (f"{300 * '🙂'}.pdf", f"{60 * '🙂'}.pdf"),
    ],
)
def test_a_hostile_name_becomes_a_safe_one(name: str, safe: str) -> None:
    """Covers folders, control characters, bidi overrides, hidden and temporary files, devices, long names."""
    assert safe_file_name(name) == safe


@given(st.one_of(st.text(), st.text(alphabet="./\\~$#: \u202e\0aCON", max_size=12)))
def test_every_sanitized_name_is_visible_to_a_scan(name: str) -> None:
    """Shows it with ingestion's own rules: not ignored, not escaped, one path part, short enough."""
    safe = safe_file_name(name)
    assert skip_reason(safe) is None
    assert safe_name((safe,)) == safe
    assert "/" not in safe
    assert len(free_file_name(safe, {safe}).encode()) <= 255
    assert safe_file_name(safe) == safe


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "Zs")), min_size=1, max_size=90))
def test_every_name_works_in_the_remove_command(name: str) -> None:
    """Shows that the command is recognized for any file name with letters."""
    safe = safe_file_name(name)
    command = recognize(f"remove upload {safe}", Language.ENGLISH)
    assert command is not None
    assert command.intent is ChatIntent.REMOVE_UPLOAD
    assert "pdf" in command.name


def test_a_name_in_use_gets_a_number() -> None:
    """Shows that case and Unicode composition make no distinct name."""
    assert free_file_name("a.pdf", []) == "a.pdf"
    assert free_file_name("a.pdf", ["A.PDF", "b.pdf"]) == "a (2).pdf"
    assert free_file_name("é.pdf", [unicodedata.normalize("NFD", "É.pdf"), "é (2).pdf"]) == "é (3).pdf"
