"""Counters and histograms of one process: questions, models, requests. Counting never blocks.

Labels come from fixed sets: states, platforms, route names. None holds text, a channel or a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, disable_created_metrics
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from bot.answers.trace import QuestionRecord, Trace

ANSWER_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
# Seconds; chat platforms time out after 3 to 15.
REQUEST_BUCKETS = (0.01, 0.05, 0.25, 1.0, 2.5, 10.0)
# Purposes of model calls; any other is ``other``, except ``describe`` for figures.
PURPOSES = ("answer", "reword", "rewrite", "translate", "rerank")
# Stages of a question, as named in its trace.
STAGES = ("understand", "retrieve", "judge", "write", "cite")

# Statuses of an invalid signature or token.
UNSIGNED = (401, 403)


class ServiceMetrics:
    """Metrics of this process since it started."""

    def __init__(self, signed_routes: Mapping[str, str] | None = None) -> None:
        """Create the metrics; ``signed_routes``: HTTP route -> channel_type of its signed requests."""
        self._signed_routes = signed_routes or {}
        disable_created_metrics()  # a second, unused series per metric
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        Info("footnote", "Version.", registry=registry).info({"version": version("footnote-bot")})
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        self._questions = counter("footnote_questions", "Questions answered.", ("channel_type", "outcome"))
        self._seconds = histogram(
            "footnote_question_seconds",
            "Duration of the stages of an answer.",
            ("stage",),
            buckets=ANSWER_BUCKETS,
        )
        self._dropped = counter("footnote_dropped_sentences", "Sentences of models dropped as unverified.")
        self._calls = counter(
            "footnote_model_calls", "Calls to chat and vision models.", ("purpose", "outcome")
        )
        self._tokens = counter(
            "footnote_model_tokens",
            "Tokens as reported by endpoints, and those of embedded questions.",
            ("kind",),
        )
        self._requests = histogram(
            "footnote_http_request_seconds",
            "Request duration by route and status class.",
            ("route", "status"),
            buckets=REQUEST_BUCKETS,
        )
        self._opened = counter("footnote_opened_sources", "Sources of answers that people opened.")
        self._refused = counter(
            "footnote_refused_signatures",
            "Requests with an invalid signature or token.",
            ("channel_type",),
        )
        for channel_type in (*self._signed_routes.values(), "link"):
            self._refused.labels(channel_type)

    def count_question(self, record: QuestionRecord) -> None:
        """Count an answered question, its stages and its model calls."""
        answer, spent = record.answer, record.trace.seconds_by_stage()
        self._questions.labels(record.question.conversation_channel.platform, answer.state.value).inc()
        self._seconds.labels("total").observe(answer.milliseconds.total / 1000)
        for name in STAGES:
            if name in spent:
                self._seconds.labels(name).observe(spent[name])
        self._count_models(record.trace)

    def count_request(self, route: str, status: int, seconds: float, *, is_forged: bool = False) -> None:
        """Count an answered request by route name; ``is_forged``: its link was not signed by us."""
        self._requests.labels(route, f"{status // 100}xx").observe(seconds)
        channel_type = "link" if is_forged else self._signed_routes.get(route)
        if channel_type and (is_forged or status in UNSIGNED):
            self._refused.labels(channel_type).inc()

    def count_description(self, is_ok: bool) -> None:
        """Count a vision model's call for a figure; ``is_ok``: it answered."""
        self._calls.labels("describe", "ok" if is_ok else "failed").inc()

    def count_opening(self) -> None:
        """Count an opened source of an answer."""
        self._opened.inc()

    def _count_models(self, trace: Trace) -> None:
        for attempt in trace.attempts:
            if attempt.draft is None or not attempt.draft.verbatim:
                self._calls.labels("answer", "failed" if attempt.error else "ok").inc()
            if attempt.judged and attempt.draft and not attempt.draft.verbatim:
                self._dropped.inc(sum(one.fault is not None for one in attempt.judged.judged))
        for call in trace.calls:
            purpose = call.purpose if call.purpose in PURPOSES else "other"
            self._calls.labels(purpose, "failed" if call.error else "ok").inc()
        for kind, count in trace.tokens_as_json().items():
            if count:
                self._tokens.labels(kind).inc(count)
