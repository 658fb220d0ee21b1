"""Where the files lie that ``make install`` brings and nothing downloads at run time."""

from __future__ import annotations

import sys
from pathlib import Path

from storage.errors import EngineStartError

MODEL, TOKENIZER, VOCABULARY = "model.onnx", "tokenizer.json", "cl100k_base.tiktoken"


def bundled_folder() -> Path:
    """The folder of the bundled files, inside the environment this program runs in."""
    return Path(sys.prefix) / "share" / "footnote"


def bundled(name: str) -> Path:
    """The bundled file of this name.

    Raises:
        EngineStartError: it is not there.
    """
    path = bundled_folder() / name
    if not path.is_file():
        raise EngineStartError(f"{path} is missing; run `make install`")
    return path
