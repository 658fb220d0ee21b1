"""Quality figures of channels, as tables and server-rendered charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aiohttp import web

from bot.quality.quality_metrics import (
    METRICS,
    QUESTIONS,
    ChannelQuality,
    QualityMetric,
    channel_quality,
    is_missed,
)
from bot.quality.targets import CHANNEL_TARGETS, Limit
from bot.web.admin.admin_pages import JSON_ENDING, AdminPages, json_page, wants_json
from storage.chat.traces import QuestionRecords

# Chart size in SVG units; the margin applies to every side.
WIDTH, HEIGHT, MARGIN = 160, 40, 4

SIGNS = {">=": "≥", "<=": "≤"}


@dataclass(frozen=True, slots=True)
class Curve:
    """Weekly values of a figure: line segments, interrupted at weeks without data, and points."""

    lines: Sequence[Sequence[tuple[float, float]]]
    points: Sequence[tuple[float, float]]
    # y of the target line; None: no target.
    target: float | None


def curve(values: Sequence[float | None], target: float | None) -> Curve:
    """Scale weekly values between 0 and their maximum; a value of None is a week without data."""
    high = max([one for one in values if one is not None] + ([target] if target else []), default=0.0) or 1.0
    step = (WIDTH - 2 * MARGIN) / max(len(values) - 1, 1)
    lines: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            lines.append([])
        else:
            lines[-1].append((round(MARGIN + place * step, 1), _height(value, high)))
    return Curve(
        [line for line in lines if line],
        [point for line in lines for point in line],
        None if target is None else _height(target, high),
    )


def _height(value: float, high: float) -> float:
    return round(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * value / high, 1)


def shown(value: float | None, unit: str) -> str:
    """Format a value for display."""
    if value is None:
        return "–"
    if unit == "share":
        return f"{100 * value:.0f} %"
    if unit == "s":
        return f"{value:.1f} s"
    return f"{value:,.0f}"


class QualityPage:
    """Quality page: an overview, and a page per channel."""

    def __init__(self, pages: AdminPages, records: QuestionRecords) -> None:
        self._pages = pages
        self._records = records

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the page."""
        return [
            web.get("/console/quality" + JSON_ENDING, self.overview, name="admin_quality"),
            web.get(
                r"/console/quality/{channel:\d{1,9}}" + JSON_ENDING, self.show, name="admin_quality_channel"
            ),
        ]

    async def overview(self, request: web.Request) -> web.Response:
        """Return the figures of all channels."""
        channels = await self._pages.channels(request)
        if len(channels) == 1 and not wants_json(request):
            raise web.HTTPFound(f"quality/{channels[0].id}")
        found = [(one, await channel_quality(self._records, one.id)) for one in channels]
        if wants_json(request):
            return json_page([quality.as_json(channel.name) for channel, quality in found])
        rows = [(channel, quality.questions, list(_cells(quality))) for channel, quality in found]
        return self._pages.show(
            request,
            "quality.html",
            rows=rows,
            figures=METRICS,
            questions=QUESTIONS,
            channel=None,
        )

    async def show(self, request: web.Request) -> web.Response:
        """Return one channel's figures by week."""
        channel, channels = await self._pages.channel(request)
        quality = await channel_quality(self._records, channel.id)
        if wants_json(request):
            return json_page(quality.as_json(channel.name))
        return self._pages.show(
            request,
            "quality.html",
            channel=channel,
            channels=channels,
            quality=quality,
            rows=list(_rows(quality)),
            size=(WIDTH, HEIGHT),
        )


def _cells(quality: ChannelQuality) -> Iterator[tuple[str, bool]]:
    """Yield (formatted value, misses its target) of each figure over all weeks."""
    for name, figure in METRICS.items():
        value = quality.figures[name]
        yield shown(value, figure.unit), is_missed(name, value)


def _rows(quality: ChannelQuality) -> Iterator[dict[str, object]]:
    """Yield a row per figure: label, meaning, chart, weekly values, total, baseline and target."""
    asked = [week.questions if week.is_kept else None for week in quality.weeks]
    yield _row(quality, QUESTIONS, asked, quality.questions)
    baseline = quality.baseline or {}
    for name, figure in METRICS.items():
        values = [week.figures[name] if week.is_kept else None for week in quality.weeks]
        value, before, target = quality.figures[name], baseline.get(name), CHANNEL_TARGETS.get(name)
        yield _row(quality, figure, values, value, target) | {
            "is_missed": is_missed(name, value),
            "before": "" if before is None else shown(before, figure.unit),
        }


def _row(
    quality: ChannelQuality,
    figure: QualityMetric,
    values: Sequence[float | None],
    value: float | None,
    target: Limit | None = None,
) -> dict[str, object]:
    weeks = [shown(one, figure.unit) for one in values]
    return {
        "label": figure.label,
        "meaning": figure.meaning,
        "curve": curve(values, target.value if target else None),
        "said": ", ".join(f"{week.begins}: {text}" for week, text in zip(quality.weeks, weeks, strict=True)),
        "weeks": [(text, week.is_kept) for week, text in zip(quality.weeks, weeks, strict=True)],
        "all": shown(value, figure.unit),
        "is_missed": False,
        "before": "",
        "target": f"{SIGNS[target.sign]} {shown(target.value, figure.unit)}" if target else "",
    }
