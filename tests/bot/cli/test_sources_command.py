"""``footnote sources``: mistakes of the list, and how its pages stand, before and after they were fetched."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from harness.empty_homes import make_sqlite

from bot.cli.main import main
from storage.sql.database import Database
from storage.web_pages.page_store import WebPageStore, WebText, WebTextChunk

READ, BROKEN, NEW = (f"https://example.org/{name}" for name in ("read", "broken", "new"))
FILE = f"""
[[domain]]
name = "tenancy"
keywords = ["deposit", "landlord"]
urls = ["{READ}", "{BROKEN}", "{NEW}"]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the commands; nothing is in it."""
    monkeypatch.setenv("FOOTNOTE_HOME", str(tmp_path))
    return tmp_path


def fill(home: Path) -> None:
    """One page was read, one failed, one is new."""

    async def run() -> None:
        database = await Database.open(make_sqlite(home))
        store = WebPageStore(database)
        await store.approve([READ, BROKEN, NEW])
        text = WebText("Deposits", "", (WebTextChunk("A landlord protects a deposit.", 6),))
        await store.keep_text(READ, text, {})
        await store.keep_failure(BROKEN, "the server answers 404")
        await database.aclose()

    asyncio.run(run())


def test_without_a_list_nothing_is_approved(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shows that most homes have no list, and that nothing is made only to say so."""
    assert [main(["sources", action]) for action in ("check", "list")] == [0, 0]
    assert capsys.readouterr().out == ""
    assert list(home.iterdir()) == []


def test_every_mistake_is_printed_with_its_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shows the exit status of a list that is not in force."""
    (home / "web_sources.toml").write_text(FILE.replace("urls", "pages"))
    assert main(["sources", "check"]) == 2
    assert capsys.readouterr().out.splitlines() == [
        "web_sources.toml:2: urls is missing",
        "web_sources.toml:5: pages is not known here; check its spelling",
    ]


@pytest.mark.parametrize("action", ["list", "seed"])
def test_nothing_is_listed_or_fetched_by_a_list_with_mistakes(
    home: Path, capsys: pytest.CaptureFixture[str], action: str
) -> None:
    """Shows that a script sees it, for nothing of the list is in force in a process that just began."""
    (home / "web_sources.toml").write_text(FILE + "[[domain]]\n")
    assert main(["sources", action]) == 2
    assert capsys.readouterr().out.splitlines()[0] == "web_sources.toml:6: keywords is missing"


def test_a_library_counts_as_a_channel(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shows that `check` knows the names of folders.toml, and `--channel` what a library opens."""
    (home / "web_sources.toml").write_text(FILE + 'channels = ["homes", "hosing"]\n')
    (home / "folders.toml").write_text('[library.homes]\nchannels = ["housing"]\n')
    fill(home)
    assert main(["sources", "check"]) == 1
    assert "web_sources.toml:6: there is no channel or library 'hosing' yet" in capsys.readouterr().err


def test_pages_are_listed_with_their_states(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shows a line a page in the list's order, and what of them does not stand well."""
    (home / "web_sources.toml").write_text(FILE)
    assert main(["sources", "list", "--json"]) == 0
    assert [json.loads(line)["state"] for line in capsys.readouterr().out.splitlines()] == 3 * ["never"]
    fill(home)
    assert main(["sources", "list", "--json"]) == 0
    read, broken, new = map(json.loads, capsys.readouterr().out.splitlines())
    assert (read["url"], read["domain"], read["state"], read["words"]) == (READ, "tenancy", "fresh", 5)
    assert read["fetched"].endswith("+00:00")
    assert (broken["state"], broken["error"]) == ("failed", "the server answers 404")
    assert (new["state"], new["fetched"], new["error"]) == ("never", None, None)
    assert main(["sources", "check", "--json"]) == 1
    checked = capsys.readouterr()
    assert [json.loads(line)["url"] for line in checked.out.splitlines()] == [BROKEN, NEW]
    assert "3 pages: 1 fresh, 0 stale, 1 failed, 1 never; 1 failing, 0 changed" in checked.err


def test_a_dry_run_says_what_would_be_fetched(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shows that nothing is fetched, and that a channel nobody has is named."""
    (home / "web_sources.toml").write_text(FILE)
    fill(home)
    assert main(["sources", "seed", "--dry-run", "--json"]) == 0
    assert [json.loads(line)["url"] for line in capsys.readouterr().out.splitlines()] == [BROKEN, NEW]
    assert main(["sources", "list", "--channel", "nobody"]) == 2
    assert "no channel is called 'nobody'" in capsys.readouterr().err
