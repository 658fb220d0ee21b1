"""A real ONNX cross-encoder of a kilobyte that counts the question's words in the passage.

Its tokenizer is a real one, too, with truncation and padding on until disabled, as in some exports.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from fakes.tiny_onnx import FLOAT, model, node

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_cross_encoder(folder: Path, words: Sequence[str], *, classes: int = 1) -> Path:
    """Write ``model.onnx`` and ``tokenizer.json`` into ``folder``; other words are unknown tokens.

    ``classes``: number of outputs per pair; the last is the count.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *dict.fromkeys(words)])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "model.onnx").write_bytes(_model(classes))
    return folder


def _model(classes: int) -> bytes:
    """Return a model that counts each question word once if it is in the passage, without padding."""
    nodes = [
        node("Cast", ["attention_mask"], "seen", to=FLOAT),
        node("Cast", ["token_type_ids"], "second"),
        node("Sub", ["one", "second"], "first"),
        node("Greater", ["input_ids", "last_special"], "is_word"),
        node("Cast", ["is_word"], "word"),
        node("Mul", ["seen", "word"], "counts"),
        node("Mul", ["counts", "first"], "asked"),
        node("Mul", ["counts", "second"], "said"),
        node("Unsqueeze", ["input_ids", "axis_2"], "rows"),
        node("Unsqueeze", ["input_ids", "axis_1"], "columns"),
        node("Equal", ["rows", "columns"], "is_same"),
        node("Cast", ["is_same"], "same"),
        node("Unsqueeze", ["said", "axis_1"], "said_columns"),
        node("Mul", ["same", "said_columns"], "met"),
        node("ReduceMax", ["met"], "held", axes=[2], keepdims=0),
        node("Mul", ["asked", "held"], "hits"),
        node("ReduceSum", ["hits", "axis_1"], "count"),
        node("Mul", ["count", "spread"], "logits"),
    ]
    spread = np.zeros(classes, np.float32)
    spread[-1] = 1
    constants = {
        "one": np.ones(1, np.float32),
        "last_special": np.array([len(SPECIAL) - 1], np.int64),
        "axis_1": np.array([1], np.int64),
        "axis_2": np.array([2], np.int64),
        "spread": spread,
    }
    return model(nodes, constants, INPUTS, ("logits", ["batch", classes]))
