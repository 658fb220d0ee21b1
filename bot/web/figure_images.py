"""Figures as pictures: cropped from their page in the sandboxed child, served behind signed links.

Such a link needs no sign-in because chat platforms fetch pictures themselves. It shows one figure and nothing
else of its document, and ends when a link to its page would: every request verifies it again.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from aiohttp import web

from bot.answers.citations.signed_links import Links, Purpose
from bot.core.errors import LinkEnded
from bot.core.models import AnswerFigure
from bot.web import security
from bot.web.link_verification import VerifiedLink, verify_link
from bot.web.page_images import PageImages
from bot.web.templates import Templates
from storage.errors import DocumentError, InfrastructureError
from storage.models import Box, PageImage
from storage.stores import Stores

# Teams shows pictures of at most 1,024 pixels and 1 MB.
DPI, MAX_SIDE = 200, 1024
# Margin around a figure, as a share of the page: frame and axis ends lie on the figure's edge.
MARGIN = 0.006


class FigureImages:
    """Rendering and HTTP route of the figures in answers."""

    def __init__(self, links: Links, stores: Stores, images: PageImages) -> None:
        self._links = links
        self._stores = stores
        self._images = images

    async def draw(self, figure: AnswerFigure) -> PageImage:
        """Render a figure; implements the core's ``DrawFigure`` and raises what that says."""
        return await self._draw(await self._open(urlsplit(figure.image).path.rpartition("/")[2]))

    def routes(self, pages: Templates) -> list[web.RouteDef]:
        """Return the route of figure pictures; ``pages`` renders its errors."""

        async def send(request: web.Request) -> web.Response:
            link = await self._open(request.match_info["token"])
            try:
                image = await self._draw(link)
            except (DocumentError, InfrastructureError, OSError):
                return pages.refusal(503)
            return web.Response(
                body=image.data,
                content_type=image.media_type,
                headers=security.NO_STORE | security.EMBEDDED_HEADERS,
            )

        return [web.get("/f/{token}", send, name="figure")]

    async def _open(self, token: str) -> VerifiedLink:
        return await verify_link(token, self._links, self._stores, Purpose.FIGURE)

    async def _draw(self, link: VerifiedLink) -> PageImage:
        if not link.citation.boxes:
            raise LinkEnded("it marks no figure")
        (box, *_), sha256 = link.citation.boxes, link.source.sha256
        part = _with_margin(box)
        return await self._images.image(
            sha256, link.claims.page, DPI, holder=link.holder, clip=part, side=MAX_SIDE
        )


def _with_margin(box: Box) -> Box:
    return Box(
        max(0.0, box.x0 - MARGIN),
        max(0.0, box.y0 - MARGIN),
        min(1.0, box.x1 + MARGIN),
        min(1.0, box.y1 + MARGIN),
    )
