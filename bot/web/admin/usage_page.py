"""Usage by channel and month: as a page, CSV or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aiohttp import web

from bot.quality.monthly_usage import ChannelUsage, Month, TokenPrices, monthly_usage, usage_csv
from bot.web import security
from bot.web.admin.admin_pages import AdminPages, json_page, wants_json
from storage.chat.traces import QuestionRecords
from storage.clock import utc_now

# Months offered, the current one first.
MONTHS = 12


class UsagePage:
    """Usage page of the console."""

    def __init__(self, pages: AdminPages, records: QuestionRecords, prices: TokenPrices) -> None:
        self._pages = pages
        self._records = records
        self._prices = prices

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the page."""
        return [web.get(r"/console/usage{ending:(?:\.json|\.csv)?}", self.show, name="admin_usage")]

    async def show(self, request: web.Request) -> web.Response:
        """Return the usage of the month in the query, else of the current one.

        Raises:
            web.HTTPBadRequest: not a month.
        """
        channels = await self._pages.channels(request)
        month = Month.parse(request.query["month"]) if "month" in request.query else Month.of(utc_now())
        if month is None:
            raise web.HTTPBadRequest
        usage = await monthly_usage(self._records, channels, month, self._prices)
        if request.match_info["ending"] == ".csv":
            return _csv_page(usage, f"footnote-usage-{month}.csv")
        if wants_json(request):
            return json_page([one.as_json() for one in usage])
        return self._pages.show(
            request,
            "usage.html",
            usage=usage,
            month=str(month),
            months=list(map(str, self._months())),
            kept_since=self._records.kept_since,
            is_whole=self._records.kept_since <= month.begins,
        )

    def _months(self) -> Sequence[Month]:
        """Return the months with records, the current one first."""
        months = [Month.of(utc_now())]
        while len(months) < MONTHS and months[-1].begins > self._records.kept_since:
            months.append(months[-1].previous)
        return months


def _csv_page(usage: Iterable[ChannelUsage], file: str) -> web.Response:
    """Return usage as a file to download."""
    headers = security.NO_STORE | {"Content-Disposition": f'attachment; filename="{file}"'}
    return web.Response(text=usage_csv(usage), content_type="text/csv", headers=headers)
