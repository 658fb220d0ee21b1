"""Runs checks concurrently, each with its timeout, and formats their findings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from bot.health.findings import CheckResult, CheckState, Finding, HealthCheck, fail, warn
from bot.health.installation import DependencyFailed
from bot.operations.doctor.redaction import Redactor
from storage.errors import StorageError, docs_url, raised_at

NAME_WIDTH = 10
TOO_LONG = docs_url("troubleshooting.md#a-line-of-doctor-took-too-long")
_log = logging.getLogger(__name__)


async def run_checks(checks: Iterable[HealthCheck], redactor: Redactor) -> list[CheckResult]:
    """Run all checks and return their findings in order; none delays or aborts another."""
    named = list(checks)
    found = await asyncio.gather(*map(_findings, named))
    return [
        CheckResult(check.name, one.state, redactor.clean(one.text), redactor.clean(one.fix), one.docs)
        for check, findings in zip(named, found, strict=True)
        for one in findings
    ]


async def _findings(check: HealthCheck) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(check.seconds):
            found = await check.examine()
    except TimeoutError:
        text = f"no answer within {check.seconds:g} s"
        return [fail(text, "check that the service it asks is running and not overloaded", TOO_LONG)]
    except DependencyFailed as error:
        return [warn(str(error), "fix the check sql first", check.docs)]
    except StorageError as error:
        return [fail(str(error), "follow the message, then run `footnote doctor` again", check.docs)]
    except Exception as error:  # other checks continue; the message may name a secret: report its place
        _log.info("check failed", exc_info=error)
        text = f"check failed: {raised_at(error)}"
        return [fail(text, "`footnote -v doctor` shows the traceback; please report it", check.docs)]
    return [found] if isinstance(found, Finding) else list(found)


def has_failed(results: Iterable[CheckResult]) -> bool:
    """True if any check failed."""
    return any(one.state is CheckState.FAIL for one in results)


def as_text(result: CheckResult) -> str:
    """Return a result for a terminal: a line, and below it the fix and the docs' URL."""
    lines = [f"{result.state.value:<5} {result.name:<{NAME_WIDTH}} {result.text}"]
    indent = " " * (NAME_WIDTH + 7)
    if result.fix:
        lines.append(f"{indent}Fix: {result.fix}")
    if result.docs:
        lines.append(f"{indent}Docs: {result.docs}")
    return "\n".join(lines)
