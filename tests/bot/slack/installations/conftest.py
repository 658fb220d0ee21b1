"""An app that workspaces install, before a Slack that is played."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fakes.oauth_slack import OAuthSlack, oauth_slack
from harness.oauth_house import House, open_house


@pytest.fixture
async def slack() -> AsyncIterator[OAuthSlack]:
    """A Slack that installs apps."""
    async with oauth_slack() as served:
        yield served


@pytest.fixture
async def house(slack: OAuthSlack, tmp_path: Path) -> AsyncIterator[House]:
    """The app on a fresh home, while it runs."""
    async with open_house(slack, tmp_path / "home") as opened:
        yield opened
