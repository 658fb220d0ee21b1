"""Checks of the machine: home, disk, memory, and confinement of the PDF process."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import aclosing, suppress
from pathlib import Path

from bot.health.findings import Finding, HealthCheck, fail, ok, warn
from storage.errors import docs_url
from storage.mounts import is_network_share
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings
from storage.threads import run_in_thread

GIGABYTE = 1 << 30
# Free space: reading a PDF takes several times its size, and a full disk stops everything.
DISK_WARN_BYTES, DISK_FAIL_BYTES = 5 * GIGABYTE, GIGABYTE // 2
# Needs of ``serve`` with one worker: the process, layout and OCR models, and a child that reads.
MEMORY_BYTES = 2 * GIGABYTE
FREE_MEMORY_BYTES = GIGABYTE // 2
# Timeout: the PDF process loads its libraries first, which takes seconds on a busy machine.
START_SECONDS = 20.0

TROUBLESHOOTING = docs_url("troubleshooting.md")
CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")


def machine_checks(home: Path, settings: StorageSettings | None) -> Iterator[HealthCheck]:
    """Yield the checks that need only the home's path; that of the PDF process also needs ``settings``."""
    writable, full = f"{TROUBLESHOOTING}#the-home-cannot-be-written", f"{TROUBLESHOOTING}#the-disk-is-full"
    yield HealthCheck("home", lambda: run_in_thread(lambda: check_home(home)), writable)
    yield HealthCheck("disk", lambda: run_in_thread(lambda: check_disk(home)), full)
    yield HealthCheck(
        "memory", lambda: run_in_thread(check_memory), f"{TROUBLESHOOTING}#there-is-too-little-memory"
    )
    if settings is not None:
        confined = f"{TROUBLESHOOTING}#pdfs-are-opened-without-confinement"
        yield HealthCheck("pdf", lambda: check_pdf_process(settings), confined, START_SECONDS)


def check_home(home: Path) -> Finding:
    """Check that the home is writable, leaving nothing behind; the first start creates a missing one."""
    docs = f"{TROUBLESHOOTING}#the-home-cannot-be-written"
    nearest = next(one for one in (home, *home.parents) if one.exists())
    if not nearest.is_dir():
        return fail(f"{nearest} is not a folder", "set FOOTNOTE_HOME to a folder", docs)
    fix = f"grant write access to the user that runs Footnote: `chown -R {_user()} {nearest}`"
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        return fail(f"{nearest} is not writable: {error.strerror}", fix, docs)
    if is_network_share(home):
        return warn(
            f"{home} is on a network share",
            "keep the home on a local disk: SQLite and the embedded index lose data on a share",
            docs,
        )
    if nearest != home:
        return warn(f"{home} does not exist yet", "start `footnote serve`, which creates it", docs)
    return ok(f"{home} is writable")


def _user() -> str:
    with suppress(KeyError):
        return pwd.getpwuid(os.geteuid()).pw_name
    return str(os.geteuid())


def check_disk(home: Path) -> Finding:
    """Check the free space on the home's disk."""
    nearest = next(one for one in (home, *home.parents) if one.exists())
    usage = shutil.disk_usage(nearest)
    left = f"{usage.free / GIGABYTE:.1f} GB free of {usage.total / GIGABYTE:.0f} GB"
    fix = (
        "free disk space or move the home; FOOTNOTE_PAGE_IMAGES_MB and shorter retention help: "
        f"{docs_url('erasure.md')}"
    )
    docs = f"{TROUBLESHOOTING}#the-disk-is-full"
    if usage.free < DISK_FAIL_BYTES:
        return fail(left, fix, docs)
    return warn(left, fix, docs) if usage.free < DISK_WARN_BYTES else ok(left)


def check_memory() -> Finding:
    """Check total and free memory; a container's limit counts as the machine's."""
    total, free = _memory()
    text = f"{free / GIGABYTE:.1f} GB free of {total / GIGABYTE:.1f} GB"
    fix = "add memory, or read fewer PDFs at once: FOOTNOTE_READ_WORKERS=1, FOOTNOTE_LAYOUT=false"
    is_little = total < MEMORY_BYTES or free < FREE_MEMORY_BYTES
    return warn(text, fix, f"{TROUBLESHOOTING}#there-is-too-little-memory") if is_little else ok(text)


def _memory() -> tuple[int, int]:
    """Return (total, free) in bytes."""
    rows = dict(line.split(":", 1) for line in MEMINFO.read_text(encoding="ascii").splitlines())
    total, free = (int(rows[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    with suppress(OSError, ValueError):  # "max" means no limit; without cgroup v2 there are no such files
        limit = int((CGROUP / "memory.max").read_text(encoding="ascii"))
        used = int((CGROUP / "memory.current").read_text(encoding="ascii"))
        return min(total, limit), min(free, max(limit - used, 0))
    return total, free


async def check_pdf_process(settings: StorageSettings) -> Finding:
    """Start the PDF process, and report which confinement it lacks.

    Raises:
        EngineStartError: it does not start.
    """
    async with aclosing(PdfProcess(settings)) as pdf:
        await pdf.start()
        lacking = pdf.confinement_gaps()
    docs = f"{TROUBLESHOOTING}#pdfs-are-opened-without-confinement"
    if lacking:
        return warn(
            lacking, "run it on x86_64 or aarch64 with Linux 5.13 or newer, with seccomp allowed", docs
        )
    return ok(f"PDFs are opened without network and file access, within {settings.read_memory_mb} MB")
