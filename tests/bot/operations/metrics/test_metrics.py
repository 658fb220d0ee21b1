"""Metrics: counters of questions, models and requests, gauges from SQL, and access control."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from engines.support.ports import free_port
from harness.empty_homes import make_sqlite
from prometheus_client.parser import text_string_to_metric_families
from sources import ROOT

from bot.answers.generation.answer_writer import Attempt
from bot.answers.trace import QuestionRecord, Trace
from bot.core.models import (
    Answer,
    AnswerState,
    AuxiliaryCall,
    Draft,
    Milliseconds,
    Question,
    StageTime,
    Usage,
)
from bot.operations.metrics.service_metrics import STAGES, ServiceMetrics
from bot.operations.metrics.state_collector import CountSources, StateCollector
from bot.platforms.registry import SIGNED_ROUTES
from bot.web.metrics_page import metrics_routes, serving_metrics
from storage.clock import utc_now
from storage.errors import SettingsError
from storage.models import Channel, Platform, TenantName
from storage.sql.database import Database
from storage.sql.tables import BlobRow, ChannelRow, InboxRow, ReadingRow, WebPageRow

SECRET = "how do I reset the vault's password?"


def values(page: bytes | str) -> dict[str, float]:
    """Return ``name{label,label}`` -> value, parsed like Prometheus; labels sorted by name."""
    text = page.decode() if isinstance(page, bytes) else page
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    return {f"{one.name}{{{','.join(one.labels.values())}}}": one.value for one in samples}


def record(
    state: AnswerState, trace: Trace | None = None, milliseconds: Milliseconds | None = None
) -> QuestionRecord:
    """Return the record of an answered question in a Slack channel."""
    channel = Channel(1, TenantName("sl_T1_C1"), Platform("slack"), "secret-plans", 1)
    question = Question("q1", SECRET, channel, datetime.now(UTC))
    answer = Answer(state, "text", milliseconds=milliseconds or Milliseconds(40, 700, 750))
    return QuestionRecord(question, answer, trace or Trace(8))


class Counted:
    """A metrics collector on its own database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.metrics = ServiceMetrics(SIGNED_ROUTES)
        self.broken = ["slack"]
        sources = CountSources(
            lambda: {"page images": (3, 1)},
            lambda: {"read": 2, "failed": 1},
            self._not_ready,
            ["sql", "slack"],
        )
        self.state = StateCollector(database, sources, self.metrics.registry)

    async def _not_ready(self) -> list[str]:
        return self.broken

    async def read(self) -> dict[str, float]:
        """Return the values on the page."""
        return values(await self.state.render())


@pytest.fixture
async def counted(tmp_path: Path) -> AsyncIterator[Counted]:
    """Yield the counters of an idle service."""
    async with aclosing(await Database.open(make_sqlite(tmp_path / "home"))) as database:
        yield Counted(database)


async def test_a_question_is_counted_with_its_stages_and_models(counted: Counted) -> None:
    """Shows outcome, channel type, seconds per stage, and model calls and tokens."""
    trace = Trace(8, attempts=[Attempt(Draft((), usage=Usage(70, 9)), None)])
    for name in (*STAGES, "retrieve", "new"):
        trace.stages.append(StageTime(name, 0.0, 0.5))
    trace.calls += [
        AuxiliaryCall("reword", usage=Usage(5, 1)),
        AuxiliaryCall("new", error="ModelUnavailable"),
    ]
    counted.metrics.count_question(record(AnswerState.GROUNDED, trace))
    counted.metrics.count_question(record(AnswerState.CHAT, milliseconds=Milliseconds(total=3)))
    page = await counted.read()
    assert page["footnote_questions_total{slack,grounded}"] == 1
    assert page["footnote_questions_total{slack,chat}"] == 1
    seconds = {name: page[f"footnote_question_seconds_sum{{{name}}}"] for name in STAGES}
    assert seconds == {"understand": 0.5, "retrieve": 1.0, "judge": 0.5, "write": 0.5, "cite": 0.5}
    assert {page[f"footnote_question_seconds_count{{{name}}}"] for name in STAGES} == {1}
    assert page["footnote_question_seconds_count{total}"] == 2
    assert "footnote_question_seconds_sum{new}" not in page
    assert page["footnote_model_calls_total{ok,answer}"] == 1
    assert page["footnote_model_calls_total{failed,other}"] == 1
    assert (page["footnote_model_tokens_total{prompt}"], page["footnote_model_tokens_total{completion}"]) == (
        75,
        10,
    )


async def test_no_user_text_or_name_is_on_the_page(counted: Counted) -> None:
    """Shows that labels have fixed values: no text, channel or person."""
    counted.metrics.count_question(record(AnswerState.PARTIAL))
    counted.metrics.count_request("viewer", 404, 0.01)
    page = (await counted.state.render()).decode()
    assert not [word for word in (SECRET, "secret-plans", "sl_T1_C1", "q1") if word in page]


async def test_invalid_signatures_are_counted_by_endpoint(counted: Counted) -> None:
    """Shows which statuses on which routes count as an invalid signature."""
    for route, status in (
        ("slack_events", 401), ("slack_events", 200), ("teams_messages", 403), ("console", 404),
        ("viewer", 404), ("viewer", 410),
    ):  # fmt: skip
        counted.metrics.count_request(route, status, 0.01)
    counted.metrics.count_request("viewer_go", 404, 0.01, is_forged=True)
    page = await counted.read()
    refused = {
        door: page[f"footnote_refused_signatures_total{{{door}}}"] for door in ("slack", "teams", "link")
    }
    assert refused == {"slack": 1, "teams": 1, "link": 1}
    assert page["footnote_http_request_seconds_count{viewer,4xx}"] == 2


def test_every_timed_stage_has_a_metric() -> None:
    """Shows that every stage of answering has a label."""
    source = (ROOT / "bot" / "answers" / "pipeline.py").read_text()
    assert tuple(re.findall(r"\btiming\(\"(\w+)\"\)", source)) == STAGES


async def test_descriptions_of_figures_are_calls_to_a_model(counted: Counted) -> None:
    """Shows both outcomes."""
    for is_said in (True, True, False):
        counted.metrics.count_description(is_said)
    page = await counted.read()
    assert page["footnote_model_calls_total{ok,describe}"] == 2
    assert page["footnote_model_calls_total{failed,describe}"] == 1


async def test_an_empty_state_is_reported_as_zero(counted: Counted) -> None:
    """Shows that an alert sees the increase from zero."""
    page = await counted.read()
    for table, labels in (
        ("documents", ("present", "quarantined", "deleted")),
        ("readings", ("quick,waiting", "quick,failed", "full,done", "full,failed")),
        ("publications", ("quick,pending", "quick,live", "full,retired", "full,removed")),
        ("web_pages", ("read", "failing", "waiting")),
    ):
        assert [page[f"footnote_{table}{{{one}}}"] for one in labels] == [0] * len(labels)


async def test_openings_are_counted(counted: Counted) -> None:
    """Shows that each adds one, without naming the source."""
    counted.metrics.count_opening()
    counted.metrics.count_opening()
    assert (await counted.read())["footnote_opened_sources_total{}"] == 2


async def test_queue_sizes_are_read_from_sql_on_scrape(counted: Counted) -> None:
    """Shows queues with ages and leases, and states and stages; the result is cached for some seconds."""
    now = utc_now()
    async with counted.database.transaction() as session:
        channel = ChannelRow(tenant="lo_" + 52 * "c", platform="local", name="it")
        session.add_all([channel, BlobRow(sha256=64 * "a", size=1)])
        await session.flush()
        asked = {"platform": "slack", "channel_id": channel.id, "thread": "", "text": SECRET, "address": {}}
        leased = {"lease_owner": "x", "lease_until": now + timedelta(seconds=10)}
        session.add(InboxRow(event_key="1", message_key="1", created_at=now - timedelta(seconds=90), **asked))
        session.add(InboxRow(event_key="2", message_key="2", **asked, **leased))
        session.add(InboxRow(event_key="3", message_key="3", state="done", **asked))
        for number, (rung, state) in enumerate([("quick", "waiting"), ("full", "done"), ("full", "failed")]):
            session.add(ReadingRow(sha256=64 * "a", generation=str(number), rung=rung, state=state))
        session.add(WebPageRow(url="https://a/", error="gone"))
    page = await counted.read()
    assert page["footnote_queue_items{questions}"] == 2
    assert 90 <= page["footnote_queue_oldest_seconds{questions}"] < 120
    assert page["footnote_leases{questions}"] == 1
    assert page["footnote_queue_items{quick readings}"] == 1
    assert page["footnote_readings{full,failed}"] == 1
    assert page["footnote_web_pages{failing}"] == 1
    assert (page["footnote_ready{sql}"], page["footnote_ready{slack}"]) == (1, 0)
    assert page["footnote_cache_total{page images,hit}"] == 3
    assert page["footnote_web_fetches_total{failed}"] == 1
    async with counted.database.transaction() as session:
        session.add(WebPageRow(url="https://b/", error="gone"))
    assert (await counted.read())["footnote_web_pages{failing}"] == 1


async def test_a_database_outage_is_a_metric(counted: Counted) -> None:
    """Shows that a scrape still succeeds and reports the outage."""
    await counted.database.aclose()
    (Path(str(counted.database._dialect._file))).write_bytes(b"no database")  # type: ignore[attr-defined]
    page = await counted.read()
    assert page["footnote_database_up{}"] == 0
    assert "footnote_queue_items{questions}" not in page


async def test_on_the_console_port_only_localhost_reads_metrics(counted: Counted) -> None:
    """Shows that requests through a proxy or under another host name are refused."""
    app = web.Application()
    app.add_routes(metrics_routes(counted.state.render))
    async with TestClient(TestServer(app)) as client:
        local = await client.get("/metrics")
        assert (local.status, "footnote_info" in await local.text()) == (200, True)
        assert local.headers["Content-Type"].startswith("text/plain; version=")
        for headers in ({"X-Forwarded-For": "203.0.113.9"}, {"Host": "bot.example.com"}):
            assert (await client.get("/metrics", headers=headers)).status == 403


async def test_a_separate_address_serves_only_metrics(counted: Counted) -> None:
    """Shows the page that a remote Prometheus gets."""
    address = f"127.0.0.1:{free_port()}"
    async with serving_metrics(counted.state.render, address), aiohttp.ClientSession() as session:
        async with session.get(f"http://{address}/metrics", headers={"Host": "bot:9464"}) as response:
            assert "footnote_info" in await response.text()
        async with session.get(f"http://{address}/") as response:
            assert response.status == 404
        with pytest.raises(SettingsError, match="FOOTNOTE_METRICS_LISTEN"):
            async with serving_metrics(counted.state.render, address):
                pass
