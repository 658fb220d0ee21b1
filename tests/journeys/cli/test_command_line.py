"""The command line for scripts: JSON lines, exit statuses, results separate from progress."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest
from fakes.core import WORDS
from harness.program import SAMPLES, Program
from samples.paper import pdf
from samples.pictures import picture_pdf


def test_ingest_works_without_serve_and_is_idempotent(with_samples: Program) -> None:
    """Reads once; an unchanged folder is no work."""
    before = with_samples.documents("it")
    assert [(d["state"], d["rung"], d["pages"]) for d in before] == [("live", "quick", 2)] * 2
    assert with_samples.run("ingest", str(SAMPLES), "--channel", "it").returncode == 0
    assert with_samples.documents("it") == before


@pytest.mark.long
def test_ingest_reports_a_scan_and_can_wait_for_ocr(program: Program, tmp_path: Path) -> None:
    """Without OCR a scan is not live: ``ingest`` says so and ends, or waits on request."""
    scan = tmp_path / "scan.pdf"
    scan.write_bytes(picture_pdf("The marzipan cupboard is opened by two people."))
    ended = program.run("ingest", str(scan), "--channel", "it")
    assert ended.returncode == 0
    assert "scan.pdf is a scan and waits for OCR" in ended.stderr
    assert program.documents("it")[0]["state"] == "reading"
    assert program.run("ingest", str(scan), "--channel", "it", "--wait", "full").returncode == 0
    (document,) = program.documents("it")
    assert (document["state"], document["rung"]) == ("live", "full")
    assert "read by OCR" in document["reason"]


def test_the_json_of_a_document_has_every_key(with_samples: Program) -> None:
    """Metadata is what the document prints, and null otherwise."""
    (document,) = [one for one in with_samples.documents("it") if "IT-04" in one["file"]]
    keys = {"channel", "document", "version", "file", "title", "pages", "state", "rung", "reason", "metadata"}
    assert set(document) == keys
    assert document["metadata"] == {
        "sop_id": "SOP-IT-04",
        "version": "2.1",
        "department": "IT",
        "effective": "2024-01-15",
        "last_updated": "2024-01-08",
        "title": None,
        "author": None,
        "organisation": "HALDEN INSTRUMENTS",
        "document_type": "STANDARD OPERATING PROCEDURE",
        "language": "en",
    }
    listed = with_samples.run("documents", "--channel", "it").stdout
    assert "SOP-IT-04, version 2.1, IT, effective 2024-01-15, updated 2024-01-08" in listed


def test_questions_about_the_channel_need_no_search(with_samples: Program) -> None:
    """Document list, news, existence of a document, and a closing, in one channel and two languages."""
    listed = with_samples.ask("Which documents do you know?", "it")
    assert listed["text"].startswith("I know 2 documents in this channel:\n• ")
    name = "Backup and Restore (SOP-IT-04-Backup-and-Restore.pdf)"
    assert f"{name} · 2 pages · version 2.1 · IT · effective 2024-01-15" in listed["text"]
    news = with_samples.ask("What is new?", "it")
    assert news["text"].startswith("New or changed in the last 14 days:\n• ")
    found = with_samples.ask("Is SOP-IT-04 in here?", "it")
    assert found["text"].startswith("Yes, I have this document:\n• ")
    closing = with_samples.ask("ok, thanks", "it")
    for answer in (listed, news, found, closing):
        assert (answer["state"], answer["citations"], answer["passages"]) == ("chat", [], [])


def test_where_filters_documents_by_metadata(with_samples: Program, tmp_path: Path) -> None:
    """``--where`` filters listing and answers; a wrong field is reported."""
    listed = with_samples.run("documents", "--channel", "it", "--where", "sop_id=sop-it-04", "--json").stdout
    assert [json.loads(line)["metadata"]["sop_id"] for line in listed.splitlines()] == ["SOP-IT-04"]
    asked = ("ask", "When do backups run?", "--channel", "it", "--json", "--where")
    found = json.loads(with_samples.run(*asked, "effective=2024-01-15").stdout)
    assert {"SOP-IT-04" in one["file"] for one in found["passages"]} == {True}
    assert found["state"] == "passages"
    nothing = json.loads(with_samples.run(*asked, "department=Kitchen").stdout)
    assert (nothing["state"], nothing["passages"]) == ("not_found", [])
    assert "so I searched none" in nothing["text"]
    twice = ("--where", "language=en", "--where", "language=de")
    assert with_samples.run("documents", "--channel", "it", *twice).returncode == 2
    for wrong, told in (
        ("colour=red", "the fields are sop_id"),
        ("effective=soon", "or a range: 2023..2024"),
    ):
        refused = with_samples.run(*asked, wrong)
        assert (refused.returncode, told in refused.stderr) == (2, True)
    many = tmp_path / "many.jsonl"
    line = {"id": 1, "question": "When do backups run?", "channel": "it"}
    lines = [
        {**line, "where": {"effective": "2024..", "kind": "sop"}},
        {**line, "where": {"sop_id": "SOP-HR-1"}},
    ]
    many.write_text("".join(f"{json.dumps(one)}\n" for one in [*lines, {**line, "where": "here"}]))
    states = [
        json.loads(one)["state"]
        for one in with_samples.run("ask", "--questions", str(many), "--json").stdout.splitlines()
    ]
    assert states == ["passages", "not_found", "failed"]


def test_an_admin_can_correct_a_field_and_undo_it(with_samples: Program) -> None:
    """A correction overrides the printed value, the source of each value is shown, and it can be undone."""
    file = "SOP-IT-04-Backup-and-Restore.pdf"
    about = ("metadata", file, "--channel", "it")
    assert "sop_id         SOP-IT-04  (page 1)" in with_samples.run(*about).stdout
    corrected = with_samples.run(*about, "--set", "department=Operations", "--set", "version=").stdout
    assert "department     Operations  (corrected)" in corrected
    (document,) = [one for one in with_samples.documents("it") if one["file"] == file]
    assert (document["metadata"]["department"], document["metadata"]["version"]) == ("Operations", None)
    assert (
        "department     IT  (page 1)"
        in with_samples.run(*about, "--undo", "department", "--undo", "version").stdout
    )
    for wrong in ("colour=red", "department", "department=" + "x" * 121):
        refused = with_samples.run(*about, "--set", wrong)
        assert (refused.returncode, refused.stdout) == (2, "")
    assert with_samples.run("metadata", "gone.pdf", "--channel", "it").returncode == 2


@pytest.mark.long
def test_ingesting_a_root_makes_a_channel_of_each_folder(program: Program, tmp_path: Path) -> None:
    """A file outside any folder is skipped and named; a broken one gives status 1, the rest is live."""
    for folder, word in (("legal", "notary"), ("sales", "discount")):
        (tmp_path / "root" / folder).mkdir(parents=True)
        (tmp_path / "root" / folder / "a.pdf").write_bytes(pdf(f"The {word} rule is number 7."))
    (tmp_path / "root" / "sales" / "page.pdf").write_bytes(b"<html>not a pdf</html>")
    (tmp_path / "root" / "loose.pdf").write_bytes(pdf("Nobody's."))
    ended = program.run("ingest", str(tmp_path / "root"))
    assert (ended.returncode, "page.pdf" in ended.stderr) == (1, True), ended.stderr
    assert "loose.pdf" in ended.stderr
    channels = [json.loads(line) for line in program.run("channels", "--json").stdout.splitlines()]
    assert [channel["channel"] for channel in channels] == ["legal", "sales"]
    assert all(channel["tenant"].startswith("lo_") for channel in channels)
    states = {d["file"]: (d["state"], bool(d["reason"])) for d in program.documents("sales")}
    assert states == {"a.pdf": ("live", False), "page.pdf": ("quarantined", True)}
    assert program.ask("What is the number of the discount rule?", "sales")["state"] == "passages"


def test_a_batch_answers_each_line_in_order(with_samples: Program, tmp_path: Path) -> None:
    """Answered, unknown, malformed in every way, too long: one line out per line in."""
    questions = tmp_path / "questions.jsonl"
    lines = [
        '{"id": "a", "question": "When do backups run?", "channel": "it"}',
        '{"id": "b", "question": "When do backups run?", "channel": "nowhere"}',
        '{"id": "c", "question": ',
        '{"id": 4, "question": "hello", "channel": "it"}',
        '{"id": "d", "question": "half a pair: \\ud800", "channel": "it"}',
        '{"id": "e", "question": "where?", "channel": "it\\ud800"}',
        f'{{"id": {"9" * 5000}}}',
        "",
        '{"id": "f", "question": "' + "long " * 20_000 + '", "channel": "it"}',
    ]
    questions.write_text("\n".join(lines) + "\n")
    ended = with_samples.run("ask", "--questions", str(questions), "--json")
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(answer["id"], answer["state"]) for answer in answers] == [
        ("a", "passages"),
        ("b", "not_found"),
        (None, "failed"),
        (4, "chat"),
        ("d", "failed"),
        ("e", "failed"),
        (None, "failed"),
        (None, "failed"),
        ("f", "chat"),
    ]
    assert answers[1]["passages"] == []
    assert ended.returncode == 1


@pytest.mark.long
def test_a_thread_understands_follow_ups(with_samples: Program, tmp_path: Path) -> None:
    """A follow-up is rewritten as a standalone question, by command or batch, in its own thread."""
    asked = ("--channel", "it", "--thread", "mine", "--json")
    first = json.loads(with_samples.run("ask", "When do backups run?", *asked).stdout)
    assert (first["state"], first.get("standalone")) == ("passages", None)
    second = json.loads(with_samples.run("ask", "who checks them?", *asked).stdout)
    assert second["standalone"] == "who checks them (backups run)?"
    assert "IT-04" in second["passages"][0]["file"]
    shown = with_samples.run("ask", "who checks them?", "--channel", "it", "--thread", "mine").stdout
    assert shown.startswith(WORDS.understood(question=second["standalone"]))
    lines = [
        {"id": 1, "question": "and on weekends?", "thread": "mine"},
        {"id": 2, "question": "and on weekends?", "thread": "other"},
        {"id": 3, "question": "and on weekends?"},
        {"id": 4, "question": "How do I request remote work?", "thread": "other"},
        {"id": 5, "question": "who approves it?", "thread": "other"},
        {"id": 6, "question": "who approves it?", "thread": 7},
    ]
    many = tmp_path / "many.jsonl"
    many.write_text("".join(f"{json.dumps({**line, 'channel': 'it'})}\n" for line in lines))
    answers = [
        json.loads(line)
        for line in with_samples.run("ask", "--questions", str(many), "--json").stdout.splitlines()
    ]
    assert "backups" in answers[0]["standalone"]
    assert [answer.get("standalone") for answer in answers[1:4]] == [None] * 3
    assert answers[4]["standalone"] == "who approves it (request remote work)?"
    assert (answers[5]["state"], "thread" in answers[5]["text"]) == ("failed", True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "When do backups run?", "--channel", "nowhere"),
        ("ask",),
        ("documents", "--channel", "nowhere"),
        ("ingest", "/nowhere", "--channel", "it"),
        ("ingest", str(SAMPLES), "--channel", "a/b"),
        ("ingest", str(SAMPLES), "--channel", "../x"),
        ("ingest", str(SAMPLES), "--channel", ".hidden"),
        ("ask", "half a pair: \udcff", "--channel", "it"),
        ("frobnicate",),
    ],
)
def test_wrong_usage_ends_with_status_2_and_a_message(program: Program, arguments: tuple[str, ...]) -> None:
    """An unknown channel counts as wrong usage; no home is created."""
    ended = program.run(*arguments)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    assert not program.home.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("documents",),
        ("documents", "--deleted", "--channel", "it"),
        ("metadata", "a.pdf"),
        ("recover", "a.pdf", "--to", "saved"),
        ("records",),
        ("channels", "--json"),
        ("folders", "--json"),
        ("ask", "When do backups run?", "--json"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_reading_an_empty_home_says_what_to_do(program: Program, arguments: tuple[str, ...]) -> None:
    """Shows that a command in the wrong folder creates no database there, and names the way out."""
    ended = program.run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "footnote serve" in ended.stderr
    assert not program.home.exists()


def test_a_batch_in_an_empty_home_creates_no_home(program: Program, tmp_path: Path) -> None:
    """Shows that every line gets a reply, as for an unknown channel."""
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"id": 1, "question": "When?", "channel": "it"}\n{broken\n')
    ended = program.run("ask", "--questions", str(questions), "--json")
    states = [json.loads(line)["state"] for line in ended.stdout.splitlines()]
    assert (states, ended.returncode) == (["not_found", "failed"], 1)
    assert not program.home.exists()


@pytest.mark.long
def test_the_channel_option_is_optional_with_one_channel(with_samples: Program, tmp_path: Path) -> None:
    """Shows that several channels are listed by name in the error."""
    (tmp_path / "plum.pdf").write_bytes(pdf("The plum costs 3 crowns."))
    listed = with_samples.run("documents", "--json")
    assert {json.loads(line)["channel"] for line in listed.stdout.splitlines()} == {"it"}
    asked = json.loads(with_samples.run("ask", "When do backups run?", "--json").stdout)
    assert (asked["state"], asked["channel"]) == ("passages", "it")
    many = tmp_path / "many.jsonl"
    many.write_text('{"id": 1, "question": "When do backups run?"}\n')
    batch = json.loads(with_samples.run("ask", "--questions", str(many), "--json").stdout)
    assert (batch["state"], batch["channel"]) == ("passages", "it")
    assert with_samples.run("ingest", str(tmp_path / "plum.pdf"), "--channel", "the kitchen").returncode == 0
    for command in (["documents"], ["records"], ["ask", "When do backups run?"]):
        ended = with_samples.run(*command)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "--channel: it, 'the kitchen'" in ended.stderr
    batch = json.loads(with_samples.run("ask", "--questions", str(many), "--json").stdout)
    assert (batch["state"], "--channel: it, 'the kitchen'" in batch["text"]) == ("failed", True)


def test_version_and_usage_are_printed(program: Program) -> None:
    """Covers ``--version``, and ``footnote`` alone."""
    assert program.run("--version").stdout == f"footnote {version('footnote-bot')}\n"
    alone = program.run()
    assert alone.returncode == 2
    assert "usage: footnote" in alone.stderr
    assert "ingest" in alone.stderr


def test_an_unknown_setting_is_refused(program: Program) -> None:
    """A mistyped variable is an error, not a silent default."""
    program.environment["FOOTNOTE_PROT"] = "80"
    ended = program.run("channels")
    assert ended.returncode == 2
    assert "FOOTNOTE_PROT" in ended.stderr


@pytest.mark.long
def test_two_files_of_one_path_are_two_sources(program: Program, tmp_path: Path) -> None:
    """A channel fed from two folders: each cited page has its own link.

    ``passages`` holds the candidates in final order, at least twenty if there are as many.
    """
    rules = [f"Rule {number}: depot number {number} closes at {number % 12} o'clock." for number in range(40)]
    for folder, city, more in (("north", "Bern", []), ("south", "Rome", rules)):
        (tmp_path / folder).mkdir()
        page = f"The {folder} office of the depot is in {city}."
        (tmp_path / folder / "manual.pdf").write_bytes(pdf(page, *more))
        assert program.run("ingest", str(tmp_path / folder), "--channel", "it").returncode == 0
    shown = program.run("ask", "Where is the office of the depot?", "--channel", "it").stdout
    assert ("Bern" in shown, "Rome" in shown) == (True, True)
    assert shown.count("/v/") == 2
    passages = program.ask("When does the depot close?", "it")["passages"]
    assert len(passages) >= 20
    scores = [passage["score"] for passage in passages]
    assert scores == sorted(scores, reverse=True)
    assert set(passages[0]) == {"file", "page", "last_page", "score", "bm25", "vector"}


def test_starting_on_a_full_disk_reports_it(program: Program) -> None:
    """Named in the message, not an unexpected error; /dev/full refuses every byte, like a full disk."""
    program.home.mkdir(parents=True, exist_ok=True)
    (program.home / "serve.new").symlink_to("/dev/full")
    ended = program.run("serve", "--port", str(program.port))
    assert ended.returncode == 1
    assert "footnote: the disk is full" in ended.stderr
