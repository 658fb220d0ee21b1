"""Uploads the figures of an answer to Slack, so that its message can show them.

Files are uploaded without sharing them to a channel: they are visible only in a message that embeds them. A
repeated upload after a crash is therefore invisible, and nothing is posted twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.answers.citations.source_buttons import ALT_TEXT_CHARS
from bot.answers.generation.figures import MAX_FIGURES_SHOWN
from bot.core.errors import LinkError
from bot.core.models import AnswerFigure
from bot.core.plaintext import shorten
from bot.core.ports import DrawFigure
from storage.errors import StorageError
from storage.lru_cache import LRUCache

log = logging.getLogger(__name__)

UPLOADS_REMEMBERED = 500
_SUFFIXES = {"image/png": "png", "image/jpeg": "jpg"}


class FigureUploads:
    """Renders figures and uploads them; a failure costs that picture only."""

    def __init__(self, draw: DrawFigure) -> None:
        self._draw = draw
        # Picture URL -> Slack file id, so that a redelivered answer reuses the upload.
        self._files: LRUCache[str, str] = LRUCache(UPLOADS_REMEMBERED)

    async def upload(self, client: AsyncWebClient, figures: Sequence[AnswerFigure]) -> dict[int, str]:
        """Upload figures; return index in ``figures`` -> Slack file id, without those that failed."""
        files = {}
        for place, figure in enumerate(figures[:MAX_FIGURES_SHOWN]):
            try:
                files[place] = self._files.get(figure.image) or await self._upload(client, figure)
            except (StorageError, LinkError, OSError) as error:
                log.warning("figure rendering failed: %s", type(error).__name__)
            except SlackApiError as error:
                status = error.response.status_code
                cause = error.response.get("error") if status < 500 else status  # a 5xx body may not be JSON
                log.warning("figure upload rejected: %s", cause)
            except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
                log.warning("figure upload failed: %s", type(error).__name__)
        return files

    async def delete(self, client: AsyncWebClient, files: Sequence[str]) -> None:
        """Delete the pictures of a deleted answer; a leftover file is not visible in any message."""
        for file in files:
            try:
                await client.files_delete(file=file)
            except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
                log.warning("deleting a figure file failed: %s", type(error).__name__)

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
