"""``glossary.toml`` is reloaded when it changes; a mistake is reported by line and changes nothing."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from storage.chat.glossary import Glossary, GlossaryFile, read_glossary
from storage.chat_models import GlossaryEntry
from storage.config_file import InvalidFile
from storage.models import Channel, ChannelKey, Platform, TenantName

TEXT = """\
# What people say, and what our documents say
[all]
PTO = ["paid time off", "vacation"]

[channels.handbook]
"top line" = { words = ["revenue"], both = true }

[channels.sl_T024BE7LD_C0G9QF9GW]
DPO = ["days payable outstanding"]
"""


def local(name: str) -> Channel:
    return Channel(1, ChannelKey(Platform.LOCAL, "", name).tenant, Platform.LOCAL, name, 0)


SLACK = Channel(2, TenantName("sl_T024BE7LD_C0G9QF9GW"), Platform("slack"), "finance", 0)
PTO = GlossaryEntry("PTO", ("paid time off", "vacation"))


def test_each_channel_has_its_own_terms_and_the_shared_ones() -> None:
    """A local channel is addressed by its name, any other by its tenant name."""
    glossary = read_glossary(TEXT.encode())
    assert glossary.of(local("handbook")) == (GlossaryEntry("top line", ("revenue",), is_mutual=True), PTO)
    assert glossary.of(SLACK) == (GlossaryEntry("DPO", ("days payable outstanding",)), PTO)
    assert glossary.of(local("other")) == (PTO,)


def test_an_unknown_channel_is_reported_with_its_line() -> None:
    glossary = read_glossary(TEXT.encode())
    assert [str(one) for one in glossary.unknown([local("handbook")])] == [
        "glossary.toml:8: there is no channel 'sl_T024BE7LD_C0G9QF9GW' yet; `footnote channels` lists them"
    ]
    assert glossary.unknown([local("handbook"), SLACK]) == []


MISTAKES = {
    "no TOML": ("[all]\nPTO = vacation\n", 2, "not TOML"),
    "no UTF-8": (b"[all]\n\xff = ['x']\n", 2, "not UTF-8"),
    "an unknown table": ("[all]\na = ['b']\n\n[terms]\nc = ['d']\n", 4, "unknown table 'terms'"),
    "a term outside": ("PTO = ['vacation']\n", 1, "unknown table 'PTO'"),
    "no list": ("[all]\na = ['b']\nPTO = 'vacation'\n", 3, "'PTO': write its words as a list"),
    "an empty list": ("[all]\nPTO = []\n", 2, "'PTO': write its words as a list"),
    "a number": ("[all]\nPTO = [3]\n", 2, "'PTO': write its words as a list"),
    "no word": ("[all]\nPTO = ['...']\n", 2, "'PTO': write its words as a list"),
    "no term": ("[all]\n'...' = ['dots']\n", 2, "a term holds a word"),
    "too many words": (f"[all]\nPTO = {[f'w{n}' for n in range(21)]}\n", 2, "more than 20 words"),
    "too long": (f"[all]\nPTO = ['{'x' * 101}']\n", 2, "at most 100 letters"),
    "an unknown key": ("[all]\nPTO = { words = ['a'], way = 2 }\n", 2, "only words and both are allowed"),
    "both is no switch": ("[all]\nPTO = { words = ['a'], both = 'yes' }\n", 2, "both is true or false"),
    "no words": ("[all]\nPTO = { both = true }\n", 2, "'PTO': write its words as a list"),
    "a malformed channel": ("[channels.'#general']\na = ['b']\n", 1, "copy it from `footnote channels`"),
    "a term for a channel": ("[channels]\nPTO = ['vacation']\n", 2, "PTO: put terms in this table"),
    "no table of channels": ("channels = 3\n", 1, "a table of its own"),
    "too many terms": ("[all]\n" + "".join(f"t{n} = ['w']\n" for n in range(2001)), 1, "more than 2000"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported_by_line_with_a_fix(name: str) -> None:
    """Shows that the message says where the mistake is and what to write instead."""
    text, line, sentence = MISTAKES[name]
    with pytest.raises(InvalidFile) as caught:
        read_glossary(text if isinstance(text, bytes) else text.encode())
    (mistake,) = caught.value.mistakes
    assert mistake.line == line
    assert sentence in str(mistake)
    assert str(mistake).startswith(f"glossary.toml:{line}: ")


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(InvalidFile) as caught:
        read_glossary(b"[all]\na = 1\nb = ['c']\nd = []\n[more]\n")
    assert [mistake.line for mistake in caught.value.mistakes] == [2, 4, 5]


async def test_the_file_is_reloaded_when_it_changes(tmp_path: Path) -> None:
    """Covers each state: missing, created, edited in place, replaced, deleted."""
    path = tmp_path / "glossary.toml"
    file = GlossaryFile(path)
    assert await file.entries(local("it")) == ()
    path.write_text('[all]\nPTO = ["paid time off", "vacation"]\n')
    assert await file.entries(local("it")) == (PTO,)
    path.write_text('[all]\nPTO = ["vacation"]\n')
    assert await file.entries(local("it")) == (GlossaryEntry("PTO", ("vacation",)),)
    (tmp_path / "new").write_text('[all]\nPTO = ["holidays"]\n')
    os.replace(tmp_path / "new", path)
    assert await file.entries(local("it")) == (GlossaryEntry("PTO", ("holidays",)),)
    path.unlink()
    assert await file.entries(local("it")) == ()
    assert file.mistakes == []


async def test_a_mistake_keeps_the_previous_glossary(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Questions use the last valid terms; the log warns once and quotes nothing of the file."""
    path = tmp_path / "glossary.toml"
    file = GlossaryFile(path)
    path.write_text('[all]\nPTO = ["paid time off", "vacation"]\n')
    assert await file.entries(local("it")) == (PTO,)
    path.write_text('[all]\nPTO = "marmalade"\n')
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert await file.entries(local("it")) == (PTO,)
    assert caplog.text.count("line 2") == 1
    assert "marmalade" not in caplog.text
    assert [one.line for one in file.mistakes] == [2]
    path.write_text('[all]\nPTO = ["marmalade"]\n')
    assert await file.entries(local("it")) == (GlossaryEntry("PTO", ("marmalade",)),)
    assert file.mistakes == []


async def test_an_unreadable_file_is_read_as_soon_as_possible(tmp_path: Path) -> None:
    """Shows that a folder in its place is reported as a mistake and fails no question."""
    path = tmp_path / "glossary.toml"
    path.mkdir()
    file = GlossaryFile(path)
    assert await file.current() == Glossary()
    assert "cannot be read" in str(file.mistakes[0])
    path.rmdir()
    path.write_text('[all]\nPTO = ["paid time off", "vacation"]\n')
    assert await file.entries(local("it")) == (PTO,)
