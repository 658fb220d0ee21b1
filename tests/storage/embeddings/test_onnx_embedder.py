"""The bundled encoder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fakes.tiny_embedder import write_embedder
from harness.waiting import until_true

from storage.embeddings.onnx_embedder import BundledEmbedder
from storage.errors import EngineStartError, IncompleteInstallation
from storage.text.token_counts import bundled


@pytest.fixture(scope="module")
def embedder() -> Iterator[BundledEmbedder]:
    """The bundled embedder, loaded once."""
    embedder = BundledEmbedder.load(None, 2)
    yield embedder
    embedder.close()


def test_similarity_follows_meaning(embedder: BundledEmbedder) -> None:
    """A paraphrase is more similar than another subject; every vector has unit length."""
    vectors = embedder.embed(
        ["How do I get a new password?", "Resetting your login credentials", "The cat sleeps on the mat"]
    )
    assert vectors.shape == (3, embedder.dimensions) == (3, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.4 > vectors[0] @ vectors[2]


def test_the_window_is_256_tokens_without_padding(embedder: BundledEmbedder) -> None:
    """The tokenizer is shipped with a cut at 128: a word after that counts, one after 256 does not."""
    words = "backup " * 200
    assert embedder.count("backup") == 3
    assert embedder.count(words) == 202 < embedder.window == 256
    early, late = embedder.embed([words, words + "volcano"])
    assert not np.allclose(early, late)
    full, beyond = embedder.embed(["backup " * 254 + "a", "backup " * 254 + "volcano"])
    assert np.allclose(full, beyond)


async def test_async_embedding_returns_the_same_vectors_in_order(embedder: BundledEmbedder) -> None:
    """Threads do not change the result; no texts give no vectors."""
    texts = [f"Step {number} of the procedure" * (1 + number % 3) for number in range(12)]
    assert np.allclose(await embedder.aembed(texts), embedder.embed(texts))
    assert (await embedder.aembed([])).shape == (0, 384)


async def test_a_question_does_not_wait_for_documents(embedder: BundledEmbedder) -> None:
    """Shows that a question is embedded long before a large batch is done."""
    begun: list[int] = []

    class Documents(list[str]):
        def __iter__(self) -> Iterator[str]:
            for number, text in enumerate(super().__iter__()):
                begun.append(number)
                yield text

    texts = Documents(f"{number} " + "backup " * 250 for number in range(24))
    documents = asyncio.create_task(embedder.aembed(texts))
    await until_true(lambda: begun)
    await embedder.aembed(["When do backups run?"])
    assert len(begun) < 12
    await documents
    assert len(begun) == 24


def test_an_embedder_is_identified_by_its_content(embedder: BundledEmbedder, tmp_path: Path) -> None:
    """The same files in another folder are the same embedder; a changed tokenizer is another one."""
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes(bundled(name).read_bytes())
    copy = BundledEmbedder.load(tmp_path, threads=1)
    copy.close()
    (tmp_path / "tokenizer.json").write_bytes(bundled("tokenizer.json").read_bytes() + b"\n")
    changed = BundledEmbedder.load(tmp_path, 2)
    changed.close()
    assert copy.id == embedder.id != changed.id


def test_a_custom_model_gets_only_the_inputs_that_it_has(tmp_path: Path) -> None:
    """Shows that a multilingual model exported without token types works unchanged."""
    embedder = BundledEmbedder.load(
        write_embedder(tmp_path, ["vacation Urlaub vacances", "backup Sicherung"]), 1
    )
    english, german, french, other = embedder.embed(["vacation", "Urlaub", "les vacances", "Sicherung"])
    embedder.close()
    assert min(english @ german, english @ french) > 0.9
    assert english @ other < 0.1


def test_a_missing_or_broken_model_gives_an_error_message(tmp_path: Path) -> None:
    """Neither a stack trace nor a download."""
    with pytest.raises(EngineStartError, match=r"model\.onnx cannot be read"):
        BundledEmbedder.load(tmp_path, 2)
    (tmp_path / "model.onnx").write_bytes(b"no model")
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    with pytest.raises(EngineStartError, match="cannot be loaded"):
        BundledEmbedder.load(tmp_path, 2)
    with pytest.raises(IncompleteInstallation, match=r"no such file: install footnote-bot again \(https://"):
        bundled("no such file")
