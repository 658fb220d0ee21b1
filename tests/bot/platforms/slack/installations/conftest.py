"""Fixtures for an app that workspaces install, in front of a fake Slack OAuth server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fakes.oauth_slack import OAuthSlack, oauth_slack
from harness.oauth_house import House, open_house


@pytest.fixture
async def slack() -> AsyncIterator[OAuthSlack]:
    """Yield a fake Slack that installs apps over OAuth."""
    async with oauth_slack() as served:
        yield served


@pytest.fixture
async def house(slack: OAuthSlack, tmp_path: Path) -> AsyncIterator[House]:
    """Yield the running app on a fresh home."""
    async with open_house(slack, tmp_path / "home") as opened:
        yield opened
