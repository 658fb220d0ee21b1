"""axe: Deque's accessibility checks, run in the tests' own browsers."""

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
    """Return why it cannot run here, or None."""
    return None if SCRIPT.exists() else "axe-core was not fetched"


def fetch() -> None:
    """Download it with npm."""
    PACKAGE.fetch()


class Evaluates(Protocol):
    """A page of any browser."""

    async def evaluate(self, script: str, /) -> Any:
        """Return the value of a script."""


async def violations(page: Evaluates) -> list[str]:
    """Return the accessibility violations of the page, as rule and element.

    The script runs through the browser's debugging protocol, so the page's Content-Security-Policy stays in
    force.
    """
    await page.evaluate(SCRIPT.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = await page.evaluate("axe.run().then(({ violations }) => violations)")
    return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]
