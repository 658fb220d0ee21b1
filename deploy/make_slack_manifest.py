"""Writes Slack's app manifest from what is implemented.

``make format`` writes ``deploy/slack-manifest.json``, for Socket Mode. Of events over HTTP the manifest is
printed by ``python deploy/make_slack_manifest.py https://your.host``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

from bot.slack.workspace.app_manifest import manifest

MANIFEST = Path(__file__).with_name("slack-manifest.json")


def main(arguments: list[str]) -> int:
    """Write the file, or print the manifest of an address; returns the exit status."""
    if not arguments:
        MANIFEST.write_text(rendered(), encoding="utf-8")
        return 0
    (public_url, *others) = arguments
    address = urlsplit(public_url)
    if others or address.scheme != "https" or not address.hostname:
        print(__doc__, file=sys.stderr)
        return 2
    print(rendered(public_url), end="")
    return 0


def rendered(public_url: str = "") -> str:
    """The manifest as it is pasted into a new app."""
    return json.dumps(manifest(public_url), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
