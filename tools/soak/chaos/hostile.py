"""Hostile files, dropped into their own folder during the chaos, and their outcomes."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.hostile_run import SECRET, Ending

from storage.errors import UnknownChannel
from storage.models import DocumentStatus
from tools.soak.checks.audit import Audit

ENDED = ("live", "quarantined")
_NUMBER = re.compile(r" (\d+)\.pdf$")


class HostileFolder:
    """A channel's folder of hostile files, which are written in advance and dropped one by one."""

    def __init__(self, home: Path, name: str) -> None:
        self.files = home / "hostile"
        self.name = name
        self.dropped = 0
        self._place = home / "inbox" / name

    def attach(self, audit: Audit) -> None:
        """Read outcomes with this audit's connections; the audit tolerates that these files are unread."""
        self._audit = audit
        audit.hostile |= {
            hashlib.sha256((self.files / f"{row['number']}.pdf").read_bytes()).hexdigest()
            for row in self._cases
        }

    @cached_property
    def _cases(self) -> list[dict[str, Any]]:
        cases: list[dict[str, Any]] = json.loads((self.files / "cases.json").read_text())
        return cases

    def drop_one(self) -> None:
        """Drop the next file, if there is one."""
        if self.dropped == len(self._cases):
            return
        row = self._cases[self.dropped]
        place: Path = self._place / row["name"]
        place.parent.mkdir(parents=True, exist_ok=True)  # some names contain a slash
        (self.files / f"{row['number']}.pdf").rename(place)
        self.dropped += 1

    async def is_still(self) -> str | None:
        """Return how many files have an outcome; None if all have."""
        known = await self._known() if self.dropped else {}
        ended = sum(one.state in ENDED for one in known.values())
        return None if ended == self.dropped else f"{ended} of {self.dropped} hostile files have ended"

    async def faults(self) -> list[str]:
        """Return wrong outcomes, and hidden text that is found."""
        if not self.dropped:
            return []
        known, faults = await self._known(), []
        for row in self._cases[: self.dropped]:
            one = known.get(row["number"])
            state, reason = (one.state, one.reason or "") if one else ("unseen", "")
            if fault := Ending(row["number"], row["kind"], row["ends"], state, reason, 0, 0, "").fault:
                faults.append(f"hostile file {row['number']} ({row['kind']}) {fault}")
        shown = (await self._audit.witness.find(self.name, SECRET)).words
        return [*faults, *(["hidden words are found"] * bool(shown))]

    async def _known(self) -> dict[int, DocumentStatus]:
        try:
            where = await self._audit.witness.channels.by_name(self.name)
        except UnknownChannel:
            return {}
        listed = await self._audit.witness.catalog.documents(where.id)
        return {int(found[1]): one for one in listed if (found := _NUMBER.search(one.file))}
