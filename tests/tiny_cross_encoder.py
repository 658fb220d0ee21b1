"""A real ONNX cross-encoder of a kilobyte, written here byte by byte: it counts the question's words that the
passage holds. Its tokenizer is a real one, too: like some of them it cuts and pads until told not to.
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

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
FLOAT, INT64 = 1, 7
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_cross_encoder(folder: Path, words: Sequence[str], *, classes: int = 1) -> Path:
    """``model.onnx`` and ``tokenizer.json`` in ``folder``; words that are not given are unknown to it.

    ``classes``: numbers that the model gives for a pair; the last is the count.
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
    """Each question word counts once when it equals a word of the passage; padding never counts."""
    nodes = [
        _node("Cast", ["attention_mask"], "seen", to=FLOAT),
        _node("Cast", ["token_type_ids"], "second"),
        _node("Sub", ["one", "second"], "first"),
        _node("Greater", ["input_ids", "last_special"], "is_word"),
        _node("Cast", ["is_word"], "word"),
        _node("Mul", ["seen", "word"], "counts"),
        _node("Mul", ["counts", "first"], "asked"),
        _node("Mul", ["counts", "second"], "said"),
        _node("Unsqueeze", ["input_ids", "axis_2"], "rows"),
        _node("Unsqueeze", ["input_ids", "axis_1"], "columns"),
        _node("Equal", ["rows", "columns"], "is_same"),
        _node("Cast", ["is_same"], "same"),
        _node("Unsqueeze", ["said", "axis_1"], "said_columns"),
        _node("Mul", ["same", "said_columns"], "met"),
        _node("ReduceMax", ["met"], "held", axes=[2], keepdims=0),
        _node("Mul", ["asked", "held"], "hits"),
        _node("ReduceSum", ["hits", "axis_1"], "count"),
        _node("Mul", ["count", "spread"], "logits"),
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
    graph = b"".join(
        [
            *(_part(1, node) for node in nodes),
            _part(2, b"counting"),
            *(_part(5, _tensor(name, values)) for name, values in constants.items()),
            *(_part(11, _value(name, INT64, ["batch", "length"])) for name in INPUTS),
            _part(12, _value("logits", FLOAT, ["batch", classes])),
        ]
    )
    return _number(1, 8) + _part(7, graph) + _part(8, _part(1, b"") + _number(2, 13))


def _node(kind: str, inputs: Sequence[str], output: str, **attributes: int | list[int]) -> bytes:
    if kind == "Cast":
        attributes.setdefault("to", FLOAT)
    parts = [_part(1, name.encode()) for name in inputs]
    parts += [_part(2, output.encode()), _part(4, kind.encode())]
    parts += [_part(5, _attribute(name, value)) for name, value in attributes.items()]
    return b"".join(parts)


def _attribute(name: str, value: int | list[int]) -> bytes:
    if isinstance(value, int):
        return _part(1, name.encode()) + _number(3, value) + _number(20, 2)
    return _part(1, name.encode()) + b"".join(_number(8, one) for one in value) + _number(20, 7)


def _tensor(name: str, values: np.ndarray) -> bytes:
    kind = FLOAT if values.dtype == np.float32 else INT64
    dims = b"".join(_number(1, size) for size in values.shape)
    return dims + _number(2, kind) + _part(8, name.encode()) + _part(9, values.tobytes())


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    dims = [_number(1, one) if isinstance(one, int) else _part(2, one.encode()) for one in shape]
    tensor = _number(1, kind) + _part(2, b"".join(_part(1, dim) for dim in dims))
    return _part(1, name.encode()) + _part(2, _part(1, tensor))


def _number(field: int, value: int) -> bytes:
    """A field of a protocol buffer that holds a whole number."""
    return _varint(field << 3) + _varint(value)


def _part(field: int, data: bytes) -> bytes:
    """A field of a protocol buffer that holds bytes."""
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
