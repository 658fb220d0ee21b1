"""OpenTelemetry traces as a collector gets them: a real exporter and receiver, and no user text."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from fakes.otlp_receiver import attributes, otlp_receiver
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from sqlalchemy import make_url

from bot.answers.trace import QuestionRecord, Trace
from bot.core.models import Answer, AnswerState, Milliseconds, Question
from bot.operations.metrics.otel_spans import SpanWriter, open_spans
from storage.models import Channel, Platform, Rung, TenantName
from storage.queues.publication_queue import PublicationClaim
from storage.queues.reading_queue import ReadingClaim
from storage.sql.database import Database
from storage.sql.leased_queue import Lease, LeasedQueue
from storage.sql.sqlite import SqliteDialect
from storage.sql.tables import ReadingRow

SECRET = "the vault's password"
READING = UUID("0123456789abcdef0123456789abcdef")
STAGES = ["understand", "retrieve", "judge", "write", "cite"]


def write_everything(spans: SpanWriter, tmp_path: Path) -> None:
    """Write spans of a failed question, of a reading that failed once, and of its publication."""
    channel = Channel(7, TenantName("sl_T1_C1"), Platform("slack"), SECRET, 1)
    database = Database(SqliteDialect(make_url(f"sqlite:///{tmp_path}/footnote.db"), 1))
    trace = Trace(8)
    for stage in STAGES:
        with trace.timing(stage):
            pass
    question = Question("q1", SECRET, channel, datetime.now(UTC))
    answer = Answer(AnswerState.FAILED, SECRET, milliseconds=Milliseconds(total=1500))
    spans.write_question(QuestionRecord(question, answer, trace))
    lease = Lease(LeasedQueue(database, ReadingRow), READING, "waiting", 1)
    read = ReadingClaim(lease, READING, "0" * 64, Rung.QUICK, 1, None)
    spans.write_step("read quick", read, trace.began, ValueError(SECRET))
    publication = PublicationClaim(
        lease=lease,
        id=UUID(int=1),
        tenant=channel.tenant,
        document_id=UUID(int=2),
        folder_id=1,
        version=3,
        sha256="0" * 64,
        is_locked=False,
        reading_id=READING,
        rung=Rung.QUICK,
        title=SECRET,
        file=SECRET,
        pages=4,
        chunks=5,
        figures=6,
        space=None,
    )
    spans.write_step("publish quick", publication, trace.began, None)


async def test_a_collector_gets_spans_of_questions_and_readings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Shows the decoded protobuf: times, parents, ids used in logs, and no user text."""
    with otlp_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "footnote-staging")
        async with open_spans() as spans:
            write_everything(spans, tmp_path)
    assert receiver.paths == {"/v1/traces"}
    assert receiver.services == {"footnote-staging"}
    found = {span.name: span for span in receiver.spans}
    root = found["question"]
    assert [span.name for span in receiver.spans if span.parent_span_id == root.span_id] == STAGES
    assert {found[stage].trace_id for stage in STAGES} == {root.trace_id}
    assert root.end_time_unix_nano - root.start_time_unix_nano == pytest.approx(1.5e9, rel=0.01)
    assert (
        attributes(root).items() >= {"footnote.outcome": "failed", "footnote.channel_type": "slack"}.items()
    )
    assert root.status.code == Status.STATUS_CODE_ERROR
    read, published = found["read quick"], found["publish quick"]
    assert read.trace_id == published.trace_id == READING.bytes
    assert attributes(read) == {"footnote.attempt": 1, "error.type": "ValueError"}
    assert attributes(published)["footnote.document"] == str(UUID(int=2))
    assert SECRET.encode() not in b"".join(receiver.bodies)


async def test_spans_can_be_disabled_and_a_collector_may_be_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Shows that OTEL_SDK_DISABLED is respected, and that an unreachable endpoint causes no failure."""
    with otlp_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
        async with open_spans() as spans:
            write_everything(spans, tmp_path)
    assert receiver.bodies == []
    monkeypatch.delenv("OTEL_SDK_DISABLED")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    async with open_spans() as spans:  # no collector listens there any more
        write_everything(spans, tmp_path)


def test_without_an_endpoint_the_sdk_is_not_loaded() -> None:
    """Shows that without tracing its package is not needed: the modules of `serve` do not import it."""
    script = "import sys, bot.cli.serve; print([one for one in sys.modules if 'opentelemetry.sdk' in one])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
