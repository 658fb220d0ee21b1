"""Quality figures of channels, as tables and server-rendered charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aiohttp import web

from bot.quality.quality_metrics import METRICS, ChannelQuality, channel_quality, is_missed
from bot.quality.targets import FIGURE_TARGETS
from bot.web.admin.admin_pages import JSON_ENDING, AdminPages, json_page, wants_json
from bot.web.security import require_visitor
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
    if unit in {"ms", "tokens"}:
        return f"{value:,.0f}" + (" ms" if unit == "ms" else "")
    return f"{value:.2f}".rstrip("0").rstrip(".")


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
        require_visitor(request)
        channels = await self._pages.channels()
        found = [(one, await channel_quality(self._records, one.id)) for one in channels]
        if wants_json(request):
            return json_page([quality.as_json(channel.name) for channel, quality in found])
        rows = [
            (channel, quality.questions, list(_cells(quality)), quality.baseline is not None)
            for channel, quality in found
        ]
        return self._pages.show(request, "quality.html", rows=rows, figures=METRICS, channel=None)

    async def show(self, request: web.Request) -> web.Response:
        """Return one channel's figures by week."""
        channel, _ = await self._pages.channel(request)
        quality = await channel_quality(self._records, channel.id)
        if wants_json(request):
            return json_page(quality.as_json(channel.name))
        return self._pages.show(
            request,
            "quality.html",
            channel=channel,
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
    """Yield a row per figure: label, chart, weekly values, total, baseline and target."""
    baseline = quality.baseline or {}
    for name, figure in METRICS.items():
        values = [week.figures[name] if week.is_kept else None for week in quality.weeks]
        target = FIGURE_TARGETS.get(name)
        yield {
            "label": figure.label,
            "curve": curve(values, target.value if target else None),
            "said": ", ".join(
                f"{week.begins}: {shown(value, figure.unit)}"
                for week, value in zip(quality.weeks, values, strict=True)
            ),
            "weeks": [
                (shown(value, figure.unit), week.is_kept, is_missed(name, value))
                for week, value in zip(quality.weeks, values, strict=True)
            ],
            "all": shown(quality.figures[name], figure.unit),
            "is_missed": is_missed(name, quality.figures[name]),
            "baseline": shown(baseline.get(name), figure.unit),
            "target": f"{SIGNS[target.sign]} {shown(target.value, figure.unit)}" if target else "",
        }
