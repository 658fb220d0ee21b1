"""``footnote reconcile``: compare SQL, index and disk now, mend what differs, and say what was mended."""

from __future__ import annotations

import argparse
import sys

from bot.engines import load_settings
from bot.service import open_ingestion
from ingestion.publish.reconciling import Repairs


async def reconcile(_options: argparse.Namespace) -> int:
    """Print what was mended; 1 when another process is comparing already."""
    async with open_ingestion(load_settings()) as (_, ingestion):
        repairs = await ingestion.reconcile()
    if repairs is None:
        print("footnote: another process is comparing right now; its log says what it mends", file=sys.stderr)
        return 1
    for sentence in _sentences(repairs):
        print(sentence)
    return 0


def _sentences(repairs: Repairs) -> list[str]:
    counted = [
        (repairs.published_anew, "publications the index had lost are published again by `footnote serve`"),
        (repairs.strays_removed, "publications that only the index knew were removed"),
        (repairs.tenants_dropped, "tenants of no channel were dropped"),
        (repairs.copied_again, "documents lost their stored copy: the next scan copies them again"),
        (repairs.read_again, "readings lost their files and are made again by `footnote serve`"),
        (repairs.files_swept, "stored files that no document wants were removed"),
    ]
    return [f"{number} {what}" for number, what in counted if number] or ["Nothing differs."]
