"""Prompts of the models, a Markdown file each."""

from __future__ import annotations

from importlib.resources import files


def read_prompt(name: str) -> str:
    """Return the text of a prompt, such as ``"answer"``."""
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")
