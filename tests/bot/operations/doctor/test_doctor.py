"""The doctor on healthy and broken installations: each fault is a line with its fix."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from engines.s3 import RealS3
from engines.support.ports import free_port
from fakes.oauth_slack import oauth_slack
from fakes.openid_provider import CLIENT_ID, serving_provider
from harness.doctor import CANARY, Answer, Doctor, Serve
from sqlalchemy import update

from bot.answers.citations.signed_links import KeyRing, Links
from bot.core.errors import LinkForged
from bot.health.findings import CheckState, HealthCheck, ok
from bot.operations.doctor.redaction import HIDDEN, Redactor
from bot.operations.doctor.report import TOO_LONG, run_checks
from bot.platforms.slack.workspace.app_manifest import SCOPES
from bot.platforms.teams.connector import AppCredentials
from bot.platforms.teams.platform import check_app_token
from storage.clock import utc_now
from storage.errors import docs_url
from storage.queues.index_rebuilds import IndexRebuilds
from storage.sql.audit import BACK_UP, AuditedAction, AuditLog
from storage.sql.database import Database
from storage.sql.migrations.revisions import newest_revision
from storage.sql.tables import (
    AuditRow,
    BlobRow,
    ChannelRow,
    DocumentRow,
    FolderRow,
    PublicationRow,
    ReadingRow,
    VersionRow,
)

# Checks that start no process and load no model; the journey covers the others.
CHEAP = (
    "settings", "home", "disk", "memory", "clock", "sql", "index", "contents", "sizes", "backup", "folders",
    "model", "public-url", "tls", "sign-in", "slack", "teams",
)  # fmt: skip
NOBODY = 65534
TOKEN = {"SLACK_BOT_TOKEN": f"xoxb-{CANARY}", "SLACK_APP_TOKEN": f"xapp-{CANARY}"}


def json_answer(body: dict[str, Any], status: int = 200, **headers: str) -> Answer:
    """Return a handler with this JSON response."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(body, status=status, headers=headers)

    return answer


def nowhere() -> str:
    """Return a URL where no server listens."""
    return f"http://127.0.0.1:{free_port()}"


async def publish(doctor: Doctor, location: str = "", chunks: int = 3) -> None:
    """Publish a document of a watched folder in SQL that the index does not contain."""
    database = await Database.open(f"sqlite:///{doctor.home / 'footnote.db'}")
    async with database.transaction() as session:
        channel = ChannelRow(tenant="lo_" + 52 * "b", platform="local", name="it")
        session.add_all([channel, BlobRow(sha256=64 * "a", size=1)])
        await session.flush()
        folder = FolderRow(channel_id=channel.id, location=location or str(doctor.home), watched=True)
        reading = ReadingRow(sha256=64 * "a", generation="1", rung="quick", state="done", chunks=chunks)
        session.add_all([folder, reading])
        await session.flush()
        document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file="a.pdf")
        session.add(document)
        await session.flush()
        version = VersionRow(document_id=document.id, number=1, sha256=64 * "a")
        session.add(version)
        await session.flush()
        live = {"channel_id": channel.id, "version_id": version.id, "reading_id": reading.id}
        session.add(PublicationRow(**live, state="live"))
    await database.aclose()


async def test_a_healthy_home_has_no_fault(doctor: Doctor) -> None:
    """Shows that a default installation has no fault."""
    results = await doctor.look(*CHEAP)
    assert [one.name for one in results] == list(CHEAP)
    assert [one for one in results if one.state is CheckState.FAIL or (one.fix and one.name != "disk")] == []


async def test_the_doctor_changes_nothing(doctor: Doctor) -> None:
    """Shows that the doctor neither creates a home nor migrates an old database."""
    empty = doctor.home / "empty"
    told = await doctor.look(*CHEAP, FOOTNOTE_HOME=str(empty))
    assert not empty.exists()
    assert [one.name for one in told if one.state is CheckState.WARN] == ["home", "sql"]
    assert [one.name for one in told if one.state is CheckState.FAIL] == []


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"FOOTNOTE_LINK_DAYS": "never"}, "FOOTNOTE_LINK_DAYS"),
        ({"FOOTNOTE_LNK_DAYS": "7"}, "FOOTNOTE_LNK_DAYS"),
        ({"FOOTNOTE_PDF_PASSWORDS": f"plain{CANARY}"}, "FOOTNOTE_PDF_PASSWORDS"),
    ],
)
async def test_a_wrong_setting_is_a_line_among_other_checks(
    doctor: Doctor, settings: dict[str, str], named: str
) -> None:
    """Shows that a mistyped setting leads to a report instead of a traceback, without echoing a password."""
    told = await doctor.look("settings", "home", "disk", **settings)
    assert [one.name for one in told] == ["settings", "home", "disk"]
    assert told[0].state is CheckState.FAIL
    assert named in told[0].text


async def test_one_wrong_setting_hides_no_other_line(doctor: Doctor) -> None:
    """Shows that all other checks run, and that each wrong setting is a line of its own."""
    wrong = {"FOOTNOTE_LINK_DAYS": "never", "FOOTNOTE_PROT": "1", "FOOTNOTE_SHARE_TIMEOUT": "0"}
    told = await doctor.look(*CHEAP, SLACK_BOT_TOKN="x", **wrong)
    assert list(dict.fromkeys(one.name for one in told)) == list(CHEAP)
    lines = [one for one in told if one.name == "settings"]
    assert [one.state for one in lines] == [CheckState.FAIL] * 3 + [CheckState.WARN]
    assert "did you mean FOOTNOTE_PORT?" in lines[0].text
    assert "SLACK_BOT_TOKEN" in lines[3].text
    assert [one.name for one in await doctor.look("disk")] == ["settings"] * 4 + ["disk"]


@pytest.mark.parametrize(
    ("days", "is_done", "state", "said"),
    [
        (None, True, CheckState.WARN, "never run"),
        (0, True, CheckState.OK, "less than a day old"),
        (9, True, CheckState.WARN, "9 days old"),
        (1, False, CheckState.WARN, "lacks damaged files"),
    ],
)
async def test_the_last_backup_is_reported(
    doctor: Doctor, days: int | None, is_done: bool, state: CheckState, said: str
) -> None:
    """Shows its age, and that one that left files out does not count as good."""
    await publish(doctor)
    if days is not None:
        database = await Database.open(f"sqlite:///{doctor.home / 'footnote.db'}")
        await AuditLog(database).record(AuditedAction("local", BACK_UP, "", "digest", is_done=is_done))
        async with database.transaction() as session:
            await session.execute(update(AuditRow).values(at=utc_now() - timedelta(days=days, hours=1)))
        await database.aclose()
    (told,) = await doctor.look("backup")
    assert (told.state, said in told.text) == (state, True), told


async def test_a_broken_footnote_toml_is_a_line(doctor: Doctor) -> None:
    """Shows that a malformed settings file is reported."""
    (doctor.home / "footnote.toml").write_text(f"OPENAI_API_KEY = '{CANARY}\n")
    assert "footnote.toml" in (await doctor.fault("settings")).text


@pytest.mark.parametrize("status", [401, 404, 429])
async def test_model_refusals_are_distinguished(doctor: Doctor, serve: Serve, status: int) -> None:
    """Shows the fix (key, URL or quota), and that the key is not printed."""
    url = await serve(json_answer({"error": {"message": f"bad key sk-{CANARY}"}}, status))
    wanted = {401: "OPENAI_API_KEY", 404: "OPENAI_MODEL", 429: "quota"}[status]
    told = await doctor.fault("model", OPENAI_BASE_URL=f"{url}/v1", OPENAI_API_KEY=f"sk-{CANARY}")
    assert wanted in told.fix


async def test_a_model_without_its_key_is_reported(doctor: Doctor, serve: Serve) -> None:
    """Shows that a 401 without a configured key is reported as a missing key."""
    url = await serve(json_answer({"error": {"message": "who are you?"}}, 401))
    assert (await doctor.fault("model", OPENAI_BASE_URL=f"{url}/v1")).fix == "set OPENAI_API_KEY"


async def test_a_dead_model_server_is_reported(doctor: Doctor) -> None:
    """Shows that an unreachable server is a failure of its own."""
    told = await doctor.fault("model", OPENAI_BASE_URL=f"{nowhere()}/v1", OPENAI_API_KEY=f"sk-{CANARY}")
    assert (told.state, "reachable" in told.fix) == (CheckState.FAIL, True)


async def test_a_wrong_slack_token_is_reported(doctor: Doctor) -> None:
    """Shows that Slack is called, and its error about the token is shown."""
    async with oauth_slack() as slack:
        told = await doctor.look("slack", SLACK_API_URL=slack.api_url, **TOKEN)
    assert [one.text for one in told] == [
        "Slack refused: invalid_auth",
        "Socket Mode: Slack refused: invalid_auth",
    ]
    assert ["token" in one.fix.casefold() for one in told] == [True, True]


async def test_an_unreachable_slack_blames_no_token(doctor: Doctor) -> None:
    told = await doctor.look("slack", SLACK_API_URL=f"{nowhere()}/api/", **TOKEN)
    assert {one.text.removeprefix("Socket Mode: ") for one in told} == {"Slack could not be reached"}
    assert ["token" in one.fix.casefold() for one in told] == [False, False]


@pytest.mark.parametrize("missing", [[], ["links:read", "files:write"]])
async def test_slack_s_scopes_are_compared_with_the_manifest(
    doctor: Doctor, serve: Serve, missing: list[str]
) -> None:
    """Shows that an app with an outdated manifest is noticed before a message is lost."""
    granted = ",".join(one for one in SCOPES if one not in missing)
    url = await serve(json_answer({"ok": True, "team": "Acme", "user": "bot"}, **{"X-OAuth-Scopes": granted}))
    (told,) = await doctor.look("slack", SLACK_API_URL=f"{url}/api/", **TOKEN)
    assert told.state is (CheckState.FAIL if missing else CheckState.OK)
    assert all(one in told.text for one in missing)


async def test_slack_without_event_delivery_is_reported(doctor: Doctor, serve: Serve) -> None:
    """Shows that a bot token alone receives no events."""
    url = await serve(json_answer({"ok": True, "team": "Acme", "user": "bot"}))
    told = await doctor.look("slack", SLACK_API_URL=f"{url}/api/", SLACK_BOT_TOKEN=TOKEN["SLACK_BOT_TOKEN"])
    assert [one.state for one in told] == [CheckState.FAIL, CheckState.OK]
    assert "SLACK_SIGNING_SECRET" in told[0].fix


@pytest.mark.parametrize("status", [200, 401])
async def test_the_teams_token_is_requested(serve: Serve, status: int) -> None:
    """Shows that an expired secret is noticed before the first message."""
    given = {"access_token": CANARY, "expires_in": 3600} if status == 200 else {"error": "invalid_client"}
    authority = await serve(json_answer(given, status))
    told = await check_app_token(AppCredentials("app", CANARY, "tenant", authority))
    assert told.state is (CheckState.OK if status == 200 else CheckState.FAIL)
    assert CANARY not in str(told)


async def test_the_sign_in_provider_is_checked(doctor: Doctor) -> None:
    """Covers a healthy provider, one with another issuer, one with unusable keys, and one that is down."""
    async with serving_provider() as provider:
        said = {"FOOTNOTE_OIDC_ISSUER": provider.issuer, "FOOTNOTE_OIDC_CLIENT_ID": CLIENT_ID}
        said |= {"FOOTNOTE_OIDC_READERS": "ada@example.com", "FOOTNOTE_PUBLIC_URL": "https://x.example"}
        (well,) = await doctor.look("sign-in", FOOTNOTE_OIDC_CLIENT_SECRET=CANARY, **said)
        assert well.state is CheckState.OK, well
        provider.metadata = {"issuer": f"{provider.issuer}/"}
        assert "this issuer" in (await doctor.fault("sign-in")).text
        provider.metadata = {"jwks_uri": f"{provider.issuer}/.well-known/openid-configuration"}
        assert "no key" in (await doctor.fault("sign-in")).text
    assert "ClientConnectorError" in (await doctor.fault("sign-in")).text


@pytest.mark.engine("s3")
async def test_the_blob_store_is_checked(doctor: Doctor, s3_server: RealS3) -> None:
    """Covers a healthy store, one that refuses access, one that is down, and one of another home."""
    bucket = s3_server.place()
    account = {name.upper(): value for name, value in s3_server.settings.items()}
    (well,) = await doctor.look("blobs", FOOTNOTE_BLOBS=bucket.location, **account)
    assert well.state is CheckState.OK, well
    bucket.put("blobs/ab/cd", b"of another home")
    assert "another home" in (await doctor.fault("blobs")).text
    assert "cannot be written" in (await doctor.fault("blobs", AWS_SECRET_ACCESS_KEY=CANARY)).text
    assert "cannot be written" in (await doctor.fault("blobs", AWS_ENDPOINT_URL=nowhere())).text


async def test_incomplete_teams_settings_are_reported(doctor: Doctor) -> None:
    """Shows which setting is missing if only the secret is set."""
    assert "MicrosoftAppId" in (await doctor.fault("teams", MicrosoftAppPassword=CANARY)).text


async def test_an_unreachable_public_url_is_reported(doctor: Doctor) -> None:
    """Shows that the URL is really requested."""
    told = await doctor.fault("public-url", FOOTNOTE_PUBLIC_URL=nowhere())
    assert "is not reachable from here" in told.text


async def test_a_public_url_of_another_installation_is_reported(doctor: Doctor, serve: Serve) -> None:
    """Shows that a link of this home is recognized by its keys; the journey covers the right one."""
    others = Links(KeyRing(doctor.home / "other_keys.json"), "http://x", timedelta(days=1), utc_now)

    async def answer(request: web.Request) -> web.Response:
        try:
            others.read(request.path.removeprefix("/v/"))
        except LinkForged:
            return web.Response(status=404)
        return web.Response(status=410)

    url = await serve(answer)
    assert "another installation" in (await doctor.fault("public-url", FOOTNOTE_PUBLIC_URL=url)).text


async def test_a_proxy_that_answers_itself_is_reported(doctor: Doctor, serve: Serve) -> None:
    """Covers a gateway whose service is down, and a page that answers 200 to everything."""
    for status in (502, 200):
        url = await serve(json_answer({}, status))
        assert f"status {status}" in (await doctor.fault("public-url", FOOTNOTE_PUBLIC_URL=url)).text


async def test_chat_links_to_localhost_are_reported(doctor: Doctor) -> None:
    """Shows that the doctor applies the same rule as serve's warning."""
    told = await doctor.fault(
        "public-url", FOOTNOTE_PUBLIC_URL=nowhere(), SLACK_API_URL="https://slack.invalid/api/", **TOKEN
    )
    assert (told.state, "opens on this machine only" in told.text) == (CheckState.FAIL, True)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Drop root's permissions temporarily, as root may write anywhere; other users are unaffected."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)


async def test_an_unwritable_home_is_reported(doctor: Doctor) -> None:
    """Shows a read-only home as seen by the user that runs the service."""
    place = Path(tempfile.mkdtemp())
    try:
        place.chmod(0o555)
        with as_nobody():
            told = await doctor.fault("home", FOOTNOTE_HOME=str(place))
    finally:
        place.chmod(0o755)
        place.rmdir()
    assert (told.state, "chown" in told.fix) == (CheckState.FAIL, True)


async def test_a_full_disk_is_reported(doctor: Doctor) -> None:
    """Shows both thresholds, with simulated disk usage."""
    for free, state in ((100 << 20, CheckState.FAIL), (1 << 30, CheckState.WARN), (99 << 30, CheckState.OK)):
        usage = SimpleNamespace(total=100 << 30, used=0, free=free)
        doctor.patch.setattr(shutil, "disk_usage", lambda _, usage=usage: usage)
        assert [one.state for one in await doctor.look("disk")] == [state]


async def test_a_missing_folder_is_reported(doctor: Doctor) -> None:
    """Covers a watched folder that is gone, and a typo in the map."""
    await publish(doctor, str(doctor.home / "gone"))
    (doctor.home / "folders.toml").write_text('[[folder]]\nlocation = "/x"\nchanel = "it"\n')
    told = [one.text for one in await doctor.look("folders") if one.state is CheckState.FAIL]
    assert any(f"{doctor.home / 'gone'}: No such file" in one for one in told)
    assert any("chanel" in one for one in told)


async def test_a_mapped_folder_not_yet_watched_is_checked(doctor: Doctor) -> None:
    """Shows that a missing path in a new folders.toml is reported before serve has started."""
    place = doctor.home / "share"
    (doctor.home / "folders.toml").write_text(f'[[folder]]\nlocation = "{place}"\nchannel = "it"\n')
    assert f"{place}: No such file" in (await doctor.fault("folders")).text
    place.mkdir()
    assert [one.state for one in await doctor.look("folders")] == [CheckState.OK]


async def test_documents_missing_in_the_index_are_reported(doctor: Doctor) -> None:
    """Shows that SQL's documents are compared with the index, channel by channel."""
    await publish(doctor)
    told = await doctor.fault("contents")
    assert (told.state, "lacks 1 of 1" in told.text) == (CheckState.FAIL, True)
    assert "footnote reconcile" in told.fix


async def test_an_index_being_rebuilt_is_no_loss(doctor: Doctor) -> None:
    """Shows that chunks dropped by an erasure are expected to be missing during the rebuild."""
    await publish(doctor)
    database = await Database.open(f"sqlite:///{doctor.home / 'footnote.db'}")
    await IndexRebuilds(database).begin(1)
    await database.aclose()
    told = await doctor.fault("contents")
    assert (told.state, "being rebuilt" in told.text) == (CheckState.WARN, True)


async def test_a_channel_too_large_for_the_index_is_reported(doctor: Doctor) -> None:
    """Shows the size from which another engine is recommended."""
    await publish(doctor, chunks=60_000)
    assert "Weaviate" in (await doctor.fault("sizes")).fix


async def test_tables_of_another_release_are_reported_and_unchanged(doctor: Doctor) -> None:
    """Shows that the doctor never migrates, and that other checks cope with it."""
    held = "9999"
    file = doctor.home / "footnote.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (held,))
    told = {one.name: one for one in await doctor.look("sql", "contents", "sizes", "folders")}
    assert (told["sql"].state, newest_revision() in told["sql"].text) == (CheckState.FAIL, True)
    assert (told["contents"].state, "the database does not work" in told["contents"].text) == (
        CheckState.WARN,
        True,
    )
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(held,)]


async def test_an_unreachable_database_server_is_reported(doctor: Doctor) -> None:
    """Shows an unreachable PostgreSQL; its password is not printed."""
    url = f"postgresql://footnote:{CANARY}@127.0.0.1:{free_port()}/footnote"
    assert "does not answer" in (await doctor.fault("sql", DATABASE_URL=url)).text


async def test_an_unreachable_weaviate_is_reported(doctor: Doctor) -> None:
    """Shows that no fallback index is used."""
    told = await doctor.fault("index", WEAVIATE_URL=nowhere(), WEAVIATE_API_KEY=CANARY)
    assert (told.state, "no response from the server" in told.text) == (CheckState.FAIL, True)


@pytest.mark.parametrize(
    ("version", "status", "said"),
    [
        ("1.30.0", "HEALTHY", "too old"),
        ("1.38.11", "UNHEALTHY", "not healthy: b"),
        ("1.38.11", "HEALTHY", ""),
    ],
)
async def test_an_unhealthy_cluster_is_reported(
    doctor: Doctor, serve: Serve, version: str, status: str, said: str
) -> None:
    """Shows version, nodes and replication as reported by Weaviate."""
    nodes = [{"name": "a", "status": "HEALTHY"}, {"name": "b", "status": status}]

    async def answer(request: web.Request) -> web.Response:
        bodies = {"meta": {"version": version}, "nodes": {"nodes": nodes}}
        body = bodies.get(request.path.rpartition("/")[2])
        return web.json_response(body or {}, status=200 if body else 404)

    url = await serve(answer)
    grpc = url.rpartition(":")[2]
    told = await doctor.look("index", WEAVIATE_URL=url, FOOTNOTE_WEAVIATE_GRPC_PORT=grpc)
    if said:
        assert any(said in one.text for one in told if one.state is CheckState.FAIL)
    else:
        assert [(one.state, version in one.text) for one in told] == [(CheckState.OK, True)]


async def test_a_cluster_without_replication_is_reported(doctor: Doctor, serve: Serve) -> None:
    """Shows the setting that adds replicas, and its documentation page."""
    nodes = {"nodes": [{"name": name, "status": "HEALTHY"} for name in "abc"]}

    async def answer(request: web.Request) -> web.Response:
        made = {"replicationConfig": {"factor": 1}}
        bodies = {"meta": {"version": "1.38.11"}, "nodes": nodes, "FootnoteChunk": made}
        return web.json_response(bodies[request.path.rpartition("/")[2]])

    closed = nowhere().rpartition(":")[2]
    told = await doctor.look("index", WEAVIATE_URL=await serve(answer), FOOTNOTE_WEAVIATE_GRPC_PORT=closed)
    (found,) = [one for one in told if one.state is CheckState.WARN]
    assert "3 nodes, but 1 copy" in found.text
    assert "FOOTNOTE_WEAVIATE_REPLICAS=3: " + docs_url("weaviate.md#a-cluster") in found.fix


@pytest.mark.parametrize(("minutes", "state"), [(0, "ok"), (-2, "warn"), (10, "fail")])
async def test_clock_skew_is_reported(doctor: Doctor, serve: Serve, minutes: int, state: str) -> None:
    """Shows the comparison with the Date header of a platform."""

    async def answer(_: web.Request) -> web.Response:
        date = format_datetime(utc_now() + timedelta(minutes=minutes), usegmt=True)
        return web.Response(headers={"Date": date})

    (told,) = await doctor.look("clock", SLACK_API_URL=await serve(answer), **TOKEN)
    assert told.state == state, told


async def test_a_hanging_check_affects_only_its_line() -> None:
    """Shows timeouts: no check waits for another, and an exception is a line without its text."""

    async def hang() -> None:
        await asyncio.sleep(60)

    async def stumble() -> None:
        raise ValueError(f"the key is {CANARY}")

    async def be_well() -> Any:
        return ok("well")

    checks = [
        HealthCheck("hangs", hang, "docs/x.md#x", 0.05),  # type: ignore[arg-type] # it never returns
        HealthCheck("stumbles", stumble, "docs/x.md#x"),  # type: ignore[arg-type] # nor does it
        HealthCheck("works", be_well, "docs/x.md#x"),
    ]
    hung, stumbled, well = await run_checks(checks, Redactor([]))
    assert (hung.state, hung.docs) == (CheckState.FAIL, TOO_LONG)
    assert (stumbled.state, CANARY in str(stumbled)) == (CheckState.FAIL, False)
    assert well.text == "well"


async def test_the_report_contains_no_secret() -> None:
    """Shows that all text quoted by checks passes the filter."""

    async def quote() -> Any:
        return ok(f"it said {CANARY} of https://someone:{CANARY}@host/")

    (told,) = await run_checks([HealthCheck("quotes", quote, "docs/x.md#x")], Redactor([]))
    assert "someone" not in told.text
    (told,) = await run_checks([HealthCheck("quotes", quote, "docs/x.md#x")], Redactor([CANARY]))
    assert CANARY not in told.text


def test_secrets_are_redacted_everywhere() -> None:
    """Covers known values, passwords in URLs, query strings and unknown tokens."""
    clean = Redactor(["s3cret", "no"]).clean
    assert clean("it said s3cret!") == f"it said {HIDDEN}!"
    assert clean("no news") == "no news"
    assert clean("at postgresql://a:b%40c@host/db") == f"at postgresql://{HIDDEN}@host/db"
    assert clean("https://h/p?sig=abc and so on") == f"https://h/p?{HIDDEN} and so on"
    assert "1234567" not in clean("xoxb-1234567-abc, Bearer 1234567, sk-1234567")


async def test_an_unknown_check_is_refused(doctor: Doctor) -> None:
    """Shows that a mistyped check name does not look healthy."""
    with pytest.raises(ValueError, match="there is no check slck"):
        await doctor.look("slck")
