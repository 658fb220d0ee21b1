"""Templates and static files: every value is escaped, every static URL contains a content hash."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
from collections.abc import Mapping
from importlib.resources import files

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from bot.web import security
from storage.readers.registry import READERS


class Assets:
    """Static files, held in memory and looked up by exact name."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, str]] = {}
        self._names: dict[str, str] = {}
        for entry in (files("bot.web") / "static").iterdir():
            name, data = entry.name, entry.read_bytes()
            stem, _, suffix = name.rpartition(".")
            hashed = f"{stem}.{hashlib.sha256(data).hexdigest()[:12]}.{suffix}"
            self._names[name] = hashed
            self._files[hashed] = data, mimetypes.guess_type(name)[0] or "application/octet-stream"

    def path(self, name: str) -> str:
        """Return a file's path below the application's root."""
        return f"static/{self._names[name]}"

    def read(self, name: str) -> bytes:
        """Return a file by its plain name."""
        return self._files[self._names[name]][0]

    async def serve(self, request: web.Request) -> web.Response:
        """Serve a file under its hashed name; its content never changes."""
        found = self._files.get(request.match_info["file"])
        if found is None:
            raise web.HTTPNotFound
        return web.Response(
            body=found[0], content_type=found[1], charset="utf-8", headers=security.STATIC_HEADERS
        )

    async def serve_favicon(self, request: web.Request) -> web.Response:
        """Serve the icon at the path that browsers request by default."""
        return web.Response(body=self.read("favicon.svg"), content_type="image/svg+xml")


# Template values of a page without links to a chat.
NOWHERE = {"answer_url": None, "chat_url": None}


class Templates:
    """Jinja templates and prerendered error pages."""

    # Statuses with an error page.
    refusals = frozenset({400, 403, 404, 405, 410, 413, 429, 500, 503})

    def __init__(self, assets: Assets, source_url: str | None, link_days: float) -> None:
        self._templates = Environment(
            loader=PackageLoader("bot.web", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {"static": assets.path, "source_url": source_url, "days": _days}
        self._templates.globals["readers"] = READERS
        style = assets.read("plain.css").decode()
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        self._style, self._plain_headers = style, security.inline_style_headers(digest)
        self._refusals = {
            status: self._render_plain("refusal.html", status=status, link_days=link_days, **NOWHERE)
            for status in (*self.refusals, web.HTTPUnauthorized.status_code)
        }
        self._link_days = link_days

    def page(self, template: str, page_headers: dict[str, str], **values: object) -> web.Response:
        """Return a page; the value ``root`` is the relative path from its URL to the application's root."""
        text = self._templates.get_template(template).render(values)
        return web.Response(text=text, content_type="text/html", headers=page_headers)

    def plain(self, template: str, **values: object) -> web.Response:
        """Return a page that loads no other resource."""
        return self._plain(200, self._render_plain(template, **values))

    def refusal(self, status: int) -> web.Response:
        """Return an error page that reveals nothing: the same bytes for every request."""
        return self._plain(status, self._refusals[status])

    def locked(self) -> web.Response:
        """Return the page that explains where the console's secret is."""
        refused = self.refusal(web.HTTPUnauthorized.status_code)
        refused.headers["WWW-Authenticate"] = "Bearer"
        return refused

    def sign_in(self, status: int, **values: object) -> web.Response:
        """Return a page of the console's sign-in."""
        return self._plain(status, self._render_plain("sign_in.html", **values))

    def ended(self, values: Mapping[str, str | None]) -> web.Response:
        """Return the page of an ended link; ``values``: as in ``middleware.RenewalUrls``."""
        if not any(values.get(name) for name in NOWHERE):
            return self.refusal(410)
        shown = self._render_plain("refusal.html", status=410, link_days=self._link_days, **values)
        return self._plain(410, shown)

    def _plain(self, status: int, body: bytes) -> web.Response:
        return web.Response(
            status=status, body=body, content_type="text/html", charset="utf-8", headers=self._plain_headers
        )

    def _render_plain(self, template: str, **values: object) -> bytes:
        """Render with the style sheet inlined, so that the page works below any path."""
        return self._templates.get_template(template).render(style=self._style, **values).encode()


def _days(number: float) -> str:
    return f"{number:g} {'day' if number == 1 else 'days'}"
