"""Microsoft's own validators: the Adaptive Cards parser and the schemas of app manifests.

Both packages are MIT and come from npm, pinned, without scripts and dependencies.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engines.support.npm import NpmPackage

CARDS = NpmPackage(
    "adaptivecards",
    "3.0.6",
    "WDCIb2WXZ7cOHJ9HIHRNdhSt861HySVOdN2xPk2aKHAF3JvD8QGQ8/XcNFrDJxCteOog8MM7EBlXfSAR8JXKAg==",
)
MANIFESTS = NpmPackage(
    "@microsoft/app-manifest",
    "1.1.2",
    "uXdmYzhIcchi3Tc9Sh3pTDMe55zy7ge19bnYCGB1gzuyha85Ii7wfdTruwEhqseaX9pwsWDRB5Ot/ltv0rCONw==",
)
PACKAGES = (CARDS, MANIFESTS)
_JUDGE = Path(__file__).with_name("judge_cards.js")


def faults_of(cards: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return, for each card, the errors of the Adaptive Cards 1.5 parser."""
    parser = CARDS.folder / "dist" / "adaptivecards.js"
    done = subprocess.run(
        ["node", _JUDGE, parser],
        input=json.dumps(cards),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    faults: list[list[str]] = json.loads(done.stdout)
    return faults


def manifest_schema(version: str) -> dict[str, Any]:
    """Return the JSON schema of app manifests of this version."""
    path = (
        MANIFESTS.folder / "build" / "json-schemas" / "teams" / f"v{version}" / "MicrosoftTeams.schema.json"
    )
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema
