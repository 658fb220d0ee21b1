"""axe: Deque's checks of a page for people who cannot see it well, run in the tests' own browsers."""

from __future__ import annotations

from typing import Any, Protocol

from engines.support.npm import NpmPackage

NAME = "axe"
REMEDY = ".venv/bin/python tests/fetch.py axe (needs npm, 1 MB)"
BINDS_EVERYWHERE = False

PACKAGE = NpmPackage(
    "axe-core",
    "4.14.1",
    "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
)
SCRIPT = PACKAGE.folder / "axe.min.js"


def missing() -> str | None:
    """True if it was fetched."""
    return None if SCRIPT.exists() else "axe-core was not fetched"


def fetch() -> None:
    """Get it, which needs npm."""
    PACKAGE.fetch()


class Evaluates(Protocol):
    """A page of whatever browser."""

    async def evaluate(self, script: str, /) -> Any:
        """Return the value of a script."""


async def violations(page: Evaluates) -> list[str]:
    """What is wrong with the page as it is shown now: rule and place of each fault.

    Its script is run by the browser's own protocol, past the page's policy, which stays as it is.
    """
    await page.evaluate(SCRIPT.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = await page.evaluate("axe.run().then(({ violations }) => violations)")
    return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]
