"""``footnote sources``: mistakes in the list, and the states of its pages before and after fetching."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fakes.web_shelf import WebShelf
from harness.empty_homes import make_sqlite
from harness.program import Program
from sqlalchemy import update
from sqlmodel import col

from storage.chat.channels import Channels
from storage.chat.citations import Citations
from storage.models import ChannelKey, CitedPlace, Platform
from storage.sql.database import Database
from storage.sql.tables import WebPageRow

READ, BROKEN, NEW = (f"https://example.org/{name}" for name in ("read", "broken", "new"))
FILE = f"""
[[domain]]
name = "tenancy"
keywords = ["deposit", "landlord"]
urls = ["{READ}", "{BROKEN}", "{NEW}"]
"""


def fill(home: Path) -> None:
    """Store one page that was read, one that failed and one that is new."""

    async def run() -> None:
        database = await Database.open(make_sqlite(home))
        shelf = WebShelf(database, home)
        await shelf.store.approve([READ, BROKEN, NEW])
        await shelf.publish(READ, "A landlord protects a deposit.", title="Deposits")
        await shelf.store.record_failure(BROKEN, "the server answers 404")
        await shelf.aclose()
        await database.aclose()

    asyncio.run(run())


def write(program: Program, text: str) -> None:
    """Write the list of a home."""
    program.home.mkdir()
    (program.home / "web_sources.toml").write_text(text)


def lines(program: Program, action: str, *options: str) -> list[dict[str, Any]]:
    """Return the JSON lines of a command that must succeed."""
    done = program.run("sources", action, "--json", *options)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_without_a_list_no_page_is_approved(program: Program) -> None:
    """Shows that a missing list is no error, and that no home is created."""
    program.home.mkdir()
    for action in ("check", "list"):
        done = program.run("sources", action)
        assert (done.returncode, done.stdout) == (0, "")
    assert list(program.home.iterdir()) == []


def test_check_prints_every_mistake_with_its_line(program: Program) -> None:
    """The exit status says that the list is not in force."""
    write(program, FILE.replace("urls", "pages"))
    checked = program.run("sources", "check")
    assert checked.returncode == 2
    assert checked.stdout.splitlines() == [
        "web_sources.toml:2: urls is missing",
        "web_sources.toml:5: pages is not a known key; check the spelling",
    ]


@pytest.mark.parametrize("action", ["list", "seed"])
def test_an_invalid_list_lists_and_fetches_no_page(program: Program, action: str) -> None:
    """Scripts see it by the exit status: a new process has no earlier valid list."""
    write(program, FILE + "[[domain]]\n")
    done = program.run("sources", action)
    assert done.returncode == 2
    assert done.stdout.splitlines()[0] == "web_sources.toml:6: keywords is missing"


def test_a_library_counts_as_a_channel(program: Program) -> None:
    """`check` knows the names of folders.toml, and `--channel` the libraries of a channel."""
    write(program, FILE + 'channels = ["homes", "hosing"]\n')
    (program.home / "folders.toml").write_text('[library.homes]\nchannels = ["housing"]\n')
    fill(program.home)
    checked = program.run("sources", "check")
    assert checked.returncode == 1
    assert "web_sources.toml:6: there is no channel or library 'hosing' yet" in checked.stderr


def test_pages_are_listed_with_their_states(program: Program) -> None:
    """A line per page in the list's order, and failures."""
    write(program, FILE)
    assert [one["state"] for one in lines(program, "list")] == 3 * ["never"]
    fill(program.home)
    read, broken, new = lines(program, "list")
    assert (read["url"], read["domain"], read["state"], read["words"]) == (READ, "tenancy", "fresh", 5)
    assert read["fetched"].endswith("+00:00")
    assert (broken["state"], broken["error"]) == ("failed", "the server answers 404")
    assert (new["state"], new["fetched"], new["error"]) == ("never", None, None)
    checked = program.run("sources", "check", "--json")
    assert checked.returncode == 1
    assert [json.loads(line)["url"] for line in checked.stdout.splitlines()] == [BROKEN, NEW]
    assert (
        "3 pages: 1 fresh, 0 stale, 1 failed, 1 never; 1 failing, 0 of them for a week, 0 changed"
        in checked.stderr
    )


def test_check_reports_failures_without_an_admin_channel(program: Program) -> None:
    """Covers a page that has failed for a week, with its day, and a lost quote, once."""
    write(program, FILE)
    fill(program.home)

    async def run() -> None:
        database = await Database.open(f"sqlite:///{program.home}/footnote.db")
        channel = await Channels(database).ensure(ChannelKey(Platform.LOCAL, "", "housing"))
        shelf = WebShelf(database, program.home)
        first = await shelf.publish(READ, "A landlord protects a deposit.", title="Deposits")
        shown = CitedPlace(first, 1, "A landlord protects a deposit.")
        await Citations(database).add(channel.id, [shown, shown])
        await shelf.publish(READ, "It moved.", title="Deposits")
        await shelf.aclose()
        async with database.transaction() as session:
            failing = update(WebPageRow).where(col(WebPageRow.url) == BROKEN)
            await session.execute(failing.values(failing_since=datetime(2026, 1, 5, tzinfo=UTC)))
        await database.aclose()

    asyncio.run(run())
    said = program.run("sources", "check").stderr
    assert f"has failed since 2026-01-05: {BROKEN}" in said
    assert "1 failing, 1 of them for a week, 1 changed" in said
    assert said.count(f"quote no longer on {READ}: A landlord protects a deposit.") == 1


def test_a_dry_run_lists_the_pages_to_fetch(program: Program) -> None:
    """No page is fetched, and an unknown channel is reported."""
    write(program, FILE)
    fill(program.home)
    assert [one["url"] for one in lines(program, "seed", "--dry-run")] == [BROKEN, NEW]
    unknown = program.run("sources", "list", "--channel", "nobody")
    assert unknown.returncode == 2
    assert "no channel named 'nobody'" in unknown.stderr
