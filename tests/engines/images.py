"""images: buildah builds the container image offline, from wheels fetched before.

The base image replaces the published slim image, which is not available everywhere: Debian's Python and
nothing else. A built image runs as its user on a read-only root, in its own mount and PID namespaces.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.processes import children
from sources import ROOT

from engines import FetchError, apt_install, cache, run_fetching
from engines.support.go_modules import GoModule

NAME = "images"
REMEDY = "sudo .venv/bin/python tests/fetch.py images"
BINDS_EVERYWHERE = False

COMPOSE = GoModule(
    "github.com/compose-spec/compose-go/v2", "v2.16.2", "h1:pTp1DqQwJzFd85GzlWsSszKA1ABrV/ySqsClujIcWA8="
)
LOCKS = (ROOT / "requirements-otel.txt", ROOT / "deploy" / "data.txt")
USER = 10001
_START = """
set -e
mount --bind "$ROOT_FOLDER" "$ROOT_FOLDER"
mount -o remount,ro,bind "$ROOT_FOLDER"
mount -t tmpfs none "$ROOT_FOLDER/tmp"
mount -t proc proc "$ROOT_FOLDER/proc"
mount --rbind /dev "$ROOT_FOLDER/dev"
mount --bind "$HOME_FOLDER" "$ROOT_FOLDER/var/lib/footnote"
exec chroot --userspec="$USER_ID:$USER_ID" "$ROOT_FOLDER" /usr/bin/env -i -C /var/lib/footnote "$@"
"""


def _base() -> Path:
    return cache() / "debian-python.tar"


def _wheels() -> Path:
    locked = hashlib.sha256(b"".join(lock.read_bytes() for lock in LOCKS)).hexdigest()
    return cache() / f"wheels-{locked[:12]}"


def missing() -> str | None:
    """Return why images cannot be built here, or None."""
    if os.geteuid() != 0:
        return "only root builds images here"
    if not shutil.which("buildah"):
        return "buildah is not installed"
    fetched = _base().exists() and _wheels().exists() and COMPOSE.folder.exists()
    return None if fetched else "the wheels of the image were not fetched"


def fetch() -> None:
    """Install buildah, make the base image, download every locked wheel.

    Raises:
        FetchError: not run as root, or a registry is unreachable.
    """
    for program in ("buildah", "mmdebstrap"):
        if not shutil.which(program):
            apt_install(program)
    COMPOSE.fetch()
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        if not _base().exists():
            draft = Path(scratch) / "base.tar"
            packages = "--include=python3,python3-venv,ca-certificates"
            run_fetching(["mmdebstrap", "--quiet", "--variant=minbase", packages, "bookworm", str(draft)])
            draft.rename(_base())
        if not _wheels().exists():
            folder = Path(scratch) / "wheels"
            pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
            for lock in LOCKS:
                checked = ["--require-hashes", "--only-binary=:all:", "--python-version", "3.11"]
                run_fetching([*pip, *checked, "-r", str(lock), "-d", str(folder)])
            folder.rename(_wheels())


class BuiltImage:
    """A built image and its mounted root file system."""

    def __init__(self, store: Path) -> None:
        """Build the image into its own store."""
        places = [f"--root={store / 'images'}", f"--runroot={store / 'run'}", "--storage-driver=vfs"]
        self._buildah = ["buildah", *places]
        settings = store / "pip.conf"
        settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
        container = self._call("from", "scratch")
        self._call("add", "--quiet", container, str(_base()), "/")
        self._call("commit", "--quiet", "--rm", container, "localhost/base")
        self._call(
            "bud", "--isolation=chroot", "--build-arg=BASE=localhost/base", "--tag=footnote", "--quiet",
            f"--volume={_wheels()}:/wheels:ro", f"--volume={settings}:/etc/pip.conf:ro",
            f"--ignorefile={ROOT}/deploy/container/Containerfile.dockerignore",
            f"--file={ROOT}/deploy/container/Containerfile", str(ROOT),
        )  # fmt: skip
        self.folder = Path(self._call("mount", self._call("from", "footnote")))
        inspected = "{{range .OCIv1.Config.Env}}{{println .}}{{end}}"
        self.environment = self._call("inspect", "--type=image", f"--format={inspected}", "footnote").split()

    def _call(self, *arguments: str) -> str:
        return run_fetching([*self._buildah, *arguments])

    def start(self, home: Path, *command: str) -> subprocess.Popen[str]:
        """Run a command in a container with this home; everything but it and /tmp is read-only."""
        home.mkdir(exist_ok=True)
        os.chown(home, USER, USER)
        script = ["bash", "-c", _START, "start", *self.environment, *command]
        places = {"ROOT_FOLDER": str(self.folder), "HOME_FOLDER": str(home), "USER_ID": str(USER)}
        return subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", *script],
            env={**os.environ, **places},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def stop(self, started: subprocess.Popen[str]) -> None:
        """Kill a container's init process, which ends its namespace."""
        # The kernel clears PR_SET_PDEATHSIG when the process changes its user.
        for init in children(started.pid):
            os.kill(init, signal.SIGKILL)
        started.wait(timeout=60)

    def run(self, home: Path, *command: str, seconds: float = 60) -> str:
        """Run a command that ends by itself; return its output.

        Raises:
            FetchError: it fails.
        """
        with self.start(home, *command) as process:
            printed, _ = process.communicate(timeout=seconds)
        if process.returncode:
            raise FetchError(f"{command} failed: {printed}")
        return printed


@pytest.fixture(scope="session")
def image() -> Iterator[BuiltImage]:
    """The image of this checkout; its store is deleted after the run."""
    with tempfile.TemporaryDirectory() as store:
        yield BuiltImage(Path(store))
