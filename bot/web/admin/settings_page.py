"""Settings in force, with their source and what is risky about them; secrets are never shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from bot.sign_in_settings import Role
from bot.web.admin.admin_pages import JSON_ENDING, AdminPages, json_page, wants_json
from bot.web.security import require_visitor


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """A setting of the running service."""

    variable: str
    # As written in ``.env``; "set" for a secret, '' if unset.
    value: str
    # default, environment, .env, footnote.toml, command line, or derived (from another setting).
    source: str
    description: str
    # Why its value is risky; '' if it is not.
    risk: str = ""


class SettingsPage:
    """Settings page, for admins."""

    def __init__(self, pages: AdminPages, settings: Sequence[EffectiveSetting]) -> None:
        self._pages = pages
        self._settings = settings

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the page."""
        return [web.get("/console/settings" + JSON_ENDING, self.show, name="admin_settings")]

    async def show(self, request: web.Request) -> web.Response:
        """Return the settings: risky ones, those that were changed, and the defaults."""
        require_visitor(request, Role.ADMIN)
        if wants_json(request):
            fields = ("variable", "value", "source", "risk")
            return json_page([{name: getattr(one, name) for name in fields} for one in self._settings])
        return self._pages.show(
            request,
            "settings.html",
            risky=[one for one in self._settings if one.risk],
            changed=[one for one in self._settings if one.source != "default"],
            defaults=[one for one in self._settings if one.source == "default"],
        )
