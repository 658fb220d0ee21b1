"""Doctor on its own home: results by name, checked for leaked secrets."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from aiohttp import web

from bot.cli.diagnosis.doctor import examine_installation
from bot.health.findings import CheckResult, CheckState
from storage.errors import docs_url

# Part of every secret that a test sets: must not appear in any result.
CANARY = secrets.token_hex(8)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
# Starts a server with one response to every request; returns its base URL.
Serve = Callable[[Answer], Awaitable[str]]


@dataclass
class Doctor:
    """Runs doctor on a home with the environment's settings."""

    home: Path
    patch: pytest.MonkeyPatch

    async def look(self, *lines: str, **settings: str) -> list[CheckResult]:
        """Return the results of these names, with additional settings."""
        for name, value in settings.items():
            self.patch.setenv(name, value)
        results = list(await examine_installation(lines))
        assert CANARY not in json.dumps([asdict(one) for one in results]), "a secret came out"
        return results

    async def fault(self, line: str, **settings: str) -> CheckResult:
        """Return the only result of this name, which must not be OK."""
        (result,) = [one for one in await self.look(line, **settings) if one.name == line]
        assert result.state is not CheckState.OK, result
        assert result.fix
        assert result.docs.startswith(docs_url("troubleshooting.md#"))
        return result
