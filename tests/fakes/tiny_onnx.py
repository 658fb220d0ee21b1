"""Encodes real ONNX models of a kilobyte as protocol buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

FLOAT, INT64 = 1, 7


def model(
    nodes: Sequence[bytes],
    constants: Mapping[str, np.ndarray],
    inputs: Sequence[str],
    output: tuple[str, Sequence[str | int]],
) -> bytes:
    """Return a model whose inputs are integers of shape (batch, length); ``output``: name and shape."""
    graph = b"".join(
        [
            *(_part(1, one) for one in nodes),
            _part(2, b"tiny"),
            *(_part(5, _tensor(name, values)) for name, values in constants.items()),
            *(_part(11, _value(name, INT64, ["batch", "length"])) for name in inputs),
            _part(12, _value(output[0], FLOAT, output[1])),
        ]
    )
    return _number(1, 8) + _part(7, graph) + _part(8, _part(1, b"") + _number(2, 13))


def node(kind: str, inputs: Sequence[str], output: str, **attributes: int | list[int]) -> bytes:
    """Return a node of a model; Cast converts to float by default."""
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
    """Return a protobuf field with an integer."""
    return _varint(field << 3) + _varint(value)


def _part(field: int, data: bytes) -> bytes:
    """Return a protobuf field with bytes."""
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
