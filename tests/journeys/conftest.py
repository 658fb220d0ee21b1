"""The program on its own home, with either index."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.program import SAMPLES, Program
from samples.paper import pdf


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program with the embedded index."""
    return Program(tmp_path / "home")


@pytest.fixture(
    params=[
        "embedded index",
        pytest.param("weaviate", marks=[pytest.mark.engine("weaviate"), pytest.mark.long]),
    ]
)
def any_program(request: pytest.FixtureRequest, tmp_path: Path) -> Program:
    """The program with the embedded index, and with Weaviate as a child process."""
    environment = {"WEAVIATE_URL": "embedded"} if request.param == "weaviate" else {}
    return Program(tmp_path / "home", environment)


@pytest.fixture(scope="session")
def home_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, str], Path]:
    """A factory of homes that have ingested a PDF or folder into a channel, cached as templates."""
    made: dict[tuple[Path, str], Path] = {}

    def make(documents: Path, channel: str) -> Path:
        if (home := made.get((documents, channel))) is None:
            home = made[documents, channel] = tmp_path_factory.mktemp("ingested") / "home"
            ended = Program(home).run("ingest", str(documents), "--channel", channel)
            assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
        return home

    return make


@pytest.fixture
def with_samples(program: Program, home_of: Callable[[Path, str], Path]) -> Program:
    """The program with the samples in the channel ``it``, without ``serve``."""
    shutil.copytree(home_of(SAMPLES, "it"), program.home)
    return program


@pytest.fixture
def with_page(
    program: Program, home_of: Callable[[Path, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str, str], Program]:
    """A factory of homes with a single page of one sentence, by channel, file name and sentence."""

    def make(channel: str, name: str, sentence: str) -> Program:
        page = tmp_path_factory.getbasetemp() / "pages" / name
        page.parent.mkdir(exist_ok=True)
        page.write_bytes(pdf(sentence))
        shutil.copytree(home_of(page, channel), program.home)
        return program

    return make


@pytest.fixture
def sop() -> Path:
    """SOP-IT-04, two pages, "Backups run daily at 2:00 AM"."""
    return next(SAMPLES.glob("SOP-IT-04*.pdf"))
