"""``footnote mcp``: an MCP server over standard input for an assistant on this machine."""

from __future__ import annotations

import argparse
import sys

from bot.bootstrap import build_api, open_answering
from bot.cli.home import require_home
from bot.public_links import open_links
from bot.settings import load_settings
from bot.web.api.mcp_server import serve_stdio


async def serve_mcp(_options: argparse.Namespace) -> int:
    """Serve tools and resources until the assistant closes standard input; nothing is uploaded.

    Raises:
        EmptyHome: nothing was ingested yet.
    """
    settings = load_settings()
    require_home(settings)
    sys.stdout = sys.__stdout__ or sys.stdout  # the protocol is written to its bytes, not escaped
    async with open_answering(settings) as (stores, answering):
        links = await open_links(settings, stores.database)
        await serve_stdio(build_api(settings, stores, answering, links))
    return 0
