"""The installed wheel: built from this tree, run in an empty folder, up to the opened page."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from urllib.request import Request, urlopen

import pytest
from engines.support.ports import free_port
from sources import PACKAGES, ROOT

from bot.web.security import SCRIPT_HEADER

WAIT_SECONDS = 180


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The scripts of a virtual environment with the wheel; dependencies are the tests' own."""
    maker = [sys.executable, ROOT / "deploy" / "make_wheel.py", tmp_path / "dist"]
    wheel = subprocess.run(maker, check=True, capture_output=True, text=True).stdout.split()[-1]
    venv.create(tmp_path / "venv", symlinks=True)
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    # After the environment's own packages; .pth files there, such as the checkout's, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", tmp_path / "venv", "install", "--no-index", "--no-deps"]
    subprocess.run([*pip, "-q", "--disable-pip-version-check", "--no-compile", wheel], check=True)
    return tmp_path / "venv" / "bin"


@dataclass
class Demo:
    """A running ``footnote demo``."""

    process: subprocess.Popen[bytes]
    log: Path

    def console(self) -> str:
        """Wait until the console's URL is printed; return it."""
        end = time.monotonic() + WAIT_SECONDS
        while not (found := re.search(r"(?m)^Ask +(http\S+)$", self.log.read_text())):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.1)
        return found[1]


@pytest.fixture
def demo(programs: Path, tmp_path: Path) -> Iterator[Demo]:
    """``footnote demo`` in an empty folder, with one read worker and without layout."""
    folder = tmp_path / "empty"
    folder.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    slim = {"FOOTNOTE_READ_WORKERS": "1", "FOOTNOTE_LAYOUT": "false"}
    command = [programs / "footnote", "demo", "--port", str(free_port())]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=kept | slim, stdout=log, stderr=log)
    yield Demo(process, tmp_path / "log")
    process.kill()
    process.wait()


def get(url: str, headers: dict[str, str] | None = None, body: Any = None) -> bytes:
    """Return the response of a GET, or of a POST with ``body``."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"Content-Type": "application/json", **(headers or {})})) as page:
        content: bytes = page.read()
        return content


def ask(console: str) -> str:
    """Ask through the console's API until the sample is live; return the link of its citation."""
    url = urljoin(console, "/")[:-1]
    headers = {"Origin": url, SCRIPT_HEADER: "1", "Authorization": f"Bearer {console.rpartition('=')[2]}"}
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        for channel in json.loads(get(f"{url}/console/channels", headers))["channels"]:
            body = {"channel": channel["id"], "question": "When do backups run?"}
            answer = json.loads(get(f"{url}/console/ask", headers, body))
            for citation in answer["citations"]:
                if "2:00 AM" in citation["quote"]:
                    return urljoin(console, citation["view"])
        time.sleep(0.5)
    raise AssertionError("the sentence was never cited")


def test_the_wheel_answers_from_a_marked_page(programs: Path, demo: Demo, tmp_path: Path) -> None:
    """Runs its own files, answers from the samples, offers its source code, and creates one folder."""
    console = demo.console()
    page = get(ask(console)).decode()
    assert 'id="hit"' in page
    assert "2:00 AM" in re.sub(r"<[^>]+>", "", page)
    with tarfile.open(fileobj=BytesIO(get(urljoin(console, "/source.tar.gz")))) as archive:
        names = archive.getnames()
    assert "footnote/bot/cli/setup/demo.py" in names
    assert [name.partition(".dist-info/")[2] for name in names if ".dist-info/" in name] == [
        "METADATA",
        "licenses/LICENSE",
    ]
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(60) == 0, demo.log.read_text()
    assert [path.name for path in (tmp_path / "empty").iterdir()] == [".footnote"]
    where = f"import {', '.join(PACKAGES)}\nfor one in ({', '.join(PACKAGES)}): print(*one.__path__)"
    found = subprocess.check_output([programs / "python", "-c", where], cwd=tmp_path / "empty", text=True)
    assert all(path.startswith(str(programs.parent)) for path in found.splitlines())
    assert len(found.splitlines()) == len(PACKAGES)
