"""Admin commands: folders, deletions and undoing them, dry runs, progress."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness.program import SAMPLES, Program
from harness.terminal import END_OF_INPUT, on_terminal
from harness.waiting import BY_COMMAND, until
from samples.paper import pdf

from storage.clock import utc_now
from storage.installations.slack_installations import SlackInstallation, SlackInstallations
from storage.sql.database import Database

QUESTION = r"Delete these documents\?"


def lines(program: Program, *arguments: str) -> list[dict[str, Any]]:
    """Return the JSON lines that a command prints."""
    return [json.loads(line) for line in program.run(*arguments, "--json").stdout.splitlines()]


async def until_so(is_so: Callable[[], bool]) -> None:
    """Poll in a thread for effects of other processes."""
    await until(partial(asyncio.to_thread, is_so), every=BY_COMMAND)


def states(program: Program, channel: str) -> dict[str, str]:
    """Return the state of each file of a channel."""
    return {one["file"]: one["state"] for one in program.documents(channel)}


def contents(home: Path) -> dict[str, bytes]:
    """Return the contents of all files below a home."""
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


async def test_an_admin_sees_progress_and_approves_deletions(program: Program, tmp_path: Path) -> None:
    """Three channels of a service: progress in three views, pending deletions, and a recovery."""
    program.environment |= {"FOOTNOTE_SCAN_SECONDS": "0.3", "FOOTNOTE_SETTLE_SECONDS": "1"}
    samples = [program.drop("it", sample) for sample in SAMPLES.glob("*.pdf")]
    program.drop("it", b"<html>not a pdf</html>", "page.pdf")
    async with program.serving():
        await program.until_live("it", 2, "full")
        await check_progress(program)
        fruit = [
            program.drop("fruit", pdf(f"The {word} costs {number} crowns."), f"{word}.pdf")
            for number, word in enumerate(("apple", "pear", "plum"), 1)
        ]
        data = pdf("The hazelnut costs 1 crown.")
        hazelnut = program.drop("nuts", data, "hazelnut.pdf")
        program.drop("nuts", pdf("The walnut costs 2 crowns."), "walnut.pdf")
        await program.until_live("fruit", 3)
        await program.until_live("nuts", 2)
        for place in (*samples, *fruit[:2], hazelnut):
            place.unlink()
        await approve(program)
        await save_and_put_back(program, hazelnut, data, tmp_path / "saved")


async def check_progress(program: Program) -> None:
    """Check that command line, console and log agree on files and pages per rung."""
    ended = await asyncio.to_thread(
        program.run, "ingest", str(program.home / "inbox" / "it"), "--channel", "it", "--wait", "full"
    )
    said = "quick: 2 of 3 files, 4 of 4 pages; full: 2 of 3 files, 4 of 4 pages; 1 could not be read"
    assert (ended.returncode, said in ended.stderr) == (1, True), ended.stderr
    await until_so(lambda: said in program.log)
    progress = await console_progress(program)
    assert [(one["rung"], one["files"], one["pages"]) for one in progress["rungs"]] == [
        ("quick", 2, 4),
        ("full", 2, 4),
    ]
    names = ("files", "pages", "quarantined", "waiting")
    assert [progress[name] for name in names] == [3, 4, 1, 0]


async def console_progress(program: Program) -> dict[str, Any]:
    """Return the progress sent to the console's page."""
    async with aiohttp.ClientSession(headers=program.console_headers) as session:
        async with session.get(f"{program.url}/console/channels") as response:
            (channel,) = (await response.json())["channels"]
        async with session.get(f"{program.url}/console/channels/{channel['id']}") as response:
            progress: dict[str, Any] = (await response.json())["progress"]
    return progress


async def approve(program: Program) -> None:
    """Delete two of three files: none is deleted before approval, and only these two after it.

    Ctrl-C and end of input cancel the prompt without an error.
    """

    def asked() -> dict[str, dict[str, Any]]:
        return {one["channel"]: one for one in lines(program, "folders") if one["pending_deletions"]}

    await until_so(lambda: asked().keys() >= {"fruit", "it"})
    assert asked()["fruit"]["pending_deletions"] == ["apple.pdf", "pear.pdf"]
    number, other = (str(asked()[name]["folder"]) for name in ("fruit", "it"))
    unasked = await asyncio.to_thread(program.run, "folders", "approve", number)
    assert (unasked.returncode, "--yes" in unasked.stderr) == (1, True)
    await asyncio.to_thread(refuse_on_terminal, program, number)
    assert set(states(program, "fruit").values()) == {"live"}
    listed = await asyncio.to_thread(program.run, "folders")
    assert f"footnote folders approve {number}" in listed.stdout
    await asyncio.to_thread(allow_on_terminal, program, number)
    allowed = await asyncio.to_thread(program.run, "folders", "approve", other, "--yes")
    assert (allowed.returncode, "SOP-IT-04" in allowed.stderr) == (0, True), allowed.stderr
    await until_so(lambda: "deleted" in states(program, "fruit").values())
    await until_so(lambda: not asked())
    assert states(program, "fruit") == {"apple.pdf": "deleted", "pear.pdf": "deleted", "plum.pdf": "live"}
    await until_so(lambda: sorted(states(program, "it").values()) == ["deleted", "deleted", "quarantined"])


def refuse_on_terminal(program: Program, number: str) -> None:
    """Answer the prompt by Ctrl-C, then by end of input."""
    with on_terminal(program, "folders", "approve", number) as terminal:
        terminal.until(QUESTION)
        terminal.interrupt()
        assert terminal.end() == 130, terminal.shown
    with on_terminal(program, "folders", "approve", number) as terminal:
        terminal.until(QUESTION)
        terminal.type(END_OF_INPUT)
        assert terminal.end() == 1
        assert "Nothing was deleted." in terminal.shown


def allow_on_terminal(program: Program, number: str) -> None:
    """Answer the prompt with yes."""
    with on_terminal(program, "folders", "approve", number) as terminal:
        terminal.until(QUESTION)
        terminal.type("yes\n")
        assert terminal.end() == 0
        assert "2 documents will be deleted by the next scan" in terminal.shown


async def save_and_put_back(program: Program, place: Path, data: bytes, saved: Path) -> None:
    """Recover a deleted file, never into a watched folder, and restore it by dropping it again."""
    await until_so(lambda: states(program, "nuts")[place.name] == "deleted")
    (deleted,) = lines(program, "documents", "--channel", "nuts", "--deleted")
    assert (deleted["file"], deleted["location"]) == (place.name, str(place.parent))
    assert deleted["until"] > deleted["deleted_at"]
    recover = ("recover", place.name, "--channel", "nuts", "--to")
    assert program.run(*recover, str(place.parent / "deeper")).returncode == 2
    assert list(place.parent.iterdir()) == [place.parent / "walnut.pdf"]
    written = program.run(*recover, str(saved))
    assert (written.returncode, written.stdout.strip()) == (0, str(saved / place.name))
    assert (saved / place.name).read_bytes() == data
    assert program.run(*recover, str(saved)).returncode == 2
    place.write_bytes(data)
    await until_so(lambda: states(program, "nuts")[place.name] == "live")
    assert lines(program, "documents", "--channel", "nuts", "--deleted") == []


@pytest.mark.long
def test_recovering_an_unknown_file_fails(with_samples: Program, tmp_path: Path) -> None:
    """A file that was never deleted ends with a message, an unknown channel with status 2."""
    missing = with_samples.run("recover", "x.pdf", "--channel", "it", "--to", str(tmp_path))
    assert (missing.returncode, "documents --deleted" in missing.stderr) == (1, True)
    assert with_samples.run("recover", "x.pdf", "--channel", "no", "--to", str(tmp_path)).returncode == 2


def test_a_dry_run_creates_no_home(program: Program) -> None:
    """Works although nothing was ever ingested."""
    ended = program.run("ingest", str(SAMPLES), "--channel", "it", "--dry-run")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("  new ") == 2
    assert not program.home.exists()


def test_a_dry_run_reports_changes_without_making_any(program: Program, tmp_path: Path) -> None:
    """New, replaced, renamed, deleted and unchanged files are distinguished; no byte of the home changes."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for word in ("apple", "pear", "plum", "fig"):
        (docs / f"{word}.pdf").write_bytes(pdf(f"The {word} costs 3 crowns."))
    assert program.run("ingest", str(docs), "--channel", "it").returncode == 0
    (docs / "apple.pdf").write_bytes(pdf("The apple costs 4 crowns."))
    (docs / "pear.pdf").rename(docs / "pyrus.pdf")
    (docs / "plum.pdf").unlink()
    (docs / "kiwi.pdf").write_bytes(pdf("The kiwi costs 9 crowns."))
    before = contents(program.home)
    ended = program.run("ingest", str(docs), "--channel", "it", "--dry-run")
    assert ended.returncode == 0, ended.stderr
    assert [line.split(maxsplit=1) for line in ended.stdout.splitlines()[1:]] == [
        ["new", "kiwi.pdf"],
        ["replaced", "apple.pdf"],
        ["renamed", "pear.pdf -> pyrus.pdf"],
        ["kept", "plum.pdf"],
        ["unchanged", "1"],
    ]
    assert contents(program.home) == before
    assert program.run("ingest", str(tmp_path), "--dry-run").stdout.count("  new ") == 4
    assert contents(program.home) == before


def test_a_dry_run_lists_remarks_on_files(program: Program, tmp_path: Path) -> None:
    """A hard link and two names that look the same are accepted, with a remark each."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "elsewhere.pdf").write_bytes(pdf("Written elsewhere."))
    (docs / "linked.pdf").hardlink_to(tmp_path / "elsewhere.pdf")
    for name in ("Leave.pdf", "leave.pdf"):
        (docs / name).write_bytes(pdf(f"This is {name}."))
    ended = program.run("ingest", str(docs), "--channel", "it", "--dry-run")
    remarks = [line.split(maxsplit=1)[1] for line in ended.stdout.splitlines() if line.startswith("  remark")]
    assert (ended.returncode, len(remarks)) == (0, 2), ended.stdout
    assert sum("linked.pdf" in remark for remark in remarks) == 1
    assert sum("look the same" in remark for remark in remarks) == 1


def test_a_dry_run_refuses_the_same_as_ingest(program: Program, tmp_path: Path) -> None:
    """An invalid channel name and a file with another extension end with status 2."""
    (tmp_path / "a.txt").write_bytes(b"text")
    for path, channel in ((SAMPLES, "a/b"), (tmp_path / "a.txt", "it")):
        ended = program.run("ingest", str(path), "--channel", channel, "--dry-run")
        assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr


def test_mistakes_in_the_folder_map_are_reported_by_line(program: Program, tmp_path: Path) -> None:
    """``--check`` and ``--dry-run`` end with status 2 and the line; once fixed, the file is listed."""
    (tmp_path / "hr").mkdir()
    (tmp_path / "hr" / "leave.pdf").write_bytes(pdf("Leave is 30 days."))
    program.home.mkdir()
    folder_map = program.home / "folders.toml"
    folder_map.write_text(f'[[folder]]\nlocation = "{tmp_path}/hr"\nchanel = "hr"\n')
    for option in ("--check", "--dry-run"):
        ended = program.run("folders", option)
        assert (ended.returncode, "folders.toml:3: chanel" in ended.stdout) == (2, True), ended
    folder_map.write_text(f'[[folder]]\nlocation = "{tmp_path}/hr"\nchannel = "hr"\n')
    before = contents(program.home)
    assert program.run("folders", "--check").returncode == 0
    assert "leave.pdf" in program.run("folders", "--dry-run").stdout
    assert contents(program.home) == before


@pytest.mark.parametrize(
    ("arguments", "status"), [(("approve",), 2), (("approve", "x"), 2), (("approve", "7"), 2), ((), 2)]
)
def test_folders_has_exit_statuses_for_scripts(
    program: Program, arguments: tuple[str, ...], status: int
) -> None:
    """An unknown folder and an empty home count as wrong usage."""
    ended = program.run("folders", *arguments)
    assert (ended.returncode, "Traceback" in ended.stderr) == (status, False)


def test_folders_warns_of_unreachable_links_in_chats(with_samples: Program) -> None:
    """A line and an exit status, until the public URL is reachable for users."""
    with_samples.environment["SLACK_BOT_TOKEN"] = "xoxb-1"
    ended = with_samples.run("folders")
    assert (ended.returncode, "set FOOTNOTE_PUBLIC_URL" in ended.stderr) == (1, True)
    with_samples.environment["FOOTNOTE_PUBLIC_URL"] = "https://footnote.example.com"
    ended = with_samples.run("folders")
    assert (ended.returncode, "FOOTNOTE_PUBLIC_URL" in ended.stderr) == (0, False)


async def test_folders_lists_slack_workspaces_and_token_problems(with_samples: Program) -> None:
    """Status 0 until Slack refuses to renew a token: then a line and an exit status report it."""
    now = utc_now()
    acme = SlackInstallation("T0ACME001", "Acme", "U0BOT", b"sealed", now, now)
    async with aclosing(await Database.open(f"sqlite:///{with_samples.home / 'footnote.db'}")) as database:
        await SlackInstallations(database).save(acme)
        ended = await asyncio.to_thread(with_samples.run, "folders")
        line = f"Slack: Acme (T0ACME001) since {now.date()}"
        assert (ended.returncode, line in ended.stderr, "problem" in ended.stderr) == (0, True, False)
        await SlackInstallations(database).note_problem(acme, "Slack rejected the token renewal")
        ended = await asyncio.to_thread(with_samples.run, "folders")
    assert ended.returncode == 1
    assert "problem: Slack rejected the token renewal: install the app there again" in ended.stderr
