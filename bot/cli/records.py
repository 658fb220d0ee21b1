"""``footnote records``, ``gaps``, ``quality`` and ``feedback export``: questions, answers and ratings."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from bot.chat.notifications.question_gaps import QuestionGap, find_gaps
from bot.cli.home import channel_option, chosen_channel, open_existing_home
from bot.cli.json_output import dump
from bot.core.models import AnswerState
from bot.core.plaintext import shorten
from bot.quality.monthly_usage import Month, TokenPrices, monthly_usage, usage_csv
from bot.quality.quality_metrics import METRICS, ChannelQuality, channel_quality
from bot.settings import load_settings
from storage.chat.feedback import Feedback, FeedbackVerdict
from storage.chat.traces import StoredRecord
from storage.clock import utc_now
from storage.errors import SettingsError

Json = dict[str, Any]


async def show_records(options: argparse.Namespace) -> int:
    """Print the record of one question, or a line for each of the latest.

    Raises:
        SettingsError: no such record.
    """
    async with open_existing_home(load_settings()) as stores:
        channel = await chosen_channel(stores, options.channel)
        if options.id is None:
            return _list(await stores.records.latest(channel.id), as_json=options.json)
        kept = await stores.records.get(channel.id, options.id)
    if kept is None:
        raise SettingsError(f"no record {options.id} in this channel; see footnote records --channel NAME")
    print(dump(kept.record) if options.json else "\n".join(render_record(kept.record)))
    return 0


def _list(records: list[StoredRecord], *, as_json: bool) -> int:
    for one in records:
        question = one.record["question"]
        line = {"id": one.key, "asked_at": one.asked_at.isoformat(), "state": one.state, "question": question}
        said = f"{one.asked_at:%Y-%m-%d %H:%M}  {one.key}  {one.state:<9}  {shorten(question, 80)}"
        print(dump(line) if as_json else said)
    if not records:
        print("No question records in this channel.", file=sys.stderr)
    return 0


def render_record(record: Json, indent: str = "") -> Iterator[str]:
    """Yield a record as lines for a terminal: each field, and each item of a list, indented by depth."""
    for name, value in record.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                yield f"{indent}{name}:"
                yield from render_record(one, f"{indent}  ")
            else:
                yield f"{indent}{name}: {'-' if one is None else one}"


def _known(count: float | None) -> str:
    return "-" if count is None else f"{count:.4g}" if isinstance(count, float) else str(count)


async def list_gaps(options: argparse.Namespace) -> int:
    """Print questions that the channels' documents did not answer, most frequent first.

    Raises:
        SettingsError: no such channel.
    """
    since = utc_now() - timedelta(days=options.days)
    count = 0
    async with open_existing_home(load_settings()) as stores:
        named = [await chosen_channel(stores, options.channel)] if options.channel else None
        for channel in named or await stores.channels.all():
            for gap in find_gaps(await stores.records.asked_since(channel.id, since)):
                count += 1
                line = gap_line(gap, channel_option(channel.name, channel.tenant))
                print(dump(line) if options.json else _gap_row(line))
    if not count:
        print("No gaps found.", file=sys.stderr)
    return 0


def gap_line(gap: QuestionGap, channel: str) -> Json:
    """Return the line of ``footnote gaps --json``."""
    return {
        "channel": channel,
        "question": gap.question,
        "count": gap.count,
        "states": dict(gap.states),
        "doubts": dict(gap.disputes),
        "unknown": list(gap.unknown),
        "last_asked": gap.last_asked.isoformat(),
        "ids": list(gap.ids),
    }


def _gap_row(line: Json) -> str:
    said = ", ".join(f"{count} {name}" for name, count in (line["states"] | line["doubts"]).items())
    row = f"{line['count']:>4}  {line['channel']}  {shorten(line['question'], 80)}  ({said})"
    unknown = [f"{'':>6}in no document: {', '.join(line['unknown'])}"] if line["unknown"] else []
    return "\n".join([row, *unknown])


async def show_quality(options: argparse.Namespace) -> int:
    """Print each channel's figures, in total and by week, with its baseline; direct chats are left out.

    With ``--month``, print the usage of that month as CSV or JSON lines.

    Raises:
        SettingsError: no such channel, or not a month.
    """
    settings = load_settings()
    async with open_existing_home(settings) as stores:
        named = [await chosen_channel(stores, options.channel)] if options.channel else None
        channels = named or [one for one in await stores.channels.all() if not one.is_direct]
        if options.month is not None:
            if (month := Month.parse(options.month)) is None:
                raise SettingsError(f"--month {options.month}: write it like {Month.of(utc_now())}")
            prices = TokenPrices(settings.bot.model_prompt_price, settings.bot.model_completion_price)
            usage = await monthly_usage(stores.records, channels, month, prices)
            lines = (f"{dump(one.as_json())}\n" for one in usage)
            print("".join(lines) if options.json else usage_csv(usage), end="")
            return 0
        for channel in channels:
            quality = await channel_quality(stores.records, channel.id, options.weeks)
            name = channel_option(channel.name, channel.tenant)
            print(dump(quality.as_json(name)) if options.json else "\n".join(_quality_rows(quality, name)))
            if options.keep_baseline:
                await stores.records.keep_baseline(channel.id, quality.figures)
    return 0


def _quality_rows(quality: ChannelQuality, channel: str) -> Iterator[str]:
    yield f"{channel}: {quality.questions} questions, kept since {quality.kept_since:%Y-%m-%d}"
    weeks = [f"{week.begins:%d %b}" for week in quality.weeks]
    yield _quality_row("", "all", "before", weeks)
    asked = [str(week.questions) if week.is_kept else "not kept" for week in quality.weeks]
    yield _quality_row("questions", str(quality.questions), "", asked)
    for name, figure in METRICS.items():
        known = [_known(week.figures[name]) if week.is_kept else "not kept" for week in quality.weeks]
        before = _known((quality.baseline or {}).get(name))
        yield _quality_row(figure.label, _known(quality.figures[name]), before, known)


def _quality_row(label: str, all_: str, before: str, weeks: Iterable[str]) -> str:
    return f"  {label:<30}{all_:>9}{before:>9}  " + "".join(f"{one:>9}" for one in weeks)


async def export_feedback(options: argparse.Namespace) -> int:
    """Print an evaluation case for each answer whose feedback says what is right; count the others.

    Raises:
        SettingsError: no such channel.
    """
    async with open_existing_home(load_settings()) as stores:
        channel = await chosen_channel(stores, options.channel) if options.channel else None
        names = {one.id: one.name for one in await stores.channels.all()}
        said = await stores.feedback.all(channel.id if channel else None)
    unlabelled = Counter[str]()
    for one in said:
        if (case := evaluation_case(one, names.get(one.channel_id, ""))) is None:
            unlabelled[one.verdict.value] += 1
        else:
            print(dump(case))
    for verdict, count in sorted(unlabelled.items()):
        print(f"{count} said {verdict!r} and named no page: not exported", file=sys.stderr)
    return 0


def evaluation_case(said: Feedback, collection: str) -> Json | None:
    """Return a question with the pages that answer it, in the format of ``tools/evaluation/questions``.

    None if the feedback does not say what would have been right.
    """
    record = said.record
    cited = [one for one in record["citations"] if one["page"]]
    case: Json = {
        "id": f"feedback-{said.id}",
        "half": "tuning",
        "collection": collection,
        "kind": "single",
        "question": record["searched"],
        "verdict": said.verdict.value,
    }
    if said.page:
        return case | {"documents": [said.file], "pages": [[[said.file, said.page]]]}
    if said.verdict is not FeedbackVerdict.GOOD:
        return None
    if record["state"] == AnswerState.NOT_FOUND:
        return case | {"kind": "absent_here"}
    if not cited:
        return None
    return case | {
        "documents": sorted({one["file"] for one in cited}),
        "pages": [[[one["file"], one["page"]] for one in cited]],
        "evidence": [[one["file"], one["page"], one["quote"]] for one in cited],
    }
