"""Uploads the figures of an answer, so that its message can show them.

A file that is uploaded and shared with nobody is seen where a message shows it, and nowhere else: an upload
that is repeated after a crash appears to no person, and nothing is ever posted twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.core.citations.source_buttons import ALT_TEXT_CHARS
from bot.core.errors import LinkError
from bot.core.generation.figures import MAX_FIGURES_SHOWN
from bot.core.models import AnswerFigure
from bot.core.plaintext import shorten
from bot.core.ports import DrawFigure
from storage.errors import StorageError
from storage.recent_items import RecentItems

log = logging.getLogger(__name__)

UPLOADS_REMEMBERED = 500
_SUFFIXES = {"image/png": "png", "image/jpeg": "jpg"}


class FigureUploads:
    """Draws figures and hands them to Slack; one that fails costs its picture and nothing else."""

    def __init__(self, draw: DrawFigure) -> None:
        self._draw = draw
        # Link to a picture -> the file that it was uploaded as: an answer sent again needs no other.
        self._files: RecentItems[str, str] = RecentItems(UPLOADS_REMEMBERED)

    async def upload(self, client: AsyncWebClient, figures: Sequence[AnswerFigure]) -> dict[int, str]:
        """Place among ``figures`` -> id of the file that shows it; those without one are left out."""
        files = {}
        for place, figure in enumerate(figures[:MAX_FIGURES_SHOWN]):
            try:
                files[place] = self._files.get(figure.image) or await self._upload(client, figure)
            except (StorageError, LinkError, OSError) as error:
                log.warning("a figure cannot be drawn: %s", type(error).__name__)
            except SlackApiError as error:
                status = error.response.status_code
                cause = error.response.get("error") if status < 500 else status  # then it may be no JSON
                log.warning("Slack refused a figure's picture: %s", cause)
            except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
                log.warning("Slack did not take a figure's picture: %s", type(error).__name__)
        return files

    async def delete(self, client: AsyncWebClient, files: Sequence[str]) -> None:
        """Delete pictures of an answer that is deleted; one that Slack keeps is seen by nobody any more."""
        for file in files:
            try:
                await client.files_delete(file=file)
            except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
                log.warning("a deleted answer's picture stays: %s", type(error).__name__)

    async def _upload(self, client: AsyncWebClient, figure: AnswerFigure) -> str:
        image = await self._draw(figure)
        suffix = _SUFFIXES[image.media_type]
        reply = await client.files_upload_v2(
            filename=f"figure.{suffix}",
            content=image.data,
            title=figure.caption or None,
            alt_txt=shorten(figure.caption, ALT_TEXT_CHARS) or None,
            highlight_type=suffix,
        )
        file = self._files[figure.image] = str(reply["files"][0]["id"])
        return file
