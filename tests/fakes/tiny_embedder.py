"""A real multilingual ONNX embedder of a few kilobytes: words of one meaning have one vector.

Like exported multilingual models, it has no token type input.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

from fakes.tiny_onnx import model, node

DIMENSIONS = 32
INPUTS = ("input_ids", "attention_mask")


def write_embedder(folder: Path, meanings: Sequence[str]) -> Path:
    """Write ``model.onnx`` and ``tokenizer.json`` into ``folder``.

    ``meanings``: each a set of words, in any language, with one meaning; other words have none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = {word: row for row, words in enumerate(meanings, start=1) for word in words.lower().split()}
    vocabulary = {"[UNK]": 0} | {word: number for number, word in enumerate(rows, start=1)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "model.onnx").write_bytes(_model([0, *rows.values()]))
    return folder


def _model(rows: Sequence[int]) -> bytes:
    """Return a model whose token states are the vectors of their meanings; unknown words add noise."""
    states = np.eye(DIMENSIONS, dtype=np.float32)[list(rows)]
    states[0] *= 0.1
    nodes = [
        node("Cast", ["attention_mask"], "seen"),
        node("Unsqueeze", ["seen", "axis"], "column"),
        node("Gather", ["states", "input_ids"], "looked_up"),
        node("Mul", ["looked_up", "column"], "last_hidden_state"),
    ]
    constants = {"states": states, "axis": np.array([2], np.int64)}
    return model(nodes, constants, INPUTS, ("last_hidden_state", ["batch", "length", DIMENSIONS]))
