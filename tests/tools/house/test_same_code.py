"""The check that text commits change no code."""

import subprocess
from pathlib import Path

import pytest

from tools.house.same_code import changed_code

BEFORE = '''"""Words."""

LIMIT = 3


def double(number: int) -> int:
    """What twice is."""
    return 2 * number + len("a word")
'''


@pytest.mark.parametrize(
    ("before", "after", "is_code"),
    [
        ('"""What twice is."""', '"""Return twice a number."""', False),
        ("LIMIT = 3", "# Tries of one file.\nLIMIT = 3", False),
        ('    """What twice is."""\n', "", False),
        ("2 * number", "3 * number", True),
        ('"a word"', '"another word"', True),
    ],
)
def test_only_code_counts_as_changed(tmp_path: Path, before: str, after: str, is_code: bool) -> None:
    """Shows that docstrings and comments are ignored, and numbers and strings are not."""
    module = tmp_path / "module.py"
    module.write_text(BEFORE)
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    module.write_text(BEFORE.replace(before, after))
    assert changed_code("HEAD", tmp_path) == (["module.py"] if is_code else [])
    if '"a word"' in before:
        assert changed_code("HEAD", tmp_path, without_strings=True) == []
