"""The machine under an installation: the home, disk, memory, and how the PDF process is confined."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import aclosing, suppress
from pathlib import Path

from bot.diagnostics.models import Finding, HealthCheck, fail, ok, warn
from storage.errors import docs_url
from storage.mounts import is_network_share
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings
from storage.threads import run_in_thread

GIGABYTE = 1 << 30
# Free room: a PDF needs some times its size while it is read, and a full disk stops everything.
DISK_WARN_BYTES, DISK_FAIL_BYTES = 5 * GIGABYTE, GIGABYTE // 2
# What ``serve`` needs with one worker: itself, the models of layout and OCR, and a child that reads.
MEMORY_BYTES = 2 * GIGABYTE
FREE_MEMORY_BYTES = GIGABYTE // 2
# The PDF process loads its libraries first, on a busy machine for some seconds.
START_SECONDS = 20.0

PAGES = docs_url("troubleshooting.md")
CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")


def machine_checks(home: Path, settings: StorageSettings | None) -> Iterator[HealthCheck]:
    """Checks that need no more than to know where the home is; that of PDFs also how they are read."""
    writable, full = f"{PAGES}#the-home-cannot-be-written", f"{PAGES}#the-disk-is-full"
    yield HealthCheck("home", lambda: run_in_thread(lambda: check_home(home)), writable)
    yield HealthCheck("disk", lambda: run_in_thread(lambda: check_disk(home)), full)
    yield HealthCheck("memory", lambda: run_in_thread(check_memory), f"{PAGES}#there-is-too-little-memory")
    if settings is not None:
        confined = f"{PAGES}#pdfs-are-opened-without-confinement"
        yield HealthCheck("pdf", lambda: check_pdf_process(settings), confined, START_SECONDS)


def check_home(home: Path) -> Finding:
    """True if we may write there; nothing stays. One that is not there yet is made by the first start."""
    page = f"{PAGES}#the-home-cannot-be-written"
    nearest = next(one for one in (home, *home.parents) if one.exists())
    if not nearest.is_dir():
        return fail(f"{nearest} is no folder", "set FOOTNOTE_HOME to a folder", page)
    mend = f"let the user that runs Footnote write there: `chown -R {_user()} {nearest}`"
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        return fail(f"{nearest} cannot be written: {error.strerror}", mend, page)
    if is_network_share(home):
        return warn(
            f"{home} lies on a network share",
            "keep the home on a local disk: SQLite and the embedded index lose data on a share",
            page,
        )
    if nearest != home:
        return warn(f"{home} is not there yet", "start `footnote serve`, which makes it", page)
    return ok(f"{home} can be written")


def _user() -> str:
    with suppress(KeyError):
        return pwd.getpwuid(os.geteuid()).pw_name
    return str(os.geteuid())


def check_disk(home: Path) -> Finding:
    """Return the room that is left where the home is."""
    nearest = next(one for one in (home, *home.parents) if one.exists())
    usage = shutil.disk_usage(nearest)
    left = f"{usage.free / GIGABYTE:.1f} GB free of {usage.total / GIGABYTE:.0f} GB"
    mend = (
        "make room, or move the home; FOOTNOTE_PAGE_IMAGES_MB and shorter retention help: "
        f"{docs_url('erasure.md')}"
    )
    page = f"{PAGES}#the-disk-is-full"
    if usage.free < DISK_FAIL_BYTES:
        return fail(left, mend, page)
    return warn(left, mend, page) if usage.free < DISK_WARN_BYTES else ok(left)


def check_memory() -> Finding:
    """What this process may use, and what of it is free; a container's limit counts as the machine's."""
    total, free = _memory()
    text = f"{free / GIGABYTE:.1f} GB free of {total / GIGABYTE:.1f} GB"
    mend = "give it more, or read less at once: FOOTNOTE_READ_WORKERS=1, FOOTNOTE_LAYOUT=false"
    is_little = total < MEMORY_BYTES or free < FREE_MEMORY_BYTES
    return warn(text, mend, f"{PAGES}#there-is-too-little-memory") if is_little else ok(text)


def _memory() -> tuple[int, int]:
    """(all, free) in bytes."""
    rows = dict(line.split(":", 1) for line in MEMINFO.read_text(encoding="ascii").splitlines())
    total, free = (int(rows[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    with suppress(OSError, ValueError):  # no limit is the word max, and other systems have no such files
        limit = int((CGROUP / "memory.max").read_text(encoding="ascii"))
        used = int((CGROUP / "memory.current").read_text(encoding="ascii"))
        return min(total, limit), min(free, max(limit - used, 0))
    return total, free


async def check_pdf_process(settings: StorageSettings) -> Finding:
    """Starts it, and asks what it gave up.

    Raises:
        EngineStartError: it does not start.
    """
    async with aclosing(PdfProcess(settings)) as pdf:
        await pdf.start()
        lacking = pdf.lacking_confinement()
    page = f"{PAGES}#pdfs-are-opened-without-confinement"
    if lacking:
        return warn(
            lacking, "run it on x86_64 or aarch64 with Linux 5.13 or newer, with seccomp allowed", page
        )
    return ok(f"PDFs are opened without network and files, within {settings.read_memory_mb} MB")
