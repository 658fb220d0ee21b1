"""OpenTelemetry spans of questions, their stages, and ingestion steps.

Spans are made after the work has ended, so no other module knows about them. Imported only if the environment
names an endpoint (``OTEL_EXPORTER_OTLP_ENDPOINT``); the standard variables set endpoint, headers and service
name. Attributes are ids, counts and names from fixed sets, never text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from uuid import UUID

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Span, StatusCode, set_span_in_context

from bot.answers.trace import QuestionRecord
from bot.core.models import AnswerState
from storage.queues.publication_queue import PublicationClaim
from storage.queues.reading_queue import ReadingClaim

Attributes = Mapping[str, str | int]


class ReadingTraceIds(RandomIdGenerator):
    """Generator of trace ids: a reading's id for all work on it, in any process; random otherwise."""

    reading: UUID | None = None

    def generate_trace_id(self) -> int:
        """Return the id of the next trace."""
        return self.reading.int if self.reading else super().generate_trace_id()


class SpanWriter:
    """Exporter of spans in the background; if the endpoint is down, spans are lost but nothing is delayed."""

    def __init__(self) -> None:
        ours = Resource.create({"service.name": "footnote", "service.version": version("footnote-bot")})
        self._ids = ReadingTraceIds()
        self._provider = TracerProvider(
            resource=ours.merge(OTELResourceDetector().detect()),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("footnote")

    def write_question(self, record: QuestionRecord) -> None:
        """Export the span of an answered question, with a child span per stage."""
        question, answer, trace = record.question, record.answer, record.trace
        counts = {f"tokens.{kind}": count for kind, count in trace.tokens_as_json().items() if count}
        span = self._start(
            "question",
            trace.began,
            {
                "question": question.id,
                "channel": question.channel.id,
                "channel_type": question.conversation_channel.platform,
                "outcome": answer.state.value,
                "candidates": len(answer.passages),
                "citations": len(answer.citations),
                "figures": len(answer.figures),
                "drafts": len(trace.attempts),
                **counts,
            },
        )
        if answer.state is AnswerState.FAILED:
            span.set_status(StatusCode.ERROR)
        below = set_span_in_context(span)
        for stage in trace.stages:
            child = self._start(stage.name, stage.began, {}, below)
            child.end(_nanoseconds(stage.began + stage.seconds))
        span.end(_nanoseconds(trace.began + answer.milliseconds.total / 1000))

    def write_step(self, name: str, claim: object, began: float, error: BaseException | None) -> None:
        """Export the span of a finished ingestion step; see ``OnStep`` in ``ingestion/jobs/worker.py``."""
        attributes: dict[str, str | int] = {}
        if isinstance(claim, ReadingClaim):
            self._ids.reading = claim.id
            attributes = {"attempt": claim.attempt}
        elif isinstance(claim, PublicationClaim):
            self._ids.reading = claim.reading_id
            attributes = {
                "document": str(claim.document_id),
                "version": claim.version,
                "publication": str(claim.id),
                "pages": claim.pages,
                "chunks": claim.chunks,
                "figures": claim.figures,
            }
        span = self._start(name, began, attributes)
        self._ids.reading = None
        if error is not None:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR)
        span.end()

    def _start(self, name: str, began: float, attributes: Attributes, context: Context | None = None) -> Span:
        named = {f"footnote.{key}": value for key, value in attributes.items()}
        return self._tracer.start_span(
            name, context or Context(), attributes=named, start_time=_nanoseconds(began)
        )

    async def aclose(self) -> None:
        """Flush pending spans, waiting at most ``OTEL_EXPORTER_OTLP_TIMEOUT`` for the endpoint."""
        await asyncio.to_thread(self._provider.shutdown)


@asynccontextmanager
async def open_spans() -> AsyncIterator[SpanWriter]:
    """Yield a span writer, flushed when the context ends."""
    writer = SpanWriter()
    try:
        yield writer
    finally:
        await writer.aclose()


def _nanoseconds(moment: float) -> int:
    """Convert a moment of ``time.perf_counter`` to nanoseconds since the Unix epoch."""
    return time.time_ns() - time.perf_counter_ns() + int(moment * 1e9)
